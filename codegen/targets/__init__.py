"""The targets: languages in which a Program can be written.

The contract of a target. It receives a `Program`, in which everything is decided, and returns the
text of one file; the same Program gives the same bytes. It can also say how far the text that it
wrote is from an independent computation of the same gradients, on random data in double precision
and in single, and count what its lines move.

To add a target: one folder here, and one line in `targets`.
"""

from __future__ import annotations

from typing import Protocol

from codegen.program import Program
from codegen.quality import Counts, Rounding
from codegen.targets.torch.target import TorchTarget
from derive.notation.definition import Definition


class Target(Protocol):
    """A language. ``suffix`` is that of its files."""

    suffix: str

    def render(self, program: Program) -> str:
        """The text of the module for ``program``.

        Raises `QuestionError` for a function that it cannot print.
        """

    def backward_lines(self, program: Program) -> dict[str, str]:
        """The lines of code that each statement of the closed form became, by its name."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """How far the gradients computed by ``text`` are from the oracle's, relative to the
        largest entry and beyond what the oracle's own rounding accounts for.
        """

    def rounding(self, text: str, definition: Definition, program: Program) -> Rounding:
        """How far they are in single precision, beside autograd's own."""

    def counts(self, program: Program) -> Counts:
        """What the lines of the code move and reduce."""


targets: dict[str, Target] = {
    "torch": TorchTarget(),
}
