"""Costs of sweeps besides memory traffic, counted in arrays of full size."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.schedule.elements import Axes


@dataclass(frozen=True)
class WalkCost:
    """Sweeps that are parallel along ``rows``, of the axes ``order`` in which memory lies: their
    number, the arrays of full size that they move, and the number of axes along which a row is
    ``reduced`` to a number.
    """

    rows: Axes
    order: Axes
    sweeps: int
    moved: int
    reduced: int


@dataclass(frozen=True)
class Costs:
    """Costs: ``sweep`` for each; ``last_axis`` the extra cost if rows are pieces of lines of
    memory; ``long_row`` for each axis more in a row, and ``few_rows`` where that is reduced along
    more axes than there are axes of rows; ``unshared`` the extra cost without parallelism.
    """

    sweep: float
    last_axis: float
    long_row: float
    few_rows: float
    unshared: float

    def of(self, walk: WalkCost) -> float:
        total = walk.moved + self.sweep * walk.sweeps
        if not walk.rows:
            return total * self.unshared
        tiled, inner = walk.order[-1] in walk.rows, len(walk.order) - len(walk.rows)
        total = total * (self.last_axis if tiled else 1.0) + self.long_row * max(0, inner - 1)
        return total + self.few_rows * (walk.reduced > len(walk.rows))


# A row of several axes may be too long for a cache.
CPU = Costs(sweep=0.25, last_axis=3.0, long_row=0.3, few_rows=0.0, unshared=4.0)
# With fewer rows than parallel units most of them are idle: rather sums over more of them, for
# which they are read again.
GPU = Costs(sweep=0.25, last_axis=3.0, long_row=0.3, few_rows=5.0, unshared=64.0)
