"""Counts the tensors of full size that the lines of a Program read and write when torch runs them.

Every axis counts as equally long, so the size of a tensor is its number of axes; a flattened axis
counts as its parts. *Full size* is that of the largest argument or output of the forward. A view
moves nothing; every other operation reads each of its operands once and writes its result, and an
operation with several operands (``a + b + c``) is one for every sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from codegen.files.quality import Counts, Moves, Traffic
from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import (
    ArgMaxOf,
    Arrange,
    Contract,
    ContractAdd,
    Cumulate,
    Detached,
    Expand,
    Gathered,
    Merge,
    OfMatrix,
    Pick,
    Reduce,
    Scanned,
    Scattered,
    Solved,
    Split,
)
from codegen.program.parts import is_number, operands, values_in
from codegen.program.reads import Convolve
from codegen.program.steps import AddAt, Assign, Step
from codegen.program.values import Choose, Compare, Load, Number, Plus, Pullback, Times, Value
from codegen.targets.torch.vocabulary import PULLBACKS
from derive.language.notation.layout import Layout, shape

RELATIONS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
VIEWS = (Arrange, Detached, Merge, Split, Expand)
NOTHING = Moves(0, 0)


@dataclass(frozen=True)
class _Stored:
    """A tensor in memory. ``name`` is '' if it has none."""

    dims: Layout
    name: str = ""


def counts(program: Program) -> Counts:
    """The counts reported for a Program."""
    counting = _Counting(program)
    return Counts(
        shape(counting.largest),
        _reductions(program.backward),
        counting.traffic(program.forward),
        counting.traffic(program.backward),
    )


def moved(program: Program) -> int:
    """Reads and writes of full size by the lines of the forward and the backward together."""
    found = counts(program)
    lines = found.forward.lines + found.backward.lines
    return lines.reads + lines.writes


class _Counting:
    """The sizes of one Program: of its tensors, and its full size."""

    def __init__(self, program: Program):
        self.names, self.parts = dict(program.sizes), dict(program.flattened)
        scalars = [p for p in program.forward.parameters if p.role in NUMBERS]
        self.numbers, self.defaults = (
            {p.name for p in scalars},
            {p.name: p.default for p in scalars},
        )
        upstreams = (p.layout for p in program.upstreams)
        candidates = [*upstreams, *(p.layout for p in program.forward.tensors)]
        self.largest = max(candidates, key=self.size)
        self.full = max(self.size(self.largest), 1)

    def size(self, dims: Layout) -> int:
        """The number of axes."""
        return sum(self._count(self.names.get(d.axis.name, "")) for d in dims if not d.one)

    def _count(self, axis: str) -> int:
        return sum(map(self._count, self.parts[axis])) if axis in self.parts else 1

    def is_full(self, dims: Layout) -> bool:
        return self.size(dims) >= self.full

    def traffic(self, function: Function) -> Traffic:
        """The traffic of one function of the Program."""
        counted = [operation for step in function.steps for operation in self._operations(step)]
        larger = [shape(made.dims) for _, made in counted if self.size(made.dims) > self.full]
        lines = sum((self._moves(*operation) for operation in counted), NOTHING)
        return Traffic(self._kernel(function), (), lines, tuple(dict.fromkeys(larger)))

    def _moves(self, read: Sequence[_Stored], made: _Stored) -> Moves:
        named = {tensor for tensor in read if tensor.name}
        others = [tensor for tensor in read if not tensor.name]
        reads = sum(self.is_full(tensor.dims) for tensor in (*named, *others))
        return Moves(reads, int(self.is_full(made.dims)))

    def _kernel(self, function: Function) -> Moves:
        """Traffic of one kernel: arguments that are read, and results that are written."""
        arguments = {p.name: p.layout for p in function.tensors}
        loaded = {v.name for s in function.steps for v in values_in(s) if isinstance(v, Load)}
        made = {s.name: s.value for s in function.steps if isinstance(s, Assign)}
        results = dict.fromkeys(_under_its_own_name(name, made) for name in function.results)
        written = [made[name].dims for name in results if name in made and not _is_view(made[name])]
        read = [layout for name, layout in arguments.items() if name in loaded]
        return Moves(sum(map(self.is_full, read)), sum(map(self.is_full, written)))

    # -- operations: reads and writes -----------------------------------------

    def _operations(self, step: Step) -> Iterator[tuple[list[_Stored], _Stored]]:
        if isinstance(step, AddAt):  # one entry in each row
            yield from self._made(step.index)[1]
            yield from self._made(step.value)[1]
            yield [self._made(step.index)[0], self._made(step.value)[0]], _Stored(())
        else:
            for value in operands(step):
                yield from self._made(value)[1]

    def _made(self, value: Value) -> tuple[_Stored, list[tuple[list[_Stored], _Stored]]]:
        """The place of a value in memory, and the operations that put it there."""
        if isinstance(value, Load):
            return _Stored(value.dims, value.name), []
        if isinstance(value, VIEWS):
            return self._made(value.operand)
        if isinstance(value, Plus):
            return self._folded([term for term, _ in value.terms])
        if isinstance(value, Times):
            return self._folded([factor for factor, _ in value.factors])
        if isinstance(value, Pullback):
            return self._pulled_back(value)
        if isinstance(value, Choose) and is_number(value.condition, self.numbers):
            return self._made(value.yes if self._holds(value.condition) else value.no)
        if isinstance(value, ContractAdd):
            read = [value.addend, value.product.left, value.product.right]
            stored, before = self._all(read)
            return _Stored(value.dims), [*before, (stored, _Stored(value.dims))]
        stored, before = self._all(operands(value))
        if isinstance(value, Pick):  # of the operand, only picked entries
            stored = [_Stored(value.dims), self._made(value.index)[0]]
        made = _Stored(value.dims)
        return made, [*before, (stored, made)]

    def _holds(self, condition: Value) -> bool:
        """True if a condition on numbers holds at their defaults, as far as is known: where a
        target chooses between two codes, the first is meant for the defaults.
        """
        if not isinstance(condition, Compare) or not isinstance(condition.right, Number):
            return True
        number = condition.left
        known = number.value if isinstance(number, Number) else self.defaults.get(_name(number))
        if not isinstance(known, (int, float)):
            return True
        return RELATIONS[condition.relation](known, condition.right.value)

    def _all(self, values: Sequence[Value]):
        made = [self._made(value) for value in values]
        return [stored for stored, _ in made], [o for _, before in made for o in before]

    def _folded(self, values: Sequence[Value]):
        """From left to right, two operands at a time; a single one is no operation."""
        stored, operations = self._all(values)
        if len(stored) == 1:
            return stored[0], operations
        result = stored[0]
        dims = values[0].dims
        for other, value in zip(stored[1:], values[1:], strict=True):
            dims = _broadcast(dims, value.dims)
            made = _Stored(dims)
            operations.append(([result, other], made))
            result = made
        return result, operations

    def _pulled_back(self, value: Pullback):
        if value.function not in PULLBACKS:
            return self._folded([value.upstream, value.derivative])
        at_hand = [v for v in (value.argument, value.output) if v is not None]
        stored, operations = self._all([value.upstream, *at_hand[-1:]])
        made = _Stored(value.dims)
        return made, [*operations, (stored, made)]


def _reductions(function: Function) -> tuple[str, ...]:
    """The sums, maxima, matrix products and index-adds of a function, with their counts."""
    found = Counter(
        label for step in function.steps for v in values_in(step) if (label := _reduction(v))
    )
    return tuple(f"{count} {label}" if count > 1 else label for label, count in found.items())


def _reduction(value: Value) -> str:
    if isinstance(value, (Reduce, ArgMaxOf)):
        along = value.along if isinstance(value, Reduce) else (value.along,)
        kind = value.kind if isinstance(value, Reduce) else "argmax"
        axes = ", ".join(value.operand.dims[i].axis.name for i in along)
        return f"{kind}[{axes}]"
    if isinstance(value, Contract):
        return f"product[{', '.join(value.summed)}]"
    if isinstance(value, (Gathered, Scattered)):
        return "index_add" if isinstance(value, Gathered) else "scatter_add"
    if isinstance(value, (Cumulate, Scanned)):
        kind = f"cumulated {value.kind}" if isinstance(value, Cumulate) else "scan"
        return f"{kind}[{value.dims[value.along].axis.name}]"
    if isinstance(value, OfMatrix):
        return value.kind
    if isinstance(value, Solved):
        return "solution"
    if isinstance(value, Convolve):
        return f"convolution[{value.made}]"
    return ""


def _name(value: Value) -> str:
    return value.name if isinstance(value, Load) else ""


def _under_its_own_name(name: str, made: Mapping[str, Value]) -> str:
    """The original name of a value that has further names."""
    value = made.get(name)
    return _under_its_own_name(value.name, made) if isinstance(value, Load) else name


def _is_view(value: Value) -> bool:
    return isinstance(value, Load) or (isinstance(value, VIEWS) and _is_view(value.operand))


def _broadcast(left: Layout, right: Layout) -> Layout:
    longer, shorter = sorted((left, right), key=len, reverse=True)
    start = len(longer) - len(shorter)
    aligned = zip(longer[start:], shorter, strict=True)
    return (*longer[:start], *(other if dim.one else dim for dim, other in aligned))
