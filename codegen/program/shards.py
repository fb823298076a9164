"""Values and steps of a function whose axis is split over the ranks of a group: this rank's part,
and the collectives.

``group`` is the axis that the group was made for. Everything else of a Program is computed by this
rank on its own part; a dimension of a `Value` along a split axis has the length of the part.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.arrays import Cumulate, Gathered, OneHotOf, Scanned, Stepped
from codegen.program.loops import Looped
from codegen.program.steps import Step
from codegen.program.values import Load, Value
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class WholeSize(Value):
    """The length of a split axis on all ranks together."""

    group: str


@dataclass(frozen=True)
class OwnSize(Value):
    """The length of this rank's own part, where no tensor shows it."""

    group: str


@dataclass(frozen=True)
class OwnPart(Value):
    """This rank's part, along one dimension, of a whole operand."""

    operand: Value
    along: int
    group: str


@dataclass(frozen=True)
class OwnLargest(Value):
    """The largest along dimensions of this rank's part, which stay with size 1 if ``keep``; minus
    infinity where the part is empty.
    """

    operand: Value
    along: tuple[int, ...]
    keep: bool


@dataclass(frozen=True)
class OwnMean(Value):
    """The mean of this rank's part along dimensions, which stay with size 1; 0 if it is empty."""

    operand: Value
    along: tuple[int, ...]


@dataclass(frozen=True)
class Unshifted(Value):
    """The shift of a row: its maximum, replaced where it is not finite, as a `Reduce` of that
    ``kind`` does.
    """

    kind: str
    operand: Value


@dataclass(frozen=True)
class OwnPick(Value):
    """`Pick` of a global index: 0 where another rank has the entry."""

    operand: Value
    along: int
    index: Value
    rowwise: bool
    group: str


@dataclass(frozen=True)
class OwnPositions(Value):
    """The global positions of this rank's part."""

    group: str


@dataclass(frozen=True)
class OwnOneHot(Value):
    """`OneHotOf` a global index, at this rank's part."""

    index: Value
    group: str


@dataclass(frozen=True)
class OwnGathered(Value):
    """`Gathered` at this rank's rows, of a global index."""

    index: Value
    source: Value
    group: str


@dataclass(frozen=True)
class OwnAddAt(Step):
    """`AddAt` of a global index, where the entry is this rank's."""

    index: Value
    along: int
    value: Value
    group: str


@dataclass(frozen=True)
class WholeOneHot(OneHotOf):
    """A one-hot along all of an axis that is split elsewhere."""

    group: str


@dataclass(frozen=True)
class WholeGathered(Gathered):
    """Rows added along all of an axis that is split elsewhere."""

    group: str


@dataclass(frozen=True)
class Running(Value):
    """The ``operation`` on one part, from the states that the part ``before`` left, in the order in
    which it runs. ``states`` are the names of those before all parts.
    """

    operation: Cumulate | Scanned | Stepped | Looped
    before: tuple[Load, ...]
    states: tuple[str, ...]


@dataclass(frozen=True)
class Near(Value):
    """The rows of a whole operand that a part has along one dimension, with those ``before`` and
    ``after`` them that there are.
    """

    operand: Value
    along: int
    before: Value
    after: Value


@dataclass(frozen=True)
class Filled(Value):
    """The operand, whose rows are `Near` a part by ``before + further_before`` and ``after +
    further_after``, with the further rows that there are not: they are the ``fill``.
    """

    operand: Value
    along: int
    before: Value
    after: Value
    further_before: Value
    further_after: Value
    fill: Value


@dataclass(frozen=True)
class Visiting(Value):
    """The rows of the operand that a rank has been passed: those of another rank's part."""

    operand: Load


@dataclass(frozen=True)
class Ratio(Value):
    """Entries of the length ``whole`` for each entry of ``part``, both of this rank; a rank without
    entries asks the others.
    """

    whole: Value
    part: Value
    group: str


@dataclass(frozen=True)
class Overwritten(Value):
    """The ``operation``, whose result may overwrite the tensor ``name``, one of its operands, which
    nothing reads any more.
    """

    operation: Value
    name: str


@dataclass(frozen=True)
class Sent:
    """A tensor in an `Exchange`: ``name`` is the result for its own ``value``, None for a result
    that comes with another. ``along`` is the concatenated dimension, for the kinds that have one.
    """

    name: str
    value: Value | None
    along: int = 0
    dims: Layout = ()


@dataclass(frozen=True)
class Exchange(Step):
    """One collective of the ranks of ``group``; ``more`` are numbers that a rank needs for it.

    ``kind``: 'sum' and 'largest' of the parts, entry by entry; 'first' for the place of the first
    largest; 'gathered' for the parts, concatenated; 'moments' for the mean, the shift to it, and
    the squares about it; 'ratio' for that of two lengths; 'agreed' exchanges the lengths of the
    parts alone. With a ``handle`` it is only begun here.
    """

    kind: str
    group: str
    sent: tuple[Sent, ...]
    more: tuple[Value, ...] = ()
    handle: str = ""


@dataclass(frozen=True)
class Ended(Step):
    """Waits for the `Exchange` whose handle has the same name."""

    sent: tuple[Sent, ...]
