"""Recurrences among the lines of a function, as loops from place to place.

In: lines that are a step at all places at once, and what passes a state on from one place to the
next. Out: the same in an order in which it can be computed: lines, and loops of those that a state
follows from. What does not vary with the state is computed before the loop, at all places at once,
and what no state follows from behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sympy import Add, Basic, Expr, Integer, Mul, Piecewise

from codegen.building.outlines import Line, Link
from derive.language.called import names_of
from derive.language.choices import with_args
from derive.language.names import first_unused
from derive.language.nodes import ArrayNode, OneHot
from derive.language.notation.definition import Definition
from derive.language.notation.layout import plain
from derive.language.symbols import Axis, Tensor, axes_of, is_constant, tensors_in


@dataclass(frozen=True)
class Loop:
    """Lines that states follow from, place by place."""

    links: tuple[Link, ...]
    lines: tuple[Line, ...]

    @property
    def ordered(self) -> list[str]:
        """Names that vary from place to place because a state does, the states first."""
        return [*(k.before.name for k in self.links), *(line.tensor.name for line in self.lines)]

    @property
    def read(self) -> set[str]:
        """Names that it reads."""
        links = (t.name for k in self.links for t in tensors_in(k.initial))
        return {*links}.union(*(line.read for line in self.lines))


def links_forward(definition: Definition) -> tuple[Link, ...]:
    """The links by which a forward passes its states on."""
    return tuple(Link(c.before, c.after.name, c.initial, c.axis) for c in definition.carried)


def links_backward(definition: Definition) -> tuple[Link, ...]:
    """The links of the gradients: dh_after[t] = dh_before[t+1], and dh_initial = dh_before[0]."""
    found = []
    for c in definition.carried:
        after, last = Tensor(f"d{c.after.name}", c.after.home, role="adjoint"), None
        if c.initial in definition.outputs:
            last = Tensor(f"d{c.initial.name}", c.initial.home, role="adjoint")
        found.append(Link(after, f"d{c.before.name}", Integer(0), c.axis, True, last))
    return tuple(found)


def with_loops(lines: Sequence[Line], links: Sequence[Link]) -> list[Line | Loop]:
    """The lines and loops, each after those that it reads."""
    named = {line.tensor.name for line in lines}
    nodes: list[Line | Link] = [*lines, *(link for link in links if link.after in named)]
    reads = _edges(nodes)
    reached = [_reached(i, reads) for i in range(len(nodes))]
    units: dict[int, frozenset[int]] = {
        i: frozenset({i} | {j for j in reached[i] if i in reached[j]}) for i in range(len(nodes))
    }
    found, done = [], set()
    while len(done) < len(nodes):
        i = next(i for i in units if i not in done and _needs(units[i], reads) <= done)
        members = sorted(units[i])
        done |= units[i]
        own = tuple(nodes[m] for m in members if isinstance(nodes[m], Link))
        inside = tuple(nodes[m] for m in members if isinstance(nodes[m], Line))
        found += [Loop(own, inside)] if own else [*inside]
    return found


def _edges(nodes: Sequence[Line | Link]) -> list[set[int]]:
    """For each node the nodes that it reads; a link and the line behind it read each other."""
    found: list[set[int]] = [set() for _ in nodes]
    made: dict[str, int] = {}
    last = {n.tensor.name: i for i, n in enumerate(nodes) if isinstance(n, Line)}
    links = {t.name: i for i, n in enumerate(nodes) if isinstance(n, Link) for t in n.tensors}
    for i, node in enumerate(nodes):
        if isinstance(node, Link):
            after = last[node.after]
            found[i] |= {after} | {last[t.name] for t in tensors_in(node.initial) if t.name in last}
            found[after].add(i)
            continue
        for name in node.read:
            own = made.get(name, links.get(name))
            found[i] |= set() if own is None else {own}
        made[node.tensor.name] = i
    return found


def _reached(start: int, reads: Sequence[set[int]]) -> set[int]:
    found, new = set[int](), {start}
    while new:
        new = set().union(*(reads[i] for i in new)) - found
        found |= new
    return found


def _needs(members: frozenset[int], reads: Sequence[set[int]]) -> set[int]:
    return set().union(*(reads[i] for i in members)) - members


def apart(loop: Loop, order: Sequence[Axis], taken: set[str]) -> tuple[list[Line], Loop]:
    """Move out of ``loop`` whatever does not vary with a state: the lines that compute it, under
    names not in ``taken``, and the loop without it.
    """
    outside = _Outside(loop, order, taken)
    lines = tuple(replace(k, terms=tuple(map(outside.without, k.terms))) for k in loop.lines)
    before = [Line(t, (e,), plain(t.home)) for e, t in outside.before.items()]
    return before, replace(loop, lines=lines)


class _Outside:
    """Moves loop-invariant parts out of expressions."""

    def __init__(self, loop: Loop, order: Sequence[Axis], taken: set[str]):
        self.moving, self.axis = {*loop.ordered}, loop.links[0].axis
        self.order, self.taken = order, taken
        self.line = loop.lines[0].tensor.name  # names values made of positions alone
        self.before: dict[Expr, Tensor] = {}

    def varies(self, e: Basic) -> bool:
        return any(t.name in self.moving for t in tensors_in(e))

    def named(self, e: Expr) -> Expr:
        """The name of a value computed before the loop."""
        if isinstance(e, Tensor) or is_constant(e):
            return e
        if e not in self.before:
            where = next((t.name for t in tensors_in(e)), self.line)
            name = first_unused(names_of(e, where), self.taken.__contains__)
            self.taken.add(name)
            along = [axis for axis in self.order if axis in axes_of(e)]
            self.before[e] = Tensor(name, along, role="statement")
        return self.before[e]

    def without(self, e):
        if isinstance(e, Expr) and not self.varies(e):
            return self.named(e)
        if isinstance(e, ArrayNode):
            return e.through(self.without)
        if not isinstance(e, (Add, Mul)):
            return with_args(e, map(self.without, e.args)) if e.args else e
        kept = [a for a in e.args if self.varies(a) or (isinstance(e, Mul) and self.selects(a))]
        still = _along_the_same(e.func, [a for a in e.args if a not in kept])
        return e.func(*map(self.named, still), *map(self.in_place, kept))

    def selects(self, e: Expr) -> bool:
        """True if a factor selects entries: those that it leaves out must not be multiplied."""
        return isinstance(e, Piecewise) or (isinstance(e, OneHot) and e.axis != self.axis)

    def in_place(self, e: Expr) -> Expr:
        if isinstance(e, Piecewise):
            return with_args(e, map(self.without, e.args))
        return e if isinstance(e, OneHot) else self.without(e)


def _along_the_same(of: type[Expr], parts: Sequence[Expr]) -> list[Expr]:
    """The ``parts`` of a sum or product, combined where one has all axes of the other."""
    found: list[Expr] = []
    for part in sorted(parts, key=lambda e: -len(axes_of(e))):
        fits = (i for i, e in enumerate(found) if axes_of(part) <= axes_of(e))
        i = None if is_constant(part) else next(fits, None)
        found = [*found, part] if i is None else [*found[:i], of(found[i], part), *found[i + 1 :]]
    return found


def at_a_place(e: Expr, axis: Axis) -> Expr:
    """``e`` at one place along ``axis``, which is no longer a dimension."""
    found = {}
    for t in tensors_in(e):
        if axis in t.home:
            pairs = [(met, home) for met, home in zip(t.axes, t.home, strict=True) if home != axis]
            met, home = zip(*pairs, strict=True) if pairs else ((), ())
            found[t] = Tensor(t.name, met, home, t.role, **t._assumptions_orig)
    return e.xreplace(found)


def without(line: Line, axis: Axis) -> Line:
    """The line at one place along ``axis``."""
    terms = tuple(at_a_place(e, axis) for e in line.terms)
    layout = tuple(dim for dim in line.layout if dim.axis != axis)
    return Line(at_a_place(line.tensor, axis), terms, layout)
