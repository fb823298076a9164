"""A pair of forward and backward as text, and the shorter pair that it takes where nothing optional
is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from codegen.program import Program
from codegen.targets.torch.behind import BehindTheBackward


def plain_program(program: Program) -> Program:
    """The program with the pair for calls which pass nothing optional in the place of its own."""
    plain = program.plain
    return replace(
        program,
        forward=plain.forward,
        backward=plain.backward,
        second=plain.second,
        plain=None,
        reductions=tuple((word, plain_program(each)) for word, each in program.reductions),
    )


class Pairs(BehindTheBackward):
    """One pair, or two of which a call takes one."""

    @cached_property
    def plain(self) -> Pairs | None:
        """The page of the pair that is for calls which pass nothing optional."""
        if self.program.plain is None:
            return None
        return type(self)(plain_program(self.program), self.program.forward.parameters)

    @property
    def any_order(self) -> bool:
        """Whether the pairs may be differentiated again."""
        return all(pair.program.second for pair in self.pairs)

    @property
    def known(self) -> list[str]:
        """What a function of autograd's is given before its tensors."""
        return ["plain"] * (self.plain is not None) + ["needs", "numbers"]

    @property
    def third(self) -> bool:
        """Whether a third order was asked for, and is proved."""
        return self.any_order and all(pair.program.second.third for pair in self.pairs)

    @property
    def pairs(self) -> list[Pairs]:
        return [self, self.plain] if self.plain is not None else [self]

    def either(
        self, lines: Callable[[Pairs, str], list[str]], indent: str, of: str = "ctx."
    ) -> list[str]:
        """``lines`` for the one pair, or for the plain one and the other."""
        whole = lines(self, "")
        if self.plain is None:
            return [f"{indent}{line}" for line in whole]
        short = lines(self.plain, "_plain")
        return [
            f"{indent}if {of}plain:",
            *(f"{indent}    {line}" for line in short),
            f"{indent}else:",
            *(f"{indent}    {line}" for line in whole),
        ]

    def backward_called(self, name: str, upstream: str, of: str = "ctx.") -> str:
        needs = "ctx.needs_input_grad" if of else "needs"
        more = f", needs={needs}" * self.guards
        return f"{name}_backward({upstream}, *saved, *{of}numbers{more})"
