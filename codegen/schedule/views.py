"""Views of an array: the same entries at other indices."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.program import Function
from codegen.program.values import Value
from codegen.schedule.elements import Axes, Element
from derive.language.errors import QuestionError


class Views:
    """One method for each class of views; ``parts`` are those of flattened axes."""

    function: Function
    parts: dict[str, Axes]

    def entry(self, value: Value, at: Mapping[str, tuple[Element, ...]]) -> Element:
        """The entry of ``value`` at the indices ``at`` of its dimensions, by their axes."""
        raise NotImplementedError

    def _unknown(self, node, *_):
        raise QuestionError(
            f"{self.function.name}: kernels do not support {type(node).__name__}",
            "to add it, extend codegen/schedule/entries.py",
        )

    def unflattened(self, axis: str) -> Axes:
        if axis not in self.parts:
            return (axis,)
        return tuple(a for part in self.parts[axis] for a in self.unflattened(part))

    def _at_Arrange(self, value, at):
        inside = {}
        for dim, source in zip(value.dims, value.order, strict=True):
            if source is not None and not value.operand.dims[source].one:
                inside[value.operand.dims[source].axis.name] = at[dim.axis.name]
        return self.entry(value.operand, inside)

    def _at_Expand(self, value, at):
        dims, inner = value.dims, value.operand.dims
        pairs = zip(dims[len(dims) - len(inner) :], inner, strict=True)
        return self.entry(
            value.operand, {i.axis.name: at[o.axis.name] for o, i in pairs if not i.one}
        )

    def _at_Own(self, value, at):
        return self.entry(value.operand, at)

    def _at_Merge(self, value, at):
        merged = value.dims[value.first].axis.name
        inner = value.operand.dims[value.first : value.first + value.count]
        inside, indices = dict(at), list(at[merged])
        for dim in inner:
            if not dim.one:
                taken = len(self.unflattened(dim.axis.name))
                inside[dim.axis.name], indices = tuple(indices[:taken]), indices[taken:]
        if indices:
            self._unknown(value)
        return self.entry(value.operand, inside)

    def _at_Split(self, value, at):
        flat_axis = value.operand.dims[value.along].axis.name
        together = tuple(i for axis in value.into for i in at[axis])
        if len(together) != len(self.unflattened(flat_axis)):
            self._unknown(value)
        return self.entry(value.operand, {**at, flat_axis: together})
