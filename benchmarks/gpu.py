"""Compare kernels in Triton with torch, torch.compile and Liger's kernels (the package
liger-kernel, where it is installed): ratios of medians, and of the memory taken at the peak.

    python benchmarks/gpu.py [NAME ...] [--rows N --columns C]

Forward and backward together, in bfloat16. Below 1, gradform's are faster, or take less. The share
of the bandwidth counts what must be read and written if every array passes once. Liger's geglu has
the tanh approximation of GELU; some of its functions write gradients over their arguments, so each
contender has a copy of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-5
ROWS = [(4096, 4096), (8192, 8192), (16384, 16384), (16384, 32768)]
LOSSES = [*ROWS, (8192, 128256)]
TOLERANCE = 0.02  # of the largest entry: some units of bfloat16's last place
BYTES = 2  # of an entry


@dataclass(frozen=True)
class Case:
    """Torch's function, the name of Liger's with what follows the arguments, the kinds of the
    arguments, and how many arrays of full size a forward and a backward read and write at least.
    """

    torchs: Callable[..., Tensor]
    ligers: tuple
    arguments: Sequence[str]
    moved: int
    sizes: Sequence[tuple[int, int]] = tuple(ROWS)


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, gain.shape, gain, EPS)


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, gain.shape, gain, bias, EPS)


CASES = {
    "rms_norm": Case(rms_norm, ("RMSNorm", EPS), ("full", "row"), 2 + 3),
    "layer_norm": Case(layer_norm, ("LayerNorm", EPS), ("full", "row", "row"), 2 + 3),
    "swiglu": Case(lambda gate, x: F.silu(gate) * x, ("SiLUMul",), ("full", "full"), 3 + 5),
    "geglu": Case(lambda gate, x: F.gelu(gate) * x, ("GELUMul",), ("full", "full"), 3 + 5),
    "softmax": Case(partial(F.softmax, dim=1), ("Softmax",), ("full",), 2 + 3),
    "cross_entropy": Case(
        F.cross_entropy, ("CrossEntropy", None), ("full", "labels"), 1 + 1, tuple(LOSSES)
    ),
}


def drawn(case: Case, rows: int, columns: int, device: str, dtype: torch.dtype) -> list[Tensor]:
    """The arguments."""
    generator = torch.Generator(device).manual_seed(0)
    shapes = {"full": (rows, columns), "row": (columns,)}
    own = {"device": device, "generator": generator}
    return [
        torch.randint(columns, (rows,), **own)
        if kind == "labels"
        else torch.randn(shapes[kind], dtype=dtype, **own)
        for kind in case.arguments
    ]


def ours_of(name: str) -> Callable[..., Tensor]:
    return getattr(import_module(f"gradform.generated.{name}"), name)


def ligers_of(case: Case) -> Callable[..., Tensor] | None:
    """Liger's function, where its package is."""
    if importlib.util.find_spec("liger_kernel") is None:
        return None
    name, *more = case.ligers
    function = getattr(import_module("liger_kernel.ops"), f"Liger{name}Function")

    def ligers(*arguments):
        found = function.apply(*arguments, *more)
        return found[0] if isinstance(found, tuple) else found

    return ligers


def both_ways(function: Callable[..., Tensor], given: Sequence[Tensor]) -> Callable[[], tuple]:
    """What computes the output and the gradients, of arguments of its own."""
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in given]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    output = function(*[leaf.detach().clone() for leaf in leaves])
    generator = torch.Generator(output.device).manual_seed(1)
    upstream = torch.ones_like(output)
    if output.ndim:
        drawn = torch.randn(output.shape, device=output.device, generator=generator)
        upstream = drawn.bfloat16().to(output.dtype)

    def run():
        output = function(*leaves)
        return output, *torch.autograd.grad(output, wanted, upstream)

    return run


def apart(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The largest difference, relative to the largest entry of each."""
    pairs = zip(ours, theirs, strict=True)
    return max(((o - t).abs().max() / t.abs().max()).item() for o, t in pairs)


def peak_of(run: Callable[[], tuple]) -> int:
    """Bytes at the peak, beyond those that are there before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def measured(name: str, case: Case, rows: int, columns: int) -> str:
    """A line of ratios. Raises ValueError where gradform's results are not torch's."""
    from triton.testing import do_bench, get_dram_gbps

    given = drawn(case, rows, columns, "cuda", torch.bfloat16)
    exact = both_ways(case.torchs, [t.float() if t.is_floating_point() else t for t in given])()
    gap = apart(both_ways(ours_of(name), given)(), exact)
    if not gap <= TOLERANCE:
        raise ValueError(f"{name} {rows} x {columns}: {gap:.1e} from torch's in float32")
    del exact
    functions = {
        "gradform": ours_of(name),
        "torch": case.torchs,
        "compiled": torch.compile(case.torchs),
        "Liger": ligers_of(case),
    }
    times, peaks = {}, {}
    for contender, function in functions.items():
        if function is not None:
            run = both_ways(function, given)
            run()  # compiles
            peaks[contender] = peak_of(run)
            times[contender] = do_bench(run, return_mode="median")
    ours, peak = times.pop("gradform"), peaks.pop("gradform")
    share = case.moved * rows * columns * BYTES / (ours * 1e6) / get_dram_gbps()
    words = [
        f"{contender} {ours / their:.2f} time, {peak / max(1, peaks[contender]):.2f} memory"
        for contender, their in times.items()
    ]
    size = f"{rows} x {columns}"
    return f"{name:14} {size:14} {ours:8.3f} ms  {share:4.0%} of bandwidth   {'   '.join(words)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: no GPU")
        return
    import_module("gradform.generated").use("triton")
    print(f"{torch.cuda.get_device_name()}, bfloat16, forward and backward")
    for name in options.names or CASES:
        own = [(options.rows, options.columns)] if options.rows and options.columns else []
        for rows, columns in own or CASES[name].sizes:
            print(measured(name, CASES[name], rows, columns), flush=True)


if __name__ == "__main__":
    main()
