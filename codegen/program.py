"""The Program: what is computed, in which order and shape, decided to the end and in no language
yet.

It stands between the closed form and the text of a target. Every value knows the dimensions that it
has (`Dim`), so that a printer neither counts axes nor chooses. All records are frozen.

A target implements one printing method for each `Value` and each `Step` class below; ``tests`` hold
it to that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from derive.notation.layout import Layout


@dataclass(frozen=True)
class Value:
    """Something computed; ``dims`` are the dimensions it has, aligned at the right as
    broadcasting does.
    """

    dims: Layout = field(kw_only=True, default=())


@dataclass(frozen=True)
class Number(Value):
    """An exact number."""

    value: Fraction


@dataclass(frozen=True)
class Constant(Value):
    """A named number (``pi``), or the root or exponential of numbers, as SymPy writes it, and
    its value.
    """

    text: str
    value: float


@dataclass(frozen=True)
class SizeOf(Value):
    """The length of an axis, under its name in the code."""

    name: str


@dataclass(frozen=True)
class Quotient(Value):
    """The length of a part of the axis called ``flat``: its length divided by that of the other
    parts, ``by`` in words. It is refused where it is not whole.
    """

    dividend: Value
    divisor: Value
    flat: str
    by: str


@dataclass(frozen=True)
class LengthOf(Value):
    """The length of a dimension of an argument."""

    tensor: str
    along: int


@dataclass(frozen=True)
class Load(Value):
    """A tensor or a scalar argument, by its name."""

    name: str


@dataclass(frozen=True)
class Arrange(Value):
    """The operand with its dimensions in another order: for each dimension the operand's, or
    None for a new one.
    """

    operand: Value
    order: tuple[int | None, ...]


@dataclass(frozen=True)
class Plus(Value):
    """The sum of terms; each with True where it is subtracted."""

    terms: tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class Times(Value):
    """A product from left to right: each factor with True where it divides. The first one
    multiplies.
    """

    factors: tuple[tuple[Value, bool], ...]


@dataclass(frozen=True)
class MulAdd(Value):
    """``addend + left*right``, or ``addend - left*right`` where ``negative``, in one operation;
    ``left`` may be a number.
    """

    addend: Value
    left: Value
    right: Value
    negative: bool


@dataclass(frozen=True)
class Power(Value):
    base: Value
    exponent: Value


@dataclass(frozen=True)
class Apply(Value):
    """A pointwise function, by SymPy's name of it."""

    function: str
    operand: Value


@dataclass(frozen=True)
class Pullback(Value):
    """The gradient at the argument of a function: ``upstream`` times the derivative of
    ``function`` there.

    ``function`` is SymPy's name of it, or 'Pow'. A target that knows the derivative under a name
    computes it from ``argument`` and ``output`` (None where they are not at hand), the others from
    ``derivative``.
    """

    function: str
    upstream: Value
    argument: Value | None
    output: Value | None
    derivative: Value


@dataclass(frozen=True)
class Compare(Value):
    """``left < right`` and the like, pointwise; ``relation`` is the sign."""

    left: Value
    relation: str
    right: Value


@dataclass(frozen=True)
class Combine(Value):
    """``and``, ``or`` and ``not`` of conditions, pointwise."""

    operator: str
    operands: tuple[Value, ...]


@dataclass(frozen=True)
class Choose(Value):
    """``yes`` where the condition holds, else ``no``, pointwise."""

    condition: Value
    yes: Value
    no: Value


@dataclass(frozen=True)
class Extreme(Value):
    """The larger of two, or the smaller where not ``largest``, pointwise; NaN where one of them
    is.
    """

    largest: bool
    left: Value
    right: Value


@dataclass(frozen=True)
class Clamp(Value):
    """The operand, ``low`` where it is below that, and ``high`` where it would still be above that:
    numbers, or None for no bound. NaN stays NaN.
    """

    operand: Value
    low: Value | None
    high: Value | None


@dataclass(frozen=True)
class Gate(Value):
    """``value`` where ``measure`` is above ``threshold``, a number, or is NaN; else 0."""

    value: Value
    measure: Value
    threshold: Value


@dataclass(frozen=True)
class Bend(Value):
    """``value`` where ``measure`` is above 0, else that times ``slope``, a number."""

    value: Value
    measure: Value
    slope: Value


@dataclass(frozen=True)
class Slope(Value):
    """``value`` where ``measure`` is above 0 or NaN, else that times ``scale * exp(measure)``."""

    value: Value
    measure: Value
    scale: Value


@dataclass(frozen=True)
class Merge(Value):
    """``count`` neighbouring dimensions of the operand, from ``first`` on, as one."""

    operand: Value
    first: int
    count: int


@dataclass(frozen=True)
class Split(Value):
    """One dimension of the operand as several, as long as the axes called ``into``."""

    operand: Value
    along: int
    into: tuple[str, ...]


@dataclass(frozen=True)
class Reduce(Value):
    """``kind`` ('sum', 'max') along dimensions of the operand, which stay with size 1 if
    ``keep``.
    """

    kind: str
    operand: Value
    along: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class Contract(Value):
    """A matrix product: the sum over ``summed`` of the product of two operands, each with plain
    dimensions.
    """

    left: Value
    right: Value
    summed: tuple[str, ...]

    @property
    def is_of_matrices(self) -> bool:
        """Whether both operands are matrices, or batches of as many, and so is the result."""
        left, right, result = (
            [dim.axis.name for dim in v.dims] for v in (self.left, self.right, self)
        )
        batch = result[:-2]
        if len(self.summed) != 1 or not len(left) == len(right) == len(result) == len(batch) + 2:
            return False
        same = left[:-2] == batch and right[:-2] == batch
        return same and {*self.summed} <= {*left[-2:]} & {*right[-2:]}


@dataclass(frozen=True)
class ContractAdd(Value):
    """``addend + factor*product``, or ``addend - factor*product`` where ``negative``, in one
    operation; ``product`` is of matrices, or of one batch of them, and ``factor`` is a number.
    """

    addend: Value
    product: Contract
    factor: Value
    negative: bool


@dataclass(frozen=True)
class ArgMaxOf(Value):
    """The index of the first largest entry along one dimension, which goes away."""

    operand: Value
    along: int


@dataclass(frozen=True)
class Pick(Value):
    """The entry along dimension ``along`` that ``index`` names.

    With ``rowwise`` the index has all the other dimensions of the operand, and picks one entry in
    each row; otherwise it has dimensions of its own, which come first, and picks rows of the
    operand (whose first dimension it is).
    """

    operand: Value
    along: int
    index: Value
    rowwise: bool


@dataclass(frozen=True)
class Positions(Value):
    """0, 1, 2, ... along its one dimension, which is as long as the axis called ``size``."""

    size: str


@dataclass(frozen=True)
class AsNumber(Value):
    """Indices as numbers to calculate with, in the format of the other tensors."""

    operand: Value


@dataclass(frozen=True)
class OneHotOf(Value):
    """The one-hot of an index as a whole tensor, along a new last dimension; only where no index
    would do.
    """

    index: Value
    size: str


@dataclass(frozen=True)
class Gathered(Value):
    """Zeros along the first dimension, to which the rows of ``source`` are added where ``index``
    says.

    ``source`` has the entries along the dimensions of the index, then along the others, in that
    order; it may be split into other dimensions.
    """

    index: Value
    source: Value


@dataclass(frozen=True)
class Expand(Value):
    """The operand repeated to the whole of ``dims``."""

    operand: Value


@dataclass(frozen=True)
class Own(Value):
    """The operand as a tensor of its own, whole and safe to change in place."""

    operand: Value


@dataclass(frozen=True)
class Zeros(Value):
    """All zeros, with the number format and place of the tensor called ``like``."""

    like: str


@dataclass(frozen=True)
class Step:
    """One line of a function; ``name`` is what it computes."""

    name: str


@dataclass(frozen=True)
class Assign(Step):
    value: Value


@dataclass(frozen=True)
class Default(Step):
    """The argument ``name`` is ``value`` where it was left out."""

    value: Value


@dataclass(frozen=True)
class Numeric(Step):
    """The argument ``name`` is a number, of integers if ``whole``; a tensor is refused."""

    whole: bool


@dataclass(frozen=True)
class Within(Step):
    """``value``, a number, is refused outside of ``bounds``: each a sign and a limit, that from
    below first. ``name`` says what it is, ``domain`` what it has to be.
    """

    value: Value
    bounds: tuple[tuple[str, Value], ...]
    domain: str


@dataclass(frozen=True)
class SplitLabel(Step):
    """The label ``name`` becomes an index wherever it is, and ``kept`` says where it counts, as 0
    and 1: where it is not the argument ``ignored``. ``sizes`` are those of the axes that it
    indexes; ``dims`` are its own dimensions.
    """

    kept: str
    ignored: str
    sizes: tuple[SizeOf, ...]
    dims: Layout


@dataclass(frozen=True)
class Fits(Step):
    """The argument ``name`` is refused unless it is a tensor along ``dims``, each with the size
    that is ``known`` of it, if one is. ``optional``: or None. ``kind`` is that of its entries:
    'first' where its format becomes that of all, 'same' where it has to be of that, 'saved' where
    it may also be of the one that is computed in, 'index' and 'number' where it becomes one.
    ``owners`` are the arguments that the known sizes are from: (name, their sizes).
    """

    dims: Layout
    known: tuple[bool, ...]
    owners: tuple[tuple[str, tuple[str, ...]], ...]
    kind: str
    optional: bool


@dataclass(frozen=True)
class Spread(Step):
    """The argument ``name`` is repeated along ``dims`` as broadcasting does. ``optional``: or
    None.
    """

    dims: Layout
    optional: bool


@dataclass(frozen=True)
class ReadSizes(Step):
    """The sizes of those axes of the argument ``name`` that are ``new``; an `Axes` is read as the
    sizes of all its dimensions.
    """

    dims: Layout
    new: tuple[bool, ...]


@dataclass(frozen=True)
class ReadShape(Step):
    """The argument ``name`` is refused unless it is a shape: the sizes of the dimensions of an
    `Axes` called ``axes``.
    """

    axes: str


@dataclass(frozen=True)
class InSingle(Step):
    """``tensors`` in single precision where their format is of 16 bits; ``mixed``: where that of
    any of them is.
    """

    tensors: tuple[str, ...]
    mixed: bool


@dataclass(frozen=True)
class MergeDims(Step):
    """``tensors``, each with its dimensions, with one dimension for all those of the `Axes` called
    ``name``, where these are not one already.
    """

    tensors: tuple[tuple[str, Layout], ...]


@dataclass(frozen=True)
class NameSize(Step):
    """``name`` is the size of an axis."""

    value: Value


@dataclass(frozen=True)
class Refuse(Step):
    """A condition on sizes: ``left`` differs from ``right`` (zero, for a divisor), or equals it
    where ``equal``.

    ``name`` is the statement that needs it, ``use`` says what for: 'divides by it'. ``axes`` are
    (axis, name in code).
    """

    left: Value
    right: Value
    equal: bool
    use: str
    axes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NotZero(Step):
    """The function ``name`` divides a number by ``divisor``, a number too: it is refused where that
    is zero, as dividing a tensor by it would not be. ``unless``: or where that argument is passed.
    """

    divisor: Value
    unless: str = ""


@dataclass(frozen=True)
class Needed(Step):
    """The argument ``name`` is refused where it is left out."""


@dataclass(frozen=True)
class InRange(Step):
    """The label ``name`` is refused where it is outside of an axis that it indexes; ``lengths`` are
    those of these axes.
    """

    lengths: tuple[Value, ...]


@dataclass(frozen=True)
class Fill(Step):
    """The argument ``name`` is ``value``, a number everywhere, where it was left out."""

    value: Expand


@dataclass(frozen=True)
class AddAt(Step):
    """Add ``value`` to one entry in each row of the tensor ``name``, in place: the one ``index``
    names.
    """

    index: Value
    along: int
    value: Value
    rank: int


def operands(node: Value | Step) -> list[Value]:
    """The values that a value or a step is directly made of."""
    return list(_values_among(vars(node).values()))


def values_in(node: Value | Step) -> Iterator[Value]:
    """All values that a value or a step is made of, at any depth."""
    for value in operands(node):
        yield value
        yield from values_in(value)


def _values_among(items) -> Iterator[Value]:
    for item in items:
        if isinstance(item, Value):
            yield item
        elif isinstance(item, tuple):
            yield from _values_among(item)


def is_number(value: Value, numbers: Collection[str]) -> bool:
    """Whether a value is a Python number when the code runs, where the arguments called ``numbers``
    are: it is made of those, and is no tensor that is made of numbers.
    """
    if isinstance(value, Load):
        return value.name in numbers
    if isinstance(value, (Zeros, Positions, Expand, OneHotOf)):
        return False
    return all(is_number(operand, numbers) for operand in operands(value))


NUMBERS = ("scalar", "index", "size", "shape")  # the roles of arguments that are no tensors


@dataclass(frozen=True)
class Parameter:
    """An argument: a tensor with its layout, or a number.

    ``default`` is the number that it is where it is left out, for a tensor everywhere; for a number
    it may be computed from sizes. ``role`` is 'input', 'given', 'label', 'kept' (which labels
    count), 'statement', 'adjoint', and for what is no tensor 'scalar', 'index' (the label that is
    ignored), 'size' (the length of an axis) or 'shape' (the dimensions that an `Axes` stands
    for).
    """

    name: str
    layout: Layout = ()
    role: str = "input"
    default: float | Value | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(str(dim) for dim in self.layout)


@dataclass(frozen=True)
class Function:
    """A function of the generated module: arguments, lines, results.

    ``checks`` are what it asks of its arguments and does to them before its own ``steps``;
    ``sizes`` are (name, value): the sizes that these read off the shapes of the arguments.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    checks: tuple[Step, ...]
    sizes: tuple[tuple[str, Value], ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    result_class: str

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role not in NUMBERS)

    @property
    def shapes(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role == "shape")


@dataclass(frozen=True)
class Second:
    """What the derivatives of a backward are made of (``derive/orders``).

    ``pullback`` computes the gradients of the inputs from cotangents of the output and of all
    values that are saved, where any is; ``behind`` the tangent of the output and cotangents of what
    is saved, from what stands before the gradients of the inputs; ``jvp`` that tangent alone.
    ``double`` is one after the other. ``cotangents`` are those that ``behind`` gives, by the name
    of what is saved; those of others are 0.
    """

    pullback: Function | None
    behind: Function
    jvp: Function
    double: Function
    cotangents: tuple[tuple[str, str], ...]
    formulas: tuple[tuple[str, ...], tuple[str, ...]]
    proved: str


@dataclass(frozen=True)
class Plain:
    """The pair where nothing optional is passed: the tensors ``absent`` are left out, the scalars
    ``zero`` are 0, and of the labels ``counting`` (with the lengths of the axes that they index)
    none is ignored.
    """

    absent: tuple[str, ...]
    zero: tuple[str, ...]
    counting: tuple[InRange, ...]
    formulas: tuple[str, ...]
    forward: Function
    backward: Function
    second: Second | None = None


@dataclass(frozen=True)
class Program:
    """Everything a target needs to write a module. ``notes`` are the lines of its docstring.

    ``sizes`` are (axis, name in code); ``several`` the names of those axes that stand for any
    number of dimensions, and ``ignored`` the labels that may be ignored. ``means`` are (statement,
    axis): it divides by that size, which may be 0. ``ranges`` are what is asked of the labels, by
    the sizes of the inputs. ``broadcast`` are the arguments that are
    broadcast to their layouts. ``unsafe`` says in words what may be infinite or NaN. ``second`` is
    what comes behind the backward, and ``plain`` the pair for calls that pass nothing optional.
    """

    name: str
    title: str
    doc: str
    source: str
    source_hash: str
    formulas: tuple[str, ...]
    proved: str
    unsafe: tuple[str, ...]
    sizes: tuple[tuple[str, str], ...]
    several: tuple[str, ...]
    flattened: tuple[tuple[str, tuple[str, ...]], ...]
    fixed: tuple[tuple[str, int], ...]
    requirements: tuple[Refuse, ...]
    means: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    ranges: tuple[InRange, ...]
    ignored: tuple[str, ...]
    broadcast: tuple[str, ...]
    forward: Function
    backward: Function
    atoms: Function
    chain: Function
    second: Second | None = None
    plain: Plain | None = None
