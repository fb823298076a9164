"""Forward mode takes lines of plain torch, which are those of the forward wherever these may be
differentiated one by one: right at kinks, and finite where the mathematics is.
"""

import pytest
import torch
from gallery import EVERYTHING
from sampling import sampled

from derive.language.nodes import MatrixNode

everything = pytest.mark.parametrize("emitted", sampled(EVERYTHING, lambda e: e.snake), ids=str)


def alike(one, other, tolerance):
    assert (one - other).abs().max() <= tolerance * (1 + other.abs().max())


def of_one(function, arguments, name):
    return lambda x: function(**{**arguments, name: x})


def along(function, v):
    return lambda x: torch.func.jvp(function, (x,), (v,))[1]


def by_reverse(function, v):
    """The derivative along ``v`` by two gradients: torch's own forward mode of forward mode is
    wrong where a matrix is solved.
    """

    def derivative(x):
        x = x if x.requires_grad else x.clone().requires_grad_()
        y = function(x)
        upstream = torch.zeros_like(y, requires_grad=True)
        (back,) = torch.autograd.grad(y, x, upstream, create_graph=True)
        return torch.autograd.grad(back, upstream, v, create_graph=True)[0]

    return derivative


# A tangent is divided among equal largest entries; the backward, as it says, takes the first.
STATED = {"norm_inf": lambda x: x.abs().amax(-1)}


@everything
@pytest.mark.parametrize("kind", ["zeros", "signs"])
def test_it_takes_the_sides_of_kinks_that_the_statements_take(emitted, kind):
    """Each input in turn 0, or -1, 0 and 1; two derivatives, where the statements are finite."""
    for name in emitted.inputs:
        arguments = emitted.arguments(seed=3)
        x = arguments[name]
        signs = (torch.arange(x.numel()).reshape(x.shape) % 3 - 1).to(x.dtype)
        x = signs * (kind == "signs")
        v = torch.rand(x.shape, generator=torch.Generator().manual_seed(4), dtype=x.dtype)

        once = along(of_one(emitted.function, arguments, name), v)
        found = once(x), torch.func.jvp(once, (x,), (v,))[1]
        solves = any(s.expression.has(MatrixNode) for s in emitted.definition.statements)
        way = by_reverse if solves else along
        stated = way(of_one(STATED.get(str(emitted), emitted.stated), arguments, name), v)
        for one, other in zip(found, (stated(x), way(stated, v)(x)), strict=True):
            if other.isfinite().all():
                alike(one, other, 1e-9)


BY_STATEMENTS = {
    *("elu", "entropy", "js_div", "leaky_relu", "relu", "std"),
    *("hinge", "hinge_embedding", "kl_div", "linear_attention", "log_cosh", "ppo", "smooth_l1"),
}


def test_lines_are_those_of_the_forward_where_they_decide_nothing_else():
    """By 0 < x where `max(x, 0)` is written, which torch's clamp leaves to x, for instance."""
    found = {e.snake for e in EVERYTHING if hasattr(e.module, f"{e.snake}_statements")}
    assert found == BY_STATEMENTS


@everything
@pytest.mark.parametrize("scale", [300.0, 1e4])
def test_it_is_finite_where_the_backward_is(emitted, scale):
    """And is what the closed forms say: the tangent of the output, and that of the gradient."""
    if "log_cosh" in str(emitted) and scale > 700:
        pytest.skip("cosh is beyond the largest number, and the statements are written with it")
    arguments, name = emitted.arguments(seed=3), emitted.inputs[0]
    generator = torch.Generator().manual_seed(4)
    x = arguments[name] * scale * (-1) ** torch.arange(arguments[name].shape[-1])
    function = of_one(emitted.function, arguments, name)
    weights = torch.rand(function(x).shape, generator=generator, dtype=x.dtype)
    v = torch.rand(x.shape, generator=generator, dtype=x.dtype)

    def loss(x):
        return (function(x) * weights).sum()

    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
    if not gradient.isfinite().all():
        pytest.skip("neither is the backward")
    primal, tangent = torch.func.jvp(function, (x,), (v,))
    alike(primal, function(x), 1e-12)
    alike((tangent * weights).sum(), (gradient * v).sum(), 1e-9)
    again = torch.zeros_like(x)
    if gradient.requires_grad:
        (again,) = torch.autograd.grad(gradient, leaf, v, materialize_grads=True)
    if again.isfinite().all() and str(emitted) not in BY_STATEMENTS:
        alike(torch.func.jvp(torch.func.grad(loss), (x,), (v,))[1], again, 1e-9)
