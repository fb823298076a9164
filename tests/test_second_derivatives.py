"""A gradient that is differentiated again raises, in every function, however it is reached."""

import pytest
import torch
from gallery import EVERYTHING
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from generated.huber import huber
from generated.layer_norm import layer_norm
from generated.linear import linear
from generated.relu import relu
from generated.softmax import softmax
from generated.softmax_nll import softmax_nll

REFUSED = "differentiated again, but second derivatives are not derived yet"
everything = pytest.mark.parametrize("emitted", EVERYTHING, ids=str)


def drawn(*shape, seed=0):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).requires_grad_()


@everything
def test_a_penalty_on_any_gradient_is_refused_and_the_remedy_works(emitted):
    """The upstream gradient is constant, and one input at a time asks for the second derivative,
    which exists or is zero: in both cases nothing is answered.
    """
    leaves = emitted.leaves()
    inputs = [leaves[name] for name in emitted.inputs]
    output = emitted.function(**leaves)
    upstream = torch.linspace(1, 2, output.numel(), dtype=torch.float64).reshape(output.shape)
    gradients = torch.autograd.grad(output, inputs, upstream, create_graph=True)
    for gradient in gradients:
        for leaf in inputs:
            with pytest.raises(NotImplementedError, match=REFUSED) as refused:
                torch.autograd.grad(
                    gradient.square().sum(), leaf, retain_graph=True, allow_unused=True
                )
    assert f"{emitted}_atoms(...).{emitted.definition.output.name} is" in str(refused.value)
    penalty = (output * upstream).sum() + sum(g.square().sum() for g in gradients)
    with pytest.raises(NotImplementedError, match=f"^{emitted}: "):
        penalty.backward()

    plain = emitted.through_atoms(**leaves)
    again = torch.autograd.grad(plain, inputs, upstream, create_graph=True, materialize_grads=True)
    for gradient, other in zip(gradients, again, strict=True):
        torch.testing.assert_close(gradient.detach(), other.detach())
    if any(g.requires_grad for g in again):  # else all are linear
        squares = sum(g.square().sum() for g in again)
        torch.autograd.grad(squares, inputs, allow_unused=True)


@everything
def test_a_gradient_that_could_be_differentiated_again_is_the_gradient_to_the_bit(emitted):
    leaves = emitted.leaves(seed=1)
    inputs = [leaves[name] for name in emitted.inputs]
    output = emitted.function(**leaves)
    for number in (0.5, -0.0):  # the sign of a zero is kept too
        upstream = torch.full_like(output, number).requires_grad_()
        kept = torch.autograd.grad(output, inputs, upstream, create_graph=True)
        plain = torch.autograd.grad(output, inputs, upstream, retain_graph=True)
        for one, other in zip(kept, plain, strict=True):
            assert one.requires_grad and not other.requires_grad
            assert torch.equal(one.detach().view(torch.int64), other.view(torch.int64))


@everything
def test_what_cannot_go_backward_is_refused_too(emitted):
    """Forward mode, and the transforms of torch.func."""
    drawn = emitted.arguments()
    (name, *_) = emitted.inputs

    def of(tensor):
        return emitted.function(**{**drawn, name: tensor})

    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode"):
        of(forward_ad.make_dual(drawn[name], torch.ones_like(drawn[name])))
    for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
        with pytest.raises(RuntimeError, match="functorch transforms"):
            transform(of)(drawn[name])


X = drawn(4, 3)
TARGET = drawn(4, 3, seed=1).detach()
GAIN = drawn(3, seed=2).detach()
WEIGHT, BIAS = drawn(3, 2, seed=3), drawn(2, seed=4)
LABELS = torch.tensor([0, 2, 1, 1])
# One that saves the output, one that saves what is neither an input nor the output, one whose
# derivative does not depend on the data, one that saves its inputs, a loss, and one with labels.
SAVING = {
    "softmax": lambda x: softmax(x).square().sum(),
    "layer_norm": lambda x: layer_norm(x, GAIN).square().sum(),
    "relu": lambda x: relu(x).sum(),
    "linear": lambda x: linear(x, WEIGHT, BIAS).square().sum(),
    "huber": lambda x: huber(x, TARGET),
    "softmax_nll": lambda x: softmax_nll(x, LABELS),
}


def gradient_of(function, x, **how):
    return torch.autograd.grad(function(x), x, create_graph=True, **how)[0]


def of_a_leaf(function):
    return gradient_of(function, X).sum(), X


def of_a_tensor_that_is_no_leaf(function):
    x = X * 2
    return gradient_of(function, x).sum(), x


def by_what_is_behind_a_tensor(function):
    x = X * 2
    return gradient_of(function, x).sum(), X


def of_one_tensor_passed_for_two(function):
    both = drawn(4, 3)
    return gradient_of(lambda x: huber(x, x * 2) + function(x), both).sum(), both


def through_a_checkpoint(function):
    x = X * 1
    output = checkpoint(function, x, use_reentrant=False)
    return torch.autograd.grad(output, x, create_graph=True)[0].sum(), X


def through_hooks_of_what_is_saved(function):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        output = function(X.detach().requires_grad_())
    x = X.detach().requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        output = function(x)
    return torch.autograd.grad(output, x, create_graph=True)[0].sum(), x


def of_many_at_once(function):
    rows = torch.stack([function(X), 2 * function(X)])
    (batched,) = torch.autograd.grad(
        rows, X, torch.eye(2, dtype=rows.dtype), is_grads_batched=True, create_graph=True
    )
    return batched.sum(), X


WAYS = (
    of_a_leaf,
    of_a_tensor_that_is_no_leaf,
    by_what_is_behind_a_tensor,
    of_one_tensor_passed_for_two,
    through_a_checkpoint,
    through_hooks_of_what_is_saved,
    of_many_at_once,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", SAVING)
def test_there_is_no_way_around(name, way):
    total, by = way(SAVING[name])
    with pytest.raises(NotImplementedError, match=REFUSED):
        torch.autograd.grad(total, by, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("name", SAVING)
def test_torchs_own_functions_for_it_are_refused(name):
    function, v = SAVING[name], torch.ones_like(X)
    of = torch.autograd.functional
    for x in (X, X.detach()):
        for second in (of.hvp, of.vhp):
            with pytest.raises(NotImplementedError, match=REFUSED):
                second(function, x, v)
        for vectorize in (False, True):
            with pytest.raises(NotImplementedError, match=REFUSED):
                of.hessian(function, x, vectorize=vectorize)
    jacobian = of.jacobian(function, X, create_graph=True)
    with pytest.raises(NotImplementedError, match=REFUSED):
        jacobian.sum().backward()
    with pytest.raises(NotImplementedError, match=REFUSED):
        torch.autograd.gradgradcheck(function, X)


@pytest.mark.parametrize("name", SAVING)
def test_first_derivatives_by_those_functions_are_right(name):
    function = SAVING[name]
    (expected,) = torch.autograd.grad(function(X), X)
    for vectorize in (False, True):
        jacobian = torch.autograd.functional.jacobian(function, X, vectorize=vectorize)
        torch.testing.assert_close(jacobian, expected)
    logged = gradient_of(function, X)
    assert torch.equal(logged.detach(), expected)


def test_a_gradient_of_none_is_none():
    """Where nothing arrives from what comes after, nothing is passed on."""

    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            return y.clone()

        @staticmethod
        def backward(ctx, dy):
            return None

    x = drawn(4, 3)
    (x.sum() + Stop.apply(layer_norm(x)).sum()).backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_a_loss_may_be_scaled_in_place():
    x = drawn(4, 3)
    for function in (lambda x: softmax_nll(x, LABELS), lambda x: huber(x, TARGET)):
        (expected,) = torch.autograd.grad(function(x), x)
        loss = function(x)
        loss /= 4
        (quarter,) = torch.autograd.grad(loss, x)
        torch.testing.assert_close(quarter, expected / 4)


def test_compiled_it_is_refused_by_torch():
    function = SAVING["layer_norm"]
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(X), X), torch.autograd.grad(function(X), X)
    )
    with pytest.raises(RuntimeError):
        gradient_of(compiled, X).sum().backward()
    torch._dynamo.reset()


@pytest.mark.parametrize("name", ["layer_norm", "softmax_nll", "linear"])
def test_compiled_without_aot_a_gradient_with_a_graph_is_refused(name):
    """There the backward runs without a graph, whatever is asked for: nothing in it can refuse."""
    function = SAVING[name]
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(X), X), torch.autograd.grad(function(X), X)
    )
    for ask in (
        lambda: torch.autograd.grad(compiled(X), X, create_graph=True),
        lambda: torch.autograd.functional.hvp(compiled, X, torch.ones_like(X)),
        lambda: torch.autograd.functional.jvp(compiled, X, torch.ones_like(X)),
    ):
        with pytest.raises(NotImplementedError, match=f"{name}: .* under torch.compile"):
            ask()
    torch._dynamo.reset()
