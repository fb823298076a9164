"""The record of a derivation: every rewriting, in the order in which it was made.

The same record is proved, printed and explained; nothing is written down a second time for show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr

from derive.language.symbols import Tensor

Pairs = list[tuple[Tensor, Expr]]  # statements: what is computed, in order


@dataclass(frozen=True)
class RewriteStep:
    """``before`` was rewritten as ``after`` by ``rule``, in the derivation of ``target``.

    The two sides are equal for the values that the forward computes (`why` says what makes them
    so).
    """

    target: Tensor
    rule: str
    before: Expr
    after: Expr
    why: str

    def __str__(self) -> str:
        return f"{self.target}: {self.before}  ->  {self.after}   [{self.rule}: {self.why}]"


@dataclass(frozen=True)
class Fact:
    """A statement about the forward alone that was found on the way: ``claim = value``, with its
    own steps.
    """

    claim: Expr
    value: Expr
    steps: tuple[RewriteStep, ...]

    def __str__(self) -> str:
        return f"{self.claim} = {self.value}"


@dataclass
class Record:
    """Collects the steps towards one target; `facts` in the order of their discovery."""

    steps: list[RewriteStep] = field(default_factory=list)
    facts: dict[Expr, Fact] = field(default_factory=dict)

    def add(self, target: Tensor, rule: str, before: Expr, after: Expr, why: str) -> Expr:
        """Note the step if it changed anything; returns ``after``."""
        if before != after:
            self.steps.append(RewriteStep(target, rule, before, after, why))
        return after
