"""What a closed form costs, counted and not measured: the measure by which one is chosen.

A full-size tensor is read or written once in every pass over the data. A pass is a reduction, a
matrix product, or the evaluation of a statement that is no reduction. What is computed entry by
entry on the way to such statements, and is neither asked for nor reduced, is at hand in the pass:
its name costs nothing. The order of importance:

1. *traffic*: tensor entries read and written, with every axis taken as `NOMINAL` long. The inputs
   and the output are there anyway; any other value of the forward was first written for the
   backward to read. A function that is evaluated again costs as much as reading what it gives. A
   number of no axes costs nothing;
2. *reductions*;
3. *saved*: entries that the forward has to keep;
4. *arithmetic*: entries that are multiplied and added, what is small first;
5. *operations* in the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

from sympy import Add, Expr, Mul, exp, preorder_traversal

from derive.language.nodes import ArgMax, Max, OneHot, Reduction, Sum
from derive.language.operations import is_contraction, is_evaluated, operations_in
from derive.language.symbols import Tensor, axes_of, tensors_in

# The size of every axis: so long that one axis more outweighs many small reads.
NOMINAL = 32
SAVED = ("input", "given", "statement")  # the roles of what a backward reads of the forward


@dataclass(frozen=True, order=True)
class Cost:
    """Compared in the order of its fields.

    Traffic, saved and arithmetic are numbers of entries, at nominal sizes.
    """

    traffic: int
    reductions: int
    saved: int
    arithmetic: int
    operations: int


def cost_of(
    statements: Iterable[tuple[Tensor, Expr]],
    at_hand: frozenset[str] = frozenset(),
    results: frozenset[str] = frozenset(),
) -> Cost:
    """The cost of computing all ``statements`` (tensor, expression), of which those called
    ``results`` are asked for, where the values called ``at_hand`` need not be saved.
    """
    measured = [(tensor, _measured(e)) for tensor, e in statements]
    stored = results.union(*(m.summed for _, m in measured))
    on_the_way = {t.name for t, m in measured if not m.is_stored and t.name not in stored}
    traffic = 0
    saved: dict[str, int] = {}
    for tensor, m in measured:
        traffic += m.evaluated + sum(size for name, size in m.read if name not in on_the_way)
        traffic += 0 if tensor.name in on_the_way else entries(tensor.axes)
        saved.update((name, size) for name, size in m.values if name not in at_hand)
    kept = sum(saved.values())
    return Cost(
        traffic + kept,
        sum(m.passes for _, m in measured),
        kept,
        sum(m.arithmetic for _, m in measured),
        sum(m.operations for _, m in measured),
    )


class _Measured(NamedTuple):
    """Of one expression: its passes; what they read, by name, with its entries; the entries of its
    functions; its arithmetic and operations; the values of the forward in it, each with its
    entries; the names that are read inside of its reductions; and whether what it gives is written
    to memory, because it is reduced, or put together entry by entry.
    """

    passes: int
    read: tuple[tuple[str, int], ...]
    evaluated: int
    arithmetic: int
    operations: int
    values: tuple[tuple[str, int], ...]
    summed: frozenset[str]
    is_stored: bool


@lru_cache(maxsize=8192)
def _measured(e: Expr) -> _Measured:
    passes, read = _passes(e)
    return _Measured(
        passes,
        tuple(read),
        sum(_evaluated(node) for node in preorder_traversal(e) if is_evaluated(node)),
        arithmetic(e),
        operations_in(e),
        tuple((t.name, entries(t.home)) for t in tensors_in(e) if t.role in SAVED),
        frozenset(t.name for node in outermost_reductions(e) for t in tensors_in(node)),
        passes > 0 or e.has(OneHot),
    )


@lru_cache(maxsize=8192)
def arithmetic(e: Expr) -> int:
    """The entries of all sums and products in ``e``, where the smallest operands are combined
    first.
    """
    inside = sum(arithmetic(arg) for arg in e.args if isinstance(arg, Expr))
    if not isinstance(e, (Add, Mul)):
        return inside
    axes, *others = sorted(map(axes_of, e.args), key=len)
    for operand in others:
        inside += entries(axes := axes | operand)
    return inside


def _evaluated(function: Expr) -> int:
    """What a function costs: its entries, and a little more where it is the exponential of a sum,
    which is rounded as the terms of that are, however much of them cancels.
    """
    own = entries(axes_of(function))
    return own + own // NOMINAL if isinstance(function, exp) and function.exp.is_Add else own


def additions(e: Expr) -> int:
    """How many terms are added or subtracted: of equal forms, that with the fewest is rounded
    least.
    """
    return sum(len(node.args) - 1 for node in e.atoms(Add))


def entries(axes) -> int:
    lengths = [axis.length or NOMINAL for axis in axes]
    return prod(lengths) if lengths else 0


def _passes(e: Expr) -> tuple[int, list[tuple[str, int]]]:
    """The number of reductions in ``e``, and what is read by them and by what is around them, by
    name, with its entries.
    """
    reductions = sorted(outermost_reductions(e), key=lambda node: node.sort_key())
    count, read = 0, [(t.name, entries(t.home)) for t in tensors_around(e)]
    for node in reductions:
        inner, inner_read = _passes(node.operand)
        count, read = count + 1 + inner, [*read, *inner_read, ("", entries(axes_of(node)))]
        if _spreads(node):  # written, and read before it is summed
            read.append(("", 2 * entries(axes_of(node.operand))))
    return count, read


def outermost_reductions(e: Expr) -> set[Expr]:
    if isinstance(e, (Sum, Max)):
        return {e}
    if isinstance(e, (OneHot, ArgMax)):
        return set()
    return set().union(*map(outermost_reductions, e.args)) if e.args else set()


def tensors_around(e: Expr) -> set[Tensor]:
    """The tensors read by ``e`` outside of its reductions; an index is not of full size and
    costs nothing.
    """
    if isinstance(e, Tensor):
        return {e} if e.role != "label" else set()
    if isinstance(e, (Reduction, OneHot)):
        return set()
    return set().union(*map(tensors_around, e.args)) if e.args else set()


def _spreads(e: Expr) -> bool:
    """Whether what is summed is larger than all that it is made of, and no matrix product."""
    whole = axes_of(e.operand)
    tensors = tensors_around(e.operand)
    return not is_contraction(e) and all(set(t.axes) < whole for t in tensors)
