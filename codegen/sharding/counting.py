"""Collectives between ranks, in words: how often, and how many entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.files.quality import Collectives
from codegen.program import Program
from codegen.program.shards import Exchange
from codegen.sharding import Sharded, sharded
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout

WORDS = {
    "agreed": "lengths",
    "ratio": "lengths",
    "first": "first largest",
    "moments": "mean and squares",
}


def told(exchanges: Sequence[Exchange], again: bool = False) -> tuple[str, ...]:
    """Each collective: 'sum of N + N', with the axes of each tensor that travels; ``again`` if the
    lengths of the parts are known before.
    """
    return tuple(
        _in_words(exchange) for exchange in exchanges if not (again and exchange.kind == "agreed")
    )


def _in_words(exchange: Exchange) -> str:
    kind = WORDS.get(exchange.kind, exchange.kind)
    sizes = [_entries(sent.dims) for sent in exchange.sent if sent.value is not None]
    return f"{kind} of {' + '.join(sizes)}" if sizes else kind


def _entries(dims: Layout) -> str:
    axes = [dim.axis.name for dim in dims if not dim.one]
    return "*".join(axes) if axes else "1"


def axes_of(program: Program) -> list[str]:
    """The axes of the arguments, in their order."""
    layouts = [p.layout for p in program.forward.parameters]
    return list(dict.fromkeys(dim.axis.name for layout in layouts for dim in layout))


def collectives_of(program: Program) -> Iterator[Collectives]:
    """The collectives for each axis that may be split."""
    for axis in axes_of(program):
        try:
            found = sharded(program, [axis])
        except QuestionError as error:
            yield Collectives(axis, (), (), str(error).splitlines()[0])
            continue
        short: Sharded = found.plain or found
        yield Collectives(
            axis, told(short.exchanges["forward"]), told(short.exchanges["backward"], True), ""
        )
