"""The languages of kernels, and their capabilities.

To add one: one folder beside this file, and one name in `_Languages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol

from codegen.program import Program
from codegen.targets.lean.chunked import ChunksOfModule
from codegen.targets.lean.pair import Pair
from derive.language.notation.definition import Definition


class Compares(Protocol):
    """A target that can be run against the oracle."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """Largest difference of the gradients computed by ``text`` from the oracle's, relative to
        the largest entry and beyond what the oracle's own rounding accounts for.
        """

    def largest_difference_in_chunks(
        self, text: str, known: Sequence[tuple[Definition, Program]], name: str
    ) -> float:
        """The same of a module in chunks, called ``name``: of all calls, and of those without
        options.
        """


class Tries(Protocol):
    """A target that can be tried at the limits of float32 and at hard points."""

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        """Unsafe cases in words: those of the program's own words that trials confirm, and problems
        in float32 and at hard points.
        """

    def function(self, text: str, program: Program) -> Callable:
        """The function of ``text`` that is called."""


class KernelLanguage(Protocol):
    """A language for loops, which run instead of lines of a lean module. Their files lie in a
    ``folder`` beside that; the file names of a module have these ``ends``.
    """

    folder: str
    ends: tuple[str, ...]

    def ready(self) -> None:
        """Prepare this process and its children to run kernels, before all else. Raises
        `QuestionError` if they cannot be compared here.
        """

    def texts(self, pairs: Sequence[Pair], module: str) -> tuple[str, ...]:
        """The kernels, and the Python module that launches them instead of functions of ``module``,
        the lean module of these ``pairs``; empty if there is no loop.

        Raises `QuestionError` for operations that it cannot print.
        """

    def texts_in_chunks(self, chunks: ChunksOfModule, module: str) -> tuple[str, ...]:
        """The same for the module in chunks, between its matrix products."""

    def shared(self) -> dict[str, str]:
        """The files that all kernels of a folder share, by their names."""

    def beside(self, texts: tuple[str, ...]) -> Compares:
        """Run the module with the kernels ``texts``."""


class _Languages(Mapping[str, KernelLanguage]):
    """Imports a language on demand: most commands print none."""

    places = {"cpp": "CppTarget", "triton": "TritonTarget"}

    def __getitem__(self, language: str) -> KernelLanguage:
        return _kernels(language, self.places[language])

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@cache
def _kernels(language: str, target: str) -> KernelLanguage:
    return getattr(import_module(f"{__package__}.{language}.target"), target)()


kernels = _Languages()
