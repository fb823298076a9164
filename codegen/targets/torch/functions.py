"""The functions of a Program as text: their signatures, checks and lines."""

from __future__ import annotations

from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import Contract, Pick
from codegen.program.parts import values_in
from codegen.program.reads import Convolve
from codegen.program.shards import Exchange
from codegen.program.steps import Assign, SplitLabel, Step
from codegen.program.values import Load
from codegen.program.wanted import wanted_by
from codegen.targets.torch.checks import condition, size_lines, written
from codegen.targets.torch.lines import STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.rows import Surroundings
from codegen.targets.torch.wrapping import free, not_asked
from derive.language.names import checked_name
from derive.language.notation.layout import Layout


class Functions:
    """The functions of a Program as text."""

    def __init__(self, program: Program):
        self.program, self.sizes = program, dict(program.sizes)
        self.functions = (program.forward, program.backward, program.atoms, program.chain)
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
        around = Surroundings(self.program.name, self.dims, fixed, self.dtype, hurried)
        numbers = [p.name for p in function.parameters if p.role in NUMBERS]
        return Printer(self.sizes, numbers, like, around)

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        """The sizes and the steps; a step that not all results need stands under an ``if`` on those
        that do.
        """
        printer = self.printer(function)
        sizes = [each for each in function.sizes if each[0] not in self.at_hand(function)]
        lines = [line for each in sizes for line in size_lines(printer, *each)]
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
        """True if a step is not printed, because something else does it."""
        return False

    def asks_for(self, results: frozenset[str], function: Function) -> str:
        """``if needs.x or needs.gain:``, by the names of the gradients that are asked for."""
        asked = [name for result, name in self.places(function).items() if result in results]
        return condition([f"{self.needs}.{name}" for name in asked])

    def places(self, function: Function) -> dict[str, str]:
        """The inputs by the names of their gradients, of which a backward may be asked for some."""
        if function is not self.program.backward:
            return {}
        return {f"d{p.name}": p.name for p in self.program.forward.parameters}

    def guards_in(self, function: Function) -> bool:
        """True if it has lines that not all of its results need."""
        everything = frozenset(function.results)
        return bool(self.places(function)) and any(by != everything for by in wanted_by(function))

    def guarded(self, function: Function, label: str) -> bool:
        """True if torch itself rejects a wrong index where the function picks with it: gather and
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

    def multiplies_matrices(self, function: Function) -> bool:
        """True if autocast would change the dtype of the computation."""
        products = (Contract, Convolve)
        return any(isinstance(v, products) for step in function.steps for v in values_in(step))

    def shape_of(self, layout: Layout) -> str:
        return written(self.printer(self.program.forward), layout)


def layouts_in(function: Function) -> dict[str, Layout]:
    """The layout of every argument and computed tensor of a function."""
    layouts = {p.name: p.layout for p in function.tensors}
    layouts |= {s.kept: s.dims for s in function.steps if isinstance(s, SplitLabel)}
    told = [sent for s in function.steps if isinstance(s, Exchange) for sent in s.sent]
    layouts |= {sent.name: sent.dims for sent in told}
    return layouts | {s.name: s.value.dims for s in function.steps if isinstance(s, Assign)}
