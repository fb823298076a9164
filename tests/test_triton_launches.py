"""How much is launched for a forward and its backward: kernels in Triton, and what torch computes
between them. On the interpreter: `make test-triton`.
"""

from importlib import import_module

import pytest
import torch
from test_triton_values import INTERPRETED, of
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]
# What launches nothing, beside views.
NOTHING = {"empty", "new_empty", "empty_like", "empty_strided", "detach", "promote_types"}
MOST = {
    "batch_norm": 4,
    "batch_norm_biased": 4,
    "layer_norm": 3,
    "group_norm": 3,
    "rms_norm": 3,
    "softmax": 2,
    "info_nce": 9,
    **dict.fromkeys(("nll", "softmax_nll", "hinge_embedding"), 3),
    **dict.fromkeys(("mse", "huber", "focal", "kl_div", "dpo", "bce_with_logits"), 4),
    **dict.fromkeys(("cross_entropy", "cross_entropy_z_loss", "cross_entropy_softcap"), 5),
}
USUALLY = {"cross_entropy": 4, "bce_with_logits": 4}  # where nothing optional is passed


class Launched(TorchDispatchMode):
    """What torch computes, by the names of its operations."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, returned = function.overloadpacket.__name__, function._schema.returns
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in returned)
        if name not in NOTHING and not is_view:
            self.found.append(name)
        return function(*args, **kwargs or {})


def launched(emitted, monkeypatch, dtype: torch.dtype, left_out=frozenset()) -> list[str]:
    """Of a forward and its backward, all gradients of it."""
    from triton.runtime.interpreter import GridExecutor

    serving, mode, run = (
        import_module("generated.triton._serving"),
        Launched(),
        GridExecutor.__call__,
    )

    def launch(kernel, *given, **named):
        mode.found.append(f"{kernel.fn.__name__} in Triton")
        with _disable_current_modes():
            return run(kernel, *given, **named)

    monkeypatch.setattr(serving, "_len_torch_dispatch_stack", lambda: 0)
    monkeypatch.setattr(GridExecutor, "__call__", launch)
    leaves = {n: t for n, t in emitted.leaves(dtype=dtype).items() if n not in left_out}
    wanted = [leaves[name] for name in emitted.inputs]
    with generated.use("triton"):
        with mode:
            output = emitted.function(**leaves)
        upstream = torch.ones_like(output)
        with mode:
            torch.autograd.grad(output, wanted, upstream)
    return mode.found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MOST)
def test_no_more_is_launched_than_it_takes(name, dtype, monkeypatch):
    """A gradient that autograd converts, as the backward does not know its format, is beside."""
    found = launched(of(name), monkeypatch, dtype)
    own = [launch for launch in found if dtype is torch.float32 or launch != "_to_copy"]
    assert len(own) <= MOST[name], found
    assert len(found) - len(own) <= 1, found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", USUALLY)
def test_what_is_usual_takes_less(name, dtype, monkeypatch):
    emitted = of(name)
    left_out = {t.name for t, _ in emitted.definition.optional}
    found = launched(emitted, monkeypatch, dtype, left_out)
    assert len(found) <= USUALLY[name], found
