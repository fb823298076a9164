"""Kernels of tiles from the passes over the chunks of an axis: matrix products, running maxima and
sums of tiles that are never stored.

In: `Passes`, of outputs or of gradients. Out: `Piece`, kernels and the lines between them, with
every decision made: which axes a program owns, what it walks over, which tiles it skips, what it
keeps for others. Nothing here knows a language, nor attention.
"""

from __future__ import annotations

from codegen.chunking import Chunked
from codegen.chunking.passes import Passes
from codegen.tiles.dividing import Dividing

TILES = "tiles"  # stands in the names of modules


def divided(chunked: Chunked, passes: Passes) -> Dividing:
    """The pieces are in its ``found``. Raises `QuestionError` for what cannot be a tile."""
    made = Dividing(chunked, passes)
    made.found = [*made.pieces()]
    return made
