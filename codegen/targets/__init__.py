"""The targets: languages in which a Program can be written.

The contract of a target. It receives a `Program`, in which everything is decided, and returns the
text of one file; the same Program gives the same bytes. It can also say how far the text that it
wrote is from an independent computation of the same gradients, on random data in float64
and in single, and count what its lines move.

To add a target: one folder here, and one line in `targets`; or in `kernels`, for one whose loops
run instead of lines of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from codegen.program import Program
from codegen.quality import Counts, Rounding
from codegen.targets.cpp.target import CppTarget
from codegen.targets.lean.outside import Outside
from codegen.targets.torch.target import TorchTarget
from codegen.targets.triton.target import TritonTarget
from derive.language.errors import UnprovedError
from derive.notation.definition import Definition


class Compares(Protocol):
    """What can be run beside the oracle."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """How far the gradients computed by ``text`` are from the oracle's, relative to the
        largest entry and beyond what the oracle's own rounding accounts for.
        """


class Tries(Protocol):
    """What is tried where numbers of float32 end, and at hard points."""

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        """In words, what is unsafe: what of the program's own words shows when it is tried, and
        what goes wrong in float32 and at hard points.
        """

    def function(self, text: str, program: Program) -> Callable:
        """The function of ``text`` that is called."""


class Kernels(Protocol):
    """A language for loops, which run instead of lines of a lean module. Their files lie in a
    ``folder`` beside that; the names of those of a module have these ``ends``.
    """

    folder: str
    ends: tuple[str, ...]

    def ready(self) -> None:
        """Get this process, and those that it starts, ready to run them, before all else. Raises
        `QuestionError` where they cannot be compared here.
        """

    def texts(self, program: Program, module: str, outside: Outside) -> tuple[str, ...]:
        """The kernels, and the module of Python that launches them in place of functions of
        ``module``, the lean module of a ``program``; nothing where there is no loop.

        Raises `QuestionError` for what it cannot print.
        """

    def shared(self) -> dict[str, str]:
        """The files that all kernels of a folder share, by their names."""

    def beside(self, texts: tuple[str, ...]) -> Compares:
        """Runs the module with the kernels ``texts``."""


class WrongUse(UnprovedError):
    """A use of what was written that fails or gives something else than autograd: of which order
    its derivatives are.
    """

    def __init__(self, message: str, order: int):
        super().__init__(message)
        self.order = order


class Target(Compares, Tries, Protocol):
    """A language. ``suffix`` is that of its files."""

    suffix: str

    def check_every_use(
        self, text: str, definition: Definition, program: Program
    ) -> tuple[str, ...]:
        """Use ``text`` in every way. Raises `WrongUse` for the first that fails; in words, what is
        infinite or NaN where the mathematics is finite.
        """

    def render(self, program: Program) -> str:
        """The text of the module for ``program``.

        Raises `QuestionError` for a function that it cannot print.
        """

    def backward_lines(self, program: Program) -> dict[str, str]:
        """The lines of code that each statement of the closed form became, by its name."""

    def rounding(self, text: str, definition: Definition, program: Program) -> Rounding:
        """How far they are in float32, beside autograd's own."""

    def counts(self, program: Program) -> Counts:
        """What the lines of the code move and reduce."""


targets: dict[str, Target] = {
    "torch": TorchTarget(),
}
kernels: dict[str, Kernels] = {
    "cpp": CppTarget(),
    "triton": TritonTarget(),
}
