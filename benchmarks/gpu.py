"""Measure every function that has kernels in Triton, beside torch, torch.compile and Liger's
kernels (the package liger-kernel, where it is installed).

    PYTHONPATH=.:tests python benchmarks/gpu.py [NAME ...] [--rows N --columns C] [--dtype float32]
        [--set label_smoothing=0.1 ...] [--optional]

Forward and backward together. First the GPU's time (the sum of its kernels), the share of what a
copy moves in this time if every array passes once, the number of kernels, the time on the host of a
call so small that nothing waits for the GPU, the memory at the peak, and the largest difference
from the reference in a wider dtype. Then ratios for each contender: GPU time, host time, memory;
below 1, gradform takes less. Where torch has no such function, "lines" is gradform's own forward
in torch, differentiated by autograd. "By hand" is a Function with two launches and nothing around
them. A function that fails says so, and the others go on.

Arguments are drawn from the definition of a function: optional ones are passed if they have a
gradient, or else with --optional, and what is called a target gets none, as in training; --set
chooses numbers, of the functions that have them. Beside these options there are only the lines.
Liger's cross entropy and SwiGLU write gradients over their arguments, so each contender has a copy
of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from math import prod
from pathlib import Path
from unittest.mock import patch

import torch
from gallery import EVERYTHING, Emitted
from gpu_beside import TORCHS, by_hand, ligers_of
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from derive.language.symbols import Axes, Axis
from gradform import generated

ROWS, COLUMNS, CLASSES = 8192, 4096, 32000
SMALL = (64, 128)  # rows and columns at which a call takes the host longer than the GPU
SHORT = 16  # the longest axis there of those that have `SIZES`
WITHOUT_GRADIENT = {"target"}
TOLERANCE = 0.03  # of the largest entry of each result: some units of bfloat16's last place
CANCELLED = 1e-3
MOST = {"host": 7, "calls": 200, "warm": 3, "gpu": 6}  # rounds of a measurement
COPIED = 2**30  # bytes

# Where an array has more axes than rows and columns: the lengths of the independent axes.
ATTENTION = (64, 1024, 64, 1024, 64)
SIZES: dict[str, tuple[int, ...]] = {
    "alpha_compositing": (65536, 128, 3),
    "biased_attention": ATTENTION,
    "bilinear": (4096, 128, 128, 128),
    "causal_attention": ATTENTION,
    "conv1d": (32, 256, 1024, 256, 3),
    "conv2d": (32, 64, 56, 56, 64, 3, 3),
    "cox": (2**20,),
    "cross_entropy_probabilities": (ROWS, CLASSES, 1),
    "embedding": (16384, CLASSES, 1024),
    "gaussian_process": (1024, 16),
    "group_norm": (ROWS, 8, COLUMNS // 8, 1),
    "gru_cell": (4096, 1024, 1024),
    "instance_norm": (32, 256, COLUMNS),
    "js_div": (ROWS, CLASSES),
    "kl_div": (ROWS, CLASSES),
    "kl_div_log_target": (ROWS, CLASSES),
    "linear": (ROWS, 4096, 4096),
    "linear_attention": (64, 1024, 64, 64),
    "lstm_cell": (4096, 1024, 1024),
    "masked_attention": ATTENTION,
    "mlp": (ROWS, 8, 64, 32, 512),
    "rnn_cell": (4096, 1024, 1024),
    "rotary_embedding": (256, 1024, 128),
    "scaled_dot_product_attention": ATTENTION,
    "selective_scan": (8, 1024, 512, 16),
}


@dataclass(frozen=True)
class Measured:
    """Of a forward and a backward: milliseconds of the GPU, its kernels, microseconds of the host,
    bytes at the peak beyond those that are there before.
    """

    milliseconds: float
    kernels: float
    microseconds: float
    bytes: int


@dataclass(frozen=True)
class Setting:
    """Where and how arguments are drawn; what measures two runs, of which the second is so small
    that the host is what takes the time; and what a copy moves, in bytes a second.
    """

    measure: Callable[[Callable, Callable], Measured]
    copied: float
    device: str = "cuda"
    dtype: torch.dtype = torch.bfloat16
    rows: int = 0  # 0: those of the function
    columns: int = 0
    numbers: Mapping[str, float] = field(default_factory=dict)
    optional: bool = False  # also those without a gradient


# -- arguments ------------------------------------------------------------


def with_kernels() -> list[Emitted]:
    """All functions of ``generated/triton``."""
    folder = Path(generated.__file__).parent / "triton"
    names = {file.stem for file in folder.glob("[a-z]*.py")}
    return [emitted for emitted in EVERYTHING if emitted.snake in names]


def lengths_of(emitted: Emitted, rows: int = 0, columns: int = 0) -> list[int]:
    """Of the independent axes. Raises ValueError for a function that needs an entry in `SIZES`."""
    axes, own = emitted.definition.independent_axes, SIZES.get(emitted.snake)
    if own is not None:
        most = SHORT if (rows, columns) == SMALL else max(own)
        return [min(length, most) for length in own]
    rows, last = rows or ROWS, columns or (CLASSES if emitted.definition.labels else COLUMNS)
    if len(axes) == 1:
        return [rows * last]
    if len(axes) == 2:
        return [rows, last]
    if len(axes) == 3 and isinstance(axes[-1], Axes):
        return [rows, last, 1]
    raise ValueError(f"{emitted}: no lengths for {axes}; put them into SIZES")


def drawn(emitted: Emitted, lengths: Sequence[int], setting: Setting) -> dict[str, object]:
    """The arguments by name. Axes that may be absent and have one entry are."""
    definition = emitted.definition
    absent = {
        axis
        for axis, length in zip(definition.independent_axes, lengths, strict=True)
        if isinstance(axis, Axes) and length == 1
    }
    left_out = set() if setting.optional else extra_of(emitted)
    own = emitted.arguments(dtype=setting.dtype, lengths=lengths, device=setting.device)
    homes = {t.name: t.home for t in definition.arguments}
    known = {t.name for t, _ in definition.scalars}
    return {name: number for name, number in setting.numbers.items() if name in known} | {
        name: without(value, homes[name], absent) if isinstance(value, Tensor) else value
        for name, value in own.items()
        if name not in left_out
    }


def extra_of(emitted: Emitted) -> set[str]:
    """The optional arguments that have no gradient."""
    return {t.name for t, _ in emitted.definition.optional} - {*emitted.inputs}


def is_usual(emitted: Emitted, given: Mapping[str, object]) -> bool:
    """Whether torch's functions and Liger's take the same arguments."""
    return not given.keys() & ({t.name for t, _ in emitted.definition.scalars} | extra_of(emitted))


def without(tensor: Tensor, home: Sequence[Axis], absent: set[Axis]) -> Tensor:
    pairs = zip(home, tensor.shape, strict=True)
    return tensor.reshape([length for axis, length in pairs if axis not in absent])


def wanted_of(emitted: Emitted, given: dict[str, object]) -> list[str]:
    """The arguments that get a gradient: all, if that were none."""
    known = [name for name in emitted.inputs if name in given]
    return [name for name in known if name not in WITHOUT_GRADIENT] or known


# -- runs -------------------------------------------------------------------


def outputs_of(found) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def both_ways(
    function: Callable, given: dict[str, object], wanted: Sequence[str], upstream: Sequence[Tensor]
) -> Callable[[], tuple]:
    """A function that computes outputs and gradients, with arguments of its own."""
    leaves = {
        name: value.clone().requires_grad_(name in wanted) if isinstance(value, Tensor) else value
        for name, value in given.items()
    }
    inputs = [leaves[name] for name in wanted]

    def run():
        outputs = outputs_of(function(**leaves))[: len(upstream)]
        pairs = zip(outputs, upstream, strict=True)
        arriving = [u if u.dtype is o.dtype else u.to(o.dtype) for o, u in pairs]
        return *outputs, *torch.autograd.grad(outputs, inputs, arriving, allow_unused=True)

    return run


def upstream_of(function: Callable, given: dict[str, object]) -> list[Tensor]:
    """An upstream gradient for each output: 1 of a loss."""
    with torch.no_grad():
        outputs = outputs_of(function(**given))
    generator = torch.Generator(outputs[0].device).manual_seed(1)
    own = {"device": outputs[0].device, "generator": generator}
    return [
        torch.randn(o.shape, **own).to(o.dtype) if o.ndim else torch.ones_like(o) for o in outputs
    ]


def apart(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The largest difference, relative to the largest entry of each; of one that is hardly anything
    beside the others, where terms cancel, to a share of theirs.
    """
    largest = [t.abs().max().item() for t in theirs]
    scales = [max(each, CANCELLED * max(largest)) for each in largest]
    pairs = zip(ours, theirs, scales, strict=True)
    gaps = [(o - t).abs().max().item() / (scale or 1) for o, t, scale in pairs]
    return max(gap if gap == gap else float("inf") for gap in gaps)


class Reads(TorchDispatchMode):
    """The memory that operations read."""

    def __init__(self):
        super().__init__()
        self.found: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not function.is_view:
            tensors = (t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor))
            self.found |= {memory_of(t) for t in tensors}
        return function(*args, **kwargs or {})


def memory_of(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def least(emitted: Emitted, given: dict[str, object], wanted: Sequence[str]) -> int:
    """Bytes that a forward and a backward move if every array passes once. The gradient of a loss
    can be computed beside it; otherwise the backward reads what that of the lines reads of what was
    saved, which has the dtype of the inputs. Counted in float32, in which no gradient is cast.
    """
    saved: list[Tensor] = []
    size = given[wanted[0]].element_size()

    def noted(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    def moved(tensors) -> int:
        once = {memory_of(t): t for t in tensors}.values()
        return sum(t.numel() * (size if t.is_floating_point() else t.element_size()) for t in once)

    with FakeTensorMode(), generated.use("torch"):
        leaves = {
            name: torch.empty(
                value.shape, dtype=torch.float32 if value.is_floating_point() else value.dtype
            ).requires_grad_(name in wanted)
            if isinstance(value, Tensor)
            else value
            for name, value in given.items()
        }
        with torch.autograd.graph.saved_tensors_hooks(noted, lambda tensor: tensor):
            outputs = outputs_of(own_function(emitted)(**leaves))
        upstream = [torch.empty_like(output) for output in outputs]
        inputs = [leaves[name] for name in wanted]
        with Reads() as reads:
            gradients = torch.autograd.grad(outputs, inputs, upstream)
    arguments = [t for t in leaves.values() if isinstance(t, Tensor)]
    found = moved([*arguments, *outputs]) + moved(gradients)
    if all(not output.ndim for output in outputs):
        return found
    return found + moved([*upstream, *(t for t in saved if memory_of(t) in reads.found)])


# -- contenders -----------------------------------------------------------


def own_function(emitted: Emitted) -> Callable:
    return getattr(emitted.module, emitted.snake)


def by_autograd(emitted: Emitted):
    """A context in which torch differentiates the lines of a function, as in forward mode."""
    if not hasattr(emitted.module, "_by_lines"):
        return nullcontext()
    return patch.object(emitted.module, "_by_lines", lambda: True)


def reference(emitted: Emitted, usual: bool) -> tuple[str, Callable, Callable]:
    """torch's function to compare with: its name, the function, and the context it runs in."""
    if usual and emitted.snake in TORCHS:
        return "torch", TORCHS[emitted.snake], nullcontext
    return "lines", own_function(emitted), lambda: by_autograd(emitted)


def contenders(emitted: Emitted, usual: bool) -> Iterator[tuple[str, Callable, Callable]]:
    name, theirs, inside = reference(emitted, usual)
    yield name, theirs, inside
    yield "compiled", torch.compile(theirs, dynamic=False), inside
    for other, function in (("Liger", ligers_of), ("by hand", by_hand)):
        if usual and (own := function(emitted.snake)):
            yield other, own, nullcontext


# -- rows -------------------------------------------------------------------


def row(emitted: Emitted, setting: Setting) -> str:
    """A line of figures."""
    lengths = lengths_of(emitted, setting.rows, setting.columns)
    given = drawn(emitted, lengths, setting)
    small = drawn(emitted, lengths_of(emitted, *SMALL), setting)
    wanted = wanted_of(emitted, given)

    def measured(function: Callable) -> Measured:
        pair = (
            both_ways(function, arguments, wanted, upstream)
            for arguments, upstream in ((given, upstreams[0]), (small, upstreams[1]))
        )
        return setting.measure(*pair)

    ours = own_function(emitted)
    upstreams = [upstream_of(ours, arguments) for arguments in (given, small)]
    gap = gap_of(emitted, given, wanted, upstreams[0])
    found = measured(ours)
    share = least(emitted, given, wanted) / (found.milliseconds / 1e3) / setting.copied
    wrong = "" if gap <= TOLERANCE else " WRONG"
    words = [
        f"{emitted!s:28} {size_of(given):22} {found.milliseconds:9.3f} ms {share:5.0%} of a copy "
        f"{found.kernels:3.0f} kernels {found.microseconds:6.0f} us {found.bytes / 2**20:8.1f} MiB "
        f"error {gap:.0e}{wrong}"
    ]
    with generated.use("torch"):
        for name, function, inside in contenders(emitted, is_usual(emitted, given)):
            with inside():
                words.append(f"{name} {beside(found, measured, function)}")
    return "   ".join(words)


def gap_of(emitted: Emitted, given, wanted: Sequence[str], upstream: Sequence[Tensor]) -> float:
    """How far the results are from those of the reference in a wider dtype."""

    def widened(value):
        wide = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(torch.promote_types(value.dtype, torch.float32)) if wide else value

    _, theirs, inside = reference(emitted, is_usual(emitted, given))
    ours = both_ways(own_function(emitted), given, wanted, upstream)()
    wide = {name: widened(value) for name, value in given.items()}
    with generated.use("torch"), inside():
        exact = both_ways(theirs, wide, wanted, [widened(each) for each in upstream])()
    return apart(ours, exact)


def beside(ours: Measured, measured: Callable, function: Callable) -> str:
    """Ratios of GPU time, host time and memory."""
    try:
        theirs = measured(function)
    except Exception as error:
        return f"failed: {said(error)}"
    pairs = (
        (ours.milliseconds, theirs.milliseconds),
        (ours.microseconds, theirs.microseconds),
        (ours.bytes, theirs.bytes),
    )
    return " / ".join(f"{own / max(their, 1e-9):.2f}" for own, their in pairs)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def size_of(given: dict[str, object]) -> str:
    """The shape of the largest argument."""
    tensors = (value for value in given.values() if isinstance(value, Tensor))
    return " x ".join(map(str, max((t.shape for t in tensors), key=prod)))


def rows(every: Sequence[Emitted], setting: Setting) -> Iterator[tuple[bool, str]]:
    """Of each function, whether it is right, and its line."""
    for emitted in every:
        try:
            line = row(emitted, setting)
        except Exception as error:
            yield False, f"{emitted!s:28} failed: {said(error)}"
        else:
            yield " WRONG" not in line, line


# -- on a GPU ---------------------------------------------------------------


def on_gpu(run: Callable, small: Callable) -> Measured:
    milliseconds, kernels = time_on_gpu(run)
    return Measured(milliseconds, kernels, time_on_host(small), peak_of(run))


def time_on_gpu(run: Callable) -> tuple[float, float]:
    """Milliseconds of all kernels of a run, and how many there are."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    for _ in range(MOST["warm"]):  # compiles
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(MOST["gpu"]):
            run()
        torch.cuda.synchronize()
    kernels = [
        event
        for event in seen.events()
        if event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False)
    ]
    microseconds = sum(event.device_time for event in kernels)
    return microseconds / MOST["gpu"] / 1e3, len(kernels) / MOST["gpu"]


def time_on_host(run: Callable) -> float:
    """Microseconds until a call returns, whatever the GPU still does: the least of some rounds."""
    best = float("inf")
    for turn in range(MOST["host"] + 1):  # the first compiles
        start = time.perf_counter()
        for _ in range(MOST["calls"]):
            run()
        taken = (time.perf_counter() - start) / MOST["calls"] * 1e6
        best = min(best, taken) if turn else best
        torch.cuda.synchronize()
    return best


def peak_of(run: Callable) -> int:
    """Bytes at the peak, beyond those that are there before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def copied_on_gpu() -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.ones(COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    milliseconds, _ = time_on_gpu(lambda: target.copy_(source))
    return 2 * COPIED / (milliseconds / 1e3)


def versions() -> str:
    """Of what is compared."""
    found = []
    for package in ("torch", "triton", "liger-kernel"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def chosen(setting: Setting) -> str:
    numbers = [f", {name} {number:g}" for name, number in setting.numbers.items()]
    return "".join(numbers) + ", with all that is optional" * setting.optional


def report(every: Sequence[Emitted], setting: Setting, card: str) -> int:
    """Print all lines; the exit status."""
    print(
        f"{card}: a copy moves {setting.copied / 1e9:.0f} GB/s; {versions()}; {setting.dtype}, "
        f"forward and backward{chosen(setting)}; ratios of GPU time / host time / memory"
    )
    right = 0
    for is_right, line in rows(every, setting):
        right += is_right
        print(line, flush=True)
        torch.cuda.empty_cache()
        torch._dynamo.reset()
    print(f"{right} of {len(every)} functions measured and right")
    return int(right < len(every))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of functions; all by default")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--set", nargs="+", default=[], metavar="NUMBER=VALUE")
    parser.add_argument("--optional", action="store_true", help="pass weights and the like, too")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: no GPU")
        return 0
    every = [e for e in with_kernels() if not options.names or e.snake in options.names]
    generated.use("triton")
    numbers = {name: float(value) for name, _, value in (o.partition("=") for o in options.set)}
    setting = Setting(
        on_gpu,
        copied_on_gpu(),
        dtype=getattr(torch, options.dtype),
        rows=options.rows,
        columns=options.columns,
        numbers=numbers,
        optional=options.optional,
    )
    return report(every, setting, torch.cuda.get_device_name())


if __name__ == "__main__":
    sys.exit(main())
