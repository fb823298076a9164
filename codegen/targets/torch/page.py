"""The parts of a Program as text: what the template of a module prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap

from codegen.arguments import needed
from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.arrays import Contract, Pick
from codegen.program.parts import values_in
from codegen.program.steps import Assign, NameSize, SplitLabel, Step
from codegen.program.values import Load, Value
from codegen.targets.torch.checks import Surroundings
from codegen.targets.torch.lines import LONGEST, broken
from codegen.targets.torch.printer import Printer
from codegen.wanted import wanted_by
from derive.language.names import checked_name
from derive.notation.definition import IGNORE_INDEX
from derive.notation.layout import Layout

KINDS = {"scalar": "float", "index": "int", "size": "int", "shape": "tuple[int, ...]"}


@dataclass(frozen=True)
class Core:
    """A function as its lines alone: its ``def``, what stands in it, what it returns."""

    signature: str
    lines: tuple[str, ...]
    returned: str


@dataclass(frozen=True)
class Behind:
    """What the `torch.autograd.Function` of the backward needs to know, as text."""

    upstream: str
    computed: tuple[str, ...]
    returned: tuple[str, ...]


@dataclass(frozen=True)
class Differentiable:
    """What the `torch.autograd.Function` needs to know of the pair behind it, as text."""

    inputs: str
    output: str
    upstream: str
    plain: tuple[str, ...]
    saved: str
    numbers: str
    returned: tuple[str, ...]
    computed: tuple[str, ...]
    gradients: str
    behind: tuple[Behind, ...]


@dataclass(frozen=True)
class PrintedFunction:
    """A function as the template prints it: every field is text, and ``core`` are the lines that
    it calls, without any check, where it is not these itself.
    """

    summary: str
    signature: str
    shapes: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str
    core: tuple[Core, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class of what it returns, if that is one of its own."""
        return (self.result_class,) if self.result_class else ()


class Page:
    """The parts of a Program as text. ``asked_for`` are the arguments of which a gradient may be
    needed, by place: those of the program, if nothing else is said.
    """

    def __init__(self, program: Program, asked_for: Sequence[Parameter] = ()):
        self.program = program
        self.asked_for = asked_for or program.forward.parameters
        self.sizes = dict(program.sizes)
        second = program.second
        behind = () if second is None else (second.behind, second.jvp, second.double)
        behind += (second.pullback,) if second is not None and second.pullback else ()
        four = (program.forward, program.backward, program.atoms, program.chain)
        self.functions = (*four, *behind)
        for function in self.functions:
            for parameter in function.parameters:
                checked_name(parameter.name, "an argument")
        taken = {*self.sizes.values()}
        for function in self.functions:
            taken |= {p.name for p in function.parameters} | {step.name for step in function.steps}
        self.dims = {size: _free(f"{size}_dims", taken) for size in program.several}
        self.dtype, self.result, self.needs = (
            _free(name, taken) for name in ("dtype", "result", "needs")
        )

    def printer(self, function: Function) -> Printer:
        numbers = [p.name for p in function.parameters if p.role in NUMBERS]
        tensors = [p for p in function.parameters if p.role in ("input", "adjoint", "statement")]
        like = min(tensors, key=lambda p: p.default is not None).name
        fixed, name = dict(self.program.fixed), self.program.name
        hurried = function is self.program.forward
        around = Surroundings(name, self.dims, fixed, self.dtype, hurried)
        return Printer(self.sizes, numbers, like, around)

    # -- the functions ----------------------------------------------------------

    def differentiable(self) -> Differentiable:
        program = self.program
        forward, backward = program.forward, program.backward
        needs = backward.parameters[1:]
        saved = [f"result.{p.name}" for p in needs if p.role not in NUMBERS]
        numbers = [f"result.{p.name}" for p in needs if p.role in NUMBERS]
        places = {name: i for i, name in enumerate(backward.results)}
        gradients = [
            f"gradients[{places[f'd{p.name}']}]"
            + f" if ctx.needs_input_grad[{i}] else None" * (p.default is not None)  # or left out
            if p.role == "input"
            else "None"
            for i, p in enumerate(forward.parameters)
        ]
        return Differentiable(
            self.inputs,
            forward.results[0],
            backward.parameters[0].name,
            tuple(broken(line, " " * 8) for line in self.plain_applied()),
            broken(f"ctx.save_for_backward({', '.join(saved)})", " " * 8),
            _tuple(numbers),
            tuple(broken(line, " " * 8) for line in self.returned("result.")),
            tuple(_broken_at_its_place(line) for line in self.called_back()),
            broken(f"return {_tuple(gradients)}", " " * 8),
            self.behind_the_backward(),
        )

    def outputs(self, of: str = "") -> list[str]:
        """What autograd sees: the output, and the values that are saved, each once. These have a
        gradient where the backward is differentiated.
        """
        forward = self.program.forward
        if self.program.second is None or self.program.second.pullback is None:
            return [f"{of}{forward.results[0]}"]
        values = [p.name for p in self.program.second.pullback.parameters if p.role == "statement"]
        same = {
            step.name
            for step in forward.steps
            if isinstance(step, Assign) and isinstance(step.value, Load)
        }
        names = [forward.results[0], *(name for name in values if name != forward.results[0])]
        return [
            f"{of}{name}.view_as({of}{name})" if name in same and i else f"{of}{name}"
            for i, name in enumerate(names)
        ]

    def returned(self, of: str = "") -> list[str]:
        """How autograd is given the outputs. Under torch.compile nothing is differentiated again,
        and a gradient of what is saved would be all zeros, added to the others.
        """
        outputs = self.outputs(of)
        alone = [f"if torch.compiler.is_compiling():\n            return ({outputs[0]},)"]
        return [*alone * (len(outputs) > 1), f"return {_tuple(outputs)}"]

    def called_back(self) -> list[str]:
        """The gradients of the inputs, as it comes: with cotangents of what was saved, to be
        differentiated again, or as nearly always.
        """
        upstream = self.program.backward.parameters[0].name
        count = len(self.program.forward.parameters)
        lines = []
        if any(pair.program.second and pair.program.second.pullback for pair in self.pairs):
            lines += ["if any(c is not None for c in cotangents):"]
            lines += self.either(
                lambda pair, name: [pair.pulled_back(f"{name}_pullback", upstream)], "    "
            )
            lines += [f"elif {upstream} is None:"]
        else:
            lines += [f"if {upstream} is None:"]
        lines += [
            f"    return (None,) * {count}",
            f"elif torch.is_grad_enabled() and not _transformed({upstream}):",
        ]
        if all(pair.program.second for pair in self.pairs):
            known = "ctx.plain, " * (self.plain is not None) + "ctx.needs_input_grad, ctx.numbers"
            gradient = f"{self.program.title}Gradient"
            lines += [f"    gradients = {gradient}.apply({known}, {upstream}, *saved)"]
        else:
            lines += ["    raise NotImplementedError(_REFUSAL)"]
        lines += ["else:"]
        lines += self.either(
            lambda pair, name: [f"gradients = {pair.backward_called(name, upstream)}"], "    "
        )
        return lines

    @property
    def pairs(self) -> list[Page]:
        return [self, self.plain] if self.plain is not None else [self]

    def either(self, lines: Callable[[Page, str], list[str]], indent: str) -> list[str]:
        """``lines`` for the one pair, or for the plain one and the other."""
        whole = lines(self, "")
        if self.plain is None:
            return [f"{indent}{line}" for line in whole]
        short = lines(self.plain, "_plain")
        return [
            f"{indent}if ctx.plain:",
            *(f"{indent}    {line}" for line in short),
            f"{indent}else:",
            *(f"{indent}    {line}" for line in whole),
        ]

    def backward_called(self, name: str, upstream: str, needs: str = "ctx.needs_input_grad") -> str:
        more = f", needs={needs}" * self.guards
        return f"{name}_backward({upstream}, *saved, *ctx.numbers{more})"

    def pulled_back(self, name: str, upstream: str) -> str:
        if self.program.second is None or self.program.second.pullback is None:
            return "raise NotImplementedError(_REFUSAL)"
        return f"gradients = {name}({upstream}, *cotangents, *saved, *ctx.numbers)"

    def behind_the_backward(self) -> tuple[Behind, ...]:
        """The function of autograd's that the backward is where it is differentiated again."""
        if not all(pair.program.second for pair in self.pairs):
            return ()
        places = self.program.backward.results

        def vectors(pair: Page) -> str:
            """What stands before the gradients that the pair computes."""
            own = pair.program.backward.results
            if own == places:
                return "*vectors"
            return ", ".join(f"vectors[{places.index(name)}]" for name in own)

        upstream = self.program.backward.parameters[0].name
        known = ["plain"] * (self.plain is not None) + ["needs", "numbers"]
        computed = [f"ctx.{name} = {name}" for name in known if name != "needs"]
        computed += self.either(
            lambda pair, name: [f"gradients = {pair.backward_called(name, upstream, 'needs')}"], ""
        )
        returned = self.either(
            lambda pair, name: [
                f"gradients = {name}_behind({vectors(pair)}, {upstream}, *saved, *ctx.numbers)"
            ],
            "",
        )
        returned.append(f"return {_tuple(['None'] * len(known) + ['*gradients'])}")
        return (
            Behind(
                ", ".join([*known, upstream]),
                tuple(map(_broken_at_its_place, computed)),
                tuple(map(_broken_at_its_place, returned)),
            ),
        )

    def second_cores(self, name: str = "", gradients: Sequence[str] = ()) -> tuple[Core, ...]:
        """The lines of what comes behind the backward, and behind what was saved; ``gradients`` are
        those that the latter returns, if these are not all that it computes.
        """
        second = self.program.second
        if second is None:
            return ()
        cotangents = dict(second.cotangents)
        tensors = [p for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        behind = [second.behind.results[0], *(cotangents.get(p.name, "None") for p in tensors)]
        found = [self.core(second.behind, f"{name}_behind", returned=behind)]
        if second.pullback is not None:
            found.append(
                self.core(
                    second.pullback,
                    f"{name}_pullback",
                    returned=gradients or second.pullback.results,
                )
            )
        return tuple(found)

    @cached_property
    def plain(self) -> Page | None:
        """The page of the pair that is for calls which pass nothing optional."""
        plain = self.program.plain
        if plain is None:
            return None
        pair = replace(
            self.program,
            forward=plain.forward,
            backward=plain.backward,
            second=plain.second,
            plain=None,
        )
        return Page(pair, self.program.forward.parameters)

    def plain_pair(self) -> tuple[Core, ...]:
        if self.plain is None:
            return ()
        page, pair = self.plain, self.plain.program
        gradients = tuple(
            name if name in pair.backward.results else "None"
            for name in self.program.backward.results
        )
        return (
            page.core(pair.forward, "_plain_forward", returned=pair.forward.results),
            page.core(
                pair.backward,
                "_plain_backward",
                [page.needs] * page.guards,
                returned=gradients,
            ),
            *page.second_cores("_plain", gradients),
        )

    def plain_applied(self) -> list[str]:
        """When the shorter pair is taken, and how."""
        plain = self.program.plain
        if plain is None:
            return []
        printer = self.printer(self.program.forward)
        tests = [f"{name} is None" for name in plain.absent]
        tests += [f"{name} == 0" for name in plain.zero]
        for step in plain.counting:
            lengths = "".join(f", {printer.text(length)}" for length in step.lengths)
            tests.append(f"_all_count({step.name}, {IGNORE_INDEX}{lengths})")
        inputs = ", ".join(p.name for p in plain.forward.parameters)
        needs = plain.backward.parameters[1:]
        saved = ", ".join(p.name for p in needs if p.role not in NUMBERS)
        numbers = [p.name for p in needs if p.role in NUMBERS]
        results = _tuple(plain.forward.results).removeprefix("(").removesuffix(")")
        return [
            f"ctx.plain = {' and '.join(tests)}",
            "if ctx.plain:",
            f"    {results} = _plain_forward({inputs})",
            f"    ctx.save_for_backward({saved})",
            f"    ctx.numbers = {_tuple(numbers)}",
            *("    " + line.replace("\n", "\n    ") for line in self.plain.returned()),
        ]

    def public(self) -> Core:
        """The differentiable function."""
        program = self.program
        printer, output = self.printer(program.forward), program.forward.results[0]
        layout = program.backward.parameters[0].layout
        applied = f"{output} = {program.title}Function.apply({self.inputs})[0]"
        lines = [
            *(f'_without_gradient("{name}", {name})' for name in self.of_role("given")),
            f"if _transformed():\n        return {program.atoms.name}({self.inputs}).{output}",
            self.prepared,
            self.explained(applied),
            "if torch.compiler.is_compiling() and not torch.compiler.is_exporting():\n"
            f"        {output} = torch.ops.gradform.once({output}, _REFUSAL)",
        ]
        whole = printer.restored(output, layout)
        lines += [f"{output} = {whole}"] * (whole != output)
        rounded = f"{output} if {output}.dtype == {self.dtype} else {output}.to({self.dtype})"
        returned = f"return {rounded}"
        return Core(
            wrapped(f"def {program.name}", self.public_arguments(), " -> Tensor:"),
            tuple(used(lines, returned)),
            returned,
        )

    def forward(self) -> PrintedFunction:
        function = self.program.forward
        return self.function(
            function,
            [self.prepared, self.explained(f"{self.result} = _forward({self.inputs})")],
            self.restored(function, f"{self.result}.", rounded=1),
            self.core(function, "_forward"),
        )

    def backward(self) -> PrintedFunction:
        function = self.program.backward
        needs = [f"(True,) * {len(self.program.forward.parameters)}"] * self.guards
        arguments = [*(p.name for p in function.parameters), *needs]
        return self.function(
            function,
            [*self.asked(function), wrapped(f"{self.result} = _backward", arguments, indent=4)],
            self.restored(function, f"{self.result}.", rounded=len(function.results)),
            self.core(function, "_backward", [self.needs] * self.guards),
        )

    def atoms(self) -> PrintedFunction:
        function = self.program.atoms
        lines = [self.prepared, *self.in_range(), *self.lines(function)]
        return self.function(function, lines, self.restored(function))

    def chain(self) -> PrintedFunction:
        function = self.program.chain
        lines = [self.prepared, *self.in_range(), *self.asked(function), *self.lines(function)]
        return self.function(function, lines, self.restored(function))

    def second(self) -> tuple[PrintedFunction, ...]:
        """What comes behind the backward, for whoever calls it."""
        second = self.program.second
        if second is None:
            return ()
        double, cotangents = second.double, dict(second.cotangents)
        names = [p.name for p in double.parameters]
        saved = names[len(second.behind.parameters) - len(self.program.backward.parameters[1:]) :]
        tensors = [p for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        found = [second.behind.results[0], *(cotangents.get(p.name, "_") for p in tensors)]
        lines = [
            *self.asked(double),
            wrapped(f"{_unpacked(found)} = _behind", names, indent=4),
        ]
        values: dict[str, list[str]] = {name: [] for name in double.results[1:]}
        pulled = _unpacked(double.results[1:])
        if second.pullback is not None:
            of = [p.name for p in second.pullback.parameters if p.role == "adjoint"]
            passed = [name if name in cotangents.values() else "None" for name in of]
            lines.append(wrapped(f"{pulled} = _pullback", [*passed, *saved], indent=4))
            values = {name: [name] for name in values}
        elif self.program.forward.results[0] in cotangents:
            passed = [cotangents[self.program.forward.results[0]], *saved]
            passed += [f"(True,) * {len(self.program.forward.parameters)}"] * self.guards
            lines.append(wrapped(f"{pulled} = _backward", passed, indent=4))
            values = {name: [name] for name in values}
        for p in tensors:
            if f"d{p.name}" in values and p.name in cotangents:
                values[f"d{p.name}"].append(cotangents[p.name])
        layouts = {f"d{p.name}": p.layout for p in self.program.forward.tensors}
        layouts[found[0]] = self.program.backward.parameters[0].layout
        printer = self.printer(double)
        returned = []
        for name, terms in ((found[0], [found[0]]), *values.items()):
            if len(terms) > 1:
                lines.append(f"{name} = {' + '.join(terms)}")
                terms = [name]
            text = printer.restored(terms[0], layouts[name]) if terms else "None"
            returned.append(f"{text}.to({self.dtype})" if terms else text)
        kinds = [
            (name, "Tensor" if terms else "None", f"  # {self.shape_of(layouts[name])}")
            for name, terms in ((found[0], [found[0]]), *values.items())
        ]
        tangent = second.jvp
        pushed = [*self.asked(tangent), *self.lines(tangent)]
        pushed_to = printer.restored(found[0], layouts[found[0]])
        return (
            PrintedFunction(
                tangent.summary,
                wrapped(f"def {tangent.name}", self.arguments(tangent), " -> Tensor:"),
                self.shapes(tangent),
                tuple(used(pushed, pushed_to)),
                "",
                (),
                f"return {pushed_to}.to({self.dtype})",
            ),
            PrintedFunction(
                double.summary,
                wrapped(
                    f"def {double.name}", self.arguments(double), f" -> {double.result_class}:"
                ),
                self.shapes(double),
                tuple(used(lines, ", ".join(returned))),
                double.result_class,
                tuple(kinds),
                wrapped(f"return {double.result_class}", returned, indent=4),
            ),
        )

    def function(
        self, function: Function, lines: Sequence[str], results: Sequence[str], *core: Core
    ) -> PrintedFunction:
        lines = used(lines, ", ".join(results))
        kinds = {p.name: KINDS.get(p.role, "Tensor") for p in function.parameters}
        kinds |= {name: self.kind_of_size(name) for name, _ in function.sizes}
        layouts = layouts_in(function)
        returned = f" -> {function.result_class}:"
        uncast = "@_uncast\n" * (not core and self.multiplies_matrices(function))
        return PrintedFunction(
            function.summary,
            uncast + wrapped(f"def {function.name}", self.arguments(function), returned),
            self.shapes(function),
            tuple(lines),
            function.result_class,
            tuple(
                (
                    name,
                    kinds.get(name, "Tensor"),
                    f"  # {self.shape_of(layouts[name])}" if name in layouts else "",
                )
                for name in function.results
            ),
            wrapped(f"return {function.result_class}", results, indent=4),
            core,
        )

    def core(
        self,
        function: Function,
        name: str,
        more: Sequence[str] = (),
        returned: Sequence[str] = (),
    ) -> Core:
        """The lines of a function, without any check of its arguments; ``returned`` as a plain
        tuple, if it is given.
        """
        arguments = [*(p.name for p in function.parameters), *more]
        uncast = "@_uncast\n" * self.multiplies_matrices(function)
        kind = "tuple" if returned else function.result_class
        last = wrapped(f"return {function.result_class}", function.results, indent=4)
        if returned:
            last = f"return {_tuple(returned)}"
        return Core(
            uncast + wrapped(f"def {name}", arguments, f" -> {kind}:"),
            tuple(self.lines(function)),
            last,
        )

    def lines(self, function: Function) -> list[str]:
        """The sizes and the steps; a step that not all results need stands under what asks for
        those that do.
        """
        printer = self.printer(function)
        named = {step.name for step in function.checks if isinstance(step, NameSize)}
        lines = [
            line
            for name, length in function.sizes
            if name not in named or function is not self.program.chain
            for line in printer.size_lines(name, length)
        ]
        if function is not self.program.backward or not self.guards:
            return [*lines, *map(printer.step, function.steps)]
        everything, before = frozenset(function.results), None
        wanted = wanted_by(function)
        pairs = zip(function.steps, wanted, strict=True)
        guarded = {step.name for step, by in pairs if by != everything}
        unset = [name for name in function.results if name in guarded]
        lines.append(f"{' = '.join(unset)} = None")
        for step, by in zip(function.steps, wanted, strict=True):
            text = printer.step(step)
            if by == everything:
                lines.append(text)
            else:
                if by != before:
                    lines.append(self.asks_for(by))
                lines.append("    " + text.replace("\n", "\n    "))
            before = by
        return lines

    def asks_for(self, results: frozenset[str]) -> str:
        """``if needs[1] or needs[2]:``, by the places of the inputs."""
        names = [f"d{p.name}" for p in self.asked_for]
        places = [i for i, name in enumerate(names) if name in results]
        return f"if {' or '.join(f'{self.needs}[{i}]' for i in places)}:"

    @property
    def guards(self) -> bool:
        """Whether the backward has lines that not all gradients need."""
        everything = frozenset(self.program.backward.results)
        return any(by != everything for by in wanted_by(self.program.backward))

    def restored(self, function: Function, of: str = "", rounded: int = 0) -> list[str]:
        """The results as they are returned: with all dimensions, the first ones ``rounded``."""
        printer, layouts = self.printer(function), layouts_in(function)
        found = []
        for i, name in enumerate(function.results):
            if name in self.dims:
                found.append(f"tuple({self.dims[name]})")
                continue
            text = printer.restored(of + name, layouts.get(name, ()))
            found.append(f"{text}.to({self.dtype})" if i < rounded else text)
        return found

    # -- what is asked of the arguments -----------------------------------------

    @property
    def inputs(self) -> str:
        return ", ".join(p.name for p in self.program.forward.parameters)

    @property
    def prepared_names(self) -> str:
        return ", ".join([self.dtype, *self.dims.values(), self.inputs])

    @property
    def prepared(self) -> str:
        names = (p.name for p in self.program.forward.parameters)
        return wrapped(f"{self.prepared_names} = _arguments", [*names], indent=4)

    def arguments_asked(self) -> list[str]:
        """The lines of the function that looks at the inputs."""
        return used(self.asked(self.program.forward), self.prepared_names)

    def asked(self, function: Function) -> list[str]:
        """The checks of a function. What torch itself refuses in time is not looked through
        before.
        """
        printer = self.printer(function)
        lines = [printer.step(step) for step in function.checks]
        if function is self.program.forward:
            ranges = (step for step in self.program.ranges if not self.guarded(function, step.name))
            lines += map(printer.step, ranges)
        return lines

    def in_range(self) -> list[str]:
        """The labels that ``_arguments`` does not look through."""
        printer = self.printer(self.program.forward)
        return [printer.step(step) for step in self.left_to_torch()]

    def left_to_torch(self) -> list[Step]:
        forward = self.program.forward
        return [step for step in self.program.ranges if self.guarded(forward, step.name)]

    def explained(self, line: str) -> str:
        """``line``, in which torch refuses a wrong label; what it says does not name the label."""
        if not self.left_to_torch():
            return line
        lines = ["try:", f"    {line}", "except (IndexError, RuntimeError):"]
        lines += [f"    {explanation}" for explanation in self.in_range()]
        return "\n    ".join([*lines, "    raise"])

    def guarded(self, function: Function, label: str) -> bool:
        """Whether torch itself refuses a wrong index where the function picks with it: gather and
        embedding do, plain indexing counts negative ones from the end.
        """
        axes = [axis for other, axis in self.program.labels if other == label]
        return len(axes) == 1 and any(
            isinstance(value, Pick)
            and (value.rowwise or len(value.operand.dims) == 2)
            and isinstance(index := value.index, Load)
            and index.name == label
            for step in function.steps
            for value in values_in(step)
        )

    def of_role(self, role: str) -> tuple[str, ...]:
        """The arguments of a role."""
        return tuple(p.name for p in self.program.forward.parameters if p.role == role)

    def multiplies_matrices(self, function: Function) -> bool:
        """Whether torch's autocast would change the format of what is computed."""
        return any(isinstance(v, Contract) for step in function.steps for v in values_in(step))

    def shapes(self, function: Function) -> str:
        """The shapes of the arguments, in lines."""
        printer = self.printer(function)
        texts = [
            f"{p.name} {printer.written(p.layout)}" for p in (*function.tensors, *function.shapes)
        ]
        return "\n    ".join(wrap(f"Shapes: {', '.join(texts)}.", LONGEST - 4))

    def shape_of(self, layout: Layout) -> str:
        return self.printer(self.program.forward).written(layout)

    def kind_of_size(self, name: str) -> str:
        return KINDS["shape" if name in self.program.several else "size"]

    def arguments(self, function: Function) -> list[str]:
        """What stands in the brackets of its ``def``. Python wants that all may be left out after
        what may be; what is needed all the same is asked for in the lines.
        """
        found, optional = [], False
        for p in function.parameters:
            text = _typed(p)
            found.append(f"{text} | None = None" if optional and "=" not in text else text)
            optional |= "=" in text
        return found

    def public_arguments(self) -> list[str]:
        """Those of the differentiable function: there a number that has to be passed is passed by
        name, where a tensor before it may be left out.
        """
        parameters = self.program.forward.parameters
        arguments, needs = [_typed(p) for p in parameters], needed(parameters)
        if not needs:
            return arguments
        place = next(i for i, p in enumerate(parameters) if p.name == needs[0].name)
        return [*arguments[:place], "*", *arguments[place:]]


def _broken_at_its_place(line: str) -> str:
    """A line of a method, itself indented, in several where it is long."""
    own = line.lstrip()
    indent = line[: len(line) - len(own)]
    return indent + broken(own, indent + " " * 8)


def _unpacked(names: Sequence[str]) -> str:
    """What stands before ``=`` where a tuple is taken apart."""
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)


def _typed(p: Parameter) -> str:
    """An argument with its type, and its default if it has one."""
    if p.role == "scalar" and isinstance(p.default, Value):
        return f"{p.name}: float | None = None"
    if p.role == "index":
        return f"{p.name}: int = {p.default}"
    if p.role not in NUMBERS and p.default is not None:
        return f"{p.name}: Tensor | None = None"
    if p.role == "scalar":
        return f"{p.name}: float" + (f" = {p.default!r}" if p.default is not None else "")
    return f"{p.name}: {KINDS.get(p.role, 'Tensor')}"


def _free(name: str, taken: set[str]) -> str:
    """``name``, or a longer one where an argument or a statement has it."""
    while name in taken:
        name += "_"
    return name


UNPACKED = re.compile(r"(?P<names>[\w*, ]+) = (\w+\.shape|_arguments\()")


def used(lines: Sequence[str], returned: str) -> list[str]:
    """``lines`` in which what is unpacked and not used by the later ones is called ``_``."""
    found, later = [], returned
    for line in reversed(lines):
        unpacked = UNPACKED.match(line)
        if unpacked is not None:
            names = [
                name
                if re.search(rf"(?<![.\w]){name.strip('*')}\b", later)
                else "*_"
                if "*" in name
                else "_"
                for name in re.findall(r"[\w*]+", unpacked["names"])
            ]
            if {*names} <= {"_", "*_"}:
                continue
            if len(names) > 1:
                line = line.replace(unpacked["names"], ", ".join(names), 1)
        found.append(line)
        later = f"{line}\n{later}"
    return found[::-1]


def wrapped(head: str, items: Sequence[str], tail: str = "", indent: int = 0) -> str:
    """``head(items)tail`` on one line, or the items on lines of their own, as many on each as it
    holds.
    """
    line = f"{head}({', '.join(items)}){tail}"
    if indent + len(line) <= LONGEST:
        return line
    margin, lines = " " * (indent + 4), []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 3 <= LONGEST:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{margin}{item},")
    return "\n".join([f"{head}(", *lines, f"{' ' * indent}){tail}"])


def layouts_in(function: Function) -> dict[str, Layout]:
    """The layout of every tensor that a function is given or computes."""
    layouts = {p.name: p.layout for p in function.tensors}
    layouts |= {s.kept: s.dims for s in function.steps if isinstance(s, SplitLabel)}
    return layouts | {s.name: s.value.dims for s in function.steps if isinstance(s, Assign)}


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
