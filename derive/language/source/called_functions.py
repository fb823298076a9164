"""The user's functions called in a class body: their lines, and the tensors in them.

Unknown values are assumed not to be tensors: a function may do anything with numbers.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType

from derive.language.source.class_source import file_tree
from derive.language.source.line_reader import LineReader

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def lines_of(function: FunctionType) -> list[ast.AST]:
    """The statements of a function, or the expression of a lambda; empty without source."""
    code = function.__code__
    tree = file_tree(code, function.__globals__)
    found = [node for node in _functions(tree) if _is_of(node, code)]
    return [line for node in found for line in (_list(node.body))]


def arguments_of(
    function: FunctionType, call: ast.Call, reader: LineReader
) -> tuple[frozenset[str], frozenset[str]]:
    """The parameters that receive tensors in a call, and those that receive collections of them."""
    parameters = function.__code__.co_varnames
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    if any(isinstance(a, ast.Starred) for a in call.args) or len(keywords) < len(call.keywords):
        some = any(map(reader.holds, [*call.args, *(k.value for k in call.keywords)]))
        return frozenset(parameters if some else ()), frozenset()
    try:
        bound = inspect.signature(function).bind(*call.args, **keywords).arguments
    except (TypeError, ValueError):  # the line itself will raise it
        return frozenset(), frozenset()
    tensors, collections = set(), set()
    for name, value in bound.items():
        if isinstance(value, ast.AST) and reader.is_tensor(value):
            tensors.add(name)
        elif any(map(reader.holds, _nodes(value))):
            collections.add(name)
    return frozenset(tensors), frozenset(collections)


def spread(lines: list[ast.AST], reader: LineReader) -> tuple[frozenset[str], frozenset[str]]:
    """The tensors and collections in a function, given its parameters, including names assigned
    from them.
    """
    before = None
    while before != (reader.tensors, reader.collections):
        before = reader.tensors, reader.collections
        for node in (node for line in lines for node in ast.walk(line)):
            for target, value in _assignments(node):
                _spread_to(target, value, reader)
    return reader.tensors, reader.collections


def _assignments(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of target and value assigned in a node; for a loop, the entries it goes through."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.AugAssign, ast.NamedExpr, ast.AnnAssign)) and node.value:
        yield node.target, node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        target, entries = node.target, node.iter
        counted = isinstance(entries, ast.Call) and getattr(entries.func, "id", "") == "enumerate"
        if counted and isinstance(target, ast.Tuple):
            target, entries = target.elts[-1], entries.args[0]
        yield target, ast.Subscript(entries, ast.Constant(0), ast.Load())


def _spread_to(target: ast.AST, value: ast.AST, reader: LineReader) -> None:
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    if both and len(target.elts) == len(value.elts):
        for one, its in zip(target.elts, value.elts, strict=True):
            _spread_to(one, its, reader)
        return
    names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    if reader.is_tensor(value) or (isinstance(target, ast.Tuple) and reader.holds(value)):
        reader.tensors |= names
    elif reader.holds(value):
        reader.collections |= names


@lru_cache(maxsize=8)
def _functions(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def _is_of(node: ast.AST, code: CodeType) -> bool:
    decorators = [d.lineno for d in getattr(node, "decorator_list", ())]
    own = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return (
        code.co_firstlineno in (node.lineno, *decorators)
        and code.co_name == getattr(node, "name", "<lambda>")
        and list(code.co_varnames[: len(own)]) == own
    )


def _list(body) -> list[ast.AST]:
    return body if isinstance(body, list) else [body]


def _nodes(value) -> list[ast.AST]:
    """The nodes of a bound argument; ``*args`` and ``**kwargs`` have several."""
    if isinstance(value, ast.AST):
        return [value]
    return list(value.values() if isinstance(value, dict) else value)
