"""Modules of a forward for the ranks of groups, or in chunks: derived, proved, printed, and
compared with autograd through its statements before they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from codegen.chunking import BOTH, CHUNK, RING, ChunkedAxis
from codegen.driver.chunks import OfRanks, compared_in_parts, in_chunks, word_of
from codegen.driver.lean import LONGEST_WITHOUT_OPTIONS
from codegen.driver.tiles import in_tiles
from codegen.program import Program
from codegen.sharding import SHARD, sharded
from codegen.sharding.counting import told
from codegen.targets.languages import KernelLanguage
from codegen.targets.lean.target import whole_program
from codegen.targets.torch.parts import sharded_module
from codegen.tiles import TILES
from derive.derivation import derive, derive_definition
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward, reduced_forward
from derive.language.notation.reduced import words_of
from derive.language.notation.specialised import without_options
from derive.proof.proving.proved import Proved

# At the same time; over groups of their own, or in a ring.
MOST_AXES = {SHARD: 2, CHUNK: 1, BOTH: 2, RING: 2, TILES: 1}
WRITTEN_AGAIN = (SHARD, CHUNK, BOTH, RING)  # with their forward


def generate_of_ranks(
    forward: type[Forward],
    axes: Sequence[str],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    way: str = SHARD,
    kernels: KernelLanguage | None = None,
) -> OfRanks:
    """``way``: split over ranks, or computed in chunks, or both: the last axis in chunks, or in a
    ring. Chunks may have the ``kernels`` of a language.

    Raises `QuestionError` for axes that cannot be split, and `UnprovedError` where a proof fails
    or the results of the parts differ from autograd's on the whole.
    """
    most = MOST_AXES[way]
    if len(axes) > most:
        raise QuestionError(f"{len(axes)} axes cannot be split at once", f"name at most {most}")
    _check_can_be_split(forward.definition, way)
    proved = derive(forward, progress, limit)
    if way == TILES:
        return in_tiles(forward, whole_program(forward, proved), axes[0], progress)
    if way != SHARD:
        whole, walk = whole_program(forward, proved), _walk(axes, way)
        return in_chunks(forward, whole, walk, progress, kernels=kernels)
    from codegen.targets.torch import shard_check  # torch takes a second

    program = program_of_one(forward, proved)
    found = sharded(program, axes, word_of(forward))
    text, name = sharded_module(found), found.program.name
    progress("comparing with autograd")
    given = text, forward.definition, program, found
    difference = compared_in_parts(name, lambda: shard_check.largest_difference_of_parts(*given))
    short = (found.plain or found).exchanges
    told_back = told(short["backward"], again=True)
    return OfRanks(f"{name}.py", text, told(short["forward"]), told_back, difference)


def _check_can_be_split(definition: Definition, way: str) -> None:
    """Raise `QuestionError` if no axis can be split."""
    name, outputs = definition.name, definition.outputs
    if definition.carried and way == SHARD:
        raise QuestionError(
            f"{name} has a recurrence: its axes are not split",
            "run it on one process, or split a forward with what comes before or behind it",
        )
    if len(outputs) > 1 and way != CHUNK:
        names = " and ".join(t.name for t in outputs)
        raise QuestionError(
            f"{name} has several outputs, {names}: its axes are not split",
            "write a forward with one output, and split that",
        )


def program_of_one(forward: type[Forward], proved: Proved) -> Program:
    """The program to split, with the program of the calls that pass nothing optional: that has
    fewer collectives.
    """
    whole, definition = whole_program(forward, proved), without_options(forward.definition)
    if definition is None:
        return whole
    try:
        plain = derive_definition(definition, limit=LONGEST_WITHOUT_OPTIONS)
    except UnprovedError:
        return whole
    if proved.every_size and not plain.every_size:
        return whole
    return replace(whole, without_options=whole_program(forward, plain))


def present(
    out: Path, forward: type[Forward]
) -> Iterator[tuple[type[Forward], str, tuple[str, ...]]]:
    """Existing modules of parts in ``out`` for a forward, to be written again: the forward with its
    reduction, the way, and the axes.
    """
    for word in words_of(forward.definition) or (None,):
        yield from _present(out, reduced_forward(forward, word))


def _present(out: Path, forward: type[Forward]):
    names = [axis.name for axis in forward.definition.axes]
    for way in WRITTEN_AGAIN:
        files = {
            file_of_ranks(forward, axes, way): axes
            for count in range(MOST_AXES[way], 1 if way in (BOTH, RING) else 0, -1)
            for axes in permutations(names, count)
        }
        for path in sorted(out.glob(f"{'_'.join(_start(forward))}_*.py")):
            ours = re.match("# Generated by gradform ", path.read_text(errors="replace"))
            if ours and path.name in files:
                yield forward, way, files[path.name]


def file_of_ranks(forward: type[Forward], axes: Sequence[str], way: str = SHARD) -> str:
    """The name of the file that the module is written to."""
    words = _walk(axes, way).words if way in (BOTH, RING) else (way, *axes)
    return f"{'_'.join([*_start(forward), *words]).lower()}.py"


def _walk(axes: Sequence[str], way: str) -> ChunkedAxis:
    *ranks, axis = axes
    return ChunkedAxis(axis, tuple(ranks), way == RING)


def _start(forward: type[Forward]) -> list[str]:
    return [forward.definition.snake, *filter(None, [word_of(forward)])]
