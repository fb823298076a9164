"""Reports on modules that were written, as tables on a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from codegen.chunking import BOTH, CHUNK, RING
from codegen.driver.ranks import OfRanks
from codegen.files.quality import Emitted, Quality
from codegen.sharding import SHARD
from codegen.tiles import TILES


def table(results: Sequence[Emitted], reduced: Container[str] = ()) -> Table:
    """Names and outputs, closed forms, proofs, and distances from autograd; the functions called in
    ``reduced`` return one number, and their modules hold the losses before that.
    """
    found = Table(show_lines=True)
    for title, options in {
        "function": {"no_wrap": True},
        "closed form": {"overflow": "fold"},
        "proved": {},
        "error vs. autograd": {"justify": "right"},
        "time": {"justify": "right", "no_wrap": True},
    }.items():
        found.add_column(title, **options)
    for result in results:
        quality = result.quality
        found.add_row(
            Text("\n".join([quality.name, *_returned(quality, reduced)])),
            Text("\n".join([*quality.closed_form, *quality.unsafe])),
            Text(quality.proved),
            Text(f"{quality.difference:.1e}"),
            Text("cached" if result.unchanged else f"{quality.seconds:.2f} s"),
        )
    return found


def _returned(quality: Quality, reduced: Container[str]) -> Iterator[str]:
    """The outputs with their axes."""
    for output in quality.outputs:
        if quality.name in reduced:
            yield f"{output.split()[0]} ()"
        yield output + " before reduction" * (quality.name in reduced)


TITLES = {
    SHARD: ("module", "collectives, forward", "backward", "error vs. one process"),
    CHUNK: ("module", "forward", "backward", "error vs. autograd"),
    TILES: ("module", "forward", "backward", "error vs. autograd"),
}
TITLES[BOTH] = TITLES[RING] = TITLES[CHUNK]


def table_of_ranks(found: Sequence[OfRanks], way: str) -> Table:
    """Collectives between the ranks, or passes over the chunks, and the error against the whole."""
    table = Table(show_lines=True)
    for title in TITLES[way]:
        table.add_column(title, overflow="fold")
    for each in found:
        table.add_row(
            Text(each.file),
            Text("\n".join(each.forward) or "nothing"),
            Text("\n".join(each.backward) or "nothing"),
            Text(f"{each.difference:.1e}"),
        )
    return table
