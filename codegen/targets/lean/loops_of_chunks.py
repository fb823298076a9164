"""The functions of a module that computes in chunks, as text: loops over the chunks of an axis, the
lines of any module on the slice of a chunk, and sums, gradients and rows written in place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import ClassVar

from codegen.chunking import Chunked
from codegen.chunking.nodes import FIRST, GATHERED, LARGEST, LAST, MAPPED, SUM, ChunkNode, closure
from codegen.chunking.passes import Pass, Passes
from codegen.chunking.placed import LARGE
from codegen.program import NUMBERS, shards, values
from codegen.program.arrays import (
    ArgMaxOf,
    Arrange,
    Contract,
    Cumulate,
    Pick,
    Positions,
    Reduce,
    SegmentArgMax,
)
from codegen.program.loops import Looped
from codegen.program.parts import values_in, with_replaced
from codegen.program.shards import Exchange
from codegen.program.steps import Assign, NotZero, Step
from codegen.program.values import Apply, Combine, Compare, Load, MulAdd, Plus, Power, Times, Value
from codegen.sharding.lengths import Lengths
from codegen.sharding.ordering import TOGETHER, line
from codegen.sharding.values import in_place
from codegen.targets.lean.plain import sizes_read
from codegen.targets.lean.running import (
    SummedLogarithms,
    first_states,
    lines_of_running,
    with_own_names,
)
from codegen.targets.torch.arrays import matrices
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.rows import TORCH, Rows
from codegen.targets.torch.shard_printer import SHARDED, ShardPrinter
from codegen.targets.torch.vocabulary import ATOM
from codegen.targets.torch.wrapping import free
from derive.language.notation.layout import Dim, Layout

# Are computed into memory of their own:
FRESH = (Plus, Times, MulAdd, Power, Apply, Contract, shards.Running)
SUMMED = (Reduce, Cumulate, shards.OwnLargest, shards.OwnPick)  # so are these
IN_PLACE = {"exp", "log", "tanh", "sqrt", "abs", "sin", "cos", "sigmoid", "expm1", "log1p"}
DEEP = STEP * 3  # the margin of a line in a loop, under a condition
NAMES = ("over", "chunk", "dtype", "wide", "narrow", "like", "n", "formats", "needs")


@dataclass(frozen=True)
class ChunkLine:
    """A line of a loop, and the gradients of which one has to be asked for; none for all calls."""

    text: str
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class InLoops(Step):
    """Statements of a chunk that kernels compute together: they read and make these values."""

    steps: tuple[Step, ...]
    reads: tuple[str, ...]
    made: tuple[str, ...]


# A value, its dimensions, and the name of the value that it is written over.
Made = tuple[str, Layout, str]
CHUNKED = Rows(SHARDED)


class ChunkPrinter(ShardPrinter):
    """Matrix products are of the ``narrow`` dtype, all else of the ``wide`` one: ``narrowed`` and
    ``widened`` are the names under which an argument has them.
    """

    rows: ClassVar[Rows] = CHUNKED
    whole, narrow, wide = "", "", ""
    floats: Collection[str] = ()  # arguments
    in_time = ""  # the name of a chunk
    sizes_in_time: Mapping[str, str] = {}  # of the chunked axis, its length
    narrowed: Mapping[str, str] = {}
    widened: Mapping[str, str] = {}
    in_product = False

    def loaded(self, name: str) -> str:
        names = self.narrowed if self.in_product else self.widened
        entry = self.slice_of(name)
        if entry and name in names:
            return entry.replace(self.widened[name], names[name], 1)
        return names.get(name, super().loaded(name))

    def product(self, value: Contract) -> tuple[str, str] | None:
        """Both factors of a product of matrices in its order."""
        return matrices(self, _of_narrowed(value)) if value.is_of_matrices else None


@dataclass(frozen=True)
class Narrowed(Value):
    """An operand of a matrix product, in the dtype of products."""

    operand: Value


def _of_narrowed(value: Contract) -> Contract:
    left, right = (Narrowed(v, dims=v.dims) for v in (value.left, value.right))
    return replace(value, left=left, right=right)


@CHUNKED.of(Narrowed)
def _narrowed(p: ChunkPrinter, value: Narrowed) -> tuple[str, int]:
    inside = value.operand
    while isinstance(inside, Arrange):
        inside = inside.operand
    if isinstance(inside, Load) and inside.name in p.narrowed:
        p.in_product = True
        text = p.tight(value.operand)
        p.in_product = False
        return text, ATOM
    return f"{p.tight(value.operand)}.to({p.narrow})", ATOM


@CHUNKED.of(shards.Near)
def _near(p: ChunkPrinter, value: shards.Near) -> tuple[str, int]:
    name, (over,) = value.operand.name, p.over.values()
    given = f"{over}, {name}, {value.along}, {p.text(value.before)}, {p.text(value.after)}"
    return f"_runtime.near({given})" + f".to({p.wide})" * (name in p.floats), ATOM


@CHUNKED.of(shards.Filled)
def _filled(p: ChunkPrinter, value: shards.Filled) -> tuple[str, int]:
    (over,) = p.over.values()
    around = f"({p.text(value.before)}, {p.text(value.after)})"
    further = f"({p.text(value.further_before)}, {p.text(value.further_after)})"
    given = f"{over}, {p.text(value.operand)}, {value.along}, {around}, {further}"
    return f"_runtime.filled({given}, {p.text(value.fill)})", ATOM


@CHUNKED.of(shards.Visiting)
def _visiting(p: ChunkPrinter, value: shards.Visiting) -> tuple[str, int]:
    return f"{p.in_time}.visiting.{value.operand.name}", ATOM


@CHUNKED.of(SummedLogarithms)
def _summed_logarithms(p: ChunkPrinter, value: SummedLogarithms) -> tuple[str, int]:
    return f"torch.logaddexp({p.text(value.left)}, {p.text(value.right)})", ATOM


@CHUNKED.of(Contract)
def _contract(p: ChunkPrinter, value: Contract) -> tuple[str, int]:
    text, _ = TORCH[Contract](p, _of_narrowed(value))
    return f"({text}).to({p.wide})", ATOM


@CHUNKED.of(NotZero)
def _not_zero(p: ChunkPrinter, step: NotZero) -> str:
    return TORCH[NotZero](p, replace(step, name=p.around.program))


@CHUNKED.of(shards.WholeSize)
def _whole_size(p: ChunkPrinter, value: shards.WholeSize) -> tuple[str, int]:
    whole = p.sizes_in_time.get(value.group)
    return (whole, ATOM) if whole else SHARDED[shards.WholeSize](p, value)


@CHUNKED.of(shards.OwnLargest)
def _own_largest(p: ChunkPrinter, value: shards.OwnLargest) -> tuple[str, int]:
    text, binding = SHARDED[shards.OwnLargest](p, value)
    return text.replace("_ranks.", "_runtime.", 1), binding


class ChunkWriter:
    """The lines of one function of a module: its loops, and what stands between them."""

    def __init__(
        self,
        chunked: Chunked,
        passes: Passes,
        plain: Printer,
        inputs: Mapping[str, str],
        needs: Mapping[str, str],
    ):
        """``inputs`` of the results that are gradients, and ``needs``, their flags."""
        self.chunked, self.passes, self.nodes = chunked, passes, passes.nodes
        self.inputs = inputs
        function, groups = chunked.function, chunked.groups
        self.own = {name: name for name in NAMES} | names_of(chunked)
        lengths = Lengths(chunked.program, function, groups)
        over = {axis: name_of_ranks(axis, chunked) for axis in groups.of_ranks}
        self.in_time = [axis for axis, group in groups.of.items() if group == passes.axis]
        both = {passes.axis: self.own["over"]} | over
        self.printer = ChunkPrinter(plain, both, lengths, groups.of)
        self.printer.sizes = dict(plain.sizes)
        self.printer.like = self.own["like"]
        self.code = plain.sizes[passes.axis]
        self.printer.sizes_in_time = {} if groups.ring else {passes.axis: self.code}
        self.printer.narrow, self.printer.wide = self.own["narrow"], self.own["wide"]
        self.parameters = {p.name: p for p in function.parameters if p.role not in NUMBERS}
        parameters = self.parameters
        self.floats = {n for n, p in parameters.items() if p.role not in ("label",)}
        self.printer.floats, self.printer.in_time = self.floats, self.own["over"]
        self.mapped = {n for n in parameters if any(passes.splits.get(n, ()))}
        self.away = self.mapped  # without a value outside of loops
        self.taken = {*parameters, *self.nodes, *self.own.values(), *plain.sizes.values()}
        self.rows = {
            r: free(f"own_{r}", self.taken)
            for r in passes.results
            if r in self.nodes and self.nodes[r].kind == MAPPED
        }
        self.written: set[str] = set()
        self.parts: dict[str, str] = {}  # names of a chunk's part, with what it is added to
        self.needs = needs
        self.of_needs = self._needs()
        self.entries: dict[str, int] = {}  # alive for each row, in any pass
        self.cut: dict[str, int] = {}  # the same for all functions that share states

    def _needs(self) -> dict[str, frozenset[str]]:
        """The flags of the gradients that need each node; none where every call does."""
        of_results = {r: closure([r], self.nodes) for r in self.passes.results}
        everything = frozenset(self.passes.results)
        asked = frozenset(r for r in everything if r in self.needs)
        found = {}
        for name in {node.name for node in self.nodes.values()}:
            by = frozenset(r for r, names in of_results.items() if name in names)
            free_of = by - asked or asked <= by
            found[name] = frozenset() if free_of else frozenset(self.needs[r] for r in by)
        return found

    # -- a function --------------------------------------------------------------------

    def lines(self) -> list[str]:
        body = [ChunkLine(self.printer.step(step)) for step in self.passes.asked]
        for one in self.passes.passes:
            body += self._independent(one.before)
            if one.body or one.walks:
                body += self._loop(one)
        body += self._independent(self.passes.after)
        texts = under_conditions(body, "")
        code = "\n".join(texts)
        whole = self._whole_arguments(code)
        return self._with_short_names([*self._sizes(code), *whole, *texts])

    def _with_short_names(self, lines: list[str]) -> list[str]:
        """An argument that is used in one dtype only keeps its name."""
        text = "\n".join(lines)
        for name in self.floats:
            row = name in self.away
            if not row and name in self.inputs.values():
                continue  # its gradient has its dtype
            both = [f"own_{name}" if row else f"narrow_{name}", f"wide_{name}"]
            used = [own for own in both if names_it(text, free(own, self.taken))]
            if len(used) == 1:
                short = free(f"own_{name}", self.taken) if row else name
                text = re.sub(rf"(?<![.\w]){free(used[0], self.taken)}\b", short, text)
        return text.split("\n")

    def _sizes(self, code: str) -> list[str]:
        """The lengths that the lines name, read off the arguments."""
        found: list[str] = []
        read: dict[str, dict[int, str]] = {}
        for name, value in reversed(self._lengths()):
            if not names_it(code, name):
                continue
            if isinstance(value, values.LengthOf):
                read.setdefault(value.tensor, {})[value.along] = name
                continue
            line = f"{name} = {value if isinstance(value, str) else self.printer.text(value)}"
            found.insert(0, line)  # of a length that the caller has checked
            code += f"\n{line}"
        ranks = {name: len(p.layout) for name, p in self.parameters.items()}
        of_tensors = {n: dict(sorted(read[n].items())) for n in ranks if n in read}
        return [*sizes_read(of_tensors, ranks), *found]

    def _lengths(self) -> list[tuple[str, Value | str]]:
        """Lengths that are read, and formulas for those that follow from others."""
        fixed = self.chunked.program.fixed
        read: dict[str, Value] = {code: values.Number(Fraction(n)) for code, n in fixed}
        flat = self.chunked.program.flattened
        derived = {code: " * ".join(parts) for code, parts in flat}
        derived |= dict(self.chunked.program.derived)
        own = dict(self.chunked.program.forward.sizes)  # no upstream gradient is needed for these
        numbers = {p.name for p in self.chunked.function.parameters if p.role in NUMBERS}
        for p in self.parameters.values():
            known = numbers | ({*derived, *own} if p.role == "adjoint" else set())
            for i, dim in enumerate(p.layout):
                code = self.printer.sizes[dim.axis.name]
                if not dim.one and code not in known and self.shows_length(p.name, dim):
                    read.setdefault(code, values.LengthOf(p.name, i))
        rest = dict(self.chunked.function.sizes) | derived | own
        return [*read.items(), *((n, v) for n, v in rest.items() if n not in {*read, *numbers})]

    def shows_length(self, name: str, dim: Dim) -> bool:
        """True if an argument is as long along an axis as the lines say."""
        return True

    def _whole_arguments(self, code: str) -> list[str]:
        """Lines that convert arguments that have no rows of chunks."""
        lines = []
        for name in self.parameters:
            if name in self.away or name not in self.floats:
                continue
            for way, kind in (("narrowed", "narrow"), ("widened", "wide")):
                text = getattr(self.printer, way).get(name)
                if text and names_it(code, text):
                    lines.append(f"{text} = {name}.to({self.own[kind]})")
        return lines

    def _independent(self, nodes: Sequence[ChunkNode]) -> list[ChunkLine]:
        self.name_arguments(())
        return [
            ChunkLine(self.printer.step(step), self.of_needs[node.name])
            for node in nodes
            for step in node.steps
        ]

    def name_arguments(self, sliced: Sequence[str]) -> None:
        """Names of the arguments in both dtypes: of ``sliced`` ones, of their slices."""
        narrowed, widened = {}, {}
        for name in self.floats:
            if name in sliced:
                narrowed[name], widened[name] = f"own_{name}", f"wide_{name}"
            elif name not in self.away:
                narrowed[name], widened[name] = f"narrow_{name}", f"wide_{name}"
        for names in (narrowed, widened):
            for name, text in names.items():
                names[name] = free(text, self.taken)
        labels = {n: free(f"own_{n}", self.taken) for n in sliced if n not in self.floats}
        self.printer.narrowed, self.printer.widened = narrowed, widened | labels

    # -- a loop --------------------------------------------------------------------------

    def _loop(self, one: Pass) -> list[ChunkLine]:
        self.one, self.written = one, {*one.written}
        head = [
            ChunkLine(f"{name} = {self.empty(name)}", self.of_needs[name]) for name in one.written
        ]
        for node in one.sums:
            head += [ChunkLine(text, self.of_needs[node.name]) for text in self._start(node)]
        for node in one.body:
            if node.running and not one.starts_anywhere(node):
                for text in first_states(self, node.running):
                    head.append(ChunkLine(_broken(text), self.of_needs[node.name]))
        head = [self._or_none(each) for each in head]
        kept = [name for node in one.bordered for name in node.running.states]
        head += [ChunkLine(f"{name} = []") for name in kept]
        body, rows = self._body(one)
        self.entries = most_of(self.entries, rows)
        own, rows = self.own, self.cut or rows
        entries = " + ".join(_times(n, row) for row, n in rows.items()) or "1"
        loop = self.loop_over(one, entries)
        if any(names_it(each.text, own["n"]) for each in body):
            loop.append(f"{STEP}{own['n']} = {own['over']}.length")
        loop += under_conditions(body, STEP)
        wanted = frozenset().union(*(each.needs for each in body))
        always = any(not self.of_needs[n.name] for n in one.sums)
        always |= any(not self.of_needs[name] for name in one.written)
        always |= any(not self.of_needs[n.name] for n in one.bordered)
        text = f"\n{STEP}".join(loop)
        return [*head, ChunkLine(text, frozenset() if always else wanted)]

    def loop_over(self, one: Pass, entries: str) -> list[str]:
        """The head of a loop, of which a row has that many ``entries``."""
        own = self.own
        given = f"{self.code}, {entries}, {own['like']}, {own['chunk']}" + ", True" * one.reverse
        return [f"for {own['over']} in _runtime.chunks({given}):"]

    def _or_none(self, each: ChunkLine) -> ChunkLine:
        """A start that is None where it is not asked for."""
        if not each.needs:
            return each
        name, _, value = each.text.partition(" = ")
        asked = " or ".join(sorted(each.needs))
        return ChunkLine(broken(f"{name} = {value} if {asked} else None"))

    def _body(self, one: Pass) -> tuple[list[ChunkLine], dict[str, int]]:
        """The lines of a pass, and how many entries of a row are alive at the same time, by the
        product of their sizes.

        Long: what each line makes, reads last, and writes over.
        """
        printer, whole = self.printer, dict(self.printer.sizes)
        steps = self.steps_of(one)
        reads = [{*self.reads_of(step)} for _, step in steps]
        used = set().union(*reads) if reads else set()
        sliced = [name for name in self.parameters if name in self.mapped & used]
        self.name_arguments(sliced)
        for axis in whole:
            if axis in self.in_time:
                printer.sizes[axis] = self._own_length(axis, whole)
        last = {name: i for i, names in enumerate(reads) for name in names}
        viewed = _viewed(step for _, step in steps)
        fresh: set[str] = set()
        lines: list[ChunkLine] = []
        alive = _Alive(self._row_of)
        for i, (node, step) in enumerate(steps):
            needs = self.of_needs[node.name]
            dead = {n for n in reads[i] if last[n] == i and n in fresh and n not in viewed}
            gone = dead
            if isinstance(step, InLoops):
                texts, made = self.in_loops(step, dead)
                for name, dims, over in made:
                    alive.made(name, dims, over, True)
                    fresh |= {name} if _is_large(dims) and name not in self.written else set()
            elif node.is_accumulated:
                texts = self._accumulated(node, step)
            elif isinstance(step, Assign):
                texts, over = self._assigned(node, step, dead)
                gone = dead - {step.name} if over == step.name else dead
                alive.made(step.name, step.value.dims, over, isinstance(step.value, Contract))
                if self._is_fresh(step):
                    fresh.add(step.name)
            else:
                texts = [self.step(self._named_own(step))]
            for own in self._ended(node, step):
                row, dims = self.rows[own.name], self._dims(own)
                texts.append(self._stored(own.name, own.along, dims, row))
            lines += [ChunkLine(text, needs) for text in texts]
            for needs, names in groupby(sorted(gone), self._needs_of):
                lines.append(ChunkLine(f"del {', '.join(map(self._own_name, names))}", needs))
            alive.gone(gone)
        lines = [*self._slices(sliced, lines), *lines]
        printer.sizes = whole
        return lines, alive.most

    def steps_of(self, one: Pass) -> list[tuple[ChunkNode, Step]]:
        """The steps of a pass in their order, each with its node."""
        return [(node, step) for node in self._in_order(one) for step in node.steps]

    def reads_of(self, step: Step) -> Iterable[str]:
        return step.reads if isinstance(step, InLoops) else line(step).reads

    def in_loops(self, step: InLoops, dead: set[str]) -> tuple[list[str], list[Made]]:
        """The lines that launch loops, and what they make; ``dead`` may be written over."""
        raise NotImplementedError

    def _ended(self, node: ChunkNode, step: Step) -> list[ChunkNode]:
        """Nodes complete behind this step, whose rows are written."""
        if isinstance(step, InLoops):
            return [self.nodes[name] for name in step.made if name in self.written]
        return [node] if step is node.steps[-1] and node.name in self.written else []

    def is_written(self, name: str) -> bool:
        """True if this pass stores the rows of ``name``."""
        return name in self.written

    def _needs_of(self, name: str) -> frozenset[str]:
        return self.of_needs[self.nodes[self.parts.get(name, name)].name]

    def _own_length(self, axis: str, whole: Mapping[str, str]) -> str:
        """The length of an axis in one chunk, which is made of the chunked one."""
        if whole[axis] == self.code:
            return self.own["n"]
        parts = self.printer.lengths.flattened.get(axis, [])
        others = [whole[part] for part in parts if part not in self.in_time]
        return f"({' * '.join([self.own['n'], *others])})"

    def _slices(self, sliced: Sequence[str], lines: Sequence[ChunkLine]) -> list[ChunkLine]:
        code, found = "\n".join(each.text for each in lines), []
        for name in sliced:
            split = self.passes.splits[name]
            along = next(i for i, group in enumerate(split) if group)
            place = self.part_of(name, along, self.parameters[name].layout)
            if name not in self.floats:
                found.append(ChunkLine(f"{self.printer.widened[name]} = {place}"))
                continue
            for way, kind in (("narrowed", "narrow"), ("widened", "wide")):
                own = getattr(self.printer, way)[name]
                if names_it(code, own):
                    found.append(ChunkLine(f"{own} = {place}.to({self.own[kind]})"))
        return found

    def part_of(self, name: str, along: int, dims: Layout) -> str:
        """The rows of this chunk: of an axis made of the chunked one, several for each entry."""
        if self._is_chunked(dims[along]):
            return f"{name}[{':, ' * along}{self.own['over']}.here]"
        return f"{self.own['over']}.part({name}, {along})"

    def _stored(self, name: str, along: int, dims: Layout, rows: str) -> str:
        place = self.part_of(name, along, dims)
        return f"{place} = {rows}" if self._is_chunked(dims[along]) else f"{place}.copy_({rows})"

    def _is_chunked(self, dim: Dim) -> bool:
        sizes = dict(self.chunked.program.sizes)
        return sizes[dim.axis.name] == sizes[self.passes.axis]

    def _in_order(self, one: Pass) -> list[ChunkNode]:
        """Dependencies first, small values before large ones: a large one has been read by all
        others when the last one is written over it.
        """
        waiting, done, names = [*one.body, *one.again, *one.sums], [], set()
        inside = {n.name for n in waiting}
        alias = {name: node.name for name, node in self.nodes.items()}
        while waiting:
            ready = [
                n
                for n in waiting
                if not ({alias.get(r, r) for r in n.reads} & inside) - names - {n.name}
            ]
            ready.sort(key=lambda n: (self._is_told(n), n.kind == MAPPED and _is_large(n.dims)))
            now = [n for n in ready if n is ready[0] or self._travels_with(n, ready[0])]
            done.append(_at_once(now))
            names |= {n.name for n in now}
            waiting = [n for n in waiting if n not in now]
        return done

    def _is_told(self, node: ChunkNode) -> bool:
        """True for what ranks tell each other, which waits until nothing else can be done."""
        step = node.steps[0]
        return isinstance(step, Exchange) and not node.is_accumulated

    def _travels_with(self, node: ChunkNode, other: ChunkNode) -> bool:
        if (
            not (self._is_told(node) and self._is_told(other))
            or {node.name, other.name} & self.written
        ):
            return False
        one, two = node.steps[0], other.steps[0]
        alike = one.kind == two.kind and one.kind in TOGETHER and one.group == two.group
        return alike and self.of_needs[node.name] == self.of_needs[other.name]

    # -- statements ------------------------------------------------------------------------

    def step(self, step: Step) -> str:
        return in_loop(self.printer.step(step, DEEP))

    def _own_name(self, name: str) -> str:
        return self.rows.get(name, name)

    def _named_own(self, item):
        """With the names of this chunk's rows for results: theirs are those of all rows."""

        def change(value: Value) -> Value | None:
            if isinstance(value, Load) and value.name in self.rows:
                return replace(value, name=self.rows[value.name])
            return None

        item = with_replaced(item, change)
        if isinstance(item, Exchange):
            told = [(self._own_name(s.name), s.value, s) for s in item.sent]
            sent = (replace(s, name=n, value=v and with_replaced(v, change)) for n, v, s in told)
            return replace(item, sent=tuple(sent))
        name = getattr(item, "name", None)
        return (
            item
            if name is None or isinstance(item, Value)
            else replace(item, name=self._own_name(name))
        )

    def _assigned(self, node: ChunkNode, step: Assign, dead: set[str]) -> tuple[list[str], str]:
        """The lines of a statement, and the name of the value that it is written over."""
        value = self._named_own(step.value)
        target = self._own_name(step.name)
        if isinstance(value, Looped):
            value = with_own_names(value, node.name, self)
        if isinstance(value, shards.Running):
            return lines_of_running(self, node, target, value), ""
        found = self._over(value, dead)
        if found is None:
            return [self.step(Assign(target, value))], ""
        return [_broken(f"{target} = {found[0]}")], found[1]

    def _is_fresh(self, step: Assign) -> bool:
        large = _is_large(step.value.dims) and step.name not in self.written
        if not large or not isinstance(step.value, FRESH):
            return False
        loads = [v for v in values_in(step.value) if isinstance(v, Load)]
        there = {d.axis for v in loads for d in v.dims if not d.one}
        full = {d.axis for d in step.value.dims if not d.one} <= there
        return full and not _is_one_operand(step.value)

    def _over(self, value: Value, dead: set[str]) -> tuple[str, str] | None:
        """The value written over an operand that nothing reads any more, with its name. Small
        factors are multiplied first: each is one more walk over the large one.
        """
        if isinstance(value, Load):
            return (value.name, value.name) if value.name in dead else None
        if isinstance(value, Apply) and value.function in IN_PLACE and not value.others:
            found = self._over(value.operand, dead)
            return found and (f"{found[0]}.{value.function}_()", found[1])
        if not isinstance(value, (Plus, Times)):
            return None
        is_sum = isinstance(value, Plus)
        parts = value.terms if is_sum else value.factors
        for i, (part, turned) in enumerate(parts):
            found = None if turned or part.dims != value.dims else self._over(part, dead)
            rest = [*parts[:i], *parts[i + 1 :]]
            if found is None or any(_has(v, found[1]) for v, _ in rest):
                continue
            rest = rest if is_sum else _small_first(rest, value.dims)
            text = found[0]
            for other, turned in rest:
                way = ("sub_" if turned else "add_") if is_sum else ("div_" if turned else "mul_")
                text += f".{way}({self.printer.text(other)})"
            return text, found[1]
        return None

    # -- accumulators ------------------------------------------------------------------------

    def shape(self, dims: Layout) -> str:
        sizes = self.sizes_of(dims)
        return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"

    def sizes_of(self, dims: Layout) -> list[str]:
        return ["1" if d.one else self.printer.sizes[d.axis.name] for d in dims]

    def empty(self, name: str) -> str:
        """Memory for the rows of a result: in the dtype of the input of a gradient."""
        shape = self.shape(self._dims(self.nodes[name]))
        if name in self.inputs:
            return f"{self.inputs[name]}.new_empty({shape})"
        return f"{self.own['like']}.new_empty({shape}, dtype={self.own['dtype']})"

    def _dims(self, node: ChunkNode) -> Layout:
        first = next((s.value for s in node.steps if isinstance(s, Assign)), node)
        return first.dims

    def _start(self, node: ChunkNode) -> list[str]:
        like, shape = self.own["like"], self.shape(node.dims)
        own = self._dtype(node)
        dtype = f", dtype=torch.{own}" if own else ""
        if node.kind == GATHERED:
            return [f"{node.name} = {like}.new_empty({shape}{dtype})"]
        if node.kind in (SUM, LAST):
            return [f"{node.name} = {like}.new_zeros({shape}{dtype})"]
        lowest = f"{like}.new_full({shape}, -torch.inf)"
        if node.kind == LARGEST:
            return [f"{node.name} = {lowest}"]
        places = f"{like}.new_zeros({shape}, dtype=torch.int64)"
        return [f"{node.name}_top = {lowest}", f"{node.name} = {places}"]

    def _dtype(self, node: ChunkNode) -> str:
        """The dtype of what is no float; else empty."""
        own = max(map(self._dtype_of, _sent(node)), default="")
        return "int64" if node.kind == FIRST else own

    def _dtype_of(self, value: Value) -> str:
        """That of labels, places and conditions, and of entries of these; else empty."""
        match value:
            case Load(name=name) if name in self.parameters:
                return "int64" if self.parameters[name].role == "label" else ""
            case Load(name=name) if name in self.nodes:
                return self._dtype(self.nodes[name])
            case ArgMaxOf() | SegmentArgMax() | Positions() | shards.OwnPositions():
                return "int64"
            case Compare() | Combine():
                return "bool"
            case Pick(operand=u) | shards.OwnPick(operand=u) | Arrange(operand=u):
                return self._dtype_of(u)
        return ""

    def _accumulated(self, node: ChunkNode, step: Exchange) -> list[str]:
        (sent,) = step.sent
        value, name = self._named_own(sent.value), node.name
        if node.kind == GATHERED:
            return [_broken(self._stored(name, sent.along, node.dims, self.printer.text(value)))]
        if node.kind == FIRST:
            given = f"{name}_top, {name}, {self.printer.text(value)}, {sent.along}"
            call = f"_runtime.first_largest({given}, {self.own['over']}.start)"
            return [_broken(f"{name}_top, {name} = {call}")]
        if node.kind == LARGEST:
            return self.largest(node, value)
        if node.kind == LAST:
            return [_broken(f"{name} = {self.printer.text(value)}")]
        lines, name = [], self.sum_of(node)
        if node.online:
            moved = Load(f"{node.online}_moved", dims=self.nodes[node.online].dims)
            moved = (
                moved
                if node.degree == -1
                else Power(moved, values.Number(-node.degree), dims=moved.dims)
            )
            place = in_place(moved, node.dims) if moved.dims != node.dims else moved
            lines.append(f"{name}.mul_({self.printer.text(place)})")
        product = self.printer.product(value) if isinstance(value, Contract) else None
        if product:
            call = f"_runtime.add_product({name}, {product[0]}, {product[1]})"
            return [*lines, _broken(call)]
        return [*lines, _broken(f"{name} += {self.printer.text(value)}")]

    def sum_of(self, node: ChunkNode) -> str:
        """The accumulator of a sum."""
        return node.name

    def largest(self, node: ChunkNode, value: Value) -> list[str]:
        """A maximum over the chunks, and how far what is measured from it moves."""
        name = node.name
        found = [_broken(f"{name} = torch.maximum({name}, {self.printer.text(value)})")]
        if not any(n.online == name for n in self.one.sums):
            return found
        moved = f"torch.exp(({name}_moved - {name}).nan_to_num(0.0, neginf=-torch.inf))"
        return [f"{name}_moved = {name}", *found, _broken(f"{name}_moved = {moved}")]

    def _row_of(self, dims: Layout) -> str:
        """The entries of one row of a value, as a product of sizes."""
        own = (d.axis.name for d in dims if not d.one and d.axis.name not in self.in_time)
        return " * ".join(map(self._length_for_all, own))

    def _length_for_all(self, axis: str) -> str:
        """The length of an axis, or what the parts of ranks have on average: all have as many
        chunks.
        """
        over = self.printer.over.get(axis)
        return f"-(-{over}.size // {over}.count)" if over else self.printer.sizes[axis]


def most_of(entries: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """The larger count for each row."""
    return {row: max(entries.get(row, 0), others.get(row, 0)) for row in {**entries, **others}}


class _Alive:
    """Entries alive at the same time, line by line."""

    def __init__(self, row_of):
        self.row_of, self.now, self.most = row_of, {}, {}

    def made(self, name: str, dims: Layout, over: str, is_product: bool) -> None:
        if over:
            self.now.pop(over, None)
        if not _is_large(dims):
            return
        row = self.row_of(dims)
        again = name in self.now
        self.now[name] = row
        counts: dict[str, int] = {}
        for other in self.now.values():
            counts[other] = counts.get(other, 0) + 1
        if not (over or is_product or again):
            counts[row] += 1  # a part of the line
        for other, count in counts.items():
            self.most[other] = max(self.most.get(other, 0), count)

    def gone(self, names: set[str]) -> None:
        for name in names:
            self.now.pop(name, None)


def name_of_ranks(axis: str, chunked: Chunked) -> str:
    """The name of the object for the ranks of an axis."""
    taken = {p.name for p in chunked.function.parameters} | {s.name for s in chunked.function.steps}
    return free(f"over_{axis.lower()}", taken)


def names_of(chunked: Chunked) -> dict[str, str]:
    """Names that no argument, value or size has."""
    function = chunked.function
    taken = {p.name for p in function.parameters} | {s.name for s in function.steps}
    taken |= {code for _, code in chunked.program.sizes}
    return {name: free(name, taken) for name in NAMES}


def _at_once(nodes: Sequence[ChunkNode]) -> ChunkNode:
    """One collective of several."""
    if not nodes[1:]:
        return nodes[0]
    sent = tuple(sent for node in nodes for sent in node.steps[0].sent)
    step = replace(nodes[0].steps[0], sent=sent)
    return replace(nodes[0], steps=[step], reads=set().union(*(node.reads for node in nodes)))


def under_conditions(lines: Sequence[ChunkLine], margin: str) -> list[str]:
    """The lines, those that only some gradients need under an ``if``."""
    found = []
    for needs, group in groupby(lines, lambda each: each.needs):
        inner = margin + STEP * bool(needs)
        if needs:
            found.append(f"{margin}if {' or '.join(sorted(needs))}:")
        for each in group:
            found += [inner + part for part in _apart([each.text])]
    return found


def _apart(lines: Iterable[str]) -> list[str]:
    """Each line of these texts, of which all but the first have the margin of a function."""
    return [part.removeprefix(STEP) if i else part for t in lines for i, part in _numbered(t)]


def _numbered(text: str) -> Iterable[tuple[int, str]]:
    return enumerate(text.split("\n"))


def _is_large(dims: Layout) -> bool:
    return sum(not d.one for d in dims) >= LARGE


def _has(value: Value, name: str) -> bool:
    return any(isinstance(v, Load) and v.name == name for v in (value, *values_in(value)))


def in_loop(text: str) -> str:
    """A broken line of a loop, as far as it is known here."""
    return text.replace(f"\n{DEEP}", f"\n{STEP}")


def _broken(text: str) -> str:
    return in_loop(broken(text, DEEP))


def names_it(text: str, name: str) -> bool:
    return re.search(rf"(?<![.\w]){name}\b", text) is not None


def _times(count: int, row: str) -> str:
    return row if count == 1 and row else f"{count} * {row}" if row else str(count)


def _viewed(steps: Iterable[Step]) -> set[str]:
    """Names whose memory another value may share."""
    return set().union(*(_seen(s.value) for s in steps if isinstance(s, Assign)))


def _seen(value: Value) -> set[str]:
    if isinstance(value, Load):
        return {value.name}
    if isinstance(value, (*FRESH, *SUMMED)) and not _is_one_operand(value):
        return set()
    if isinstance(value, Pick) and not isinstance(value.index, values.Number):
        return set()
    return {v.name for v in values_in(value) if isinstance(v, Load)}


def _is_one_operand(value: Value) -> bool:
    """True if it may be printed as its operand alone."""
    parts = value.terms if isinstance(value, Plus) else getattr(value, "factors", None)
    return parts is not None and sum(not isinstance(v, values.Number) for v, _ in parts) < LARGE


def _small_first(parts, dims: Layout):
    """Factors that are small, multiplied into one, before those of full size."""
    few = [pair for pair in parts if pair[0].dims != dims]
    if len(few) < 2:
        return parts
    few.sort(key=lambda pair: pair[1])
    sign = few[0][1]
    own = max((v.dims for v, _ in few), key=len)
    one = Times(tuple((v, divides != sign) for v, divides in few), dims=own)
    return [(one, sign), *(pair for pair in parts if pair[0].dims == dims)]


def _sent(node: ChunkNode) -> list[Value]:
    """The values that a node is made of, in each chunk."""
    sent = [s.value for step in node.steps if isinstance(step, Exchange) for s in step.sent]
    made = [step.value for step in node.steps if isinstance(step, Assign)]
    return [value for value in (*sent, *made) if value is not None]
