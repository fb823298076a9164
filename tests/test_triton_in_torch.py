"""Kernels in Triton where torch looks on: they are operations in what torch.compile makes, and
nothing in a call waits for the device, which a CUDA graph could not capture. On the interpreter:
`make test-triton`.
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from test_triton_values import (
    EVERYTHING,
    INTERPRETED,
    ROUNDED,
    TOLERANCES,
    arguments_of,
    assert_same,
    kernels_called,
    of,
    outcome,
)
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]
# What reads entries off the device, or makes a shape of them.
WAITING = {"_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero"}
X = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


class Compiled:
    """A function of the gallery as torch compiles it, with something beside it in the graph."""

    def __init__(self, emitted, backend="aot_eager", **how):
        assert emitted.module and emitted.definition.outputs  # Dynamo sees through no lock

        def function(**arguments):
            return emitted.function(**arguments) * 1

        self.function = torch.compile(function, backend=backend, fullgraph=True, **how)


def compiled_beside_lines(emitted, arguments, **how) -> list[str]:
    """The kernels that were called in what torch compiled, forward and backward."""
    tensors = [t for t in arguments.values() if isinstance(t, torch.Tensor)]
    dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.float64)
    wanted = [name for name in emitted.inputs if name in arguments]
    with generated.use("torch"):
        theirs = outcome(emitted, arguments, wanted)
    with kernels_called(emitted) as called:
        ours = outcome(Compiled(emitted, **how), arguments, wanted)
    assert_same(ours, theirs, TOLERANCES[dtype] * ROUNDED.get(emitted.snake, 1))
    return called


@pytest.mark.parametrize("emitted", EVERYTHING, ids=str)
def test_what_torch_compiles_keeps_the_kernels(emitted):
    """In one graph, with and without what is optional."""
    arguments = arguments_of(emitted, 17, torch.float32)
    optional = {t.name for t, _ in emitted.definition.optional}
    assert compiled_beside_lines(emitted, arguments, backend="eager")
    if optional:
        left = {n: v for n, v in arguments.items() if n not in optional}
        compiled_beside_lines(emitted, left, backend="eager")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "softmax_nll", "mse_sum", "linear"])
def test_so_does_what_aot_traces(name, dtype):
    emitted = of(name)
    called = compiled_beside_lines(emitted, arguments_of(emitted, 17, dtype))
    lean = name == "layer_norm"  # which keeps the few numbers that it keeps outside
    assert any("forward" in own for own in called) and any("backward" in own for own in called)
    assert all("lean" in own for own in called) == lean


def test_so_does_inductor():
    emitted = of("softmax_nll")
    with torch._functorch.config.patch(donated_buffer=False):  # differentiated twice
        arguments = arguments_of(emitted, 17, torch.float32)
        assert compiled_beside_lines(emitted, arguments, backend="inductor")


def test_two_graphs_are_for_all_sizes():
    counter = CompileCounterWithBackend("aot_eager")
    emitted, rms_norm = of("rms_norm"), import_module("generated.rms_norm").rms_norm
    compiled = torch.compile(rms_norm, backend=counter, fullgraph=True, dynamic=True)
    with kernels_called(emitted) as called:
        for rows, size in ((4, 9), (8, 9), (5, 16), (7, 33)):
            x = torch.randn(rows, size, dtype=torch.float64, requires_grad=True)
            gain = torch.randn(size, dtype=torch.float64)
            y = compiled(x, gain)
            expected = torch.nn.functional.rms_norm(x, (size,), gain, 1e-5)
            upstream = torch.randn_like(y)
            own, other = (torch.autograd.grad(o, x, upstream)[0] for o in (y, expected))
            torch.testing.assert_close(y, expected)
            torch.testing.assert_close(own, other)
    assert called == ["forward", "backward"] * 4 and counter.frame_count <= 2


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_sizes_that_nobody_knows_before_it_runs(name):
    """Rows that a mask picks; lines compute where it picks none."""
    emitted, function = of(name), getattr(import_module(f"generated.{name}"), name)

    def picked(x, mask):
        return function(x[mask]) * 1

    mask = torch.tensor([True, False, True, True])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(picked, backend="aot_eager", fullgraph=True)
        with kernels_called(emitted) as called:
            torch.testing.assert_close(compiled(X, mask), picked(X, mask))
            called.clear()
            torch.testing.assert_close(compiled(X, mask), picked(X, mask))
            assert called
            assert compiled(X, mask & False).shape == (0, 9)


def test_a_target_that_is_chosen_later_is_compiled_again():
    emitted = of("softmax")
    compiled = Compiled(emitted).function
    with generated.use("torch"):
        expected = compiled(x=X)
    with kernels_called(emitted) as called:
        torch.testing.assert_close(compiled(x=X), expected)
        with generated.use("torch"):
            compiled(x=X)
        compiled(x=X)
    assert called == ["forward"] * 2


# Whether a kernel may refuse is known when its module is imported: this is for another process.
WITHOUT_CHUNKS = """
from importlib import import_module
import torch
launching = import_module("generated.triton._launching")
launching.Record.long = lambda *given, **how: lambda function: function
from test_triton_in_torch import arguments_of, compiled_beside_lines, of
limits = import_module("generated.triton._rules").limits
every = import_module("generated.triton.group_norm").table.kernels.every.values()
emitted, most = of("group_norm"), limits.resident
for dtype in (torch.float64, torch.bfloat16):
    arguments = arguments_of(emitted, 17, dtype)
    for limits.resident in (8, most):
        for kernel in every:
            kernel.launches.clear()
        torch._dynamo.reset()
        called = compiled_beside_lines(emitted, arguments)
        assert bool(called) == (limits.resident > 8), (dtype, called)
"""


def test_a_row_that_is_too_long_runs_on_torch():
    """Known when it runs: the operation has the same shapes, strides and dtypes."""
    folder = Path(__file__).parent
    command = [sys.executable, "-c", WITHOUT_CHUNKS]
    environment = {**os.environ, "PYTHONPATH": str(folder.parent)}
    subprocess.run(command, check=True, cwd=folder, env=environment, timeout=300)


def test_transforms_and_exports_are_of_the_lines():
    from generated.softmax import softmax, softmax_forward

    func, plain = torch.func, torch.softmax
    with kernels_called(of("softmax")) as called:
        gradient = func.grad(lambda x: plain(x, 1).sin().sum())(X)
        for ours, theirs in (
            (func.vmap(lambda row: softmax(row[None])[0]), plain(X, 1)),
            (func.grad(lambda x: softmax(x).sin().sum()), gradient),
        ):
            compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
            torch.testing.assert_close(compiled(X), theirs)
        x = X.clone().requires_grad_()
        compiled = torch.compile(softmax_forward, backend="aot_eager", fullgraph=True)
        (own,) = torch.autograd.grad(compiled(x).y.sin().sum(), x)
        torch.testing.assert_close(own, gradient)
        for strict in (False, True):
            program = torch.export.export(Called(softmax), (X,), strict=strict)
            assert "gradform" not in program.graph_module.code
        assert not called


class Called(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_second_derivatives_are_refused():
    from generated.softmax import softmax

    def twice(x):
        (first,) = torch.autograd.grad(softmax(x).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)

    x = X.clone().requires_grad_()
    with generated.use("triton"):
        y = torch.compile(softmax, backend="aot_eager", fullgraph=True)(x)
        (first,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="double backward"):
            torch.autograd.grad(first.sum(), x)
        compiled = torch.compile(twice, backend="aot_eager", fullgraph=True)
        seen = torch._dynamo.config.patch(trace_autograd_ops=True)
        with seen, pytest.raises(torch._dynamo.exc.Unsupported, match="double backward"):
            compiled(x)


class Waits(TorchDispatchMode):
    """Operations that wait for the device."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket.__name__ in WAITING:
            self.found.append(str(function))
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("emitted", EVERYTHING, ids=str)
def test_nothing_waits_for_the_device(emitted, monkeypatch):
    """A mode sees it, for which kernels do not give way here. Labels are read on a CPU alone."""
    monkeypatch.setattr(import_module("generated.triton._running"), "transformed", lambda: False)
    runtime = import_module("generated._runtime")
    monkeypatch.setattr(runtime.Arguments, "in_range", lambda *given: None)
    arguments = arguments_of(emitted, 17)
    with kernels_called(emitted) as called, Waits() as waits:
        outcome(emitted, arguments, [name for name in emitted.inputs if name in arguments])
    assert called and not waits.found
