"""Chunks that go round: both axes are split over the same ranks, and what lies along the walked one
is passed on from rank to rank, so that each meets all of it.

A value of one rank's rows alone, along either axis, is computed where they are: at home. A value of
rows of both is of a visit, which is a chunk. What is accumulated over the visits stays at home; a
sum over the ranks' own rows, for each visiting one, travels with these, and is home when all ranks
have added to it.

    of rows    is               summed over ranks    summed over what goes round
    neither    the same         -                    -
    T          at home          told by all          -
    S          at home          -                    told by all
    both       of a visit       travels, is of S     stays, is of T
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from codegen.chunking.nodes import FIRST, INDEPENDENT, LARGEST, MAPPED, SUM, ChunkNode
from codegen.program import Program, shards
from codegen.program.arrays import Arrange, Expand
from codegen.program.parts import values_in, with_replaced
from codegen.program.shards import Exchange, Visiting
from codegen.program.steps import Assign, Step
from codegen.program.values import Load, Number, SizeOf, Value
from codegen.sharding import SHARD
from codegen.sharding.functions import RankWriter
from codegen.sharding.groups import Groups
from codegen.sharding.values import POINTWISE, values_of
from derive.language.errors import QuestionError

WHOLE = (shards.WholeSize, shards.WholeOneHot, shards.WholeGathered, shards.Ratio)  # of no part
PLACES = (shards.OwnPositions, shards.OwnOneHot, shards.WholeSize)
AT_SIGHT = (*POINTWISE, *PLACES, Arrange, Expand, Load, Number, SizeOf)  # computed at each visit

Nodes = Mapping[str, ChunkNode]


def check_goes_round(program: Program, groups: Groups) -> None:
    """Raise `QuestionError` unless arguments lie along each of the two axes alone."""
    home, round_ = groups.of_ranks
    splits = [{*filter(None, groups.split(p.layout))} for p in program.forward.tensors]
    has_default = [p.default is not None for p in program.forward.tensors]
    required = [split for split, left in zip(splits, has_default, strict=True) if not left]
    if {round_} not in required:
        raise QuestionError(
            f"no required argument of {program.name} lies along {round_} and not along {home}:"
            " nothing goes round",
            f"ask for --{SHARD} {home} alone",
        )
    if not any(home in split for split in required):
        raise QuestionError(
            f"no required argument of {program.name} lies along {home}: a rank has no rows of its"
            " own",
            f"ask for --{SHARD} {round_} alone",
        )


def in_ring(writer: RankWriter, nodes: Nodes) -> dict[str, ChunkNode]:
    """The nodes of a ring: of a visit those that rows of both axes meet in."""
    ring = _Ring(writer, nodes)
    for node in ring.ordered:
        ring.place(node)
    return ring.with_visitors()


class _Ring:
    def __init__(self, writer: RankWriter, nodes: Nodes):
        self.writer, self.nodes = writer, nodes
        self.groups, self.splits = writer.groups, writer.placing.splits
        self.home, self.round = self.groups.of_ranks
        self.ordered = [*{id(node): node for node in nodes.values()}.values()]
        self.rows = self._rows()
        self.visitors: dict[str, ChunkNode | None] = {}  # by the name of what visits
        self.made: dict[str, ChunkNode] = {}

    def _rows(self) -> dict[str, frozenset[str]]:
        """The axes of whose rows each value is, by its name: of whose parts it differs."""
        found = {
            p.name: frozenset(filter(None, self.splits.get(p.name, ())))
            for p in self.writer.function.parameters
        }
        before: dict[str, frozenset[str]] = {}
        while before != found:
            before = dict(found)
            for node in self.ordered:
                read = (found.get(name, frozenset()) for name in node.reads)
                rows = frozenset().union(*read)
                for step in node.steps:
                    rows |= _of_parts(step)
                    if isinstance(step, Exchange):
                        rows -= {step.group}
                    else:
                        rows |= {*filter(None, self.splits.get(step.name, ()))}
                found |= dict.fromkeys({node.name, *node.writes}, rows)
        return found

    def _meets(self, node: ChunkNode) -> bool:
        """True if rows of both axes meet in what a node reads."""
        rows = {*chain.from_iterable(self.rows.get(name, ()) for name in node.reads)}
        rows = rows.union(*map(_of_parts, node.steps))
        return {self.home, self.round} <= rows

    def place(self, node: ChunkNode) -> None:
        """Make a node one of a visit, an accumulated one, or one at home."""
        (step, *_) = node.steps
        if not isinstance(step, Exchange):
            is_of_both = {self.home, self.round} <= self.rows[node.name]
            node.kind = MAPPED if is_of_both else INDEPENDENT
            return
        if not self._meets(node):
            node.kind = INDEPENDENT
            return
        node.kind, node.travels = step.kind, step.group == self.home
        along = [self.groups.of.get(d.axis.name) == self.round and not d.one for d in node.dims]
        kinds = (SUM, LARGEST) if node.travels else (SUM, LARGEST, FIRST)
        if step.kind not in kinds or (node.travels and not any(along)):
            told = node.name.split(f"_{step.kind}")[0]
            name = self.writer.program.name
            raise QuestionError(
                f"{name} cannot go round along {self.round}, with {self.home} over "
                f"ranks: {told} needs rows of several visits at once",
                f"ask for --{SHARD} {self.home} alone",
            )
        if node.travels:
            node.split = tuple(self.round if each else "" for each in along)

    # -- what visits -----------------------------------------------------------------------

    def with_visitors(self) -> dict[str, ChunkNode]:
        """The nodes, with one for each value at home that visits others."""
        found: dict[str, ChunkNode] = {}
        for node in self.ordered:
            names = [name for name, own in self.nodes.items() if own is node]
            if node.kind == MAPPED or (node.is_accumulated and self._meets(node)):
                self._of_visit(node)
                found |= {own.name: own for own in self.made.values()}
            found |= dict.fromkeys(names, node)
        return found

    def _of_visit(self, node: ChunkNode) -> None:
        """Let a node read what visits in place of what is at home."""
        renamed = {name: own.name for name in node.reads if (own := self._visitor(name))}

        def change(value: Value) -> Value | None:
            if isinstance(value, Load) and value.name in renamed:
                return replace(value, name=renamed[value.name])
            return None

        node.steps = [_with_replaced(step, change) for step in node.steps]
        node.reads = {renamed.get(name, name) for name in node.reads}

    def _visitor(self, name: str) -> ChunkNode | None:
        """The node of a value of this name that visits; None for all others and for arguments."""
        node = self.nodes.get(name)
        if node is None or self.rows[name] != {self.round}:
            return None
        if name not in self.visitors:
            own, step = self.writer.fresh(f"own_{name}"), node.steps[0]
            if self._is_at_sight(node):
                twin = replace(node, name=own, steps=[replace(step, name=own)], kind=MAPPED)
                twin.reads, twin.writes = {*node.reads}, {own}
                self._of_visit(twin)
            else:
                visiting = Visiting(Load(name, dims=node.dims), dims=node.dims)
                twin = ChunkNode(own, [Assign(own, visiting)], {name}, MAPPED, node.dims)
                twin.writes = {own}
            along = (not d.one and self.groups.of.get(d.axis.name) == self.round for d in node.dims)
            twin.split = self.splits[own] = tuple(self.round if each else "" for each in along)
            self.visitors[name] = self.made[own] = twin
        return self.visitors[name]

    def _is_at_sight(self, node: ChunkNode) -> bool:
        """True for a value that is entry by entry one of arguments: these visit in its place."""
        step, *more = node.steps
        if more or not isinstance(step, Assign):
            return False
        if not all(isinstance(v, AT_SIGHT) for v in (step.value, *values_in(step.value))):
            return False
        others = [self.nodes.get(name) for name in node.reads if self.rows.get(name)]
        return all(other is None or self._is_at_sight(other) for other in others)


def _of_parts(step: Step) -> set[str]:
    """The axes of which a step asks for the part of a rank."""
    values = [*values_of(step), *[step] * (not isinstance(step, Exchange))]
    return {v.group for v in values if hasattr(v, "group") and not isinstance(v, WHOLE)}


def _with_replaced(step: Step, change) -> Step:
    if not isinstance(step, Exchange):
        return with_replaced(step, change)
    sent = (replace(s, value=s.value and with_replaced(s.value, change)) for s in step.sent)
    return replace(step, sent=tuple(sent))
