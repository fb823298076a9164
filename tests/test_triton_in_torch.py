"""Kernels in Triton where torch looks on: what torch.compile makes is made of the lines, and
nothing in a call waits for the device, which a CUDA graph could not capture. On the interpreter:
`make test-triton`.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import pytest
import torch
from test_triton_values import (
    EVERYTHING,
    INTERPRETED,
    TOLERANCES,
    arguments_of,
    assert_same,
    kernels_called,
    of,
    outcome,
)
from torch.utils._python_dispatch import TorchDispatchMode

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]
# What reads entries off the device, or makes a shape of them.
WAITING = {"_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero"}
WHOLE = {"backend": "aot_eager", "fullgraph": True}
X = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "softmax_nll", "mse_sum", "linear"])
def test_what_torch_compiles_is_of_the_lines(name, dtype):
    """In one graph, which fuses them as well."""
    emitted = of(name)
    arguments = arguments_of(emitted, 17, dtype)
    wanted = [name for name in emitted.inputs if name in arguments]
    assert emitted.module and emitted.definition.outputs  # Dynamo sees through no lock
    with generated.use("torch"):
        theirs = outcome(emitted, arguments, wanted)
    compiled = torch.compile(lambda **given: emitted.function(**given) * 1, **WHOLE)
    with kernels_called(emitted) as called:
        ours = outcome(Compiled(compiled), arguments, wanted)
    assert_same(ours, theirs, TOLERANCES[dtype])
    assert not called


@dataclass
class Compiled:
    function: Callable


def test_a_target_that_is_chosen_later_is_seen():
    emitted = of("softmax")
    compiled = torch.compile(emitted.function, **WHOLE)
    expected = compiled(x=X)
    with kernels_called(emitted) as called:
        torch.testing.assert_close(compiled(x=X), expected)
        assert not called
        torch.testing.assert_close(emitted.function(x=X), expected)
    assert called == ["forward"]


def test_a_row_that_is_too_long_runs_on_torch(monkeypatch):
    """Where a kernel has no loop over chunks."""
    emitted = of("group_norm")
    own = import_module("generated.triton.group_norm")
    records = [getattr(own, name) for name in import_module("generated.triton._running").every(own)]
    limits = import_module("generated.triton._rules").limits
    arguments, most = arguments_of(emitted, 17), limits.resident
    with generated.use("torch"):
        theirs = outcome(emitted, arguments, emitted.inputs)
    for record in records:
        monkeypatch.setattr(record, "functions", record.functions[:1])
    for resident in (8, most):
        monkeypatch.setattr(limits, "resident", resident)
        for record in records:
            record.launches.clear()
        with kernels_called(emitted) as called, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            assert_same(outcome(emitted, arguments, emitted.inputs), theirs, 1e-12)
        assert bool(called) == (resident > 8)


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
        (own,) = torch.autograd.grad(compiled(x).sin().sum(), x)
        torch.testing.assert_close(own, gradient)
        for strict in (False, True):
            program = torch.export.export(Called(softmax), (X,), strict=strict)
            assert "triton" not in program.graph_module.code
        assert not called


class Called(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


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
    serving = import_module("generated.triton._serving")
    monkeypatch.setattr(serving, "_len_torch_dispatch_stack", lambda: 0)
    monkeypatch.setattr(emitted.module, "_in_range", lambda *given: None, raising=False)
    arguments = arguments_of(emitted, 17)
    with kernels_called(emitted) as called, Waits() as waits:
        outcome(emitted, arguments, [name for name in emitted.inputs if name in arguments])
    assert called and not waits.found
