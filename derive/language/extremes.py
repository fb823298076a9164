"""The largest and the smallest, along an axis or of several values, entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from typing import Any

import sympy
from sympy import Expr, Ge, Le, Piecewise

from derive.language.array_node import Gradients, Reduction, expression_of, named, nowhere
from derive.language.axes_meant import names_meant
from derive.language.choices import Compared
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.one_hots import ArgMax, OneHot
from derive.language.symbols import Along, Axis, axes_of, is_constant
from derive.language.words import word


@word("Max(x, axis) along one axis", axes="reduced")
class Max(Reduction):
    """``Max(e, axis)``: the maximum along one axis; at a tie the first entry is chosen, as in
    ``torch.max(dim)``. ``Max(a, b)``, of anything but an axis: the largest of two or more.
    """

    LARGEST = True
    reason = "routed to the arg max along {axes}"
    is_equivariant = True

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.largest(self.axes[0], self.row(by, at), at)

    def adjoint(self, upstream: Expr) -> Gradients:
        # y = e_k with k the first arg max  =>  de_i = dy if i = k, else 0
        first = ArgMax.over(self.operand, self.axes)
        return [(self.operand, upstream * OneHot.over(first, self.axes))]

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        return self.operands

    def __new__(
        cls, operand: Expr | float, *others: Axis | Expr | float, **numbered: object
    ) -> Expr:
        along = any(isinstance(other, (Along, Axis)) for other in others)
        if along or numbered or not others or names_meant(others):
            return super().__new__(cls, operand, *others, **numbered)
        operands = [expression_of(e, cls.__name__) for e in (operand, *others)]
        return extreme_of(operands, cls.LARGEST)

    @classmethod
    def _instead(cls, operand, axes):
        sizes = [axis for axis in axes if isinstance(axis, Axis)]
        if not sizes or names_meant(axes):
            return super()._instead(operand, axes)
        others = ", ".join(map(str, (e for e in (operand, *axes) if e != sizes[0])))
        return f"an axis that stands last is gone along; {cls._with_size(sizes[0], others)}"

    @classmethod
    def _check(cls, operand, axes):
        kind = cls.__name__
        if len(axes) != 1:
            inside, last = named(kind, operand, axes[:1]), ", ".join(map(str, axes[1:]))
            raise NotationError(f"{kind} takes one axis", f"write {kind}({inside}, {last})")
        if isinstance(operand, Axis) or not axes_of(operand):
            raise NotationError(
                f"{kind}({operand}, {axes[0]}): {operand} has no axis to go along",
                cls._with_size(axes[0], operand),
            )
        super()._check(operand, axes)

    @classmethod
    def _with_size(cls, size: Axis, others) -> str:
        """A remedy for the larger or smaller of a size and other operands."""
        kind, sign = cls.__name__, ">" if cls.LARGEST else "<"
        if isinstance(others, Axis):
            return (
                f"of two sizes write Piecewise(({size}, {size} {sign} {others}), ({others}, True))"
            )
        return f"a size stands first: {kind}({size}, {others})"

    def _eval_is_real(self):
        return self.operand.is_real  # which may be -oo


@word("Min(a, b)", axes="reduced")
class Min(Max):
    """``Min(e, axis)``, which becomes ``-Max(-e, axis)``, so `Min` has no instances; ``Min(a, b)``:
    the smallest of two or more.
    """

    LARGEST = False

    @classmethod
    def over(cls, operand: Expr, axes: Iterable[Axis]) -> Expr:
        return -Max.over(-operand, axes)


class Peak(Max):
    """The largest entry along one axis, where any other number would do as well.

    It is subtracted for stability and cancels; code takes 0 where it is infinite.
    """

    reason, adjoint = "any value would do: it cancels", nowhere
    is_equivariant = True


class SubtractedPeak(Peak):
    """A peak that is never added: code takes 0 only where it is minus infinity.

    In a row that holds infinity the difference is then NaN everywhere, as in torch.
    """


SYMPYS = {sympy.Max: Max, sympy.Min: Min}


def of_notation(value: object) -> object:
    """The class for ``value`` in a class body: SymPy's `Max` and `Min` become the notation's."""
    return SYMPYS.get(value, value) if isinstance(value, type) else value


def extreme_of(operands: Sequence[Expr], largest: bool) -> Expr:
    """The largest, or the smallest, of ``operands``.

    Among equals a number or a scalar wins over a tensor, so that no gradient passes, as in
    ``torch.relu``; among tensors the first wins, as along an axis. NaN chooses the last branch,
    which has a tensor if there is one.
    """
    return reduce(partial(_of_two, Ge if largest else Le), operands)


def _of_two(compare: type, first: Expr, second: Expr) -> Expr:
    if is_constant(second) and not is_constant(first):
        first, second = second, first
    sides = (Compared(side) if side.has(Piecewise) else side for side in (first, second))
    return Piecewise((first, compare(*sides)), (second, True))
