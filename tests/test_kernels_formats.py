"""Kernels in C++ read and write 16 bits as they are, and arrays in any order in memory."""

import os
import shutil
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from test_kernels import kernels_called, outcome
from test_kernels_node import built, in_cpp, in_python  # noqa: F401

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
def test_all_numbers_of_16_bits_are_converted_and_rounded(dtype, in_cpp):  # noqa: F811
    """Infinities, NaN and the least ones among them."""
    x = torch.arange(2**16).to(torch.uint16).view(dtype)
    with kernels_called("leaky_relu") as called:
        ours = ours_of("leaky_relu")(
            x, negative_slope=1.5
        )  # every second one lies between two others
    assert called == ["forward"]
    expected = torch.where(x > 0, x.float(), x.float() * 1.5).to(dtype)
    assert torch.equal(ours.isnan(), x.isnan())
    assert torch.equal(ours.nan_to_num(), expected.nan_to_num())


@formats
def test_a_node_is_not_left_for_16_bits(dtype, in_cpp, monkeypatch):  # noqa: F811
    """The first call of a kernel builds it; the others are none of Python's, and give its bits."""
    given = converted(CASES["layer_norm"][1], dtype)
    ours = found(ours_of("layer_norm"), given)
    with monkeypatch.context() as patched:
        patched.setattr(_running.Kernel, "__call__", None)
        again = found(ours_of("layer_norm"), given)
    in_python(monkeypatch)
    for others in (again, found(ours_of("layer_norm"), given)):
        assert all(map(torch.equal, ours, others))


@pytest.mark.parametrize("other", [torch.float32, torch.float64], ids=str)
def test_several_formats_are_computed_in_the_widest(other, in_cpp):  # noqa: F811
    x, gain, bias = CASES["layer_norm"][1]
    given = x.bfloat16(), gain.to(other), bias.to(other)
    exact = found(CASES["layer_norm"][0], converted(given, torch.float64))
    y, dx, dgain, dbias = found(ours_of("layer_norm"), given)
    assert dx.dtype == torch.bfloat16
    assert y.dtype == (torch.bfloat16 if other == torch.float32 else other)
    assert dgain.dtype == dbias.dtype == other
    for own, right in zip((dgain, dbias), exact[2:], strict=True):
        assert apart([own], [right]) <= 0.02 * right.abs().max()  # dy has 16 bits


VIEWS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "every second": lambda x: torch.stack([x, x], 2).flatten(1)[:, ::2],
    "columns": lambda x: torch.cat([x, x], 1)[:, :COLUMNS],
    "expanded": lambda x: x[:1].expand(ROWS, COLUMNS),
}


@pytest.mark.parametrize("view", VIEWS)
@cases
def test_the_order_in_memory_changes_nothing(name, view, in_cpp):  # noqa: F811
    """Values, gradients and gradients of gradients."""
    x, *others = CASES[name][1]
    x = VIEWS[view](x)
    assert not x.is_contiguous()
    ours, plain = (found(ours_of(name), (t, *others)) for t in (x, x.contiguous()))
    for one, other in zip(ours, plain, strict=True):
        assert torch.allclose(one, other, rtol=1e-13, atol=1e-14)
    if view == "transposed":
        x = x.detach().requires_grad_()
        assert torch.autograd.gradgradcheck(ours_of(name), (x, *others), atol=1e-6)


def test_a_transposed_matrix_is_not_copied_entry_by_entry(in_cpp):  # noqa: F811
    x = X.t().detach().requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = ours_of("silu")(x)
    (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert [t.data_ptr() for t in kept] == [x.data_ptr()]
    assert y.stride() == dx.stride() == x.stride()
