"""Loops over blocks of an axis: ``for i in range(0, N, C):``, whose lines work on ``x[i : i + C]``.

A block is an axis of its own with unknown length, as the last one may be shorter. What is written
into ``z[i : i + C]`` may vary along it, and what is added to an outer tensor may be one sum over
it. Both equal the same operation on the whole axis. Any other use of a block, such as its mean, is
refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Expr, Mul

from derive.claims.reading.broadcasting import placed
from derive.claims.reading.operations.entries import position
from derive.claims.reading.parts import EntryIndex, by_dimension, taken
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import BLOCK, Space, TextValue, number
from derive.language.array_node import ArrayNode
from derive.language.nodes import Sum, renamed
from derive.language.symbols import Axis, axes_of

ZERO, JOINING = number(0), ("cat", "concat", "concatenate")
OWN_BLOCK = "write z[i:i + C] = ..., of entries of x[i:i + C], or total += (...).sum()"


def range_of(node: ast.For) -> list[ast.expr] | None:
    """The start, the end and the step of ``range(0, N, C)``."""
    call = node.iter
    is_range = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range"
    return call.args if is_range and len(call.args) == 3 and not call.keywords else None


class Named(ast.NodeTransformer):
    """The lines with a name in place of ``i : i + C``. ``is_step`` and ``is_stop`` recognize the
    step and the end of the loop.
    """

    def __init__(self, start: str, is_step: Callable, is_stop: Callable):
        self.start, self.is_step, self.is_stop = start, is_step, is_stop
        self.block, self.ends = f"block of {start}", set()

    def lines(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [line for line in map(self.visit, body) if line is not None]

    def visit_Assign(self, node: ast.Assign):
        (target, *more) = node.targets
        if not more and isinstance(target, ast.Name) and self._is_end(node.value):
            self.ends.add(target.id)
            return None
        return self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice):
        begins = isinstance(node.lower, ast.Name) and node.lower.id == self.start
        if begins and node.step is None and node.upper is not None and self._is_end(node.upper):
            return ast.copy_location(ast.Name(self.block, ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name):
        if node.id == self.start or node.id in self.ends:
            raise Refusal(f"{node.id} is used here for more than its own block", OWN_BLOCK, node)
        return node

    def _is_end(self, node: ast.expr) -> bool:
        """Whether a node is ``i + C``, ``min(i + C, N)``, or a name for one of these."""
        if isinstance(node, ast.Name):
            return node.id in self.ends
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = [node.left, node.right]
            starts = [isinstance(side, ast.Name) and side.id == self.start for side in sides]
            return any(starts) and self.is_step(sides[1 - starts.index(True)])
        least = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "min"
        if not least or len(node.args) != 2 or node.keywords:
            return False
        one, other = node.args
        return any(self._is_end(a) and self.is_stop(b) for a, b in ((one, other), (other, one)))


def is_block(item) -> bool:
    return isinstance(item, TextValue) and item.kind == BLOCK


def block_taken(space: Space, x: TextValue, items: Sequence) -> TextValue:
    """``x[i : i + C]``, beside whole dimensions and parts."""
    own = iter(range(len(x.dims)))
    items = by_dimension(x, items)
    for item in items:
        place = None if item is None else next(own)
        if is_block(item):
            x = _with_block(space, x, place, item.axes[0])
    rest = [":" if is_block(item) else item for item in items]
    return taken(space, x, rest) if any(item != ":" for item in rest) else x


def _with_block(space: Space, x: TextValue, place: int, block: Axis) -> TextValue:
    axis = x.dims[place]
    _check_axis(space, axis, block)
    if block in x.axes:
        raise Refusal("two dimensions are read at one block", OWN_BLOCK)
    e = placed(space, x.expression, {axis: block})
    dims = (*x.dims[:place], block, *x.dims[place + 1 :])
    return space.seen(x, e, dims)


def _check_axis(space: Space, axis: Axis | None, block: Axis) -> None:
    if space.size(axis) != space.size(space.blocks[block]):
        raise Mismatch(
            f"the loop goes along {space.blocks[block]}, and the dimension is {axis or 1}",
            "index the dimension that the loop goes along",
        )


def of_whole(space: Space, x: TextValue, items: Sequence, value: TextValue) -> TextValue:
    """The value written into a slice of ``x``, along whole axes instead of blocks."""
    dims = iter(x.dims)
    met = [(item, next(dims)) for item in items]
    kept = [pair for pair in met if not isinstance(pair[0], EntryIndex)]
    behind = zip(reversed(kept), reversed(value.dims), strict=False)
    for (item, axis), own in behind:
        if is_block(item):
            _check_axis(space, axis, item.axes[0])
        if own in space.blocks and not (is_block(item) and item.axes[0] == own):
            raise Mismatch(f"{value.shape} is written outside its own block", OWN_BLOCK)
    for block in [item.axes[0] for item in items if is_block(item)]:
        value = _along_whole(space, value, block)
    return value


def _along_whole(space: Space, value: TextValue, block: Axis) -> TextValue:
    if not _is_entrywise(value.expression, block):
        raise _more(block)
    new = _free_twin(space, value.expression, block, value.axes)
    e = placed(space, value.expression, {block: new})
    dims = tuple(new if axis == block else axis for axis in value.dims)
    return replace(value, expression=e, dims=dims, storage=None)


@dataclass(frozen=True)
class Pieces:
    """The list of values appended in all rounds: one value, concatenated along a place."""

    value: TextValue
    place: int


def pieces_of(space: Space, value: TextValue) -> Pieces:
    blocks = [axis for axis in value.dims if axis in space.blocks]
    if len(space.blocks) != 1 or blocks != [*space.blocks]:
        raise Refusal("a list that this loop fills", "append a tensor along the block of this loop")
    return Pieces(_along_whole(space, value, blocks[0]), value.dims.index(blocks[0]))


def joined(space: Space, name: str, pieces: Pieces, dim=ZERO) -> TextValue:
    """``torch.cat(parts, dim)``"""
    along = position(space, pieces.value, dim)
    if name not in JOINING or space.blocks or along != pieces.place:
        problem = f"{name} of a list that a loop over blocks filled"
        raise Refusal(problem, f"write torch.cat(parts, {pieces.place}) after the loop")
    return pieces.value


def sum_of_blocks(space: Space, e: Expr, block: Axis) -> Expr:
    """The sum over all blocks; each term is one sum over its block."""
    return Add(*(_whole_sum(space, term, block) for term in Add.make_args(e.expand())))


def _whole_sum(space: Space, term: Expr, block: Axis) -> Expr:
    factors = Mul.make_args(term)
    sums = [f for f in factors if isinstance(f, Sum) and block in f.axes]
    rest = Mul(*(f for f in factors if f not in sums))
    if len(sums) != 1 or block in axes_of(rest) or not _is_entrywise(rest, block):
        raise _more(block)
    (one,) = sums
    if not _is_entrywise(one.operand, block):
        raise _more(block)
    new = _free_twin(space, one.operand, block)
    axes = [new if axis == block else axis for axis in one.axes]
    return rest * Sum.over(renamed(one.operand, {block: new}), axes)


def _free_twin(space: Space, e: Expr, block: Axis, taken: Sequence[Axis] = ()) -> Axis:
    """An axis as long as all blocks together that the expression neither varies along nor binds; a
    twin made by renaming would have the block's length.
    """
    bound = {axis for node in e.atoms(ArrayNode) for axis in (*node.binds, *node.brings)}
    return space.twin(space.blocks[block], {*taken, *axes_of(e), *bound})


def _is_entrywise(e: Expr, block: Axis) -> bool:
    """Whether nothing in it reduces or scans along the block or uses its length."""
    along = any(block in (*node.binds, *node.brings) for node in e.atoms(ArrayNode))
    return not along and not e.has(block)


def _more(block: Axis) -> Refusal:
    return Refusal("a line in this loop depends on where the blocks end", OWN_BLOCK)
