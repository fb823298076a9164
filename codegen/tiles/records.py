"""Records of kernels of tiles; printers decide nothing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from codegen.program.steps import Step
from codegen.program.values import Compare, Value
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class TileSum:
    """A ``kind`` ('sum', 'largest') over the tiles of the loop, with these ``axes`` of the kernel;
    ``online``: measured from that running maximum, to the ``degree``.
    """

    name: str
    kind: str
    value: Value
    axes: tuple[str, ...]
    online: str = ""
    degree: Fraction = Fraction(0)


@dataclass(frozen=True)
class Stored:
    """A value that a kernel stores, under its ``name``, of the variable ``of``. Along the ``more``
    axes, in front of its own dimensions, it stores a part each, and their sum is the value.
    """

    name: str
    dims: Layout
    more: tuple[str, ...]
    of: str


@dataclass(frozen=True)
class TileBound:
    """A condition on the positions along the two axes of a tile, without which a tile adds nothing:
    that along the loop minus that along ``own``, plus ``rest``, which is made of numbers, has this
    ``relation`` to 0.
    """

    condition: Compare
    relation: str
    rest: tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class TileKernel:
    """A program for each tile of the axis ``own`` and each place along the ``grid`` axes, which
    walks over the tiles of ``loop``. ``before`` and ``after`` are lines of its rows alone; the
    ``body`` is computed in each tile, and ``written`` are the tiles that are stored. The ``long``
    axes are in no tile as a whole: products over them are added up block by block, and sums along
    them lie in memory of the program's own.
    """

    own: str
    loop: str
    grid: tuple[str, ...]
    before: tuple[Step, ...]
    body: tuple[Step | TileSum, ...]
    after: tuple[Step, ...]
    stored: tuple[Stored, ...]
    written: tuple[Stored, ...]
    bounds: tuple[TileBound, ...]
    long: tuple[str, ...] = ()

    @property
    def held(self) -> tuple[TileSum, ...]:
        """The sums that lie in memory."""
        return tuple(each for each in self.sums if {*each.axes} & {*self.long})

    @property
    def sums(self) -> tuple[TileSum, ...]:
        return tuple(each for each in self.body if isinstance(each, TileSum))


@dataclass(frozen=True)
class WholeLine:
    """A step between the kernels, on whole arrays; ``of`` is the node that it belongs to."""

    of: str
    step: Step


Piece = WholeLine | TileKernel
