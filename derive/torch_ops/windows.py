"""Windows along dimensions: convolutions, pools, and sizes that are changed by reading between."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Expr, Integer, Rational, ceiling, floor, fraction, prod, together

from derive.torch_ops.formulas import Abs, both, held, where
from derive.torch_ops.norms import behind
from derive.torch_ops.table import FLOAT, Flag, Numbers, Order, Size, Sizes, Tensor, Word, op
from derive.torch_ops.trees import MINUS_INFINITY

PLACES, INSIDE = "opq", "klm"  # letters of the dimensions of windows
HALF = Rational(1, 2)
WHOLE = "write whole numbers"


def each_of(a, value: Sequence | None, count: int, usual: Sequence = ()) -> list[Expr]:
    """A number for each dimension."""
    values = list(value or usual)
    values = values * count if len(values) == 1 else values
    if len(values) != count:
        a.refuse(f"{len(values)} numbers for {count} dimensions", "write one, or one for each")
    if any(n.is_integer is False for n in values):
        a.refuse(f"windows of {', '.join(map(str, values))}", WHOLE)
    return values


def _down(ratio: Expr) -> Expr:
    """Rounded down: what has no divisor is whole, as sizes are."""
    return ratio if fraction(together(ratio))[1] == 1 else floor(ratio)


# Convolutions


def _convolved(a, input, weight, groups, along, transposed: bool):
    """``along`` are, for each dimension behind the channels, the places that come out and the index
    that is read (`Arrays.windows`).
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
        y = a.contracted(
            ["ngc" + places + inside, "g" + own + inside], "ngd" + places, [x, w]
        )
        y = a.together(y, 1)
    return a.squeezed(y, [0]) if single else y


def _windows_of(a, input, weight, count):
    """The sizes of the dimensions behind the channels, and of the windows."""
    if weight.rank != count + 2 or input.rank not in (count + 1, count + 2):
        a.misfit(
            f"a convolution of {input.rank} and {weight.rank} dimensions",
            f"x has {count + 2} dimensions, and so have the weights",
        )
    first = input.rank - count
    return [(a.count(input, [first + k]), a.count(weight, [2 + k])) for k in range(count)]


def _with_bias(a, y, bias, count):
    return y if bias is None else a.each(lambda y, b: y + b, y, behind(a, bias, count))


def _pads(a, padding, windows, holes, count):
    if not isinstance(padding, str):
        return each_of(a, padding, count, (Integer(0),))
    if padding == "valid":
        return [Integer(0)] * count
    pads = [hole * (wide - 1) / 2 for hole, wide in zip(holes, windows, strict=True)]
    if padding != "same" or not all(pad.is_Integer for pad in pads):
        a.refuse(f'padding="{padding}" of such a window', "write padding=1, or pad first")
    return pads


def _enter_convolutions(count: int):
    one, zero = (Integer(1),), (Integer(0),)

    @op(f"conv{count}d", forms="torch F", called="convolved", of=FLOAT)
    def _conv(
        a, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = one,
        padding: Numbers = zero, dilation: Numbers = one, groups: Size = Integer(1),
    ):  # fmt: skip
        steps, holes = each_of(a, stride, count, one), each_of(a, dilation, count, one)
        sizes, along = _windows_of(a, input, weight, count), []
        pads = _pads(a, padding, [wide for _, wide in sizes], holes, count)
        for (size, wide), step, pad, hole in zip(sizes, steps, pads, holes, strict=True):
            span = size + 2 * pad - hole * (wide - 1) - 1
            along.append((_down(span / step) + 1, (step, hole, -pad)))
        return _with_bias(a, _convolved(a, input, weight, groups, along, False), bias, count)

    @op(f"conv_transpose{count}d", forms="torch F", called="convolved", of=FLOAT)
    def _transposed(
        a, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Numbers = one,
        padding: Numbers = zero, output_padding: Numbers = zero, groups: Size = Integer(1),
        dilation: Numbers = one,
    ):  # fmt: skip
        """The way back: what a window would have read is where it is added."""
        steps, holes = each_of(a, stride, count, one), each_of(a, dilation, count, one)
        pads, more = (each_of(a, v, count, zero) for v in (padding, output_padding))
        sizes, along = _windows_of(a, input, weight, count), []
        hows = zip(sizes, steps, pads, holes, more, strict=True)
        for (size, wide), step, pad, hole, late in hows:
            places = (size - 1) * step - 2 * pad + hole * (wide - 1) + late + 1
            along.append((places, (1 / step, -hole / step, pad / step)))
        return _with_bias(a, _convolved(a, input, weight, groups, along, True), bias, count)


# Pools


def _pooled(a, input, shape, ceil_mode, fill):
    """The windows of a pool behind all, and where each begins in its dimension."""
    kernel, steps, pads, holes = shape
    x, count, cut = input, len(kernel), False
    for k, (wide, step, pad, hole) in enumerate(zip(kernel, steps, pads, holes, strict=True)):
        dim = input.rank - count + k
        size = a.count(input, [dim])
        span = (size + 2 * pad - hole * (wide - 1) - 1) / step
        places = _down(span) + 1
        if ceil_mode and places != span + 1:
            if not span.is_number:
                a.refuse("windows that are cut off at the end", "pad first, with F.pad")
            places = ceiling(span) + 1
            places -= 1 if (places - 1) * step >= size + pad else 0
            cut = True
        x = a.windows(x, dim, (places, wide), (step, hole, -pad), fill)
    return x, cut


def _shape(a, kernel_size, stride, padding, dilation, count):
    kernel = each_of(a, kernel_size, count)
    one, zero = (Integer(1),), (Integer(0),)
    steps = each_of(a, stride or kernel, count)
    return kernel, steps, each_of(a, padding, count, zero), each_of(a, dilation, count, one)


def _counts(a, x, input, shape, with_pads):
    """How many entries of each window there are in the dimension, and in its pads if these count."""
    kernel, steps, pads, _ = shape
    count, found = len(kernel), None
    for k, (step, pad) in enumerate(zip(steps, pads, strict=True)):
        size = a.count(input, [input.rank - count + k])
        low, high = (-pad, size + pad) if with_pads else (0, size)
        is_one = lambda i, j, s=step, p=pad, low=low, high=high: where(  # noqa: E731
            both(s * i + j - p >= low, s * i + j - p < high), 1, 0
        )
        place = a.position(x, input.rank - count + k), a.position(x, input.rank + k)
        ones = a.each(is_one, *place)
        found = ones if found is None else a.each(lambda m, n: m * n, found, ones)
    return a.sum(found, tuple(range(found.rank - count, found.rank)))


def _averages(a, input, shape, options):
    ceil_mode, with_pads, divisor = options
    kernel, _, pads, _ = shape
    count = len(kernel)
    x, cut = _pooled(a, input, shape, ceil_mode, 0)
    total = a.sum(x, tuple(range(input.rank, x.rank)))
    if divisor is None and (cut or (any(pads) and not with_pads)):
        counts = _counts(a, x, input, shape, with_pads)
        return a.each(lambda s, n: s / n, total, counts)
    entries = prod(kernel) if divisor is None else divisor
    return a.each(lambda s: s / entries, total)


def _largest(a, input, shape, ceil_mode):
    reaches = ceil_mode or any(shape[2])
    x, _ = _pooled(a, input, shape, ceil_mode, MINUS_INFINITY if reaches else 0)
    return a.largest(x, tuple(range(input.rank, x.rank)))


def _enter_pools(count: int):
    zero, one = (Integer(0),), (Integer(1),)

    @op(f"avg_pool{count}d", forms="torch F" if count == 1 else "F", called="pooled", of=FLOAT)
    def _avg_pool(
        a, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None,
        padding: Numbers = zero, ceil_mode: Flag = False, count_include_pad: Flag = True,
        divisor_override: Size | None = None,
    ):  # fmt: skip
        shape = _shape(a, kernel_size, stride, padding, one, count)
        return _averages(a, input, shape, (ceil_mode, count_include_pad, divisor_override))

    @op(f"max_pool{count}d", forms="torch F", called="pooled", of=FLOAT)
    def _max_pool(
        a, input: Tensor, kernel_size: Numbers, stride: Numbers | None = None,
        padding: Numbers = zero, dilation: Numbers = one, ceil_mode: Flag = False,
    ):  # fmt: skip
        shape = _shape(a, kernel_size, stride, padding, dilation, count)
        return _largest(a, input, shape, ceil_mode)

    @op(f"lp_pool{count}d", forms="F", called="pooled", of=FLOAT)
    def _lp_pool(a, input: Tensor, norm_type: Order, kernel_size: Numbers,
                 stride: Numbers | None = None, ceil_mode: Flag = False):  # fmt: skip
        """Where all is 0 and the order is no even number, torch holds the gradient at 0."""
        shape = _shape(a, kernel_size, stride, zero, one, count)
        x, cut = _pooled(a, input, shape, ceil_mode, 0)
        if cut:
            a.refuse("windows that are cut off at the end", "pad first, with F.pad")
        powers = a.sum(a.each(lambda x: x**norm_type, x), tuple(range(input.rank, x.rank)))
        return a.each(lambda s: held(s, 0) ** (Integer(1) / norm_type), powers)

    @op(f"adaptive_avg_pool{count}d", called="pooled", of=FLOAT,
        forms="torch F" if count == 1 else "F")  # fmt: skip
    def _adaptive_avg_pool(a, input: Tensor, output_size: Sizes):
        return adapted(a, input, output_size, count, _mean_between)

    @op(f"adaptive_max_pool{count}d", called="pooled", of=FLOAT,
        forms="torch F" if count == 1 else "F")  # fmt: skip
    def _adaptive_max_pool(a, input: Tensor, output_size: Sizes):
        return adapted(a, input, output_size, count, _largest_between)


def adapted(a, input, sizes, count: int, between: Callable):
    """Parts as equal as they can be: from floor(i*n/m) to before ceil((i + 1)*n/m)."""
    sizes = sizes * count if len(sizes) == 1 else sizes
    x = input
    for k, size in enumerate(sizes):
        dim = input.rank - count + k
        if size is None or size == a.count(input, [dim]):
            continue
        x = between(a, x, dim, size)
    return x


def _beside(a, x, dim, size):
    """x with so many new places before a dimension, those places, and the ones along it."""
    return a.unsqueezed(x, dim), behind(a, a.counting(size), x.rank - dim), a.position(x, dim)


def _between(a, x, dim, size, fill):
    """(the entries of the parts, their dimension, how many there are in each)"""
    whole = a.count(x, [dim])
    width = whole / size
    if size == 1:
        return x, dim, whole
    if width.is_Integer:
        return a.windows(x, dim, (size, width), (width, Integer(1), Integer(0))), x.rank, width
    inside = lambda i, j: both(i * whole < size * (j + 1), size * j < (i + 1) * whole)  # noqa: E731
    x, i, j = _beside(a, x, dim, size)
    counts = a.sum(a.each(lambda i, j: where(inside(i, j), 1, 0), i, j), 1)
    return a.each(lambda x, i, j: where(inside(i, j), x, fill), x, i, j), dim + 1, counts


def _mean_between(a, x, dim, size):
    parts, along, counts = _between(a, x, dim, size, 0)
    return a.each(lambda s, n: s / n, a.sum(parts, along, keepdim=parts.rank == x.rank), counts)


def _largest_between(a, x, dim, size):
    parts, along, _ = _between(a, x, dim, size, MINUS_INFINITY)
    return a.largest(parts, along, keepdim=parts.rank == x.rank)


# Sizes that are changed


def nearest(a, x, dim, size, how):
    """By a whole factor: else torch's rounding decides which entry is the nearest."""
    in_the_middle, up = how
    down = 1 / up
    if up.is_Integer:
        same = a.windows(x, dim, (size, up), (1 / up, -1 / up, Integer(0)))
        return a.sum(same, x.rank)
    if down.is_Integer:
        start = floor(down / 2) if in_the_middle else Integer(0)
        found = a.windows(x, dim, (size, Integer(1)), (down, Integer(1), start))
        return a.squeezed(found, [x.rank])
    a.refuse(f"the nearest of {a.count(x, [dim])} entries for {size}", "take a whole factor")


def linear(a, x, dim, size, how):
    """Between the two entries beside; ``how`` is (are the corners aligned, the factor)."""
    corners, factor = how
    last = a.count(x, [dim]) - 1
    ratio = last / (size - 1) if corners and size != 1 else Integer(0) if corners else 1 / factor
    at = lambda i: i * ratio if corners else held((i + HALF) * ratio - HALF, 0, last)  # noqa: E731
    x, i, j = _beside(a, x, dim, size)
    weight = a.each(lambda i, j: held(1 - Abs(at(i) - j), 0), i, j)
    return a.sum(a.each(lambda x, w: w * x, x, weight), dim + 1)


RESIZED = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,)}
RESIZED |= {"trilinear": (3,)}


def resized(a, input, sizes, factors, mode, corners=False):
    """Dimension after dimension, behind the first two."""
    count, x = input.rank - 2, input
    if count not in RESIZED[mode]:
        a.refuse(f"{mode} of {input.rank} dimensions", "it takes others: see torch's documentation")
    old = [a.count(input, [2 + k]) for k in range(count)]
    factors = None if factors is None else (list(factors) * count)[:count]
    if sizes is None:
        sizes = [_down(n * f) for n, f in zip(old, factors, strict=True)]
    sizes = (list(sizes) * count)[:count]
    factors = factors or [m / n for m, n in zip(sizes, old, strict=True)]
    for k, (size, factor) in enumerate(zip(sizes, factors, strict=True)):
        if mode.startswith("nearest"):
            x = nearest(a, x, 2 + k, size, (mode == "nearest-exact", factor))
        elif size != old[k]:
            x = linear(a, x, 2 + k, size, (corners, factor))
    return x


@op("interpolate", "upsample", forms="F", called="resized", of=FLOAT)
def _interpolate(
    a, input: Tensor, size: Numbers | None = None, scale_factor: Numbers | None = None,
    mode: Word = "nearest", align_corners: Flag | None = None,
    recompute_scale_factor: Flag | None = None, antialias: Flag = False,
):  # fmt: skip
    if antialias or (mode not in RESIZED and mode != "area"):
        a.refuse(f"interpolation: {mode}", f"supported are area, {', '.join(RESIZED)}")
    if mode == "area":
        count = input.rank - 2
        sizes = size or [
            _down(a.count(input, [2 + k]) * f)
            for k, f in enumerate((list(scale_factor) * count)[:count])
        ]
        return adapted(a, input, tuple(sizes), count, _mean_between)
    factors = None if recompute_scale_factor or size is not None else scale_factor
    if factors is None and size is None:
        size = [_down(a.count(input, [2 + k]) * f) for k, f in enumerate(scale_factor)]
    return resized(a, input, size, factors, mode, bool(align_corners))


def _enter_resizing(name: str, mode: str, takes_corners: bool):
    if not takes_corners:

        @op(name, called="resized", of=FLOAT)
        def _nearest(a, input: Tensor, output_size: Sizes | None = None,
                     scale_factors: Numbers | None = None):  # fmt: skip
            return resized(a, input, output_size, scale_factors, mode)

        return

    @op(name, called="resized", of=FLOAT)
    def _linear(a, input: Tensor, output_size: Sizes | None, align_corners: Flag,
                scale_factors: Numbers | None = None):  # fmt: skip
        return resized(a, input, output_size, scale_factors, mode, align_corners)


for _count, _linear_mode in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _enter_convolutions(_count)
    _enter_pools(_count)
    _enter_resizing(f"upsample_nearest{_count}d", "nearest", False)
    _enter_resizing(f"_upsample_nearest_exact{_count}d", "nearest-exact", False)
    _enter_resizing(f"upsample_{_linear_mode}{_count}d", _linear_mode, True)
