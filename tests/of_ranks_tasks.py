"""What single ranks do in ``test_ranks.py``, one function for each test."""

from __future__ import annotations

import json
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
    apart["said"] = 0.0 if "outside of 0 .. 7" in said else 1.0
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
        "uneven": float("softmax_nll_shard_c: the parts differ in length" not in uneven),
        "loss": float((found.detach() / 2 - loss).abs()),
        "gradient": float((leaf.grad / 2 - own).abs().max()),
    }


TASKS = {
    "mistakes": mistakes,
    "dies": dies,
    "twice": twice,
    "counted": counted,
    "of_torch": of_torch,
    "two_groups": two_groups,
    "compiled": compiled,
}
