"""Kernels in C++ read and write 16 bits as they are, and arrays in any order in memory."""

import os
import shutil
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from test_kernels import kernels_called, outcome
from test_kernels_node import built, in_cpp  # noqa: F401

from generated import kernels
from generated.kernels import _running

pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)
FORMATS = (torch.bfloat16, torch.float16)
formats = pytest.mark.parametrize("dtype", FORMATS, ids=str)
ROWS, COLUMNS = 37, 70
generator = torch.Generator().manual_seed(0)
X, Y = torch.randn(2, ROWS, COLUMNS, generator=generator, dtype=torch.float64)
GAIN, BIAS = torch.randn(2, COLUMNS, generator=generator, dtype=torch.float64)
LABELS = torch.randint(COLUMNS, (ROWS,), generator=generator)
# By the name of ours: torch's function, and the arguments of both.
CASES = {
    "silu": (F.silu, (X,)),
    "gelu": (F.gelu, (X,)),
    "swiglu": (lambda gate, x: F.silu(gate) * x, (X, Y)),
    "softmax": (lambda x: F.softmax(x, 1), (X,)),
    "log_softmax": (lambda x: F.log_softmax(x, 1), (X,)),
    "layer_norm": (lambda x, g, b: F.layer_norm(x, (COLUMNS,), g, b), (X, GAIN, BIAS)),
    "rms_norm": (lambda x, g: F.rms_norm(x, (COLUMNS,), g, 1e-5), (X, GAIN)),
    "batch_norm_biased": (
        lambda x, g, b: F.batch_norm(x, None, None, g, b, True),
        (X, GAIN, BIAS),
    ),
    "cross_entropy": (F.cross_entropy, (X, LABELS)),
    "mse": (F.mse_loss, (X, Y)),
    "huber": (F.huber_loss, (X, Y)),
}
cases = pytest.mark.parametrize("name", CASES)


def ours_of(name):
    return getattr(import_module(f"generated.{name}"), name)


def found(function, given):
    """The output and the gradients of what has some."""
    arguments = {str(i): t for i, t in enumerate(given)}
    names = [name for name, t in arguments.items() if t.is_floating_point()]
    return outcome(lambda **named: function(*named.values()), arguments, names)


def converted(given, dtype):
    return [t.to(dtype) if t.is_floating_point() else t for t in given]


def apart(some, exact):
    return max((one.double() - other).abs().max() for one, other in zip(some, exact, strict=True))


@formats
@cases
def test_16_bits_are_as_near_as_those_of_torch(name, dtype, in_cpp):  # noqa: F811
    """The reference has the same arguments in float64; an ulp is that of the largest entry."""
    theirs, given = CASES[name]
    given = converted(given, dtype)
    exact = found(theirs, converted(given, torch.float64))
    with kernels_called(name) as called:
        ours = found(ours_of(name), given)
        assert called
    others = found(theirs, given)
    for own, other, right in zip(ours, others, exact, strict=True):
        assert own.dtype == other.dtype == dtype
        ulp = torch.finfo(dtype).eps * right.abs().max()
        assert apart([own], [right]) <= 2 * apart([other], [right]) + ulp


@formats
@cases
def test_16_bits_are_the_same_from_python_as_from_the_node(name, dtype, in_cpp, monkeypatch):  # noqa: F811
    given = converted(CASES[name][1], dtype)
    ours = found(ours_of(name), given)
    monkeypatch.setattr(import_module("generated.kernels._serving"), "refuse", None)
    with kernels.use("torch"):
        pass
    again = found(import_module(f"generated.{name}").__dict__[name], given)
    assert all(map(torch.equal, ours, again))
