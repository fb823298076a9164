"""Modules whose kernels in Triton compute in tiles, compared before they are written."""

from __future__ import annotations

from collections.abc import Callable

from codegen.chunking import ChunkedAxis, chunked
from codegen.driver.chunks import (
    OfRanks,
    compared_in_parts,
    passes_in_words,
    plain_chunks,
    word_of,
)
from codegen.program import Program
from codegen.targets.lean.outside import Outside
from codegen.targets.triton.tiled import tiled_text
from codegen.tiles import TILES
from derive.language.notation.forward import Forward

SIZES = (2, None)  # of tiles, on Triton's interpreter; the last ones are larger than the axes


def in_tiles(
    forward: type[Forward],
    program: Program,
    axis: str,
    progress: Callable[[str], None] = lambda what: None,
) -> OfRanks:
    """The module of a derived ``program`` in tiles of an axis and of the one that it meets.

    Raises `QuestionError` for values that no tile has.
    """
    from codegen.targets.lean import chunk_check  # torch takes a second

    words = [*filter(None, [word_of(forward)]), TILES, axis]
    name = "_".join([program.name, *words]).lower()
    title = program.title + "".join(w.capitalize() for w in words)
    walk = ChunkedAxis(axis, apart=True)
    found = chunked(program, walk, name, title)
    plain = plain_chunks(forward, walk, (name, title), progress)
    text = tiled_text(found, Outside(forward.definition), plain)
    progress("comparing with autograd")
    known = [(forward.definition, program)]
    known += [(plain.definition, plain.program)] if plain else []
    difference = chunk_check.largest_difference_of_chunks

    def compare() -> float:
        return max(difference(text, *each, name, name, SIZES) for each in known)

    worst = compared_in_parts(name, compare)
    return OfRanks(f"{name}.py", text, *passes_in_words(found), worst)
