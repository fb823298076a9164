"""Checks of a function's arguments, as steps: their kinds, dtypes and shapes, the sizes that these
show, one dimension for the axes of an `Axes`, the domains of its numbers.

Comes in: the parameters of a function, each with its layout. Goes out: the steps that a target
prints before the lines of the function, one for each check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from codegen.lowering import sizes_used
from codegen.program import NUMBERS, Parameter
from codegen.program.arrays import Expand
from codegen.program.parts import is_number, operands, values_in
from codegen.program.steps import (
    Default,
    Fill,
    Fits,
    InSingle,
    MergeDims,
    NameSize,
    Needed,
    NotZero,
    Numeric,
    ReadShape,
    ReadSizes,
    Refuse,
    Spread,
    Step,
    Within,
)
from codegen.program.values import Choose, Load, Number, Power, Quotient, SizeOf, Times, Value
from derive.language.notation.layout import Dim
from derive.language.symbols import Axes, Axis

KINDS = {"label": "index", "given": "number"}


def shape_steps(
    parameters: Sequence[Parameter],
    broadcast: Collection[str],
    names: Mapping[str, str],
    known: Mapping[str, str],
    upstream: bool = False,
    after: bool = False,
) -> list[Step]:
    """Checks of the tensors among ``parameters``, each of its kind and shape; then conversion to
    float32 and to one dimension for each `Axes`.

    ``names`` gives every axis the name of its size; ``known`` are those sizes that are known
    already, each with the argument that it is from, or "". An ``upstream`` gradient may be of fewer
    bits than what the forward saved; the format is known already ``after`` other arguments.
    """
    shapes = {names[p.layout[0].axis.name]: p.name for p in parameters if p.role == "shape"}
    known = {**known, **shapes}
    tensors = [p for p in parameters if p.role not in NUMBERS]
    rest = "saved" if upstream else "same"
    kind, first = rest if after else "first", None
    steps: list[Step] = [ReadShape(name, size) for size, name in shapes.items()]
    for p in _in_order(tensors, broadcast, names, {*known}):
        optional, sizes = p.default is not None, [names[dim.axis.name] for dim in p.layout]
        if p.name in broadcast:
            steps.append(Spread(p.name, p.layout, optional))
        there = tuple(d.one or size in known for d, size in zip(p.layout, sizes, strict=True))
        own = KINDS.get(p.role, kind)
        if own == "first":
            kind, first = rest, p
        elif own == "same" and first is not None and _axes(p) < _axes(first):
            own = "parameter"
        owners = () if after else _owners(p.layout, sizes, known)
        steps.append(Fits(p.name, p.layout, there, owners, own, optional))
        new = tuple(not one and sizes.index(size) == i for i, (one, size) in _pairs(there, sizes))
        if any(new):
            steps.append(ReadSizes(p.name, p.layout, new))
        if sum(new) + sum(there) < len(new):  # an axis twice
            steps.append(Fits(p.name, p.layout, (True,) * len(new), owners, own, optional))
        for dim, size in zip(p.layout, sizes, strict=True):
            if not dim.one:
                known.setdefault(size, p.name)
    floats = tuple(p.name for p in tensors if p.role not in KINDS)
    return [*steps, InSingle("", floats, mixed=upstream), *_merged(tensors, names)]


def _pairs(there: Sequence[bool], sizes: Sequence[str]) -> Iterable[tuple[int, tuple[bool, str]]]:
    return enumerate(zip(there, sizes, strict=True))


def _axes(p: Parameter) -> set[Axis]:
    return {dim.axis for dim in p.layout}


def _merged(tensors: Sequence[Parameter], names: Mapping[str, str]) -> Iterable[MergeDims]:
    """Merge the dimensions of each `Axes` into one."""
    for axis in dict.fromkeys(names[d.axis.name] for p in tensors for d in p.layout if _several(d)):
        merged = (
            (p.name, p.layout)
            for p in tensors
            if any(_several(d) and names[d.axis.name] == axis for d in p.layout)
        )
        yield MergeDims(axis, tuple(merged))


def _in_order(
    tensors: Iterable[Parameter],
    broadcast: Collection[str],
    names: Mapping[str, str],
    shown: set[str],
) -> Iterable[Parameter]:
    """Sorted by `_place`; tensors with size 1 along an `Axes` come after one that shows its number
    of dimensions.
    """
    waiting = sorted(tensors, key=lambda p: _place(p, broadcast))
    while waiting:
        ones = ([names[d.axis.name] for d in p.layout if d.one and _several(d)] for p in waiting)
        place = next((i for i, sizes in enumerate(ones) if shown.issuperset(sizes)), 0)
        p = waiting.pop(place)
        shown |= {names[dim.axis.name] for dim in p.layout if not dim.one}
        yield p


def _place(p: Parameter, broadcast: Collection[str]) -> int:
    """Sort key: parameters that determine the dtype first, those that must match it last."""
    if p.name in broadcast or p.default is not None:
        return 2
    return p.role in KINDS


def _owners(layout, sizes, known: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for dim, size in zip(layout, sizes, strict=True):
        if not dim.one and known.get(size):
            found.setdefault(known[size], []).append(size)
    return tuple((name, tuple(dict.fromkeys(own))) for name, own in found.items())


def _several(dim: Dim) -> bool:
    return isinstance(dim.axis, Axes)


def needed(parameters: Sequence[Parameter]) -> list[Needed]:
    """Required numbers that follow optional parameters."""
    optional = [i for i, p in enumerate(parameters) if p.default is not None]
    after = parameters[optional[0] :] if optional else ()
    return [Needed(p.name) for p in after if p.role in NUMBERS and p.default is None]


def number_steps(
    parameters: Sequence[Parameter], demanded: Iterable[Within], name: str
) -> list[Step]:
    """Steps for the numbers of the forward called ``name``: their defaults, kinds and domains."""
    defaults = [Default(p.name, p.default) for p in parameters if isinstance(p.default, Value)]
    numbers = {p.name for p in parameters if p.role in NUMBERS}
    return [
        *(
            replace(zero, unless=default.name)
            for default in defaults
            for zero in divisors([default], numbers, name)
        ),
        *defaults,
        *(Numeric(p.name, p.role == "index") for p in parameters if p.role in ("scalar", "index")),
        *demanded,
    ]


def with_sizes(
    steps: Iterable[Step],
    lengths: Mapping[str, Value],
    names: Mapping[str, str],
    read: Collection[str],
) -> list[Step]:
    """``steps`` after the lines that find their sizes, other than those already ``read``."""
    steps = list(steps)
    wanted = {names[axis] for axis in sizes_used(steps)} | _compared(steps, names)
    wanted -= {*read}
    return [*(NameSize(names[a], v) for a, v in lengths.items() if names[a] in wanted), *steps]


def _compared(steps: Iterable[Step], names: Mapping[str, str]) -> set[str]:
    """Sizes that shapes are compared with, except those of an `Axes`, which has several."""
    return {
        names[dim.axis.name]
        for step in steps
        if isinstance(step, Fits)
        for dim, known in zip(step.dims, step.known, strict=True)
        if known and not dim.one and not _several(dim)
    }


def sizes_read(steps: Iterable[Step], names: Mapping[str, str]) -> set[str]:
    """Sizes that are known after the steps, as one number each."""
    return {
        names[dim.axis.name]
        for step in steps
        if isinstance(step, ReadSizes)
        for dim, new in zip(step.dims, step.new, strict=True)
        if new and not _several(dim)
    }


def refused(requirements: Iterable[Refuse], lengths: Mapping[str, Value]) -> list[Refuse]:
    """Requirements that can be checked: all sizes are known, and by shapes alone."""
    shown = {a for a, v in lengths.items() if not isinstance(v, (Quotient, Load))}
    return [r for r in requirements if {axis for axis, _ in r.axes} <= shown]


def fillings(parameters: Sequence[Parameter]) -> list[Fill]:
    return [
        Fill(p.name, Expand(Number(Fraction(p.default)), dims=p.layout))
        for p in parameters
        if p.role not in NUMBERS and p.default is not None
    ]


def divisors(steps: Iterable[Step], numbers: Collection[str], name: str) -> list[NotZero]:
    """Divisors in the lines of the function ``name`` that are Python numbers and may be 0: sizes,
    and the arguments called ``numbers``. A branch of a choice between numbers is not computed
    unless it is taken.
    """
    found: dict[Value, None] = {}
    for step in steps:
        if not isinstance(step, Within):
            for value in _computed_always(step, numbers):
                found |= dict.fromkeys(_divisors_of(value, numbers))
    return [NotZero(name, value) for value in found if _is_open(value)]


def _computed_always(node: Value | Step, numbers: Collection[str]) -> Iterator[Value]:
    """Values of ``node`` that are always computed: not the branches of a choice of numbers."""
    for value in operands(node):
        yield value
        chooses = isinstance(value, Choose) and is_number(value.condition, numbers)
        yield from _computed_always(value.condition if chooses else value, numbers)


def _divisors_of(value: Value, numbers: Collection[str]) -> Iterable[Value]:
    if isinstance(value, Power) and is_number(value, numbers) and _is_negative(value.exponent):
        yield value.base
    if isinstance(value, Times):
        for factor, divides in value.factors:  # from left to right, as they are computed
            if not is_number(factor, numbers):
                return
            if divides:
                yield factor


def _is_open(value: Value) -> bool:
    return any(isinstance(v, (SizeOf, Load)) for v in (value, *values_in(value)))


def _is_negative(value: Value) -> bool:
    return isinstance(value, Number) and value.value < 0
