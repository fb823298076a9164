"""The public function of a lean module as text: what it asks, and what torch differentiates."""

from __future__ import annotations

import re

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import Program
from codegen.program import steps as of
from codegen.targets.lean.autograd import METHOD, AutogradFunction
from codegen.targets.lean.options import WithoutOptions
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.plain import FunctionText, doc, promoted, returning
from codegen.targets.lean.printer import LeanPrinter
from codegen.targets.torch.checks import condition
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.vocabulary import SIGN
from codegen.targets.torch.wrapping import public, wrapped
from derive.language.symbols import Axes
from derive.notation.definition import IGNORE_INDEX, NONE, REDUCTION
from derive.notation.layout import Layout


class LeanPage(AutogradFunction):
    """A module: the public function, the two that it calls, and the autograd Function; ``plain`` is
    the page of another such pair, for calls that pass nothing optional.
    """

    def __init__(self, program: Program, outside: Outside, plain: WithoutOptions | None = None):
        super().__init__(program, outside)
        self.without_options = plain
        self.plain = LeanPage(plain.named, plain.outside) if plain else None

    def pairs(self) -> list[dict[str, object]]:
        """What is printed of each pair: its plain functions, and the Function that calls them."""
        statements = self.statements()
        pair = {
            "title": self.program.title,
            "doc": doc(f"What autograd sees of {self.name}."),
            "plain": [self.forward(), *([statements] if statements else []), self.backward()],
            "inner": ", ".join(p.name for p in self.inner),
            "called": self.called_forward(),
            "context": self.context(),
            "gradient": self.gradient(),
        }
        if self.plain is None:
            return [pair]
        (plain,) = self.plain.pairs()
        when = f"What autograd sees of {self.name} where {self.without_options.when}."
        return [pair, {**plain, "doc": doc(when)}]

    def entry(self) -> FunctionText:
        """The function that is called: what it asks, and what torch differentiates."""
        arguments = public(self.program.forward.parameters)
        if self.outside.ignoring:
            arguments.append(f"{IGNORE_INDEX}: int = {self.outside.ignoring[0].default}")
        if self.outside.reductions:
            arguments.append(f'{REDUCTION}: str = "{self.outside.reductions[0]}"')
        several = ", ".join(["Tensor"] * len(self.outputs))
        kind = f"tuple[{several}]" if len(self.outputs) > 1 else "Tensor"
        lines = [*self._asked_first(), *self._called(), *self._returned()]
        signature = wrapped(f"def {self.name}", arguments, f" -> {kind}:")
        return FunctionText(signature, self._shapes(), tuple(_used(lines)))

    def _shapes(self) -> tuple[str, ...]:
        layouts = layouts_in(self.program.forward)
        shown = ", ".join(f"{n} {self.shape_of(layouts[n])}" for n in self.outputs)
        more = ", or its sum or mean" * bool(self.outside.reductions)
        own = self.program.forward.tensors
        given = ", ".join(f"{p.name} {self.shape_of(p.layout)}" for p in own)
        return doc(f"Returns {shown}{more}. Shapes: {given}.")

    def _asked_first(self) -> list[str]:
        """What is refused, the sizes, and the defaults."""
        forward = self.program.forward
        printer, lines = self.printer(forward), []
        for step in forward.checks:
            match step:
                case of.InSingle() | of.InRange():
                    continue
                case of.Numeric():
                    wrong = f'"{self.name}: {step.name} must be a number, not a tensor"'
                    lines.append(f"if isinstance({step.name}, Tensor):")
                    lines.append(f"{STEP}raise TypeError({wrong})")
                case of.Fits():
                    lines += self._fits(step, printer)
                case of.Spread():
                    shape = printer._expected(step.dims, (True,) * len(step.dims))
                    line = f"{step.name} = {step.name}.expand({shape})"
                    lines.append(printer._if_there(step, line))
                case of.MergeDims():
                    lines += self._merged(step)
                case _:
                    lines.append(printer.step(step))
        filled = [s for s in forward.steps if isinstance(s, (of.Default, of.Fill))]
        if self.plain is not None:
            lines.append(broken(f"{self.called['plain']} = {self.without_options.test}"))
        return [*lines, *map(printer.step, filled), *self._reduction_asked()]

    def _fits(self, step: of.Fits, printer: LeanPrinter) -> list[str]:
        """A test of a shape, and what is raised."""
        wrong = printer._misshapen(step)
        if not wrong:
            return []
        if step.optional:
            also = f"({' or '.join(wrong)})" if len(wrong) > 1 else wrong[0]
            wrong = [f"{step.name} is not None and {also}"]
        words = f"{step.name} must be {printer.written(step.dims)}"
        said = f'f"{self.name}: {words}, got {{tuple({step.name}.shape)}}"'
        return [condition(wrong), STEP + broken(f"raise ValueError({said})", METHOD)]

    def _merged(self, step: of.MergeDims) -> list[str]:
        """One dimension for all those of an `Axes`."""
        optional = {p.name for p in self.program.forward.tensors if p.default is not None}
        lines = [f"{step.name} = math.prod({self.dims[step.name]})"]
        for name, layout in step.tensors:
            shape = ", ".join("1" if d.one else self.sizes[d.axis.name] for d in layout)
            line = f"{name} = {name}.reshape({shape})"
            lines += [f"if {name} is not None:", STEP + line] if name in optional else [line]
        return lines

    def _reduction_asked(self) -> list[str]:
        words = self.outside.reductions
        if not words:
            return []
        shown = ", ".join(f'"{word}"' for word in words)
        said = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}, not {{{REDUCTION}!r}}"
        raised = f'raise ValueError(f"{self.name}: {REDUCTION} is {said}")'
        return [f"if {REDUCTION} not in ({shown}):", STEP + broken(raised, METHOD)]

    def _called(self) -> list[str]:
        """The masks, and the call."""
        masks = [(i.label.name, i.kept.name, IGNORE_INDEX) for i in self.outside.ignoring]
        masks += [(label, s.kept, s.ignored) for label, s in self.masks.items()]
        lines = []
        for label, kept, ignored in masks:
            lines += [f"{kept} = {label} != {ignored}", f"{label} = {label}.where({kept}, 0)"]
        lines += [f"{s.kept} = {s.kept}.to({self.floats[0]}.dtype)" for s in self.masks.values()]
        lines += self._ranges_asked()
        if self.plain is None:
            return [*lines, *self._run()]
        return [
            *[*lines, f"if {self.called['plain']}:", *self.plain._run(self.called["run"], METHOD)],
            *["else:", *self._run(margin=METHOD)],
        ]

    def _run(self, run: str = "", margin: str = STEP) -> list[str]:
        """The call of the pair, in which ``run`` names what is called."""
        run, before = run or self.called["run"], margin.removeprefix(STEP)
        names = [p.name for p in self.inner]
        taken = ", ".join([*self.outputs, *["*_"] * bool(self.made)])
        applied = f"{self.program.title}.apply"
        if lines_to_differentiate(self.program) is self.program.forward:
            chosen = f"{run} = {self.name}_forward if _by_lines() else {applied}"
            called = wrapped(f"{taken} = {run}", names, indent=len(margin))
            return [before + broken(chosen, margin), before + called]
        written = f"{', '.join(self.outputs)} = {self.name}_statements"
        inner = before + STEP
        indent = len(margin + STEP)
        return [
            *[f"{before}if _by_lines():", inner + wrapped(written, names, indent=indent)],
            *[f"{before}else:", inner + wrapped(f"{taken} = {applied}", names, indent=indent)],
        ]

    def _ranges_asked(self) -> list[str]:
        """A test of the labels by which lines pick and that torch itself does not refuse."""
        forward = self.program.forward
        printer, lines = self.printer(forward), []
        for step in self.program.ranges:
            if not self.guarded(forward, step.name):
                lengths = ", ".join(map(printer.text, step.lengths))
                said = f'"{self.name}: {step.name}", {step.name}, {lengths}'
                lines.append(broken(f"_runtime.in_range({said})"))
        return lines

    def _returned(self) -> list[str]:
        """What torch differentiates behind the call."""
        layouts = layouts_in(self.program.forward)
        restored = [self._restored(name, layouts[name]) for name in self.outputs]
        masks = [ignoring.kept.name for ignoring in self.outside.ignoring]
        lines = [f"{o} = {o}.where({mask}, 0)" for mask in masks for o in self.outputs]
        if not self.outside.reductions:
            return [*lines, returning(restored)]
        printer, (output,) = self.printer(self.program.forward), self.outputs
        dtype, total = promoted(self.floats), self.called["total"]
        lines += [
            f'if {REDUCTION} == "{NONE}":',
            STEP + broken(f"return {restored[0]}.to({dtype})", METHOD),
            f"{total} = {output}.sum()",
        ]
        for word, steps in self.outside.divisors:
            *before, last = steps
            lines.append(f'if {REDUCTION} == "{word}":')
            lines += [STEP + printer.step(step, METHOD) for step in before]
            lines.append(f"{STEP}{total} = {total} / {printer.text(last.value, SIGN)}")
        return [*lines, broken(f"return {total}.to({dtype})")]

    def _restored(self, name: str, layout: Layout) -> str:
        """An output with all the dimensions that an `Axes` stands for."""
        if not any(isinstance(dim.axis, Axes) for dim in layout):
            return name
        dims = [self._restored_dim(name, i, layout) for i in range(len(layout))]
        whole = len(dims) == 1  # which may be none at all
        return f"{name}.reshape({dims[0].removeprefix('*') if whole else ', '.join(dims)})"

    def _restored_dim(self, name: str, place: int, layout: Layout) -> str:
        axis = layout[place].axis
        size = self.sizes[axis.name]
        if isinstance(axis, Axes):
            return f"*{self.dims[size]}"
        shown = {self.sizes[d.axis.name] for p in self.tensors for d in p.layout}
        return size if size in shown else f"{name}.shape[{place}]"


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
