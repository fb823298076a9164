"""Sums of the backward that do not need its upstream gradient are taken by the forward: there they
travel with other sums, and are saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.program import NUMBERS, Function, Parameter
from codegen.program.arrays import Reduce
from codegen.program.parts import values_in
from codegen.program.steps import Assign, Fits, InSingle, Step
from codegen.program.values import Load, Value
from codegen.sharding.groups import Groups
from codegen.sharding.ordering import line
from codegen.sharding.values import in_place, rewritten, stripped
from derive.language.notation.layout import Dim, Layout
from derive.language.symbols import Axes

ADJOINT = "adjoint"  # the role of an upstream gradient


def known_before(forward: Function, backward: Function, groups: Groups) -> tuple[Function, ...]:
    """Both functions, with sums of saved values moved from the backward to the forward."""
    told = {*forward.results} | {p.name for p in forward.parameters}
    written = {name for step in backward.steps for name in line(step).writes}
    known = {p.name for p in backward.parameters if p.role != ADJOINT} & told - written
    taken = told | written | {s.name for s in forward.steps} | {n for n, _ in backward.sizes}
    found: dict[Reduce, str] = {}

    def rule(value: Value) -> Value | None:
        core = stripped(value) if isinstance(value, Reduce) else None
        if core is None or not _crosses(core, groups):
            return None
        loads = [v.name for v in values_in(core) if isinstance(v, Load)]
        if not loads or not {*loads} <= known or _owners(core.dims, backward.checks) is None:
            return None
        name = found.get(core) or _free(f"{loads[0]}_sum", taken)
        found[core] = name
        return in_place(Load(name, dims=core.dims), value.dims)

    steps = tuple(
        replace(step, value=rewritten(step.value, rule)) if isinstance(step, Assign) else step
        for step in backward.steps
    )
    for core, name in found.items():
        forward = replace(
            forward,
            steps=(*forward.steps, Assign(name, core)),
            results=(*forward.results, name),
        )
        backward = replace(
            backward,
            parameters=_with(backward.parameters, Parameter(name, core.dims, "statement")),
            checks=tuple(_checked(name, core.dims, backward.checks)),
        )
    return forward, replace(backward, steps=steps)


def _with(parameters: Sequence[Parameter], tensor: Parameter) -> tuple[Parameter, ...]:
    """Insert after the other tensors: numbers are passed last."""
    numbers = tuple(p for p in parameters if p.role in NUMBERS)
    return (*(p for p in parameters if p.role not in NUMBERS), tensor, *numbers)


def _crosses(value: Reduce, groups: Groups) -> bool:
    return any(groups.split((value.operand.dims[i],))[0] for i in value.along)


def _owners(dims: Layout, checks: Sequence[Step]) -> tuple | None:
    """The arguments that the sizes of ``dims`` are from; None if one is from no other argument."""
    found: dict[str, list[str]] = {}
    for dim in dims:
        if isinstance(dim.axis, Axes):  # it would have to be merged with those of the others
            return None
        owner = next((s for s in checks if isinstance(s, Fits) and dim in s.dims), None)
        if owner is None:
            return None
        found.setdefault(owner.name, []).append(dim.axis.name)
    return tuple((name, tuple(axes)) for name, axes in found.items())


def _checked(name: str, dims: Sequence[Dim], checks: Sequence[Step]) -> Sequence[Step]:
    """The checks, with those of one more saved value."""
    own = Fits(name, tuple(dims), (True,) * len(dims), _owners(dims, checks), "saved", False)
    at = next((i for i, step in enumerate(checks) if isinstance(step, InSingle)), None)
    if at is None:
        return [*checks, own]
    single = replace(checks[at], tensors=(*checks[at].tensors, name))
    return [*checks[:at], own, single, *checks[at + 1 :]]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
