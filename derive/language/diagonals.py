"""The identity between two axes, and the diagonals of tensors along them.

One node is enough: `Identity`, a one-hot whose label is the index along another axis. So every rule
for one-hots applies to it: a diagonal is the entry that it picks, and a diagonal matrix is its
multiple.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sympy import Eq, Expr, Integer, Ne, Not, Piecewise, S
from sympy.core.relational import Relational

from derive.language.array_node import check_carried, check_single, checked_operand
from derive.language.errors import NotationError
from derive.language.nodes import OneHot, Position, Sum
from derive.language.symbols import Along, Axis, ordered
from derive.language.words import word


@word("Identity(N, M), for two axes of one size", axes="index")
class Identity(OneHot):
    """``Identity(N, M)``: 1 where the index along ``N`` is that along ``M``, else 0: an identity
    matrix. The two axes have the same size.
    """

    reason = "it is constant"

    def __new__(cls, *axes: Axis) -> Expr:
        if len(axes) == 2 and isinstance(axes[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(axes[0], axes[1].axes)
        _check_pair("Identity", axes)
        return cls.between(*axes)

    @classmethod
    def between(cls, one: Axis, other: Axis) -> Expr:
        return cls.over(Position.over(S.Zero, [one]), [other])

    @classmethod
    def over(cls, operand: Expr, axes: Iterable[Axis]) -> Expr:
        if not isinstance(operand, Position):  # where an explanation puts something else in it
            return OneHot.over(operand, axes)
        one, other = ordered((operand.axis, *axes))
        if one == other:
            return Integer(1)
        return Expr.__new__(cls, Position.over(S.Zero, [one]), Along((other,)))

    @property
    def pair(self) -> tuple[Axis, Axis]:
        return self.operand.axis, self.axis

    @property
    def condition(self) -> Eq:
        """The equation of the two indices."""
        return Eq(*(Position.over(S.Zero, [axis]) for axis in self.pair))

    def towards(self, axes: Collection[Axis]) -> OneHot | None:
        """The same as a one-hot along whichever axis of the pair is in ``axes``."""
        one, other = self.pair
        if self.axis in axes or one not in axes:
            return super().towards(axes)
        return Expr.__new__(type(self), Position.over(S.Zero, [other]), Along((one,)))

    def _sympystr(self, printer):
        return f"Identity({', '.join(axis.name for axis in self.pair)})"


@word("Diagonal(x, N, M), with two axes of x", axes="on_diagonal")
def Diagonal(e: Expr, one: Axis, other: Axis) -> Expr:
    """``Diagonal(x, N, M)``: the diagonal of a matrix along ``N``, the entries of ``x`` where the
    indices along ``M`` and ``N`` are equal.
    """
    e = checked_operand("Diagonal", e, (one, other))
    check_carried("Diagonal", e, (one, other), f"Diagonal({e}, {one}, {other})")
    return Sum.over(Identity(one, other) * e, [other])


def _check_pair(node: str, axes) -> None:
    if len(axes) != 2 or not all(isinstance(axis, Axis) for axis in axes) or axes[0] == axes[1]:
        raise NotationError(
            f"{node}({', '.join(map(str, axes))}) is not between two axes",
            f"write {node}(N, M)",
        )
    for axis in axes:
        check_single(node, axis)


def with_identities(e: Expr, twins: Mapping[Axis, Axis]) -> Expr:
    """``e`` with identities for choices on whether two indices are equal, if these are 0 elsewhere
    or choose between numbers; and with the indices compared in other conditions.
    """
    e = e.replace(lambda node: isinstance(node, Relational), _compared)
    return e.replace(lambda node: isinstance(node, Piecewise), lambda node: _identity(node, twins))


def _compared(test: Relational) -> Relational:
    """Identity(N, M) > 0 as Eq(Position(N), Position(M)), and its opposite."""
    hots = [side for side in test.args if isinstance(side, Identity)]
    bound = next((side for side in test.args if side.is_number), None)
    if len(hots) != 1 or bound is None:
        return test
    (hot,), at = hots, [test.xreplace({hots[0]: Integer(k)}) for k in (0, 1)]
    if at[0] == at[1]:
        return at[0]
    return hot.condition if at[1] == S.true else Not(hot.condition)


def _identity(choice: Piecewise, twins: Mapping[Axis, Axis]) -> Expr:
    (value, condition), (other, _) = choice.args[0], choice.args[-1]
    if len(choice.args) > 2 or not isinstance(condition, (Eq, Ne)):
        return choice
    if not all(isinstance(side, Position) for side in condition.args):
        return choice
    one, another = (side.axis for side in condition.args)
    if twins.get(one, one) != twins.get(another, another):
        return choice
    same, apart = (value, other) if isinstance(condition, Eq) else (other, value)
    if apart == 0:
        return Identity.between(one, another) * same
    if all(n.is_number and n.is_finite for n in (same, apart)):
        return apart + (same - apart) * Identity.between(one, another)
    return choice
