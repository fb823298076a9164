"""Integer indices and slices, rewritten in the notation."""

from __future__ import annotations

import ast

from derive.language.errors import NotationError
from derive.language.source.class_source import MISSING
from derive.language.source.dimensions import dimensions_named, views_of
from derive.language.source.line_reader import LineReader
from derive.language.source.python_operators import written
from derive.language.source.shown import Unclear
from derive.language.source.spellings import spellings
from derive.language.symbols import Axis, Tensor

PICK = (
    "pick with Sum(OneHot(labels, C) * x, C), or Sum(OneHot(0, G) * x, G) where "
    'G = Axis("G", 4); Rename(x, N, M) is the same tensor along M'
)


def indexed(node: ast.Subscript, reader: LineReader) -> None:
    """Refuse an indexed tensor, and a size by number. For torch's tuple of gradients, suggest a
    replacement of the call.
    """
    of = node.value
    if isinstance(of, ast.Attribute) and of.attr == "shape" and reader.is_tensor(of.value):
        remedy = size_named(of.value, node.slice, reader)
        raise NotationError(f"{written(node)}: tensors have no methods here", remedy)
    if reader.is_tensor(of) and not _are_gradients(of):
        try:
            remedy = _picked(of, getattr(node.slice, "elts", [node.slice]), reader)
        except Unclear:
            remedy = PICK
        raise NotationError(f"{written(node)}: tensors are not indexed by number", remedy)


def size_named(x: ast.AST, dim: ast.AST, reader: LineReader) -> str:
    """The rewrite of ``x.shape[dim]`` in the notation."""
    call = ast.Call(ast.Attribute(x, "size", ast.Load()), [dim], [])
    return dimensions_named(call, MISSING, reader)


def _picked(x: ast.AST, parts: list[ast.AST], reader: LineReader) -> str:
    """The rewrite of ``x[parts]`` in the notation. Raises `Unclear`."""
    text = ast.unparse(x)
    operand = text if isinstance(x, (ast.Name, ast.Call)) else f"({text})"
    parts = [part for part in parts if getattr(part, "value", part) is not None]
    chosen = [(i, part) for i, part in enumerate(parts) if not _is_whole(part)]
    if not chosen:
        return f"write {text}: tensors broadcast by the names of their axes"
    labels = [(i, part) for i, part in chosen if _label(part, reader)]
    if len(labels) == 1:
        (place, label), own = labels[0], _label(labels[0][1], reader)
        view = [axis for axis in views_of(x, reader)[0] if axis is not None]
        free = [axis for axis in view if axis not in own.axes]
        axis = view[place] if len(view) > place and view[place] in free else (free or [None])[0]
        if axis is not None:
            return f"write Sum(OneHot({ast.unparse(label)}, {axis}) * {operand}, {axis})"
    (place, part), *more = chosen
    axis = views_of(x, reader)[0][place] if place < len(views_of(x, reader)[0]) else None
    number = part.value if isinstance(part, ast.Constant) else None
    if more or not isinstance(axis, Axis) or not isinstance(number, int) or ... in parts:
        raise Unclear(PICK)
    code = f"write Sum(OneHot({number}, {axis}) * {operand}, {axis})"
    if axis.length is not None:
        return code
    return f'{code}, where {axis} always has as many entries: {axis} = Axis("{axis}", 4)'


def _is_whole(part: ast.AST) -> bool:
    """Whether a part of an index takes all of an axis: ``:`` or ``...``."""
    if isinstance(part, ast.Slice):
        return part.lower is part.upper is part.step is None
    return isinstance(part, ast.Constant) and part.value is ...


def _label(part: ast.AST, reader: LineReader) -> Tensor | None:
    value = reader.value(part)
    return value if isinstance(value, Tensor) and value.role == "label" else None


def _are_gradients(node: ast.AST) -> bool:
    """Whether it is a call such as ``torch.autograd.grad(u, x)``."""
    name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    return spellings.get(name) == spellings["grad"]
