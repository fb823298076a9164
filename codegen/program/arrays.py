"""Values that are whole arrays: permuted, reduced, multiplied, gathered, scattered, created."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.values import Value


@dataclass(frozen=True)
class Arrange(Value):
    """The operand with its dimensions in another order: for each dimension the operand's, or
    None for a new one.
    """

    operand: Value
    order: tuple[int | None, ...]


@dataclass(frozen=True)
class Detached(Value):
    """The operand, detached: autograd passes no gradient to it."""

    operand: Value


@dataclass(frozen=True)
class Merge(Value):
    """``count`` adjacent dimensions of the operand, from ``first`` on, merged into one."""

    operand: Value
    first: int
    count: int


@dataclass(frozen=True)
class Split(Value):
    """One dimension of the operand, split into several, as long as the axes called ``into``."""

    operand: Value
    along: int
    into: tuple[str, ...]


@dataclass(frozen=True)
class Reduce(Value):
    """A reduction of ``kind`` ('sum', 'max') along dimensions of the operand, which stay with size
    1 if ``keep``.
    """

    kind: str
    operand: Value
    along: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class Cumulate(Value):
    """A cumulative ``kind`` ('sum', 'product', 'max', 'logarithm' of a sum of exponentials) along
    one dimension; from the end if ``reverse``.
    """

    kind: str
    operand: Value
    along: int
    reverse: bool


@dataclass(frozen=True)
class Scanned(Value):
    """h[t] = factor[t]*h[t-1] + term[t] along one dimension, with ``initial`` before it, if any;
    from the end if ``reverse``: h[t] = factor[t]*h[t+1] + term[t].
    """

    factor: Value
    term: Value
    initial: Value | None
    along: int
    reverse: bool


@dataclass(frozen=True)
class Stepped(Value):
    """The value one place before along one dimension, ``initial`` or 0 at the first; one place
    after if ``reverse``.
    """

    operand: Value
    initial: Value | None
    along: int
    reverse: bool


@dataclass(frozen=True)
class OfMatrix(Value):
    """``kind`` ('inverse', 'logdet', 'cholesky') of the matrix in the last two dimensions."""

    kind: str
    operand: Value


@dataclass(frozen=True)
class Solved(Value):
    """The solution x of ``matrix`` @ x = ``right``, with the matrix in the last two dimensions: a
    vector in the last dimension, or columns in the last two; ``from_the_right``: of x @ ``matrix``
    = ``right``, by rows. ``triangle`` is the part with nonzero entries ('lower', 'upper'), if not
    all.
    """

    matrix: Value
    right: Value
    is_vector: bool
    from_the_right: bool
    triangle: str = ""


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
        """True if operands and result are matrices, or batches along the same dimensions."""
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
    """The index of the first largest entry along one dimension, which is removed."""

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
    """Indices as floating-point numbers, in the dtype of the other tensors."""

    operand: Value


@dataclass(frozen=True)
class OneHotOf(Value):
    """The one-hot of an index as a whole tensor, along a new last dimension; only where an index
    would not do.
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
class Scattered(Value):
    """Zeros, to which each entry of ``source`` is added at ``index``, of the same dimensions, along
    dimension ``along``; along the others it stays where it is.
    """

    index: Value
    source: Value
    along: int


@dataclass(frozen=True)
class SegmentMax(Value):
    """The largest of the rows of ``source`` for each value of ``index``, along the first dimension,
    minus infinity where there are none; ``kind`` is that of a `Reduce`, and ``size`` the axis of
    the first dimension.
    """

    kind: str
    index: Value
    source: Value
    size: str


@dataclass(frozen=True)
class SegmentArgMax(Value):
    """Index of the first largest row of ``source``, as in `SegmentMax`; 0 where there is none."""

    index: Value
    source: Value
    size: str


@dataclass(frozen=True)
class Expand(Value):
    """The operand expanded to ``dims``."""

    operand: Value


@dataclass(frozen=True)
class Own(Value):
    """A contiguous copy of the operand, safe to change in place."""

    operand: Value


@dataclass(frozen=True)
class Zeros(Value):
    """All zeros, with the dtype and device of the tensor called ``like``."""

    like: str
