"""The functions of a Program as text: their signatures, what they ask, their lines."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.arrays import Contract, Pick
from codegen.program.parts import values_in
from codegen.program.reads import Convolve
from codegen.program.shards import Exchange
from codegen.program.steps import Assign, SplitLabel, Step
from codegen.program.values import Load
from codegen.targets.torch.checks import Surroundings, condition
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import KINDS, free, not_asked, typed
from codegen.wanted import wanted_by
from derive.language.names import checked_name
from derive.notation.layout import Layout


class Functions:
    """The functions of a Program as text. ``asked_for`` are the arguments of which a gradient may
    be needed, by place: those of the program, if nothing else is said.
    """

    asks: str  # what knows the arguments in a module

    def __init__(self, program: Program, asked_for: Sequence[Parameter] = ()):
        self.program = program
        self.asked_for = asked_for or program.forward.parameters
        self.sizes = dict(program.sizes)
        second = program.second
        behind = () if second is None else (second.behind, second.jvp, second.double)
        behind += (second.pullback,) if second is not None and second.pullback else ()
        behind += tuple(again.function for again in second.third) if second is not None else ()
        four = (program.forward, program.backward, program.atoms, program.chain)
        self.functions = (*four, *behind, *program.alone)
        for function in self.functions:
            for parameter in function.parameters:
                checked_name(parameter.name, "an argument")
        taken = {*self.sizes.values()}
        for function in self.functions:
            taken |= {p.name for p in function.parameters} | {step.name for step in function.steps}
        self.dims = {size: free(f"{size}_dims", taken) for size in program.several}
        self.dtype, self.result, self.needs = (
            free(name, taken) for name in ("dtype", "result", "needs")
        )

    def printer(self, function: Function) -> Printer:
        roles = (("input", "adjoint", "statement"), ("kept", "given"))  # the latter if need be
        tensors = [p for role in roles for p in function.parameters if p.role in role]
        like = min(tensors, key=lambda p: p.default is not None).name
        hurried, fixed = function is self.program.forward, dict(self.program.fixed)
        around = Surroundings(self.program.name, self.dims, fixed, self.dtype, hurried, self.asks)
        numbers = [p.name for p in function.parameters if p.role in NUMBERS]
        return Printer(self.sizes, numbers, like, around)

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        """The sizes and the steps; a step that not all results need stands under what asks for
        those that do.
        """
        printer = self.printer(function)
        sizes = [each for each in function.sizes if each[0] not in self.at_hand(function)]
        lines = [line for each in sizes for line in printer.size_lines(*each)]
        wanted = wanted_by(function)
        pairs = zip(function.steps, wanted, strict=True)
        pairs = [(step, by) for step, by in pairs if not self.is_left_out(step, function)]
        if not self.guards_in(function):
            return [*lines, *(printer.step(step, margin) for step, _ in pairs)]
        everything, before = frozenset(function.results), None
        guarded = {step.name for step, by in pairs if by != everything}
        unset = [name for name in function.results if name in guarded]
        lines += [not_asked(unset)] * bool(unset)
        for step, by in pairs:
            if by == everything:
                lines.append(printer.step(step, margin))
            else:
                if by != before:
                    lines.append(self.asks_for(by, function))
                lines.append(STEP + printer.step(step, margin + STEP))
            before = by
        return lines

    def at_hand(self, function: Function) -> set[str]:
        """The sizes that are known before the lines."""
        return set()

    def is_left_out(self, step: Step, function: Function) -> bool:
        """Whether a step is not printed, since something else does it."""
        return False

    def asks_for(self, results: frozenset[str], function: Function) -> str:
        """``if needs.x or needs.gain:``, by the names of what is asked for."""
        asked = [name for result, name in self.places(function).items() if result in results]
        return condition([f"{self.needs}.{name}" for name in asked])

    def places(self, function: Function) -> dict[str, str]:
        """Of a function that may be asked for some of its results alone the name of each among
        what asks: the inputs, and behind the backward its own arguments.
        """
        second = self.program.second
        if second is not None and function is second.behind:
            needs, count = len(self.program.needs), len(self.program.upstreams)
            parameters = function.parameters[: len(function.parameters) - needs][-count:]
            upstreams = (p.name for p in parameters)
            tangents = dict(zip(function.results, upstreams, strict=False))
            return tangents | {c: name for name, c in second.cotangents}
        for again in second.third if second is not None else ():
            if function is again.function:
                return {name: of for of, name in again.gradients}
        back = [
            self.program.backward,
            *self.program.alone,
            *([second.pullback] if second is not None else []),
        ]
        if any(function is each for each in back):
            return {f"d{p.name}": p.name for p in self.program.forward.parameters}
        return {}

    def guards_in(self, function: Function) -> bool:
        """Whether it has lines that not all of its results need."""
        everything = frozenset(function.results)
        return bool(self.places(function)) and any(by != everything for by in wanted_by(function))

    @property
    def inputs(self) -> str:
        return ", ".join(p.name for p in self.program.forward.parameters)

    def left_to_torch(self) -> list[Step]:
        forward = self.program.forward
        return [step for step in self.program.ranges if self.guarded(forward, step.name)]

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
        products = (Contract, Convolve)
        return any(isinstance(v, products) for step in function.steps for v in values_in(step))

    def shapes(self, function: Function) -> str:
        """The shapes of the arguments, in lines."""
        texts = [
            f"{p.name} {self.dimensions(function, p.name, p.layout)}"
            for p in (*function.tensors, *function.shapes)
        ]
        return "\n    ".join(wrap(f"Shapes: {', '.join(texts)}.", LONGEST - 4))

    def dimensions(self, function: Function, name: str, layout: Layout) -> str:
        """The dimensions of a tensor in words."""
        return self.shape_of(layout)

    def shape_of(self, layout: Layout) -> str:
        return self.printer(self.program.forward).written(layout)

    def kind_of_size(self, name: str) -> str:
        return KINDS["shape" if name in self.program.several else "size"]

    def arguments(self, function: Function) -> list[str]:
        """What stands in the brackets of its ``def``. Python wants that all may be left out after
        what may be; what is needed all the same is asked for in the lines.
        """
        found, optional = [], False
        several = function is self.program.backward and len(self.program.upstreams) > 1
        for p in function.parameters:
            text = typed(p) + " | None" * (several and p.role == "adjoint")
            found.append(f"{text} | None = None" if optional and "=" not in text else text)
            optional |= "=" in text
        return found


def layouts_in(function: Function) -> dict[str, Layout]:
    """The layout of every tensor that a function is given or computes."""
    layouts = {p.name: p.layout for p in function.tensors}
    layouts |= {s.kept: s.dims for s in function.steps if isinstance(s, SplitLabel)}
    told = [sent for s in function.steps if isinstance(s, Exchange) for sent in s.sent]
    layouts |= {sent.name: sent.dims for sent in told}
    return layouts | {s.name: s.value.dims for s in function.steps if isinstance(s, Assign)}
