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
LEAST = 1 if INTERPRETED else 16  # of an axis of a matrix product


def _tile_sizes(inner: int, products: int, narrow, chunk: int | None) -> tuple[int, ...]:
    of_axis = SHORT if inner <= SHORT else MEDIUM if inner <= MEDIUM else LONGEST
    is_narrow = narrow in (torch.float16, torch.bfloat16)
    found = SIZES[is_narrow, of_axis, products <= FEW]
    if chunk is None:
        return found
    size = max(LEAST, triton.next_power_of_2(chunk))
    return size, size, *found[2:]


def _run(
    kernel, formats, chunk, own: int, grid: int, inner: tuple, products: int, given, made, numbers
):  # fmt: skip
    """Long: runs a kernel, a program for each tile of ``own`` entries at each place of the
    ``grid``. The arrays that are ``given`` may have any strides; ``numbers`` begin with sizes.
    """
    _, wide, narrow = formats
    if INTERPRETED and narrow == torch.bfloat16:
        narrow = torch.float32  # the interpreter would multiply its bits
    device = given[0].device
    if device.type != ("cpu" if INTERPRETED else "cuda"):
        raise RuntimeError(
            f"{kernel.__name__} runs on a GPU, not on {device}: for torch code that runs anywhere "
            "write the module without --target triton"
        )
    rows, columns, warps, stages = _tile_sizes(max(inner), products, narrow, chunk)
    blocks = [max(LEAST, triton.next_power_of_2(size)) for size in inner]
    dtypes = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}
    dtypes = [dtypes.get(dtype, tl.float64) for dtype in (wide, narrow)]
    exact = "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"
    precision = exact if narrow == torch.float32 else "ieee"
    programs = -(-own // rows) * grid
    if programs:
        strides = [stride for array in given for stride in array.stride()]
        arrays = (*given, *made, *strides, *numbers)
        constants = (*inner, rows, columns, *blocks, *dtypes, precision)
        with torch.cuda.device_of(given[0]):
            kernel[(programs,)](*arrays, *constants, num_warps=warps, num_stages=stages)
