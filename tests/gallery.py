"""Every function of ``generated/``, with arguments that fit it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from inspect import signature
from itertools import cycle
from types import ModuleType

import torch
from sympy.core.relational import Relational
from torch import Tensor

from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.several import joined, of_statements
from derive.language.nodes import OneHot
from derive.language.notation.definition import REDUCTION, Definition
from derive.language.notation.library import list_forwards
from derive.language.notation.reduced import reduced, words_of
from derive.language.symbols import Axis

LENGTHS = (4, 3, 5, 2, 6)


@dataclass(frozen=True)
class Emitted:
    """A generated function, and the mathematics that it came from: of a loss one reduction."""

    definition: Definition

    def __str__(self) -> str:
        return "_".join([self.definition.snake, *self.chosen.values()])

    @property
    def chosen(self) -> dict[str, str]:
        """The argument that says which reduction, where that is not the default."""
        words = [word for word, _ in self.definition.reductions]
        word = self.definition.reduction
        return {REDUCTION: word} if word in words[1:] else {}

    @property
    def snake(self) -> str:
        """What errors call it."""
        return self.definition.snake

    @cached_property
    def module(self) -> ModuleType:
        return import_module(f"gradform.generated.{self.definition.snake}")

    @property
    def function(self) -> Callable[..., Tensor]:
        """The public function; all entries of several outputs, one after the other."""
        function = self._chosen(self.definition.snake)
        if len(self.definition.outputs) == 1:
            return function
        return wraps(function)(lambda *args, **kwargs: joined(function(*args, **kwargs)))

    def _chosen(self, name: str) -> Callable:
        """A function of the module, which is told the reduction unless it is passed."""
        function = getattr(self.module, name)

        @wraps(function)
        def called(*args, **kwargs):
            passed = signature(function).bind_partial(*args, **kwargs).arguments
            return function(*args, **kwargs, **({} if REDUCTION in passed else self.chosen))

        return called if self.chosen else function

    def stated(self, *args, **kwargs) -> Tensor:
        """The same, by the statements in plain torch."""
        names = [p for p in signature(self.function).parameters if p != REDUCTION]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        given.pop(REDUCTION, None)
        found = interpreted(self.definition, given)
        return of_statements([found[t.name] for t in self.definition.results])

    @property
    def inputs(self) -> list[str]:
        return [t.name for t in self.definition.differentiable]

    def arguments(
        self,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        lengths: Sequence[int] = LENGTHS,
        device: str = "cpu",
    ) -> dict[str, object]:
        """Random tensors of unequal ``lengths``: positive ones, at which all of them are smooth;
        labels in range, masks and targets among the numbers that they are compared with, and the
        sizes that are arguments.
        """
        generator = torch.Generator(device).manual_seed(seed)
        own = {"generator": generator, "device": device}
        definition = self.definition
        drawn_sizes = dict(zip(definition.independent_axes, cycle(lengths), strict=False))
        sizes = definition.sizes_from(definition.fitting(drawn_sizes))
        found: dict[str, object] = {}
        for t in definition.arguments:
            shape = [sizes[axis] for axis in t.home]
            if t.role == "label":
                most = min(sizes[axis] for axis in self._indexed_by(t.name))
                found[t.name] = torch.randint(most, shape, **own)
            elif limits := self._compared_with(t.name):
                chosen = torch.randint(len(limits), shape, **own)
                found[t.name] = torch.tensor(limits, dtype=dtype, device=device)[chosen]
            else:
                drawn = torch.rand(shape, dtype=torch.float64, **own)
                found[t.name] = (0.1 + 0.8 * drawn).to(dtype)
        for name, axis in definition.size_arguments:
            found[name] = sizes[axis]
        return found

    def leaves(self, **how) -> dict[str, object]:
        """The same, with those that are differentiable requiring a gradient."""
        drawn = self.arguments(**how)
        return {n: t.requires_grad_() if n in self.inputs else t for n, t in drawn.items()}

    def _compared_with(self, name: str) -> list[float]:
        """The numbers that a tensor without gradient is compared with; two of them at least."""
        tests = {
            test for s in self.definition.statements for test in s.expression.atoms(Relational)
        }
        given = {t.name for t in self.definition.inputs if t.role == "given"}
        limits = sorted(
            float(test.rhs)
            for test in tests
            if name in given and test.rhs.is_number and str(test.lhs) == name
        )
        return limits if len(limits) != 1 else [limits[0], limits[0] + 1]

    def _indexed_by(self, label: str) -> set[Axis]:
        return {
            hot.axis
            for statement in self.definition.statements
            for hot in statement.expression.atoms(OneHot)
            if getattr(hot.operand, "name", "") == label
        }


WHOLE = [f for f in list_forwards() if not f.definition.chunked]  # of the others: test_chunks
EVERYTHING = tuple(Emitted(forward.definition) for forward in WHOLE)
EVERY_REDUCTION = tuple(  # which torch computes: what is made of a loss
    Emitted(reduced(forward.definition, word))
    for forward in WHOLE
    for word in words_of(forward.definition) or (None,)
)
