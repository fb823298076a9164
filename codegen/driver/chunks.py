"""Modules that compute in chunks of an axis, compared with autograd before they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codegen.chunking import CHUNK, Chunked, chunked
from codegen.driver.gate import TOLERANCE
from codegen.program import Program
from codegen.targets.languages import KernelLanguage
from codegen.targets.lean.chunked import ChunksOfModule, PlainChunks, chunked_text
from codegen.targets.lean.outside import Outside
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
    kernels: tuple[str, ...] = ()


def in_chunks(
    forward: type[Forward],
    program: Program,
    axis: str,
    progress: Callable[[str], None] = lambda what: None,
    name: str = "",
    kernels: KernelLanguage | None = None,
) -> OfRanks:
    """The module of a derived ``program`` in chunks of an axis; ``name`` if it has its own. Calls
    that pass nothing optional have functions of their own. With the ``kernels`` of a language.

    Raises `QuestionError` where kernels are asked for, and no loop of a chunk is one.
    """
    from codegen.targets.lean import chunk_check  # torch takes a second

    made = chunks_of(forward, program, axis, progress, name)
    text = chunked_text(*made.given)
    named = made.chunked.program.name
    progress("comparing with autograd")

    def compare() -> float:
        difference = chunk_check.largest_difference_of_chunks
        return max(difference(text, *each, named) for each in made.known(forward, program))

    difference = compared_in_parts(named, compare)
    fast = () if kernels is None else kernels_in_chunks(forward, program, made, text, kernels)
    if kernels is not None and not fast:
        raise QuestionError(f"{named} has no loop that is a kernel", "leave --target out")
    return OfRanks(f"{named}.py", text, *passes_in_words(made.chunked), difference, fast)


def chunks_of(
    forward: type[Forward],
    program: Program,
    axis: str,
    progress: Callable[[str], None] = lambda what: None,
    name: str = "",
) -> ChunksOfModule:
    """The passes of the module, before they are printed."""
    words = [*filter(None, [word_of(forward)]), CHUNK, axis]
    named = name or "_".join([program.name, *words]).lower()
    title = program.title + "".join(w.capitalize() for w in words) * (not name)
    found = chunked(program, axis, named, title)
    plain = _without_options(forward, axis, named, title, progress)
    return ChunksOfModule(found, Outside(forward.definition), plain)


def kernels_in_chunks(
    forward: type[Forward],
    program: Program,
    made: ChunksOfModule,
    text: str,
    kernels: KernelLanguage,
) -> tuple[str, ...]:
    """The kernels of a module in chunks, of which ``text`` was compared, after a comparison of
    their own; empty if there is no loop.
    """
    texts = kernels.texts_in_chunks(made, text)
    if texts:
        name = made.chunked.program.name
        module = kernels.beside(texts)
        compared_in_parts(
            f"{name} on kernels",
            lambda: module.largest_difference_in_chunks(text, made.known(forward, program), name),
        )
    return texts


def _without_options(
    forward: type[Forward],
    axis: str,
    name: str,
    title: str,
    progress: Callable[[str], None],
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
    found = chunked(program, axis, f"{name}_plain", f"{title}Plain")
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
