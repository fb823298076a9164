"""Code that modules with kernels of tiles contain: this file is read, and no module imports it."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INTERPRETED = triton.knobs.runtime.interpret  # kernels run in Python on CPU tensors


@triton.jit
def _tile(
    at, i, j, along_i, along_j, rows, columns, CUT_I: tl.constexpr, CUT_J: tl.constexpr,
):  # fmt: skip
    """Long: the entries of an array at the places ``i`` and ``j``; where it is cut, 0 beyond its
    ends.
    """
    at += i.to(tl.int64)[:, None] * along_i + j.to(tl.int64)[None, :] * along_j
    if CUT_I and CUT_J:
        found = tl.load(at, mask=(i < rows)[:, None] & (j < columns)[None, :], other=0)
    elif CUT_I:
        found = tl.load(at, mask=(i < rows)[:, None], other=0)
    elif CUT_J:
        found = tl.load(at, mask=(j < columns)[None, :], other=0)
    else:
        found = tl.load(at)
    return found


@triton.jit
def _row(at, i, along_i, size, CUT: tl.constexpr):
    """The same of a vector."""
    at += i.to(tl.int64) * along_i
    return tl.load(at, mask=i < size, other=0) if CUT else tl.load(at)


@triton.jit
def _store_tile(at, value, i, j, along_i, along_j, rows, columns):
    """Long: stores the entries at the places ``i`` and ``j`` within its ends."""
    at += i.to(tl.int64)[:, None] * along_i + j.to(tl.int64)[None, :] * along_j
    tl.store(at, value.to(at.dtype.element_ty), mask=(i < rows)[:, None] & (j < columns)[None, :])


@triton.jit
def _store_row(at, value, i, along_i, size):
    tl.store(at + i.to(tl.int64) * along_i, value.to(at.dtype.element_ty), mask=i < size)


@triton.jit
def _product(
    found, left, i, left_i, left_d, rows, CUT_I: tl.constexpr, right, j, right_j, right_d, columns,
    CUT_J: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, NARROW: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Long: adds the products of the rows ``i`` of an array and ``j`` of another one, over blocks
    of the axis that both have.
    """
    for first in tl.range(0, SIZE, BLOCK):
        d = first + tl.arange(0, BLOCK)
        a = _tile(left, i, d, left_i, left_d, rows, SIZE, CUT_I, SIZE % BLOCK != 0)
        b = _tile(right, j, d, right_j, right_d, columns, SIZE, CUT_J, SIZE % BLOCK != 0)
        found = tl.dot(a.to(NARROW), tl.trans(b.to(NARROW)), found, input_precision=PRECISION)
    return found


@triton.jit
def _clear(at, ROWS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Set a sum of the program's own to 0."""
    i = tl.arange(0, ROWS)
    for first in tl.range(0, SIZE, BLOCK):
        d = first + tl.arange(0, BLOCK)
        nothing = tl.zeros([ROWS, BLOCK], at.dtype.element_ty)
        _store_tile(at, nothing, i, d, SIZE, 1, ROWS, SIZE)


@triton.jit
def _add_product(
    at, moved, tile, right, j, right_j, right_d, columns, CUT_J: tl.constexpr, SIZE: tl.constexpr,
    BLOCK: tl.constexpr, NARROW: tl.constexpr, PRECISION: tl.constexpr, REAL: tl.constexpr,
):  # fmt: skip
    """Long: adds the product of a tile and the rows ``j`` of an array to a sum of the program's
    own, which is measured from a maximum that ``moved``.
    """
    ROWS: tl.constexpr = tile.shape[0]
    i = tl.arange(0, ROWS)
    tl.debug_barrier()  # other threads may have stored what this one reads
    for first in tl.range(0, SIZE, BLOCK):
        d = first + tl.arange(0, BLOCK)
        b = _tile(right, j, d, right_j, right_d, columns, SIZE, CUT_J, SIZE % BLOCK != 0)
        found = _tile(at, i, d, SIZE, 1, ROWS, SIZE, False, SIZE % BLOCK != 0) * moved
        found = tl.dot(tile, b.to(NARROW), found.to(REAL), input_precision=PRECISION)
        _store_tile(at, found, i, d, SIZE, 1, ROWS, SIZE)


@triton.jit
def _store_sum(
    at, to, i, along_i, along_d, rows, SIZE: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Long: store a sum of the program's own as rows of a result."""
    own = tl.arange(0, ROWS)
    tl.debug_barrier()
    for first in tl.range(0, SIZE, BLOCK):
        d = first + tl.arange(0, BLOCK)
        found = _tile(at, own, d, SIZE, 1, ROWS, SIZE, False, SIZE % BLOCK != 0)
        _store_tile(to, found, i, d, along_i, along_d, rows, SIZE)


def _of_cuda(name: str):
    """A function of CUDA's; on Triton's interpreter that of torch."""
    if not INTERPRETED:
        return getattr(libdevice, name)
    from triton.runtime.interpreter import TensorHandle

    def computed(x):
        found = getattr(torch, name)(torch.as_tensor(x.handle.data)).numpy()
        return tl.tensor(TensorHandle(found, x.dtype), x.type)

    return computed


# By 16 bits or not, the longest axis of the products, and whether these are at most two: entries of
# a tile along the axis that a program owns and along that which it walks over, warps, stages. They
# were chosen by counted registers; none was tuned on a GPU.
SIZES = {
    (True, 64, True): (128, 128, 8, 3),
    (True, 64, False): (128, 64, 8, 3),
    (True, 128, True): (128, 64, 8, 3),
    (True, 128, False): (128, 32, 8, 2),
    (True, 256, True): (64, 64, 8, 2),
    (True, 256, False): (64, 32, 8, 2),
    (False, 64, True): (64, 32, 4, 2),
    (False, 64, False): (32, 32, 4, 2),
    (False, 128, True): (32, 32, 4, 2),
    (False, 128, False): (32, 32, 8, 1),
    (False, 256, True): (32, 32, 8, 1),
    (False, 256, False): (32, 16, 8, 1),
}
SHORT, MEDIUM, LONGEST, FEW = 64, 128, 256, 2  # as above
# Where these axes are read in blocks: by 16 bits or not, and whether sums lie in memory: entries of
# a tile along both axes and in a block, warps, stages.
IN_BLOCKS = {
    (True, False): (128, 128, 64, 8, 3),
    (True, True): (64, 128, 64, 8, 3),
    (False, False): (64, 64, 16, 8, 2),
    (False, True): (64, 64, 16, 8, 2),
}
LEAST = 1 if INTERPRETED else 16  # of an axis of a matrix product


def _tile_sizes(inner: int, products: int, narrow, held, chunk) -> tuple[int, ...]:
    """Entries along both axes and in a block of the others, warps, stages."""
    is_long = held is not None
    of_axis = SHORT if inner <= SHORT else MEDIUM if inner <= MEDIUM else LONGEST
    is_narrow = narrow in (torch.float16, torch.bfloat16)
    rows, columns, *how = SIZES[is_narrow, of_axis, products <= FEW]
    found = IN_BLOCKS[is_narrow, bool(held)] if is_long else (rows, columns, inner, *how)
    if chunk is None:
        return found
    size = max(LEAST, triton.next_power_of_2(chunk))
    return size, size, min(size, found[2]) if is_long else inner, *found[3:]


def _at_once(device) -> int:
    """Programs at the same time whose sums lie in memory: a GPU runs one on each multiprocessor."""
    return 2 if INTERPRETED else torch.cuda.get_device_properties(device).multi_processor_count


def _check_runs_on(device, name: str):
    if device.type != ("cpu" if INTERPRETED else "cuda"):
        raise RuntimeError(
            f"{name} runs on a GPU, not on {device}: for torch code that runs anywhere write the "
            "module without --target triton"
        )


def _run(
    kernel, formats, chunk, own: int, grid: int, inner: tuple, products: int, given, made, numbers,
    held=None,
):  # fmt: skip
    """Long: runs a kernel, a program for each tile of ``own`` entries at each place of the
    ``grid``. The arrays that are ``given`` may have any strides; ``numbers`` begin with sizes.
    Where the ``inner`` axes are long, ``held`` are the results that are added up in memory, each
    with its length.
    """
    _, wide, narrow = formats
    if INTERPRETED and narrow == torch.bfloat16:
        narrow = torch.float32  # the interpreter would multiply its bits
    device = given[0].device
    _check_runs_on(device, kernel.__name__)
    sizes = _tile_sizes(max(inner), products, narrow, held, chunk)
    rows, columns, block, warps, stages = sizes
    blocks = [max(LEAST, triton.next_power_of_2(min(size, block))) for size in inner]
    dtypes = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}
    dtypes = [dtypes.get(dtype, tl.float64) for dtype in (wide, narrow)]
    exact = "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
    precision = exact if narrow == torch.float32 else "ieee"
    programs = -(-own // rows) * grid
    count = min(programs, _at_once(device)) if held else programs
    sums = [
        None if to is None else to.new_empty((count, rows, size), dtype=wide)
        for to, size in held or ()
    ]
    strides = [stride for array in given for stride in array.stride()]
    constants = (*inner, rows, columns, *blocks, *dtypes, precision)
    for first in range(0, programs, count or 1):
        own = (*sums, first) if held else ()
        arrays = (*given, *made, *own, *strides, *numbers)
        with torch.cuda.device_of(given[0]):
            few = min(count, programs - first)
            kernel[(few,)](*arrays, *constants, num_warps=warps, num_stages=stages)
