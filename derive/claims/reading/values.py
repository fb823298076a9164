"""Values of a formula: an expression in named axes, laid out along torch's dimensions.

A `TextValue` broadcasts by the *position* of its dimensions, as torch does; a value in the notation
broadcasts by the *names* of its axes (``broadcasting.py``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Basic, Expr, Integer, S, floor, nan, oo, zoo

from derive.claims.reading.composed import read_at
from derive.claims.reading.lengths import (
    in_sizes,
    is_at_least,
    multiples_for,
    multiples_without,
    shown,
    sizes_of,
    with_axis,
)
from derive.claims.reading.refusals import Refusal, as_typed
from derive.language.notation.definition import Definition
from derive.language.symbols import MINUS_INFINITY, Axis

Dims = tuple[Axis | None, ...]
Labels = Sequence[Hashable]

TENSOR, NUMBER, MASK, INDEX, COUNT = "tensor", "number", "mask", "index", "count"
PLACE = "place"  # loop index: one position along an axis
BLOCK = "block"  # loop over blocks: one block of an axis
IGNORED = "ignored"  # the label given as ignore_index
BOOL, INT, FLOAT = DTYPES = ("bool", "int", "float")  # dtypes of entries, in order of promotion
UNDEFINED = (nan, zoo, oo, -oo)

MOST_TERMS = 10_000  # after expansion; formulas people check have about ten
LONGEST = 10_000  # leaves and digits of one expression
DEEPEST = 120  # nested operations: SymPy is recursive
MOST_WORK = 300_000  # leaves and digits in total, so that reading terminates
MOST_TWINS = 32  # of one axis: a formula has few dimensions


@dataclass(frozen=True)
class Extent:
    """An upper bound on the size of an expression: ``terms`` when expanded, ``length`` (leaves and
    digits) when printed, ``depth`` of nested operations.
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
        """The extent of a function or a reduction of it."""
        return Extent(self.terms, self.length + 1, self.depth + 1)


@dataclass(frozen=True)
class TextValue:
    """``expression`` laid out along ``dims``, torch's dimensions by position; None stands for size
    1.

    Every axis of the expression is one of ``dims``, which are distinct; along an axis of ``dims``
    that the expression lacks, it is constant. ``kind`` is 'tensor', 'number' (a Python scalar: a
    literal, a size), 'mask' (bools, read as 0 and 1), 'index' (integers that index an axis) or
    'count' (0, 1, 2, ... along its axis). ``by_name`` values align by axis name. ``storage`` is the
    tensor of which this is a view: writes go through to it. ``whole`` marks an integer dtype or a
    Python int. ``left`` is the part not written yet (``unwritten.py``).
    """

    expression: Expr
    dims: Dims = ()
    kind: str = TENSOR
    by_name: bool = False
    extent: Extent = Extent()
    storage: object = None
    whole: bool = False
    left: tuple = ()

    @property
    def dtype(self) -> str:
        """The dtype of its entries in torch."""
        if self.kind == MASK:
            return BOOL
        return INT if self.whole or self.kind in (INDEX, COUNT, IGNORED, PLACE) else FLOAT

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.dims if axis is not None)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def shape(self) -> str:
        return shape_text(self.dims)


def shape_text(dims: Dims) -> str:
    """``(N, 1)``, as Python writes the shape."""
    inside = ", ".join("1" if axis is None else shown(axis) for axis in dims)
    return f"({inside},)" if len(dims) == 1 else f"({inside})"


def promoted(values: Iterable[TextValue]) -> str:
    """The dtype to which torch promotes several values."""
    return max((value.dtype for value in values), key=DTYPES.index)


def held_as(dtype: str, kind: str = TENSOR) -> dict[str, Any]:
    """The fields that give a `TextValue` this dtype."""
    return {"kind": MASK if dtype == BOOL else kind, "whole": dtype == INT}


def entries(x: TextValue, dtype: str) -> TextValue:
    """``x`` with its entries converted to ``dtype``."""
    kept = x.kind if x.kind in (NUMBER, INDEX, COUNT) else TENSOR
    return replace(x, **held_as(dtype, kept))


def number(e: int | Expr, whole: bool | None = None) -> TextValue:
    """A scalar from a Python or SymPy number; ``whole`` is false for a literal with a decimal
    point.
    """
    e = Integer(e) if isinstance(e, int) else e
    digits = sum(len(f"{part:x}") for part in (int(e.p), int(e.q))) // 4 if e.is_Rational else 1
    whole = e.is_integer is True if whole is None else whole
    return TextValue(e, kind=NUMBER, extent=Extent(length=max(digits, 1)), whole=whole)


def infinity(sign: int = 1) -> TextValue:
    """Python's ``inf``; ``-inf`` may stand for a masked entry."""
    return TextValue(oo if sign > 0 else MINUS_INFINITY, kind=NUMBER)


class Space:
    """The axes of a forward, their sizes, and the twins that a formula needed.

    It also counts the work done and refuses what would take too long. With ``as_written``, partial
    operations stay unevaluated (``literal.py``).
    """

    def __init__(self, definition: Definition, by_name: bool = False, as_written: bool = False):
        self.definition, self.by_name, self.as_written = definition, by_name, as_written
        self.numpy = False  # does the text use numpy?
        self.looped: list[Axis] = []  # axes of the enclosing loops
        self.blocks: dict[Axis, Axis] = {}  # those that run over blocks
        self.by_position = False  # has a dimension been addressed by number?
        self.unwritten = False  # does a tensor begin uninitialized?
        self.infinite = False  # does an infinite number occur?
        self.divided = False  # was a size assumed to be a multiple?
        self.work = 0
        self.line = 1
        self.remarks: dict[str, None] = {}  # torch behaviour that the text does not show

    def remark(self, what: str) -> None:
        self.remarks[as_typed(f"line {self.line}: {what}")] = None

    def size(self, axis: Axis | None) -> Expr:
        """The symbol of an axis's size; axes of one length share the first one's."""
        return Integer(1) if axis is None else sizes_of(self.definition).get(axis, axis)

    def made(self, e: Expr, dims: Dims, extent: Extent, **other) -> TextValue:
        """Build a value and check its size. Raises `Refusal`."""
        self.work += extent.length
        if extent.terms > MOST_TERMS or extent.length > LONGEST or extent.depth > DEEPEST:
            raise Refusal("this is too large to expand", "check it in smaller parts")
        if self.work > MOST_WORK:
            raise Refusal("the formula is too long to expand", "check it in smaller parts")
        if e in UNDEFINED:
            raise Refusal("this is not a finite real number", "it divides by 0, or is a root of -1")
        if e.is_Rational and max(int(e.p).bit_length(), int(e.q).bit_length()) > LONGEST:
            raise Refusal("this number is too large", "check the exponents")
        return TextValue(e, dims, extent=extent, **other)

    def seen(self, x: TextValue, e: Expr, dims: Dims) -> TextValue:
        """A view: writes into it reach ``x``. In numpy a single entry is a scalar."""
        storage = None if self.numpy and not dims else x.storage
        kind = x.kind if x.kind == INDEX else TENSOR
        return self.made(e, dims, x.extent.inside(), storage=storage, **held_as(x.dtype, kind))

    def fixed_size(self, axis: Axis | None) -> int | None:
        """The number of entries along an axis of fixed length; None for any other."""
        return 1 if axis is None else self.definition.size(axis).length

    def read_at(self, e: Expr, axis: Axis, index: Expr, fill: Expr = S.Zero) -> Expr:
        """The entries of an expression along an axis at an index."""
        return read_at(self.definition, e, axis, index, fill)

    def whole(self, length: Expr) -> Expr | None:
        """``length`` if it is an integer; a fraction of one size counts as one, with a remark that
        the size is assumed to be a multiple.
        """
        length = in_sizes(self.definition, length)
        known = (in_sizes(self.definition, axis) for axis in self.definition.axes)
        is_known = length.is_integer or any((length / n).is_Integer for n in known)
        if not is_known and not self._divides(multiples_for(length)):
            return None
        return self.rounded(length)

    def _divides(self, multiples: Mapping[Axis, int] | None) -> bool:
        """Assume from here on that sizes are multiples; False if none are given."""
        self._check_blocks(multiples or ())
        if not {*(multiples or ())} <= {*self.definition.axes}:
            return False
        for axis, of in (multiples or {}).items():
            self.definition, _ = with_axis(self.definition, axis / of)
            self.divided = True
            self.remark(f"read where {axis} is a multiple of {of}")
        return bool(multiples)

    def meets(self, a: Expr, b: Expr) -> bool:
        """Whether two lengths are equal once the sizes halved in them are even, which is then
        assumed.
        """
        apart = in_sizes(self.definition, a - b)
        return apart == 0 or self._divides(multiples_without(apart))

    def rounded(self, length: Expr) -> Expr:
        """``length`` as the size of an axis, if one has it."""
        length = in_sizes(self.definition, length)
        same = (a for a in self.definition.axes if in_sizes(self.definition, a) == length)
        return next(same, length)

    def exactly(self, length: Expr) -> Expr:
        """``length`` without rounding: sizes are assumed to be multiples."""
        for node in in_sizes(self.definition, length).atoms(floor):
            self._divides(multiples_for(node.args[0].expand()))
        return in_sizes(self.definition, length)

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether two lengths are equal."""
        return in_sizes(self.definition, a) == in_sizes(self.definition, b)

    def axis_of(self, length: Expr, taken: Iterable[Axis] = (), known: bool = False) -> Axis | None:
        """An axis of this length that is not ``taken``: an existing one, or a new one unless
        ``known``; None for length 1.
        """
        length = in_sizes(self.definition, length)
        if self.blocks:
            self._check_blocks(length.free_symbols)
        if length == 1:
            return None
        axes = (a for a in self.definition.axes if in_sizes(self.definition, a) == length)
        found = next(axes, None)
        if found is None and (known or is_at_least(self.definition, -length, 0)):
            raise Refusal(f"{length} is not the size of an axis", self.sizes_there_are)
        if found is None:
            self.definition, found = with_axis(self.definition, length)
        return self.twin(found, taken)

    @property
    def sizes_there_are(self) -> str:
        sizes = ", ".join(axis.name for axis in self.definition.independent_axes)
        return f"sizes are {sizes}, x.shape[0] and 1"

    def may_be(self, a: Axis, b: Axis) -> bool:
        """Whether two different sizes can be equal."""
        return not in_sizes(self.definition, a - b).is_number

    def need(self, length: Expr, least: int) -> None:
        """Require ``length >= least``, and add a remark if it may be less."""
        if is_at_least(self.definition, least - 1 - length, 0):
            raise Refusal("this lies outside of the dimension", "count from 0, or from -1")
        if not is_at_least(self.definition, length, least):
            length = in_sizes(self.definition, length)
            self.axis_of(length - least + 1)
            self.remark(f"read where {length} is at least {least}")

    def twin(self, axis: Axis, taken: Iterable[Axis]) -> Axis:
        """``axis`` itself if it is not ``taken``, else a twin of the same size."""
        if self.blocks:
            self._check_blocks({axis})
        taken, original = {*taken, *self.looped}, self.definition.size(axis)
        twins = [twin for twin, of in self.definition.twins if of == original]
        for candidate in (axis, original, *twins):
            if candidate not in taken:
                return candidate
        return self._made_twin(original)

    def named_twin(self, name: str, axis: Axis) -> Axis:
        """A twin of ``axis`` under a name chosen by the text."""
        return self._add_twin(Axis(name), self.definition.size(axis))

    def _made_twin(self, original: Axis) -> Axis:
        return self._add_twin(Axis(self._free_name(original.name, 2)), original)

    def _free_name(self, base: str, first: int = 1) -> str:
        """A name that no axis or tensor has."""
        known = {axis.name for axis in self.definition.axes} | set(self.definition.position)
        names = (f"{base}_{i}" if i > 1 else base for i in range(first, MOST_TWINS))
        name = next((name for name in names if name not in known), None)
        if name is None:
            raise Refusal("too many dimensions of the same size", "check it in smaller parts")
        return name

    def _add_twin(self, twin: Axis, original: Axis) -> Axis:
        axes = self.definition.axes
        place = axes.index(original) + 1
        self.definition = replace(
            self.definition,
            axes=(*axes[:place], twin, *axes[place:]),
            twins=(*self.definition.twins, (twin, original)),
        )
        return twin

    def _check_blocks(self, axes: Iterable[Basic]) -> None:
        if {*axes} & self.blocks.keys():
            raise Refusal("a block is sliced or reshaped", "write it with whole tensors")

    def flat_of(self, parts: Sequence[Axis]) -> Axis | None:
        """The existing axis whose size is the product of all ``parts``."""
        self._check_blocks(parts)
        sizes = sorted(self.definition.size(axis).name for axis in parts)
        for flat, own in self.definition.flattened:
            if sorted(self.definition.size(axis).name for axis in own) == sizes:
                return flat
        return None

    def flattened(self, parts: Sequence[Axis]) -> Axis:
        """A new axis into which ``parts`` are flattened."""
        own = tuple(map(self.definition.size, parts))
        flat = Axis(self._free_name("_".join(axis.name for axis in own)))
        axes = self.definition.axes
        place = max(map(axes.index, own)) + 1
        self.definition = replace(
            self.definition,
            axes=(*axes[:place], flat, *axes[place:]),
            flattened=(*self.definition.flattened, (flat, own)),
        )
        return flat

    def parts_of(self, flat: Axis) -> tuple[Axis, ...]:
        return dict(self.definition.flattened).get(self.definition.size(flat), ())


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
