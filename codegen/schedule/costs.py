"""What a sweep costs beside what it moves, which is counted in arrays of full size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """``sweep`` for each; ``last_axis`` is how much dearer one is whose rows are pieces of lines of
    memory; ``long_row`` for each axis more in a row, and ``unshared`` how much dearer one is that
    nothing is parallel in.
    """

    sweep: float
    last_axis: float
    long_row: float
    unshared: float


# A row of several axes may be too long for a cache.
CPU = Costs(sweep=0.25, last_axis=3.0, long_row=0.3, unshared=4.0)
# It does not fit into registers, and there are fewer rows than what computes at once: rather sums
# over more of them, for which they are read again.
GPU = Costs(sweep=0.25, last_axis=3.0, long_row=5.0, unshared=64.0)
