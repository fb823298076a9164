"""A module that computes in chunks of an axis, as text: its lines are those of ranks, run one after
the other.
"""

from __future__ import annotations

from typing import ClassVar

from codegen.program import NUMBERS, Function
from codegen.program.parts import values_in
from codegen.program.shards import Exchange
from codegen.program.values import Load
from codegen.sharding import Sharded
from codegen.targets.torch.asking import Core
from codegen.targets.torch.checks import restored
from codegen.targets.torch.lines import broken
from codegen.targets.torch.rows import Rows
from codegen.targets.torch.shard_pairs import RankPair, ShardedPair, either
from codegen.targets.torch.shard_printer import SHARDED, ShardPrinter
from codegen.targets.torch.wrapping import broken_at_its_place, in_tuple, public, wrapped
from derive.language.errors import QuestionError

CHUNK = 4096  # entries of an axis, where nothing else is said: a tile of some columns of a matrix
TOLD = ("agreed", "sum", "largest", "first", "moments")  # collectives of chunks, in turn


CHUNKED = Rows(SHARDED)


class ChunkPrinter(ShardPrinter):
    """``last`` are the results that are plain sums over the chunks."""

    rows: ClassVar[Rows] = CHUNKED
    last: frozenset[str] = frozenset()


@CHUNKED.of(Exchange)
def _exchange(p: ChunkPrinter, step: Exchange) -> str:
    text = SHARDED[Exchange](p, step)
    results = {sent.name for sent in step.sent} <= p.last
    return text.replace(f"{p.over[step.group]}.sum(", f"{p.over[step.group]}.last(", results)


class ChunkedPage(ShardedPair):
    """The functions of a module as text."""

    def __init__(self, sharded: Sharded):
        super().__init__(sharded)
        (self.axis,) = self.groups.axes
        (self.name_of_over,) = self.over.values()
        output = self.program.backward.parameters[0]
        if any(self.groups.split(output.layout)):
            raise QuestionError(
                f"{self.program.forward.results[0]} has the axis {self.axis}: chunks save nothing",
                "compute in chunks of an axis that the output does not have",
            )
        kinds = {e.kind for exchanges in sharded.exchanges.values() for e in exchanges}
        if not kinds <= {*TOLD}:
            raise QuestionError(
                f"{self.program.name}: a value along {self.axis} needs all chunks at once",
                "compute in chunks of another axis",
            )

    def printer(self, function: Function) -> ChunkPrinter:
        plain = super().printer(function)
        printer = ChunkPrinter(plain, self.over, self.lengths, self.groups.of)
        printer.sizes = plain.sizes
        printer.last = self.last(function)
        return printer

    def last(self, function: Function) -> frozenset[str]:
        """The results that are plain sums over the chunks, which nothing else reads."""
        if function is not self.program.backward:
            return frozenset()
        read = {v.name for step in function.steps for v in values_in(step) if isinstance(v, Load)}
        sums = [s for s in function.steps if isinstance(s, Exchange) and s.kind == "sum"]
        told = [sent for step in function.steps if isinstance(step, Exchange) for sent in step.sent]
        inside = [v for sent in told if sent.value for v in (sent.value, *values_in(sent.value))]
        read |= {v.name for v in inside if isinstance(v, Load)}
        alone = [s for s in sums if {sent.name for sent in s.sent} <= {*function.results} - read]
        return frozenset(sent.name for step in alone for sent in step.sent)

    def public(self) -> Core:
        """The differentiable function."""
        program, function, over = self.program, self.program.forward, self.name_of_over
        output, layout = function.results[0], program.backward.parameters[0].layout
        place = self.length_of(function, self.axis)
        like = next(p.name for p in function.parameters if self.always_there(p))
        lines = [f'_inputs.without_gradient("{name}", {name})' for name in self.of_role("given")]
        lines += [
            self.prepared,
            f'{over} = _ranks.Chunks("{program.name}", {like}, {place}, chunk)',
            broken(f"{output} = {program.title}Function.apply({over}, {self.inputs})"),
        ]
        whole = restored(self.printer(function), output, layout)
        parameters = [*public(function.parameters), f"chunk: int = {CHUNK}"]
        return Core(
            wrapped(f"def {program.name}", parameters, " -> Tensor:"),
            tuple(lines),
            f"return {whole}.to({self.dtype})",
        )

    @property
    def plain(self) -> ChunkedPage | None:
        return ChunkedPage(self.sharded.plain) if self.sharded.plain is not None else None

    def pair_of_lines(self) -> tuple[Core, ...]:
        forward, backward = self.program.forward, self.program.backward
        return (
            self.one_core(forward, "_forward", forward.results),
            self.one_core(backward, "_backward", backward.results),
            *self.plain_pair(),
        )

    def pair(self) -> RankPair:
        program = self.program
        output, over = program.forward.results[0], self.name_of_over
        tensors = [p.name for p in program.forward.parameters if p.role not in NUMBERS]
        numbers = [p.name for p in program.forward.parameters if p.role in NUMBERS]
        forward, backward = self.kept("_forward"), self.called_back("_backward")
        if self.plain is not None:
            short = self.plain.kept("_plain_forward"), self.plain.called_back("_plain_backward")
            forward = [f"ctx.plain = {self.takes_plain()}", *either("ctx.plain", short[0], forward)]
            backward = either("ctx.plain", short[1], backward)
        places = {name: i for i, name in enumerate(program.backward.results)}
        returned = [
            f"gradients[{places[f'd{p.name}']}]" if p.role == "input" else "None"
            for p in program.forward.parameters
        ]
        forward = [
            f"{over} = over",
            *forward,
            f"ctx.save_for_backward({', '.join(tensors)})",
            f"ctx.over, ctx.numbers = over, {in_tuple(numbers) if numbers else '()'}",
            f"return {output}",
        ]
        comma = "," * (len(tensors) == 1)
        backward = [
            f"{', '.join(tensors)}{comma} = ctx.saved_tensors",
            *[f"{', '.join(numbers)}{',' * (len(numbers) == 1)} = ctx.numbers"] * bool(numbers),
            f"{over} = ctx.over",
            f'again = _ranks.Chunks("{program.name}", {over}, {over}.size, {over}.chunk)',
            f"wanted = {in_tuple(self.wanted())}",
            *backward,
            f"return {in_tuple(['None', *returned])}",
        ]
        upstream = program.backward.parameters[0].name
        lines = (tuple(map(broken_at_its_place, found)) for found in (forward, backward))
        return RankPair(self.inputs, output, upstream, *lines)

    def wanted(self) -> list[str]:
        """The argument of `_ranks.Chunks.gradients` for each gradient."""
        program = self.program
        found = []
        for i, p in enumerate(program.forward.parameters, 1):
            if p.role == "input":
                split = self.groups.split(p.layout)
                place = str(split.index(self.axis)) if self.axis in split else "None"
                added = f"d{p.name}" in self.last(program.backward)
                found.append(f"({p.name}, {place}, {added}) if ctx.needs_input_grad[{i}] else ()")
        return found

    def cut(self) -> str:
        """The arguments of the lines for one chunk."""
        given = []
        for p in self.program.forward.parameters:
            split = self.groups.split(p.layout)
            along = split.index(self.axis) if self.axis in split else None
            given.append(p.name if along is None else f"{self.name_of_over}.cut({p.name}, {along})")
        return ", ".join([self.name_of_over, *given])

    def kept(self, name: str) -> list[str]:
        """The lines of the forward that autograd calls."""
        over, made = self.name_of_over, self.program.forward.results[0]
        return [f"{made} = {over}.complete(lambda: {name}({self.cut()}))[0]"]

    def called_back(self, name: str) -> list[str]:
        """The lines of the backward: for each chunk the forward again, and its backward."""
        forward, backward = self.program.forward, self.program.backward
        needs = [p.name for p in backward.parameters[1:]]
        unpacked = [n if n in needs else "_" for n in forward.results]
        given = ", ".join(["again", backward.parameters[0].name, *(f"own_{n}" for n in needs)])
        made = ", ".join(n if n == "_" else f"own_{n}" for n in unpacked)
        before = name.replace("backward", "forward")
        return [
            "def of_chunk():",
            f"    {made}{',' * (len(unpacked) == 1)} = {before}({self.cut()})",
            f"    return {name}({given})",
            f"gradients = again.gradients(of_chunk, wanted, {self.name_of_over})",
        ]
