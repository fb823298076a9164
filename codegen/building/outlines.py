"""Outlines of functions, before their lines are lowered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sympy import Expr

from codegen.program import Parameter
from codegen.program.steps import Step
from derive.language.notation.definition import Statement
from derive.language.notation.layout import Layout
from derive.language.symbols import Axis, Tensor, tensors_in


@dataclass(frozen=True)
class Line:
    """A statement to lower: its tensor, the terms of its expression in the order of addition, and
    its layout.
    """

    tensor: Tensor
    terms: tuple[Expr, ...]
    layout: Layout

    @property
    def read(self) -> set[str]:
        """Names that it reads."""
        return {t.name for e in self.terms for t in tensors_in(e)}


@dataclass(frozen=True)
class Link:
    """A state along ``axis``: ``before`` each place it is the value of the line ``after`` at the
    place before, and ``initial``, a tensor or a number, at the first; from the end if ``reverse``.
    ``last`` is the state after the last place, where that has a name.
    """

    before: Tensor
    after: str
    initial: Expr
    axis: Axis
    reverse: bool = False
    last: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Tensors that exist after the loop: the states before each place, and the last one."""
        return tuple(t for t in (self.before, self.last) if t is not None)


@dataclass(frozen=True)
class Outline:
    """Outline of a function: its arguments, the ``lines`` to be lowered, its results and their
    class. ``like`` names a tensor whose kind the results have; ``statements`` and the ``saved``
    values are for `Lowering`, ``checks`` are those of its arguments, and ``links`` pass states from
    one place to the next.
    """

    name: str
    summary: str
    parameters: Sequence[Parameter]
    lines: Iterable[Line]
    results: tuple[str, ...]
    result_class: str
    like: str
    statements: Mapping[str, Statement] | None = None
    saved: frozenset[str] | None = None
    checks: tuple[Step, ...] = ()
    links: tuple[Link, ...] = ()


def listed(kind: str, names: Sequence[str]) -> str:
    """``output y``, ``outputs y and h``; the names alone for no kind."""
    *others, last = names
    words = f"{', '.join(others)} and {last}" if others else last
    return f"{kind}{'s' * bool(others)} {words}" if kind else words
