"""What a part of a formula is: an expression in named axes that lies in torch's dimensions.

A `Value` broadcasts by the *position* of its dimensions, as torch does; a value of the project's
notation by the *names* of its axes. Two dimensions fit if their sizes are the same symbol; one of
the two axes is then renamed to the other, and an axis that would appear twice (``x @ x.T``) gets a
twin of the same size (`Space.twin`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Add, Expr, Integer, Mul, nan, oo, zoo

from derive.language.nodes import renamed, summed
from derive.language.symbols import Axis
from derive.notation.definition import Definition
from derive.reading.literal import with_lost
from derive.reading.refusals import Mismatch, Refusal

Dims = tuple[Axis | None, ...]
Labels = Sequence[Hashable]

TENSOR, NUMBER, MASK, INDEX, COUNT = "tensor", "number", "mask", "index", "count"
IGNORED = "ignored"  # the index of labels that do not count
UNDEFINED = (nan, zoo, oo, -oo)

MOST_TERMS = 10_000
LONGEST = 10_000
DEEPEST = 120
MOST_WORK = 300_000
MOST_TWINS = 32


@dataclass(frozen=True)
class Extent:
    """How large an expression is at most: ``terms`` when multiplied out, ``length`` (leaves and
    digits) when written out, ``depth`` of operations inside of each other.
    """

    terms: int = 1
    length: int = 1
    depth: int = 0

    def __add__(self, other: Extent) -> Extent:
        deeper = max(self.depth, other.depth) + 1
        return Extent(self.terms + other.terms, self.length + other.length, deeper)

    def __mul__(self, other: Extent) -> Extent:
        deeper = max(self.depth, other.depth) + 1
        return Extent(self.terms * other.terms, self.length + other.length, deeper)

    def __pow__(self, power: int) -> Extent:
        return Extent(self.terms**power, self.length * power, self.depth + 1)

    def inside(self) -> Extent:
        """Of a function or a reduction of it."""
        return Extent(self.terms, self.length + 1, self.depth + 1)


@dataclass(frozen=True)
class Value:
    """``expression`` along ``dims``, torch's dimensions by position; None is one of size 1.

    Every axis of the expression is one of ``dims``, which are distinct; along an axis of ``dims``
    that the expression lacks, it is the same everywhere. ``kind`` is 'tensor', 'number' (of
    Python's: a literal, a size, a scalar), 'mask' (of bools, read as 0 and 1), 'index' (integers
    that index an axis) or 'count' (0, 1, 2, ... along its axis). ``by_name`` values align by the
    names of their axes. ``storage`` is what the value is a view of: writing into it changes that.
    """

    expression: Expr
    dims: Dims = ()
    kind: str = TENSOR
    by_name: bool = False
    extent: Extent = Extent()
    storage: object = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.dims if axis is not None)

    @property
    def shape(self) -> str:
        return shape_text(self.dims)


def shape_text(dims: Dims) -> str:
    """``(N, 1)``, as Python writes the shape."""
    inside = ", ".join("1" if axis is None else axis.name for axis in dims)
    return f"({inside},)" if len(dims) == 1 else f"({inside})"


def number(e: int | Expr) -> Value:
    """A number, of Python's or of SymPy's."""
    e = Integer(e) if isinstance(e, int) else e
    digits = sum(len(f"{part:x}") for part in (int(e.p), int(e.q))) // 4 if e.is_Rational else 1
    return Value(e, kind=NUMBER, extent=Extent(length=max(digits, 1)))


class Space:
    """The axes of a mathematics, their sizes, and the twins that a formula needed on the way.

    It also counts the work that was done, and refuses what would take too long. ``as_written``:
    operations that have no value somewhere stay as they are typed (``literal.py``).
    """

    def __init__(self, definition: Definition, by_name: bool = False, as_written: bool = False):
        self.definition, self.by_name, self.as_written = definition, by_name, as_written
        self.by_position = False  # has a dimension been met by its number?
        self.work = 0

    def size(self, axis: Axis | None) -> Expr:
        return Integer(1) if axis is None else self.definition.size(axis)

    def made(self, e: Expr, dims: Dims, extent: Extent, **other) -> Value:
        """The value, if it is one and can be held."""
        self.work += extent.length
        if extent.terms > MOST_TERMS or extent.length > LONGEST or extent.depth > DEEPEST:
            raise Refusal("this becomes too large when it is multiplied out", "check it in parts")
        if self.work > MOST_WORK:
            raise Refusal("the text is too long to be multiplied out", "check it in parts")
        if e in UNDEFINED:
            raise Refusal("this is not a finite real number", "it divides by 0, or is a root of -1")
        if e.is_Rational and max(int(e.p).bit_length(), int(e.q).bit_length()) > LONGEST:
            raise Refusal("this number is too large", "check the exponents")
        return Value(e, dims, extent=extent, **other)

    def twin(self, axis: Axis, taken: Iterable[Axis]) -> Axis:
        """An axis of the same size that is not ``taken``: ``axis`` itself, or a twin of it."""
        taken, original = set(taken), self.definition.size(axis)
        twins = [twin for twin, of in self.definition.twins if of == original]
        for candidate in (axis, original, *twins):
            if candidate not in taken:
                return candidate
        return self._made_twin(original)

    def named_twin(self, name: str, axis: Axis) -> Axis:
        """A twin of ``axis`` under a name of the text's own."""
        return self._add_twin(Axis(name), self.definition.size(axis))

    def _made_twin(self, original: Axis) -> Axis:
        known = {axis.name for axis in self.definition.axes} | set(self.definition.position)
        names = (f"{original.name}_{i}" for i in range(2, MOST_TWINS))
        name = next((name for name in names if name not in known), None)
        if name is None:
            raise Refusal("too many dimensions of the same size", "check it in parts")
        return self._add_twin(Axis(name), original)

    def _add_twin(self, twin: Axis, original: Axis) -> Axis:
        axes = self.definition.axes
        place = axes.index(original) + 1
        self.definition = replace(
            self.definition,
            axes=(*axes[:place], twin, *axes[place:]),
            twins=(*self.definition.twins, (twin, original)),
        )
        return twin

    def flat_of(self, parts: Sequence[Axis]) -> Axis | None:
        """The axis of the mathematics that has the size of all ``parts`` together."""
        sizes = sorted(self.definition.size(axis).name for axis in parts)
        for flat, own in self.definition.flattened:
            if sorted(self.definition.size(axis).name for axis in own) == sizes:
                return flat
        return None

    def parts_of(self, flat: Axis) -> tuple[Axis, ...]:
        return dict(self.definition.flattened).get(self.definition.size(flat), ())


def placed(space: Space, e: Expr, mapping: Mapping[Axis, Axis]) -> Expr:
    """``e`` with its axes renamed, all at once: names may be exchanged.

    One is renamed at a time, to a name that is free by then, so that an axis that is bound inside
    steps aside for it alone, and for one of its own size.
    """
    left = {old: new for old, new in mapping.items() if old != new}
    while left:
        old = next((old for old, new in left.items() if new not in left), None)
        if old is None:  # a circle: one of them waits under another name
            old = next(iter(left))
            waiting = space.twin(old, {*left, *left.values()})
            left[waiting] = left.pop(old)
            e = renamed(e, {old: waiting})
        else:
            e = renamed(e, {old: left.pop(old)})
    return e


def matched(
    space: Space,
    operands: Sequence[tuple[Value, Labels]],
    order: Iterable[Hashable] | None = None,
) -> tuple[list[Expr], dict[Hashable, Axis | None]]:
    """The operands with their axes renamed so that dimensions under one label are one axis.

    ``operands`` are values, each with a label for every dimension. Dimensions under one label have
    one size, or size 1. Returns the expressions, and the axis of every label, in ``order``; labels
    that come first keep their axes. Raises `Mismatch`.
    """
    met: dict[Hashable, list[Axis]] = {label: [] for label in order or ()}
    for value, labels in operands:
        for axis, label in zip(value.dims, labels, strict=True):
            met.setdefault(label, []).extend([] if axis is None else [axis])
    chosen: dict[Hashable, Axis | None] = {}
    for label, axes in met.items():
        for other in axes[1:]:
            if space.size(other) != space.size(axes[0]):
                raise _mismatch(space, axes[0], other, [value for value, _ in operands])
        taken = set(filter(None, chosen.values()))
        free = [axis for axis in axes if axis not in taken]
        chosen[label] = free[0] if free else space.twin(axes[0], taken) if axes else None
    expressions = []
    for value, labels in operands:
        pairs = zip(value.dims, labels, strict=True)
        mapping = {axis: chosen[label] for axis, label in pairs if axis is not None}
        if any(old != new for old, new in mapping.items()):
            space.work += value.extent.length
        expressions.append(placed(space, value.expression, mapping))
    return expressions, chosen


def _mismatch(space: Space, one: Axis, other: Axis, values: Sequence[Value]) -> Mismatch:
    shapes = " and ".join(value.shape for value in values)
    problem = (
        f"shapes {shapes} do not fit: {one} meets {other}. torch raises here, and where "
        f"{space.size(one)} equals {space.size(other)} it takes the wrong entries silently"
    )
    return Mismatch(problem, _alignment_remedy(space, values))


def _alignment_remedy(space: Space, values: Sequence[Value]) -> str:
    """What would let the lower of two shapes fit the higher one."""
    low, *_, high = sorted(values, key=lambda value: len(value.dims))
    lower, higher = ([space.size(axis) for axis in value.dims] for value in (low, high))
    if len(lower) == len(higher) == 2 and lower == higher[::-1]:
        return "one side is the transposed of the other: .T"
    missing = len(higher) - len(lower)
    for place in range(len(lower) + 1 if missing else 0):
        spread = [Integer(1)] * (missing - 1) + [*lower[:place], Integer(1), *lower[place:]]
        if all(1 in pair or pair[0] == pair[1] for pair in zip(spread, higher, strict=True)):
            index = ", ".join([":"] * place + ["None"] + [":"] * (len(lower) - place))
            return (
                f"give the side that is {low.shape} a dimension of size 1: keepdim=True where it "
                f"was reduced, or [{index}]"
            )
    return "torch aligns shapes from the right: the last dimensions meet, then those before"


def aligned(space: Space, values: Sequence[Value]) -> tuple[list[Expr], Dims]:
    """The values as they broadcast against each other, and the dimensions that come out."""
    if space.by_name or any(value.by_name for value in values):
        return [value.expression for value in values], _dims_by_name(space, values)
    rank = max(len(value.dims) for value in values)
    operands = [(value, range(rank - len(value.dims), rank)) for value in values]
    expressions, chosen = matched(space, operands, range(rank))
    return expressions, tuple(chosen.values())


def _dims_by_name(space: Space, values: Sequence[Value]) -> Dims:
    """The union of the axes: as they lie, if they align by position too; else in their order."""
    rank = max(len(value.dims) for value in values)
    found: list[set[Axis]] = [
        {v.dims[i - rank + len(v.dims)] for v in values if i >= rank - len(v.dims)} - {None}
        for i in range(rank)
    ]
    axes = [axis for column in found for axis in column]
    if all(len(column) < 2 for column in found) and len(set(axes)) == len(axes):
        return tuple(next(iter(column), None) for column in found)
    return space.definition.in_order(set(axes))


def pointwise(
    space: Space,
    build: Callable[..., Expr],
    values: Sequence[Value],
    extent: Extent | None = None,
    kind: str | None = None,
) -> Value:
    """``build`` of the entries of ``values``, broadcast."""
    for value in values:
        if value.kind in (INDEX, COUNT, IGNORED):
            raise Refusal(
                "an index is no number to calculate with",
                "meet it as a one-hot, F.one_hot(labels, C), or pick with it: x[range(n), labels]",
            )
    expressions, dims = aligned(space, values)
    if extent is None:
        extent = sum_of(value.extent for value in values).inside()
    if kind is None:
        kind = NUMBER if all(value.kind == NUMBER for value in values) else TENSOR
    by_name = any(value.by_name for value in values)
    e = build(*expressions)
    if space.as_written:
        e = with_lost(e, expressions)
    return space.made(e, dims, extent, kind=kind, by_name=by_name)


def sum_of(extents: Iterable[Extent]) -> Extent:
    total, *rest = extents
    for extent in rest:
        total = total + extent
    return total


def product_of(extents: Iterable[Extent]) -> Extent:
    total, *rest = extents
    for extent in rest:
        total = total * extent
    return total


def added(space: Space, *values: Value) -> Value:
    return pointwise(space, Add, values, sum_of(v.extent for v in values))


def multiplied(space: Space, *values: Value) -> Value:
    return pointwise(space, Mul, values, product_of(v.extent for v in values))


def negated(space: Space, value: Value) -> Value:
    return multiplied(space, number(-1), value)


def contracted(space: Space, operands: Sequence[tuple[Value, Labels]], kept: Labels) -> Value:
    """The product of the operands, summed over every label that is not ``kept``: an einsum."""
    expressions, chosen = matched(space, operands)
    gone = [axis for label, axis in chosen.items() if label not in kept and axis is not None]
    e = summed(Mul(*expressions), gone, space.size)
    extent = product_of(value.extent for value, _ in operands).inside()
    return space.made(e, tuple(chosen[label] for label in kept), extent)
