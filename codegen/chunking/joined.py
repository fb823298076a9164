"""Forward and backward as one function: a chunk goes from its slice to its gradients in one go.

Every line of the backward stands behind those of the forward, so a value that the forward would
save is read where it was computed. Checks, defaults and masks of labels are the public function's.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.program import Function, Parameter, Program
from codegen.program.parts import with_replaced
from codegen.program.steps import AddAt, Assign, Default, Fill, NotZero, SplitLabel, Step
from codegen.program.values import Load, Value

ASKED_BEFORE = (Default, Fill, SplitLabel)  # by the public function


def joined(program: Program) -> Function:
    """Outputs and gradients of all inputs, from arguments and upstream gradients."""
    forward, backward = program.forward, program.backward
    masks = {s.name: s for s in forward.steps if isinstance(s, SplitLabel)}
    parameters: list[Parameter] = []
    for p in forward.parameters:
        if p.role != "index":
            parameters.append(replace(p, default=None))
        if p.name in masks:
            parameters.append(Parameter(masks[p.name].kept, masks[p.name].dims, "kept"))
    steps: list[Step] = [s for s in forward.steps if not isinstance(s, ASKED_BEFORE)]
    taken = {p.name for p in parameters} | {s.name for s in forward.steps}
    renamed: dict[str, str] = {}

    def as_named(value: Value) -> Value | None:
        if isinstance(value, Load) and value.name in renamed:
            return replace(value, name=renamed[value.name])
        return None

    divisors = [s.divisor for s in steps if isinstance(s, NotZero)]
    for step in backward.steps:
        if isinstance(step, NotZero):
            steps += [] if step.divisor in divisors else [step]
            continue
        step = with_replaced(step, as_named)
        is_new = isinstance(step, Assign) and step.name in taken and step.name not in renamed
        if is_new:
            renamed[step.name] = _free(f"{step.name}_back", taken)
        if isinstance(step, (Assign, AddAt)):
            step = replace(step, name=renamed.get(step.name, step.name))
        steps.append(step)
    known = {name for name, _ in forward.sizes}
    return replace(
        forward,
        parameters=(*parameters, *program.upstreams),
        checks=(),
        sizes=(*forward.sizes, *((n, v) for n, v in backward.sizes if n not in known)),
        steps=tuple(steps),
        results=(*program.outputs, *(renamed.get(r, r) for r in backward.results)),
    )


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
