"""Print verdicts in the user's words instead of names that a reading invented.

A Function has no names for its upstream gradients, the loss of several outputs, axes created by
views, or values between two operations of a line. Reading it needs names for all of these; a
verdict must not show them. Everything that explains a claim prints its formulas here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import prod

from sympy import Add, Expr, Function, Integer, Symbol

from derive.gradient.values.naming import written_out
from derive.language.array_node import ArrayNode
from derive.language.formulas.text import formula as written
from derive.language.nodes import OneHot, Position, Sum
from derive.language.reshaping import Flatten, Unflatten
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in

LONGEST = 24  # operations of an expression with unnamed values written out
MOST_PARTS = 8  # entries of an axis that are shown one by one
WORD = re.compile(r"[^\W\d]\w*")
SIZE = re.compile(r"\w+'*")  # text that needs no brackets


@dataclass(frozen=True)
class Spoken:
    """``names`` has what the user calls a value, ``arriving`` what the upstream gradients, ``made``
    what those are that nobody named, and ``ones`` are factors of 1 that nobody wrote. ``axes`` has
    the size of each axis that nobody named, in those that the ``users`` did; ``kept`` is the label
    that says where a row counts, by its tensor, and the number that is left out.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    arriving: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, Expr] = field(default_factory=dict)
    ones: tuple[str, ...] = ()
    axes: Mapping[str, Expr] = field(default_factory=dict)
    users: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    # Words

    def formula(self, e: Expr) -> str:
        """``e`` in the user's words."""
        if self.made:
            whole = written_out(e, self.made)
            e = whole if whole.count_ops() <= max(LONGEST, e.count_ops()) else e
        e = self._in_parts(e)
        return self.words(written(e.xreplace({t: self._named(t) for t in tensors_in(e)})))

    def _named(self, t: Tensor) -> Expr:
        if t.role == "adjoint" and t.name in self.ones:
            return Integer(1)
        base, bracket, index = t.name.partition("[")
        known = self.arriving if t.role == "adjoint" else self.names
        return Tensor(f"{known.get(base, base)}{bracket}{index}", t.axes, t.home, t.role)

    def words(self, words: str) -> str:
        """A text with sizes and labels replaced."""
        for tensor, (label, number) in self.kept.items():
            test = f"{label} != {number}"
            words = words.replace(f"(Kept({label}), ", f"({test}, ")
            words = words.replace(f"Kept({label})", f"({test})")
            words = words.replace(f"Ne({tensor}, 0)", test)
            words = words.replace(f"Eq({tensor}, 0)", f"{label} == {number}")
        return WORD.sub(lambda m: self._word(words, m), words)

    def _word(self, words: str, found: re.Match) -> str:
        name = found[0]
        if name not in self.axes:
            return name
        size = self.size(name)
        before, after = words[: found.start()], words[found.end() :]
        factor = before[-1:] in ("*", "/") or after[:1] in ("*", "/")
        return f"({size})" if factor and not SIZE.fullmatch(size) else size

    # Axes and sizes

    def size(self, axis: str) -> str:
        """The size of an unnamed axis; ``N'`` is a second axis of size N."""
        own = self.axes[axis]
        before = [a for a, size in self.axes.items() if size == own]
        text = written(own)
        count = before.index(axis) + (str(own) in self.users)
        return (text if SIZE.fullmatch(text) or not count else f"({text})") + "'" * count

    def sizes(self, found: Sequence[tuple[str, int]]) -> dict[str, int]:
        """The sizes of the user's axes."""
        given, shown = dict(found), {a: n for a, n in found if a not in self.axes}
        for axis, size in self.axes.items():
            unknown = [s for s in size.free_symbols if s.name not in shown]
            if axis in given and len(unknown) == 1:
                slope = size.coeff(unknown[0])
                rest = size.subs(unknown[0], 0).subs({Symbol(a): n for a, n in shown.items()})
                if slope.is_Rational and slope and rest.is_Rational:
                    shown[unknown[0].name] = int((given[axis] - rest) / slope)
        order = [*self.users, *shown]
        return {a: shown[a] for a in sorted(shown, key=order.index)}

    # Data

    def rows(self, data: Mapping[str, object]) -> dict[str, object]:
        """The names and numbers of an example."""
        shown = {}
        for name, value in data.items():
            if name in self.ones or name in self.kept:
                continue
            for kept, (label, number) in self.kept.items():
                if name == label and kept in data:
                    value = _ignored(value, data[kept], number)
            shown[self.arriving.get(name) or self.names.get(name, name)] = value
        return shown

    # Entries of unnamed axes

    def _in_parts(self, e: Expr) -> Expr:
        """``e`` with the entries of a view's axis one by one, if they are addressed by number:
        ``x[:, 0]``, ``cat`` and ``stack`` as in torch.
        """
        for axis in sorted({h.axis for h in e.atoms(OneHot) if self._is_part(h)}, key=str):
            e = _one_by_one(e, axis)
        return e

    def _is_part(self, hot: OneHot) -> bool:
        axis = hot.axis
        few = axis.length is not None and axis.length <= MOST_PARTS
        return few and axis.name in self.axes and hot.operand.is_Integer


def _one_by_one(e: Expr, axis: Axis) -> Expr:
    def total(node: Sum) -> Expr:
        left = [a for a in node.axes if a != axis]
        return Add(*(Sum.over(p, left) if left else p for p in _parts(node.operand, axis)))

    def joined(node: Flatten) -> Expr:
        return Function("cat")(*_parts(node.operand, axis), node.into[0])

    def is_total(node: Expr) -> bool:
        return isinstance(node, Sum) and axis in node.axes and _tells(node.operand, axis)

    def is_joined(node: Expr) -> bool:
        first = isinstance(node, Flatten) and node.axes[0] == axis and len(node.axes) == 2
        return first and _tells(node.operand, axis)

    e = e.replace(is_total, total).replace(is_joined, joined)
    return Function("stack")(*_parts(e, axis)) if _tells(e, axis) else e


def _tells(e: Expr, axis: Axis) -> bool:
    """Whether the entries of ``e`` along an axis are addressed by number and can be named."""
    found = any(h.axis == axis and h.operand.is_Integer for h in e.atoms(OneHot))
    return found and not any(axis in axes_of(part) for part in _parts(e, axis))


def _parts(e: Expr, axis: Axis) -> list[Expr]:
    """An expression at each entry of an axis."""
    return [_at(e, axis, place) for place in range(axis.length)]


def _at(e: Expr, axis: Axis, place: int) -> Expr:
    if isinstance(e, Tensor):
        return _entry(e, axis, place) if axis in e.axes else e
    if isinstance(e, OneHot) and e.axis == axis and e.operand.is_Integer:
        return Integer(e.operand == place)
    if isinstance(e, Position) and e.axis == axis:
        return Integer(place)
    if isinstance(e, Unflatten) and e.into[0] == axis and isinstance(e.operand, Tensor):
        return _chunk(e, axis, place)
    if isinstance(e, ArrayNode):  # may run along the axis itself
        return e
    return e.func(*(_at(a, axis, place) for a in e.args)) if e.args else e


def _entry(t: Tensor, axis: Axis, place: int) -> Tensor:
    left = [a for a in t.axes if a != axis]
    return Tensor(f"{t.name}{_index(t, axis, str(place))}", left, role=t.role)


def _chunk(e: Unflatten, axis: Axis, place: int) -> Tensor:
    """A half, a third, ... of a tensor, as a slice."""
    rest = prod(e.into[1:])
    ends = ("" if not n or n == axis.length else written(n * rest) for n in (place, place + 1))
    name = f"{e.operand.name}{_index(e.operand, e.axes[0], ':'.join(ends))}"
    left = [a for a in e.operand.axes if a != e.axes[0]]
    return Tensor(name, [*left, *e.into[1:]], role=e.operand.role)


def _index(t: Tensor, axis: Axis, there: str) -> str:
    places = [there if a == axis else ":" for a in t.axes]
    while len(places) > 1 and places[-1] == ":":
        places.pop()
    return f"[{', '.join(places)}]"


def _ignored(labels, kept, number: int):
    if isinstance(labels, list):
        return [_ignored(label, own, number) for label, own in zip(labels, kept, strict=True)]
    return labels if kept else number


AS_NAMED = Spoken()
_spoken: ContextVar[Spoken] = ContextVar("spoken", default=AS_NAMED)


@contextmanager
def speaking(spoken: Spoken) -> Iterator[None]:
    """Use these words for all output inside the block."""
    before = _spoken.set(spoken)
    try:
        yield
    finally:
        _spoken.reset(before)


def now_spoken() -> Spoken:
    return _spoken.get()


def formula(e: Expr) -> str:
    """An expression as text, in the current words."""
    return now_spoken().formula(e)


def called(name: str, parts: Mapping[str, Expr] = {}) -> str:
    """The name of a value, or its formula if nobody named it; ``parts`` adds to these formulas."""
    spoken = now_spoken()
    made = {**spoken.made, **parts}
    if name in made:
        return spoken.formula(written_out(made[name], parts))
    return spoken.arriving.get(name) or spoken.names.get(name, name)
