"""Prints additions at an index, reads from a diagonal, and writes to one."""

from __future__ import annotations

from codegen.program import arrays, steps, values
from codegen.program.parts import on_diagonal
from codegen.targets.torch.vocabulary import SUM
from derive.language.notation.layout import Dim, Layout


class Diagonals:
    """The printing methods of diagonals and of additions; `Printer` has the rest."""

    in_place: bool

    def text(self, value: values.Value, at_least: int = SUM) -> str:
        raise NotImplementedError

    def tight(self, value: values.Value) -> str:
        raise NotImplementedError

    def diagonal_of(self, value: arrays.Pick) -> str:
        here, first, second = _places(value.index, value.dims, value.along)
        dims = "" if len(value.operand.dims) == 2 else f"0, {first}, {second}"
        moved = "" if here == len(value.dims) - 1 else f".movedim(-1, {here})"
        return f"{self.tight(value.operand)}.diagonal({dims}){moved}"

    def _AddAt(self, step: steps.AddAt) -> str:
        name, along, here = step.name, step.along, "_" * self.in_place
        if isinstance(step.index, values.Number):
            place, source = self.text(step.index), self.text(step.value)
            if self.in_place:
                return f"{name}.select({along}, {place}).add_({source})"
            index = f"torch.tensor([{place}], device={name}.device)"
            source = f"{self.tight(step.value)}.unsqueeze({along})"
            return f"{name} = {name}.index_add({along}, {index}, {source})"
        if on_diagonal(step.index) is not None:
            return self.added_on_diagonal(step)
        index = f"{self.tight(step.index)}.unsqueeze({along})"
        dims = step.value.dims
        if dims and isinstance(step.value, arrays.Expand) and not step.value.operand.dims:
            dims = (*dims[:along], Dim(dims[0].axis, one=True), *dims[along:])
            value = self.text(arrays.Expand(step.value.operand, dims=dims))
        else:
            value = f"{self.tight(step.value)}.unsqueeze({along})"
        return f"{name} = {name}.scatter_add{here}({along}, {index}, {value})"

    def added_on_diagonal(self, step: steps.AddAt) -> str:
        dims, source = step.value.dims, step.value
        here, first, second = _places(step.index, dims, step.along)
        if isinstance(source, arrays.Expand) and not source.operand.dims:
            added = self.text(source.operand)
        elif here == len(dims) - 1:
            added = self.text(source)
        else:
            added = f"{self.tight(source)}.movedim({here}, -1)"
        place = f"{step.name}, {first}, {second}"
        return f"{step.name} = _runtime.added_on_diagonal({place}, {added})"

    def with_diagonal(self, value: values.Choose) -> str | None:
        """A constant where two indices are the same, as a diagonal; None for other choices."""
        test, chosen, rest = value.condition, value.yes, value.no
        if not isinstance(test, values.Compare) or test.relation not in ("==", "!="):
            return None
        if test.relation == "!=":
            chosen, rest = rest, chosen
        own = [on_diagonal(side) for side in (test.left, test.right)]
        axes = [dim.axis for dim in rest.dims if not dim.one]
        pair = [index.dims[0].axis for index in own if index is not None]
        number = isinstance(chosen, (values.Number, values.Constant))
        if not number or len(pair) < 2 or not {*pair} <= {*axes}:
            return None
        first, second = sorted([dim.axis for dim in rest.dims].index(axis) for axis in pair)
        text = f"{self.text(rest)}, {first}, {second}, {self.text(chosen)}"
        return f"_runtime.with_diagonal({text})"


def _places(index: values.Value, dims: Layout, along: int) -> tuple[int, int, int]:
    """The position of a diagonal's axis among ``dims``, and the two dimensions of which it is the
    diagonal, with ``along`` among them.
    """
    (own,) = on_diagonal(index).dims
    here = [dim.axis for dim in dims].index(own.axis)
    return here, *sorted((here + (here >= along), along))
