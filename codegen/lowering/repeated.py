"""Common subexpressions get a name and are computed once, where the name can describe them: a
condition, a bound, a sum of two, a function or an entry of a named value.

In the forward and the backward; the step-by-step functions compute as written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from codegen.lowering.fused import fused
from codegen.program.arrays import Arrange, Expand, Pick
from codegen.program.parts import is_number, operands, values_in, with_replaced
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Apply, Clamp, Compare, Load, Number, Plus, Pullback, Value

RELATIONS = {
    ">": "above",
    ">=": "from",
    "<": "below",
    "<=": "up_to",
    "==": "is",
    "!=": "is_not",
}
LONGEST_NAME = 32  # a third of a line, as it stands there with others


def better(steps: Sequence[Step], numbers: Collection[str], taken: Collection[str]) -> list[Step]:
    """``steps`` with fused multiply-adds, and with repeated values named once."""
    return named_once([fused(step, numbers) for step in steps], numbers, taken)


def named_once(
    steps: Sequence[Step], numbers: Collection[str], taken: Collection[str]
) -> list[Step]:
    """``steps`` with repeated values as lines of their own, each before its first reader.

    ``numbers`` are the arguments that are Python numbers, ``taken`` the names of the function.
    """
    steps, taken = list(steps), {*taken, *(step.name for step in steps)}
    while (found := _repeated(steps, numbers)) is not None:
        name = _name(found)
        while name in taken:
            name += "_here"
        taken.add(name)
        first = next(i for i, step in enumerate(steps) if found in values_in(step))
        read = Load(name, dims=found.dims)
        after = [
            with_replaced(step, lambda v, found=found, read=read: read if v == found else None)
            for step in steps[first:]
        ]
        steps = [*steps[:first], Assign(name, found), *after]
    return steps


def _repeated(steps: Sequence[Step], numbers: Collection[str]) -> Value | None:
    """The longest value that occurs twice and has a name, of tensors that are not reassigned."""
    assigned = Counter(step.name for step in steps if isinstance(step, Assign))
    changing = {name for name, count in assigned.items() if count > 1}
    changing |= {step.name for step in steps if isinstance(step, AddAt)}
    met = Counter(value for step in steps for value in _printed(step))
    candidates = [v for v, count in met.items() if count > 1 and not is_number(v, numbers)]
    candidates = [v for v in candidates if v.dims and not _loaded(v) & changing and _name(v)]
    return max(candidates, key=lambda v: len(_name(v)), default=None)


def _printed(node: Value | Step) -> Iterator[Value]:
    """All operands of a value or a step, except the derivative in a pullback: a target with a
    function for it does not compute it.
    """
    for value in operands(node):
        if isinstance(node, Pullback) and value is node.derivative:
            continue
        yield value
        yield from _printed(value)


def _loaded(value: Value) -> set[str]:
    loads = [value, *values_in(value)]
    return {load.name for load in loads if isinstance(load, Load)}


def _name(value: Value) -> str:
    """A name that describes the value; '' if it would be long, or nothing is computed."""
    if not isinstance(value, (Clamp, Compare, Apply, Pick, Plus)):
        return ""
    name = _words(value)
    if name.startswith("1_"):
        name = name.replace("1", "one", 1)
    return name if len(name) <= LONGEST_NAME and name.isidentifier() else ""


def _words(value: Value) -> str:
    """The words of a name for a value; too long for a name if there are none."""
    none = "_" * (LONGEST_NAME + 1)
    if isinstance(value, Load):
        return value.name
    if isinstance(value, (Arrange, Expand)):
        return _words(value.operand)
    if isinstance(value, Number) and value.value.denominator == 1:
        return f"minus_{-value.value}" if value.value < 0 else str(value.value)
    if isinstance(value, Clamp):
        return f"{_words(value.operand)}_clamped"
    if isinstance(value, Pick):
        return f"{_words(value.operand)}_at_{_words(value.index)}"
    if isinstance(value, Compare):
        return f"{_words(value.left)}_{RELATIONS[value.relation]}_{_words(value.right)}"
    if isinstance(value, Apply):
        return "_".join((value.function.lower(), *map(_words, (value.operand, *value.others))))
    if isinstance(value, Plus) and len(value.terms) == 2 and not value.terms[0][1]:
        (left, _), (right, negative) = value.terms
        return f"{_words(left)}_{'minus' if negative else 'plus'}_{_words(right)}"
    return none
