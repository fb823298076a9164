"""A pair of forward and backward as text, and the shorter pair that it takes where nothing optional
is passed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from codegen.program import Program
from codegen.targets.torch.behind import BehindTheBackward


def plain_program(program: Program) -> Program:
    """The program with the pair for calls which pass nothing optional instead of its own."""
    plain = program.plain
    return replace(
        program,
        forward=plain.forward,
        backward=plain.backward,
        second=plain.second,
        alone=plain.alone,
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
    def third(self) -> bool:
        """Whether a third order was asked for, and is proved."""
        seconds = [pair.program.second for pair in self.pairs]
        return all(second is not None and second.third for second in seconds)

    @property
    def by_lines(self) -> bool:
        """Whether autograd takes the second derivatives, line by line."""
        return bool(self.program.without_second)

    @property
    def pairs(self) -> list[Pairs]:
        return [self, self.plain] if self.plain is not None else [self]
