"""From a Program to one whose axes are split over the ranks of groups.

In: a `Program`, and the axes. Out: `Sharded`, the four functions as one rank computes them, with
the collectives between (``program/shards.py``). A tensor along a split axis is this rank's part,
in rank order; what lacks the axis is the same on all ranks. Nothing here knows a language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from codegen.program import Program
from codegen.program.shards import Exchange
from codegen.sharding.functions import split
from codegen.sharding.groups import Groups, groups_of


@dataclass(frozen=True)
class Sharded:
    """``program`` has the functions of one rank, under the new name, and no second order.
    ``exchanges`` are the collectives of each function, by its name.
    """

    program: Program
    groups: Groups
    exchanges: dict[str, tuple[Exchange, ...]]


def sharded(program: Program, axes: Sequence[str]) -> Sharded:
    """Raises `QuestionError` for an axis that there is not, and for what crosses the parts."""
    groups = groups_of(program, axes)
    end = "_".join(["shard", *(axis.lower() for axis in axes)])
    title = program.title + "".join(["Shard", *(axis.capitalize() for axis in axes)])
    four = {}
    for kind in ("forward", "backward", "atoms", "chain"):
        found = split(program, getattr(program, kind), groups)
        function = found.function
        name = f"{program.name}_{end}" + function.name.removeprefix(program.name)
        kinds = function.result_class.removeprefix(program.title)
        four[kind] = replace(function, name=name, result_class=title + kinds), found.exchanges
    changed = replace(
        program,
        name=f"{program.name}_{end}",
        title=title,
        ranges=(),  # they are among the checks now, or among the steps
        second=None,
        plain=None,
        without_second="",
        **{kind: function for kind, (function, _) in four.items()},
    )
    return Sharded(changed, groups, {f.name: exchanges for f, exchanges in four.values()})
