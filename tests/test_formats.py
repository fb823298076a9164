"""Formats of numbers: one for all inputs, under autocast too, and gradients in that of theirs."""

import pytest
import torch
from gallery import EVERYTHING

from generated.layer_norm import layer_norm
from generated.linear import linear, linear_atoms, linear_backward, linear_forward

FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
PAIRS = [(one, other) for one in FLOATING for other in FLOATING if one != other]
BESIDE = [(half, torch.float32) for half in FLOATING[2:]]  # what is repeated may be of the latter
everything = pytest.mark.parametrize("emitted", EVERYTHING, ids=str)


def outcome(emitted, leaves):
    """The value, the gradients, and the value by the statements."""
    output = emitted.function(**leaves)
    inputs = [leaves[name] for name in emitted.inputs]
    gradients = torch.autograd.grad(output, inputs, torch.full_like(output, 0.75))
    return (output, *gradients, emitted.through_atoms(**leaves))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@everything
def test_autocast_changes_nothing(emitted, dtype):
    """Forward, backward inside of it and after it, and the statements."""
    leaves = emitted.leaves(dtype=dtype)
    expected = outcome(emitted, leaves)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(outcome(emitted, leaves), expected)
        output = emitted.function(**leaves)
    inputs = [leaves[name] for name in emitted.inputs]
    after = torch.autograd.grad(output, inputs, torch.full_like(output, 0.75))
    assert_same(after, expected[1:-1])
    assert all(tensor.dtype == dtype for tensor in expected[:-1])


def test_autocast_would_change_a_matrix_product():
    """What the test above holds is not so by itself."""
    leaves = next(e for e in EVERYTHING if str(e) == "linear").arguments(dtype=torch.float32)
    x, W = leaves["x"], leaves["weight"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ W).dtype == torch.bfloat16


@pytest.mark.parametrize("emitted", [e for e in EVERYTHING if len(e.inputs) > 1], ids=str)
def test_inputs_of_two_formats_are_refused(emitted):
    drawn = emitted.arguments()
    axes = {t.name: {*t.axes} for t in emitted.definition.inputs}
    for one, other in PAIRS:
        for odd in (emitted.inputs[0], emitted.inputs[-1]):
            first, *rest = (axes[name] for name in emitted.inputs)
            wider = (other, one) if odd == emitted.inputs[0] else (one, other)
            beside = rest if odd == emitted.inputs[0] else [axes[odd]]
            if wider in BESIDE and all(own < first for own in beside):
                continue
            mixed = {
                name: tensor.to(other if name == odd else one)
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
                else tensor
                for name, tensor in drawn.items()
            }
            for function in (emitted.function, emitted.of("forward"), emitted.of("atoms")):
                said = rf"^{emitted.snake}: .*convert (one of them|it)"
                with pytest.raises(TypeError, match=said):
                    function(**mixed)


def test_the_refusal_names_both_formats_and_says_what_to_write():
    x, gain = torch.ones(2, 3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.float64)
    with pytest.raises(TypeError) as refused:
        layer_norm(x, gain)
    assert str(refused.value) == (
        "layer_norm: gain has dtype torch.float64, expected torch.bfloat16: convert one of "
        "them, as in gain.to(torch.bfloat16)"
    )
    assert layer_norm(x, gain.to(x.dtype)).dtype == torch.bfloat16


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
        assert torch.equal(y, torch.nn.functional.layer_norm(x, (5,), gain, bias))


def test_a_half_upstream_gradient_meets_what_the_forward_saved_in_float32():
    x, W, b = (torch.ones(*shape, dtype=torch.float16) for shape in ((2, 3), (3, 4), (4,)))
    saved = linear_forward(x, W, b)._asdict()
    dy = saved.pop("y")
    assert {t.dtype for t in saved.values()} == {torch.float32}
    assert {t.dtype for t in linear_backward(dy, **saved)} == {torch.float16}
    for odd in (torch.float64, torch.bfloat16):
        wrong = saved | {"weight": saved["weight"].to(odd)}
        with pytest.raises(TypeError, match="convert one of them"):
            linear_backward(dy, **wrong)


@pytest.mark.parametrize("inside", [False, True])
def test_compiled_whole_under_autocast_it_is_the_same(inside):
    x, W, b = (torch.randn(*shape, requires_grad=True) for shape in ((2, 3), (3, 4), (4,)))

    def step(x, W, b):
        if not inside:
            return linear(x, W, b) + linear_atoms(x, W, b).y
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return linear(x, W, b) + linear_atoms(x, W, b).y

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not inside):
        found = compiled(x, W, b)
    expected = 2 * (x @ W + b)
    torch.testing.assert_close(found, expected)
    gradients = torch.autograd.grad(found.sum(), (x, W, b))
    torch.testing.assert_close(gradients, torch.autograd.grad(expected.sum(), (x, W, b)))
    torch._dynamo.reset()
