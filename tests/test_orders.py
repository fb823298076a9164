"""Second derivatives as mathematics: what is derived, and that it is proved."""

import pytest
import torch
from generating import forward_file, generated

from derive.derivation import derive
from derive.gradient.orders.second import second_order
from derive.language.formulas.text import formula
from derive.language.notation.library import forward_from


def lines(behind) -> dict[str, str]:
    return {s.tensor.name: formula(s.expression) for s in behind.statements}


def order_of(name):
    order = second_order(derive(forward_from(name)))
    assert order.every_size
    assert "for every size" in order.summary
    return order


def test_of_a_softmax():
    """v_y = v*y - y*Sum(v*y), and the Hessian times v by way of y."""
    order = order_of("softmax")
    behind = lines(order.second)
    assert behind["dg_minus_sum_g_y"] == "v_x*y"
    assert behind["sum_dg_minus_sum_g_y"] == "Sum(dg_minus_sum_g_y, C)"
    assert behind["v_y"] == "dg_minus_sum_g_y - sum_dg_minus_sum_g_y*y"
    assert lines(order.pullback) == {"dx": "y*(c_y - Sum(c_y*y, C))"}


def test_of_the_negative_log_likelihood_it_is_the_textbooks():
    order = order_of("softmax_nll")
    assert lines(order.second)["c_probs"] == "g*v_logits/N"
    assert "probs*(c_probs" in lines(order.pullback)["dlogits"]


def test_what_is_saved_is_a_function_of_the_inputs():
    """With what is saved as constants nothing would come back to x behind a layer norm."""
    order = order_of("layer_norm")
    assert {"c_inv_std", "c_xhat"} <= lines(order.second).keys()
    assert lines(order.pullback)["dx"] != "0"
    assert {t.name for t in order.pullback.form.saved} <= {
        *(t.name for t in order.first.closed_form.saved),
        *(c.name for c in order.cotangents.values()),
    }


@pytest.mark.parametrize("name", ["relu", "l1", "huber"])
def test_at_a_kink_there_is_no_impulse(name):
    order = order_of(name)
    assert "Dirac" not in " ".join([*lines(order.second).values(), *lines(order.pullback).values()])


NAMES = """
    g = Input(N, C)
    v_g = Input(C)
    total = exp(g * v_g)
    shift = Sum(total, C)
    c_y = total / shift
    y = Sum(c_y**2, C)
"""


def test_names_of_the_users_own_that_are_the_ones_that_it_takes(tmp_path):
    file = forward_file(tmp_path, "Named", NAMES)
    function, *_ = generated(file, tmp_path)
    g = torch.rand(3, 4, dtype=torch.float64).requires_grad_()
    v_g = torch.rand(4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(function, (g, v_g))


INLINE = """
    x = Input(N, C)
    w = Input(C)
    y = log(Sum(exp(x * w), C))
"""


def test_a_value_that_is_shifted_by_a_peak_without_the_users_asking(tmp_path):
    """The peak is a constant there: any other number would do as well."""
    function, *_ = generated(forward_file(tmp_path, "Inline", INLINE), tmp_path)
    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    w = torch.rand(4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(function, (x, w))
    (dx,) = torch.autograd.grad(function(x * 300, w).sum(), x, create_graph=True)
    (again,) = torch.autograd.grad(dx.sum(), x)
    assert again.isfinite().all()
