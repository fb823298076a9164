"""Compare functions split over ranks with one process and with other implementations: collectives
and bytes, and ratios of median times of forward and backward.

    python benchmarks/ranks.py [--ranks P] [--rows N] [--columns C] [--threads T] [--rounds R]
                               [NAME ...]

The ranks are gloo processes on this machine with T threads each, as is the one process. The losses
split columns, batch_norm rows. First all must agree in float64 with one process; counts and times
are float32. Only gradform's first packet checks that the ranks agree: with `--columns 32768
batch_norm` it has no room for data. Exit status: 0 done; 1 they do not agree, gradform needs more
collectives than the best of the others, or a rank died; 2 invalid arguments.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from collectives import Collectives
from ranks_by_hand import SynchronisedNorm, VocabParallel
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel
from torch.multiprocessing import ProcessExitedException, ProcessRaisedException, spawn

from codegen.driver.ranks import generate_of_ranks
from codegen.driver.writing import with_runtime, write_modules
from derive import forward_from

AXES = {"softmax_nll": "C", "cross_entropy": "C", "batch_norm": "N"}
SHAPES = {"C": (256, 32768), "N": (8192, 1024)}  # rows and columns, by the axis that is split
TOLERANCE = 1e-10  # of the largest entry, in float64
WARM_UP = 3  # rounds
WAIT = timedelta(seconds=60)  # for a rank that does not answer
WIDTH = 100
MODULES = "modules_of_ranks"  # the folder that they are written to
ONE, OURS = "one process", "gradform"


@dataclass(frozen=True)
class Contender:
    """A function with its arguments; ``around`` is the context to call it in. One process has all
    of the input, the others this rank's part.
    """

    name: str
    function: Callable[..., Tensor]
    leaves: tuple[Tensor, ...]
    upstream: Tensor | None = None
    around: Callable[[], AbstractContextManager] = nullcontext

    def both_ways(self, forward=nullcontext(), backward=nullcontext()) -> tuple[Tensor, ...]:  # noqa: B008
        """The output and the gradients, each computed within the context that is given."""
        with self.around():
            with forward:
                output = self.function(*self.leaves)
            with backward:
                gradients = torch.autograd.grad(output, self.leaves, self.upstream)
        return output, *gradients


def contenders(name: str, rows: int, columns: int, dtype: torch.dtype) -> list[Contender]:
    """One process first, then gradform, then the others; the same numbers in every process."""
    generator = torch.Generator().manual_seed(0)
    x, dy = torch.randn(2, rows, columns, generator=generator, dtype=torch.float64).to(dtype)
    alone = getattr(import_module(f"gradform.generated.{name}"), name)
    split = f"{name}_shard_{AXES[name].lower()}"
    ours = getattr(import_module(f"{MODULES}.{split}"), split)
    if AXES[name] == "N":
        affine = tuple(torch.randn(2, columns, generator=generator, dtype=torch.float64).to(dtype))
        part, upstream = own_part(x, 0), own_part(dy, 0)
        return [
            Contender(ONE, alone, leaves(x, *affine), dy),
            Contender(OURS, ours, leaves(part, *affine), upstream),
            Contender("by hand", SynchronisedNorm.apply, leaves(part, *affine), upstream),
        ]
    labels = torch.randint(columns, (rows,), generator=generator)
    part, mesh = own_part(x, 1), init_device_mesh("cpu", (dist.get_world_size(),))
    placed = DTensor.from_local(part, mesh, [Shard(1)])

    def by_hand(logits):
        return VocabParallel.apply(logits, labels).mean()

    def by_torch(logits):
        return F.cross_entropy(logits, labels)

    return [
        Contender(ONE, lambda logits: alone(logits, labels), leaves(x)),
        Contender(OURS, lambda logits: ours(logits, labels), leaves(part)),
        Contender("loss_parallel", by_torch, leaves(placed), around=loss_parallel),
        Contender("as Megatron-LM", by_hand, leaves(part)),
    ]


def own_part(tensor: Tensor, along: int) -> Tensor:
    return tensor.chunk(dist.get_world_size(), along)[dist.get_rank()].contiguous()


def leaves(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


# What a rank does


def apart(of_rank: list[Contender], along: int) -> dict[str, float]:
    """The largest relative difference of each from one process, over all ranks."""
    alone, *others = of_rank
    expected = alone.both_ways()
    split = alone.leaves[0].shape
    expected = [own_part(t, along) if t.shape == split else t for t in expected]
    found = {}
    for contender in others:
        far = torch.zeros((), dtype=torch.float64)
        for tensor, right in zip(contender.both_ways(), expected, strict=True):
            tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
            difference = (tensor - right).abs().max() / right.abs().max()
            far = torch.maximum(far, difference.nan_to_num(math.inf))  # gloo's maximum drops NaN
        dist.all_reduce(far, dist.ReduceOp.MAX)
        found[contender.name] = far.item()
    return found


def medians(of_rank: list[Contender], rounds: int) -> list[float]:
    """Seconds of the slowest rank: A B C A B C ..., so that a drift of the machine meets all alike;
    the other ranks wait for one process.
    """
    times = torch.zeros(len(of_rank), WARM_UP + rounds, dtype=torch.float64)
    for turn in range(WARM_UP + rounds):
        for kept, contender in zip(times, of_rank, strict=True):
            dist.barrier()
            if contender.name == ONE and dist.get_rank():
                continue
            start = time.perf_counter()
            contender.both_ways()
            kept[turn] = time.perf_counter() - start
    dist.all_reduce(times, dist.ReduceOp.MAX)
    return times[:, WARM_UP:].median(1).values.tolist()


def counted(contender: Contender) -> dict:
    forward, backward = Collectives(), Collectives()
    contender.both_ways(forward, backward)
    return {
        "name": contender.name,
        "ways": [str(forward), f"{forward.sent:,}", str(backward), f"{backward.sent:,}"],
        "collectives": (forward.calls + backward.calls).total(),
    }


def measured(name: str, options: argparse.Namespace) -> dict:
    """How far apart the contenders are, and the rows of the table if they agree."""
    sizes = shape_of(name, options)
    far = apart(contenders(name, *sizes, torch.float64), along="NC".index(AXES[name]))
    if not max(far.values()) <= TOLERANCE:
        return {"apart": far}
    of_rank = contenders(name, *sizes, torch.float32)
    rows = [counted(contender) for contender in of_rank]
    for row, seconds in zip(rows, medians(of_rank, options.rounds), strict=True):
        row["seconds"] = seconds
    return {"rows": rows, "shape": sizes}


def of_torch() -> str:
    """Why torch's SyncBatchNorm is not compared."""
    try:
        torch.nn.SyncBatchNorm(2)(torch.randn(4, 2))
    except (ValueError, RuntimeError) as error:
        return f"torch's SyncBatchNorm is not measured; it says: {error}"
    return "torch's SyncBatchNorm runs here, but has no n-1 variance: it is not measured"


def rank_of(rank: int, folder: str, options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    sys.path.insert(0, folder)
    store = dist.FileStore(f"{folder}/store", options.ranks)
    dist.init_process_group("gloo", timeout=WAIT, rank=rank, world_size=options.ranks, store=store)
    found = {name: measured(name, options) for name in options.names}
    if rank == 0:
        whole = {"found": found, "note": of_torch()}
        Path(folder, "found.json").write_text(json.dumps(whole))
    dist.destroy_process_group()


# The command line


def printed(console: Console, name: str, rows: list[dict], shape: list[int]) -> bool:
    """Print one table; return whether gradform needs no more collectives than the others."""
    table = Table(title=f"{name}, {AXES[name]} split, {shape[0]} x {shape[1]}")
    table.add_column("", no_wrap=True)
    for heading in ("forward", "bytes", "backward", "bytes", "us", "/ one", "/ ours"):
        table.add_column(heading, justify="left" if "ward" in heading else "right", no_wrap=True)
    seconds = {row["name"]: row["seconds"] for row in rows}
    for row in rows:
        own = row["seconds"]
        ratios = [f"{own / seconds[base]:.2f}" for base in (ONE, OURS)]
        table.add_row(row["name"], *row["ways"], f"{own * 1e6:,.0f}", *ratios)
    console.print(table)
    _, ours, *others = [row["collectives"] for row in rows]
    best = min(others)
    words = "no more than" if ours <= best else "MORE than"
    console.print(f"gradform has {ours} collectives, {words} the best of the others ({best})\n")
    return ours <= best


def reported(console: Console, whole: dict) -> int:
    few = True
    for name, found in whole["found"].items():
        if "apart" in found:
            console.print(f"not timed: {name} is so far from one process: {found['apart']}")
            return 1
        few &= printed(console, name, found["rows"], found["shape"])
    if "batch_norm" in whole["found"]:
        console.print(whole["note"])
    return 0 if few else 1


def shape_of(name: str, options: argparse.Namespace) -> tuple[int, int]:
    rows, columns = SHAPES[AXES[name]]
    return options.rows or rows, options.columns or columns


def asked() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(AXES)}; all of them by default")
    sizes = {"ranks": 2, "rows": None, "columns": None, "threads": 1, "rounds": 20}
    for option, default in sizes.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    options = parser.parse_args()
    options.names = options.names or list(AXES)
    if unknown := set(options.names) - set(AXES):
        parser.error(f"not among {', '.join(AXES)}: {', '.join(unknown)}")
    given = (getattr(options, option) for option in sizes)
    if any(number is not None and number < 1 for number in given):
        parser.error("every number has to be above 0")
    if any(size % options.ranks for name in options.names for size in shape_of(name, options)):
        parser.error(f"rows and columns have to be multiples of the {options.ranks} ranks")
    return options


def main() -> int:
    options = asked()
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            made = generate_of_ranks(forward_from(name), AXES[name])
            write_modules(with_runtime({Path(folder, MODULES, made.file): made.text}))
        try:
            spawn(rank_of, (folder, options), options.ranks)
        except (ProcessRaisedException, ProcessExitedException) as error:
            last = str(error).strip().splitlines()[-1]
            console.print(f"a rank died, and the others were ended: {last}", markup=False)
            return 1
        whole = json.loads(Path(folder, "found.json").read_text())
    console.print(
        f"{options.ranks} ranks under gloo, {options.threads} thread(s) each, float32, torch "
        f"{torch.__version__}, medians of {options.rounds}"
    )
    return reported(console, whole)


if __name__ == "__main__":
    sys.exit(main())
