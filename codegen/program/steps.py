"""The lines of a function: what is computed under a name, and what is asked of arguments before."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.arrays import Expand
from codegen.program.values import SizeOf, Value
from derive.language.notation.layout import Layout


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
    'first' where its format becomes that of all, 'same' where it has to be of that, 'parameter'
    where it may be of float32 beside one of half, such as the gain of a norm, 'saved'
    where it may also be of the one that is computed in, 'index' and 'number' where it becomes one.
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
    """``tensors`` in float32 where their format is of 16 bits; ``mixed``: where that of
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
    """The function ``name`` divides by ``divisor``, a number too: it is refused where that
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
