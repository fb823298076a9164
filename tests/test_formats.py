"""Formats of numbers: promoted as torch does, under autocast too; gradients in those of inputs."""

from functools import reduce

import pytest
import torch
from gallery import EVERYTHING

from generated.add_rms_norm import add_rms_norm
from generated.clip import clip
from generated.linear import linear, linear_backward, linear_forward
from generated.mse import mse

FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
PAIRS = [(one, other) for one in FLOATING for other in FLOATING if one != other]
BESIDE = [(half, torch.float32) for half in FLOATING[2:]]  # what is repeated may be of the latter
everything = pytest.mark.parametrize("emitted", EVERYTHING, ids=str)


def outcome(emitted, leaves):
    """The value and the gradients."""
    output = emitted.function(**leaves)
    inputs = [leaves[name] for name in emitted.inputs]
    gradients = torch.autograd.grad(output, inputs, torch.full_like(output, 0.75))
    return (output, *gradients)


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@everything
def test_autocast_changes_nothing(emitted, dtype):
    """Forward, backward inside of it and after it."""
    leaves = emitted.leaves(dtype=dtype)
    expected = outcome(emitted, leaves)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(outcome(emitted, leaves), expected)
        output = emitted.function(**leaves)
    inputs = [leaves[name] for name in emitted.inputs]
    after = torch.autograd.grad(output, inputs, torch.full_like(output, 0.75))
    assert_same(after, expected[1:])
    assert all(tensor.dtype == dtype for tensor in expected)


def test_autocast_would_change_a_matrix_product():
    """What the test above holds is not so by itself."""
    leaves = next(e for e in EVERYTHING if str(e) == "linear").arguments(dtype=torch.float32)
    x, W = leaves["x"], leaves["weight"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ W).dtype == torch.bfloat16


@pytest.mark.parametrize("emitted", [e for e in EVERYTHING if len(e.inputs) > 1], ids=str)
def test_inputs_of_two_formats_are_promoted_as_torch_promotes_them(emitted):
    """The result is that of inputs in the wider format, each gradient in that of its input."""
    axes = {t.name: {*t.axes} for t in emitted.definition.inputs}
    first, last = emitted.inputs[0], emitted.inputs[-1]
    deciding = [n for n in emitted.inputs if axes[n]] or [*emitted.inputs]
    for one, other in PAIRS:
        leaves = emitted.leaves(dtype=one)
        leaves[last] = leaves[last].detach().to(other).requires_grad_()
        kinds = [leaves[n].dtype for n in deciding if not (axes[n] < axes[first])]
        wide = reduce(torch.promote_types, [leaves[n].dtype for n in deciding])
        if wide in (*FLOATING[2:], torch.float32):  # float64 decides wherever it is
            wide = reduce(torch.promote_types, kinds)
        output = emitted.function(**leaves)
        assert output.dtype == wide
        own = [leaves[name] for name in emitted.inputs]
        gradients = torch.autograd.grad(output, own, torch.full_like(output, 0.75))
        assert [g.dtype for g in gradients] == [t.dtype for t in own]


@pytest.mark.parametrize("one", FLOATING, ids=str)
@pytest.mark.parametrize("other", FLOATING, ids=str)
def test_value_and_gradients_of_two_formats_are_those_of_torch(one, other):
    x, target = torch.randn(4, 5, dtype=one), torch.randn(4, 5, dtype=other)
    ours = [t.clone().requires_grad_() for t in (x, target)]
    theirs = [t.clone().requires_grad_() for t in (x, target)]
    found, expected = mse(*ours), ((theirs[0] - theirs[1]) ** 2).mean()
    assert found.dtype == expected.dtype == torch.result_type(x, target)
    pairs = zip(
        torch.autograd.grad(found, ours), torch.autograd.grad(expected, theirs), strict=True
    )
    for gradient, wanted in ((found, expected), *pairs):
        torch.testing.assert_close(gradient, wanted, rtol=2e-2, atol=2e-2)


def test_a_number_as_a_tensor_decides_nothing_beside_one_with_dimensions():
    images, texts = torch.randn(3, 4), torch.randn(3, 4)
    assert clip(images, texts, torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float32


def test_a_residual_of_float32_beside_a_half_activation():
    x, residual = torch.randn(4, 5).bfloat16().requires_grad_(), torch.randn(4, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = add_rms_norm(x, residual.requires_grad_())
    assert {output.dtype for output in outputs} == {torch.float32}
    gradients = torch.autograd.grad(sum(o.sum() for o in outputs), [x, residual])
    assert [g.dtype for g in gradients] == [torch.bfloat16, torch.float32]
    wide = add_rms_norm(x.detach().float(), residual)
    for output, expected in zip(outputs, wide, strict=True):
        assert torch.equal(output, expected)


def test_whole_numbers_are_no_input():
    with pytest.raises(TypeError, match=r"x must be floating point, got torch\.int64"):
        mse(torch.ones(3, dtype=torch.int64), torch.ones(3))


@pytest.mark.parametrize("half", FLOATING[2:], ids=str)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "batch_norm"])
def test_a_parameter_of_float32_beside_half_an_input_is_as_in_torch(name, half):
    """The result and dx in half, the parameters' gradients in float32."""
    (emitted,) = (e for e in EVERYTHING if str(e) == name)
    x, gain, bias = torch.randn(6, 5).to(half), torch.randn(5), torch.randn(5)
    leaves = [t.requires_grad_() for t in (x, gain, bias)][: len(emitted.inputs)]
    y = emitted.function(*leaves)
    gradients = torch.autograd.grad(y, leaves, torch.ones_like(y))
    assert y.dtype == half and [g.dtype for g in gradients] == [t.dtype for t in leaves]
    wide = [t.detach().float().requires_grad_() for t in leaves]
    wanted = emitted.function(*wide)
    assert torch.equal(y, wanted.to(half))
    for found, exact in zip(gradients, torch.autograd.grad(wanted.sum(), wide), strict=True):
        assert torch.equal(found, exact.to(found.dtype))
    if name == "layer_norm":
        theirs = torch.nn.functional.layer_norm(x, (5,), gain, bias)
        torch.testing.assert_close(y, theirs)


def test_a_half_upstream_gradient_meets_what_the_forward_kept_in_float32():
    x, W, b = (torch.ones(*shape, dtype=torch.float16) for shape in ((2, 3), (3, 4), (4,)))
    y = linear_forward(x, W, b)
    assert y.dtype == torch.float16
    found = linear_backward(y, x.float(), W)
    for one, other in zip(found, linear_backward(y.float(), x, W), strict=True):
        assert one.dtype == torch.float32 and torch.equal(one, other)


@pytest.mark.parametrize("inside", [False, True])
def test_compiled_whole_under_autocast_it_is_the_same(inside):
    x, W, b = (torch.randn(*shape, requires_grad=True) for shape in ((2, 3), (3, 4), (4,)))

    def step(x, W, b):
        if not inside:
            return linear(x, W, b) + linear_forward(x, W, b)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return linear(x, W, b) + linear_forward(x, W, b)

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not inside):
        found = compiled(x, W, b)
    expected = 2 * (x @ W + b)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(found.sum(), (x, W, b))
    torch.testing.assert_close(gradients, torch.autograd.grad(expected.sum(), (x, W, b)))
    torch._dynamo.reset()
