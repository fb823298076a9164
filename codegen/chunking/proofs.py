"""Identities of chunks that a module relies on, each proved before it is written."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.chunking import Chunked
from codegen.program.shards import OwnAddAt, OwnGathered, OwnPick
from codegen.sharding.proofs import words_of_proved
from codegen.sharding.values import values_of

PICKED = (OwnPick, OwnGathered, OwnAddAt)


def relied_on(chunked: Chunked) -> tuple[str, ...]:
    """The identities in words. Raises `UnprovedError` if one is not proved."""
    return words_of_proved(chunked.program.name, _names(chunked))


def _names(chunked: Chunked) -> Iterator[str]:
    for passes in chunked.all_passes:
        nodes = [node for one in passes.passes for node in (*one.sums, *one.body)]
        yield from sorted({node.kind for node in nodes if node.is_accumulated})
        steps = [step for node in nodes for step in node.steps]
        if any(isinstance(v, PICKED) for step in steps for v in (step, *values_of(step))):
            yield "pick"
        if any(one.body for one in passes.passes):
            yield "rows"
    yield from sorted(chunked.rewritten)
    yield "symmetric"
