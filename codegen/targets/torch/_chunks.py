"""Code that modules in chunks contain: this file is read, and no module imports it. A
`Chunk` has those methods of a `Part` that the lines call.
"""

import torch

from ._ranks import Part


class Chunk(Part):
    """``length`` entries of an axis from ``start``, of ``size`` in total."""

    room, fewest = 2**26, 64  # bytes of what a chunk makes; rows, where products are still fast

    def __init__(self, start, length, size, device, index):
        self.start, self.length, self.size, self.device = start, length, size, device
        self.index = index
        self.here = slice(start, start + length)


def chunks(size: int, entries: int, like, chunk: int | None, reverse=False):
    """The chunks of an axis, of the length ``chunk``. If that is None, as many rows as there is
    room for where ``entries`` are alive for each, and as long as each other. In ``reverse`` the
    last one is first.
    """
    if chunk is None:
        if torch.autograd.forward_ad._current_level >= 0:
            entries *= 4  # a tangent for each, and what that is made of
        chunk = max(Chunk.fewest, Chunk.room // max(entries * like.element_size(), 1))
        chunk = -(-size // max(-(-size // chunk), 1)) or 1
    starts = [*enumerate(range(0, max(size, 1), chunk))]
    for i, start in reversed(starts) if reverse else starts:
        yield Chunk(start, min(chunk, size - start), size, like.device, i)


def looked_up(index, size: int):
    """The index itself, looked up among ``size`` places: torch refuses one that is not there, on
    every device.
    """
    places = torch.arange(size, device=index.device)
    return places.gather(0, index.reshape(-1)).view(index.shape)


def rows_near(over, before: int, after: int) -> tuple[int, int]:
    """The first row and the end of those of a chunk, with ``before`` and ``after`` more that there
    are.
    """
    first, end = over.start - before, over.start + over.length + after
    return min(max(first, 0), over.size), min(max(end, 0), over.size)


def near(over, tensor, along: int, before: int, after: int):
    """The rows of a chunk, with ``before`` and ``after`` more that there are."""
    first, end = rows_near(over, before, after)
    return tensor.narrow(along, first, max(end - first, 0))


def filled(over, tensor, along: int, around: tuple, further: tuple, fill: float):
    """The rows ``around`` those of a chunk, and further ones, of a ``tensor`` that has those that
    there are; the others are the ``fill``.
    """
    first, end = rows_near(over, *around)
    first, end = first - further[0], max(end + further[1], first - further[0])
    start = rows_near(over, around[0] + further[0], around[1] + further[1])[0]
    here = slice(max(first - start, 0), max(end - start, 0))
    tensor = tensor[(slice(None),) * along + (here,)]
    before = min(max(start - first, 0), end - first)
    after = end - first - before - tensor.shape[along]
    sizes = (0, 0) * (tensor.dim() - 1 - along)
    return torch.nn.functional.pad(tensor, (*sizes, before, after), value=fill)


def formats(*tensors) -> tuple:
    """The dtype of the results, that of sums, and that of matrix products: of 16 bits where all
    tensors are, or where autocast says so.
    """
    dtypes = [tensor.dtype for tensor in tensors]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = torch.promote_types(dtype, other)
    narrow, device = dtype, tensors[0].device.type
    if dtype != torch.float64 and device != "meta" and torch.is_autocast_enabled(device):
        narrow = torch.get_autocast_dtype(device)
    return dtype, torch.promote_types(dtype, torch.float32), narrow


def add_product(total, left, right):
    """Add a matrix product to ``total``, in place."""
    if left.dtype != total.dtype or total.dim() not in (2, 3):
        total += left @ right
    elif total.dim() == 2:
        total.addmm_(left, right)
    else:
        total.baddbmm_(left, right)


def largest_of(tensor, along, keep):
    """The maximum along dimensions; minus infinity for an empty one."""
    along = (along,) if isinstance(along, int) else along
    if tensor.numel() or all(tensor.shape[i] for i in along):
        return tensor.amax(along, keepdim=keep)
    kept = [1 if i in along else n for i, n in enumerate(tensor.shape)]
    shape = kept if keep else [n for i, n in enumerate(tensor.shape) if i not in along]
    return tensor.new_full(shape, -torch.inf)


def first_largest(top, place, tensor, along, start):
    """The largest so far and its first place, with those of a chunk from ``start`` on: of two that
    are as large, the place is the smaller one, in whatever order chunks come.
    """
    if not tensor.shape[along]:
        return top, place
    own = tensor.argmax(along)
    value, own = tensor.gather(along, own.unsqueeze(along)).squeeze(along), own + start
    alike = (value == top) | (value.isnan() & top.isnan())
    other = (value > top) | (value.isnan() & ~top.isnan()) | (alike & (own < place))
    return value.where(other, top), own.where(other, place)
