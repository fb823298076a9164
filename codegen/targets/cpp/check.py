"""Compares the kernels of a C++ module with autograd, and with the lines that they replace."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.cpp.training import batch_axis
from codegen.targets.tables import check
from codegen.targets.tables.check import FORMATS, beyond, leaves_of
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from derive.language.errors import QuestionError
from derive.language.notation.definition import Definition

LONG = 2.0**20  # the rate of a step: beside it a parameter is no more than rounding


class CppModule(check.KernelModule):
    def prepare(self, kernels: ModuleType, name: str) -> None:
        importlib.import_module(f"{kernels.__name__}._node").node.wish = "0"  # Python launches
        building = importlib.import_module(f"{kernels.__name__}._building")
        try:
            building.built(building.FOLDER / f"{name}.cpp")
        except building.NoCompiler as error:
            remedy = "leave --target cpp out: kernels are compared before they are written"
            raise QuestionError(str(error), remedy) from None

    def others(
        self, module, wrapper: ModuleType, definition: Definition, program: Program
    ) -> Mapping[torch.dtype, float]:
        if not hasattr(wrapper, "training_step"):
            return super().others(module, wrapper, definition, program)
        return _step_apart(module, wrapper.training_step, definition, program)


def _step_apart(module, training_step, definition: Definition, program: Program) -> dict:
    """Differences between the steps taken off each parameter and the gradients of the lines, as in
    `_from_lines`.
    """
    worst = dict.fromkeys(FORMATS, 0.0)
    axis = batch_axis(program.forward.parameters)
    firsts = (p for p in program.forward.parameters if p.layout)
    examples = next(p.name for p in firsts if p.layout[0].axis.name == axis)
    function = getattr(module, program.name)
    for dims in dims_tried(definition):
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(definition, program, DRAWS[1], generator, dims)
        batch = len(arguments[examples])
        picks = torch.randint(batch, (batch,), generator=generator)
        exact = None
        for dtype in FORMATS:  # float64 first
            leaves = leaves_of(arguments, dtype)
            ours, step = _stepped(training_step, leaves, picks)
            picked = {name: leaves[name][picks] for name in step.data}
            inputs = {name: leaves[name].requires_grad_() for name in step.parameters}
            loss = function(**{**leaves, **picked, **inputs})
            lines = [loss.detach(), *torch.autograd.grad(loss, [*inputs.values()])]
            exact = exact or lines
            worst[dtype] = max(worst[dtype], *map(beyond, ours, lines, exact))
    return worst


def _stepped(training_step, leaves: Mapping[str, object], picks: Tensor):
    """The loss, and the change of each parameter in a step at rate 1; and the step."""
    own = {
        name: value.clone(memory_format=torch.contiguous_format)
        for name, value in leaves.items()
        if isinstance(value, Tensor)
    }
    step = training_step(**{**leaves, **own}, batch=len(picks))
    loss = torch.tensor(step(picks, LONG), dtype=torch.float64)
    return [loss, *((leaves[name] - own[name]) / LONG for name in step.parameters)], step
