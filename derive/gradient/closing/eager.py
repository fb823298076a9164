"""Traffic of an expression in eager torch, where each operation reads its operands and writes its
result: in entries, with every axis taken as `NOMINAL` long.

A quotient is one operation, and so is a product that is added (``torch.addcmul``); a product with a
one-hot lies at its index. Operations computed once wherever they stand are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

from sympy import Add, Basic, Expr, Function, Mul, Pow, S

from derive.gradient.closing.sweeps import Axes
from derive.gradient.range.exponential_quotients import is_share
from derive.language.choices import Compared
from derive.language.nodes import ArgMax, OneHot, Reduction, Reindexing, Sum, Whole
from derive.language.operations import is_contraction
from derive.language.symbols import Axis, axes_of, is_constant

# The size of every axis: so long that one axis more outweighs many small reads.
NOMINAL = 32
Parts = tuple[tuple[Axis, tuple[Axis, ...]], ...]  # axes with those that they were made from


@lru_cache(maxsize=65536)
def lines_of(e: Basic, flattened: Parts) -> tuple[int, Mapping[Basic, int]]:
    """The entries that the operations in ``e`` read and write one after the other; and those of
    what is computed once wherever it stands, with what it is taken of. A quotient is one operation,
    and so is a product that is added (``torch.addcmul``).
    """
    if isinstance(e, (OneHot, ArgMax)) or not e.args or (isinstance(e, Expr) and is_constant(e)):
        return 0, {}
    operands, once, total = _operands(e), {}, 0
    for operand in operands:
        plain, distinct = lines_of(operand, flattened)
        total += plain
        once |= distinct
    if isinstance(e, Reindexing):
        return total, once
    own = _moved_by(e, operands, flattened)
    if is_computed_once(e):
        return 0, {**once, e: total + own}
    return total + own, once


def _moved_by(e: Basic, operands: list[Basic], flattened: Parts) -> int:
    """Entries that the one operation ``e`` reads and writes."""
    axes = _axes(e, flattened)
    if isinstance(e, Sum) and is_picked(e):
        return 2 * entries(axes)
    operands = [operand for operand in operands if not isinstance(operand, OneHot)]
    if not isinstance(e, (Add, Mul)):
        return entries(axes) + sum(entries(_axes(operand, flattened)) for operand in operands)
    own = _combined(
        [_axes(operand, flattened) for operand in operands if operand is not S.NegativeOne]
    )
    if isinstance(e, Add):
        products = [t for t in e.args if isinstance(t, Mul)]
        fused = [t for t in products if sum(not is_constant(f) for f in t.args) > 1]
        own -= sum(2 * entries(_axes(t, flattened)) for t in fused[: len(e.args) - 1])
    return own


def is_computed_once(e: Basic) -> bool:
    """Whether ``e`` gets a name where it stands in several places (``sharing.py``): a reduction, a
    function, a choice, a root or a share.
    """
    if isinstance(e, (OneHot, Compared)) or not e.args or not isinstance(e, Expr):
        return False
    root = isinstance(e, Pow) and not e.exp.is_Integer
    costly = root or is_share(e) or isinstance(e, (Function, Reduction, Whole))
    return costly and not is_constant(e)


def _operands(e: Basic) -> list[Basic]:
    if isinstance(e, Sum) and is_contraction(e):
        return list(e.operand.args)
    if isinstance(e, Reduction | Reindexing | Whole):
        return list(e.operands)
    if isinstance(e, Mul):  # what is divided by is divided by, not inverted
        return [f.base if isinstance(f, Pow) and f.exp is S.NegativeOne else f for f in e.args]
    return list(e.args)


def _axes(e: Basic, flattened: Parts) -> Axes:
    """Axes along which the entries of ``e`` lie: a product with a one-hot lies at its index."""
    if not isinstance(e, Expr):
        return frozenset().union(*(_axes(arg, flattened) for arg in e.args))
    hot = {f.axis for f in Mul.make_args(e) if isinstance(f, OneHot)}
    if not hot or not isinstance(e, Mul):
        return split(axes_of(e), flattened)
    rest = Mul(*(f for f in e.args if not isinstance(f, OneHot)))
    return split(axes_of(rest), flattened) - hot


@lru_cache(maxsize=65536)
def _split_once(axes: Axes, flattened: Parts) -> Axes:
    parts = dict(flattened)
    return frozenset(a for axis in axes for a in parts.get(axis, (axis,)))


def split(axes: Iterable[Axis], flattened: Parts) -> Axes:
    axes = frozenset(axes)
    return _split_once(axes, flattened) if flattened else axes


def _combined(operands: list[Axes]) -> int:
    """Entries moved where operands are combined two by two, the smallest first."""
    first, *others = sorted(operands, key=len) or [frozenset()]
    total = 0
    for operand in others:
        both = first | operand
        total += entries(first) + entries(operand) + entries(both)
        first = both
    return total


def is_picked(e: Expr) -> bool:
    """Whether ``e`` is the entries at an index, which are read without the others."""
    factors = Mul.make_args(e.operand) if isinstance(e, Sum) else ()
    return any(isinstance(f, OneHot) and f.towards(e.axes) for f in factors)


def entries(axes) -> int:
    lengths = [axis.length or NOMINAL for axis in axes]
    return prod(lengths) if lengths else 0
