"""A sample of the gallery in which every node and every kind of declaration is met.

``make test`` takes it where a property belongs to a pass rather than to one function; ``make
test-all`` takes the whole gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import pytest
from sympy import preorder_traversal

from derive.language.notation.definition import Definition
from derive.language.notation.library import list_forwards

DECLARED = (
    *("twins", "flattened", "optional", "ignoring", "size_arguments", "broadcast", "demands"),
    *("reductions", "returned", "ordered", "inner", "carried", "scalars"),
)
READ_FIRST = {"batch_norm", "softmax_nll", "cross_entropy", "mlp"}  # what people read first


def features(definition: Definition) -> set[str]:
    """The nodes and functions of a forward, and what it declares."""
    nodes = {
        type(node).__name__
        for statement in definition.statements
        for node in preorder_traversal(statement.expression)
        if not node.is_Atom
    }
    declared = {name for name in DECLARED if getattr(definition, name)}
    roles = {tensor.role for tensor in definition.inputs}
    return nodes | declared | roles | {f"rank {len(t.home)}" for t in definition.outputs}


@cache
def sample() -> frozenset[str]:
    """Names of the forwards: short ones that add most, until every feature is met."""
    known = {f.definition.snake: f.definition for f in list_forwards()}
    met = {name: features(definition) for name, definition in known.items()}
    chosen = {*READ_FIRST}
    left = set.union(*met.values()).difference(*(met[name] for name in chosen))
    while left:
        worth = {n: len(met[n] & left) / len(known[n].statements) ** 0.5 for n in sorted(met)}
        best = max(worth, key=worth.__getitem__)
        chosen.add(best)
        left -= met[best]
    return frozenset(chosen)


def sampled(values: Iterable, named: Callable[[object], str] = str) -> list:
    """Parameters, of which those outside of the sample are for ``make test-all``; ``named`` gives
    the name of a forward, and names that are not of the gallery stay.
    """
    gallery = {forward.definition.snake for forward in list_forwards()}
    left = gallery - sample()
    return [
        pytest.param(value, marks=pytest.mark.slow) if named(value) in left else value
        for value in values
    ]


def every(count: int, cases: Iterable) -> list:
    """Parameters, of which every ``count``-th is in the suite and the others in ``make test-all``:
    for tables whose cases take seconds and mostly the same rules.
    """
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.slow)
        if i % count
        else case
        for i, case in enumerate(cases)
    ]
