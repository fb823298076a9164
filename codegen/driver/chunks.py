"""Modules that compute in chunks of an axis, compared with autograd before they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codegen.chunking import CHUNK, Chunked, chunked
from codegen.driver.gate import TOLERANCE
from codegen.program import Program
from codegen.sharding import SHARD, Sharded
from codegen.sharding.groups import groups_of
from codegen.targets.lean.chunked import ChunkedPage, PlainChunks, chunked_text
from codegen.targets.lean.chunked_ranks import ChunkedPageOfRanks
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import whole_program
from derive.derivation import derive_definition
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.forward import Forward
from derive.language.notation.specialised import without_options

LONGEST_WITHOUT_OPTIONS = 60  # seconds: calls that pass nothing optional then take the long way


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
    ranks: Sequence[str] = (),
) -> OfRanks:
    """The module of a derived ``program`` in chunks of an axis; ``name`` if it has its own, and
    ``ranks`` the axes that are split over ranks before. Calls that pass nothing optional have
    functions of their own.
    """
    from codegen.targets.lean import chunk_check  # torch takes a second
    from codegen.targets.torch import shard_check

    words = [*filter(None, [word_of(forward)]), *[SHARD, *ranks] * bool(ranks), CHUNK, axis]
    named = name or "_".join([program.name, *words]).lower()
    title = program.title + "".join(w.capitalize() for w in words) * (not name)
    found = chunked(program, axis, named, title, ranks)
    plain = _without_options(forward, axis, named, title, progress, ranks)
    own, kind = found.program, ChunkedPageOfRanks if ranks else ChunkedPage
    text = chunked_text(kind(found, Pair(own, Outside(forward.definition)), plain))
    progress("comparing with autograd")
    known = [(forward.definition, program)] + [(p.definition, p.program) for p in (plain,) if p]

    def compare() -> float:
        if ranks:
            absent = tuple(name for name, _ in plain.absent) if plain else ()
            split = Sharded(own, groups_of(program, ranks), {}, frozenset(), None, absent)
            difference = shard_check.largest_difference_of_chunks
            return difference(text, forward.definition, program, split)
        difference = chunk_check.largest_difference_of_chunks
        found = max(difference(text, *each, named) for each in known)
        for each in known:
            chunk_check.check_every_use_of_chunks(text, *each, named)
        return found

    difference = compared_in_parts(named, compare)
    return OfRanks(f"{named}.py", text, *passes_in_words(found), difference)


def _without_options(
    forward: type[Forward],
    axis: str,
    name: str,
    title: str,
    progress: Callable[[str], None],
    ranks: Sequence[str] = (),
) -> PlainChunks | None:
    """The functions of calls that pass nothing optional, unless there are none or they are not
    proved.
    """
    own = forward.definition
    definition = without_options(own, every_label=False)
    if definition is None:
        return None
    progress("without options")
    try:
        proved = derive_definition(definition, limit=LONGEST_WITHOUT_OPTIONS)
    except UnprovedError:
        return None
    program = whole_program(forward, proved)
    left = {t.name for t in definition.arguments} | {t.name for t, _ in definition.scalars}
    absent = tuple((t.name, number) for t, number in own.optional if t.name not in left)
    zero = tuple(t.name for t, _ in own.scalars if t.name not in left)
    found = chunked(program, axis, f"{name}_plain", f"{title}Plain", ranks)
    return PlainChunks(definition, program, found, absent, zero)


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
