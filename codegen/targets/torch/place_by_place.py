"""The statements of a recurrence on torch tensors, one place after the other.

At every place all places are computed, with the states known so far, and that place is kept: so a
statement may do anything along the axis. A zero is added to each kept value; the gradient by it is
the whole one, including later places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from derive.language.notation.definition import Carried, Definition, Statement
from derive.language.notation.recurrences import gone_along
from derive.language.symbols import tensors_in

Run = Callable[[Statement], Tensor]  # the value of a statement, as ``values`` are now


class StatementValues(dict[str, Tensor]):
    """The values of all statements; ``met`` are those for which autograd computes gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.zeros: dict[str, Tensor] = {}

    @property
    def met(self) -> dict[str, Tensor]:
        return {**self, **self.zeros}


def format_of(values: Mapping[str, object]) -> torch.dtype:
    """The dtype of the first floating-point tensor; float64 if there is none."""
    tensors = (t for t in values.values() if isinstance(t, Tensor))
    return next((t.dtype for t in tensors if t.is_floating_point()), torch.float64)


def run_all(
    definition: Definition, values: dict[str, Tensor], sizes: Mapping, run: Run
) -> StatementValues:
    """Every statement's value, each after those that it reads."""
    found, pending = StatementValues(), [*definition.statements]
    groups = gone_along(pending, definition.carried)
    while pending:
        inside = set().union(*(names for _, names in groups))
        ready = next((s for s in pending if s.name not in inside and _read(s) <= {*values}), None)
        if ready is not None:
            pending.remove(ready)
            values[ready.name] = found[ready.name] = run(ready)
            continue
        group = next(g for g in groups if _is_ready(g, pending, values))
        states, names = group
        groups.remove(group)
        steps = [s for s in pending if s.name in names]
        pending = [s for s in pending if s.name not in names]
        _go_along(states, steps, values, found, (sizes, run))
    return found


def _read(s: Statement) -> set[str]:
    return {t.name for t in tensors_in(s.expression)}


def _is_ready(group: tuple[list[Carried], set[str]], pending, values) -> bool:
    states, names = group
    own = names | {c.before.name for c in states} | {*values}
    initial = {t.name for c in states for t in tensors_in(c.initial)}
    return initial <= {*values} and all(_read(s) <= own for s in pending if s.name in names)


def _go_along(states, steps, values, found: StatementValues, by) -> None:
    sizes, run = by
    (axis,) = {c.axis for c in states}
    befores = {c: [_initial(c, values, sizes)] for c in states}
    kept: dict[str, list[Tensor]] = {s.name: [] for s in steps}
    along = {s.name: s.tensor.home.index(axis) for s in steps}
    for t in range(sizes[axis]):
        for c in states:
            rest = befores[c][-1].detach()
            whole = [*befores[c], *[rest] * (sizes[axis] - t - 1)]
            values[c.before.name] = torch.stack(whole, c.before.home.index(axis))
        for s in steps:
            value = run(s)
            if s.name not in found.zeros:
                found.zeros[s.name] = torch.zeros_like(value).requires_grad_()
            values[s.name] = value + found.zeros[s.name]
            kept[s.name].append(values[s.name].select(along[s.name], t))
        for c in states:
            befores[c].append(kept[c.after.name][-1])
    for c in states:
        values[c.before.name] = torch.stack(befores[c][:-1], c.before.home.index(axis))
    for name, entries in kept.items():
        values[name] = found[name] = torch.stack(entries, along[name])


def _initial(c: Carried, values, sizes) -> Tensor:
    """The state before the first place."""
    shape = [sizes[a] for a in c.before.home if a != c.axis]
    if c.initial.is_number:
        return torch.full(shape, float(c.initial), dtype=format_of(values))
    return values[c.initial.name].expand(shape)
