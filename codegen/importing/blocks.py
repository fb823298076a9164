"""Trace a loop over blocks of an axis, ``for i in range(0, n, 4)``, as a single block.

If each round works on ``i`` to ``i + 4`` alone, one block of all entries equals all rounds
together. If not, the imported forward differs from the loop, which the comparison at sizes with
several blocks detects.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from sympy import Expr, Symbol
from torch.fx.experimental.symbolic_shapes import uninteresting_files

from derive.language.errors import Place, QuestionError

APART = "an iteration of this loop reads more than its own block"
AT_ONCE = "write it for all entries at once, or import what one iteration computes"


@dataclass(frozen=True)
class BlockLoop:
    """A loop from 0 to ``end`` by ``step``, and its place; a reader knows the end in axis names."""

    end: torch.SymInt | Expr
    step: int
    place: Place


class Start(int):
    """The start of the single block; one step further is its end."""

    def __new__(cls, end: torch.SymInt, step: int):
        start = super().__new__(cls, 0)
        start.end, start.step = end, step
        return start

    def __add__(self, other: Any) -> Any:
        return self.end if type(other) is int and other == self.step else int(self) + other

    __radd__ = __add__


@contextmanager
def as_one_block(function: Any) -> Iterator[list[BlockLoop]]:
    """While tracing, run such loops of the function's file for one round and record them. ``len``
    of a tensor returns a symbolic size.
    """
    target = type(function).forward if isinstance(function, torch.nn.Module) else function
    names = getattr(inspect.unwrap(target), "__globals__", {})
    loops: list[BlockLoop] = []

    def blocks(*ends: Any) -> Any:
        first, end, step = ends if len(ends) == 3 else (0, 0, 0)
        if type(first) is not int or first or not isinstance(end, torch.SymInt):
            return range(*ends)
        if type(step) is not int or step < 2:
            return range(*ends)
        caller = sys._getframe(1)
        loops.append(BlockLoop(end, step, Place(caller.f_code.co_filename, caller.f_lineno)))
        return [Start(end, step)]

    def size(x: Any) -> Any:
        return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim else len(x)

    uninteresting_files().add(__file__)  # attribute specializations of sizes to the user's line
    ours = {n: f for n, f in (("range", blocks), ("len", size)) if n not in names}
    names.update(ours)
    try:
        yield loops
    finally:
        for name in ours:
            del names[name]


def refuse_unseen(
    loops: Iterable[BlockLoop], lengths: Mapping[str, Expr], seen: Iterable[Mapping[str, int]]
) -> None:
    """Raise `QuestionError` for a loop that never had several blocks at the sizes ``seen``."""
    known = [{Symbol(axis): n for axis, n in sizes.items()} for sizes in seen]
    of = {Symbol(axis): length for axis, length in lengths.items()}
    for loop in loops:
        if not any(loop.end.xreplace(of).subs(at) > loop.step for at in known):
            raise QuestionError(
                f"this loop over blocks of {loop.step} was never seen with two of them",
                f"import it with smaller blocks, or larger --sizes than {loop.step}",
                loop.place,
            )
