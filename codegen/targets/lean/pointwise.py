"""Functions whose lines take tensors of any shape, without views as (N,) and back."""

from __future__ import annotations

from codegen.program import Program, values
from codegen.program.parts import values_in
from codegen.program.steps import Assign
from codegen.targets.torch.functions import layouts_in
from derive.language.symbols import Axes

# Pointwise values that need no length of an axis.
BY_ENTRY = (
    *(values.Number, values.Constant, values.Load, values.Plus, values.Times, values.MulAdd),
    *(values.Power, values.Apply, values.Pullback, values.Compare, values.Combine, values.Choose),
    *(values.Extreme, values.Clamp, values.Gate, values.Bend, values.Slope),
)


def is_pointwise(program: Program) -> bool:
    """True if all tensors lie along one `Axes` alone, and no line of the forward or backward names
    it.
    """
    functions = (program.forward, program.backward)
    layouts = {p.layout for function in functions for p in function.tensors}
    layouts |= {layouts_in(program.forward)[name] for name in program.outputs}
    steps = [step for function in functions for step in function.steps]
    return (
        len(layouts) == 1
        and [isinstance(dim.axis, Axes) for dim in layouts.pop()] == [True]
        and all(isinstance(step, Assign) for step in steps)
        and all(isinstance(value, BY_ENTRY) for step in steps for value in values_in(step))
    )
