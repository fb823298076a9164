"""What is found out besides the gradients: found for anybody's forward, and proved."""

import sys
from itertools import pairwise

import pytest
from sympy import exp, log, sqrt, tanh

import derive
from derive import Axis, Forward, Input, Max, Sum
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import draft
from derive.gradient.found.findings import Balance, NoInfluence
from derive.gradient.found.matrix_example import AxisSum, MatrixProduct

N, C, K = Axis("N"), Axis("C"), Axis("K")


def found(forward) -> set[str]:
    return {str(finding) for finding in derive.findings(forward)}


def test_the_variance_does_not_change_with_the_mean():
    assert "the derivative of var by mean is zero" in found("batch_norm")


def test_the_row_maximum_has_no_gradient_and_a_row_of_dlogits_sums_to_zero():
    assert found("softmax_nll") == {
        "the derivative of probs by logit_maxes is zero",
        "the derivative of loss by logit_maxes is zero",
        "dlogits sums to zero along C",
    }


def test_the_gradients_of_a_matrix_product_are_matrix_products():
    assert found("linear") == {"dx = dy @ weight.T", "dweight = x.T @ dy", "dbias = Sum(dy, N)"}


def test_what_a_reader_of_the_network_comes_away_with():
    findings = derive.findings("mlp")
    assert {str(finding) for finding in findings} == {
        "the derivative of diff by b1 is zero",
        "the derivative of loss by b1 is zero",
        "the derivative of var by mean is zero",
        "the derivative of probs by logit_maxes is zero",
        "the derivative of loss by logit_maxes is zero",
        "dhprebn sums to zero along N",
        "dlogits sums to zero along V",
        "dW1 = embcat.T @ dhprebn",
        "db1 = Sum(dhprebn, N)",
        "dembcat = dhprebn @ W1.T",
        "dW2 = h.T @ dlogits",
        "db2 = Sum(dlogits, N)",
        "dh = dlogits @ W2.T",
    }
    for finding in findings:
        if isinstance(finding, (NoInfluence, Balance)):
            assert finding.proved.every_size and len(finding.proved.sizes) == 3
            assert finding.steps, f"{finding} has no derivation"
            assert all(a.after == b.before for a, b in pairwise(finding.steps))
            assert finding.steps[-1].after == 0


class Own(Forward):
    """Nothing of it has a name that the project knows."""

    q = Input(N, C)
    u = Input(N)
    v = Input(C)

    moved = q + u
    level = Sum(moved, C) / C
    rest = moved - level
    spread = sqrt(Sum(rest**2, C) + 1)
    out = v * rest / spread


def test_the_same_is_found_under_other_names():
    assert found(Own) == {
        "the derivative of rest by u is zero",
        "the derivative of spread by level is zero",
        "the derivative of out by u is zero",
        "dq sums to zero along C",
    }


class Scaled(Forward):
    """A row divided by its largest entry: scaling changes nothing, shifting does."""

    x = Input(N, C)

    largest = Max(x, C)
    shares = x / largest
    y = log(Sum(exp(shares), C))


class ShiftedRow(Forward):
    """One number added to every entry before a softmax."""

    x = Input(N, C)
    u = Input()

    z = exp(x + u)
    p = z / Sum(z, C)


def test_a_fact_along_one_axis_is_used_in_a_sum_over_several():
    assert "the derivative of p by u is zero" in found(ShiftedRow)


class Plain(Forward):
    x = Input(N, C)
    b = Input(C)

    y = tanh(x + b)


@pytest.mark.parametrize("forward", (Scaled, Plain))
def test_nothing_is_found_where_there_is_nothing(forward):
    assert not derive.findings(forward)


def test_what_is_found_and_not_true_is_not_reported(monkeypatch):
    monkeypatch.setattr(
        sys.modules["derive.gradient.found.findings"], "_total_vanishes", lambda *_: True
    )
    assert not found(Plain)


class Mixed(Forward):
    """The product the other way round, and one that is transposed."""

    a = Input(K, N)
    b = Input(C, K)
    c = Input(N, C)

    d = Sum(a * b, K) + c


def test_transposed_products_are_recognised_by_their_entries():
    products = derive.findings(Mixed)
    assert [str(p) for p in products] == ["da = b.T @ dd.T", "db = dd.T @ a.T"]
    assert all(isinstance(p, (MatrixProduct, AxisSum)) for p in products)
    assert all(len(p.entries) == 2 for p in products)


def test_every_adjoint_of_the_chain_has_a_closed_form():
    chain = derive_chain(derive.forward_from("softmax_nll").definition)
    form = draft(chain)
    assert set(form.closed) == {adjoint.name for adjoint in chain.adjoints}
    assert form.closed["dlogit_maxes"] == 0 and form.closed["dprobs"] != 0


def test_a_gradient_that_is_proved_to_be_zero_is_not_proved_again(monkeypatch, derived):
    module, proved = sys.modules["derive.gradient.found.findings"], derived("mlp")
    known = [g for g in proved.gradients if str(g.tensor) == "db1"]
    again = []
    right = module._proved_zero
    monkeypatch.setattr(module, "_proved_zero", lambda f, a: again.append((f, a)) or right(f, a))
    found = list(module.zero_gradients(proved.closed_form.draft, known, wanted=()))
    assert "the derivative of loss by b1 is zero" in map(str, found)
    at_loss = [str(a.of) for form, a in again if str(form.definition.output) == "loss"]
    assert at_loss == ["logit_maxes"]  # and no balance, since none is wanted
