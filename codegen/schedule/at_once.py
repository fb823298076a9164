"""A loss together with its gradients: one function, as all that arrives at a loss is a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.program import Function, Program
from codegen.program.steps import NotZero, Step
from codegen.program.values import SizeOf
from codegen.schedule.elements import ONE, Element, size
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat


def with_gradients(program: Program, wanted: Sequence[str]) -> tuple[Function, Flat] | None:
    """The forward with the gradients ``wanted`` behind it, for an upstream gradient of 1; None
    where the output is no number, where there are several, or where the backward asks for more.
    """
    forward, backward = program.forward, program.backward
    upstream = backward.parameters[0]
    if (
        len(program.outputs) > 1
        or upstream.layout
        or any(is_refused(step) for step in backward.steps)
    ):
        return None
    function = replace(
        forward,
        name=f"{forward.name}_with_gradients",
        steps=(*forward.steps, *backward.steps),
        results=(forward.results[0], *wanted),
    )
    axes = {code: axis for axis, code in program.sizes}
    known: dict[str, Element] = {
        p.name: size(axes[p.name]) for p in backward.parameters if p.role == "size"
    }
    return function, flat(program, function, known | {upstream.name: ONE})


def is_refused(step: Step) -> bool:
    """Whether it may refuse what loops compute with: a divisor of 0 that is no size of an axis. An
    axis without entries makes tensors empty, and these are left to the lines.
    """
    return isinstance(step, NotZero) and not isinstance(step.divisor, SizeOf)
