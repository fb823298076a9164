"""A mean and the differences from it, in one collective.

``u = x - mean(x)`` and a sum of ``u**2`` would be two collectives after one another. But each rank
can measure from the mean of its own part: with n_r entries, mean m_r and squares q_r of a part,

    sum of (x - m)**2 = sum over r of (q_r + n_r*(m_r - m)**2),  m = sum over r of n_r*m_r / n

(Chan, Golub and LeVeque, 1979), so the m_r and q_r travel together, and each rank shifts its values
by m_r - m. Nothing cancels: all subtracted values are near the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from codegen.program.arrays import Reduce
from codegen.program.parts import values_in
from codegen.program.steps import Assign, Step
from codegen.program.values import Load, Number, Plus, Power, SizeOf, Times, Value
from codegen.sharding.groups import Groups


@dataclass(frozen=True)
class Centred:
    """``name`` is ``operand`` less its mean along ``along``, of which one dimension is split over
    ``group``; ``mean`` is the statement with the mean, '' for none. ``lines`` are the places of the
    steps that compute both, ``again`` the number of further centrings, and ``squares`` the sum of
    its squares, None if it is not needed.
    """

    name: str
    operand: Value
    total: Reduce
    group: str
    mean: str
    lines: tuple[int, ...]
    again: int
    squares: Reduce | None


def centred(steps: Sequence[Step], groups: Groups) -> Iterator[Centred]:
    """Values measured from a mean over a split axis, in the order of the steps."""
    means: dict[str, tuple[int, Reduce]] = {}
    for i, step in enumerate(steps):
        if not isinstance(step, Assign):
            continue
        total = _mean(step.value)
        if total is not None:
            means[step.name] = i, total
        found = _measured(step.value, means)
        if found is None:
            continue
        operand, total, mean = found
        split = groups.split(operand.dims)
        over = [split[along] for along in total.along if split[along]]
        if len(over) != 1 or any(dim.one for dim in operand.dims):
            continue
        if _is(operand, step.name) or (mean and _is_read(steps, mean, (means[mean][0], i))):
            continue
        again = _again(steps, i)
        own = Load(step.name, dims=step.value.dims)
        squares = _squares(steps[again[-1] + 1 if again else i + 1 :], own, total.along)
        lines = (*((means[mean][0],) if mean else ()), i, *again)
        yield Centred(step.name, operand, total, over[0], mean, lines, len(again), squares)


def _mean(value: Value) -> Reduce | None:
    """The sum behind a value that is a mean."""
    if not isinstance(value, Times):
        return None
    totals = [v for v, divides in value.factors if not divides]
    lengths = [v.name for v, divides in value.factors if divides and isinstance(v, SizeOf)]
    if len(totals) != 1 or not isinstance(totals[0], Reduce) or totals[0].kind != "sum":
        return None
    total = totals[0]
    axes = [total.operand.dims[along].axis.name for along in total.along]
    whole = len(lengths) == len(value.factors) - 1
    return total if whole and sorted(axes) == sorted(lengths) and total.keep else None


def _measured(value: Value, means) -> tuple[Value, Reduce, str] | None:
    """The operand, its sum, and the statement of the mean, if a value is a difference from its own
    mean.
    """
    if not isinstance(value, Plus) or [minus for _, minus in value.terms] != [False, True]:
        return None
    operand, mean = (term for term, _ in value.terms)
    total, name = _mean(mean), ""
    if total is None and isinstance(mean, Load) and mean.name in means:
        total, name = means[mean.name][1], mean.name
    if total is None or total.operand != operand or operand.dims != value.dims:
        return None
    return operand, total, name


def _again(steps: Sequence[Step], start: int) -> list[int]:
    """The steps right after it that centre it again."""
    found, name = [], steps[start].name
    for i in range(start + 1, len(steps)):
        step = steps[i]
        measured = _measured(step.value, {}) if isinstance(step, Assign) else None
        if step.name != name or measured is None or not _is(measured[0], name):
            break
        found.append(i)
    return found


def _squares(steps: Sequence[Step], own: Load, along: tuple[int, ...]) -> Reduce | None:
    """The sum of its squares along the same dimensions."""
    two = Number(Fraction(2))
    squared = [Power(own, two, dims=own.dims)]
    for step in steps:
        if isinstance(step, Assign) and step.value == squared[0]:
            squared.append(Load(step.name, dims=own.dims))
        for value in values_in(step):
            is_sum = isinstance(value, Reduce) and value.kind == "sum"
            if is_sum and value.along == along and value.keep and value.operand in squared:
                return value
        if step.name == own.name:
            break
    return None


def _is(value: Value, name: str) -> bool:
    return isinstance(value, Load) and value.name == name


def _is_read(steps: Sequence[Step], name: str, between: tuple[int, int]) -> bool:
    first, last = between
    return any(_is(v, name) for step in steps[first + 1 : last] for v in values_in(step))
