"""The cost of a closed form, counted and not measured: with its risks before it (``risks.py``), the
one measure by which a form is chosen.

All is counted on what is distinct: a reduction or a function that stands in two statements, or
inside of another one, is computed once. The order of importance:

1. *moved*: how often as much as the largest gradient is read or written by loops (``sweeps.py``).
   The inputs and the output are there anyway; any other value of the forward was first written for
   the backward to read. What is smaller counts for nothing here;
2. *saved*: entries that the forward has to keep, which stay in memory until the backward;
3. *exposed*: values that may be 0 and are divided by outside of a choice (``risks.py``);
4. *lines*: entries that eager torch reads and writes for the same, where each operation reads its
   operands and writes its result;
5. *reductions*;
6. *operations* in the formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sympy import Add, Basic, Expr, Mul

from derive.gradient.closing.eager import Parts, entries, is_picked, lines_of, split
from derive.gradient.closing.sweeps import Name, ReadTensor, SweptValue, moved
from derive.language.nodes import ArgMax, Max, OneHot, Reduction, Reindexing, Sum, Whole
from derive.language.operations import is_contraction, operations_in
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in

SAVED = ("input", "given", "statement")  # the roles of what a backward reads of the forward


Pairs = tuple[tuple[Tensor, Expr], ...]


@dataclass(frozen=True, order=True)
class Cost:
    """Compared in the order of its fields. Saved and lines are numbers of entries, at nominal
    sizes.
    """

    moved: int
    saved: int
    exposed: int
    lines: int
    reductions: int
    operations: int


def cost_of(
    statements: Iterable[tuple[Tensor, Expr]],
    at_hand: frozenset[str] = frozenset(),
    results: frozenset[str] = frozenset(),
    flattened: Parts = (),
) -> Cost:
    """The cost of computing all ``statements`` (tensor, expression), of which those called
    ``results`` are asked for, where the values called ``at_hand`` need not be saved; ``flattened``
    axes count as those that they were made from.
    """
    return _cost_of(tuple(statements), at_hand, results, flattened)


@lru_cache(maxsize=4096)  # the search meets the same ones again
def _cost_of(
    statements: Pairs,
    at_hand: frozenset[str],
    results: frozenset[str],
    flattened: Parts,
) -> Cost:
    loops: dict[Name, SweptValue] = {}
    known: dict[Name, Name] = {}  # statements that are a reduction which is there already
    lines, once, saved = 0, {}, {}
    for tensor, e in statements:
        measured = _measured(e, flattened)
        for loop in measured.loops:
            loops.setdefault(loop.name, loop)
        if e in outermost_reductions(e):
            known[tensor.name] = e
        else:
            axes = split(tensor.axes, flattened)
            space = axes | split(axes_of(e), flattened)
            loops[tensor.name] = SweptValue(tensor.name, axes, space, measured.read, entries(axes))
        lines += measured.lines[0]
        once |= measured.lines[1]
        saved.update((name, size) for name, size in measured.values if name not in at_hand)
    kept = sum(saved.values())
    own = [_under_one_name(loop, known) for loop in loops.values()]
    asked = frozenset(known.get(name, name) for name in results)
    return Cost(
        moved=(moved(own, asked) + kept) // _full_size(statements, results, flattened),
        saved=kept,
        exposed=0,
        lines=lines + sum(once.values()),
        reductions=sum(isinstance(name, (Reduction, Whole)) for name in loops),
        operations=sum(operations_in(e) + _reshapings(e) for _, e in statements),
    )


def _full_size(statements: Pairs, results: frozenset[str], flattened: Parts) -> int:
    """The entries of the largest result, or of the largest statement where none is asked for."""
    sizes = {t.name: entries(split(t.axes, flattened)) for t, _ in statements}
    asked = [size for name, size in sizes.items() if name in results]
    return max(asked or sizes.values(), default=0) or 1


def _reshapings(e: Basic) -> int:
    """Number of reshapings: views, which are counted as written out all the same."""
    return isinstance(e, Reindexing) + sum(map(_reshapings, e.args))


def _under_one_name(loop: SweptValue, known: dict[Name, Name]) -> SweptValue:
    if not any(read.name in known for read in loop.reads):
        return loop
    reads = tuple(read._replace(name=known.get(read.name, read.name)) for read in loop.reads)
    return SweptValue(loop.name, loop.axes, loop.space, reads, loop.entries, loop.whole)


class _Measured(NamedTuple):
    """Counts of one expression: the loops of its reductions, inner ones first; the reads around
    them; its operations with the entries that each moves in eager torch; and the values of the
    forward in it, with their entries.
    """

    loops: tuple[SweptValue, ...]
    read: tuple[ReadTensor, ...]
    lines: tuple[int, Mapping[Basic, int]]
    values: tuple[tuple[str, int], ...]


@lru_cache(maxsize=65536)
def _measured(e: Expr, flattened: Parts) -> _Measured:
    loops = {loop.name: loop for node in _reductions(e) for loop in _loops_of(node, flattened)}
    values = ((t.name, entries(split(t.home, flattened))) for t in tensors_in(e) if t.role in SAVED)
    return _Measured(
        tuple(loops.values()), _read_around(e, flattened), lines_of(e, flattened), tuple(values)
    )


def _loops_of(reduction: Expr, flattened: Parts) -> Iterator[SweptValue]:
    """The reductions in ``reduction``, that itself being the last; and before a matrix product what
    it multiplies, where that has to be computed.
    """
    for operand in reduction.operands:
        for node in _reductions(operand):
            yield from _loops_of(node, flattened)
    axes = split(axes_of(reduction), flattened)
    read = _read_around(reduction.operand, flattened)
    whole = isinstance(reduction, Whole) or (is_contraction(reduction) and not is_picked(reduction))
    if whole:
        factors = [f for f in _multiplied(reduction) if not is_constant(f)]
        made = Tensor, OneHot, Reduction, Whole
        computed = [f for f in factors if not isinstance(f, made)]
        for factor in computed:
            own = split(axes_of(factor), flattened)
            yield SweptValue(factor, own, own, _read_around(factor, flattened), entries(own))
        plain = [f for f in factors if f not in computed]
        lengths = ((f, split(axes_of(f), flattened)) for f in computed)
        read = _read_around(Mul(*plain), flattened)
        read += tuple(ReadTensor(f, own, entries(own)) for f, own in lengths)
    elif is_picked(reduction):
        read = tuple(r._replace(entries=min(r.entries, entries(axes))) for r in read)
    space = split(reduction.inside, flattened) | axes
    yield SweptValue(reduction, axes, space, read, entries(axes), whole)


def _multiplied(reduction: Expr) -> tuple[Expr, ...]:
    """Operands of a matrix product or a recurrence: whole arrays."""
    return reduction.operands if isinstance(reduction, Whole) else reduction.operand.args


def _read_around(e: Expr, flattened: Parts) -> tuple[ReadTensor, ...]:
    """Tensors that ``e`` reads outside of its reductions, and these reductions."""
    tensors = sorted(tensors_around(e), key=str)
    read = []
    for t in tensors:
        same = frozenset(h for h, a in zip(t.home, t.axes, strict=True) if h == a)
        read.append(ReadTensor(t.name, split(same, flattened), entries(split(t.home, flattened))))
    for node in _reductions(e):
        axes = split(axes_of(node), flattened)
        read.append(ReadTensor(node, axes, entries(axes)))
    return tuple(read)


def _reductions(e: Expr) -> list[Expr]:
    return sorted(outermost_reductions(e), key=lambda node: node.sort_key())


def additions(e: Expr) -> int:
    """Number of additions and subtractions: of equal forms, the one with the fewest has the least
    rounding.
    """
    return sum(len(node.args) - 1 for node in e.atoms(Add))


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


def outermost_reductions(e: Expr) -> set[Expr]:
    if isinstance(e, (Sum, Max)) or (isinstance(e, Whole) and not e.is_step):
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
    if isinstance(e, (Reduction, OneHot)) or (isinstance(e, Whole) and not e.is_step):
        return set()
    return set().union(*map(tensors_around, e.args)) if e.args else set()
