"""Operations along an axis: scans, flips, shifts, windows."""

from __future__ import annotations

import sympy
from sympy import Expr, Integer, floor

from codegen.importing.values import Refused, TreeValue
from derive.language.torch_ops import reads, trees
from derive.language.torch_ops.text import number_text
from derive.language.torch_ops.trees import ZERO, Tree


def reread(
    r, x: TreeValue, i: int, axis: str, index: tuple, fill: Expr = sympy.S.Zero
) -> TreeValue:
    """x with dimension i read at (step, offset) of ``axis``."""
    (old,) = x.dims[i]
    step, offset = index
    if old not in x.tree.free and fill == 0:
        x = x.of(trees.broadcast(x.tree, [old]))
    word = "" if step != 1 else "Pad"
    return x.with_dim(i, (axis,)).of(reads.at(x.tree, old, ((axis, step),), offset, fill, word))


def size_of(r, x: TreeValue, i: int) -> Expr:
    return r.sizes.of(x.dims[i])


# Scans


def scanned(r, x, dim: int, word: str) -> TreeValue:
    x = r.shapes.plain(x, dim % max(x.rank, 1)) if x.rank else x
    if not x.rank or x.dims[dim % x.rank] == ():
        return x
    (axis,) = x.dims[dim % x.rank]
    tree = x.tree if axis in x.tree.free else trees.broadcast(x.tree, [axis])
    return x.of(reads.scan(word, tree, axis))


# Flips and shifts


def reversed_along(e: Tree, axis: str, size: Expr) -> Tree:
    """Reverse along an axis; a reversed cumulative sum of reversed entries is the sum from
    the end.
    """
    back = ((axis, Integer(-1)),)
    if e.kind == "at" and e.args[1:4] == ((axis,), back, size - 1):
        return e.args[0]
    if e.kind == "scan" and e.args[0] == "CumSum" and e.args[2] == (axis,):
        word, operand, _, options = e.args
        other = "" if options else ", reverse=True"
        return reads.scan(word, reversed_along(operand, axis, size), axis, other)
    return reads.at(e, axis, back, size - 1)


def read(r, x, i: int, index: tuple, fill) -> TreeValue:
    """Read dimension i at ``step`` times the position plus an offset, keeping its size."""
    length, step, offset = index
    x, fill = r.shapes.plain(x, i), sympy.sympify(fill, strict=True)
    size = sympy.expand(length)
    axis = r.sizes.formed(size, number_text(size), set(x.axes) - set(x.dims[i]))
    if x.dims[i]:
        return reread(r, x, i, axis, (Integer(step), sympy.expand(offset)), fill)
    index = step * trees.position(axis) + trees.as_tree(offset)
    here = trees.compared("==", index, ZERO)
    tree = trees.choice((x.tree, here), otherwise=trees.number(fill))
    return x.with_dim(i, (axis,)).of(tree)


def strided(r, x: TreeValue, i: int, part: tuple) -> TreeValue:
    """Every ``step``-th entry of a slice."""
    low, high, step = part
    x = r.shapes.plain(x, i)
    (old,) = x.dims[i]
    axis = r.shapes.stepped(high - low, step, x.axes)
    if old not in x.tree.free:
        return x.with_dim(i, (axis,))
    return reread(r, x, i, axis, (step, low))


# Windows


def windows(
    r, x: TreeValue, i: int, sizes: tuple, index: tuple, fill: Expr = sympy.S.Zero
) -> TreeValue:
    """Replace dimension i by window positions and append the positions inside a window. ``sizes``
    are those of the two, ``index`` is (step, hole, start).
    """
    x = r.shapes.plain(x, i)
    (length, wide), (step, hole, start) = sizes, map(sympy.sympify, index)
    inner = (r.sizes.axis_of(wide, {*x.axes, *r.shapes.windows}),) if wide != 1 else ()
    if x.dims[i] == ():
        raise Refused("windows along a dimension of size 1", "write it as a product")
    (old,) = x.dims[i]
    to = r.sizes.formed(length, floor_text(length), ({*x.axes} - {old}) | {*inner})
    tree, old, offset = _unpadded(r, x.tree, old, start, fill)
    tree = tree if old in tree.free else trees.broadcast(tree, [old])
    parts = ((to, step), *((axis, hole) for axis in inner))
    tree = reads.at(tree, old, parts, offset, fill)
    dims = [(to,) if j == i else d for j, d in enumerate(x.dims)]
    return TreeValue(tree, (*dims, inner))


def floor_text(length: Expr) -> str:
    """A rounded-down length in Python."""
    rounded = sorted(length.atoms(floor), key=str)
    alone = isinstance(length, floor) or (length.is_Add and len(rounded) == 1)
    signs = "{}" if alone else "({})"
    written = {n: sympy.Symbol(signs.format(_divided(n.args[0]))) for n in rounded}
    return number_text(length.xreplace(written))


def _divided(ratio: Expr) -> str:
    above, below = map(number_text, sympy.fraction(sympy.together(ratio)))
    return f"{above if above.isidentifier() else f'({above})'} // {below}"


def _unpadded(r, e: Tree, axis: str, offset: Expr, fill: Expr) -> tuple[Tree, str, Expr]:
    """The tensor that was padded with the same value, its axis, and the offset of a window; or
    ``e`` itself.
    """
    if e.kind != "at" or e.args[-2:] != (fill, "Pad") or e.args[2][0][0] != axis:
        return e, axis, offset
    operand, (inside,), _, before, *_ = e.args
    behind = r.sizes.of_axis[axis] - r.sizes.of_axis[inside] + before
    if min(map(r.sizes.hint, (-before, behind))) < 0:
        return e, axis, offset
    return operand, inside, sympy.expand(offset + before)
