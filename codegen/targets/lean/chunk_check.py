"""Compares a module that computes in chunks with autograd through the statements: in chunks of one
entry, of two, of three, of all and of what it chooses; with everything optional and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor

from codegen.files.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import WordedFunction
from codegen.targets.torch.check import largest_of
from codegen.targets.torch.oracle import Difference, Dims
from codegen.targets.torch.within_reach import infinite_in_use
from derive.language.notation.definition import Definition

CLOSE = 1e-10  # where what runs is measured from other maxima
CHUNKS = (1, 2, 3, 100, None)  # entries; the last ones are all of them


def largest_difference_of_chunks(
    text: str, definition: Definition, program: Program, name: str, called: str, chunks=CHUNKS
) -> float:
    """The largest difference of an output or a gradient, relative to autograd's largest entry, of
    the function ``called`` so in the module ``name``.
    """
    function = getattr(loaded(text, name), called)
    return largest_of(ComparedInChunks(function, definition, program, chunks), definition)


def check_every_use_of_chunks(
    text: str, definition: Definition, program: Program, name: str, called: str
) -> None:
    """Use the function ``called`` so in the module ``name`` in every way, in chunks of two, twice
    differentiated too. Raises `WrongUse` for the first failure.
    """

    def load(text: str) -> SimpleNamespace:
        module = loaded(text, name)
        function = partial(getattr(module, called), chunk=2)
        return SimpleNamespace(module=module, **{program.name: function})

    infinite_in_use(text, definition, program, load, most=1)


class ComparedInChunks:
    """Compares the function in each length of chunks, and without a recorded backward."""

    def __init__(self, function: Callable, definition: Definition, program: Program, chunks):
        self.function, self.chunks, self.chunk = function, chunks, None
        module = SimpleNamespace(**{program.name: self.called})
        self.compared = WordedFunction(module, definition, program, None)

    def called(self, **arguments):
        """The outputs; those that are not recorded have to be the same."""
        found = self.function(**arguments, chunk=self.chunk)
        with torch.no_grad():
            again = self.function(**arguments, chunk=self.chunk)
        pairs = ((found, again),) if isinstance(found, Tensor) else zip(found, again, strict=True)
        for one, other in pairs:
            torch.testing.assert_close(one.detach(), other, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        return found

    def __call__(self, draw, dims: Dims) -> Iterator[Difference]:
        before = set(self.compared.moved)
        for chunk in self.chunks:
            self.chunk, self.compared.moved = chunk, set(before)
            yield from self.compared(draw, dims)
