"""Overwrites values that nothing reads any more, so that no new memory is touched.

In: the steps of a function in their order. Out: the same, with `Overwritten` around an operation
whose first operand was computed here, is of full size, and ends with it. It is for ranks alone:
their functions record nothing for autograd, which might still need the overwritten value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from codegen.program import NUMBERS, Function
from codegen.program.arrays import Arrange, Contract, Detached, Merge, Own, Reduce
from codegen.program.arrays import Split as TakenApart
from codegen.program.parts import values_in
from codegen.program.shards import Exchange, Overwritten, OwnLargest, OwnMean, OwnPick
from codegen.program.steps import Assign, Step
from codegen.program.values import Apply, Choose, Load, MulAdd, Number, Plus, Power, Times, Value
from codegen.sharding.meanwhile import LARGE
from codegen.sharding.ordering import line

COMPUTED = (Plus, Times, MulAdd, Power, Apply)  # entry by entry, into memory of their own
SUMMED = (Reduce, Contract, OwnLargest, OwnMean, OwnPick)  # so are these
BINARY = 2  # operands
SAME_MEMORY = (Arrange, Detached, Merge, TakenApart, Own)  # may be views of their operands


def overwriting(steps: Sequence[Step], function: Function) -> list[Step]:
    """Overwrite dead values; never arguments of ``function``, nor its results."""
    floats = {p.name for p in function.parameters if p.role not in {*NUMBERS, "label", "kept"}}
    own: set[str] = set()  # computed here into memory of their own
    done: list[Step] = []
    for i, step in enumerate(steps):
        name = step.name
        if isinstance(step, Assign) and _is_own(step.value, floats | own):
            target = next((t for t in _targets(step.value) if t in own), None)
            free = target is not None and (
                target not in function.results
                and not _is_read(target, steps[i + 1 :], name)
                and not any(target in seen for s in steps for seen in _views(s))
            )
            if free:
                value = Overwritten(step.value, target, dims=step.value.dims)
                step = replace(step, value=value)
            own.add(name)
        else:
            own -= line(step).writes
        done.append(step)
    return done


def _is_own(value: Value, floats: set[str]) -> bool:
    """True if it is a new floating-point array of full size."""
    if not isinstance(value, COMPUTED) or sum(not dim.one for dim in value.dims) < LARGE:
        return False
    inner = [*values_in(value)]
    loads = [v.name for v in inner if isinstance(v, Load) and v.dims]
    return any(name in floats for name in loads)


def _targets(value: Value) -> Iterator[str]:
    """The operands that the result may be written over."""
    if isinstance(value, Apply):
        found = [value.operand]
    elif isinstance(value, Plus) and len(value.terms) == BINARY:
        found = [term for term, negative in value.terms if not negative]
    elif isinstance(value, Times) and len(value.factors) == BINARY:
        found = [factor for factor, divides in value.factors if not divides]
    else:
        return
    for operand in found:
        if isinstance(operand, Load) and operand.dims == value.dims:
            yield operand.name


def _is_read(name: str, later: Sequence[Step], now: str) -> bool:
    """True if the value of this name is read later; ``now`` is reassigned here."""
    if name == now:
        return False
    for step in later:
        found = line(step)
        if name in found.reads:
            return True
        if name in found.writes:
            return False
    return False


def _views(step: Step) -> Iterator[set[str]]:
    """Sets of names that may share memory after a step."""
    if isinstance(step, Assign):
        yield _seen(step.value)
    elif isinstance(step, Exchange):
        for sent in step.sent:
            if sent.value is not None:
                yield _seen(sent.value)
    else:
        yield {*line(step).reads}


def _seen(value: Value) -> set[str]:
    if isinstance(value, Load):
        return {value.name}
    if isinstance(value, SAME_MEMORY):
        return _seen(value.operand)
    if isinstance(value, Choose):
        return _seen(value.yes) | _seen(value.no)
    if isinstance(value, (*COMPUTED, *SUMMED)) and not _is_one_operand(value):
        return set()
    return {v.name for v in [value, *values_in(value)] if isinstance(v, Load)}


def _is_one_operand(value: Value) -> bool:
    """True if it may be printed as its operand alone."""
    parts = value.terms if isinstance(value, Plus) else getattr(value, "factors", None)
    return parts is not None and (
        len(parts) == 1 or any(isinstance(part, Number) for part, _ in parts)
    )
