"""Functions of a pasted text, inlined where they are called."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import Any

from derive.claims.reading.containers import name_of, placed_at
from derive.claims.reading.refusals import MARK, Refusal


@dataclass(frozen=True)
class Callee:
    """A function of the text, and its enclosing scope."""

    function: ast.FunctionDef | ast.Lambda
    scope: Any = None  # a `Scope`


def arguments_of(function: ast.FunctionDef | ast.Lambda) -> dict[str, ast.expr | None]:
    """The parameters of a function, each with its default or None."""
    own = function.args
    positional = [*own.posonlyargs, *own.args]
    defaults = [None] * (len(positional) - len(own.defaults)) + own.defaults
    pairs = zip((*positional, *own.kwonlyargs), (*defaults, *own.kw_defaults), strict=True)
    return {argument.arg: default for argument, default in pairs}


def called(scope: Any, name: str, callee: Callee, call: ast.Call) -> ast.expr:
    """The result of a call, whose lines are inserted before the calling line."""
    if name in scope.calling:
        raise Refusal(f"{name} calls itself", "write what it computes", call)
    wanted = arguments_of(callee.function)
    parts = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = [*wanted][: len(call.args)] + [keyword.arg for keyword in call.keywords]
    unread = any(isinstance(part, ast.Starred) for part in parts)
    if unread or len(parts) != len(names) or not {*names} <= {*wanted}:
        raise Refusal(f"{name} takes {', '.join(wanted)}", "call it with those", call)
    given = {n: scope.visit(part) for n, part in zip(names, parts, strict=True)}
    outer = callee.scope
    inner = scope.beside(name, f"{name}{len(scope.before)}_{call.lineno}_{call.col_offset}")
    inner.meant = {**outer.meant} if outer is not None else {}
    for own, default in wanted.items():
        value = given.get(own, default)
        if value is None:
            raise Refusal(f"{name} takes {own}", "call it with that", call)
        if not isinstance(value, (ast.Name, ast.Constant, ast.Tuple, ast.Dict)):
            bound = ast.Name(f"{inner.name}{MARK}{own}", ast.Store())
            scope.before.append(placed_at(ast.Assign([bound], value), call))
            value = ast.Name(bound.id, ast.Load())
        inner.meant[own] = value
        if name_of(value) in scope.caches:
            inner.caches.add(own)
    function = copy.deepcopy(callee.function)
    if isinstance(function, ast.Lambda):
        return inner.visit(function.body)
    scope.before += inner.lines(function.body)
    if inner.result is None:
        raise Refusal(f"{name} returns nothing", "write what it computes", call)
    return inner.result.node
