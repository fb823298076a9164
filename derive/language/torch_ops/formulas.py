"""Entrywise formulas of several steps, built on `Tree`'s operators."""

from __future__ import annotations

from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import Tree, as_tree


def function(name: str):
    return lambda *args: trees.call(name, *map(as_tree, args))


exp, log, erf, tanh, sign, Abs = map(function, ("exp", "log", "erf", "tanh", "sign", "Abs"))
floor, sqrt, sin = map(function, ("floor", "sqrt", "sin"))


def where(condition: Tree, yes, no) -> Tree:
    return trees.choice((as_tree(yes), condition), otherwise=as_tree(no))


def equal(a: Tree, b) -> Tree:
    return trees.compared("==", a, as_tree(b))


def unequal(a: Tree, b) -> Tree:
    return trees.compared("!=", a, as_tree(b))


def both(a: Tree, b: Tree) -> Tree:
    return trees.joined("and", a, b)


def sigmoid(x: Tree) -> Tree:
    return 1 / (1 + exp(-x))


def held(x: Tree, low=None, high=None) -> Tree:
    """``x`` clamped; as in torch, its gradient passes at the edges."""
    pairs = [] if low is None else [(as_tree(low), x < low)]
    pairs += [] if high is None else [(as_tree(high), x > high)]
    return trees.choice(*pairs, otherwise=x)
