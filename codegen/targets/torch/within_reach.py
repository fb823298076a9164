"""Compares a module with autograd; where that is not finite, once more with other numbers for those
that stand for infinity.

Where a state starts at -10**30, autograd through the statements finds the logarithm of 0, and two
paths from there are equally long whatever is added to them. So the module and its mathematics are
compared with the logarithm of each such number instead: its exponential is no more than rounding
beside those of the data, and order is preserved. The module as it is has to be finite, too.
"""

from __future__ import annotations

import io
import math
import tokenize
from collections.abc import Callable
from dataclasses import replace

import torch
from sympy import Basic, Number, Rational

from codegen.program import Program
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from codegen.targets.torch.every_use import check_every_use
from codegen.targets.torch.second_oracle import points_of, statements_at
from codegen.targets.torch.several import joined
from codegen.targets.torch.wrong import WrongUse
from derive.language.notation.definition import Definition

BEYOND = 1e20  # larger numbers stand for infinity

Loads = Callable[[str], object]  # gives what has the functions of the module with a text
Compares = Callable[[object, Definition, Program], float]


def largest_difference(
    text: str, definition: Definition, program: Program, load: Loads, compare: Compares
) -> float:
    """The largest difference of the module, where autograd is finite."""
    module = load(text)
    found = compare(module, definition, program)
    if math.isfinite(found) or (within := within_reach(text, definition)) is None:
        return found
    if not _has_numbers(module, definition, program):
        return found
    return compare(load(within[0]), within[1], program)


def _has_numbers(module: object, definition: Definition, program: Program) -> bool:
    """True if its outputs and gradients are finite for some of the random draws."""
    dims = next(dims_tried(definition))
    for draw in DRAWS:
        leaves = arguments_of(definition, program, draw, torch.Generator().manual_seed(0), dims)
        parameters = program.forward.parameters
        inputs = [leaves[p.name].requires_grad_() for p in parameters if p.role == "input"]
        outputs = joined(getattr(module, program.name)(**leaves))
        found = torch.autograd.grad(outputs.sum(), inputs, materialize_grads=True)
        if all(value.isfinite().all() for value in (outputs, *found)):
            return True
    return False


def infinite_in_use(
    text: str, definition: Definition, program: Program, load: Loads, most: int | None = None
) -> tuple[str, ...]:
    """Infinite or NaN results in any use of the module, in words. Raises `WrongUse` for the first
    failure; where there are such numbers, others are tried too.
    """
    within = within_reach(text, definition)
    first = next(points_of(definition, program))
    if within is None or statements_at(definition, program, first).finite:
        try:
            return check_every_use(load(text), definition, program, most)
        except WrongUse:
            if within is None:
                raise
    return check_every_use(load(within[0]), within[1], program, most)


def within_reach(text: str, definition: Definition) -> tuple[str, Definition] | None:
    """The text of a module and its mathematics with the logarithms of numbers that stand for
    infinity; None if the mathematics has none.
    """
    statements = tuple(replace(s, expression=_within(s.expression)) for s in definition.statements)
    carried = tuple(replace(c, initial=_within(c.initial)) for c in definition.carried)
    if statements == definition.statements and carried == definition.carried:
        return None
    return _text_within(text), replace(definition, statements=statements, carried=carried)


def _within(e: Basic) -> Basic:
    far = (n for n in e.atoms(Number) if n.is_finite and abs(n) >= BEYOND)
    return e.xreplace({n: Rational(_logarithm(float(n))) for n in far})


def _logarithm(number: float) -> float:
    return math.copysign(math.log(abs(number)), number)


def _text_within(text: str) -> str:
    lines = text.splitlines(keepends=True)
    for token in reversed([*tokenize.generate_tokens(io.StringIO(text).readline)]):
        if token.type != tokenize.NUMBER or not BEYOND <= float(token.string) < math.inf:
            continue
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        lines[row - 1] = f"{line[:start]}{_logarithm(float(token.string))!r}{line[end:]}"
    return "".join(lines)
