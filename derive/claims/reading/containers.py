"""Dictionaries and tuples of a pasted text: the name of each entry.

``cache = {"A": A}`` holds ``A`` under "A"; entries of a dictionary from outside are known by their
keys. Entries of ``grads`` are gradients, whether the key says so or not.
"""

from __future__ import annotations

import ast
import re

from derive.claims.reading.refusals import Refusal

GRADIENT = re.compile(r"grad_(?P<a>\w+)|(?P<b>\w+)_grad|d_?(?P<c>[A-Za-z_]\w*)|g_(?P<d>\w+)")
OF_GRADIENTS = re.compile(r"(\w+\.)?_?(d|g|\w*grads?|\w*gradients?|derivatives?|deltas)_?")

CACHE = re.compile(r"_?(caches?|saved|residuals?|res|ctx|memory|mem|store)|\w+_caches?|cache_\w+")


def name_of(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def placed_at(node: ast.AST, at: ast.AST) -> ast.AST:
    """``node`` and its children at the position of ``at``."""
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, at)
    return node


def copied(node: ast.expr) -> ast.expr:
    """A copy of an expression, to be placed elsewhere."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Tuple):
        return ast.Tuple([copied(part) for part in node.elts], ast.Load())
    if isinstance(node, ast.Dict):
        return ast.Dict(node.keys, [copied(value) for value in node.values])
    return node


def key_of(node: ast.expr | None) -> str | None:
    """The constant key of ``"W1"``, ``"W" + str(1)`` or ``f"W{1}"``, here W1; None for any other
    expression.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [key_of(node.left), key_of(node.right)]
    elif isinstance(node, ast.JoinedStr):
        parts = [
            _digits(v.value) if isinstance(v, ast.FormattedValue) else key_of(v)
            for v in node.values
        ]
    elif isinstance(node, ast.Call) and name_of(node.func) == "str" and len(node.args) == 1:
        parts = [_digits(node.args[0])]
    else:
        return None
    return None if None in parts else "".join(parts)


def _digits(node: ast.expr) -> str | None:
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, (int, str))
    return str(node.value) if is_constant else None


def shown_as_dictionary(node: ast.expr) -> dict[str, ast.expr] | None:
    """The entries of ``{"A": a}`` or ``dict(A=a)`` as written; None for any other expression."""
    if isinstance(node, ast.Dict):
        keys = [key_of(key) for key in node.keys]
        values = node.values
    elif isinstance(node, ast.Call) and name_of(node.func) == "dict" and not node.args:
        keys = [keyword.arg for keyword in node.keywords]
        values = [keyword.value for keyword in node.keywords]
    else:
        return None
    if None in keys:
        raise Refusal("a key of this dictionary is not a string", 'write {"W1": W1, ...}', node)
    return dict(zip(keys, values, strict=True))


def entry_of(held: ast.Dict, key: str) -> ast.expr | None:
    found = (v for k, v in zip(held.keys, held.values, strict=True) if k.value == key)
    return next(found, None)


def with_entry(held: ast.Dict, key: str, value: ast.expr) -> None:
    """``value`` under ``key``, in the dictionary itself."""
    for i, own in enumerate(held.keys):
        if own.value == key:
            held.values[i] = value
            return
    held.keys.append(ast.Constant(key))
    held.values.append(value)


def name_of_entry(place: str, key: str) -> str:
    """The name for a new dictionary entry: a gradient, or one made of dictionary and key."""
    if GRADIENT.fullmatch(key):
        return key
    return f"d{key}" if OF_GRADIENTS.fullmatch(place) else f'{place}["{key}"]'


def is_cache(name: str) -> bool:
    """Whether a name is one for saved values of a forward."""
    return bool(CACHE.fullmatch(name))
