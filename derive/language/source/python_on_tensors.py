"""Refuse Python code that evaluates a tensor before the mathematics can, and suggest a rewrite.

``x == 0`` compares two formulas structurally, ``if``, ``and`` and ``not`` test whether a formula
exists, and ``diff(h, x)`` sees a symbol in place of the statement ``h``: each returns at once, with
a result that was not meant. Every line is therefore checked before it runs, with the current values
of its names; plain numbers are left to Python.

An entry of `checks` receives a node and its `LineReader`, and raises `NotationError` if the node
would evaluate a tensor, a condition or an axis.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType

from derive.language.errors import NotationError, Place
from derive.language.nodes import Max, Min, Sum
from derive.language.source.called_functions import FUNCTIONS, arguments_of, lines_of, spread
from derive.language.source.class_source import MISSING, children, decides_in_python
from derive.language.source.dimensions import MOVES, NAMED_AXES, dimensions_named, numbered, unmoved
from derive.language.source.indexing import indexed
from derive.language.source.line_reader import (
    COMPREHENSIONS,
    INFORMATION,
    BodySoFar,
    LineReader,
    arguments,
    function_of,
    is_library,
    package_of,
)
from derive.language.source.python_operators import (
    chosen,
    compared,
    joined,
    negated,
    operated,
    written,
)
from derive.language.source.python_statements import (
    assigned,
    assigned_again,
    branched,
    comprehended,
    defined,
    looped,
    matched,
    named_inside,
    only_annotated,
    unnamed,
)
from derive.language.source.rewrites import (
    as_plain,
    in_sympy,
    is_method,
    no_formula,
    rewrite_of,
    works_on,
    works_on_numbers,
)
from derive.language.source.spellings import (
    HAS,
    NODES,
    SIZE,
    in_the_notation,
    is_pointwise,
    spellings,
)
from derive.language.source.typed_conditions import check_conditions
from derive.language.symbols import Axis, Tensor

METHODS = "tensors have no methods here"
DEEPEST = 8  # nested calls


def check_line(statement: ast.stmt, value_of: Callable[[str], object], body: BodySoFar) -> None:
    """Refuse Python code in a statement that would decide about a tensor. Raises `NotationError`
    with the line.

    For a compound statement such as a loop, only its head is checked.
    """
    _check(_own_nodes(statement), LineReader(value_of, body), body.file)


def _check(nodes: Iterable[ast.AST], reader: LineReader, file: str) -> None:
    for node in nodes:
        check = checks.get(type(node))
        if check is None:
            continue
        try:
            check(node, reader)
        except NotationError as error:
            if not error.is_placed:  # as it is in a called function
                error.place, error.is_placed = Place(file, node.lineno), True
            raise error.with_traceback(None) from None


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes that the class body itself runs: not nested statements, nor functions and
    comprehensions, which do not see its names.
    """
    unread: list[ast.AST] = [statement]
    while unread:
        node = unread.pop()
        yield node
        if isinstance(node, COMPREHENSIONS):
            unread.append(node.generators[0].iter)
        elif not isinstance(node, FUNCTIONS):
            unread += [n for n in children(node) if not isinstance(n, BLOCKS)]


BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def _attribute(node: ast.Attribute, reader: LineReader) -> None:
    if node.attr in INFORMATION or not reader.is_tensor(node.value):
        return
    if is_pointwise(node.attr) and node.attr not in spellings:
        remedy = in_sympy(node.attr, ast.unparse(node.value), reader)
    elif size := _size_meant(node.attr, node.value, reader):
        remedy = size
    elif node.attr in MOVES:
        remedy = f"write {ast.unparse(unmoved(node))}: axes have names, and nothing is moved"
    else:
        remedy = in_the_notation(node.attr)
    raise NotationError(f"{written(node)}: {METHODS}", remedy)


def _size_meant(asked: str, of: ast.expr, reader: LineReader) -> str:
    """The remedy where an axis is ``asked`` for its size; else empty."""
    if in_the_notation(asked) != SIZE and asked not in ("int", "float"):
        return ""
    is_axis = isinstance(reader.value(of), Axis)
    return f"write {ast.unparse(of)}: an axis stands for its own size" if is_axis else ""


def _called(node: ast.Call, reader: LineReader) -> None:
    _check_passed(node, reader)
    plain = as_plain(node)
    function = reader.value(plain.func if plain is node else node.func.func)
    if refused := no_formula(function, plain, reader):
        raise NotationError(f"{written(node)}: {refused[0]}", refused[1])
    if isinstance(node.func, ast.Constant):
        function = node.func.value
    elif function is MISSING or plain is not node:
        return _called_unknown(node, reader)
    check_conditions(function, node, reader)
    if function in (Sum, Max, Min) and node.args and numbered(node, function, reader):
        _check_parts(node, reader)
        raise NotationError(
            f"{written(node)}: {NAMED_AXES}",
            dimensions_named(node, function, reader).removesuffix(f", and {NAMED_AXES}"),
        )
    if isinstance(function, (Tensor, Axis, int, float)):
        a, b = written(node.func), ", ".join(map(ast.unparse, node.args))
        raise NotationError(f"{written(node)}: {a} is not a function", f"write {a} * ({b})")
    function = function_of(function)
    if isinstance(function, FunctionType) and not is_library(function, reader.body.file):
        _check_function(function, node, reader)
    elif works_on_numbers(node, function, reader):
        _refuse(function, node, reader)


def _refuse(function: object, node: ast.Call, reader: LineReader) -> None:
    """Refuse a library function, and suggest a rewrite."""
    name = getattr(function, "__name__", type(function).__name__)
    if package_of(function) == "sympy" and name in NODES:
        raise NotationError(
            f"{name} is SymPy's here, and not part of the notation",
            f"import {name} from gradform, after SymPy",
        )
    _check_parts(node, reader)
    remedy = _size_meant(name, node.args[0], reader) if len(node.args) == 1 else ""
    remedy = remedy or rewrite_of(node, function, reader) or HAS
    raise NotationError(f"{written(node)}: {works_on(function)}", remedy)


def _called_unknown(node: ast.Call, reader: LineReader) -> None:
    """Refuse an unknown method or function whose meaning is known from another library."""
    _check_parts(node, reader)
    function = node.func
    if is_method(node, reader):
        said = METHODS
    elif reader.is_tensor(function) or not any(map(reader.holds, arguments(node))):
        return
    elif isinstance(function, ast.Name):
        if function.id in reader.body.assigned:
            return
        said = "this is unknown here, and not part of the notation"
    else:
        said = works_on(MISSING)
    size = _size_meant(function.attr, function.value, reader) if said == METHODS else ""
    if remedy := size or rewrite_of(node, MISSING, reader):
        raise NotationError(f"{written(node)}: {said}", remedy)


def _check_parts(node: ast.Call, reader: LineReader) -> None:
    """Check operands first: the rewrite of the whole call contains theirs."""
    of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    for part in (part for each in (*of, *arguments(node)) for part in ast.walk(unmoved(each))):
        if type(part) in checks:
            checks[type(part)](part, reader)


def _check_passed(call: ast.Call, reader: LineReader) -> None:
    """Check a lambda that is called immediately, and functions passed together with tensors."""
    passed = [a for a in (call.func, *call.args) if isinstance(a, ast.Lambda)]
    functions = [function_of(reader.value(a)) for a in call.args if not reader.is_tensor(a)]
    if not any(map(reader.holds, arguments(call))):
        return
    for function in functions:
        if isinstance(function, FunctionType) and not is_library(function, reader.body.file):
            _check_lines_of(function, frozenset(function.__code__.co_varnames), frozenset(), reader)
    for node in passed:
        names = frozenset(a.arg for a in node.args.args)
        tensors = reader.tensors | names
        inner = LineReader(reader.value_of, reader.body, tensors, reader.collections, reader.depth)
        for part in ast.walk(node.body):
            if type(part) in checks:
                checks[type(part)](part, inner)


def _check_function(function: FunctionType, call: ast.Call, reader: LineReader) -> None:
    """Check the lines of a user's own function, some of whose arguments are tensors."""
    tensors, collections = arguments_of(function, call, reader)
    if tensors | collections:
        _check_lines_of(function, tensors, collections, reader)


def _check_lines_of(
    function: FunctionType, tensors: frozenset[str], collections: frozenset[str], reader: LineReader
) -> None:
    if reader.depth >= DEEPEST:
        return
    code, lines = function.__code__, lines_of(function)
    if not lines:
        if decides_in_python(code):
            raise NotationError(
                f"the source of {function.__name__} cannot be read, and it "
                "compares or branches, perhaps on a tensor",
                "define it in a file, or write the statement out",
            )
        return
    names = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def value_of(name: str) -> object:
        if name in code.co_varnames or name in code.co_cellvars:
            return MISSING
        if name in names:
            return _content(names[name])
        return function.__globals__.get(name, getattr(builtins, name, MISSING))

    inner = LineReader(value_of, reader.body, tensors, collections, reader.depth + 1)
    inner.tensors, inner.collections = spread(lines, inner)
    _check((node for line in lines for node in ast.walk(line)), inner, code.co_filename)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


checks: dict[type[ast.AST], Callable[..., None]] = {
    ast.Compare: compared,
    ast.BoolOp: joined,
    ast.UnaryOp: negated,
    ast.IfExp: chosen,
    ast.If: branched,
    ast.While: branched,
    ast.Assert: branched,
    ast.For: looped,
    ast.Match: matched,
    ast.BinOp: operated,
    ast.Subscript: indexed,
    ast.Attribute: _attribute,
    ast.Call: _called,
    ast.AugAssign: assigned_again,
    ast.NamedExpr: named_inside,
    ast.AnnAssign: only_annotated,
    ast.Expr: unnamed,
    ast.FunctionDef: defined,
    ast.AsyncFunctionDef: defined,
    ast.Assign: assigned,
    ast.ListComp: comprehended,
    ast.SetComp: comprehended,
    ast.DictComp: comprehended,
    ast.GeneratorExp: comprehended,
}
