"""Indices along an axis, and where an index is one of them: `Position`, `ArgMax` and `OneHot`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sympy import Eq, Expr, Integer, Piecewise

from derive.language.array_node import ArrayNode, Reduction, nowhere
from derive.language.axes_meant import names_meant
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.symbols import Along, Axis, Tensor, is_number_or_size
from derive.language.words import word


@word("ArgMax(x, C)", is_public=False)
class ArgMax(Reduction):
    """``ArgMax(e, axis)``: the index of the first largest entry.

    Derivatives of `Max` contain it.
    """

    is_integer = True
    reason, adjoint = "an index has no gradient", nowhere
    is_equivariant = True

    def entry(self, by: EntryReader, at: Places) -> Any:
        (axis,) = self.axes
        return by.total(
            [axis], lambda k: by.times(by.position(axis, k), self.is_at(by, at, k[axis]))
        )

    def is_at(self, by: EntryReader, at: Places, place: Any) -> Any:
        """1 where the index is ``place``, else 0."""
        (axis,) = self.axes
        return by.is_largest(axis, self.row(by, at), at, place)


@word("OneHot(labels, C)", axes="brought")
class OneHot(ArrayNode):
    """``OneHot(labels, C)``: 1 where the index along ``C`` equals the label, else 0.

    The label may be a number if the axis has a fixed size, ``OneHot(2, Gate)``; ``OneHot(0, V)``
    and ``OneHot(V - 1, V)`` are the first and the last entry along any.
    """

    is_integer = True
    is_nonnegative = True
    image = (0, 1)
    reason, adjoint = "an index has no gradient", nowhere
    is_equivariant = True

    def __new__(cls, operand: Expr | float, *axes: Axis, **numbered: object) -> Expr:
        if len(axes) == 1 and not numbered and _is_place(operand, axes[0]):
            return Piecewise((1, Eq(Position(axes[0]), operand)), (0, True))
        return super().__new__(cls, operand, *axes, **numbered)

    def entry(self, by: EntryReader, at: Places) -> Any:
        if isinstance(self.operand, (ArgMax, Position)):
            return self.operand.is_at(by, at, at[self.axis])
        return by.is_label(self.operand, self.axis, at)

    @classmethod
    def _instead(cls, operand, axes):
        if names_meant(axes) or isinstance(operand, Axis):
            return super()._instead(operand, axes)
        return f"write OneHot({operand}, C), with the axis that {operand} is an index of"

    @classmethod
    def _check(cls, operand, axes):
        if len(axes) != 1:
            raise NotationError("OneHot takes one axis", cls._instead(operand, ()))
        if operand.is_Integer:
            return _check_entry(operand, axes[0])
        if is_number_or_size(operand):
            raise NotationError(
                f"OneHot({operand}, {axes[0]}): {axes[0]} need not have that entry",
                f"write Piecewise((1, Eq(Position({axes[0]}), {operand})), (0, True)), which is 0 "
                "where it has none",
            )
        if not (isinstance(operand, Tensor) and operand.role == "label"):
            own = ", ".join(map(str, getattr(operand, "axes", ()))) or "N"
            raise NotationError(
                f"OneHot({operand}, {axes[0]}): {operand} is not a label",
                f"declare it as integers: {operand} = Label({own})"
                if isinstance(operand, Tensor)
                else "write an index that is computed in a comparison: "
                f"Piecewise((1, Eq(Position({axes[0]}), {operand})), (0, True))",
            )

    @property
    def axis(self) -> Axis:
        return self.axes[0]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def towards(self, axes: Collection[Axis]) -> OneHot | None:
        """The one-hot along one of ``axes``; None where it is along another."""
        return self if self.axis in axes else None


@word("Position(N)", axes="index")
class Position(ArrayNode):
    """``Position(N)``: the index along ``N``, from 0 to N - 1, for use in comparisons."""

    is_integer = True
    is_nonnegative = True
    reason, adjoint = "an index has no gradient", nowhere

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.position(self.axis, at)

    def is_at(self, by: EntryReader, at: Places, place: Any) -> Any:
        """1 where the index is ``place``, else 0."""
        return by.is_same(at[self.axis], place)

    def __new__(cls, *axes: Axis) -> Expr:
        if len(axes) == 2 and isinstance(axes[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(axes[0], axes[1].axes)
        if len(axes) != 1 or not isinstance(axes[0], Axis):
            raise NotationError(
                f"Position({', '.join(map(str, axes))}): it takes one axis", "write Position(N)"
            )
        return cls.over(Integer(0), axes)

    @property
    def axis(self) -> Axis:
        return self.axes[0]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _sympystr(self, printer):
        return f"Position({self.axis.name})"


def _is_place(label: Expr | float, axis: object) -> bool:
    """Whether a number or a size is certainly a valid index along an axis of open size: the first
    or the last entry.
    """
    if isinstance(label, bool) or not isinstance(axis, Axis) or axis.length is not None:
        return False
    places = (label, axis - 1 - label) if isinstance(label, int | Expr) else ()
    return 0 in places


def _check_entry(number: Expr, axis: Axis) -> None:
    """Raise `NotationError` unless a number is a valid index along an axis at every size."""
    if axis.length is None:
        entry = f"{axis} - {-number}" if number < 0 else number
        raise NotationError(
            f"OneHot({number}, {axis}): {axis} need not have that entry, as its size is open",
            f'say how many it has, as in {axis} = Axis("{axis}", {abs(number) + 1}); or write '
            f"Piecewise((1, Eq(Position({axis}), {entry})), (0, True)), 0 where there is none",
        )
    if not 0 <= number < axis.length:
        raise NotationError(
            f"OneHot({number}, {axis}): {axis} has the entries 0 .. {axis.length - 1}",
            "pick one of them",
        )
