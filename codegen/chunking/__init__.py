"""From a Program to passes over the chunks of an axis.

In: a `Program` and an axis. Out: `Chunked`, forward and backward as one function, and its `Passes`:
for the outputs alone, for outputs and gradients at once, and for gradients from what the outputs
left. A chunk is a rank in time, so the rules are those of ``codegen/sharding``; nothing here knows
a language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from codegen.chunking.joined import joined
from codegen.chunking.nodes import MAPPED, ChunkNode, closure
from codegen.chunking.passes import Passes, passes_of
from codegen.chunking.ring import check_goes_round
from codegen.program import Function, Program
from codegen.program.steps import NotZero
from codegen.sharding import SHARD
from codegen.sharding.groups import Groups, groups_of
from derive.language.errors import QuestionError

CHUNK = "chunk"  # stands in the names of modules
BOTH = f"{SHARD}_{CHUNK}"
RING = "ring"


@dataclass(frozen=True)
class ChunkedAxis:
    """The axis that is walked along, and the axes ``over_ranks``: each rank walks along all of the
    axis, or in a ``ring`` has a part of it, too, which goes round. The gradients of an output of
    one number may have passes ``apart`` from its own.
    """

    axis: str
    over_ranks: tuple[str, ...] = ()
    ring: bool = False
    apart: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words at the end of the names of modules."""
        before = (SHARD, *self.over_ranks) if self.over_ranks else ()
        return (*before, RING if self.ring else CHUNK, self.axis)


@dataclass(frozen=True)
class Chunked:
    """``function`` has the outputs and then the gradients as results. If the output is one number,
    the gradients are made in the forward, for an upstream gradient of 1, and ``both`` has all;
    otherwise, or ``apart``, ``gradients`` has the passes of the backward, which reads the values
    ``kept`` from the forward: outputs, and what is accumulated.
    """

    program: Program
    function: Function
    groups: Groups
    output: Passes
    both: Passes | None
    gradients: Passes | None
    kept: tuple[str, ...]

    @property
    def axis(self) -> str:
        return self.groups.chunked

    @property
    def all_passes(self) -> tuple[Passes, ...]:
        return tuple(filter(None, (self.output, self.both, self.gradients)))

    @property
    def rewritten(self) -> frozenset[str]:
        upstream = {"upstream"} if self.both else set()
        return frozenset(upstream.union(*(p.rewritten for p in self.all_passes)))


def chunked(program: Program, walk: ChunkedAxis, name: str = "", title: str = "") -> Chunked:
    """``name`` and ``title`` are those of the module, if it has others than the program.

    Raises `QuestionError` for an axis that has no chunks.
    """
    groups = groups_of(program, [walk.axis, *walk.over_ranks], walk.axis)
    groups = replace(groups, ring=walk.ring)
    for own in groups.axes:
        _check_is_no_product(program, own)
    for own in groups.of_ranks:
        _check_has_one_name(program, own)
    if walk.ring:
        check_goes_round(program, groups)
    function = joined(program)
    count = len(program.outputs)
    outputs = function.results[:count]
    named = replace(
        program, name=name or program.name, title=title or program.title, without_options=None
    )
    is_number = count == 1 and not program.upstreams[0].layout
    of = partial(passes_of, program, function, groups)
    if is_number and not walk.apart:
        checked = _without_checks_of_backward(program, function)
        output = passes_of(program, checked, groups, outputs)
        return Chunked(named, function, groups, output, of(function.results), None, ())
    return Chunked(named, function, groups, *_apart(program, function, groups, of))


def _apart(
    program: Program, function: Function, groups: Groups, of: Callable[..., Passes]
) -> tuple[Passes, None, Passes, tuple[str, ...]]:
    """Passes of the outputs and of the gradients, and the values that the outputs leave for these;
    ``of`` finds the passes of some results.
    """
    of_outputs = partial(passes_of, program, _without_checks_of_backward(program, function), groups)
    count = len(program.outputs)
    outputs, gradients = function.results[:count], function.results[count:]
    output, again = of_outputs(outputs), of(gradients)
    made = {*output.nodes} & {*again.nodes}
    kept = tuple(r for r in output.results if r in made and output.nodes[r].kind != MAPPED)
    again = of(gradients, kept)
    later = {node.name for node in again.accumulated}
    kept += tuple(n.name for n in output.accumulated if n.name in later and n.name not in kept)
    again = of(gradients, kept)
    is_number = count == 1 and not program.upstreams[0].layout
    early = _sums_before_the_last_pass(again, program) if is_number else ()
    if early and not again.bordered:
        fewer = of(gradients, (*kept, *early))
        if fewer.count < again.count:
            again, kept, output = fewer, (*kept, *early), of_outputs(outputs, kept=early)
    if again.bordered:  # those of the forward are kept there
        run = (node.running for node in output.nodes.values() if node.running)
        there = {name for each in run for name in each.states}
        states = tuple(name for name in again.bordered if name in there)
        output = of_outputs(outputs, bordered=states)
        kept += states
        again = of(gradients, kept)
    return output, None, again, kept


def _sums_before_the_last_pass(again: Passes, program: Program) -> tuple[str, ...]:
    """Accumulated values for which gradients have a pass of their own, although no upstream
    gradient is in them: the forward has all that they are made of.
    """
    upstreams = {up.name for up in program.upstreams}
    walks = [one for one in again.passes if one.walks]
    sums = [node for one in walks[:-1] for node in one.sums]

    def reads_upstream(node: ChunkNode) -> bool:
        names = closure([node.name], again.nodes)
        return bool(upstreams & {r for name in names for r in again.nodes[name].reads})

    return tuple(node.name for node in sums if not reads_upstream(node))


def _without_checks_of_backward(program: Program, function: Function) -> Function:
    own = [s for s in program.backward.steps if isinstance(s, NotZero)]
    return replace(function, steps=tuple(s for s in function.steps if s not in own))


def _check_has_one_name(program: Program, axis: str) -> None:
    """Raise for a split axis whose length of all parts is needed under another name."""
    codes = [code for _, code in program.sizes]
    own = dict(program.sizes)[axis]
    if codes.count(own) > 1 or any(own in parts for _, parts in program.flattened):
        raise QuestionError(
            f"the axis {axis} of {program.name} is met under another name, too: it is not split"
            " over ranks and in chunks at once",
            f"ask for --{SHARD} or --{CHUNK} alone",
        )


def _check_is_no_product(program: Program, axis: str) -> None:
    """Raise for an axis made of others: its chunks would have to end where theirs do."""
    of_code = {code: own for own, code in reversed(program.sizes)}
    parts = dict(program.flattened).get(dict(program.sizes)[axis], ())
    if parts:
        own = [of_code[part] for part in parts]
        raise QuestionError(
            f"the axis {axis} of {program.name} is flattened from {' x '.join(own)}: a chunk may "
            "end inside of one",
            f"compute in chunks of {own[0]}",
        )
