"""The public function of a lean module as text: its checks, and torch's lines around."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import NUMBERS, Parameter
from codegen.program import steps as of
from codegen.targets.lean.autograd import METHOD, AutogradFunction
from codegen.targets.lean.kinks import with_kinks_as_stated
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, doc, promoted, returning
from codegen.targets.lean.printer import LeanPrinter
from codegen.targets.torch.checks import condition, expected, if_there, misshapen, written
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.vocabulary import SIGN
from codegen.targets.torch.wrapping import KINDS, public, wrapped
from derive.language.notation.definition import IGNORE_INDEX, NONE, REDUCTION
from derive.language.notation.layout import Layout
from derive.language.symbols import Axes


class LeanPage(AutogradFunction):
    """A module: the public function, and the pairs that it calls, each with its autograd Function;
    ``plain`` is the pair for calls that pass nothing optional.
    """

    def __init__(self, pair: Pair, plain: Pair | None = None):
        super().__init__(with_kinks_as_stated(pair.program), pair.outside)
        self.pair = pair
        self.plain = LeanPage(plain.under_own_name()) if plain else None

    def pairs(self) -> list[dict[str, object]]:
        """The printed text of each pair."""
        said = f"The autograd Function of {self.name}"
        plain = [self.plain._printed(f"{said} where {self.plain.pair.when}.")] if self.plain else []
        return [self._printed(f"{said}."), *plain]

    def _printed(self, said: str) -> dict[str, object]:
        """The plain functions of the pair, and the Function that calls them."""
        statements = self.statements()
        return {
            "name": self.name,
            "title": self.program.title,
            "doc": doc(said),
            "plain": [self.forward(), *([statements] if statements else []), self.backward()],
            "context": self.context(),
            "gradient": self.gradient(),
        }

    def entry(self) -> FunctionText:
        """The public function: its checks, and the lines that torch differentiates."""
        arguments = public(self.program.forward.parameters)
        if self.outside.ignoring:
            arguments.append(f"{IGNORE_INDEX}: int = {self.outside.ignoring[0].default}")
        if self.outside.reductions:
            arguments.append(f'{REDUCTION}: str = "{self.outside.reductions[0]}"')
        arguments += self._further
        lines = self._asked_first()
        lines += self._handed_on() if self.is_apart else [*self._called(), *self._returned()]
        arguments = [*self._entry_first, *arguments]
        signature = wrapped(f"def {self._entry_name}", arguments, f" -> {self._kind}:")
        return FunctionText(signature, self._shapes(), tuple(_used(lines)))

    @property
    def _entry_name(self) -> str:
        return self.name

    @property
    def _entry_first(self) -> list[str]:
        """Arguments before all others."""
        return []

    @property
    def _further(self) -> list[str]:
        """Arguments that the mathematics does not know."""
        return []

    @property
    def _kind(self) -> str:
        several = ", ".join(["Tensor"] * len(self.outputs))
        return f"tuple[{several}]" if len(self.outputs) > 1 else "Tensor"

    @property
    def is_apart(self) -> bool:
        """True if a function of its own masks labels or reduces losses, which kernels replace as a
        whole.
        """
        return bool(self.outside.reductions or self.outside.ignoring or self.masks)

    def unchecked(self) -> FunctionText | None:
        """The function that the one with the checks calls, if they differ."""
        if not self.is_apart:
            return None
        lines = [*self._options(), *self._called(), *self._returned()]
        kinds = [
            f"{p.name}: {KINDS.get(p.role, 'Tensor')}"
            + " | None" * (p.role not in NUMBERS and p.default is not None)
            for p in self.handed_on
        ]
        said = "The same for arguments that were checked: torch differentiates these lines."
        return FunctionText(
            wrapped(f"def {self.name}_unchecked", kinds, f" -> {self._kind}:"),
            doc(said),
            (*self.sizes_in(lines), *lines),
        )

    @property
    def handed_on(self) -> list[Parameter]:
        """Parameters of the function without checks."""
        own = [p for p in self.program.forward.parameters if p.role != "shape"]
        own += [Parameter(IGNORE_INDEX, (), "index")] * bool(self.outside.ignoring)
        return own + [Parameter(REDUCTION, (), "word")] * bool(self.outside.reductions)

    def _handed_on(self) -> list[str]:
        """The call of the function without checks, with all dimensions restored in its results."""
        names = [p.name for p in self.handed_on]
        layouts = layouts_in(self.program.forward)
        restored = [self._restored(name, layouts[name]) for name in self.outputs]
        called = f"{self.name}_unchecked"
        if restored == [*self.outputs]:
            return [wrapped(f"return {called}", names, indent=len(STEP))]
        lines = [wrapped(f"{', '.join(self.outputs)} = {called}", names, indent=len(STEP))]
        if not self.outside.reductions:
            return [*lines, returning(restored)]
        entries = f'{restored[0]} if {REDUCTION} == "{NONE}" else {self.outputs[0]}'
        return [*lines, broken(f"return {entries}")]

    def _shapes(self, reduced: bool = False) -> tuple[str, ...]:
        layouts = layouts_in(self.program.forward)
        shown = ", ".join(f"{n} {self.shape_of(layouts[n])}" for n in self.outputs)
        more = ", or its sum or mean" * bool(reduced or self.outside.reductions)
        given = ", ".join(map(self._shape_given, self.program.forward.tensors))
        return doc(f"Returns {shown}{more}. Shapes: {given}.")

    def _shape_given(self, p: Parameter) -> str:
        """The required shape of an argument, and its default."""
        broadcast = "broadcast to " * (p.name in self.program.broadcast)
        left_out = "" if p.default is None else f" or {p.default} everywhere"
        return f"{p.name} {broadcast}{self.shape_of(p.layout)}{left_out}"

    def _asked_first(self) -> list[str]:
        """The lines for checks, sizes, and defaults."""
        forward = self.program.forward
        printer, lines = self.printer(forward), self._tensors_asked()
        spread = {step.name for step in forward.checks if isinstance(step, of.Spread)}
        bounded = {step.name for step in forward.checks if isinstance(step, of.Within)}
        for steps in _alike(forward.checks):
            match step := steps[0]:
                case of.InSingle() | of.InRange():
                    continue
                case of.Numeric():
                    lines += self._numeric([s.name for s in steps if s.name not in bounded])
                case of.Within():
                    lines += self._within(step, printer)
                case of.Fits():
                    if step.name in spread:
                        continue  # said where it is broadcast
                    lines += self._fits(steps, printer)
                case of.Spread():
                    shape = expected(printer, step.dims, (True,) * len(step.dims))
                    words = f"{self.name}: {step.name} must be broadcast to "
                    said = f'"{words}{written(printer, step.dims)}"'
                    call = wrapped("_runtime.spread", [said, step.name, shape], "", len(METHOD))
                    lines.append(if_there(printer, step, f"{step.name} = {call}"))
                case of.MergeDims():
                    lines += self._merged(step)
                case _:
                    lines.append(printer.step(step))
        lines += [printer.step(s) for s in forward.steps if isinstance(s, of.Default)]
        lines += [] if self.is_apart else self._options()
        return [*lines, *self._floating(), *self._reduction_asked()]

    def _options(self) -> list[str]:
        """Lines that test whether nothing optional was passed, and that fill in defaults."""
        if not self._fills_first:
            return []
        if self.plain is None:
            return self._filled()
        tests = " and ".join(self.plain.pair.tests)
        return [broken(f"{self.called['plain']} = {tests}"), *self._filled()]

    def _tensors_asked(self) -> list[str]:
        """A check that tensors are tensors, not lists or arrays."""
        tensors = self.program.forward.tensors
        names = [p.name for p in tensors]
        name, shown = names[0], names[0]
        if len(names) > 1:
            name, shown = self.called["t"], f"{{{self.called['name']}}}"
        kinds = "Tensor" if all(p.default is None for p in tensors) else "Tensor | None"
        said = f'f"{self.name}: {shown} must be a tensor, got {{type({name}).__name__}}"'
        test = f"if not isinstance({name}, {kinds}):"
        return self._for_each(names, name, test, f"raise TypeError({said})")

    def _floating(self) -> list[str]:
        """A check of dtypes: gradients of integers would be rounded, and labels of 8 bits would
        index as a mask. Tensors without a gradient may be integers.
        """
        tensors = [p for p in self.program.forward.tensors if p.default is None]
        labels = [p.name for p in tensors if p.role in ("label", "index")]
        inputs = [p.name for p in tensors if p.role == "input"]
        lines = self._formats_asked(inputs, "not {}.is_floating_point()", "floating point")
        whole = "{}.dtype not in (torch.int32, torch.int64)"
        lines += self._formats_asked(labels, whole, "int32 or int64")
        for p in self.program.forward.tensors:
            if p.role == "given":
                there = f"{p.name} is not None and " * (p.default is not None)
                said = f'"{self.name}: {p.name} gets no gradient: pass {p.name}.detach()"'
                recorded = f"{p.name}.requires_grad and torch.is_grad_enabled()"
                lines.append(broken(f"if {there}{recorded}:"))
                lines.append(STEP + broken(f"raise RuntimeError({said})", METHOD))
        return lines

    def _formats_asked(self, names: Sequence[str], test: str, words: str) -> list[str]:
        if not names:
            return []
        name, shown = names[0], names[0]
        if len(names) > 1:
            name, shown = self.called["t"], f"{{{self.called['name']}}}"
        said = f'f"{self.name}: {shown} must be {words}, got {{{name}.dtype}}"'
        return self._for_each(names, name, f"if {test.format(name)}:", f"raise TypeError({said})")

    def _filled(self) -> list[str]:
        """Lines that fill in tensors that are left out."""
        forward = self.program.forward
        printer = self.printer(forward)
        return [printer.step(step) for step in forward.steps if isinstance(step, of.Fill)]

    @property
    def _fills_first(self) -> bool:
        """True if defaults are filled in for every call: where a divisor may read them."""
        return self.plain is None or bool(self.outside.reductions)

    def _fits(self, steps: Sequence[of.Fits], printer: LeanPrinter) -> list[str]:
        """A check of the shapes of arguments, and its error."""
        names, name, shown = [step.name for step in steps], steps[0].name, steps[0].name
        if len(names) > 1:
            name, shown = self.called["t"], f"{{{self.called['name']}}}"
        wrong = misshapen(printer, replace(steps[0], name=name))
        if not wrong:
            return []
        if steps[0].optional:
            also = f"({' or '.join(wrong)})" if len(wrong) > 1 else wrong[0]
            wrong = [f"{name} is not None and {also}"]
        dims, known = steps[0].dims, steps[0].known
        words = f"{shown} must be {written(printer, dims)}"
        if all(known) and any(isinstance(dim.axis, Axes) for dim in dims):
            words += f", here {{{expected(printer, dims, known)}}}"
        said = f'f"{self.name}: {words}, got {{tuple({name}.shape)}}"'
        return self._for_each(names, name, condition(wrong), f"raise ValueError({said})")

    def _numeric(self, names: Sequence[str]) -> list[str]:
        """A check that numbers are not tensors: these would get no gradient."""
        if not names:
            return []
        name, shown = names[0], names[0]
        if len(names) > 1:
            name, shown = self.called["t"], f"{{{self.called['name']}}}"
        said = f'{"f" * (len(names) > 1)}"{self.name}: {shown} must be a number, not a tensor"'
        test = f"if isinstance({name}, Tensor):"
        return self._for_each(names, name, test, f"raise TypeError({said})")

    def _for_each(self, names: Sequence[str], name: str, test: str, raised: str) -> list[str]:
        """A check of one argument, or of several in a loop."""
        if len(names) == 1:
            return [test, STEP + broken(raised, METHOD)]
        pairs = [f'("{own}", {own})' for own in names]
        head = wrapped(f"for {self.called['name']}, {name} in ", pairs, ":", indent=len(STEP))
        return [head, STEP + test, METHOD + broken(raised, METHOD + STEP)]

    def _within(self, step: of.Within, printer: LeanPrinter) -> list[str]:
        """A check of a number's domain; of an argument also that it is not a tensor."""
        numbers = {p.name for p in self.program.forward.parameters if p.role == "scalar"}
        if step.name not in numbers:
            return [printer.step(step)]
        tested = printer.step(replace(step, domain=f"a number {step.domain}"))
        return [tested.replace("if not ", f"if isinstance({step.name}, Tensor) or not ", 1)]

    def _merged(self, step: of.MergeDims) -> list[str]:
        """Merge the dimensions of an `Axes` into one."""
        optional = {p.name for p in self.program.forward.tensors if p.default is not None}
        lines = [f"{step.name} = math.prod({self.dims[step.name]})"]
        if self._takes_any_shape:
            return lines
        required = [(name, layout) for name, layout in step.tensors if name not in optional]
        if required:
            values = ", ".join(self._flat(*each) for each in required)
            line = f"{', '.join(name for name, _ in required)} = {values}"
            if len(METHOD + line) <= LONGEST:
                flat = [line]
            else:
                flat = [f"{each[0]} = {self._flat(*each)}" for each in required]
            if self._is_only(step):  # a view costs autograd as much as a small kernel
                flat = [f"if len({self.dims[step.name]}) != 1:", *(STEP + line for line in flat)]
            lines += flat
        for name, layout in step.tensors:
            if name in optional:
                lines += [f"if {name} is not None:", f"{STEP}{name} = {self._flat(name, layout)}"]
        return lines

    def _flat(self, name: str, layout: Layout) -> str:
        shape = ", ".join("1" if d.one else self.sizes[d.axis.name] for d in layout)
        return f"{name}.reshape({shape})"

    def _reduction_asked(self) -> list[str]:
        return reduction_asked(self.name, self.outside.reductions)

    def _called(self) -> list[str]:
        """The masks, and the call."""
        masks = [(i.label.name, i.kept.name, IGNORE_INDEX) for i in self.outside.ignoring]
        masks += [(label, s.kept, s.ignored) for label, s in self.masks.items()]
        lines = []
        for label, kept, ignored in masks:
            lines += [f"{kept} = {label} != {ignored}", f"{label} = {label}.where({kept}, 0)"]
        lines += [f"{s.kept} = {s.kept}.to({self.floats[0]}.dtype)" for s in self.masks.values()]
        lines += self._ranges_asked()
        if why := self.program.without_second:
            said = f"{self.name}: no second derivatives, so neither forward mode: {why}"
            lines.append(wrapped("_runtime.refuse_lines", [repr(said)], indent=len(STEP)))
        run = self.called["run"]
        if self.plain is None:
            return [*lines, *self._run(run)]
        tests = [self.called["plain"]] if self._fills_first else self.plain.pair.tests
        lines += [condition(tests, "and"), *self.plain._run(run, METHOD)]
        filled = [] if self._fills_first or not tests[1:] else self._filled()
        if self._is_at_once:
            return [*lines, *filled, *self._run(run)]
        inner = [STEP + line.replace("\n", "\n" + STEP) for line in filled]
        return [*lines, "else:", *inner, *self._run(run, METHOD)]

    def _run(self, run: str, margin: str = STEP) -> list[str]:
        """The call of the pair; ``run`` is the callee."""
        before = margin.removeprefix(STEP)
        names = [p.name for p in self.inner]
        outputs = ", ".join(self.outputs)
        head = "return" if self._is_at_once else f"{outputs} ="
        taken = head if self._is_at_once or not self.made else f"{outputs}, *_ ="
        first = "[0]" * bool(self.made and self._is_at_once)
        applied = f"{self.program.title}.apply"
        if self.program.without_second:
            return [before + wrapped(f"{taken} {applied}", names, first, len(margin))]
        if lines_to_differentiate(self.program) is self.program.forward:
            chosen = f"{run} = {self.name}_forward if _by_lines() else {applied}"
            called = wrapped(f"{taken} {run}", names, first, len(margin))
            return [before + broken(chosen, margin), before + called]
        inner, indent = before + STEP, len(margin + STEP)
        written = wrapped(f"{head} {self.name}_statements", names, indent=indent)
        lines = [f"{before}if _by_lines():", inner + written]
        if self._is_at_once:
            return [*lines, before + wrapped(f"{taken} {applied}", names, first, len(margin))]
        called = wrapped(f"{taken} {applied}", names, first, indent)
        return [*lines, f"{before}else:", inner + called]

    @property
    def _is_at_once(self) -> bool:
        """True if the one output is returned as it is."""
        layouts = layouts_in(self.program.forward)
        whole = not any(isinstance(dim.axis, Axes) for dim in layouts[self.outputs[0]])
        whole |= self._takes_any_shape
        outside = self.outside.reductions or self.outside.ignoring
        return (whole or self.is_apart) and len(self.outputs) == 1 and not outside

    @property
    def _looked_up(self) -> Sequence[str]:
        """Labels of which only all ranks together have the range."""
        return ()

    def _ranges_asked(self) -> list[str]:
        """Range checks of the labels that lines pick by: torch's own name no argument."""
        forward = self.program.forward
        printer, lines = self.printer(forward), []
        split = (of.InRange(label, s.sizes) for label, s in self.masks.items())
        for step in (*self.program.ranges, *split):
            if step.lengths and step.name not in self._looked_up:
                lengths = ", ".join(map(printer.text, step.lengths))
                said = f'"{self.name}: {step.name}", {step.name}, {lengths}'
                lines.append(broken(f"_runtime.in_range({said})"))
        return lines

    def _returned(self) -> list[str]:
        """Lines after the call, which torch differentiates."""
        layouts = layouts_in(self.program.forward)
        results = [*self.outputs]
        if not self.is_apart:
            results = [self._restored(name, layouts[name]) for name in self.outputs]
        masks = [ignoring.kept.name for ignoring in self.outside.ignoring]
        lines = [f"{o} = {o}.where({mask}, 0)" for mask in masks for o in self.outputs]
        if not self.outside.reductions:
            return [*lines, *self._reshaped(results)]
        printer, (output,) = self.printer(self.program.forward), self.outputs
        printer.like = output  # counted in 16 bits, labels would be some others
        dtype, total = promoted(self.deciding), self.called["total"]
        if self.deciding != self.ranked:
            dtype = f"{dtype} if {output}.dtype == torch.float32 else {output}.dtype"
        if len(self.ranked) > 1:
            lines.append(broken(f"{self.both} = {dtype}"))
            dtype = self.both
        lines += [
            f'if {REDUCTION} == "{NONE}":',
            STEP + broken(f"return {output}.to({dtype})", METHOD),
            f"{total} = {output}.sum()",
        ]
        for word, steps in self.outside.divisors:
            *before, last = steps
            lines.append(f'if {REDUCTION} == "{word}":')
            lines += [STEP + printer.step(step, METHOD) for step in before]
            lines.append(f"{STEP}{total} = {total} / {printer.text(last.value, SIGN)}")
        return [*lines, broken(f"return {total}.to({dtype})")]

    @property
    def _takes_any_shape(self) -> bool:
        return self.is_pointwise and (self.plain is None or self.plain.is_pointwise)

    def _restored(self, name: str, layout: Layout) -> str:
        """An output with all dimensions of each `Axes` restored."""
        if self._takes_any_shape or not any(isinstance(dim.axis, Axes) for dim in layout):
            return name
        dims = [self._restored_dim(name, i, layout) for i in range(len(layout))]
        whole = len(dims) == 1  # which may be none at all
        return f"{name}.reshape({dims[0].removeprefix('*') if whole else ', '.join(dims)})"

    def _reshaped(self, restored: list[str]) -> list[str]:
        """The outputs, ``restored``; as they are if nothing was merged."""
        if self._is_at_once:
            return []
        merged = [s for s in self.program.forward.checks if isinstance(s, of.MergeDims)]
        if restored == [*self.outputs] or len(merged) != 1:
            return [returning(restored)]
        test = f"if len({self.dims[merged[0].name]}) == 1:"
        return [test, STEP + returning(self.outputs), returning(restored)]

    def _is_only(self, step: of.MergeDims) -> bool:
        """True if no other dimension stands for several."""
        return [s for s in self.program.forward.checks if isinstance(s, of.MergeDims)] == [step]

    def _restored_dim(self, name: str, place: int, layout: Layout) -> str:
        axis = layout[place].axis
        size = self.sizes[axis.name]
        if isinstance(axis, Axes):
            return f"*{self.dims[size]}"
        shown = {self.sizes[d.axis.name] for p in self.tensors for d in p.layout}
        return size if size in shown else f"{name}.shape[{place}]"


def reduction_asked(name: str, words: Sequence[str]) -> list[str]:
    """A check that one of the words is passed, if there are any."""
    if not words:
        return []
    shown = ", ".join(f'"{word}"' for word in words)
    said = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}, not {{{REDUCTION}!r}}"
    raised = f'raise ValueError(f"{name}: {REDUCTION} is {said}")'
    return [f"if {REDUCTION} not in ({shown}):", STEP + broken(raised, METHOD)]


def _alike(checks: Iterable[of.Step]) -> Iterator[list[of.Step]]:
    """The checks, with adjacent checks of the same kind grouped."""

    def asked(step: of.Step) -> object:
        if isinstance(step, of.Fits) and all(step.known):
            return step.dims, step.optional
        return type(step) if isinstance(step, of.Numeric) else step

    return (list(steps) for _, steps in groupby(checks, asked))


def _used(lines: list[str]) -> list[str]:
    """The lines without sizes that no later line reads."""
    found: list[str] = []
    later = ""
    for line in lines[::-1]:
        sizes = re.match(r"([\w*, ]+?),? = (\w+\.shape|math\.prod\(\w+\))(\[\d+\])?$", line)
        if sizes is not None:
            names = [name.strip() for name in sizes[1].split(",")]
            read = [bool(re.search(rf"(?<![.\w]){n.strip('*')}\b", later)) for n in names]
            if not any(read):
                continue
            if len(names) > 1:
                unread = ["*_" if "*" in name else "_" for name in names]
                shown = [n if r else u for n, u, r in zip(names, unread, read, strict=True)]
                line = f"{', '.join(shown)} = {sizes[2]}"
        found.append(line)
        later = f"{line}\n{later}"
    return found[::-1]
