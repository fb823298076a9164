"""From a Program to one whose axes are split over the ranks of groups.

In: a `Program`, and the axes. Out: `Sharded`, the four functions as one rank computes them, with
the collectives between (``program/shards.py``). A tensor along a split axis is this rank's part,
in rank order; a tensor without the axis is the same on all ranks. Nothing here knows a language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.program import NUMBERS, Program
from codegen.program.shards import Exchange
from codegen.program.steps import InRange
from codegen.program.values import LengthOf
from codegen.sharding.functions import split
from codegen.sharding.groups import Groups, groups_of
from codegen.sharding.known import known_before

SHARD = "shard"  # stands in the names of modules
FOUR = ("forward", "backward", "atoms", "chain")


@dataclass(frozen=True)
class Sharded:
    """``program`` has the functions of one rank, under the new name. ``exchanges`` are the
    collectives of each function, by its kind; ``rewritten`` the identities that reduced them.
    ``plain`` is the pair for calls that pass nothing optional, if all ranks see alike whether
    something is: the tensors ``absent`` are left out, the scalars ``zero`` are 0, and of the labels
    ``counting`` no entry is ignored.
    """

    program: Program
    groups: Groups
    exchanges: Mapping[str, tuple[Exchange, ...]]
    rewritten: frozenset[str]
    plain: Sharded | None = None
    absent: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    counting: tuple[InRange, ...] = ()


def sharded(program: Program, axes: Sequence[str], reduction: str = "") -> Sharded:
    """The name has the ``reduction`` unless it is the default.

    Raises `QuestionError` for an unknown axis, and for what crosses the parts.
    """
    groups = groups_of(program, axes)
    forward, backward = known_before(program.forward, program.backward, groups)
    program = replace(program, forward=forward, backward=backward)
    words = [*[reduction] * bool(reduction), SHARD, *axes]
    end, title = "_".join(words).lower(), "".join(word.capitalize() for word in words)
    changed = replace(
        program,
        name=f"{program.name}_{end}",
        title=program.title + title,
        ranges=(),  # they are among the checks now, or among the steps
        without_options=None,
    )
    found, plain = _of_rank(program, changed, groups, FOUR), program.without_options
    if plain is None:
        return found
    counting = tuple(step for step in plain.ranges if step.name in program.ignored)
    if any(_is_split(program, step.name, groups) for step in counting):
        return found
    forward, backward = known_before(plain.forward, plain.backward, groups)
    pair = {"forward": forward, "backward": backward, "ranges": counting}
    short = _of_rank(replace(program, **pair), found.program, groups, FOUR[:2])
    taken = {p.name for p in plain.forward.parameters}
    left = [p for p in program.forward.parameters if p.name not in taken]
    return replace(
        found,
        plain=short,
        absent=tuple(p.name for p in left if p.role not in NUMBERS),
        zero=tuple(p.name for p in left if p.role == "scalar"),
        counting=tuple(_lengths_here(step, program, groups) for step in counting),
    )


def _of_rank(program: Program, changed: Program, groups: Groups, kinds: Sequence[str]) -> Sharded:
    """``changed`` with functions of ``program`` for one rank."""
    functions, exchanges, rewritten = {}, {}, frozenset()
    for kind in kinds:
        found = split(program, getattr(program, kind), groups)
        function = found.function
        functions[kind] = replace(
            function,
            name=changed.name + function.name.removeprefix(program.name),
            result_class=changed.title + function.result_class.removeprefix(program.title),
        )
        exchanges[kind] = found.exchanges
        rewritten |= found.rewritten
    return Sharded(replace(changed, **functions), groups, exchanges, rewritten)


def _is_split(program: Program, name: str, groups: Groups) -> bool:
    layouts = {p.name: p.layout for p in program.forward.parameters}
    return any(groups.split(layouts[name]))


def _lengths_here(step: InRange, program: Program, groups: Groups) -> InRange:
    """The check for the lengths that this rank knows: the others are checked later."""
    layouts = {p.name: p.layout for p in program.forward.parameters}
    known = [
        v
        for v in step.lengths
        if isinstance(v, LengthOf) and not groups.split(layouts[v.tensor])[v.along]
    ]
    return replace(step, lengths=tuple(known))
