"""The atomic chain: one adjoint for every statement, with its reasons, in terms of what the
forward computed.
"""

import pytest
from sympy import Rational, exp, log, tanh

import derive
from derive import Axis, Forward, Input, Label, Max, OneHot, Rename, Sum
from derive.gradient.chain.chain import derive_chain
from derive.language.nodes import ArgMax, Peak, Position, SubtractedPeak
from derive.language.symbols import Tensor

N, C, M = Axis("N"), Axis("C"), Axis("M")


def chain_of(name):
    return {
        a.name: str(a.expression)
        for a in derive_chain(derive.forward_from(name).definition).adjoints
    }


def test_batch_norm_as_two_pages_of_algebra_have_it():
    assert chain_of("batch_norm") == {
        "dxhat": "dy*gain",
        "dinv_std": "Sum(diff*dxhat, N)",
        "dvar": "-dinv_std*inv_std**3/2",
        "ddiff2": "dvar/(N - 1)",
        "ddiff": "2*ddiff2*diff + dxhat*inv_std",
        "dmean": "-Sum(ddiff, N)",
        "dx": "ddiff + dmean/N",
        "dgain": "Sum(dy*xhat, N)",
        "dbias": "Sum(dy, N)",
    }


def test_softmax_nll():
    chain = chain_of("softmax_nll")
    assert chain["dprobs"] == "dlogprobs/probs"
    assert chain["dnorm_logits"] == "counts*dcounts"  # the exponential is its own derivative
    assert chain["dlogits"] == "dlogit_maxes*OneHot(ArgMax(logits, C), C) + dnorm_logits"


def test_every_contribution_has_a_reason_and_a_source():
    for name in ("batch_norm", "softmax_nll"):
        definition = derive.forward_from(name).definition
        for adjoint in derive_chain(definition).adjoints:
            for contribution in adjoint.contributions:
                assert contribution.reason and contribution.via in definition.by_name


def test_x_of_batch_norm_is_reached_on_two_paths_of_the_chain():
    adjoints = {
        a.name: a for a in derive_chain(derive.forward_from("batch_norm").definition).adjoints
    }
    assert [c.via for c in adjoints["dx"].contributions] == ["diff", "mean"]
    assert [c.via for c in adjoints["ddiff"].contributions] == ["xhat", "diff2"]


def test_a_derivative_is_written_with_the_output():
    class Outputs(Forward):
        x = Input(N)
        h = tanh(x)
        s = 1 / (1 + exp(-h))
        r = (s + 1) ** Rational(-1, 3)
        y = exp(r)

    chain = {a.name: a.expression for a in derive_chain(Outputs.definition).adjoints}
    names = {t.name for e in chain.values() for t in e.atoms(Tensor)}
    assert names <= {"dy", "dr", "ds", "dh", "y", "r", "s", "h"}
    assert str(chain["dx"]) == "dh*(1 - h**2)"
    assert str(chain["ds"]) == "-dr*r**4/3"


def test_a_contribution_keeps_the_derivative_of_the_outermost_function_open():
    class Layer(Forward):
        x = Input(N)
        w = Input()
        h = tanh(w * x)
        y = h**3 + h

    chain = derive_chain(Layer.definition)
    (dw,), (dh,) = (chain.by_name[name].contributions for name in ("dw", "dh"))
    assert str(dw.expression) == "Sum(dh*x*(1 - h**2), N)"
    assert str(dw.through_outer) == "Sum(dh*x, N)"
    assert {t.role for t in dw.through_outer.atoms(Tensor)} == {"pullback", "input"}
    assert dh.through_outer == dh.expression  # a sum has no outermost function


def test_a_renamed_axis_comes_home():
    class Pairs(Forward):
        x = Input(N)
        d = x * Rename(x, N, M)
        y = Sum(d, M)

    (adjoint,) = [a for a in derive_chain(Pairs.definition).adjoints if a.name == "dx"]
    assert str(adjoint.expression) in (
        "Sum(dd*x[M], M) + Sum(dd[M, N]*x[M], M)",
        "Sum(dd[M, N]*x[M], M) + Sum(dd*x[M], M)",
    )


def test_a_node_without_a_rule_is_named_with_the_place_for_it(monkeypatch):
    class Largest(Forward):
        x = Input(N, C)
        y = Max(x, C)

    monkeypatch.setattr(Max, "reason", "")
    with pytest.raises(derive.NotationError, match="no rule for the adjoint of Max") as error:
        derive_chain(Largest.definition)
    assert "an adjoint and a reason" in error.value.remedy


def test_a_tensor_used_twice_gets_the_sum_of_both_gradients():
    class Twice(Forward):
        x = Input(N)
        a = 2 * x
        b = x**2
        y = a + b

    (adjoint,) = [a for a in derive_chain(Twice.definition).adjoints if a.name == "dx"]
    assert [c.via for c in adjoint.contributions] == ["b", "a"]


def test_a_label_has_no_gradient():
    class Picked(Forward):
        x = Input(N, C)
        i = Label(N)
        y = Sum(OneHot(i, C) * x, C)

    assert [a.name for a in derive_chain(Picked.definition).adjoints] == ["dx"]


@pytest.mark.parametrize("node", [OneHot, ArgMax, Position, Peak, SubtractedPeak])
def test_no_gradient_passes_an_index_or_a_peak(node):
    x = Tensor("i", (N,), role="label", integer=True) if node is OneHot else Tensor("x", (N, C))
    e = Position(C) if node is Position else node.over(x, [C])
    assert e.adjoint(Tensor("dy", (N,))) == []


def test_several_reasons_are_what_is_done_in_its_order():
    class LogSoftmax(Forward):
        x = Input(N, C)
        y = x - log(Sum(exp(x), C))

    (adjoint,) = derive_chain(LogSoftmax.definition).adjoints
    assert [c.reason for c in adjoint.contributions] == [
        "pointwise",
        "summed over C, then broadcast over C: the forward in reverse",
    ]
