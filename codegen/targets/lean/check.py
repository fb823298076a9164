"""Compares a lean module with autograd over the statements, in every way that it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import torch
from torch import Tensor

from codegen.loading import loaded
from codegen.program import Program
from codegen.quality import Rounding
from codegen.targets.lean.pair import Pair
from codegen.targets.torch.check import arguments_of, largest_of
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.oracle import Difference, Dims, Oracle
from codegen.targets.torch.rounding import rounding as rounding_of
from codegen.targets.torch.within_reach import infinite_in_use
from derive.notation.definition import NONE, REDUCTION, Definition
from derive.notation.reduced import reduced, words_of


def largest_difference(
    module: ModuleType | OfEntries, definition: Definition, program: Program
) -> float:
    """The largest difference of an output or a gradient of the public function to autograd's, for
    each word of a reduction, relative to autograd's largest entry.
    """
    return max(
        largest_of(_Comparing(module, reduced(definition, word), program, word), definition)
        for word in words_of(definition) or (None,)
    )


class _Comparing:
    """The public function with one word, beside the statements."""

    def __init__(self, module: ModuleType, definition: Definition, program: Program, word):
        self.function = getattr(module, program.name)
        self.definition, self.program = definition, program
        self.more = {} if word is None else {REDUCTION: word}

    def __call__(self, draw, dims: Dims) -> Iterator[Difference]:
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(self.definition, self.program, draw, generator, dims)
        differentiable = [p.name for p in self.program.forward.parameters if p.role == "input"]
        for name in differentiable:
            arguments[name].requires_grad_()
        shapes = [tuple(n for axis in t.home for n in dims[axis]) for t in self.definition.results]
        upstreams = [draw(shape, generator=generator, dtype=torch.float64) for shape in shapes]
        optional = {p.name for p in self.program.forward.tensors if p.default is not None}
        required = {name: v for name, v in arguments.items() if name not in optional}
        oracle = Oracle(self.definition, arguments, required, [upstreams], dims)
        for passed, what in ((arguments, ""), *([(required, "bare ")] if optional else [])):
            outputs = self.function(**passed, **self.more)
            outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
            for t, output in zip(self.definition.results, outputs, strict=True):
                yield oracle.difference(f"{what}{t.name}", output.detach())
            if what:
                continue
            inputs = [passed[name] for name in differentiable]
            found = torch.autograd.grad(outputs, inputs, upstreams, allow_unused=True)
            for name, gradient in zip(differentiable, found, strict=True):
                own = torch.zeros_like(passed[name]) if gradient is None else gradient
                yield oracle.difference(f"0 d{name}", own)


def check_every_use(text: str, pair: Pair) -> tuple[str, ...]:
    """Use the public function in every way in which it calls a pair, twice differentiated too
    where it permits that.
    Raises `WrongUse`; in words, what is infinite or NaN.
    """
    program = replace(
        pair.program, without_second="its lines are differentiated" if pair.twice else ""
    )

    def load(text: str) -> OfEntries:
        return OfEntries(loaded(text, program.name), pair)

    return infinite_in_use(text, pair.definition, program, load)


class OfEntries:
    """The public function where every entry is returned."""

    def __init__(self, module: ModuleType, pair: Pair):
        function = getattr(module, pair.program.name)
        more = {REDUCTION: NONE} if pair.outside.reductions else {}
        setattr(self, pair.program.name, lambda **arguments: function(**arguments, **more))


def rounding(module: ModuleType, pair: Pair) -> Rounding:
    """How far the public function is off in float32, and the statements."""
    program = pair.program
    function = getattr(OfEntries(module, pair), program.name)

    def written(**arguments: object) -> list[Tensor]:
        statements = interpreted(pair.definition, arguments)
        return [statements[name] for name in program.outputs]

    return rounding_of(function, written, pair.definition, program)
