"""Interpolation: resize dimensions by reading between entries."""

from __future__ import annotations

from sympy import Integer, Rational, floor

from derive.language.torch_ops.convolutions import rounded_down
from derive.language.torch_ops.formulas import Abs, held
from derive.language.torch_ops.pools import adapted, beside, mean_between
from derive.language.torch_ops.table import FLOAT, Flag, Numbers, Size, Sizes, Tensor, Word, op

HALF = Rational(1, 2)


def nearest(a, x, dim, size, how):
    """Only integer factors: otherwise torch's rounding decides which entry is nearest."""
    in_the_middle, up = how
    down = 1 / up
    if up.is_Integer:
        same = a.windows(x, dim, (size, up), (1 / up, -1 / up, Integer(0)))
        return a.sum(same, x.rank)
    if down.is_Integer:
        start = floor(down / 2) if in_the_middle else Integer(0)
        found = a.windows(x, dim, (size, Integer(1)), (down, Integer(1), start))
        return a.squeezed(found, [x.rank])
    a.refuse(
        f"nearest interpolation of {a.count(x, [dim])} entries to {size}", "use an integer factor"
    )


def linear(a, x, dim, size, how):
    """Linear interpolation of two neighbours; ``how`` is (align_corners, factor)."""
    corners, factor = how
    last = a.count(x, [dim]) - 1
    ratio = last / (size - 1) if corners and size != 1 else Integer(0) if corners else 1 / factor
    at = lambda i: i * ratio if corners else held((i + HALF) * ratio - HALF, 0, last)  # noqa: E731
    x, i, j = beside(a, x, dim, size)
    source = a.let("source", a.each(at, i))
    weight = a.each(lambda s, j: held(1 - Abs(s - j), 0), source, j)
    return a.sum(a.each(lambda x, w: w * x, x, weight), dim + 1)


RESIZED = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,)}
RESIZED |= {"trilinear": (3,)}


def resized(a, input, sizes, factors, mode, corners=False):
    """Resize one dimension at a time, after batch and channels."""
    count, x = input.rank - 2, input
    if count not in RESIZED[mode]:
        a.refuse(f"{mode} of {input.rank} dimensions", "it takes others: see torch's documentation")
    old = [a.count(input, [2 + k]) for k in range(count)]
    factors = None if factors is None else (list(factors) * count)[:count]
    if sizes is None:
        sizes = [rounded_down(n * f) for n, f in zip(old, factors, strict=True)]
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
    if size is None and scale_factor is None:
        a.refuse("interpolation to no size", "write size=, or scale_factor=")
    if mode == "area":
        count = input.rank - 2
        sizes = size or [
            rounded_down(a.count(input, [2 + k]) * f)
            for k, f in enumerate((list(scale_factor) * count)[:count])
        ]
        return adapted(a, input, tuple(sizes), count, mean_between)
    factors = None if recompute_scale_factor or size is not None else scale_factor
    if factors is None and size is None:
        size = [rounded_down(a.count(input, [2 + k]) * f) for k, f in enumerate(scale_factor)]
    return resized(a, input, size, factors, mode, bool(align_corners))


@op("upsample_nearest", forms="F", called="resized", of=FLOAT)
def _upsample_nearest(
    a, input: Tensor, size: Numbers | None = None, scale_factor: Numbers | None = None
):
    return _interpolate(a, input, size, scale_factor)


@op("upsample_bilinear", forms="F", called="resized", of=FLOAT)
def _upsample_bilinear(
    a, input: Tensor, size: Numbers | None = None, scale_factor: Numbers | None = None
):
    return _interpolate(a, input, size, scale_factor, "bilinear", True)


def _enter_resizing(name: str, mode: str, takes_corners: bool):
    if not takes_corners:

        @op(also=name, called="resized", of=FLOAT)
        def _nearest(a, input: Tensor, output_size: Sizes | None = None,
                     scale_factors: Numbers | None = None):  # fmt: skip
            return resized(a, input, output_size, scale_factors, mode)

        return

    @op(also=name, called="resized", of=FLOAT)
    def _linear(a, input: Tensor, output_size: Sizes | None, align_corners: Flag,
                scale_factors: Numbers | None = None):  # fmt: skip
        return resized(a, input, output_size, scale_factors, mode, align_corners)


# Pixel shuffle


@op("pixel_shuffle", forms="torch F", gives="same")
def _pixel_shuffle(a, input: Tensor, upscale_factor: Size):
    """Rearrange channels into a square of positions, row by row."""
    c = input.rank - 3
    x = a.apart(input, c, a.count(input, [c]) / upscale_factor**2)
    x = a.apart(x, c + 1, upscale_factor)
    x = a.permuted(x, [*range(c + 1), c + 3, c + 1, c + 4, c + 2])
    return a.together(a.together(x, c + 3), c + 1)


@op("pixel_unshuffle", forms="torch F", gives="same")
def _pixel_unshuffle(a, input: Tensor, downscale_factor: Size):
    c, r = input.rank - 3, downscale_factor
    x = a.apart(input, c + 1, a.count(input, [c + 1]) / r)
    x = a.apart(x, c + 3, a.count(input, [c + 2]) / r)
    x = a.permuted(x, [*range(c + 1), c + 2, c + 4, c + 1, c + 3])
    return a.together(a.together(x, c), c)


@op("channel_shuffle", forms="torch F", gives="same")
def _channel_shuffle(a, input: Tensor, groups: Size):
    x = a.apart(input, 1, groups)
    return a.together(a.permuted(x, [0, 2, 1, *range(3, x.rank)]), 1)


for _count, _linear_mode in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _enter_resizing(f"upsample_nearest{_count}d", "nearest", False)
    _enter_resizing(f"_upsample_nearest_exact{_count}d", "nearest-exact", False)
    _enter_resizing(f"upsample_{_linear_mode}{_count}d", _linear_mode, True)
