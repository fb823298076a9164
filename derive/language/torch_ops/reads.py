"""Trees for entries read at an index and for scans, and their text.

A tree of kind "at" is (operand, (axis,), parts, offset, fill, word): the entry along ``axis`` at
index ``offset`` plus each coefficient times the position along its axis. One of kind "scan" is
(word, operand, (axis,), options).
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import Expr, Integer, Symbol

from derive.language.torch_ops.trees import Tree

Parts = tuple[tuple[str, Expr], ...]
_SIGNS = {Integer(1): "", Integer(-1): "-"}


def at(e: Tree, axis: str, parts: Parts, offset: Expr, fill: Expr = sympy.S.Zero, word="") -> Tree:
    """The entries of ``e`` along ``axis`` at an index; ``word`` is the operation's common name."""
    if e.kind == "number" and e.args[0] == fill:
        return e
    parts = tuple((new, sympy.sympify(c, strict=True)) for new, c in parts)
    free = (e.free - {axis}) | {new for new, _ in parts}
    return Tree(
        "at", (e, (axis,), parts, sympy.sympify(offset, strict=True), fill, word), frozenset(free)
    )


def scan(word: str, e: Tree, axis: str, options: str = "") -> Tree:
    return Tree("scan", (word, e, (axis,), options), e.free | {axis})


def at_text(e: Tree, text: Callable[[Tree], str], number: Callable[[Expr], str]) -> str:
    """The text of a read, in its common name where it has one."""
    operand, (axis,), parts, offset, fill, word = e.args
    inside = f"{text(operand)}, {axis}"
    filled = "" if fill == 0 else f", fill={number(fill)}"
    if parts == ((axis, Integer(-1)),) and offset == Symbol(axis) - 1:
        return f"Flip({inside})"
    if parts == ((axis, Integer(1)),):
        return f"Shift({inside}, {number(-offset)}{filled})"
    if len(parts) == 2 and all(c.is_positive for _, c in parts):
        (to, stride), (inner, dilation) = parts
        options = [("stride", stride, 1), ("dilation", dilation, 1), ("padding", -offset, 0)]
        more = [f", {name}={number(n)}" for name, n, usual in options if n != usual]
        return f"Window({inside}, into=({to}, {inner}){''.join(more)}{filled})"
    if word == "Pad":
        before = f", before={number(-offset)}" if offset != 0 else ""
        return f"Pad({inside}, into={parts[0][0]}{before}{filled})"
    if len(parts) == 1 and parts[0][1].is_positive and not filled:
        options = [("start", offset, 0), ("step", parts[0][1], 1)]
        more = [f", {name}={number(n)}" for name, n, usual in options if n != usual]
        return f"Slice({inside}, into={parts[0][0]}{''.join(more)})"
    terms = [f"{_SIGNS.get(c, f'{number(c)} * ')}Position({new})" for new, c in parts]
    if offset != 0 or not terms:
        terms.append(number(offset))
    return f"At({inside}, {' + '.join(terms).replace('+ -', '- ')}{filled})"


def words_in(e: Tree) -> set[str]:
    """The axes mentioned in a read besides those it varies along: axes in its numbers."""
    if e.kind != "at":
        return set()
    numbers = [e.args[3], *(c for _, c in e.args[2])]
    return {s.name for n in numbers for s in n.free_symbols}
