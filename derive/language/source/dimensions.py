"""Dimension numbers, as in torch and numpy, and the axes they refer to.

``x.mean(dim=1)`` is answered with the axis that dimension 1 of ``x`` is, in a line that gives what
torch gives. Inputs have exactly their axes, in their order. A statement lies along its axes in the
order of the inputs, and where something was reduced on the way to it, torch may have kept a
dimension of size 1 there: what a number means is said where all these layouts agree. Where they do
not, or nothing is known, no axis is named.
"""

from __future__ import annotations

import ast
from itertools import combinations

from derive.language.nodes import Sum
from derive.language.source.class_source import MISSING
from derive.language.source.line_reader import LineReader, package_of
from derive.language.source.shown import (
    NOTES,
    OF_TWO,
    SIZES,
    NotExpressible,
    Unclear,
    along,
    goes_along,
    in_order,
    kind_of,
)
from derive.language.source.written import is_all_known, written_in
from derive.language.symbols import Axes, Axis, Tensor

NAMED_AXES = "axes are named, not numbered"

NAMES_OF_AXES = ("dim", "axis", "dims", "axes", "start_dim")
NAMES_OF_OPERANDS = ("input", "a", "x", "tensor", "input_tensor")
NUMPY = ("np", "numpy")  # used even if not imported
MOST_KEPT = 6  # axes that may have been kept with size 1; all subsets are tried
EVERY = ast.Constant(None)  # in place of dims: all of them
View = tuple[Axis | None, ...]  # the dimensions of a tensor; None is one of size 1


def dimensions_named(call: ast.Call, function: object, reader: LineReader) -> str:
    """The rewrite of a call along dimensions, with axes by name; '' for any other call.
    ``function`` is `MISSING` for a tensor method.
    """
    attribute = function is MISSING and isinstance(call.func, ast.Attribute)
    method = attribute and reader.is_tensor(unmoved(call.func.value))
    typed = getattr(call.func, "attr", getattr(call.func, "id", ""))
    name = next((n for n in (typed, getattr(function, "__name__", "")) if goes_along(n)), "")
    first = [k.value for k in call.keywords if k.arg in NAMES_OF_OPERANDS]
    arguments = [*([call.func.value] if method else first), *call.args]
    if not name or not arguments:
        return ""
    x, rest = arguments[0], arguments[1:]
    package = "" if function is MISSING else package_of(function)
    if name in OF_TWO and rest and not _axis_of(rest[0], reader):
        a, b = ast.unparse(x), ast.unparse(rest[0])
        if package == "builtins" or reader.is_tensor(rest[0]):
            return f"write {OF_TWO[name]}({a}, {b})"
    given = dict(zip(in_order(name, rest), rest, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    given |= {"p": given["ord"]} if "ord" in given else {}
    dims = next((given[n] for n in NAMES_OF_AXES if n in given), EVERY)
    if package == "builtins":
        dims = dims if _axis_of(dims, reader) else ast.Constant(0)  # loops go over the first
    torchs = package != "numpy" and ast.unparse(call.func).partition(".")[0] not in NUMPY
    try:
        views = views_of(x, reader)
        axes = _axes(dims, views, ast.unparse(x), reader)
        each = [(axis,) for axis in axes] if dims is EVERY and kind_of(name) == "Dim" else [axes]
        code = " or ".join(_line(name, unmoved(x), views, own, given, torchs) for own in each)
    except Unclear as why:
        return f"name the axis that is meant, as in Sum(x, axis): {why}"
    except NotExpressible:
        return ""
    note = f", {NOTES[name]}" if name in NOTES else ""
    lies = _along(views, ast.unparse(x))
    return f"write {code}{note}: {lies}, and {NAMED_AXES}"


def _line(name, x: ast.AST, views: list[View], axes, given, torchs: bool) -> str:
    if name in SIZES:
        return " * ".join(axes)
    real = [axis.name for axis in max(views, key=len) if axis is not None]
    return along(name, x, real, axes, given, torchs)


def _axes(dims: ast.AST, views: list[View], x: str, reader: LineReader) -> tuple[str, ...]:
    """The names of the axes that dimensions mean, in the order of the tensor."""
    real = [axis for axis in max(views, key=len) if axis is not None]
    if isinstance(dims, (ast.Tuple, ast.List)) and dims.elts:
        found = [_meant(each, views, x, reader) for each in dims.elts]
    elif _number(dims, reader) is None and not _axis_of(dims, reader):
        if getattr(dims, "value", MISSING) is not None and not isinstance(dims, ast.Tuple):
            raise Unclear(f"which dimension {ast.unparse(dims)} is cannot be read here")
        found = real
    else:
        found = [_meant(dims, views, x, reader)]
    if len({*found}) < len(found):
        raise Unclear(f"{ast.unparse(dims)} names one dimension of {x} twice")
    if not found:
        raise Unclear(f"{x} has no dimension, and nothing is reduced")
    return tuple(axis.name for axis in real if axis in found)


def _meant(dim: ast.AST, views: list[View], x: str, reader: LineReader) -> Axis:
    """The axis of one dimension. Raises `Unclear`."""
    named = _axis_of(dim, reader)
    number = _number(dim, reader)
    if named is not None:
        if named not in max(views, key=len):
            raise Unclear(f"{_along(views, x)}, and not along {named}")
        return named
    if number is None:
        raise Unclear(f"which dimension {ast.unparse(dim)} is cannot be read here")
    found = {_at(view, number) for view in views} - {None}
    if len(found) > 1:
        names = " or ".join(sorted(str(axis) for axis in found))
        raise Unclear(
            f"{_along(views, x)}, and where torch keeps dimensions of size 1, dimension {number} "
            f"is {names}"
        )
    if not found:
        raise Unclear(f"{_along(views, x)}, and has no dimension {number}")
    return found.pop()


def _at(view: View, number: int) -> Axis | None:
    """The axis of a view at ``number``; None where there is none, or one of size 1. Raises
    `Unclear` if an `Axes` makes the position ambiguous.
    """
    if not -len(view) <= number < len(view):
        several = [axis for axis in view if isinstance(axis, Axes)]
        if several:
            raise Unclear(f"{several[0]} stands for any number of dimensions")
        return None
    place = number % len(view)
    behind = view[: place + 1] if number >= 0 else view[place:]
    for axis in behind:
        if isinstance(axis, Axes):
            raise Unclear(f"{axis} stands for any number of dimensions")
    return view[place]


def unmoved(node: ast.AST) -> ast.AST:
    """The expression before transposes such as ``x.T``."""
    move = _move(node)
    return unmoved(move[1]) if move else node


def _move(node: ast.AST) -> tuple[str, ast.AST, list[ast.AST]] | None:
    """The last move of dimensions: its name, its operand and its arguments; None without one."""
    if isinstance(node, ast.Attribute) and node.attr in MOVES:
        return node.attr, node.value, []
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    name, given = node.func.attr, [*node.args, *(k.value for k in node.keywords)]
    if name not in MOVES:
        return None
    if getattr(node.func.value, "id", "") in ("torch", "np", "numpy", "jnp") and given:
        return name, given[0], given[1:]
    return name, node.func.value, given


def views_of(x: ast.AST, reader: LineReader) -> list[View]:
    """The layouts that a part of a line may have in torch, the one without dimensions of size 1
    first. Raises `Unclear`.
    """
    move = _move(x)
    if move is None:
        return _unmoved_views(x, reader)
    name, of, given = move
    views = views_of(of, reader)
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = given[0].elts
    numbers = [_number(each, reader) for each in given]
    several = any(isinstance(axis, Axes) for view in views for axis in view)
    if name not in ORDERS or None in numbers or several:
        raise Unclear(f"{name} moves its dimensions")
    try:
        return [ORDERS[name](view, *numbers) for view in views]
    except (IndexError, TypeError, ValueError):
        raise Unclear(f"{ast.unparse(x)} is not understood by torch") from None


def _swapped(view: View, a: int, b: int) -> View:
    moved = [*view]
    moved[a], moved[b] = view[b], view[a]
    return tuple(moved)


def _permuted(view: View, *order: int) -> View:
    if len(order) != len(view):
        raise ValueError
    return tuple(view[i] for i in order)


def _with_one(view: View, place: int) -> View:
    place = place if place >= 0 else len(view) + 1 + place
    return (*view[:place], None, *view[place:])


# Methods that permute dimensions, and the resulting order if it is known.
ORDERS = {
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _swapped),
    **dict.fromkeys(("mT", "mH", "t"), lambda view: _swapped(view, -1, -2)),
    **dict.fromkeys(("T", "H"), lambda view: view[::-1]),
    **dict.fromkeys(("unsqueeze", "expand_dims"), _with_one),
    "permute": _permuted,
}
MOVES = (*ORDERS, "squeeze", "movedim", "moveaxis", "adjoint", "rollaxis")


def _unmoved_views(x: ast.AST, reader: LineReader) -> list[View]:
    """Layouts of an operand whose dimensions were not permuted."""
    if not is_all_known(x, reader):
        raise Unclear(f"which axes {ast.unparse(x)} has is not known here")
    value = reader.value(x)
    if isinstance(value, Tensor) and value.role != "statement":
        return [value.axes]
    written = written_in(x, reader)
    tensors = [reader.body.tensors[name] for name in written.names if name in reader.body.tensors]
    order = _order(tensors, written.axes, reader)
    around = {axis for tensor in tensors for axis in _behind(tensor, reader)}
    gone = [axis for axis in order if axis in around - written.axes][:MOST_KEPT]
    views = []
    for count in range(len(gone) + 1):
        for kept in combinations(gone, count):
            dims = [axis for axis in order if axis in written.axes or axis in kept]
            views.append(tuple(None if axis in kept else axis for axis in dims))
    return views


def _order(tensors: list[Tensor], axes: frozenset[Axis], reader: LineReader) -> list[Axis]:
    """The order of all dimensions from which a part of a line takes its axes."""
    several = [t for t in tensors if t.role != "statement" and len(t.axes) > 1]
    if len(tensors) == 1 and several:
        return [*tensors[0].axes]
    order = list(dict.fromkeys(axis for t in reader.body.tensors.values() for axis in t.axes))
    for tensor in several:
        if sorted(tensor.axes, key=order.index) != list(tensor.axes):
            raise Unclear(f"{tensor} lies in another order than the tensors before it")
    order += [axis for axis in axes if axis not in order]
    if len(axes - {a for t in reader.body.tensors.values() for a in t.axes}) > 1:
        raise Unclear("the order of its axes is not known here")
    return order


def _behind(tensor: Tensor, reader: LineReader) -> frozenset[Axis]:
    """The axes of a tensor, and of the tensors it was computed from."""
    found, unread = frozenset(), [tensor]
    known = set()
    while unread:
        each = unread.pop()
        if each.name not in known:
            known.add(each.name)
            found |= {*each.home}
            unread += reader.body.read_by(each.name)
    return found


def _along(views: list[View], x: str) -> str:
    names = ", ".join("1" if axis is None else str(axis) for axis in views[0])
    return f"{x} lies along ({names})" if views[0] else f"{x} is along no axis"


def _axis_of(node: ast.AST, reader: LineReader) -> Axis | None:
    value = reader.value(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # torch's named tensors
        tensors = reader.body.tensors.values()
        value = next((a for t in tensors for a in t.axes if a.name == node.value), None)
    return value if isinstance(value, Axis) else None


def _number(node: ast.AST, reader: LineReader) -> int | None:
    """An integer, typed or in a variable, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, reader)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else reader.value(node)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def numbered(call: ast.Call, function: object, reader: LineReader) -> bool:
    """Whether a node of the notation is called with dimension numbers, as in torch; a lone number
    is an operand of `Max`.
    """
    alone = [a for a in call.args[1:] if function is Sum]
    along = [e for a in call.args[1:] for e in getattr(a, "elts", alone)]
    return any(k.arg in NAMES_OF_AXES for k in call.keywords) or any(
        _number(each, reader) is not None for each in along
    )


def axis_gone_through(node: ast.AST, reader: LineReader) -> str:
    """The axis meant by a loop over ``N``, ``range(N)`` or ``range(x.shape[1])``; for a tensor its
    first.
    """
    named = {value.name for n in ast.walk(node) if (value := _axis_of(n, reader)) is not None}
    if len(named) == 1:
        return named.pop()
    for each in ast.walk(node):
        shape = each.value if isinstance(each, ast.Subscript) else None
        try:
            if getattr(shape, "attr", "") == "shape":
                return str(_meant(each.slice, views_of(shape.value, reader), "it", reader))
            if reader.is_tensor(each) and not isinstance(each, (ast.Call, ast.Subscript)):
                return str(_meant(ast.Constant(0), views_of(each, reader), "it", reader))
        except Unclear:
            continue
    return "axis"
