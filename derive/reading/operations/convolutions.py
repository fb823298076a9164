"""Torch's convolutions: windows times weights, summed; and transposed ones, the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Eq, Expr, Integer, Mul, Piecewise, floor

from derive.language.nodes import Position
from derive.language.symbols import Axis
from derive.reading.broadcasting import added, matched
from derive.reading.composed import total
from derive.reading.operations.along import whole_number
from derive.reading.operations.dtypes import of_one_dtype
from derive.reading.operations.entries import Operation, entry, tensor
from derive.reading.operations.shaping import relaid
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.values import Space, Value, product_of

convolutions: dict[str, Operation] = {}

# Along one dimension: (its size, that of the window, stride, padding, dilation) -> the length; and
# (position outside, position in the window, stride, padding, dilation) -> the index that is read.
Length = Callable[[Expr, Expr, tuple[Expr, ...]], Expr]
Index = Callable[[Expr, Expr, tuple[Expr, ...]], Expr]


def _length(size: Expr, window: Expr, how: tuple[Expr, ...]) -> Expr:
    stride, padding, dilation = how
    return floor((size + 2 * padding - dilation * (window - 1) - 1) / stride) + 1


def _index(at: Expr, inside: Expr, how: tuple[Expr, ...]) -> Expr:
    stride, padding, dilation = how
    return stride * at + dilation * inside - padding


def _back(at: Expr, inside: Expr, how: tuple[Expr, ...]) -> Expr:
    stride, padding, dilation = how
    return (at + padding - dilation * inside) / stride


def each(value, count: int, default: int, what: str) -> list[Expr]:
    """A number for each dimension."""
    if value is None:
        return [Integer(default)] * count
    values = value if isinstance(value, tuple) else (value,) * count
    if len(values) != count:
        raise Refusal(f"{what}: {len(values)} numbers for {count} dimensions", "write one number")
    return [whole_number(v, f"the {what}") for v in values]


def _convolved(
    space: Space, x: Value, weight: Value, groups, along: Sequence, transposed: bool
) -> Value:
    """``along`` are, for each dimension behind the channels, the length that comes out and the
    index that is read as a function of the places outside and in the window.
    """
    space.by_position = True
    count = len(along)
    single = len(x.dims) == count + 1
    x = relaid(x, (None, *x.dims)) if single else x
    inside = [("inside", i) for i in range(count)]
    whole = [("whole", i) for i in range(count)]
    out, into = ("out", "into")
    channels, own = (into, [into, out]) if transposed else (into, [out, into])
    if groups is not None and whole_number(groups, "groups") != 1:
        channels, own = _by_channel(space, x, weight, groups, transposed)
    operands = [(x, ["batch", channels, *whole]), (weight, [*own, *inside])]
    (e, w), chosen = matched(space, operands)
    used = {*chosen.values()} - {None}
    ends: list[Axis | None] = []
    for i, (length, index) in enumerate(along):
        axis = space.axis_of(length, used)
        used |= {axis} - {None}
        ends.append(axis)
        place, entry_of = (
            Integer(0) if a is None else Position(a) for a in (axis, chosen[inside[i]])
        )
        old, read = chosen[whole[i]], index(place, entry_of)
        if old is not None:
            e = space.read_at(e, old, read)
        elif read != 0:
            e = Piecewise((e, Eq(read, 0)), (0, True))
    gone = [chosen[label] for label in (into, *inside) if chosen.get(label) is not None]
    e = total(Mul(e, w), gone, space.size)
    dims = (chosen["batch"], chosen[out], *ends)
    extent = product_of([x.extent.inside(), weight.extent]).inside()
    result = space.made(e, dims, extent)
    return relaid(result, dims[1:]) if single else result


def _by_channel(space: Space, x: Value, weight: Value, groups, transposed: bool):
    """The labels of a depthwise convolution: each channel has its own window."""
    one = weight.dims[1]
    each_own = space.same(whole_number(groups, "groups"), space.size(x.dims[1])) and one is None
    if not each_own or space.size(weight.dims[0]) != space.size(x.dims[1]):
        raise Refusal("groups of several channels", "groups is 1, or the number of channels")
    return "out", ["out", "none"]


def _dimensions(space: Space, x: Value, weight: Value, count: int) -> list[tuple[Expr, Expr]]:
    if len(tensor(weight).dims) != count + 2 or len(tensor(x).dims) not in (count + 1, count + 2):
        problem = f"a convolution of the shapes {x.shape} and {weight.shape}"
        raise Mismatch(problem, f"x has {count + 2} dimensions, and so have the weights")
    of_one_dtype(x, weight, "a convolution")
    pairs = zip(x.dims[-count:], weight.dims[-count:], strict=True)
    return [(space.size(one), space.size(window)) for one, window in pairs]


def _padding(value, sizes: Sequence[tuple[Expr, Expr]], dilations: Sequence[Expr]) -> list[Expr]:
    if value == "valid":
        value = None
    if value == "same":
        wide = [d * (window - 1) for (_, window), d in zip(sizes, dilations, strict=True)]
        if not all((n / 2).is_Integer for n in wide):
            raise Refusal('padding="same" of a window of any size', "write padding=1, or pad first")
        return [n / 2 for n in wide]
    return each(value, len(sizes), 0, "padding")


def _with_bias(space: Space, y: Value, bias: Value | None, count: int) -> Value:
    if bias is None:
        return y
    return added(space, y, relaid(bias, (*bias.dims, *(None,) * count)))


def _forward(space: Space, x: Value, weight: Value, bias, options: tuple, count: int) -> Value:
    stride, padding, dilation, groups = options
    sizes = _dimensions(space, x, weight, count)
    steps, holes = each(stride, count, 1, "stride"), each(dilation, count, 1, "dilation")
    hows = [*zip(steps, _padding(padding, sizes, holes), holes, strict=True)]
    along = []
    for (size, window), how in zip(sizes, hows, strict=True):
        space.need(_length(size, window, how), 1)
        along.append((_length(size, window, how), lambda a, k, how=how: _index(a, k, how)))
    return _with_bias(space, _convolved(space, x, weight, groups, along, False), bias, count)


def _transposed(space: Space, x: Value, weight: Value, bias, options: tuple, count: int) -> Value:
    stride, padding, output_padding, groups, dilation = options
    sizes = _dimensions(space, x, weight, count)
    steps, holes = each(stride, count, 1, "stride"), each(dilation, count, 1, "dilation")
    more = each(output_padding, count, 0, "output_padding")
    hows = [*zip(steps, each(padding, count, 0, "padding"), holes, strict=True)]
    along = []
    for (size, window), how, behind in zip(sizes, hows, more, strict=True):
        step, pad, hole = how
        length = (size - 1) * step - 2 * pad + hole * (window - 1) + behind + 1
        space.need(length, 1)
        along.append((length, lambda a, k, how=how: _back(a, k, how)))
    return _with_bias(space, _convolved(space, x, weight, groups, along, True), bias, count)


def _enter(count: int) -> None:
    """The two for this number of dimensions."""

    @entry(convolutions, f"conv{count}d", forms="torch F")
    def _conv(space: Space, input: Value, weight: Value, bias: Value | None = None, stride=None,
              padding=None, dilation=None, groups=None):  # fmt: skip
        """Long: torch's arguments."""
        options = (stride, padding, dilation, groups)
        return _forward(space, input, weight, bias, options, count)

    @entry(convolutions, f"conv_transpose{count}d", forms="torch F")
    def _conv_transpose(space: Space, input: Value, weight: Value, bias: Value | None = None,
                        stride=None, padding=None, output_padding=None, groups=None,
                        dilation=None):  # fmt: skip
        """Long: torch's arguments."""
        options = (stride, padding, output_padding, groups, dilation)
        return _transposed(space, input, weight, bias, options, count)


for _count in (1, 2, 3):
    _enter(_count)
