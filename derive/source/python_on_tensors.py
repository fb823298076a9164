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
from itertools import pairwise
from types import CellType, FunctionType

from sympy import Add, Mul, Piecewise
from sympy.logic.boolalg import BooleanFunction

from derive.language.errors import NotationError, Place
from derive.language.symbols import Axis, Tensor
from derive.source.called_functions import FUNCTIONS, arguments_of, lines_of, spread
from derive.source.class_source import MISSING, children, decides_in_python
from derive.source.line_reader import (
    COMPREHENSIONS,
    INFORMATION,
    Reader,
    arguments,
    function_of,
    is_library,
    is_pythons,
    is_symbolic,
    makes_formulas,
    package_of,
)
from derive.source.spellings import NODES, in_the_notation, is_pointwise

DEEPEST = 8  # functions that call each other

ENTRIES = "nothing goes through the entries of a tensor or the indices of an axis"


class Placed(NotationError):
    """A mistake with the very line that it stands on."""


def check_line(statement: ast.stmt, value_of: Callable[[str], object], file: str) -> None:
    """Refuse what a statement of a class body asks of Python; raises `NotationError` with the line.

    Of a statement that holds others, such as a loop, its head is looked at.
    """
    _check(_own_nodes(statement), Reader(value_of), file)


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


def _compared(node: ast.Compare, reader: Reader) -> None:
    sides = [node.left, *node.comparators]
    for (left, right), compare in zip(pairwise(sides), node.ops, strict=True):
        if not (reader.holds(left) or reader.holds(right)) or _is_none(left) or _is_none(right):
            continue
        a, b = written(left), written(right)
        if isinstance(compare, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            differs = isinstance(compare, (ast.IsNot, ast.NotEq))
            name = "Ne" if differs else "Eq"
            sign = {ast.Is: "is", ast.IsNot: "is not", ast.Eq: "==", ast.NotEq: "!="}
            raise NotationError(
                f"{a} {sign[type(compare)]} {b} asks Python whether the two are written alike, and "
                f"is {differs} at once, whatever their entries are",
                f"write {name}({a}, {b}), with {name} from sympy",
            )
        if isinstance(compare, (ast.In, ast.NotIn)):
            raise NotationError(
                f"{written(node)} asks Python what is written there, not what its entries are",
                f"write Or(Eq({a}, ...), Eq({a}, ...)), with Eq and Or from sympy",
            )
    if len(node.ops) > 1 and any(map(reader.is_tensor, sides)):
        pairs = zip(pairwise(sides), node.ops, strict=True)
        parts = ", ".join(written(ast.Compare(a, [op], [b])) for (a, b), op in pairs)
        raise NotationError(
            f"{written(node)} is two comparisons, of which Python drops one",
            f"write And({parts}), with And from sympy",
        )


def _joined(node: ast.BoolOp, reader: Reader) -> None:
    if any(map(reader.is_tensor, node.values)):
        word, name = ("and", "And") if isinstance(node.op, ast.And) else ("or", "Or")
        parts = ", ".join(map(_condition, node.values))
        raise NotationError(
            f"{written(node)}: Python's {word} takes one of the two, whatever their entries are",
            f"write {name}({parts}), with {name} from sympy",
        )


def _condition(node: ast.AST) -> str:
    """How a part is written as a condition."""
    if isinstance(node, (ast.Compare, ast.Call)):
        return written(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"Not({_condition(node.operand)})"
    return f"Ne({written(node)}, 0)"


def _negated(node: ast.UnaryOp, reader: Reader) -> None:
    if isinstance(node.op, ast.Invert) and _is_number(node.operand, reader):
        raise NotationError(
            f"{written(node)} works on conditions, and a tensor is none",
            f"compare it: Eq({written(node.operand)}, 0)",
        )
    if isinstance(node.op, ast.Not) and reader.is_tensor(node.operand):
        compared = isinstance(node.operand, (ast.Compare, ast.Call))
        code = f"Not({written(node.operand)})" if compared else f"Eq({written(node.operand)}, 0)"
        raise NotationError(
            f"{written(node)}: Python's not is False of every formula, whatever its entries are",
            f"write {code}, with {code.partition('(')[0]} from sympy",
        )


def _chosen(node: ast.IfExp, reader: Reader) -> None:
    if reader.is_tensor(node.test):
        a, b = written(node.body), written(node.orelse)
        raise NotationError(
            f"{written(node)}: Python chooses once, not for every entry",
            f"write Piecewise(({a}, {_condition(node.test)}), ({b}, True))",
        )


def _branched(node, reader: Reader) -> None:
    if reader.is_tensor(node.test):
        word = type(node).__name__.lower()
        raise NotationError(
            f"{word} {written(node.test)}: Python decides once, not for every entry",
            f"write Piecewise((a, {_condition(node.test)}), (b, True)) on one line",
        )


def _looped(node, reader: Reader) -> None:
    if reader.is_tensor(node.iter):
        raise NotationError(
            f"for {written(node.target)} in {written(node.iter)}: {ENTRIES}",
            "write Sum(x, N) or Max(x, C); the index along N is Position(N), in comparisons",
        )


def _matched(node: ast.Match, reader: Reader) -> None:
    if reader.holds(node.subject):
        raise NotationError(
            f"match {written(node.subject)}: Python decides once, not for every entry",
            "write Piecewise((a, Eq(x, 0)), (b, True)) on one line",
        )


def _operated(node: ast.BinOp, reader: Reader) -> None:
    sides = (node.left, node.right)
    if isinstance(node.op, ast.MatMult) and any(map(reader.is_tensor, sides)):
        raise NotationError(
            f"{written(node)}: @ goes by the order of dimensions, and there is none",
            "a matrix product is Sum(a * b, K)",
        )
    logical = (ast.BitXor, ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift)
    if isinstance(node.op, logical) and any(_is_number(side, reader) for side in sides):
        power = isinstance(node.op, ast.BitXor)
        a, b = map(written, sides)
        raise NotationError(
            f"{written(node)} works on conditions, and a tensor is none",
            f"a power is {a}**{b}" if power else f"compare first: And(Ne({a}, 0), Ne({b}, 0))",
        )


def _is_number(node: ast.AST, reader: Reader) -> bool:
    """Whether it is a tensor or made of one by arithmetic: no condition."""
    value = reader.value(node)
    if isinstance(value, (Tensor, Axis)) or (is_symbolic(value) and isinstance(value, Add | Mul)):
        return True
    arithmetic = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
    return (
        isinstance(node, ast.BinOp) and isinstance(node.op, arithmetic) and (reader.is_tensor(node))
    )


def _indexed(node: ast.Subscript, reader: Reader) -> None:
    if reader.is_tensor(node.value):
        raise NotationError(
            f"{written(node)}: tensors are not indexed by number",
            "pick with Sum(OneHot(labels, C) * x, C), or Sum(OneHot(0, G) * x, G) where "
            'G = Axis("G", 4); Rename(x, N, M) is the same tensor along M',
        )


def _attribute(node: ast.Attribute, reader: Reader) -> None:
    if node.attr in INFORMATION or not reader.is_tensor(node.value):
        return
    own = is_pointwise(node.attr)
    remedy = f"write {node.attr}({written(node.value)}), with {node.attr} from sympy"
    raise NotationError(
        f"{written(node)}: tensors have no methods here",
        remedy if own else in_the_notation(node.attr),
    )


def _called(node: ast.Call, reader: Reader) -> None:
    _check_passed(node, reader)
    function = reader.value(node.func)
    if function is MISSING:
        return
    name = getattr(function, "__name__", type(function).__name__)
    given = [a for a in arguments(node) if reader.is_tensor(a)]
    _check_conditions(function, node, reader)
    function = function_of(function)
    if isinstance(function, FunctionType) and not is_library(function):
        _check_function(function, node, reader)
    elif given and not makes_formulas(function):
        if package_of(function) == "sympy" and name in NODES:
            raise NotationError(
                f"{name} is SymPy's here, and not part of the notation",
                f"import {name} from derive, after SymPy",
            )
        own = is_pointwise(name)
        remedy = f"use SymPy's: from sympy import {name}" if own else in_the_notation(name)
        raise NotationError(f"{written(node)}: {_works_on(function)}", remedy)


def _check_conditions(function: object, node: ast.Call, reader: Reader) -> None:
    """What SymPy takes for a condition is one, and no tensor: to SymPy both are symbols."""
    conditions = []
    if function is Piecewise:
        pairs = [a for a in node.args if isinstance(a, ast.Tuple) and len(a.elts) == 2]
        conditions = [pair.elts[1] for pair in pairs]
    elif isinstance(function, type) and issubclass(function, BooleanFunction):
        conditions = node.args
    for condition in conditions:
        if _is_number(condition, reader):
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
        if isinstance(function, FunctionType) and not is_library(function):
            _check_lines_of(function, frozenset(function.__code__.co_varnames), frozenset(), reader)
    for node in passed:
        names = frozenset(a.arg for a in node.args.args)
        inner = Reader(reader.value_of, reader.tensors | names, reader.collections, reader.depth)
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

    inner = Reader(value_of, tensors, collections, reader.depth + 1)
    inner.tensors, inner.collections = spread(lines, inner)
    _check((node for line in lines for node in ast.walk(line)), inner, code.co_filename)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


def _assigned_again(node: ast.AugAssign, reader: Reader) -> None:
    if reader.depth == 0 and reader.is_tensor(node.target):
        name = written(node.target)
        raise NotationError(
            f"{name} is defined already, and {written(node)} would define it again",
            f"give the result a name of its own: {name}_2 = "
            f"{written(ast.BinOp(node.target, node.op, node.value))}",
        )


def _named_inside(node: ast.NamedExpr, reader: Reader) -> None:
    if reader.depth == 0 and reader.is_tensor(node.value):
        raise NotationError(
            f"{written(node.target)} is defined inside of another line",
            f"give it a line of its own: {written(node.target)} = {written(node.value)}",
        )


def _only_annotated(node: ast.AnnAssign, reader: Reader) -> None:
    if reader.depth == 0 and node.value is None:
        raise NotationError(
            f"{written(node)} defines nothing in Python: it is an annotation",
            f"write {written(node.target)} = {written(node.annotation)}",
        )


def _unnamed(node: ast.Expr, reader: Reader) -> None:
    value = node.value
    calls = isinstance(value, ast.Call) and package_of(reader.value(value.func)) in OURS
    formula = calls or isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name))
    if reader.depth == 0 and formula and reader.is_tensor(value):
        raise NotationError(
            f"{written(value)} has no name, so that nothing is stated",
            f"give it one: h = {written(value)}",
        )


OURS = ("derive", "sympy")


def _comprehended(node, reader: Reader) -> None:
    for generator in node.generators:
        _looped(generator, reader)


def written(node: ast.AST) -> str:
    """A part of a line as its author wrote it, or nearly."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


checks: dict[type[ast.AST], Callable[..., None]] = {
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.UnaryOp: _negated,
    ast.IfExp: _chosen,
    ast.If: _branched,
    ast.While: _branched,
    ast.Assert: _branched,
    ast.For: _looped,
    ast.Match: _matched,
    ast.BinOp: _operated,
    ast.Subscript: _indexed,
    ast.Attribute: _attribute,
    ast.Call: _called,
    ast.AugAssign: _assigned_again,
    ast.NamedExpr: _named_inside,
    ast.AnnAssign: _only_annotated,
    ast.Expr: _unnamed,
    ast.ListComp: _comprehended,
    ast.SetComp: _comprehended,
    ast.DictComp: _comprehended,
    ast.GeneratorExp: _comprehended,
}
