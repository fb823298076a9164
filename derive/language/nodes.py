"""The array nodes: what SymPy lacks for writing a network down, and no more.

`Sum`, `OneHot`, `Position` and `Broadcast` are written by users, as are `Max` and `Min`
(``extremes.py``), `Flatten` and `Unflatten` (``reshaping.py``); `ArgMax` occurs in derivatives. The
rules for their adjoints are in ``rules.py``. A node says which of its axes it *binds* (they end
inside it) and which it *brings*, and everything else follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from sympy import Basic, Eq, Expr, Integer, Piecewise

from derive.language.array_node import ArrayNode as ArrayNode
from derive.language.array_node import Reduction as Reduction
from derive.language.array_node import Whole as Whole
from derive.language.array_node import check_single, expression_of, named
from derive.language.axes_meant import declared, names_meant
from derive.language.errors import NotationError
from derive.language.extremes import Max as Max
from derive.language.extremes import Min as Min
from derive.language.extremes import Peak as Peak
from derive.language.extremes import SubtractedPeak as SubtractedPeak
from derive.language.log_scans import LogCumSumExp as LogCumSumExp
from derive.language.log_scans import LogCumSumExpBack as LogCumSumExpBack
from derive.language.matrices import Cholesky as Cholesky
from derive.language.matrices import Inverse as Inverse
from derive.language.matrices import LogDet as LogDet
from derive.language.matrices import MatrixNode as MatrixNode
from derive.language.matrices import Solve as Solve
from derive.language.maxima_so_far import LargestSoFar as LargestSoFar
from derive.language.maxima_so_far import NewMax as NewMax
from derive.language.reshaping import Flatten as Flatten
from derive.language.reshaping import Reindexing as Reindexing
from derive.language.reshaping import Reshaping as Reshaping
from derive.language.reshaping import Unflatten as Unflatten
from derive.language.scans import GoneAlong as GoneAlong
from derive.language.scans import Recurrence as Recurrence
from derive.language.scans import RecurrenceBefore as RecurrenceBefore
from derive.language.scans import Transposed as Transposed
from derive.language.scans import TransposedBefore as TransposedBefore
from derive.language.symbols import (
    Along,
    Axis,
    Tensor,
    axes_of,
    is_number_or_size,
    ordered,
    same_name,
)


class Sum(Reduction):
    """``Sum(e, *axes)``: the sum of ``e`` along the axes. Source: the sigma sign."""

    def _eval_is_positive(self):
        return self.operand.is_positive

    def _eval_is_nonnegative(self):
        return self.operand.is_nonnegative


class ArgMax(Reduction):
    """``ArgMax(e, axis)``: the index of the first largest entry.

    Derivatives of `Max` contain it.
    """

    is_integer = True


class OneHot(ArrayNode):
    """``OneHot(labels, C)``: 1 where the index along ``C`` equals the label, else 0.

    The label may be a number if the axis has a fixed size, ``OneHot(2, Gate)``; ``OneHot(0, V)``
    and ``OneHot(V - 1, V)`` are the first and the last entry along any.
    """

    is_integer = True
    is_nonnegative = True

    def __new__(cls, operand: Expr | float, *axes: Axis, **numbered: object) -> Expr:
        if len(axes) == 1 and not numbered and _is_place(operand, axes[0]):
            return Piecewise((1, Eq(Position(axes[0]), operand)), (0, True))
        return super().__new__(cls, operand, *axes, **numbered)

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
            raise NotationError(
                f"OneHot({operand}, {axes[0]}): {operand} is not a label",
                f"declare it as integers: {operand} = "
                f"Label({', '.join(map(str, getattr(operand, 'axes', ()))) or 'N'})",
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


class Position(ArrayNode):
    """``Position(N)``: the index along ``N``, from 0 to N - 1, for use in comparisons."""

    is_integer = True
    is_nonnegative = True

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


class Broadcast(ArrayNode):
    """``Broadcast(e, K)``: ``e`` repeated along ``K``, where two sides intentionally have
    different axes.

    It only documents that, and satisfies the check of sums: everything broadcasts by axis name.
    """

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _eval_is_positive(self):
        return self.operand.is_positive


def _is_place(label: Expr | float, axis: object) -> bool:
    """Whether a number or a size is certainly a valid index along an axis of open size: the first
    or the last entry.
    """
    if isinstance(label, bool) or not isinstance(axis, Axis) or axis.length is not None:
        return False
    places = (label, axis - 1 - label) if isinstance(label, int | Expr) else ()
    return 0 in places


def Rename(e: Expr, old: Axis, new: Axis | None = None) -> Expr:
    """``Rename(x, N, M)``: the same tensor along ``M`` instead of ``N``: pairs, or the keys of an
    attention.

    ``N`` and ``M`` have the same size from then on.
    """
    e = expression_of(e, "Rename")
    for axis in (old, new):
        if not isinstance(axis, Axis):
            new_name, *_ = [*(names_meant([new]) or ()), "M"]
            raise NotationError(
                f"Rename({e}, {old}, {new}): {axis!r} is not an axis",
                f"write {named('Rename', e, [old, new_name])}, with {declared([new_name])}",
            )
    axes = axes_of(e)
    same_name(axes | {old})
    check_single("Rename", new)
    if old not in axes:
        has = ", ".join(axis.name for axis in ordered(axes)) or "none"
        raise NotationError(
            f"Rename({e}, {old}, {new}): there is no axis {old} to rename",
            f"the axes of {e} are: {has}",
        )
    if new in axes:
        raise NotationError(
            f"Rename({e}, {old}, {new}): {new} is an axis of it already",
            f"choose an axis that it lacks: Rename({e}, {old}, {new}2), with "
            f"{declared([f'{new}2'])}",
        )
    return renamed(e, {old: new}, throughout=True)


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


@lru_cache(maxsize=8192)
def sums_in(e: Expr) -> tuple[Sum, ...]:
    """The sums in ``e``, in canonical order."""
    return tuple(sorted(e.atoms(Sum), key=lambda node: node.sort_key()))


def summed(e: Expr, axes: Iterable[Axis], size=lambda axis: axis) -> Expr:
    """``e`` summed along ``axes``; along an axis that ``e`` lacks, its multiple by the size."""
    axes = tuple(axes)
    carried = [axis for axis in axes if axis in axes_of(e)]
    for axis in axes:
        if axis not in carried:
            e = e * size(axis)
    coefficient, rest = e.as_coeff_Mul()
    return coefficient * Sum.over(rest, carried) if carried and e != 0 else e


def renamed(e: Basic, mapping: Mapping[Axis, Axis], throughout: bool = False) -> Basic:
    """``e`` with its free axes renamed simultaneously; bound axes that would capture a new name are
    renamed. ``throughout`` also renames inside nodes that read along such an axis and have it:
    the tensor there determines the size of the new one.

    Sizes are numbers and keep their names.
    """
    free = axes_of(e)  # of a condition too, which is no Expr
    mapping = {old: new for old, new in mapping.items() if old != new and old in free}
    if not mapping:
        return e
    if isinstance(e, Tensor):
        axes = tuple(mapping.get(axis, axis) for axis in e.axes)
        if len(set(axes)) != len(axes):
            raise NotationError(
                f"renaming an axis of {e} makes the same axis appear twice", "choose another name"
            )
        return e.along(axes)
    if isinstance(e, ArrayNode):
        aside = {bound: _left_free(bound, mapping) for bound in e.binds}
        if throughout:
            aside |= {
                axis: mapping[axis] for axis in e.binds if axis in e.brings and axis in mapping
            }
        names = {**mapping, **aside}
        return e.through(lambda operand: renamed(operand, names, throughout), names, mapping)
    return e.func(*(renamed(arg, mapping, throughout) for arg in e.args))


def along(e: Expr, tensor: Tensor) -> Expr:
    """``e``, written for ``tensor`` along its own axes, renamed to the axes of this occurrence."""
    return renamed(e, dict(zip(tensor.home, tensor.axes, strict=True)))


def _left_free(bound: Axis, mapping: Mapping[Axis, Axis]) -> Axis:
    """The name that a bound axis takes where free axes are renamed: its own, or if that is taken
    the one freed in exchange: where K becomes N and N becomes ``bound``, K.

    A renaming preserves sizes, and so does this one.
    """
    before = {new: old for old, new in mapping.items()}
    while bound in before:
        bound = before[bound]
    return bound
