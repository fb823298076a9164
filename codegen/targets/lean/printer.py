"""Prints values and steps for a lean module: as the torch target does, with no runtime."""

from __future__ import annotations

from codegen.program import arrays, parts, steps, values
from codegen.program.arrays import Expand
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.vocabulary import ATOM
from derive.notation.layout import Dim


class LeanPrinter(Printer):
    """Prints the lines of one function. ``in_place``: what is added to is batched wherever what is
    added is, so that vmap permits it; as in a backward, where both come from what arrives.
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

    def _Fill(self, step: steps.Fill) -> str:
        before, filled = super()._Fill(step).split(" = ")
        line = f"{step.name} = {filled} if {step.name} is None else {step.name}"
        return line if len(STEP + line) <= LONGEST else f"{before} = {filled}"

    def _Scattered(self, value: arrays.Scattered):
        zeros = f"{self.like}.new_zeros({self.shape(value.dims)})"
        arguments = f"{value.along}, {self.text(value.index)}, {self.text(value.source)}"
        return f"{zeros}.scatter_add{'_' * self.in_place}({arguments})", ATOM
