"""Kernels in Triton where torch looks on: what is compiled runs the lines, and nothing in a call
waits for the device, which a CUDA graph could not capture. On the interpreter: `make test-triton`.
"""

from importlib import import_module

import pytest
import torch
from test_triton_values import EVERYTHING, INTERPRETED, arguments_of, kernels_called, of, outcome
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]
NAMES = ["softmax", "layer_norm", "softmax_nll", "mse"]
# What reads entries off the device, or makes a shape of them.
WAITING = {"_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero"}


@pytest.mark.parametrize("name", NAMES)
def test_what_torch_compiles_are_the_lines(name):
    """In one graph, forward and backward, which a backend is free to fuse with what is around."""
    emitted = of(name)
    arguments = arguments_of(emitted, 17)
    first = arguments[emitted.inputs[0]].requires_grad_()

    def step(*values):
        return emitted.function(**dict(zip(arguments, values, strict=True))) * 2

    def both(function):
        output = function(*arguments.values())
        return output, *torch.autograd.grad(output.sin().sum(), first)

    with kernels_called(emitted) as called:
        eager = both(step)
        assert called
        called.clear()
        compiled = both(torch.compile(step, backend="aot_eager", fullgraph=True))
        assert not called
    for own, other in zip(compiled, eager, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-14)


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
