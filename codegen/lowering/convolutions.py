"""Convolutions: sums of products of two tensors one of which is read in windows, by whatever axes
are left.

Three tensors belong together: an input along ``T``, an output along ``To`` and a weight along
``K``, of which entries meet where t = stride*to + dilation*k - padding. Any two of them determine
the third; so a convolution, and its gradients, are recognised by the same equation, which is solved
for the axis that is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Mul

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.picks import Picked
from codegen.lowering.reads import Ends, ends_of
from codegen.program.reads import Channels, Convolve, Geometry
from codegen.program.values import Times, Value
from derive.language.nodes import OneHot, Position, Sum
from derive.language.notation.layout import plain
from derive.language.reading_at import Affine, At, affine, is_long
from derive.language.symbols import Axis, axes_of, is_constant

INPUT, WEIGHT, OUTPUT = "input", "weight", "output"
MOST = 3  # dimensions that torch convolves along


@dataclass(frozen=True)
class Meeting:
    """Axes of a convolution that meet along one dimension, and which of the three is read there."""

    axes: dict[str, Axis]  # of the input, the weight and the output
    stride: Expr
    dilation: Expr
    padding: Expr
    read: str

    @property
    def ends(self) -> Ends:
        """Entries missing at the ends of the input."""
        place = self.stride * Position(self.axes[OUTPUT]) + self.dilation * Position(self.entry)
        return ends_of(self.axes[INPUT], affine(place - self.padding))

    @property
    def entry(self) -> Axis:
        return self.axes[WEIGHT]


def convolved(lowering: Context, e: Sum, frame: Frame, picked: Picked) -> Value | None:
    """A sum as a convolution or one of its gradients; None for others."""
    factors = Mul.make_args(e.operand)
    constants = [f for f in factors if is_constant(f)]
    varying = [f for f in factors if f not in constants]
    if picked or any(isinstance(f, OneHot) for f in varying) or len(varying) < 2:
        return None
    for read in (f for f in varying if isinstance(f, At)):
        other = Mul(*(f for f in varying if f is not read))
        value = None if other.has(At) else _convolved(lowering, e, read, other)
        if value is not None:
            value = arranged(value, frame)
            if not constants:
                return value
            number = lowering.value(Mul(*constants), frame, picked)
            return Times(((number, False), (value, False)), dims=value.dims)
    return None


def _convolved(lowering: Context, e: Sum, read: At, other: Expr) -> Value | None:
    base, meetings = read, []
    while isinstance(base, At) and (meeting := _meeting(base)) is not None:
        meetings.append(meeting)
        base = base.operand
    if not 0 < len(meetings) <= MOST or base.has(At):
        return None
    meetings.sort(key=lambda meeting: lowering.order.index(meeting.axes[INPUT]))
    made = _made(e, meetings)
    if made is None or len({m.read for m in meetings}) > 1:
        return None
    known = meetings[0].read
    (beside,) = {INPUT, WEIGHT, OUTPUT} - {made, known}
    tensors = {known: base, beside: other, made: e}
    along = {kind: [m.axes[kind] for m in meetings] for kind in tensors}
    others = {kind: axes_of(tensor) - {*along[kind]} for kind, tensor in tensors.items()}
    if any(not {*along[kind]} <= axes_of(tensor) for kind, tensor in tensors.items()):
        return None
    orders = _orders(lowering, others)
    summed = {*e.axes} - {*along[beside]}
    if orders is None or not summed <= others[known] & others[beside]:
        return None
    values = []
    for kind in (INPUT, WEIGHT, OUTPUT):
        if kind != made:
            axes = tuple(a for group in orders[kind] for a in group) + tuple(along[kind])
            values.append(fitted(lowering.value(tensors[kind], axes), plain(axes)))
    dims = plain((*(a for group in orders[made] for a in group), *along[made]))
    geometry = tuple(_geometry(lowering, m) for m in meetings)
    batch, group, into = orders[INPUT]
    names = (tuple(a.name for a in own) for own in (batch, group, into, orders[OUTPUT][2]))
    return Convolve(made, *values, geometry, Channels(*names), dims=dims)


def _meeting(read: At) -> Meeting | None:
    """Read the three axes from the index of ``read``; None if it has another form."""
    index = affine(read.index)
    own = axes_of(read.operand)
    if (
        read.fill != 0
        or len(index.axes) != 2
        or any(a in own and a != read.axis for a in index.axes)
    ):
        return None
    falling = [axis for axis in index.axes if index.of(axis).could_extract_minus_sign()]
    if not falling and index.divisor == 1:
        long, short = sorted(index.axes, key=lambda axis: (not is_long(axis, read.axis), axis.name))
        axes = {INPUT: read.axis, WEIGHT: short, OUTPUT: long}
        return Meeting(axes, index.of(long), index.of(short), -index.offset, INPUT)
    return _solved(read, index, falling) if len(falling) == 1 else None


def _solved(read: At, index: Affine, falling: list[Axis]) -> Meeting | None:
    """From (t - m*n + p)/q: where entry n of one meets entry i of the other, q*i + m*n - p."""
    (other,) = falling
    (place,) = (axis for axis in index.axes if axis != other)
    if index.of(place) != 1:
        return None
    width, step = -index.of(other), index.divisor
    if is_long(other, place) and not is_long(read.axis, place):
        axes = {INPUT: place, WEIGHT: read.axis, OUTPUT: other}
        return Meeting(axes, width, step, index.offset, WEIGHT)
    axes = {INPUT: place, WEIGHT: other, OUTPUT: read.axis}
    return Meeting(axes, step, width, index.offset, OUTPUT)


def _made(e: Sum, meetings: list[Meeting]) -> str | None:
    """The result of the three: the one whose axes are not summed."""
    found = set()
    for meeting in meetings:
        free = [k for k, a in meeting.axes.items() if k != meeting.read and a not in e.axes]
        found.add(free[0] if len(free) == 1 else None)
    return found.pop() if len(found) == 1 else None


def _orders(lowering: Context, others: dict[str, frozenset[Axis]]) -> dict | None:
    """The other axes of each of the three in torch's order: batches, groups and channels."""
    x, w, y = (others[kind] for kind in (INPUT, WEIGHT, OUTPUT))

    def ordered(axes) -> tuple[Axis, ...]:
        return tuple(axis for axis in lowering.order if axis in axes)

    batch, group = ordered((x & y) - w), ordered(x & w & y)
    into, out = ordered((x & w) - y), ordered((w & y) - x)
    if any(own - {*batch, *group, *into, *out} for own in (x, w, y)):
        return None
    return {INPUT: (batch, group, into), WEIGHT: (group, out, into), OUTPUT: (batch, group, out)}


def _geometry(lowering: Context, meeting: Meeting) -> Geometry:
    ends = meeting.ends
    same = ends.before == ends.after and ends.grows
    numbers = (meeting.stride, meeting.dilation, ends.before, ends.after)
    sizes = (meeting.axes[kind].name for kind in (INPUT, WEIGHT))
    return Geometry(*(lowering.value(n, ()) for n in numbers), same, ends.grows, *sizes)
