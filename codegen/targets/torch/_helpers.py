"""Helper functions that are copied into the modules whose lines call them; no module imports this
file.
"""

import math

import torch
from torch import Tensor


def by_lines() -> bool:
    """Whether torch differentiates the lines: in forward mode, or in a compiled transform."""
    if torch.compiler.is_compiling():
        return torch._C._are_functorch_transforms_active()
    return torch.autograd.forward_ad._current_level >= 0


def refuse_lines(said: str) -> None:
    """Refuse to be differentiated by lines, which could be differentiated again."""
    if by_lines():
        raise NotImplementedError(said)


def in_range(said: str, index: Tensor, *lengths: int) -> None:
    """Refuse an index that is in no row; not on a GPU, which would wait, nor of a traced tensor."""
    is_traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if is_traced or type(index) is not Tensor or index.device.type != "cpu" or not index.numel():
        return
    low, high = index.aminmax()
    if low < 0 or high >= min(lengths):
        wrong = int(low if low < 0 else high)
        raise IndexError(f"{said} holds {wrong}, not in 0 .. {min(lengths) - 1}")


def logcumsumexp(tensor: Tensor, along: int) -> Tensor:
    """torch.logcumsumexp; in forward mode torch's loses entries far below the maximum, so there it
    is a recurrence relative to the running maximum.
    """
    if not by_lines():
        return tensor.logcumsumexp(along)
    most = torch.finfo(tensor.dtype).max
    largest = tensor.detach().cummax(along).values.clamp(-most, most)
    steps = torch.exp(stepped(largest, along, -math.inf) - largest)
    return largest + torch.log(scanned(steps, torch.exp(tensor - largest), along))


def solve(matrix: Tensor, right: Tensor, left: bool = True) -> Tensor:
    """torch.linalg.solve; in forward mode by the LU factors, which torch treats as
    constants there.
    """
    if not by_lines():
        return torch.linalg.solve(matrix, right, left=left)
    factors, pivots = torch.linalg.lu_factor(matrix)
    if right.dim() < matrix.dim():
        return torch.linalg.lu_solve(factors, pivots, right.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.lu_solve(factors, pivots, right, left=left)


def logdet(matrix: Tensor) -> Tensor:
    """The log-determinant, by torch.linalg.slogdet; in forward mode by the LU factors, which torch
    treats as constants there.
    """
    if not by_lines():
        return torch.linalg.slogdet(matrix).logabsdet
    return torch.linalg.lu_factor(matrix).LU.diagonal(0, -2, -1).abs().log().sum(-1)


def index_added(tensor: Tensor, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with the rows of ``source`` added."""
    return tensor.index_add(0, index, source)


def once(said: str, gradients: tuple, of: tuple) -> tuple:
    """Gradients that raise if differentiated with respect to the tensors ``of``."""
    if not torch.is_grad_enabled():
        return gradients

    class Once(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*tensors):
            return tuple(t if t is None else t.clone() for t in tensors[: len(gradients)])

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, *_):
            raise NotImplementedError(said)

    return Once.apply(*gradients, *of)


def one_hot(index: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """torch.nn.functional.one_hot by comparison, which vmap supports in a backward."""
    return (index.unsqueeze(-1) == torch.arange(count, device=index.device)).to(dtype)


def uncast(tensor: Tensor) -> torch.autocast:
    """A context without autocast, which would change the dtype of matrix products; a meta tensor
    gets that of the CPU, without effect.
    """
    return torch.autocast("cpu" if tensor.is_meta else tensor.device.type, enabled=False)


def spread(said: str, tensor: Tensor, shape: tuple) -> Tensor:
    """``tensor`` broadcast to a shape. Raises ValueError if it does not fit."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{said}, got {type(tensor).__name__}")
    pairs = zip(tensor.shape[::-1], shape[::-1], strict=False)
    if tensor.dim() > len(shape) or any(own not in (1, size) for own, size in pairs):
        raise ValueError(f"{said}, got {tuple(tensor.shape)}")
    return tensor.expand(shape)


def sqrt(square: Tensor) -> Tensor:
    """torch.sqrt; while autograd records, 1 in place of 0, whose gradient is unused."""
    if not torch.is_grad_enabled():
        return torch.sqrt(square)
    return torch.where(square == 0, 0, torch.sqrt(torch.where(square == 0, 1, square)))


def flatten(tensor: Tensor, first: int, last: int) -> Tensor:
    """torch.flatten by reshape, which has a rule for is_grads_batched."""
    before, along, after = (
        tensor.shape[:first],
        tensor.shape[first : last + 1],
        tensor.shape[last + 1 :],
    )
    return tensor.reshape(*before, math.prod(along), *after)


def unflatten(tensor: Tensor, along: int, sizes: tuple) -> Tensor:
    """torch.unflatten by reshape, which has a rule for is_grads_batched."""
    return tensor.reshape(*tensor.shape[:along], *sizes, *tensor.shape[along + 1 :])


def einsum(equation: str, *tensors: Tensor) -> Tensor:
    """torch.einsum by what it is made of, which has rules for is_grads_batched."""
    if torch.compiler.is_compiling():
        return torch.einsum(equation, *tensors)
    return torch.ops.aten.einsum.default.decompose(equation, tensors)


def added_on_diagonal(tensor: Tensor, first: int, second: int, source) -> Tensor:
    """``tensor`` with ``source`` added on its diagonal."""
    diagonal = tensor.diagonal(0, first, second)
    return tensor.diagonal_scatter(diagonal + source, 0, first, second)


def segment_max(source: Tensor, index: Tensor, size: int) -> Tensor:
    """The largest of the rows with each index; minus infinity for an index without rows."""
    index = index.reshape(-1, *[1] * (source.dim() - 1)).expand_as(source)
    empty = source.new_full((size, *source.shape[1:]), -math.inf)
    return empty.scatter_reduce(0, index, source, "amax")


def segment_argmax(source: Tensor, index: Tensor, size: int) -> Tensor:
    """The index of the first of the largest rows with each index; 0 for an index without rows."""
    count = source.shape[0]
    largest = segment_max(source, index, size)[index]
    rows = torch.arange(count, device=source.device).reshape(-1, *[1] * (source.dim() - 1))
    first = torch.where((source == largest) | source.isnan(), rows, count)
    index = index.reshape(rows.shape).expand_as(first)
    empty = first.new_zeros(size, *first.shape[1:])
    return empty.scatter_reduce(0, index, first, "amin", include_self=False)


def with_diagonal(tensor: Tensor, first: int, second: int, number: float) -> Tensor:
    """A copy of ``tensor`` with a number everywhere on its diagonal."""
    diagonal = torch.full_like(tensor.diagonal(0, first, second), number)
    return tensor.diagonal_scatter(diagonal, 0, first, second)


def stepped(tensor: Tensor, along: int, initial=0.0, reverse: bool = False) -> Tensor:
    """The previous entry along a dimension, ``initial`` for the first; with ``reverse`` the next
    entry, 0 for the last.
    """
    count = tensor.shape[along]
    if count == 0:
        return tensor
    initial = torch.zeros_like(tensor.narrow(along, 0, 1)) + initial
    if reverse:
        return torch.cat([tensor.narrow(along, 1, count - 1), initial], along)
    return torch.cat([initial, tensor.narrow(along, 0, count - 1)], along)


def scanned(factor, term: Tensor, along: int, initial=0.0, reverse: bool = False) -> Tensor:
    """h[t] = factor[t]*h[t-1] + term[t] along a dimension, with ``initial`` before it; with
    ``reverse`` from the end: h[t] = factor[t]*h[t+1] + term[t].

    The row is cut into about as many parts as each has entries; all parts go on at the same time,
    and then the last states of the parts are carried over.
    """
    count = term.shape[along]
    if count == 0:
        return term
    initial = (torch.zeros_like(term.narrow(along, 0, 1)) + initial).select(along, 0)
    factor = (torch.zeros_like(term) + factor).movedim(along, 0)
    term = term.movedim(along, 0)
    if reverse:
        factor, term = factor.flip(0), term.flip(0)
    length = int(math.sqrt(count - 1)) + 1  # not isqrt, which torch.compile does not trace
    parts = -(-count // length)
    padding = torch.zeros_like(term[:1]).expand(parts * length - count, *term.shape[1:])
    cut = (parts, length, *term.shape[1:])
    factor, term = (torch.cat([t, padding]).reshape(cut) for t in (factor, term))
    states = [term[:, 0]]
    for a, b in zip(factor.unbind(1)[1:], term.unbind(1)[1:], strict=True):
        states.append(a * states[-1] + b)
    states, products = torch.stack(states, 1), factor.cumprod(1)
    carried = [initial]
    for product, state in zip(products[:-1, -1], states[:-1, -1], strict=True):
        carried.append(product * carried[-1] + state)
    states = states + products * torch.stack(carried).unsqueeze(1)
    states = states.reshape(parts * length, *cut[2:])[:count]
    return (states.flip(0) if reverse else states).movedim(0, along)


def peak(tensor: Tensor, along, added: bool = False, keepdim: bool = True) -> Tensor:
    """The largest entry along dimensions, by which exponentials are shifted; 0 where that is
    minus infinity, or there is no entry.

    Where it is infinity, a row has no shares: +oo - +oo is no number. Where it is ``added`` again,
    as to the logarithm of a sum, it is 0 there, too: the sum is infinite by itself.
    """
    if tensor.numel() == 0:  # torch has no largest of nothing
        return tensor.sum(along, keepdim=keepdim)
    largest = tensor.amax(along, keepdim=keepdim)
    return largest.nan_to_num(math.nan, 0.0 if added else math.inf, 0.0)


def padded(tensor: Tensor, along: int, before: int, after: int, fill: float = 0.0) -> Tensor:
    """``tensor`` with as many more entries ``fill`` at the ends of a dimension; fewer entries where
    they are less than 0.
    """
    length = tensor.shape[along]
    start, stop = min(max(-before, 0), length), length - min(max(-after, 0), length)
    kept = tensor.narrow(along, start, max(stop - start, 0))
    whole = length + before + after  # what is cut off may be more than there is
    before = min(max(before, 0), whole)
    places = (0, 0) * (tensor.dim() - 1 - along)
    ends = (before, whole - before - kept.shape[along])
    return torch.nn.functional.pad(kept, (*places, *ends), value=fill)


def spaced(tensor: Tensor, along: int, step: int) -> Tensor:
    """``tensor`` with zeros after every entry along a dimension: ``step`` entries for each."""
    places = (0, 0) * (tensor.dim() - 1 - along)
    apart = torch.nn.functional.pad(tensor.unsqueeze(along + 1), (*places, 0, step - 1))
    return apart.flatten(along, along + 1)


def overlapped(
    tensor: Tensor, along: int, step: int, spacing: int, offset: int, length: int
) -> Tensor:
    """The last dimension added up along another: entry k of row n at place
    ``step*n + spacing*k + offset`` of ``length``. What lies outside is left out.
    """
    count, entries = tensor.shape[along], tensor.shape[-1]
    low, extent = extent_of(count, entries, step, spacing)
    shape = list(tensor.shape[:-1])
    shape[along] = extent
    total = tensor.new_zeros(shape)
    for k in range(entries if count else 0):
        first = spacing * k - low
        rows = total.narrow(along, first, step * (count - 1) + 1)
        rows[(slice(None),) * along + (slice(None, None, step),)].add_(tensor.select(-1, k))
    return padded(total, along, low + offset, length - low - offset - extent)


def placed(tensor: Tensor, label: Tensor, *lines: tuple[int, ...]) -> Tensor:
    """``tensor`` added up where its entries lie. A line ``(along, entries, step, spacing, offset,
    length)`` says it for a dimension: entry k of row n at ``step*n + spacing*k + offset`` of
    ``length``. What lies outside is left out. ``label`` is k, counted along all lines.
    """
    dims = [line[0] for line in lines]
    rest, inside, place, count = label, True, 0, 1
    for along, entries, step, spacing, offset, length in reversed(lines):
        rows = torch.arange(tensor.shape[along], device=tensor.device)
        rows = rows.view(-1, *[1] * (tensor.dim() - 1 - along))
        at = step * rows + spacing * (rest % entries) + offset
        inside, rest = inside & (at >= 0) & (at < length), rest // entries
        place, count = place + count * at, count * length
    index, source = torch.where(inside, place, 0), torch.where(inside, tensor, 0.0)
    last = range(-len(dims), 0)
    index, source = (t.expand(tensor.shape).movedim(dims, [*last]) for t in (index, source))
    index, source = index.flatten(-len(dims)), source.flatten(-len(dims))
    total = source.new_zeros((*source.shape[:-1], count)).scatter_add(-1, index, source)
    return total.unflatten(-1, [line[-1] for line in lines]).movedim([*last], dims)


def extent_of(count: int, entries: int, step: int, spacing: int) -> tuple[int, int]:
    """The first place of windows that begin at 0, and how far it is from there to the last."""
    low = min(0, spacing * (entries - 1))
    extent = step * (count - 1) + abs(spacing) * (entries - 1) + 1
    return low, extent if count and entries else 0


def entries_at(
    tensor: Tensor,
    along: int,
    places: tuple[int | None, ...],
    index: Tensor,
    divisor: int = 1,
    fill: float = 0.0,
) -> Tensor:
    """``tensor`` at an index along a dimension, over ``divisor``, and ``fill`` where that is the
    index of no entry. ``places`` are for each dimension of the result that of ``tensor``.
    """
    rest = [i for i in places if i is not None]
    row = tensor.permute(*rest, along)
    row = row[tuple(slice(None) if i is not None else None for i in places)]
    length = tensor.shape[along]
    there = (index >= 0) & (index < length * divisor) & (index % divisor == 0)
    shape = torch.broadcast_shapes(row.shape[:-1], index.shape)
    index = torch.where(there, index // divisor, 0).expand(shape)
    found = row.expand(*shape, length).gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return torch.where(there, found, fill)
