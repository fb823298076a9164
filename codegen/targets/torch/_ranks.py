"""Shared code of modules that compute an axis in parts on the ranks of a group.

This file is copied next to the generated modules. The methods of `Ranks` are collectives.
"""

from __future__ import annotations

import math
import sys
import types
import zlib

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor


class Part:
    """A part of an axis: ``length`` entries from the index ``start``, of ``size`` in total."""

    def part(self, tensor, along):
        """This part of a complete tensor."""
        times = tensor.shape[along] // self.size if self.size else 0
        return tensor.narrow(along, self.start * times, self.length * times)

    def positions(self):
        return torch.arange(self.start, self.start + self.length, device=self.device)

    def one_hot(self, index):
        return index.unsqueeze(-1) == self.positions()

    def picked(self, tensor, along, index):
        """The entry of each row; 0 if it belongs to another part."""
        if not isinstance(index, Tensor):
            rest = (*tensor.shape[:along], *tensor.shape[along + 1 :])
            index = torch.full(rest, index, device=self.device)
        if not self.length:
            return tensor.sum(along)
        place, here = self._own(index)
        entries = tensor.gather(along, place.unsqueeze(along)).squeeze(along)
        return torch.where(here, entries, 0)

    def rows(self, table, index):
        """The rows of a table; 0 where they belong to another part."""
        if not self.length:
            return table.new_zeros((*index.shape, *table.shape[1:]))
        place, here = self._own(index)
        here = here.reshape(here.shape + (1,) * (table.dim() - 1))
        return torch.where(here, table[place], 0)

    def added(self, tensor, along, index, source):
        """``tensor`` with ``source`` added in each row, if the entry belongs to this part."""
        if not self.length:
            return tensor
        if not isinstance(index, Tensor):
            index = torch.full(source.shape, index, device=self.device)
        index, source = torch.broadcast_tensors(index, source)
        place, here = self._own(index)
        source = torch.where(here, source, 0).unsqueeze(along)
        return tensor.scatter_add_(along, place.unsqueeze(along), source)

    def rows_added(self, index, source, length, *rest):
        """Zeros, plus the rows of ``source`` that belong to this part."""
        index, source = index.reshape(-1), source.reshape(-1, *rest) if rest else source.reshape(-1)
        table = source.new_zeros((length, *rest))
        if length:
            place, here = self._own(index)
            here = here.reshape(here.shape + (1,) * len(rest))
            table.index_add_(0, place, torch.where(here, source, 0))
        return table

    def _own(self, index):
        """The local index, and whether it is in this part."""
        place = index - self.start
        return place.clamp(0, self.length - 1), (place >= 0) & (place < self.length)


def mean_of(tensor, along):
    """The mean along dimensions, which are kept with size 1; 0 for an empty one."""
    total = tensor.sum(along, keepdim=True)
    return total / max(tensor.numel() // max(total.numel(), 1), 1)


def largest_of(tensor, along, keep):
    """The maximum along dimensions; minus infinity for an empty one."""
    along = (along,) if isinstance(along, int) else along
    if tensor.numel() or all(tensor.shape[i] for i in along):
        return tensor.amax(along, keepdim=keep)
    kept = [1 if i in along else n for i, n in enumerate(tensor.shape)]
    shape = kept if keep else [n for i, n in enumerate(tensor.shape) if i not in along]
    return tensor.new_full(shape, -math.inf)


class Ranks(Part):
    """The ranks of a group, as one of them sees them during one call.

    The first collective gathers a packet of fixed size from each rank: whether it failed, the
    length of its part, digests of what must be identical on all ranks, and the data itself if it is
    small. So ranks that disagree raise an error, and none waits for one that raised.
    """

    HEAD = 40  # bytes
    WORD = 8  # bytes, of which a packet is a multiple
    ROOM = 262144  # bytes of data in the first packets of all ranks together
    FEW = 3  # ranks, up to which gathering costs no more than two reductions

    def __init__(self, where, group=None, meets=True):
        if not dist.is_initialized():
            raise RuntimeError(
                f"{where}: there is no process group:"
                " call torch.distributed.init_process_group first"
            )
        if isinstance(group, tuple):  # a mesh, and the name or number of a dimension
            group = group[0].get_group(group[1])
        elif hasattr(group, "get_group"):
            group = group.get_group()
        self.where, self.group, self.meets = where, group, meets
        self.rank, self.count = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError(f"{where}: this process is not in the group")
        self.device = torch.device("cuda") if dist.get_backend(group) == "nccl" else None
        self.lengths, self.alike, self.agreed = None, {}, False
        self.wanted = False

    def begin(self, like, length, /, **alike):
        """This rank's part has ``length`` entries; ``alike`` must be identical on all ranks,
        tensors bitwise.
        """
        if self.meets and self.count > 1 and like.device.type == "meta":
            raise ValueError(f"{self.where}: a meta tensor has no data to communicate")
        self.device, self.length = like.device, length
        self.alike, self.recorded = alike, torch.is_grad_enabled()
        if self.count == 1:
            self.lengths = [length]
        elif self.meets and not self.agreed and torch.compiler.is_compiling():
            self._even()

    def differentiated(self, *inputs):
        """The backward waits for all ranks: so all must need it, or none."""
        wanted = any(t.requires_grad for t in inputs if t is not None)
        self.wanted = wanted and torch.is_grad_enabled()

    def again(self, where, meets):
        """The same ranks, for the backward of a call, which needs no more checks."""
        other = Ranks(where, self.group, meets)
        other.device, other.length, other.lengths = self.device, self.length, self.lengths
        other.agreed = True
        return other

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if not self.meets or self.agreed or self.count == 1:
            return
        if error is None:  # the others may have sent something: all take part, or none
            self._first(None)()
        elif isinstance(error, Exception):
            self.agreed = True
            self._packets(torch.tensor([1, 0, 0, 0, 0]).view(torch.uint8))()
            self._told(f"{type(error).__name__}: {error}")

    @property
    def size(self):
        """The total length of all parts."""
        self.agree()
        return sum(self.lengths)

    @property
    def start(self):
        """Where this rank's part begins."""
        self.agree()
        return sum(self.lengths[: self.rank])

    def agree(self):
        if self.lengths is None:
            self._first(None)()

    def beside(self, length):
        """The same ranks, for another axis, of which this rank's part has ``length`` entries. They
        are to `meet` again, and raise until then what one of them raises.
        """
        if self.count > 1 and torch.compiler.is_compiling():
            raise NotImplementedError(f"{self.where}: a ring is not compiled")
        self.other = other = Ranks(self.where, self.group, self.meets)
        lengths = self._all(torch.tensor([length], device=self.device))
        other.device, other.length, other.lengths = self.device, length, lengths[:, 0].tolist()
        other.agreed, self.agreed = True, False
        return other

    def meet(self):
        """Raise if another rank has raised."""
        if not self.agreed and self.count > 1:
            self._first(None)()

    def ring(self, chunks, visiting, sums):
        """The `Visit`s of all parts, this rank's own first, in the ``chunks`` that a length has.
        Ranks pass on what is ``visiting``, and the ``sums``, to which each of them adds: tensors by
        name, with their dimension along the axis. In the end the sums are home again.
        """
        along = {name: place for name, (_, place) in (*visiting.items(), *sums.items())}
        here, own = ({n: t for n, (t, _) in given.items()} for given in (visiting, sums))
        own = {name: tensor for name, tensor in own.items() if tensor is not None}
        arrived = lambda: own  # noqa: E731
        for step in range(self.count):
            owner = (self.rank - step) % self.count
            start, goes_on = sum(self.lengths[:owner]), step + 1 < self.count
            following = self.begin_passing(here, along, owner - 1) if goes_on else None
            sums = Sums(arrived)
            for chunk in chunks(self.lengths[owner]) if self.lengths[owner] else ():
                yield Visit(self, start, chunk, along, here, sums)
            if self.count > 1:
                arrived = self.begin_passing(sums.all, along, owner - 1, len(here))
            here = following() if goes_on else {}
        for name, total in arrived().items():
            own[name].copy_(total)

    def begin_passing(self, tensors, along, owner, tag=0):
        """Passes tensors on to the next rank; call the result for those of the rank before, which
        have the rows of the ``owner``.
        """
        following, before = (self.rank + 1) % self.count, (self.rank - 1) % self.count
        found, calls = {}, []
        for name, tensor in tensors.items():
            shape = [*tensor.shape]
            shape[along[name]] = self.lengths[owner]
            found[name] = tensor.new_empty(shape)
            for way, each, peer in (
                (dist.isend, tensor.contiguous(), following),
                (dist.irecv, found[name], before),
            ):
                given = {"group": self.group, "tag": tag + len(found), "group_peer": peer}
                calls += [dist.P2POp(way, each, **given)] if each.numel() else []
        works = dist.batch_isend_irecv(calls) if calls else []

        def ended():
            for work in works:
                work.wait()
            calls.clear()  # what was sent may be freed
            return found

        return ended

    def sum(self, *tensors):
        """The sums over the ranks, entry by entry."""
        return self.begin_sum(*tensors)()

    def begin_sum(self, *tensors):
        """The same, asynchronous: call the result to wait for it."""
        return self._together(
            tensors, lambda parts: parts.sum(0), lambda flat: self._reduced(flat, "SUM")
        )

    def largest(self, *tensors):
        """The maximum over the ranks, entry by entry; NaN where one is."""
        return self.begin_largest(*tensors)()

    def begin_largest(self, *tensors):
        return self._together(tensors, lambda parts: parts.amax(0), self._largest)

    def moments(self, mean, squares=None, times=1):
        """From this part's mean and sum of squared deviations: the mean over all parts, the shift
        from that to this part's, and the squared deviations from the mean over all. A part has
        ``times`` entries for each of its length.
        """
        parts = [mean] if squares is None else [mean, squares]
        both = torch.stack(parts)
        if self.count > self.FEW and not self._fits(both):
            return self._moments_by_sums(mean, squares, times)
        means, *rest = self._all(both).unbind(1)
        counts = torch.tensor(self.lengths, dtype=mean.dtype, device=mean.device)
        counts = counts.view(-1, *[1] * mean.dim())
        share = counts / max(self.size, 1)
        mean = (share * means).sum(0)
        shifts = means - mean
        shifts = shifts - (share * shifts).sum(0)
        shift = shifts[self.rank]
        if squares is None:
            return mean, shift
        return mean, shift, (rest[0] + counts * times * shifts**2).sum(0)

    def _moments_by_sums(self, mean, squares, times):
        """The same without a gather, whose size grows with the number of ranks."""
        share = self.length / max(self.size, 1)
        own, mean = mean, self.sum(share * mean)
        shift = own - mean
        if squares is None:
            return mean, shift
        squares, rest = self.sum(squares + self.length * times * shift**2, share * shift)
        return mean, shift - rest, squares

    def first(self, tensor, along):
        """The global index of the first maximum along a dimension that is split."""
        values = largest_of(tensor, along, False).double()
        places = torch.full_like(values, math.inf)
        if tensor.shape[along]:
            places = tensor.argmax(along) + float(self.start)
        values, places = self._all(torch.stack([values, places])).unbind(1)
        best = values.amax(0)
        hit = (values == best) | (values.isnan() & best.isnan())
        return torch.where(hit, places, math.inf).amin(0).long()

    def gathered(self, tensor, along):
        """The parts of all ranks, concatenated."""
        self.agree()
        if self.count == 1:
            return tensor
        rows = tensor.movedim(along, 0)
        longest = max(self.lengths)
        padded = rows.new_zeros((longest, *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = self._all(padded)
        pieces = [part[:length] for part, length in zip(parts, self.lengths, strict=True)]
        return torch.cat(pieces).movedim(0, along)

    def ratio(self, whole, part):
        """One length divided by another; a rank where both are 0 gets it from the others."""
        own = whole // part if part else 0
        if torch.compiler.is_compiling():
            return own
        return int(self._all(torch.tensor([own], device=self.device)).amax())

    def _together(self, tensors, over_parts, reduced):
        """Begins the collective; call the result to wait for it."""
        if self.count == 1:
            return lambda: tensors[0] if len(tensors) == 1 else tensors
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        if self.agreed:
            told = reduced(flat)
        elif self._fits(flat):
            parts = self._first(flat)

            def told():
                return over_parts(parts())

        else:
            self._first(flat)()
            told = reduced(flat)

        def ended():
            pieces = told().split([tensor.numel() for tensor in tensors])
            pairs = zip(pieces, tensors, strict=True)
            found = [piece.view(tensor.shape).to(tensor.dtype) for piece, tensor in pairs]
            return found[0] if len(found) == 1 else found

        return ended

    def _reduced(self, flat, operation):
        if torch.compiler.is_compiling():
            found = functional.all_reduce(flat, operation.lower(), self._of_compiler())
            return lambda: found
        kind = getattr(dist.ReduceOp, operation)
        work = dist.all_reduce(flat, kind, group=self.group, async_op=True)

        def ended():
            work.wait()
            return flat

        return ended

    def _largest(self, flat):
        """Compared as integers, in whose order NaN is the largest: collectives drop NaN."""
        whole = _whole(flat)
        last = torch.iinfo(whole)
        bits = torch.where(flat.isnan(), math.nan, flat).view(whole)
        bits = bits ^ ((bits >> (last.bits - 1)) & last.max)
        told = self._reduced(bits, "MAX")

        def ended():
            bits = told()
            return (bits ^ ((bits >> (last.bits - 1)) & last.max)).view(flat.dtype)

        return ended

    def _all(self, tensor):
        """The tensors of all ranks, stacked in a new first dimension."""
        tensor = tensor.contiguous()
        if self.count == 1:
            return tensor.unsqueeze(0)
        if torch.compiler.is_compiling():
            return functional.all_gather_tensor(tensor.unsqueeze(0), 0, self._of_compiler())
        if not self.agreed:
            parts = self._first(tensor.reshape(-1))()
            if self._fits(tensor):
                return parts.view(self.count, *tensor.shape)
        parts = [torch.empty_like(tensor) for _ in range(self.count)]
        dist.all_gather(parts, tensor, group=self.group)
        return torch.stack(parts)

    def _even(self):
        """Compiled code cannot branch on what other ranks send. There all parts must have one
        length, which is asserted when it runs.
        """
        own = torch.full((1,), self.length, device=self.device)
        lengths = functional.all_gather_tensor(own, 0, self._of_compiler())
        torch._assert_async(
            (lengths == self.length).all(),
            f"{self.where}: under torch.compile all parts must have the same length",
        )
        self.lengths, self.agreed = [self.length] * self.count, True

    def _of_compiler(self):
        return dist.group.WORLD if self.group is None else self.group

    def _fits(self, tensor):
        """Whether it fits into the first packet."""
        return 0 < tensor.nbytes <= self.ROOM // self.count // self.WORD * self.WORD

    def _first(self, flat):
        """Sends the first packet of a call. The result waits for those of all ranks, and returns
        their ``flat`` if it fit into the packets.
        """
        text = f"{self.where} {self.wanted} {[*self._known(_plain).items()]}"
        data = flat.view(torch.uint8) if flat is not None else torch.empty(0, dtype=torch.uint8)
        fits = flat is not None and self._fits(flat)
        head = torch.tensor([0, self.length, zlib.crc32(text.encode()), len(data), 0])
        head = head.to(self.device)
        for value in self.alike.values():
            if isinstance(value, Tensor):
                head[4] = head[4] * _SPREAD + _digest(value)
        packet = head.view(torch.uint8)
        self.agreed = True
        told = self._packets(torch.cat([packet, data]) if fits else packet)

        def ended():
            packets = told()
            heads = packets[:, : self.HEAD].contiguous().view(torch.int64).tolist()
            failed = [rank for rank, head in enumerate(heads) if head[0]]
            if failed or any(head[2:] != heads[self.rank][2:] for head in heads):
                self._refuse(failed)
            self.lengths, self.alike = [head[1] for head in heads], {}
            if fits:
                return packets[:, self.HEAD : self.HEAD + len(data)].contiguous().view(flat.dtype)

        return ended

    def _packets(self, content):
        packet = content.new_zeros(self.HEAD + self.ROOM // self.count // self.WORD * self.WORD)
        packet[: len(content)] = content
        packet = packet if self.device is None else packet.to(self.device)
        packets = [torch.empty_like(packet) for _ in range(self.count)]
        work = dist.all_gather(packets, packet, group=self.group, async_op=True)

        def ended():
            work.wait()
            return torch.stack(packets)

        return ended

    def _known(self, kind):
        """The values that must be identical on all ranks, each converted by ``kind``."""
        known = {name: kind(value) for name, value in self.alike.items()}
        for name, value in self.alike.items():
            if isinstance(value, Tensor) and value.requires_grad and self.recorded:
                known[name] = f"{known[name]}, requires grad"
        return known

    def _told(self, own):
        """The reports of all ranks."""
        found = [None] * self.count
        dist.all_gather_object(found, own, group=self.group)
        return found

    def _refuse(self, failed):
        own = {"the function": self.where, "whether a gradient is needed": self.wanted}
        own |= self._known(_in_words)
        told = self._told(own)
        if failed:
            said = "; ".join(f"rank {rank}: {told[rank]}" for rank in failed)
            raise RuntimeError(f"{self.where}: another rank failed: {said}")
        differing = []
        for name in own:
            who = {}
            for rank, words in enumerate(told):
                who.setdefault(words.get(name), []).append(rank)
            if len(who) > 1:
                said = (f"rank {', '.join(map(str, of))}: {words}" for words, of in who.items())
                differing.append(f"{name} ({'; '.join(said)})")
                if name == "the function":
                    break
        raise ValueError(
            f"{self.where}: the ranks disagree on"
            f" {'; '.join(differing) or 'the data that they send'}"
        )


class Sums:
    """What travels with a visitor, which is waited for when it is first asked for."""

    def __init__(self, arrived):
        self.arrived, self.found = arrived, None

    @property
    def all(self):
        self.found = self.arrived() if self.found is None else self.found
        return self.found


class Visit(Part):
    """A ``chunk`` of the part of another rank, which begins at ``start``: ``visiting`` has its rows
    of what is passed on, and ``sums`` those of what this rank adds to.
    """

    def __init__(self, over, start, chunk, along, visiting, sums):
        self.start, self.length, self.size = start + chunk.start, chunk.length, over.size
        self.device, self.here = over.device, slice(self.start, self.start + self.length)
        self.within, self.along, self.travelling = (chunk.start, chunk.length), along, sums
        self.visiting = self._rows_of(visiting)

    @property
    def sums(self):
        return self._rows_of(self.travelling.all)

    def _rows_of(self, tensors):
        pairs = ((name, t.narrow(self.along[name], *self.within)) for name, t in tensors.items())
        return types.SimpleNamespace(**dict(pairs))


# Odd, and without a pattern: what is multiplied by it is another number for each of 2**64.
_SPREAD = -7046029254386353131
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)
_WORDS = 2**64  # of that many bits
_SHIFTS = (32, 29)  # of 64 bits: the upper half into the lower, twice
_AT_ONCE = 65536  # entries that stay in the cache


def _whole(tensor):
    """The integer dtype of the same size."""
    return next(kind for kind in _WHOLE if kind.itemsize == tensor.element_size())


def _digest(tensor):
    """A 64-bit hash of the entries and their order; all NaNs are equal. It is a tensor, so that a
    GPU need not synchronize.
    """
    flat = tensor.detach().reshape(-1)
    whole = _whole(flat)
    places = torch.arange(1, min(len(flat), _AT_ONCE) + 1, device=flat.device) * _SPREAD
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for piece in flat.split(_AT_ONCE):
        if piece.is_floating_point():
            piece = torch.where(piece.isnan(), math.nan, piece)
        mixed = piece.view(whole) + places[: len(piece)]
        for bits in _SHIFTS:
            mixed = mixed.bitwise_xor_(mixed >> bits).mul_(_SPREAD)
        total = total * _SPREAD + mixed.sum()
    return total


def _plain(value):
    """The part of a value that is compared as text: of a tensor, shape and dtype."""
    if isinstance(value, Tensor):
        return (*value.shape, value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(value)
    whole = isinstance(value, float) and value.is_integer()  # 0 and 0.0 are the same number
    return int(value) if whole else value


def _in_words(value):
    """The same for a person."""
    if not isinstance(value, Tensor):
        return str(_plain(value))
    *shape, dtype = _plain(value)
    ends = f" from {value.min().item()} to {value.max().item()}" if value.numel() else ""
    digest = _digest(value).item() % _WORDS
    return f"{dtype} of shape {tuple(shape)}{ends}, digest {digest:016x}"


def local_parts(where, groups, *tensors):
    """The local parts of DTensors, with their mesh (None for plain tensors), its groups, and what
    is wrong with them, since the other ranks must be told. Each tensor comes with the dimension
    that is split over each group, None for none.
    """
    kinds, mesh, parts = sys.modules.get("torch.distributed.tensor"), None, []
    misplaced = None
    for tensor, *along in tensors:
        if kinds is not None and isinstance(tensor, kinds.DTensor):
            mesh = tensor.device_mesh
            dims = tensor.dim() or 1
            wanted = [kinds.Replicate() if i is None else kinds.Shard(i % dims) for i in along]
            if list(tensor.placements) != wanted:
                misplaced = (
                    f"{where}: a DTensor has placements {tensor.placements}, expected {wanted}"
                )
                tensor = tensor.to_local()
            else:
                tensor = tensor.to_local(grad_placements=wanted)
        parts.append(tensor)
    if mesh is not None:
        own = [mesh.get_group(i) for i in range(mesh.ndim)]
        groups = tuple(g if group is None else group for g, group in zip(own, groups, strict=True))
    return mesh, groups, parts, misplaced


def in_place(misplaced):
    """Raises ValueError if `local_parts` found something wrong."""
    if misplaced is not None:
        raise ValueError(misplaced)


def apart(where, **groups):
    """Raises ValueError unless the two axes have different groups."""
    named = [*groups.values()]
    if None in named or named[0] is named[-1]:
        raise ValueError(
            f"{where}: {' and '.join(groups)} must be different groups, such as those of the"
            " dimensions of a DeviceMesh: mesh['rows'], mesh['columns']"
        )


def distributed(output, mesh, along, overs):
    """The output as a DTensor on the mesh of the inputs, if they were DTensors."""
    if mesh is None:
        return output
    kinds, shape = sys.modules["torch.distributed.tensor"], list(output.shape)
    for i, over in zip(along, overs, strict=True):
        if i is not None:
            shape[i] = over.size * shape[i] // over.length if over.length else over.size
    placed = [kinds.Replicate() if i is None else kinds.Shard(i % output.dim()) for i in along]
    stride = output.new_empty(shape, device="meta").stride()
    return kinds.DTensor.from_local(
        output, mesh, placed, run_check=False, shape=torch.Size(shape), stride=stride
    )
