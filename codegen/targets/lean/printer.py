"""Prints values and steps for a lean module: as the torch target does, with no runtime."""

from __future__ import annotations

from dataclasses import replace

from codegen.program import arrays, parts, steps, values
from codegen.targets.lean.held import Graded, RootOffZero
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.vocabulary import ATOM, SUM


class LeanPrinter(Printer):
    """Prints the lines of one function. ``in_place``: what is added to is batched wherever what is
    added is, so that vmap permits it; as in a backward, where both come from what arrives. There
    composite operations are called apart too: the vmap of is_grads_batched has no rule for them.
    """

    in_place = False

    def _NotZero(self, step: steps.NotZero) -> str:
        return super()._NotZero(replace(step, name=self.around.program))

    def _Fill(self, step: steps.Fill) -> str:
        before, filled = super()._Fill(step).split(" = ")
        line = f"{step.name} = {filled} if {step.name} is None else {step.name}"
        return line if len(STEP + line) <= LONGEST else f"{before} = {filled}"

    def _Clamp(self, value: values.Clamp):
        """What is above 0 has the derivative 0 at 0, where what is below has 1, as for clamp: those
        of a smooth function that both are parts of add up to one.
        """
        if value.high is None and isinstance(value.low, values.Number) and value.low.value == 0:
            return f"torch.relu({self.text(value.operand)})", ATOM
        return super()._Clamp(value)

    def _OneHotOf(self, value: arrays.OneHotOf):
        """torch refuses a label that is none; its one_hot has no rule for vmap in a backward."""
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
