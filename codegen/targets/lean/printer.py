"""Prints values and steps for a lean module: as the torch target, with no runtime."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from codegen.program import arrays, parts, steps, values
from codegen.targets.lean.held import Graded, RootOffZero
from codegen.targets.lean.kinks import Beyond
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.vocabulary import ATOM, SUM


class LeanPrinter(Printer):
    """Prints the lines of one function. ``in_place``: the target of an addition is batched wherever
    its source is, so vmap permits it, as in a backward, where both come from the upstream gradient.
    There composite operations are split too: is_grads_batched has no vmap rule for them.
    """

    in_place = False

    def _NotZero(self, step: steps.NotZero) -> str:
        return super()._NotZero(replace(step, name=self.around.program))

    def _Fill(self, step: steps.Fill) -> str:
        before, filled = super()._Fill(step).split(" = ")
        line = f"{step.name} = {filled} if {step.name} is None else {step.name}"
        return line if len(STEP + line) <= LONGEST else f"{before} = {filled}"

    def _OneHotOf(self, value: arrays.OneHotOf):
        """torch raises for an invalid label; its one_hot has no vmap rule in a backward."""
        index = value.index
        asked = isinstance(index, values.Load) and not self.in_place
        if asked or isinstance(index, values.Number) or parts.on_diagonal(index) is not None:
            return super()._OneHotOf(value)
        arguments = f"{self.text(index)}, {self.sizes[value.size]}, {self.like}.dtype"
        return f"_runtime.one_hot({arguments})", ATOM

    def _Graded(self, value: Graded):
        differentiated, plain = self.text(value.differentiated), self.text(value.plain)
        return (
            f"{differentiated} if torch.is_grad_enabled() else {plain}",
            SUM,
        )  # on a line of its own

    def _Beyond(self, value: Beyond):
        """torch's relu passes no gradient at 0; NaN stays NaN."""
        if value.low == values.Number(Fraction(0)):
            return f"torch.relu({self.text(value.operand)})", ATOM
        bound, relation = (value.high, ">=") if value.low is None else (value.low, "<=")
        test = values.Compare(value.operand, relation, bound, dims=value.operand.dims)
        return self._Choose(values.Choose(test, bound, value.operand, dims=value.dims))

    def _RootOffZero(self, value: RootOffZero):
        return f"_runtime.sqrt({self.text(value.square)})", ATOM

    def _einsum(self, value: arrays.Contract):
        text, binding = super()._einsum(value)
        return text.replace("torch.", "_runtime.", 1) if self.in_place else text, binding

    def _Split(self, value: arrays.Split):
        if not self.in_place:
            return super()._Split(value)
        sizes = ", ".join(self.sizes[axis] for axis in value.into)
        return f"_runtime.unflatten({self.text(value.operand)}, {value.along}, ({sizes}))", ATOM

    def flattened(self, text: str, first: int, last: int) -> str:
        if not self.in_place:
            return super().flattened(text, first, last)
        return f"_runtime.flatten({text}, {first}, {last})"
