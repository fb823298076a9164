"""Modules that compute in chunks of an axis, compared with autograd before they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from codegen.chunking import Chunked, ChunkedAxis, chunked
from codegen.driver.gate import TOLERANCE, edges_of, empty_in_words
from codegen.files.loading import loaded
from codegen.program import Program
from codegen.sharding import Sharded
from codegen.sharding.groups import groups_of
from codegen.targets.languages import KernelLanguage
from codegen.targets.lean.chunked import ChunkedPage, ChunksOfModule, PlainChunks, chunked_text
from codegen.targets.lean.chunked_ranks import ChunkedPageOfRanks
from codegen.targets.lean.chunked_ring import RingPage
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import whole_program
from derive.derivation import derive, derive_definition
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward, reduced_forward
from derive.language.notation.specialised import without_options

TRIED = 2  # entries of a chunk in which edges are searched
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
    walk: ChunkedAxis,
    progress: Callable[[str], None] = lambda what: None,
    name: str = "",
    kernels: KernelLanguage | None = None,
) -> OfRanks:
    """The module of a derived ``program`` in chunks of an axis; ``name`` if it has its own. Calls
    that pass nothing optional have functions of their own. With the ``kernels`` of a language.

    Raises `QuestionError` where kernels are asked for, and no loop of a chunk is one.

    Long: what is compared, tried and said of one module, in this order.
    """
    from codegen.targets.lean import chunk_check  # torch takes a second
    from codegen.targets.torch import shard_check

    is_tried = bool(name or walk.over_ranks)  # as a whole, or it needs a group to run
    name, parts = parts_of(forward, program, walk, progress, name)
    page = next(iter(parts.values())).page
    words = {word: part.page for word, part in parts.items() if word}
    text = chunked_text(page, name, program.title, words) if words else chunked_text(page)
    progress("comparing with autograd")

    def compare() -> float:
        if walk.over_ranks:
            plain, groups = parts[""].made.plain, page.chunked.groups
            absent = tuple(name for name, _ in plain.absent) if plain else ()
            groups = groups if walk.ring else groups_of(program, walk.over_ranks)
            split = Sharded(page.chunked.program, groups, {}, frozenset(), None, absent)
            difference = shard_check.largest_difference_of_chunks
            return difference(text, forward.definition, program, split)
        difference = chunk_check.largest_difference_of_chunks
        pairs = [(part.page.name, *each) for part in parts.values() for each in part.known]
        found = max(difference(text, *each, name, called) for called, *each in pairs)
        for called, *each in pairs:
            chunk_check.check_every_use_of_chunks(text, *each, name, called)
        return found

    difference = compared_in_parts(name, compare)
    if not is_tried:
        progress("trying hard points")
        function = partial(getattr(loaded(text, name), page.name), chunk=TRIED)
        known = function, forward.definition, program
        edges = edges_of(*known) + empty_in_words(*known)
        text = chunked_text(page, edges=edges)
    fast = () if kernels is None else kernels_in_chunks(name, parts, text, kernels)
    if kernels is not None and not fast:
        raise QuestionError(f"{name} has no loop that is a kernel", "leave --target out")
    return OfRanks(f"{name}.py", text, *passes_in_words(page.chunked), difference, fast)


def kernels_in_chunks(
    name: str, parts: Mapping[str, ChunkedPart], text: str, kernels: KernelLanguage
) -> tuple[str, ...]:
    """The kernels of a module in chunks, of which ``text`` was compared, after a comparison of
    their own; empty if there is no loop.

    Raises `QuestionError` for a module that is passed its reduction.
    """
    if len(parts) > 1:
        raise QuestionError(
            f"{name} is passed its reduction: kernels in chunks have one",
            "leave out the line that says in which chunks, and ask for --chunk and --reduction",
        )
    (part,) = parts.values()
    texts = kernels.texts_in_chunks(part.made, text)
    if texts:
        module = kernels.beside(texts)
        compared_in_parts(
            f"{name} on kernels",
            lambda: module.largest_difference_in_chunks(text, part.known, name),
        )
    return texts


@dataclass(frozen=True)
class ChunkedPart:
    """One public function of a module in chunks, and what it is compared with."""

    made: ChunksOfModule
    page: ChunkedPage
    known: tuple[tuple[Definition, Program], ...]


def parts_of(
    forward: type[Forward],
    program: Program,
    walk: ChunkedAxis,
    progress: Callable[[str], None] = lambda what: None,
    name: str = "",
) -> tuple[str, dict[str, ChunkedPart]]:
    """The name of the module, and its public function; one for each word of a reduction, if it is
    passed one.
    """
    if name and forward.definition.reductions:
        reductions = [word for word, _ in forward.definition.reductions]
        return name, {w: _of_word(forward, w, walk, progress) for w in reductions}
    words = [*filter(None, [word_of(forward)]), *walk.words]
    named = name or "_".join([program.name, *words]).lower()
    title = program.title + "".join(w.capitalize() for w in words) * (not name)
    return named, {"": _part(forward, program, walk, (named, title), progress)}


def _of_word(
    forward: type[Forward], word: str, walk: ChunkedAxis, progress: Callable[[str], None]
) -> ChunkedPart:
    """The function of one word of a reduction."""
    own = reduced_forward(forward, word)
    program = whole_program(own, derive(own, progress))
    named = f"{program.name}_{word}", f"{program.title}{word.capitalize()}"
    return _part(own, program, walk, named, progress)


def _part(
    forward: type[Forward],
    program: Program,
    walk: ChunkedAxis,
    named: tuple[str, str],
    progress: Callable[[str], None],
) -> ChunkedPart:
    """One public function, ``named`` with its title."""
    found = chunked(program, walk, *named)
    plain = plain_chunks(forward, walk, named, progress)
    known = [(forward.definition, program)] + [(p.definition, p.program) for p in (plain,) if p]
    made = ChunksOfModule(found, Outside(forward.definition), plain)
    kind = ChunkedPageOfRanks if walk.over_ranks else ChunkedPage
    kind = RingPage if walk.ring else kind
    page = kind(found, Pair(found.program, made.outside), plain)
    return ChunkedPart(made, page, tuple(known))


def plain_chunks(
    forward: type[Forward],
    walk: ChunkedAxis,
    named: tuple[str, str],
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
    name, title = named
    found = chunked(program, walk, f"{name}_plain", f"{title}Plain")
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
