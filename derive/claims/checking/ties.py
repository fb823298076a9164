"""Ties: conditions that hold only where both sides are equal, such as ``var <= 0`` of a sum of
squares; the branches then agree in value but not in derivative.

In: the forward with the choice and, off the ties, without it. Out: whether a claim is the gradient
at the ties too, so that a proof without the choice covers all data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sympy import Dummy, Expr, expand
from sympy.core.relational import Relational

from derive.gradient.range.bounds import Ranges
from derive.gradient.range.decided import HOLDS, decided, signs
from derive.language.array_node import ArrayNode
from derive.language.nodes import Reduction
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor, tensors_in


@dataclass(frozen=True)
class Tie:
    """A ``condition``, the ``side`` on which its left side otherwise lies, and the ``values`` known
    at equality.
    """

    condition: Relational
    side: int
    values: Mapping[Expr, Expr]

    def of_entry(self, e: Expr) -> bool:
        """Whether ``e`` reads the tied value entry by entry."""
        names = {t.name for t in self.values if isinstance(t, Tensor)}
        read = {t for t in tensors_in(e) if t.name in names}
        bound = any(t in read for node in e.atoms(ArrayNode) for t in tensors_in(node))
        return not bound and read <= {*self.values}

    def is_zero(self, e: Expr) -> bool:
        """Whether ``e`` is 0 at the tie, for any other values."""
        return self.of_entry(e) and expand(e.xreplace(dict(self.values))) == 0


def ties_in(definition: Definition, ranges: Ranges) -> Iterator[Tie]:
    """The ties in choices that `decided` resolves although both branches may be taken."""
    for s in definition.statements:
        kept = decided(s.expression, ranges).atoms(Relational)
        for condition in sorted(s.expression.atoms(Relational) - kept, key=str):
            left, right = condition.args
            sides, holds = signs(left - right, ranges), {*HOLDS[condition.rel_op]}
            if sides & holds and not sides <= holds:
                side = next(iter(sides - {0}), 0)
                values = {left: right, s.tensor: s.expression.xreplace({left: right})}
                yield Tie(condition, side, values)


def off_the_tie(tie: Tie, ranges: Ranges) -> Ranges:
    """The ranges of the values off the tie."""
    left, right = tie.condition.args
    beyond = right + tie.side * Dummy(positive=True)

    def definition_of(t: Tensor) -> Expr | None:
        return beyond if t == left else ranges.definition_of(t)

    known = {name: found for name, found in ranges.known.items() if name not in _names(tie)}
    return replace(ranges, definition_of=definition_of, known=known)


def _names(tie: Tie) -> set[str]:
    return {t.name for t in tie.values if isinstance(t, Tensor)}


def is_apart(tie: Tie, definition: Definition, of: Tensor) -> bool:
    """Whether an entry of ``of`` affects only the ties of its own row: the compared value is
    computed from it along the tie's axes, never across them.
    """
    left = tie.condition.lhs
    if not isinstance(left, Tensor) or tie.condition.rhs.free_symbols:
        return False
    axes, unread, seen = {*left.home}, [left], set()
    if not axes <= {*of.home}:
        return False
    while unread:
        t = unread.pop()
        if t in seen or t.name == of.name or t.name not in definition.by_name:
            continue
        seen.add(t)
        e = definition.by_name[t.name].expression
        for node in e.atoms(ArrayNode):
            if not isinstance(node, Reduction) or axes & {*node.binds}:
                return False
        read = [s for s in tensors_in(e) if _is_computed_from(s, of, definition)]
        if any(s != s.at_home or not axes <= {*s.home} for s in read):
            return False
        unread += read
    return True


def _is_computed_from(t: Tensor, of: Tensor, definition: Definition) -> bool:
    unread, seen = [t.at_home], set()
    while unread:
        t = unread.pop()
        if t.name == of.name:
            return True
        if t not in seen and t.name in definition.by_name:
            unread += [s.at_home for s in tensors_in(definition.by_name[t.name].expression)]
        seen.add(t)
    return False
