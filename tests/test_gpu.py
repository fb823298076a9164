"""Kernels in Triton compiled for the GPU that is there: values and gradients beside the lines in
float64, the same bits each time, CUDA graphs, and torch.compile. A sample of the same tests runs on
Triton's interpreter, so that they are known to work where there is no GPU: `make test-triton`.
"""

import ast
import importlib.util
import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod

import pytest
import torch
from gallery import EVERY_REDUCTION, EVERYTHING
from test_triton_values import (
    INTERPRETED,
    SMALL,
    TOLERANCES,
    arguments_of,
    assert_same,
    kernels_called,
    lengths_of,
    outcome,
    upstream_of,
)

import generated
from derive.language.symbols import Axis

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not INTERPRETED
        and not (torch.cuda.is_available() and importlib.util.find_spec("triton") is not None),
        reason="no GPU, or no Triton",
    ),
]

DEVICE = "cpu" if INTERPRETED else "cuda"
ODD, TILES, LONG = 17, 4097, 70_000  # entries of a row; the last has no room in registers
SIZES = (1, ODD) if INTERPRETED else (1, ODD, TILES, LONG)
MOST = 2**24  # entries of an array: longer rows are halved until all have no more
TIMES_LINES = 4  # how far kernels may be off, beside lines of the same dtype
TURNS = 3
ROWS = 33  # of sums over rows: no power of two, and more than a program adds up
SAMPLE = {
    *("softmax", "layer_norm", "rms_norm", "batch_norm", "group_norm", "cross_entropy"),
    *("softmax_nll", "mse", "mse_none", "swiglu", "norm_p", "linear", "embedding"),
}


def each(every, sample=SAMPLE):
    """A parameter for each function; those of the sample are interpreted, too."""
    marks = {True: [pytest.mark.triton], False: []}
    return pytest.mark.parametrize(
        "emitted", [pytest.param(e, id=str(e), marks=marks[str(e) in sample]) for e in every]
    )


dtypes = pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
two_dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)


@pytest.fixture(autouse=True)
def quiet():
    """A row may be too long for a kernel, which is said."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* runs on torch", RuntimeWarning)
        warnings.filterwarnings("ignore", ".*[Dd]eterministic", UserWarning)  # of torch's
        yield


def sizes_at(emitted, last: int, other: int = 5) -> dict[Axis, int]:
    definition = emitted.definition
    lengths = zip(definition.independent_axes, lengths_of(emitted, last, other), strict=True)
    return definition.sizes_from(definition.fitting(dict(lengths)))


def fitting(emitted, last: int, other: int = 5) -> int:
    """``last``, or less where an array on the way would have more than `MOST` entries."""
    definition = emitted.definition
    homes = [t.home for t in (*definition.arguments, *(s.tensor for s in definition.statements))]
    whole = sizes_at(emitted, last, other)
    if max(prod(whole[axis] for axis in home) for home in homes) <= MOST:
        return last
    return fitting(emitted, last // 2 | 1, other)


def has_values(emitted, last: int) -> bool:
    """Whether the defaults of its numbers permit this size: a variance needs two entries."""
    whole = sizes_at(emitted, last)
    return emitted.definition.permits(emitted.definition.defaults_at(whole), whole)


def given_of(emitted, last: int, dtype: torch.dtype, other: int = 5) -> dict[str, object]:
    return arguments_of(emitted, fitting(emitted, last, other), dtype, other)


def on_device(arguments: dict[str, object], dtype: torch.dtype | None = None) -> dict[str, object]:
    """The same on the device, or where there is a ``dtype`` in that, on the CPU."""

    def moved(value):
        if not isinstance(value, torch.Tensor):
            return value
        if dtype is None:
            return value.to(DEVICE)
        return value.to(dtype) if value.is_floating_point() else value

    return {name: moved(value) for name, value in arguments.items()}


def wanted_of(emitted, arguments) -> list[str]:
    return [name for name in emitted.inputs if name in arguments]


def beside_exact(emitted, function: Callable, arguments: dict[str, object]) -> None:
    """What a function computes, beside the lines in float64: no further from them than the dtype
    allows, or than the lines are in the same dtype.
    """
    wanted = wanted_of(emitted, arguments)
    with generated.use("torch"):
        exact = outcome(emitted, on_device(arguments, torch.float64), wanted)
        lines = outcome(emitted, on_device(arguments), wanted)
    ours = outcome(Called(function), on_device(arguments), wanted)
    names = ["the output", *(f"d{name}" for name in wanted), *(f"d{name} again" for name in wanted)]
    least = [SMALL, *[least_of(exact)] * (len(names) - 1)]
    for name, own, line, best, small in zip(names, ours, lines, exact, least, strict=True):
        assert own.shape == line.shape and own.dtype == line.dtype, name
        wide = own.cpu().double(), line.cpu().double(), best
        assert_near(name, *wide, TOLERANCES[own.dtype], small)


def least_of(exact: Sequence[torch.Tensor]) -> float:
    """What a gradient is compared with where it is nothing because terms cancel: a share of the
    largest one, or of what an entry counts for in the output.
    """
    output, *gradients = exact
    entries = max((gradient.numel() for gradient in gradients), default=1)
    counts = output.nan_to_num(0, 0, 0).abs().max().item() if output.ndim else 1 / entries
    return SMALL * max([counts, *(g.nan_to_num(0, 0, 0).abs().max().item() for g in gradients)])


def assert_near(name, own, line, best, tolerance: float, least: float) -> None:
    """Where the lines overflow in this dtype, so do the kernels."""
    finite = line.isfinite() & best.isfinite()
    assert torch.equal(own.isnan(), line.isnan()), name
    assert torch.equal(own[~finite].isfinite(), line[~finite].isfinite()), name
    if not finite.any():
        return
    of_ours, of_lines = ((each - best)[finite].abs().max().item() for each in (own, line))
    scale = max(best[finite].abs().max().item(), least)
    assert of_ours <= max(tolerance * scale, TIMES_LINES * of_lines), (name, of_ours, of_lines)


@dataclass
class Called:
    function: Callable


# -- values ---------------------------------------------------------------


@dtypes
@each(EVERY_REDUCTION)
def test_values_and_gradients(emitted, dtype):
    """Of every size, with and without what is optional."""
    optional = {t.name for t, _ in emitted.definition.optional}
    cut_off = INTERPRETED and dtype is torch.bfloat16  # an output of 1 is less, which cancels
    for size in (each for each in SIZES if has_values(emitted, each)):
        arguments = given_of(emitted, size, dtype)
        with kernels_called(emitted) as called:
            beside_exact(emitted, emitted.function, arguments)
            assert called or size == LONG
            if optional and size != LONG and not cut_off:
                needed = {n: v for n, v in arguments.items() if n not in optional}
                beside_exact(emitted, emitted.function, needed)


# -- the same bits ----------------------------------------------------------


@contextmanager
def ordered():
    """What torch adds up between kernels has an order; memory that nobody wrote is no number."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def assert_same_bits(first, again) -> None:
    for own, other in zip(first, again, strict=True):
        assert torch.equal(own.nan_to_num(), other.nan_to_num())
        assert torch.equal(own.isnan(), other.isnan())


@two_dtypes
@each(EVERYTHING)
def test_the_same_bits_each_time(emitted, dtype):
    """Programs that raced with each other would leave others."""
    for size, other in ((ODD, 5),) if INTERPRETED else ((ODD, ROWS), (TILES, ROWS), (LONG, 5)):
        arguments = on_device(given_of(emitted, size, dtype, other))
        wanted = wanted_of(emitted, arguments)
        with ordered(), kernels_called(emitted) as called:
            first, *others = (outcome(emitted, arguments, wanted) for _ in range(TURNS))
        assert called or size == LONG
        with generated.use("torch"):
            lines = outcome(emitted, arguments, wanted)
        for own, line in zip(first, lines, strict=True):
            assert torch.equal(own.isfinite(), line.isfinite())
        for again in others:
            assert_same_bits(first, again)


# -- CUDA graphs ------------------------------------------------------------

compiled_only = pytest.mark.skipif(INTERPRETED, reason="not compiled")
# By what a module reads of torch: why it cannot be captured, or why a replay may have other bits.
NOT_CAPTURED = {"linalg": "torch.linalg asks the device whether a matrix has an inverse"}
OTHER_BITS = {"index_add": "torch's index_add adds with atomics"}


def reason_in(emitted, reasons: dict[str, str]) -> str:
    nodes = ast.walk(ast.parse(inspect.getsource(emitted.module)))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return next((why for what, why in reasons.items() if what in read), "")


@compiled_only
@two_dtypes
@each(EVERYTHING, ())
def test_a_captured_graph(emitted, dtype):
    """It replays the same bits, and computes with what its inputs hold then."""
    if why := reason_in(emitted, NOT_CAPTURED):
        pytest.skip(why)
    last = fitting(emitted, TILES)
    lengths = lengths_of(emitted, last)
    drawn = [on_device(emitted.arguments(s, dtype, lengths)) for s in range(2)]
    wanted = wanted_of(emitted, drawn[0])
    held = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in drawn[0].items()}
    with kernels_called(emitted):
        expected = [outcome(emitted, arguments, wanted) for arguments in drawn]
        upstream = upstream_of(expected[0][0])  # from the host, which a graph copies nothing of
        graph, found = captured(partial(outcome, emitted, held, wanted, upstream))
    for arguments, eager in zip([*drawn, drawn[0]], [*expected, expected[0]], strict=True):
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor):
                held[name].copy_(value)
        graph.replay()
        if reason_in(emitted, OTHER_BITS):
            assert_same(found, eager, TOLERANCES[dtype])
        else:
            assert_same_bits(found, eager)


def captured(run: Callable[[], list]) -> tuple[torch.cuda.CUDAGraph, list]:
    """As torch says to: after some calls beside the stream that everything else uses."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run()
    return graph, found


# -- torch.compile ----------------------------------------------------------


@two_dtypes
@each(EVERYTHING, {"rms_norm", "softmax_nll"})
def test_torch_compiles_it_whole(emitted, dtype):
    assert emitted.module and emitted.definition.outputs  # Dynamo sees through no lock
    torch._dynamo.reset()
    backend = "aot_eager" if INTERPRETED else "inductor"
    function = torch.compile(
        lambda **given: emitted.function(**given) * 1, backend=backend, fullgraph=True
    )
    with generated.use("triton"):
        beside_exact(emitted, function, given_of(emitted, ROWS, dtype))
