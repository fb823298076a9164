"""Convolutions (sums of windows times weights), and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Integer, floor, fraction, together

from derive.language.torch_ops.norms import behind
from derive.language.torch_ops.table import FLOAT, Numbers, Size, Tensor, Word, op

PLACES, INSIDE = "opq", "klm"  # letters of the dimensions of windows
ZERO, ONE = (Integer(0),), (Integer(1),)


def each_of(a, value: Sequence | None, count: int, usual: Sequence = ONE) -> list[Expr]:
    """One number for each dimension; ``usual`` supplies the default."""
    values = list(value or usual)
    values = values * count if len(values) == 1 else values
    if len(values) != count:
        a.refuse(f"{len(values)} numbers for {count} dimensions", "write one, or one for each")
    if any(n.is_integer is False or (n.is_zero and usual == ONE) for n in values):
        a.refuse(f"windows of {', '.join(map(str, values))}", "write whole numbers")
    return values


def rounded_down(ratio: Expr) -> Expr:
    """floor(ratio); an expression without a denominator is already an integer."""
    return ratio if fraction(together(ratio))[1] == 1 else floor(ratio)


def _convolved(a, input, weight, groups, along, transposed: bool):
    """``along`` gives, for each dimension behind the channels, the output positions and the index
    to read (`Arrays.windows`).
    """
    count = len(along)
    single = input.rank == count + 1
    x = a.unsqueezed(input, 0) if single else input
    channels = a.count(x, [1])
    for k, (places, index) in enumerate(along):
        x = a.windows(x, 2 + k, (places, a.count(weight, [2 + k])), index)
    places, inside = PLACES[:count], INSIDE[:count]
    own = "cd" if transposed else "dc"
    if groups == 1:
        y = a.contracted(["nc" + places + inside, own + inside], "nd" + places, [x, weight])
    elif groups == channels and a.count(weight, [1]) == 1 and a.count(weight, [0]) == channels:
        y = a.contracted(["nc" + places + inside, "cd" + inside], "nc" + places, [x, weight])
    else:
        x, w = a.apart(x, 1, groups), a.apart(weight, 0, groups)
        y = a.contracted(["ngc" + places + inside, "g" + own + inside], "ngd" + places, [x, w])
        y = a.together(y, 1)
    return a.squeezed(y, [0]) if single else y


def _windows_of(a, input, weight, count):
    """The spatial sizes, and the sizes of the windows."""
    if weight.rank != count + 2 or input.rank not in (count + 1, count + 2):
        a.misfit(
            f"a convolution of {input.rank} and {weight.rank} dimensions",
            f"x has {count + 2} dimensions, and so have the weights",
        )
    first = input.rank - count
    return [(a.count(input, [first + k]), a.count(weight, [2 + k])) for k in range(count)]


def _with_bias(a, y, bias, count):
    return y if bias is None else a.each(lambda y, b: y + b, y, behind(a, bias, count))


def _pads(a, padding, windows, how, count):
    if not isinstance(padding, str):
        return each_of(a, padding, count, ZERO)
    if padding == "valid":
        return [Integer(0)] * count
    steps, holes = how
    if padding == "same" and any(step != 1 for step in steps):
        a.refuse('padding="same" with a stride', "pad first, with F.pad")
    pads = [hole * (wide - 1) / 2 for hole, wide in zip(holes, windows, strict=True)]
    if padding != "same" or not all(pad.is_Integer for pad in pads):
        a.refuse("padding that depends on the size of the window", "write padding=1, or pad first")
    return pads


def _enter_convolutions(count: int):
    @op(f"conv{count}d", forms="torch F", called="convolved", of=FLOAT)
    def _conv(
        a, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = ONE,
        padding: Numbers | Word = ZERO, dilation: Numbers = ONE, groups: Size = 1,
    ):  # fmt: skip
        steps, holes = each_of(a, stride, count, ONE), each_of(a, dilation, count, ONE)
        sizes, along = _windows_of(a, input, weight, count), []
        pads = _pads(a, padding, [wide for _, wide in sizes], (steps, holes), count)
        for (size, wide), step, pad, hole in zip(sizes, steps, pads, holes, strict=True):
            span = size + 2 * pad - hole * (wide - 1) - 1
            along.append((rounded_down(span / step) + 1, (step, hole, -pad)))
        return _with_bias(a, _convolved(a, input, weight, groups, along, False), bias, count)

    @op(f"conv_transpose{count}d", forms="torch F", called="convolved", of=FLOAT)
    def _transposed(
        a, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = ONE,
        padding: Numbers = ZERO, output_padding: Numbers = ZERO, groups: Size = 1,
        dilation: Numbers = ONE,
    ):  # fmt: skip
        """The transpose of a convolution: add each value where the window would have read."""
        steps, holes = each_of(a, stride, count, ONE), each_of(a, dilation, count, ONE)
        pads, more = (each_of(a, v, count, ZERO) for v in (padding, output_padding))
        sizes, along = _windows_of(a, input, weight, count), []
        hows = zip(sizes, steps, pads, holes, more, strict=True)
        for (size, wide), step, pad, hole, late in hows:
            places = (size - 1) * step - 2 * pad + hole * (wide - 1) + late + 1
            along.append((places, (1 / step, -hole / step, pad / step)))
        return _with_bias(a, _convolved(a, input, weight, groups, along, True), bias, count)


for _count in (1, 2, 3):
    _enter_convolutions(_count)
