"""Train the character model on several processes, each with a part of every batch.

    gradform mlp --shard N --out ranks
    python examples/many_ranks.py ranks/mlp_shard_n.py
    python examples/many_ranks.py ranks/mlp_shard_n.py --ranks 3 --steps 1000 --data names.txt

Every process has all parameters and its part of the examples. The module returns complete gradients
on every process, so all take the same step. For comparison, one process takes the same steps on
whole batches. Exit status: 0 the losses agree within float64 rounding; 1 they do not; 2 invalid
arguments.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from character_model.mistakes import Mistake
from character_model.network import EPS, Parameters, drawn_parameters, loss_and_gradients
from character_model.training import BATCH, rate_at
from character_model.words import OWN_WORDS, SYMBOLS, Examples, load
from rich.console import Console
from rich.table import Table
from torch import Tensor

SEED = 2147483647
HIDDEN = 64
ROWS = 3  # of the table
SAME = 1e-12  # float64, where sums are taken in another order at every step
PACKAGE = "modules_of_ranks"
WAIT = timedelta(minutes=5)  # of a process for the others
SAME_LOSSES, OTHER_LOSSES, NOT_UNDERSTOOD = 0, 1, 2


def main() -> int:
    options = _parser().parse_args()
    try:
        module_at(options.module)
        examples = load(options.data).training
    except Mistake as mistake:
        sys.stderr.write(f"{Path(__file__).name}: {mistake}\n")
        return NOT_UNDERSTOOD
    alone = train(loss_and_gradients, examples, options.steps, lambda batch: batch)
    with tempfile.TemporaryDirectory() as folder:
        given = (options.ranks, options.module, examples, options.steps, Path(folder))
        processes.spawn(rank_of_several, given, options.ranks)
        together = torch.load(Path(folder) / "losses.pt", weights_only=True)
    return _compared(alone, together, options.ranks)


def train(run: Callable, examples: Examples, steps: int, own: Callable[[Tensor], Tensor]) -> Tensor:
    """The losses (steps,) before each step, of which ``run`` computes one with its gradients.
    ``own`` takes a process's part of a batch (n,), given as indices of examples.
    """
    generator = torch.Generator().manual_seed(SEED)  # the same batches on every process
    drawn = drawn_parameters(len(SYMBOLS), HIDDEN, generator)
    parameters = {name: parameter.double() for name, parameter in drawn.items()}
    upstream, losses = torch.ones((), dtype=torch.float64), []
    for step in range(steps):
        batch = own(torch.randint(len(examples), (BATCH,), generator=generator))
        contexts, labels = examples.contexts[batch], examples.labels[batch]
        loss, gradients = run(parameters, contexts, labels, upstream)
        losses.append(loss)
        for name, parameter in parameters.items():
            parameter.sub_(gradients[name], alpha=rate_at(step, steps))
    return torch.stack(losses)


def run_of(module: ModuleType) -> Callable:
    """A loss and its gradients, by a module of ranks."""

    def run(parameters: Parameters, contexts: Tensor, labels: Tensor, upstream: Tensor):
        saved = module.mlp_shard_n_forward(contexts, labels, **parameters, eps=EPS)._asdict()
        loss = saved.pop("loss")
        gradients = module.mlp_shard_n_backward(upstream, **saved)
        return loss, {name: getattr(gradients, f"d{name}") for name in parameters}

    return run


def rank_of_several(
    rank: int, ranks: int, module: Path, examples: Examples, steps: int, folder: Path
) -> None:
    """Run one process; the first one writes the losses."""
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=WAIT)
    own = lambda batch: batch.tensor_split(ranks)[rank]  # noqa: E731
    losses = train(run_of(module_at(module)), examples, steps, own)
    if rank == 0:
        torch.save(losses, folder / "losses.pt")
    dist.destroy_process_group()


def module_at(path: Path) -> ModuleType:
    """The module in a file. Raises Mistake if there is none."""
    if not path.is_file():
        raise Mistake(
            f"{path} does not exist; gradform mlp --shard N --out {path.parent} writes"
            f" {path.parent / 'mlp_shard_n.py'}"
        )
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)  # whatever the folder is called
    package.__path__ = [str(path.parent)]
    module = importlib.import_module(f"{PACKAGE}.{path.stem}")
    if not hasattr(module, "mlp_shard_n_forward"):
        raise Mistake(f"{path} is not the module that gradform mlp --shard N writes")
    return module


def _compared(alone: Tensor, together: Tensor, ranks: int) -> int:
    table = Table(box=None, pad_edge=False)
    for title in ("step", "loss, one process", f"{ranks} processes"):
        table.add_column(title, justify="right")
    for step in torch.linspace(0, len(alone) - 1, ROWS).long().unique().tolist():
        table.add_row(str(step), f"{alone[step]:.10f}", f"{together[step]:.10f}")
    same = bool(((together - alone).abs() <= SAME * alone).all())
    console = Console(highlight=False)
    console.print(table)
    console.print(
        f"all {len(alone)} losses are {'the same' if same else 'NOT the same'}"
        f" (to {SAME} of their size)"
    )
    return SAME_LOSSES if same else OTHER_LOSSES


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", type=Path, help="what gradform mlp --shard N writes")
    parser.add_argument("--ranks", type=_count, default=2, help="processes (2)")
    parser.add_argument("--steps", type=_count, default=100, help="steps of descent (100)")
    parser.add_argument("--data", type=Path, default=OWN_WORDS, help="a list of words")
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError("a whole number above 0 is needed")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
