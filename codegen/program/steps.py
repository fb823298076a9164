"""The lines of a function: named values, and checks of arguments before."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.arrays import Expand
from codegen.program.values import SizeOf, Value
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class Step:
    """One line of a function; ``name`` is the value that it computes."""

    name: str


@dataclass(frozen=True)
class Assign(Step):
    value: Value


@dataclass(frozen=True)
class Default(Step):
    """Set the argument ``name`` to ``value`` if it was left out."""

    value: Value


@dataclass(frozen=True)
class Numeric(Step):
    """Check that the argument ``name`` is a number, an integer if ``whole``, and not a tensor."""

    whole: bool


@dataclass(frozen=True)
class Within(Step):
    """Check that ``value``, a number, is within ``bounds``: each a sign and a limit, the lower
    bound first. ``name`` describes it, ``domain`` is its required domain.
    """

    value: Value
    bounds: tuple[tuple[str, Value], ...]
    domain: str


@dataclass(frozen=True)
class SplitLabel(Step):
    """Make the label ``name`` a valid index everywhere, and ``kept`` a mask of 0 and 1: 0 where it
    is the argument ``ignored``. ``sizes`` are those of the axes that it indexes; ``dims`` are its
    own dimensions.
    """

    kept: str
    ignored: str
    sizes: tuple[SizeOf, ...]
    dims: Layout


@dataclass(frozen=True)
class Fits(Step):
    """Check that the argument ``name`` is a tensor along ``dims``, each with its ``known`` size, if
    any. ``optional``: or None. ``kind`` is that of its entries: 'first' sets the dtype of all,
    'same' must have that dtype, 'parameter' may be float32 beside a 16-bit one, such as the gain of
    a norm, 'saved' may also have the dtype of the computation, 'index' and 'number' are converted.
    ``owners`` are the arguments that the known sizes are from: (name, their sizes).
    """

    dims: Layout
    known: tuple[bool, ...]
    owners: tuple[tuple[str, tuple[str, ...]], ...]
    kind: str
    optional: bool


@dataclass(frozen=True)
class Spread(Step):
    """Broadcast the argument ``name`` to ``dims``. ``optional``: or None."""

    dims: Layout
    optional: bool


@dataclass(frozen=True)
class ReadSizes(Step):
    """Read the sizes of the ``new`` axes of the argument ``name``; an `Axes` is read as the sizes
    of all its dimensions.
    """

    dims: Layout
    new: tuple[bool, ...]


@dataclass(frozen=True)
class ReadShape(Step):
    """Check that the argument ``name`` is a shape: the sizes of the dimensions of an `Axes` called
    ``axes``.
    """

    axes: str


@dataclass(frozen=True)
class InSingle(Step):
    """Convert ``tensors`` to float32 if their dtype has 16 bits; ``mixed``: if that of any of them
    has.
    """

    tensors: tuple[str, ...]
    mixed: bool


@dataclass(frozen=True)
class MergeDims(Step):
    """Merge, in each of ``tensors`` with its dimensions, those of the `Axes` called ``name``,
    unless they are one already.
    """

    tensors: tuple[tuple[str, Layout], ...]


@dataclass(frozen=True)
class NameSize(Step):
    """Name the size of an axis ``name``."""

    value: Value


@dataclass(frozen=True)
class Refuse(Step):
    """Raise unless ``left`` differs from ``right`` (zero, for a divisor), or equals it if
    ``equal``: a condition on sizes.

    ``name`` is the statement that needs it, ``use`` the purpose: 'divides by it'. ``axes`` are
    (axis, name in code).
    """

    left: Value
    right: Value
    equal: bool
    use: str
    axes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NotZero(Step):
    """Raise if ``divisor`` of the function ``name`` is zero: it may be a number, and dividing a
    tensor by it would not raise. ``unless``: not if that argument is passed.
    """

    divisor: Value
    unless: str = ""


@dataclass(frozen=True)
class Needed(Step):
    """Raise if the argument ``name`` is left out."""


@dataclass(frozen=True)
class InRange(Step):
    """Raise if the label ``name`` is outside of an axis that it indexes; ``lengths`` are those of
    these axes.
    """

    lengths: tuple[Value, ...]


@dataclass(frozen=True)
class Fill(Step):
    """Fill the argument ``name`` with ``value`` everywhere if it was left out."""

    value: Expand


@dataclass(frozen=True)
class AddAt(Step):
    """Add ``value`` in place to the entry at ``index`` in each row of the tensor ``name``."""

    index: Value
    along: int
    value: Value
    rank: int
