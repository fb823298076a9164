"""What a claim compares decides nothing unseen: data are taken where a condition changes, choices
that the ranges decide are no obstacle to a proof, and a rounded constant is said to be one.
"""

import pytest
from sympy import Integer, log, sqrt

import derive
from derive.claims.checking.numbers.example import rows
from derive.claims.checking.rounded import rounded_constants
from derive.gradient.chain.chain import derive_chain


def checked(name: str, formula: str):
    return derive.check(name, formula)


def sampled(cases: list[tuple], every: int = 3) -> list:
    """One in ``every`` is in the suite, all of them in ``make test-thorough``."""
    thorough = pytest.mark.thorough
    return [c if i % every == 0 else pytest.param(*c, marks=thorough) for i, c in enumerate(cases)]


SOFTMAX = "y*(dy - (dy*y).sum(-1, keepdim=True))"
BATCH_NORM = "gain*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))"
GELU = "dy*(0.5*(1 + torch.erf({a})) + x*torch.exp(-x**2/2)*{b})"
STD = "dy[..., None]*(x - x.mean(-1, keepdim=True))/((C - correction)*y[..., None])"

# Each is the gradient at all simple data and at all random ones.
WRONG_BEYOND = [
    ("relu", "dy*(x > 0) + (x > 3)*dy"),
    ("relu", "dy*(x > 0)*(1 + (x == 17))"),
    ("relu", "dy*(x > 1e-30)"),
    ("relu", "dy*(x > 0)*(x < 1e30)"),
    ("relu", "dy*(x > 0)*(1 + (2*x - 7 > 3))"),
    ("relu", "dy*(x > 0)*torch.where(x == 0.1, 0.0, 1.0)"),
    ("relu", "torch.where((x > 3) & (dy > 7), 2*dy, dy*(x > 0))"),
    ("relu", "torch.where((x > 3) & (x < 3.001), 0.9*dy, dy*(x > 0))"),
    ("relu", "dy*torch.where(x > 20, torch.where(x > 30, 2.0, 1.0), (x > 0)*1.0)"),
    ("tanh", "dy*(1 - y**2) + torch.relu(x - 50)"),
    ("tanh", "dy*(1 - y**2)*(y.abs() < 0.99999)"),
    ("sigmoid", "dy*y.clamp(1e-7, 1)*(1 - y)"),
    ("sigmoid", "dy*y*(1 - y)*(torch.exp(x) != 3)"),
    ("softmax", "y*(dy - (dy*y).sum(-1, keepdim=True)).clamp(max=100)"),
    ("hinge", "torch.where(1 - target*x > 0, -target, 0)*dloss/N*(target < 30)"),
    ("batch_norm", BATCH_NORM + "*(eps < 0.5)"),
    # a choice inside of what is compared
    ("relu", "(dy*(x > 0)).clamp(max=100)"),
    ("relu", "torch.minimum(dy*(x > 0), 100 + 0*x)"),
    ("relu", "F.hardtanh(dy*(x > 0), -50, 50)"),
    ("leaky_relu", "(dy*((x > 0) + negative_slope*(x <= 0))).clamp(max=1e4)"),
    ("elu", "(dy*torch.where(x > 0, 1, alpha*x.exp())).clamp(-7, 7)"),
    ("hinge", "(-dloss*target*(target*x < 1)/N).clamp(max=100)"),
    ("huber", "(dloss*error.clamp(-delta, delta)/N).clamp(max=10)"),
    ("l1", "(dloss*torch.sign(x - target)/N).clamp(max=3)"),
    ("smooth_l1", "dloss*(error/beta).clamp(-1, 1.01)/N"),
    # what is compared is 0 at a place that must be found
    ("tanh", "dy*(1 - y**2)*torch.sign(2*x - 3)*torch.sign(6*x - 9)"),
    ("tanh", "dy*(1 - y**2)*torch.sign(y - 0.5)*torch.sign(6*y - 3)"),
    ("sigmoid", "dy*y*(1 - y)*(y != 0.75)"),
    ("softmax", SOFTMAX + "*torch.sign(y - 0.25)*torch.sign(4*y - 1)"),
    ("rms_norm", "dgain = (dy*xhat*torch.sign(2*x - 3)*torch.sign(6*x - 9)).sum(0)"),
    # beyond what exponentials reach
    ("softmax", f"torch.where(x > -1e9, {SOFTMAX}, 0)"),
    ("tanh", "dy*torch.where(x > 300, 0, 1 - y*y)"),
    ("batch_norm", BATCH_NORM.replace("inv_std", "inv_std.clamp(max=1000)")),
    ("std", STD.replace("y[..., None]", "y[..., None].clamp(min=1e-12)")),
    ("tanh", "dy*F.threshold(1 - y**2, 0.001, 0)"),
]


@pytest.mark.parametrize("name, formula", sampled(WRONG_BEYOND, 6))
def test_what_is_wrong_only_where_a_condition_changes_is_refuted(name, formula):
    verdict = checked(name, formula)
    (answer,) = verdict.answers
    assert verdict.outcome == "wrong"
    found = answer.refutation.counterexample
    assert not found.at_kink and found.expected != found.got
    assert answer.refutation.neighbour is None  # at random data nothing is to be explained


@pytest.mark.parametrize(
    "formula, x",
    [
        ("dy*(x > 0)*(1 + (x == 17))", Integer(17)),
        ("dy*(x > 0)*(x**2 != 2)", sqrt(2)),
        ("dy*(x > 0)*(torch.exp(x) != 3)", log(3)),
    ],
)
def test_the_number_that_is_compared_with_is_met_exactly(formula, x):
    (answer,) = checked("relu", formula).answers
    assert rows(answer.refutation.counterexample)["x"] == [x]


def test_a_tie_that_is_one_for_all_data_is_no_kink(tmp_path):
    """``Eq(x, Max(x, C))`` holds in every row; a factor of 0.9 beside it is seen."""
    file = tmp_path / "largest.py"
    file.write_text(
        "from sympy import Eq, Piecewise\n"
        "from derive import Axis, Forward, Input, Max\n"
        "N, C = Axis('N'), Axis('C')\n\n\n"
        "class Doubled(Forward):\n"
        "    x = Input(N, C)\n"
        "    y = Piecewise((2*x, Eq(x, Max(x, C))), (x, True))\n"
    )
    wrong = derive.check(file, "dy*torch.where(x == x.amax(-1, keepdim=True), 2.0, 0.9)")
    assert wrong.outcome == "wrong"
    assert not wrong.answers[0].refutation.counterexample.at_kink


RIGHT_BY_RANGE = [
    ("softmax", SOFTMAX.replace("y*(dy -", "y.clamp(0, 1)*(dy -")),
    ("softmax", f"torch.where(y >= 0, {SOFTMAX}, 7)"),
    ("softmax", f"torch.where(y > 0, {SOFTMAX}, 7)"),
    ("softmax", SOFTMAX.replace("y*(dy -", "y.abs()*(dy -")),
    ("softmax_nll", "dloss*(probs.clamp(0, 1) - F.one_hot(labels, C))/N"),
    ("tanh", "dy*(1 - y.clamp(-1, 1)**2)"),
    ("tanh", "dy*(1 - y**2).clamp(0, 1)"),
    ("batch_norm", BATCH_NORM.replace("inv_std", "torch.where(var + eps > 0, inv_std, 0)")),
    ("relu", "dy*((x > 5)*1.0 + (x > 0)*(x <= 5))"),
    ("std", STD),
    ("std", f"torch.where(y[..., None] > 0, {STD}, 0)"),
    ("std", f"torch.where(y[..., None] == 0, 0, {STD})"),
    ("tanh", "dy*F.relu(1 - y**2)"),
    ("relu", "torch.relu(dy*(x > 0)) - torch.relu(-dy*(x > 0))"),
    ("relu", "dy*torch.sign(F.relu6(x))"),
    ("relu", "dy*(F.hardsigmoid(x) > 0.5)"),
    ("softmax_nll", "dloss*torch.where(F.one_hot(labels, C).float() == 1, probs - 1, probs)/N"),
]


@pytest.mark.parametrize("name, formula", sampled(RIGHT_BY_RANGE))
def test_a_condition_that_never_matters_is_no_obstacle(name, formula):
    verdict = checked(name, formula)
    assert verdict.outcome == "right", str(verdict)
    assert verdict.answers[0].proved.every_size


def test_a_quotient_is_compared_where_its_divisor_is_positive():
    verdict = checked("smooth_l1", "dloss*(error/beta).clamp(-1, 1)/N")
    assert verdict.outcome == "right" and verdict.answers[0].conditions == ("beta > 0",)


@pytest.mark.parametrize(
    "elsewhere", ["1", pytest.param("torch.where(x == 17, 1, 0)", marks=pytest.mark.thorough)]
)
def test_a_claim_that_is_wrong_only_at_ties_is_refuted(elsewhere):
    assert checked("std", f"torch.where(y[..., None] > 0, {STD}, {elsewhere})").outcome == "wrong"


def test_what_was_only_compared_at_a_tie_is_said(tmp_path):
    """The proof is one of the mathematics without the choice; where it is made, data were tried.
    A formula that has no value there leaves nothing to be said.
    """
    file = tmp_path / "squared.py"
    file.write_text(
        "from sympy import Piecewise\n"
        "from derive import Axes, Forward, Input\n"
        "N = Axes('N')\n\n\n"
        "class Squared(Forward):\n"
        "    x = Input(N)\n"
        "    s = x**2\n"
        "    y = Piecewise((0, s <= 0), (s, True))\n"
    )
    verdict = derive.check(file, "2*x*dy")
    assert verdict.outcome == "right" and verdict.answers[0].sampled == ("s <= 0",)
    assert "where s <= 0: not proved" in str(verdict)
    assert "not proved" in str(derive.check(file, "dx = 2*x*dy"))
    textbook = checked("std", STD)
    assert not textbook.answers[0].sampled and textbook.answers[0].narrowing


ROUNDED = [
    ("x/1.4142135623730951", "0.3989422804014327"),
    ("x*0.70710678118654757", "1/2.5066282746310002"),
    ("x*0.7071068", "0.3989423"),
    ("x/2**0.5", "0.7978845608028654/2"),
]


@pytest.mark.parametrize("a, b", sampled(ROUNDED, 2))
def test_a_rounded_constant_is_named_and_the_rest_is_proved(a, b):
    verdict = checked("gelu", GELU.format(a=a, b=b))
    (answer,) = verdict.answers
    assert verdict.status == 0 and answer.rounded and answer.proved.every_size
    assert str(verdict).startswith("right up to rounding: dx of gelu\n")
    assert verdict.as_json()["gradients"][0]["rounded"] == [*answer.rounded]


@pytest.mark.parametrize(
    "a, b",
    [
        ("x/2**0.5", "0.39891"),  # four digits agree
        ("x/2**0.5", "0.3989422805014327"),  # nine of sixteen that are typed
        ("x/2**0.5", "(-0.3989422804014327)"),
        ("2*x/1.4142135623730951", "0.3989422804014327"),
        ("x/2**0.5", "0.1994711402007163"),  # half of what it must be
    ],
)
def test_rounding_excuses_nothing(a, b):
    verdict = checked("gelu", GELU.format(a=a, b=b))
    assert verdict.outcome == "wrong" and not verdict.answers[0].rounded


def test_an_exact_decimal_is_no_rounding():
    chain = derive_chain(derive.forward_from("gelu_tanh").definition)
    assert rounded_constants("1 + 0.134145*x**2 + 0.5000000*x", chain) == []
    (found,) = rounded_constants("0.7978845608028654*x", chain)
    assert str(found) == "0.7978845608028654 is sqrt(2)/sqrt(pi), rounded to 16 digits"


def test_two_numbers_that_differ_are_shown_to_differ():
    said = str(checked("gelu", GELU.format(a="x/2**0.5", b="0.3989422805014327")))
    (expected,) = (line.split("=")[1] for line in said.splitlines() if "expected" in line)
    (got,) = (line.split("=")[1] for line in said.splitlines() if " got " in line)
    assert expected != got


@pytest.mark.parametrize(
    "name, formula, signs",
    [
        ("batch_norm", "gain*inv_std*(dy + dy.mean(0) + xhat*(dy*xhat).sum(0)/(n - 1))", 2),
        ("batch_norm", "gain*inv_std*(-dy + dy.mean(0) - xhat*(dy*xhat).sum(0)/(n - 1))", 2),
        ("softmax", "y*(dy + (dy*y).sum(-1, keepdim=True))", 1),
        ("silu", "dy*(s - x*s*(1 - s))", 2),
    ],
)
def test_wrong_signs_are_one_finding(name, formula, signs):
    verdict = checked(name, formula)
    comparison = verdict.answers[0].refutation.comparison
    assert comparison.factor is None
    assert [d.kind for d in comparison.differences] == ["sign"] * signs
    words = [line for line in str(verdict).splitlines() if line.startswith("the sign")]
    assert len(words) == 1


@pytest.mark.parametrize("name, formula", [("batch_norm", BATCH_NORM), ("softmax", SOFTMAX)])
def test_of_a_whole_that_is_turned_round_only_that_is_said(name, formula):
    comparison = checked(name, f"-({formula})").answers[0].refutation.comparison
    assert comparison.factor is not None and not comparison.differences
