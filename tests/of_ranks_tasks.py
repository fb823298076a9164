"""What single ranks do in ``test_ranks.py``, one function for each test."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from of_ranks import module_at

N, C = 6, 8


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
        output = function(leaf, labels) if along else function(leaf, torch.ones(C).double(), logits[0])
        forward, calls[:] = list(calls), []
        output.sum().backward()
        found[f"{name} {sizes}"] = [*forward, "backward", *calls]
    return found


TASKS = {"mistakes": mistakes, "twice": twice, "counted": counted}
