"""Conditions under which a value is read: a path through choices, and several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from codegen.lowering.frames import broadcast
from codegen.program.values import Apply, Combine, Compare, Number, Plus, Value
from derive.language.notation.layout import Layout

Path = tuple[tuple[Value, bool], ...]  # conditions, each with whether it holds

ZERO, MINUS_ONE = Number(Fraction(0)), Number(Fraction(-1))
OPPOSITE = {"<": ">", "<=": ">="}  # with the signs of both sides changed
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def with_test(path: Path, test: Value, holds: bool) -> Path:
    return path if (test, holds) in path else (*path, (test, holds))


def left_out(measure: Value, threshold: Value) -> Compare:
    """The test that a gate is 0, as a choice would write it: sign(u - v) <= 0 is u <= v, and
    sign(-v) <= -1 is v > 0.
    """
    relation, left, right = "<=", measure, threshold
    if isinstance(left, Apply) and left.function == "sign" and right in (ZERO, MINUS_ONE):
        relation, left, right = "<=" if right == ZERO else "<", left.operand, ZERO
    if right == ZERO and isinstance(left, Plus):
        match left.terms:
            case ((u, True),):
                relation, left = OPPOSITE[relation], u
            case ((u, False), (v, True)):
                left, right = u, v
    return Compare(left, relation, right, dims=measure.dims)


def in_any(paths: Sequence[Path]) -> Path:
    """The path that holds where one of the ``paths`` does. Of a test and its opposite, which differ
    at NaN alone, the one that passes NaN is kept.
    """
    plain = {frozenset(_positive_test(*test) for test in path): path for path in paths}
    for path in paths:
        if all(isinstance(test, Compare) and not holds for test, holds in path):
            plain[frozenset(_positive_test(*test) for test in path)] = path
    paths = [*plain.values()]
    if len(paths) == 1:
        return paths[0]
    dims = broadcast(test.dims for path in paths for test, _ in path)
    every = [_combined("and", [_as_test(*test) for test in path], dims) for path in paths]
    return ((_combined("or", every, dims), True),)


def _positive_test(test: Value, holds: bool) -> tuple[Value, bool]:
    if not holds and isinstance(test, Compare) and test.relation in NEGATED:
        return replace(test, relation=NEGATED[test.relation]), True
    return test, holds


def _as_test(test: Value, holds: bool) -> Value:
    return test if holds else Combine("not", (test,), dims=test.dims)


def _combined(operator: str, tests: Sequence[Value], dims: Layout) -> Value:
    return tests[0] if len(tests) == 1 else Combine(operator, tuple(tests), dims=dims)
