"""Identities of parts that a module relies on, each proved before it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from codegen.program.shards import OwnAddAt, OwnGathered, OwnPick
from codegen.sharding import Sharded
from codegen.sharding.values import values_of
from derive.language.errors import UnprovedError
from derive.proof.proving.parts import identities

PICKED = (OwnPick, OwnGathered, OwnAddAt)


def relied_on(sharded: Sharded) -> tuple[str, ...]:
    """The identities in words. Raises `UnprovedError` if one is not proved."""
    names = [*_names(sharded), *(_names(sharded.plain) if sharded.plain else ())]
    return words_of_proved(sharded.program.name, names)


def words_of_proved(program: str, names: Iterable[str]) -> tuple[str, ...]:
    """Identities in words, of those among ``names`` that are any. Raises `UnprovedError`."""
    wanted = {*names}
    found = [name for name in identities if name in wanted]
    for name in found:
        if not _proved(name):
            raise UnprovedError(f"{program}: {identities[name].words}: not proved")
    return tuple(identities[name].words for name in found)


@cache
def _proved(name: str) -> bool:
    return identities[name].proved


def _names(sharded: Sharded) -> Iterator[str]:
    kinds = {exchange.kind for found in sharded.exchanges.values() for exchange in found}
    yield from sorted(kinds & identities.keys())
    for kind in sharded.exchanges:
        steps = getattr(sharded.program, kind).steps
        values = [v for step in steps for v in (step, *values_of(step))]
        if any(isinstance(v, PICKED) for v in values):
            yield "pick"
    yield from sorted(sharded.rewritten)
