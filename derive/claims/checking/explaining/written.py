"""A claim that keeps the names its text assigned.

Reading replaces the name in a line such as ``u = q/n`` by its value. Here names are restored, so
that a mistake can be searched for line by line: the value of a line is a function with the line's
name that evaluates to that value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sympy import Add, Basic, Expr, Function, Mul, S
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from derive.claims.checking.words.spoken import formula
from derive.claims.reading import TextLine
from derive.language.array_node import ArrayNode
from derive.language.symbols import Axis, Tensor, axes_of, is_number_or_size, ordered

SHARED = (Add, Mul)  # a named part may be a subset of their operands
MOST_SPOTS = 160  # outermost first


@dataclass(frozen=True)
class Spot:
    """A ``node`` in the value of a line, which ``uses`` it so many times; with ``parent``, only its
    occurrence in that node. ``within`` is the node of which it is an operand.
    """

    holder: Expr
    node: Expr
    parent: Expr | None = None
    uses: int = 1
    within: Expr | None = None


class WrittenClaim:
    """``whole`` is the claim with names; ``lines`` are the named lines."""

    def __init__(self, claimed: Expr, lines: Sequence[TextLine], last: TextLine):
        self.last = last
        self.lines: dict[UndefinedFunction, TextLine] = {}
        known: dict[Expr, Expr] = {}
        for line in lines:
            e = line.value
            if not e.args or is_number_or_size(e) or e in (*known, claimed):
                continue
            name = Function(f"{line.name} {line.number}")
            self.lines[name] = line
            known[e] = name(folded(e, known))
        self.whole = folded(claimed, known)

    @cached_property
    def spots(self) -> list[Spot]:
        """Every place where a value could be replaced: outermost first, line by line."""
        holders, found = {self.whole: None}, []
        for holder in _growing(holders):
            body = self.body(holder)
            parents: dict[Basic, list[Basic]] = {body: []}
            for node in _growing(parents):
                if isinstance(node, AppliedUndef) and node is not body:
                    holders[node] = None
                    continue
                for operand in _operands(node):
                    parents.setdefault(operand, []).append(node)
            values = [node for node in parents if isinstance(node, Expr)]
            for node in values:
                met = [p for p in parents[node] if isinstance(p, Expr)]
                around = [parents[p][0] if p == -node and parents[p] else p for p in met]
                within = around[0] if len(met) == 1 else None
                found.append(Spot(holder, node, None, len(parents[node]) or 1, within))
                if len(met) > 1:
                    pairs = zip(met, around, strict=True)
                    found += [Spot(holder, node, p, within=a) for p, a in pairs]
        return found[:MOST_SPOTS]

    def body(self, holder: Expr) -> Expr:
        return holder.args[0] if holder.func in self.lines else holder

    def with_other(self, spot: Spot, other: Expr) -> Expr:
        """The claim with the value at a spot replaced."""
        old = spot.node
        if spot.parent is not None:
            old, other = spot.parent, replaced(spot.parent, old, other)
        if spot.holder is self.whole:
            return replaced(self.whole, old, other)
        body = replaced(self.body(spot.holder), old, other)
        return self.whole.xreplace({spot.holder: spot.holder.func(body)})

    def line(self, spot: Spot) -> TextLine:
        return self.lines.get(spot.holder.func, self.last)

    def plain(self, e: Expr) -> Expr:
        """``e`` without the names."""
        while named := [n for n in e.atoms(AppliedUndef) if n.func in self.lines]:
            inner = [n for n in named if not n.args[0].atoms(AppliedUndef)]
            e = e.xreplace({n: n.args[0] for n in inner})
        return e

    def size(self, e: Expr) -> int:
        """The length of the expression as shown, in operations."""
        return 0 if e == 1 else 1 + int(self.shown(e).count_ops())

    def text(self, e: Expr) -> str:
        """The text of ``e`` with the names of the lines."""
        return formula(self.shown(e))

    def shown(self, e: Expr) -> Expr:
        named = [n for n in e.atoms(AppliedUndef) if n.func in self.lines]
        return e.xreplace({n: self._called(n) for n in named})

    def _called(self, named: Expr) -> Tensor:
        return Tensor(self.lines[named.func].name, ordered(axes_of(named)), role="statement")

    @cached_property
    def named(self) -> Mapping[Expr, str]:
        """The values of lines, each with its name."""
        return {n: self.lines[n.func].name for n in self.whole.atoms(AppliedUndef)}


def _growing(found: dict) -> Iterator:
    """Iterate over the keys of a dictionary that grows meanwhile."""
    done = 0
    while done < len(found):
        new = list(found)[done:]
        done += len(new)
        yield from new


def _operands(e: Basic) -> list[Basic]:
    """The operands of a value, without conditions and indices."""
    conditions = (Relational, BooleanFunction, BooleanAtom, Axis)
    args = e.operands if isinstance(e, ArrayNode) else e.args
    return [a for a in args if not isinstance(a, conditions) and not a.is_number]


def replaced(e: Basic, old: Basic, new: Basic) -> Basic:
    """``e`` with ``old`` replaced wherever it is an operand."""
    if e == old:
        return new
    changed = {a: replaced(a, old, new) for a in _operands(e)}
    if all(a == b for a, b in changed.items()):
        return e
    return e.func(*(changed.get(a, a) for a in e.args))


def _scale_in(terms: Sequence[Expr], part: Add) -> Expr:
    """The factor by which a sum was multiplied term by term, if it is among ``terms``."""
    number, rest = part.args[0].as_coeff_Mul()
    return next((c / number for c, r in (t.as_coeff_Mul() for t in terms) if r == rest), S.One)


def folded(e: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """``e`` with every ``known`` part replaced by its name, also where it is a subset of terms or
    factors.
    """
    if not known or not isinstance(e, Basic) or not e.args:
        return e
    if e in known:
        return known[e]
    if isinstance(e, SHARED):
        left, found = [*e.args], []
        for part in sorted(known, key=lambda k: -len(k.args)):
            if part.func is not e.func or len(part.args) > len(left):
                continue
            scale = _scale_in(left, part) if isinstance(e, Add) else S.One
            own = {scale * a for a in part.args}
            if own <= {*left}:
                left = [a for a in left if a not in own]
                found.append(scale * known[part])
        if found:
            return e.func(*(folded(a, known) for a in left), *found)
    new = {a: folded(a, known) for a in e.args}
    return e.xreplace({a: b for a, b in new.items() if a != b})
