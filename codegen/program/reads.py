"""Values read at an affine index, concatenated, put back where they were read, and convolved."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.values import Value


@dataclass(frozen=True)
class IndexStep:
    """Along an axis of that name an index grows by ``step``, or falls by it if ``backward``."""

    axis: str
    step: Value
    backward: bool


@dataclass(frozen=True)
class Read(Value):
    """The operand's dimension ``along``, an axis called ``read``, at an affine index: ``offset``
    and ``steps``, over ``divisor``. Out of range it is ``fill``.

    The first of the new dimensions stands where that was, the others come last. The operand covers
    exactly the read range with ``before`` and ``after`` more entries at its ends, fewer where these
    are less than 0; if it ``fits``, none is more, and the last one stands before ``stop``; if it
    ``grows``, none is less than 0.
    """

    operand: Value
    along: int
    read: str
    steps: tuple[IndexStep, ...]
    offset: Value
    divisor: Value
    fill: Value
    before: Value
    after: Value
    stop: Value
    fits: bool
    grows: bool

    @property
    def shared(self) -> tuple[IndexStep, ...]:
        """The steps along dimensions that the operand has already."""
        own = {dim.axis.name for i, dim in enumerate(self.operand.dims) if i != self.along}
        return tuple(step for step in self.steps if step.axis in own)


@dataclass(frozen=True)
class Joined(Value):
    """Parts concatenated along a dimension, each with True where it is subtracted: each is a read
    with nothing out of range; equal to their sum, were each of them 0 elsewhere.
    """

    parts: tuple[tuple[Value, bool], ...]
    along: int


@dataclass(frozen=True)
class Overlapped(Value):
    """Overlap-add of the last dimension of the operand along another, ``along``: entry k of row n
    at ``step*n + spacing*k + offset``, in as many as the axis ``length`` has. Entries outside are
    left out.
    """

    operand: Value
    along: int
    step: Value
    spacing: Value
    offset: Value
    length: str


@dataclass(frozen=True)
class Placement:
    """Along a dimension: entry ``k`` of row n lies at ``step*n + spacing*k + offset``, for as many
    entries as the axis ``entries`` has, in as many places as the axis ``length``.
    """

    along: int
    entries: str
    step: Value
    spacing: Value
    offset: Value
    length: str


@dataclass(frozen=True)
class Placed(Value):
    """Overlap-add of one entry of each window: along each of the ``lines`` the entry that ``label``
    names, counted along all of them with the last one fastest.
    """

    operand: Value
    label: Value
    lines: tuple[Placement, ...]


@dataclass(frozen=True)
class Geometry:
    """Geometry of a convolution along one dimension: entry k of a window at the place n meets entry
    ``stride*n + dilation*k - before`` of the input, which is padded by ``before`` and ``after``:
    ``same``, if both are the same number, and not below 0; ``grows``, if none is below 0. The last
    two are names of axes.
    """

    stride: Value
    dilation: Value
    before: Value
    after: Value
    same: bool
    grows: bool
    input: str
    entry: str


@dataclass(frozen=True)
class Channels:
    """Names of the other axes of a convolution: of batches and groups, and the channels of the
    input and the output in each group.
    """

    batch: tuple[str, ...]
    group: tuple[str, ...]
    into: tuple[str, ...]
    out: tuple[str, ...]


@dataclass(frozen=True)
class Convolve(Value):
    """A convolution, or the gradient of its input or weight: the one that is ``made`` of the other
    two.

    The input has the dimensions batch, group, into; the weight group, out, into; the output batch,
    group, out; then those that it is along, one for each of ``geometry``. ``first`` and ``second``
    are two of these three in that order.
    """

    made: str
    first: Value
    second: Value
    geometry: tuple[Geometry, ...]
    channels: Channels
