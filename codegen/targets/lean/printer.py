"""Prints values and steps for a lean module: as the torch target does, with no runtime."""

from __future__ import annotations

from dataclasses import replace

from codegen.program import arrays, parts, steps, values
from codegen.program.arrays import Expand
from codegen.targets.lean.held import Graded, RootOffZero
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.vocabulary import ATOM, SUM
from derive.notation.layout import Dim


class LeanPrinter(Printer):
    """Prints the lines of one function. ``in_place``: what is added to is batched wherever what is
    added is, so that vmap permits it; as in a backward, where both come from what arrives. There
    composite operations are called apart too: the vmap of is_grads_batched has no rule for them.
    """

    in_place = False

    def _AddAt(self, step: steps.AddAt) -> str:
        name, along, here = step.name, step.along, "_" * self.in_place
        if isinstance(step.index, values.Number):
            place, source = self.text(step.index), self.text(step.value)
            if self.in_place:
                return f"{name}.select({along}, {place}).add_({source})"
            index = f"torch.tensor([{place}], device={name}.device)"
            source = f"{self.tight(step.value)}.unsqueeze({along})"
            return f"{name} = {name}.index_add({along}, {index}, {source})"
        if parts.on_diagonal(step.index) is not None:
            return self.added_on_diagonal(step)
        index = f"{self.tight(step.index)}.unsqueeze({along})"
        dims = step.value.dims
        if dims and isinstance(step.value, Expand) and not step.value.operand.dims:
            dims = (*dims[:along], Dim(dims[0].axis, one=True), *dims[along:])
            value = self.text(Expand(step.value.operand, dims=dims))
        else:
            value = f"{self.tight(step.value)}.unsqueeze({along})"
        return f"{name} = {name}.scatter_add{here}({along}, {index}, {value})"

    def _NotZero(self, step: steps.NotZero) -> str:
        return super()._NotZero(replace(step, name=self.around.program))

    def _Fill(self, step: steps.Fill) -> str:
        before, filled = super()._Fill(step).split(" = ")
        line = f"{step.name} = {filled} if {step.name} is None else {step.name}"
        return line if len(STEP + line) <= LONGEST else f"{before} = {filled}"

    def _Scattered(self, value: arrays.Scattered):
        zeros = f"{self.like}.new_zeros({self.shape(value.dims)})"
        arguments = f"{value.along}, {self.text(value.index)}, {self.text(value.source)}"
        return f"{zeros}.scatter_add{'_' * self.in_place}({arguments})", ATOM

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
