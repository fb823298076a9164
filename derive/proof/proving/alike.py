"""Split an equality of two expressions into equalities of their parts.

In: an `Equality`. Out: others that it follows from. Parts that have the same numbers on small
batches are claimed to be equal, each of them by itself, and stand in all else under one name, as a
statement of the forward. So what is written in one line is as quick to prove as what is written in
many. Which parts are claimed to be equal rests on numbers; that they are is proved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isclose, isfinite, nan

from sympy import Expr, Piecewise, Rational, S

from derive.language.choices import with_args
from derive.language.nodes import ArgMax, ArrayNode, Reduction
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.statements import known_signs
from derive.language.reshaping import Reshaping
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.proof.proving.claim import Batch, Equality, needed_on
from derive.proof.proving.random_point import RandomPoint
from derive.proof.proving.small_batch import SmallBatch

DIGITS = 9  # that are the same in equal numbers, however they were rounded
LARGEST = 1000  # denominator of a number that one is a multiple by


def shown_by_parts(
    claim: Equality, batches: Sequence[Batch], computed: Collection[str] = ()
) -> list[tuple[Equality, set[str]]] | None:
    """Equalities of which ``claim`` follows, or the claim itself, each with the statements that it
    needs, where they are proved on all batches. Which parts are alike is asked with the statements
    ``computed`` as they are defined.
    """
    for claims in by_parts(claim, batches, computed), [claim]:
        definitions = {each.definition for each in claims}  # one, or none where nothing is left
        on = [Batch(definition, batch.sizes) for definition in definitions for batch in batches]
        found = []
        for each in claims:
            needed = needed_on(each, on)
            if needed is None:
                break
            found.append((each, needed))
        else:
            return found
    return None


def by_parts(
    claim: Equality, batches: Sequence[Batch], computed: Collection[str] = ()
) -> list[Equality]:
    """Equalities of which ``claim`` follows, the smaller ones first."""
    definition, top = claim.definition, {claim.left, claim.right}
    left, right = _nodes(claim.left), _nodes(claim.right)
    known = {definition.by_name[name].tensor: 1 for name in computed}
    names: dict[Expr, Expr] = {}
    statements, pairs = [], []
    for alike in _alike(batches, computed, known | left | right):
        first = next(iter(alike))
        on_both = not (left.keys().isdisjoint(alike) or right.keys().isdisjoint(alike))
        if top & {*alike} or not (on_both or first in known):
            continue
        inside = _with(names, first)
        tensor = _named(first, f"part {len(names)}", definition)
        if tensor != first:
            statements.append(Statement(tensor, inside, definition.place))
        for node, (factor, power) in alike.items():
            if isinstance(node, Tensor):
                continue
            pairs.append((tensor.axes, factor * inside**power, _with(names, node)))
            names[node] = factor * tensor**power
    definition = replace(definition, statements=(*definition.statements, *statements))
    pairs.append((claim.home, _with(names, claim.left), _with(names, claim.right)))
    return [Equality(definition, *pair) for pair in pairs if pair[1] != pair[2]]


def _nodes(e: Expr) -> dict[Expr, int]:
    """The tensors and operations in ``e``, operands first, with the number of nodes in each. A
    choice counts as one whole.
    """
    found: dict[Expr, int] = {}

    def size(node: Expr) -> int:
        if node not in found:
            found[node] = 1 + sum(map(size, _operands(node)))
        return found[node]

    size(e)
    return {e: size for e, size in found.items() if isinstance(e, Tensor) or _is_computed(e)}


def _operands(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, ArrayNode):
        picks_largest = isinstance(e.operand, ArgMax)
        return (e.operand,) if isinstance(e, (Reduction, Reshaping)) or picks_largest else ()
    return () if isinstance(e, Piecewise) else e.args


def _is_computed(e: Expr) -> bool:
    has_a_value = bool(tensors_in(e)) and not isinstance(e, ArgMax)
    return has_a_value and (isinstance(e, Piecewise) or bool(_operands(e)))


Alike = dict[Expr, tuple[Rational, int]]  # factor*first**power of the first of them


def _alike(
    batches: Sequence[Batch], computed: Collection[str], nodes: Mapping[Expr, int]
) -> Iterator[Alike]:
    """The nodes with the same numbers, the smallest of each kind first; multiples, and reciprocals
    of those, are of one kind.
    """
    definition = batches[0].definition
    points = [RandomPoint(0, batch.defining(computed)) for batch in batches]
    written = [SmallBatch(definition, batch.sizes, batch.scalars.free) for batch in batches]
    names: dict[Expr, Tensor] = {}
    kinds: dict[tuple, list[tuple[list[float], Alike]]] = {}
    for node in sorted(nodes, key=nodes.__getitem__):
        names[node] = tensor = _named(node, f"node {len(names)}", definition)
        inside, numbers = _with(names, node), []
        for batch, point in zip(written, points, strict=True):
            for i, entry in batch.written_out(inside, tensor.axes).items():
                number = point.number(entry)
                if number is not None and tensor != node:
                    point.known[batch.entries(tensor)[i]] = number
                numbers.append(nan if number is None else complex(number.value).real)
        kind = kinds.setdefault((tensor.axes, *_up_to_a_factor(numbers)), [])
        found = ((alike, _relation(numbers, first)) for first, alike in kind)
        alike, relation = next((f for f in found if f[1]), ({}, (S.One, 1)))
        if not alike:
            kind.append((numbers, alike))
        alike[node] = relation
    return (alike for kind in kinds.values() for _, alike in kind)


def _up_to_a_factor(numbers: Sequence[float]) -> list[str]:
    """Digits shared by all multiples of the numbers, and by their reciprocals."""
    first = next(filter(None, numbers), 1.0)
    ratios = [number / first for number in numbers]
    largest = max(map(abs, ratios), default=1.0)
    if all(ratios) and largest * min(map(abs, ratios)) < 1:
        ratios = [1 / ratio for ratio in ratios]
    return [f"{ratio + 0:.{DIGITS}e}" for ratio in ratios]


def _relation(numbers: Sequence[float], others: Sequence[float]) -> tuple[Rational, int] | None:
    """``factor`` and ``power`` where the numbers are ``factor*other**power``."""
    pairs = [(a, b) for a, b in zip(numbers, others, strict=True) if a or b]
    if not pairs:
        return S.One, 1
    for power in (1, -1):
        ratios = [(a / b if power > 0 else a * b) if b else inf for a, b in pairs]
        if all(map(isfinite, ratios)):
            factor = Fraction(ratios[0]).limit_denominator(LARGEST)
            if factor and all(isclose(ratio, factor, rel_tol=10**-DIGITS) for ratio in ratios):
                return Rational(factor.numerator, factor.denominator), power
    return None


def _named(e: Expr, name: str, definition: Definition) -> Tensor:
    """``e`` under a name that no user can give, unless it has one."""
    if isinstance(e, Tensor):
        return e
    return Tensor(name, definition.in_order(axes_of(e)), role="statement", **known_signs(e))


def _with(names: Mapping[Expr, Expr], e: Expr) -> Expr:
    """``e`` with everything below its top under its names."""
    operands = _operands(e)
    inside = [names[arg] if arg in names else _with(names, arg) for arg in operands]
    if all(a is b for a, b in zip(inside, operands, strict=True)):
        return e
    return e.on(*inside) if isinstance(e, ArrayNode) else with_args(e, inside)
