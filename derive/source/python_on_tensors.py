"""What Python answers about a tensor before the mathematics is asked, refused with what to write.

``x == 0`` asks whether two formulas are written alike, ``if``, ``and`` and ``not`` ask whether
there is a formula at all, ``diff(h, x)`` sees a symbol where the statement ``h`` stands: each gives
an answer at once, and a statement that is made of it is not what was meant. So a line is looked at
before it is run, with the values that its names have then: what is said of plain numbers is Python
and none of our business.

An entry of `checks` receives the node and its `Reader`, and raises `NotationError` where what it
stands for would be asked of a tensor, a condition or an axis.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from types import CellType, FunctionType

from sympy import Piecewise
from sympy.logic.boolalg import BooleanFunction

from derive.language.errors import NotationError, Place
from derive.language.nodes import Max, Sum
from derive.source.called_functions import FUNCTIONS, arguments_of, lines_of, spread
from derive.source.class_source import MISSING, children, decides_in_python
from derive.source.dimensions import (
    dimensions_named,
    numbered,
    refused_dimensions,
    size_named,
    unmoved,
)
from derive.source.line_reader import (
    COMPREHENSIONS,
    INFORMATION,
    Body,
    Reader,
    arguments,
    function_of,
    is_library,
    is_pythons,
    makes_formulas,
    package_of,
)
from derive.source.python_operators import (
    chosen,
    compared,
    is_number,
    joined,
    negated,
    operated,
    written,
)
from derive.source.python_statements import (
    assigned_again,
    branched,
    comprehended,
    looped,
    matched,
    named_inside,
    only_annotated,
    unnamed,
)
from derive.source.spellings import NODES, in_the_notation, is_pointwise, spellings

DEEPEST = 8  # functions that call each other


class Placed(NotationError):
    """A mistake with the very line that it stands on."""


def check_line(statement: ast.stmt, value_of: Callable[[str], object], body: Body) -> None:
    """Refuse what a statement of a class body asks of Python; raises `NotationError` with the line.

    Of a statement that holds others, such as a loop, its head is looked at.
    """
    _check(_own_nodes(statement), Reader(value_of, body), body.file)


def _check(nodes: Iterable[ast.AST], reader: Reader, file: str) -> None:
    for node in nodes:
        check = checks.get(type(node))
        if check is None:
            continue
        try:
            check(node, reader)
        except Placed:  # in a function that was called
            raise
        except NotationError as error:
            raise Placed(error.problem, error.remedy, Place(file, node.lineno)) from None


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that the class body itself runs: not those of the statements in it,
    nor of functions and comprehensions, which do not see its names.
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


def _indexed(node: ast.Subscript, reader: Reader) -> None:
    of = node.value
    if isinstance(of, ast.Attribute) and of.attr == "shape" and reader.is_tensor(of.value):
        remedy = size_named(of.value, node.slice, reader)
        raise NotationError(f"{written(node)}: tensors have no methods here", remedy)
    if reader.is_tensor(node.value):
        raise NotationError(
            f"{written(node)}: tensors are not indexed by number",
            "pick with Sum(OneHot(labels, C) * x, C), or Sum(OneHot(0, G) * x, G) where "
            'G = Axis("G", 4); Rename(x, N, M) is the same tensor along M',
        )


def _attribute(node: ast.Attribute, reader: Reader) -> None:
    if node.attr in INFORMATION or not reader.is_tensor(node.value):
        return
    own = is_pointwise(node.attr) and node.attr not in spellings
    remedy = f"write {node.attr}({written(node.value)}), with {node.attr} from sympy"
    raise NotationError(
        f"{written(node)}: tensors have no methods here",
        remedy if own else in_the_notation(node.attr),
    )


def _called(node: ast.Call, reader: Reader) -> None:
    _check_passed(node, reader)
    function = reader.value(node.func)
    if function is MISSING:
        _check_parts(node, reader)
        return refused_dimensions(node, reader)
    name = getattr(function, "__name__", type(function).__name__)
    given = [a for a in arguments(node) if reader.is_tensor(unmoved(a))]
    _check_conditions(function, node, reader)
    if function in (Sum, Max) and node.args and numbered(node, reader):
        _check_parts(node, reader)
        raise NotationError(
            f"{written(node)}: axes are named, not numbered",
            dimensions_named(node, function, reader),
        )
    function = function_of(function)
    if isinstance(function, FunctionType) and not is_library(function, reader.body.file):
        _check_function(function, node, reader)
    elif given and not makes_formulas(function, reader.body.file):
        if package_of(function) == "sympy" and name in NODES:
            raise NotationError(
                f"{name} is SymPy's here, and not part of the notation",
                f"import {name} from derive, after SymPy",
            )
        _check_parts(node, reader)
        named = dimensions_named(node, function, reader)
        own = is_pointwise(name) and not named
        remedy = f"use SymPy's: from sympy import {name}" if own else named or in_the_notation(name)
        raise NotationError(f"{written(node)}: {_works_on(function)}", remedy)


def _check_parts(node: ast.Call, reader: Reader) -> None:
    """What is wrong inside is said first: what is written for the whole stands around it."""
    of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    for part in (part for each in (*of, *arguments(node)) for part in ast.walk(unmoved(each))):
        if type(part) in checks:
            checks[type(part)](part, reader)


def _check_conditions(function: object, node: ast.Call, reader: Reader) -> None:
    """What SymPy takes for a condition is one, and no tensor: to SymPy both are symbols."""
    conditions = []
    if function is Piecewise:
        pairs = [a for a in node.args if isinstance(a, ast.Tuple) and len(a.elts) == 2]
        conditions = [pair.elts[1] for pair in pairs]
    elif isinstance(function, type) and issubclass(function, BooleanFunction):
        conditions = node.args
    for condition in conditions:
        if is_number(condition, reader):
            raise NotationError(
                f"{written(node)}: {written(condition)} is a tensor, and no condition",
                f"compare it: Ne({written(condition)}, 0)",
            )


def _works_on(function: object) -> str:
    package = package_of(function)
    if package == "sympy":
        return "that works on how a formula is written, and a statement is a name in it"
    if is_pythons(function):
        return f"Python's {function.__name__} asks for a number or for entries, once"
    return "that works on numbers, and a tensor is a formula here"


def _check_passed(call: ast.Call, reader: Reader) -> None:
    """A lambda that is called at once, and functions that are passed on together with tensors."""
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
        inner = Reader(reader.value_of, reader.body, tensors, reader.collections, reader.depth)
        for part in ast.walk(node.body):
            if type(part) in checks:
                checks[type(part)](part, inner)


def _check_function(function: FunctionType, call: ast.Call, reader: Reader) -> None:
    """The lines of a function of the user's own, where some of its arguments are tensors."""
    tensors, collections = arguments_of(function, call, reader)
    if tensors | collections:
        _check_lines_of(function, tensors, collections, reader)


def _check_lines_of(
    function: FunctionType, tensors: frozenset[str], collections: frozenset[str], reader: Reader
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

    inner = Reader(value_of, reader.body, tensors, collections, reader.depth + 1)
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
    ast.Subscript: _indexed,
    ast.Attribute: _attribute,
    ast.Call: _called,
    ast.AugAssign: assigned_again,
    ast.NamedExpr: named_inside,
    ast.AnnAssign: only_annotated,
    ast.Expr: unnamed,
    ast.ListComp: comprehended,
    ast.SetComp: comprehended,
    ast.DictComp: comprehended,
    ast.GeneratorExp: comprehended,
}
