"""Modules that compute in chunks of an axis, compared with autograd before they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codegen.chunking import CHUNK, Chunked, chunked
from codegen.driver.gate import TOLERANCE
from codegen.program import Program
from codegen.targets.lean.chunked import chunked_text
from codegen.targets.lean.outside import Outside
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.forward import Forward


@dataclass(frozen=True)
class OfRanks:
    """A module that is ready to be written; ``forward`` and ``backward`` are its collectives or its
    passes over the chunks, in words.
    """

    file: str
    text: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    difference: float


def in_chunks(
    forward: type[Forward],
    program: Program,
    axis: str,
    progress: Callable[[str], None] = lambda what: None,
    name: str = "",
) -> OfRanks:
    """The module of a derived ``program`` in chunks of an axis; ``name`` if it has its own."""
    from codegen.targets.lean import chunk_check  # torch takes a second

    words = [*filter(None, [word_of(forward)]), CHUNK, axis]
    named = name or "_".join([program.name, *words]).lower()
    title = program.title + "".join(w.capitalize() for w in words) * (not name)
    found = chunked(program, axis, named, title)
    text = chunked_text(found, Outside(forward.definition))
    progress("comparing with autograd")
    given = text, forward.definition, program, named
    difference = compared_in_parts(named, lambda: chunk_check.largest_difference_of_chunks(*given))
    return OfRanks(f"{named}.py", text, *passes_in_words(found), difference)


def passes_in_words(found: Chunked) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The passes of a call without gradients, and those of one with, or of the backward."""
    back = found.both or found.gradients
    words = [f"{p.count} pass{'es' * (p.count != 1)}" for p in (found.output, back) if p]
    return (words[0],), (words[1] + ", with the forward" * (found.both is not None),)


def compared_in_parts(name: str, compare: Callable[[], float]) -> float:
    """The difference from autograd. Raises `UnprovedError` if it is too large."""
    try:
        difference = compare()
    except (QuestionError, UnprovedError):
        raise
    except Exception as error:  # whatever a wrong line of code leads torch to
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UnprovedError(f"{name} does not run ({what}); nothing was written") from error
    if not difference <= TOLERANCE:
        raise UnprovedError(
            f"{name} differs from autograd by {difference:.1e} in float64 (tolerance "
            f"{TOLERANCE:.0e}); nothing was written"
        )
    return difference


def word_of(forward: type[Forward]) -> str:
    """The reduction, unless it is the default."""
    definition = forward.definition
    default = next(iter(definition.reductions), ("", None))[0]
    return definition.reduction if definition.reduction != default else ""
