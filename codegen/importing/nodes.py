"""Convert trees to mathematics: the nodes of ``derive.language``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy
from sympy import ITE, And, Basic, Eq, Expr, Ge, Gt, Le, Lt, Ne, Not, Or, Piecewise

from derive.language.functions import function_named, in_known_functions
from derive.language.kept_labels import Kept
from derive.language.lexicon import WORDS
from derive.language.nodes import Broadcast, Flatten, Max, OneHot, Position, Sum, Unflatten, renamed
from derive.language.reading_at import At
from derive.language.symbols import MINUS_INFINITY, Axis
from derive.language.torch_ops.trees import Tree, pairs_of

RELATIONS = {"<": Lt, "<=": Le, ">": Gt, ">=": Ge, "==": Eq, "!=": Ne}
ALONG: Mapping[str, Callable] = {
    "sum": Sum,
    "max": Max,
    "broadcast": Broadcast,
    "one hot": OneHot,
    "kept": Kept,
}
COMBINED: Mapping[str, Callable] = {
    "sum_of": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "minus": lambda a: -a,
    "and": And,
    "or": Or,
    "not": Not,
}


def mathematics(e: Tree, tensors: Mapping[str, Expr], axes: Mapping[str, Axis]) -> Basic:
    """``e`` over these tensors, in their own axes; a condition becomes one of SymPy's.

    Raises `KeyError` for a name that is not among them and `NotationError` for what the notation
    refuses.
    """
    kind, args = e.kind, e.args
    if kind == "number":
        value = args[0].xreplace({s: axes[s.name] for s in args[0].free_symbols})
        return MINUS_INFINITY if value == -sympy.oo else value
    if kind == "tensor":
        return tensors[args[0]]
    if kind == "truth":
        return sympy.true if args[0] else sympy.false
    if kind == "position":
        return Position(axes[args[0]])
    parts = [mathematics(a, tensors, axes) for a in args if isinstance(a, Tree)]
    if kind == "at":
        return _read(parts[0], args, axes)
    if kind == "scan":
        word, _, (axis,), options = args
        reverse = {"reverse": True} if options else {}
        return WORDS[word].make(parts[0], axes[axis], **reverse)
    names = [[axes[a] for a in own] for own in args if isinstance(own, tuple) and kind != "rename"]
    if kind in COMBINED:
        return COMBINED[kind](*parts)
    if kind == "compared":
        return RELATIONS[args[0]](*parts)
    if kind == "call":
        return in_known_functions(function_named(args[0])(*parts))
    if kind == "choice":
        pairs, _ = pairs_of(e)
        found = [(parts[2 * i], parts[2 * i + 1]) for i in range(len(pairs))]
        return _as_plain(Piecewise(*found, (parts[-1], True)))
    if kind == "rename":
        return renamed(parts[0], {axes[old]: axes[new] for old, new in args[1]})
    if kind == "flatten":
        return Flatten(parts[0], *names[0], into=names[1][0])
    if kind == "unflatten":
        return Unflatten(parts[0], *names[0], into=tuple(names[1]))
    own = [axes[args[1]]] if kind == "one hot" else (names[0] if names else [])
    return ALONG[kind](parts[0], *own)


def _read(operand: Expr, args: tuple, axes: Mapping[str, Axis]) -> Expr:
    """The entry at the index of a tree of kind "at"."""
    _, (axis,), places, offset, fill, _ = args
    index = sum((c * Position(axes[a]) for a, c in places), offset)
    sizes = {s: axes[s.name] for s in index.free_symbols if s.name in axes}
    filled = MINUS_INFINITY if fill == -sympy.oo else fill
    return At.over(operand, axes[axis], index.xreplace(sizes), filled)


def _as_plain(e: Basic) -> Basic:
    """Without SymPy's ITE, which it creates where a choice is compared."""
    return e.replace(ITE, lambda test, a, b: Or(And(test, a), And(Not(test), b)))
