"""Compares a lean module with autograd over the statements, in every use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from types import ModuleType

import torch
from sympy import Rational
from torch import Tensor

from codegen.files.loading import loaded
from codegen.files.quality import Rounding
from codegen.program import Program
from codegen.targets.lean.pair import Pair
from codegen.targets.torch.check import arguments_of, largest_of
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.oracle import Difference, Dims, Oracle
from codegen.targets.torch.rounding import rounding as rounding_of
from codegen.targets.torch.within_reach import infinite_in_use
from derive.language.notation.definition import NONE, REDUCTION, Definition
from derive.language.notation.reduced import reduced, words_of

OTHER = Rational(5, 4)  # of its default a scalar is tried at this too


def largest_difference(
    module: ModuleType | EntriesFunction, definition: Definition, program: Program
) -> float:
    """The largest difference of an output or a gradient of the public function from autograd's, for
    each word of a reduction, relative to autograd's largest entry.
    """
    return max(
        largest_of(WordedFunction(module, reduced(definition, word), program, word), definition)
        for word in words_of(definition) or (None,)
    )


class WordedFunction:
    """Compares the public function, with one word, with the statements."""

    def __init__(self, module: ModuleType, definition: Definition, program: Program, word):
        self.function = getattr(module, program.name)
        self.definition, self.program = definition, program
        self.more = {} if word is None else {REDUCTION: word}
        self.moved: set[Callable] = set()  # the draws at which scalars had other values

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
            yield from self._gradients(passed, outputs, upstreams, oracle)
        moved = _moved(self.definition, dims)
        if moved and draw not in self.moved:
            self.moved.add(draw)
            arguments |= moved
            oracle = Oracle(self.definition, arguments, arguments, [upstreams], dims)
            outputs = self.function(**arguments, **self.more)
            outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
            for t, output in zip(self.definition.results, outputs, strict=True):
                yield oracle.difference(t.name, output.detach(), where_finite=True)
            yield from self._gradients(arguments, outputs, upstreams, oracle, where_finite=True)

    def _gradients(
        self, passed: dict, outputs: Sequence[Tensor], upstreams, oracle: Oracle, **how: bool
    ) -> Iterator[Difference]:
        names = [p.name for p in self.program.forward.parameters if p.role == "input"]
        inputs = [passed[name] for name in names]
        found = torch.autograd.grad(outputs, inputs, upstreams, allow_unused=True)
        for name, gradient in zip(names, found, strict=True):
            own = torch.zeros_like(passed[name]) if gradient is None else gradient
            yield oracle.difference(f"0 d{name}", own, **how)


def _moved(definition: Definition, dims: Dims) -> dict[str, float]:
    """The scalars at values other than their defaults, as far as allowed."""
    sizes = definition.sizes_from({axis: prod(lengths) for axis, lengths in dims.items()})
    numbers = definition.defaults_at(sizes)
    found = {}
    for name, default in list(numbers.items()):
        for other in (default * OTHER if default.is_finite and default else OTHER / 4, default / 2):
            if other != default and definition.permits({**numbers, name: other}, sizes):
                numbers[name], found[name] = other, float(other)
                break
    return found


def check_every_use(text: str, pair: Pair) -> tuple[str, ...]:
    """Try the public function in every way in which it calls a pair, twice differentiated too where
    it permits that. Returns infinite or NaN results, in words. Raises `WrongUse`.
    """

    def load(text: str) -> EntriesFunction:
        return EntriesFunction(loaded(text, pair.program.name), pair)

    return infinite_in_use(text, pair.definition, pair.program, load)


class EntriesFunction:
    """The public function of a ``module``, returning every entry."""

    def __init__(self, module: ModuleType, pair: Pair):
        self.module = module
        function = getattr(module, pair.program.name)
        more = {REDUCTION: NONE} if pair.outside.reductions else {}
        setattr(self, pair.program.name, lambda **arguments: function(**arguments, **more))


def rounding(module: ModuleType, pair: Pair) -> Rounding:
    """Rounding errors in float32 of the public function and of the statements."""
    program = pair.program
    function = getattr(EntriesFunction(module, pair), program.name)

    def written(**arguments: object) -> list[Tensor]:
        statements = interpreted(pair.definition, arguments)
        return [statements[name] for name in program.outputs]

    return rounding_of(function, written, pair.definition, program)
