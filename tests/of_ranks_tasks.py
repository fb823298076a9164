"""What single ranks do in ``test_ranks.py``, one function for each test."""

from __future__ import annotations

import json
import math
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from of_ranks import module_at

N, C = 6, 8
SHORT = 5  # seconds that ranks wait for one that has died


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(N, C, generator=generator, dtype=torch.float64)
    return logits, torch.randint(C, (N,), generator=generator)


def raised(call) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def loss_of(logits, labels, **more):
    """The same on one process, by torch, with its gradient."""
    leaf = logits.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(leaf, labels, **more)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]


def in_chunks(folder: Path, rank: int, count: int) -> dict[str, object]:
    """Parts of the columns in chunks of the rows, and what is refused."""
    function = module_at(folder / "softmax_nll_shard_c_chunk_n.py").softmax_nll_shard_c_chunk_n
    logits, labels = data()
    wanted, gradient = loss_of(logits, labels)
    own = logits.tensor_split(count, 1)[rank].clone().requires_grad_()

    def apart(**more) -> float:
        loss = function(own, labels, **more)
        (found,) = torch.autograd.grad(loss, own)
        both = loss - wanted, found - gradient.tensor_split(count, 1)[rank]
        return max(float(one.detach().abs().max()) for one in both)

    return {
        "apart": max(apart(chunk=2), apart()),
        "label": raised(lambda: function(own, labels + 100)),
        "shape": raised(lambda: function(own[0] if rank else own, labels)),
        "chunk": raised(lambda: function(own, labels, chunk=2 + rank)),
        "wanted": raised(lambda: function(own.detach() if rank else own, labels)),
        "twice": raised(lambda: torch.autograd.grad(function(own, labels), own, create_graph=True)),
        "after": apart(chunk=3),
    }


def in_a_ring(folder: Path, rank: int, count: int) -> dict[str, object]:
    """Parts of rows and of columns: what one rank alone is wrong in is told to all."""
    names = (
        f"{name}_shard_t_ring_s" for name in ("both_ways", "capped", "masked_attention", "late")
    )
    loss, attention, masked, late = (
        getattr(module_at(folder / f"{name}.py"), name) for name in names
    )
    z, labels = data()
    rows, own = (t.tensor_split(count)[rank] for t in (z, labels))
    wrong, keys = own + 100 * rank, z.new_ones(C, C).tensor_split(count)[rank]
    leaf = rows.clone().requires_grad_()
    given = rows, keys, keys

    def again():
        torch.autograd.grad(loss(leaf, keys, own), leaf, create_graph=True)

    found = {
        "label": raised(lambda: loss(rows, keys, wrong)),
        "whole": raised(lambda: attention(*given, rows[:, : C - rank])),
        "shape": raised(lambda: loss(rows, keys[:, : C - rank], own)),
        "twice": raised(again),
    }
    apart = attention(*given, rows) - 1  # the average of ones
    broadcast, alike = masked(*given, z.new_ones(C)) - 1, keys.clone().requires_grad_()
    (first,) = torch.autograd.grad(late(rows, alike), alike)
    found["rows"] = first.abs().sum(1).gt(0).tolist()  # of all that are as large, the first
    return found | {"after": float(torch.stack([apart, broadcast]).abs().max())}


def mistakes(folder: Path, rank: int, count: int) -> dict[str, str]:
    """One rank is wrong; all say so, and go on afterwards."""
    by_c, by_n = (module_at(folder / f"softmax_nll_shard_{axis}.py") for axis in "cn")
    logits, labels = data()
    part, rows = logits.chunk(count, 1)[rank], logits.chunk(count)[rank]
    own = labels.chunk(count)[rank]
    last = rank == count - 1
    found = {
        "label": raised(lambda: by_n.softmax_nll_shard_n(rows, own + 100 * last)),
        "shape": raised(lambda: by_c.softmax_nll_shard_c(part[0] if last else part, labels)),
        "kind": raised(lambda: by_c.softmax_nll_shard_c("x" if last else part, labels)),
        "everywhere": raised(lambda: by_c.softmax_nll_shard_c(part, labels + 100)),
        "rows": raised(
            lambda: by_c.softmax_nll_shard_c(part[last:], labels[last:]),
        ),
        "format": raised(lambda: by_c.softmax_nll_shard_c(part.float() if last else part, labels)),
        "function": raised(
            lambda: (
                by_n.softmax_nll_shard_n(rows, own)
                if last
                else by_c.softmax_nll_shard_c(part, labels)
            )
        ),
    }
    loss, _ = loss_of(logits, labels)
    after = by_c.softmax_nll_shard_c(part, labels)
    found["after"] = "" if abs(after - loss) < 1e-12 else "not the same"
    return found


def disagree(folder: Path, rank: int, count: int) -> dict[str, dict[str, str]]:
    """One rank differs in what has to be the same, or is wrong where no other is: what each call
    raised; and whether a right call after it is right.
    """
    names = ("softmax_nll_shard_c", "softmax_nll_shard_n", "batch_norm_shard_n", "linear_shard_n")
    by_c, by_n, norm, line = (getattr(module_at(folder / f"{n}.py"), n) for n in names)
    weighted = module_at(folder / "cross_entropy_shard_c.py").cross_entropy_shard_c
    logits, labels = data()
    part, rows, own = (t.chunk(count, d)[rank] for t, d in ((logits, 1), (logits, 0), (labels, 0)))
    ones, last = torch.ones(C).double(), rank == count - 1
    here = lambda wrong, right: wrong if last else right  # noqa: E731
    other = ones.clone()
    other[3] += 2**-52
    odd = torch.tensor([here(-1, 1)]).view(torch.float64) * math.nan * ones  # another NaN
    deep, deeper = part[:, :, None].expand(-1, -1, 6), labels[:, None].expand(-1, 6)
    square = {"labels": deeper.reshape(N, *here((3, 2), (2, 3)))}
    grad = lambda t, wanted=True: t.clone().requires_grad_(wanted)  # noqa: E731
    without = here(torch.no_grad, torch.enable_grad)
    shape = deep.reshape(*part.shape, *here((3, 2), (2, 3)))
    calls = {
        "labels": lambda: by_c(part, here(labels.roll(1), labels)),
        "labels in another order": lambda: by_c(part, here(labels.flip(0), labels)),
        "labels out of range": lambda: by_c(part, labels + here(100, 0)),
        "labels below 0": lambda: by_c(part, labels - here(100, 0)),
        "labels of a kind": lambda: by_c(part, here(labels.double(), labels)),
        "labels left out": lambda: by_c(part, here(None, labels)),
        "rows of labels": lambda: by_n(rows, own + here(C, 0)),
        "gain": lambda: norm(rows, here(other, ones), ones),
        "bias NaN": lambda: norm(rows, ones, here(odd, ones)),
        "gain of a shape": lambda: norm(rows, here(ones[1:], ones), ones),
        "eps": lambda: norm(rows, ones, ones, eps=here(1e-4, 1e-5)),
        "eps below 0": lambda: norm(rows, ones, ones, eps=here(-1.0, 1e-5)),
        "eps no number": lambda: norm(rows, ones, ones, eps=here("x", 1e-5)),
        "format": lambda: norm(*(t.float() if last else t for t in (rows, ones, ones))),
        "gain wants": lambda: norm(grad(rows), grad(ones, last), ones),
        "x wants": lambda: norm(grad(rows, last), ones, ones).sum().backward(),
        "no_grad": lambda: without()(norm)(grad(rows), grad(ones), ones).sum().backward(),
        "weight": lambda: line(rows, here(ones, 2 * ones)[:, None]),
        "weight of a shape": lambda: line(rows, here(ones[1:], ones)[:, None]),
        "weight wants": lambda: line(rows, grad(ones[:, None], last)).sum().backward(),
        "bias passed": lambda: line(rows, ones[:, None], **here({"bias": ones[:1]}, {})),
        "weight passed": lambda: weighted(part, labels, here(ones[: part.shape[1]], None)),
        "smoothing": lambda: weighted(part, labels, label_smoothing=here(0.1, 0.2)),
        "ignored": lambda: weighted(part, labels, ignore_index=here(1, 2)),
        "dimensions": lambda: weighted(shape, **square),
    }
    loss, gradient = loss_of(logits, labels)
    said = {}
    for name, call in calls.items():
        said[name] = raised(call)
        assert abs(by_c(part, labels) - loss) < 1e-12, name
    leaf = grad(part, last)  # nothing is told in the backward: no rank waits
    output = by_c(leaf, labels)
    if last:
        output.backward()
        assert (leaf.grad - gradient.chunk(count, 1)[rank]).abs().max() < 1e-12
    whole = loss_of(logits, labels, label_smoothing=0.0)[0]
    fine = {
        "0 and 0.0": weighted(part, labels, label_smoothing=here(0, 0.0)) - whole,
        "int32": by_c(part, labels.int() if last else labels) - loss,
        "NaN": norm(rows, ones, odd * math.nan).isnan().double().mean() - 1,
        "strides": norm(rows, here(ones[:1].expand(C), ones), ones).sum() * 0,
    }
    return {"said": said, "fine": {name: float(apart.abs()) for name, apart in fine.items()}}


def crossed(folder: Path, rank: int, count: int) -> dict[str, str]:
    """Over two groups: one rank is wrong, a row of them is, or two that have no group in common."""
    from torch.distributed.device_mesh import init_device_mesh

    function = module_at(folder / "softmax_nll_shard_n_c.py").softmax_nll_shard_n_c
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("n", "c"))
    logits, labels = data()
    row, column = mesh.get_coordinate()
    part, own = logits.chunk(2)[row].chunk(2, 1)[column], labels.chunk(2)[row]
    given, said = (mesh["n"], mesh["c"]), {}
    first, corners = (row, column) == (0, 0), row == column
    for name, wrong in (("one", first), ("a row", row == 0), ("corners", corners)):
        said[f"{name}: label"] = raised(lambda w=wrong: function(part, own + 100 * w, *given))
        said[f"{name}: kind"] = raised(lambda w=wrong: function("x" if w else part, own, *given))
        after = function(part, own, *given) - loss_of(logits, labels)[0]
        assert after.abs() < 1e-12, name
    return said


def misplaced(folder: Path, rank: int, count: int) -> dict[str, str]:
    """One rank passes a tensor that is distributed in another way."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard

    function = module_at(folder / "softmax_nll_shard_c.py").softmax_nll_shard_c
    logits, labels = data()
    mesh = init_device_mesh("cpu", (count,))
    placed = [Replicate() if rank == count - 1 else Shard(1)]
    part = DTensor.from_local(logits.chunk(count, 1)[rank], mesh, placed, run_check=False)
    index = DTensor.from_local(labels, mesh, [Replicate()], run_check=False)
    return {"placed": raised(lambda: function(part, index))}


def dies(folder: Path, rank: int, count: int) -> None:
    """The last rank ends without a word; what the others are told of it, and when."""
    module = module_at(folder / "softmax_nll_shard_c.py")
    group = dist.new_group(timeout=timedelta(seconds=SHORT))
    logits, labels = data()
    found, begun = {}, time.monotonic()
    if rank < count - 1:
        part = logits.chunk(count, 1)[rank]
        found["told"] = raised(lambda: module.softmax_nll_shard_c(part, labels, group))
        found["in time"] = time.monotonic() - begun < 2 * SHORT
    (folder / f"found_{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # a group that is not whole cannot be left in good order


def twice(folder: Path, rank: int, count: int) -> dict[str, str]:
    """Differentiated again."""
    module = module_at(folder / "softmax_nll_shard_c.py")
    logits, labels = data()
    leaf = logits.chunk(count, 1)[rank].clone().requires_grad_()
    loss = module.softmax_nll_shard_c(leaf, labels)

    def again():
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        gradient.sum().backward()

    return {"twice": raised(again)}


def counted(folder: Path, rank: int, count: int) -> dict[str, list[str]]:
    """Which collectives there are, by torch's own names."""
    calls: list[str] = []

    def counting(name):
        function = getattr(dist, name)

        def called(*args, **kwargs):
            calls.append(name)
            return function(*args, **kwargs)

        return called

    names = ("all_reduce", "all_gather", "all_gather_object")
    for name in names:
        setattr(dist, name, counting(name))
    logits, labels = data()
    found = {}
    for name, sizes in (("softmax_nll_shard_c", "few"), ("batch_norm_shard_n", "few")):
        module, calls[:] = module_at(folder / f"{name}.py"), []
        along = 1 if name.endswith("c") else 0
        leaf = logits.chunk(count, along)[rank].clone().requires_grad_()
        function = getattr(module, name)
        output = (
            function(leaf, labels) if along else function(leaf, torch.ones(C).double(), logits[0])
        )
        forward, calls[:] = list(calls), []
        output.sum().backward()
        found[f"{name} {sizes}"] = [*forward, "backward", *calls]
    return found


def of_torch(folder: Path, rank: int, count: int) -> dict[str, float]:
    """Beside DistributedDataParallel, with distributed tensors, and with meshes for groups."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    by_c, by_n = (module_at(folder / f"softmax_nll_shard_{axis}.py") for axis in "cn")
    norm = module_at(folder / "batch_norm_shard_n.py")
    logits, labels = data()
    loss, gradient = loss_of(logits, labels)
    mesh = init_device_mesh("cpu", (count,), mesh_dim_names=("ranks",))
    apart = {}
    leaf = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    index = distribute_tensor(labels, mesh, [Replicate()])
    output = by_c.softmax_nll_shard_c(leaf, index)
    output.backward()
    assert isinstance(output, DTensor) and output.placements == (Replicate(),)
    assert leaf.grad.placements == (Shard(1),)
    apart["distributed tensor"] = float((output.detach().full_tensor() - loss).abs())
    apart["its gradient"] = float((leaf.grad.full_tensor() - gradient).abs().max())

    rows = distribute_tensor(logits, mesh, [Shard(0)]).requires_grad_()
    ones = distribute_tensor(torch.ones(C).double(), mesh, [Replicate()]).requires_grad_()
    y = norm.batch_norm_shard_n(rows, ones, ones * 0)
    expected = (logits - logits.mean(0)) / torch.sqrt(logits.var(0) + 1e-5)
    assert y.placements == (Shard(0),)
    apart["normed"] = float((y.detach().full_tensor() - expected).abs().max())

    part = logits.chunk(count, 1)[rank]
    for name, group in (
        ("mesh", mesh),
        ("dimension", (mesh, "ranks")),
        ("group", dist.group.WORLD),
    ):
        apart[name] = float((by_c.softmax_nll_shard_c(part, labels, group) - loss).abs())

    torch.manual_seed(0)
    model = torch.nn.Linear(C, C).double()
    own, inputs = torch.nn.parallel.DistributedDataParallel(model), torch.randn(N, C).double()
    by_n.softmax_nll_shard_n(own(inputs.chunk(count)[rank]), labels.chunk(count)[rank]).backward()
    averaged = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    for name, p in model.named_parameters():  # of the loss of all: DDP divides by the ranks
        apart[f"parallel {name}"] = float((averaged[name] * count - p.grad).abs().max())
    return apart


def two_groups(folder: Path, rank: int, count: int) -> dict[str, float]:
    """The examples over one group, and the classes over another."""
    from torch.distributed.device_mesh import init_device_mesh

    module = module_at(folder / "softmax_nll_shard_n_c.py")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("n", "c"))
    logits, labels = data()
    loss, gradient = loss_of(logits, labels)
    row, column = mesh.get_coordinate()
    own = (slice(0, 4), slice(4, N))[row], (slice(0, 3), slice(3, C))[column]
    leaf = logits[own].clone().requires_grad_()
    found = module.softmax_nll_shard_n_c(leaf, labels[own[0]], mesh["n"], mesh["c"])
    found.backward()
    apart = {"loss": float((found.detach() - loss).abs())}
    apart["gradient"] = float((leaf.grad - gradient[own]).abs().max())
    wrong = labels[own[0]] + 100 * (row == 1)
    said = raised(lambda: module.softmax_nll_shard_n_c(leaf, wrong, mesh["n"], mesh["c"]))
    apart["said"] = 0.0 if "not in 0 .. 7" in said else 1.0
    said = raised(lambda: module.softmax_nll_shard_n_c(leaf, labels[own[0]]))
    apart["no groups"] = 0.0 if "group_n" in said else 1.0
    return apart


def compiled(folder: Path, rank: int, count: int) -> dict[str, float]:
    module = module_at(folder / "softmax_nll_shard_c.py")
    logits, labels = data()
    loss, gradient = loss_of(logits, labels)
    leaf = logits.chunk(count, 1)[rank].clone().requires_grad_()
    whole = torch.compile(lambda a, b: module.softmax_nll_shard_c(a * 1, b) * 2, fullgraph=True)
    found = whole(leaf, labels)
    found.backward()
    own = gradient.chunk(count, 1)[rank]
    uneven = raised(lambda: whole(logits.split([5, 3], 1)[rank], labels))
    return {
        "uneven": float("under torch.compile all parts must have" not in uneven),
        "loss": float((found.detach() / 2 - loss).abs()),
        "gradient": float((leaf.grad / 2 - own).abs().max()),
    }


TASKS = {
    "in_chunks": in_chunks,
    "in_a_ring": in_a_ring,
    "mistakes": mistakes,
    "disagree": disagree,
    "crossed": crossed,
    "misplaced": misplaced,
    "dies": dies,
    "twice": twice,
    "counted": counted,
    "of_torch": of_torch,
    "two_groups": two_groups,
    "compiled": compiled,
}
