"""Formulas are evaluated as they are meant, right ones pass, and a wrong one gets the smallest
counterexample, in numbers that a reader can check by hand.
"""

import time
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import isclose

import pytest
import torch
from evaluate import Numbers
from forwards import OWN, write
from sympy import (
    Abs,
    And,
    Float,
    Integer,
    Not,
    Or,
    Piecewise,
    Rational,
    erf,
    exp,
    log,
    nan,
    pi,
    sin,
    sqrt,
    tanh,
)

import derive
from derive.claims.checking.numbers.arithmetic import Floating, Undefined
from derive.claims.checking.numbers.arithmetic import Unevaluable as OutOfReach
from derive.claims.checking.numbers.confirmation import Contradiction, confirm
from derive.claims.checking.numbers.counterexample import (
    counterexample,
    largest_difference,
    random_points,
    rows,
)
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.exact_numbers import Exact, Irrational, Logarithms
from derive.claims.checking.numbers.points import RandomData, data_of, generic_point, smallest_sizes
from derive.gradient.chain.chain import adjoint_of, derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.nodes import ArgMax, Max, OneHot, Rename, Sum, along
from derive.language.notation.library import load
from derive.language.symbols import Axis, tensors_in

N, C, K, H, D, V = map(Axis, "NCKHDV")
MLP_SIZES = {Axis("N"): 3, Axis("T"): 2, Axis("V"): 3, Axis("E"): 2, Axis("H"): 2}


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    own = load(write(tmp_path_factory.mktemp("own"), *OWN))
    named = [derive.forward_from(name) for name in ("batch_norm", "softmax_nll", "mlp")]
    return {f.__name__: derive_chain(f.definition) for f in (*named, *own)}


class Names:
    """The tensors of a chain by name, the gradients among them: ``t.dx``."""

    def __init__(self, chain):
        definition = chain.definition
        tensors = [*data_of(definition), *(s.tensor for s in definition.statements)]
        vars(self).update({t.name: t for t in tensors})
        vars(self).update({a.name: a.tensor for a in chain.adjoints})


def some_sizes(chain):
    axes = chain.definition.independent_axes
    return MLP_SIZES if len(axes) > 4 else {axis: 2 + i % 2 for i, axis in enumerate(axes)}


def a_point(chain, seed=0, kind=0):
    drawing = RandomData(seed, kind)
    return generic_point(chain.definition, some_sizes(chain), {}, drawing)


def fraction(e):
    return Fraction(int(e.p), int(e.q))


@pytest.mark.parametrize("name", ["BatchNorm", "SoftmaxNLL", "MLP", *OWN])
def test_forwards_and_gradients_are_what_the_loops_of_the_oracle_give(chains, name):
    chain = chains[name]
    point = a_point(chain, kind=1)
    evaluation = Evaluation(chain, point, Floating())
    oracle = Numbers(evaluation.sizes, definitions=chain.definition.statements)
    oracle.definitions |= {a.name: a.expression for a in chain.adjoints}
    for tensor, entries in point.values.items():
        oracle.known |= {(tensor, i): fraction(e) for i, e in entries.items()}
    for of in (chain.definition.output, *map(adjoint_of, chain.definition.differentiable)):
        for i, value in evaluation.entries(of, of.home).items():
            expected = oracle.value(of, dict(zip(of.home, i, strict=True)))
            assert isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9), (of, i)


def test_batch_norm_is_that_of_autograd(chains):
    chain = chains["BatchNorm"]
    point = a_point(chain)
    data = {
        name: torch.tensor([float(e) for e in entries.values()], dtype=torch.float64)
        for name, entries in point.values.items()
    }
    x = data["x"].reshape(2, 3).requires_grad_()
    y = data["gain"] * (x - x.mean(0)) / (x.var(0) + data["eps"]).sqrt() + data["bias"]
    y.backward(data["dy"].reshape(2, 3))
    y = y.detach()
    evaluation, t = Evaluation(chain, point, Floating()), Names(chain)
    for tensor, expected in ((t.y, y), (t.dx, x.grad)):
        for i, value in evaluation.entries(tensor, (N, C)).items():
            assert isclose(value, float(expected[i]), rel_tol=1e-12, abs_tol=1e-14)


def without_parts(form, e):
    """Parts of statements to which the closed form gave a name, written out."""
    parts = {part.tensor.name: part.expression for part in form.relations.parts}
    named = {t: along(parts[t.name], t) for t in tensors_in(e) if t.name in parts}
    return without_parts(form, e.xreplace(named)) if named else e


RIGHT = ["BatchNorm", "SoftmaxNLL", "MLP", "Attention", "PairDistances", "Swish", "WeightedNLL"]


@pytest.mark.parametrize("name", RIGHT)
def test_right_formulas_differ_by_rounding_alone(chains, name):
    chain = chains[name]
    form = close(chain)
    points = random_points(chain.definition, seed=3)
    for of in chain.definition.differentiable:
        claimed = form.closed[f"d{of.name}"]
        of_parts = form.closed.keys() - chain.by_name.keys()
        while read := [t for t in tensors_in(claimed) if t.name in of_parts]:
            claimed = claimed.xreplace({t: along(form.closed[t.name], t) for t in read})
        claimed = without_parts(form, claimed)
        assert largest_difference(chain, of, claimed, points) < 1e-40


def test_right_formulas_in_other_words_have_no_counterexample(chains):
    t = Names(chains["LayerNorm"])
    centred = t.gain * t.dy - Sum(t.gain * t.dy, C) / C
    claimed = t.inv_std * (centred - t.xhat * Sum(t.gain * t.dy * t.xhat, C) / C)
    assert counterexample(chains["LayerNorm"], t.x, claimed) is None
    s = Names(chains["SoftmaxNLL"])
    softmax = exp(s.logits) / Sum(exp(s.logits), C)
    claimed = s.dloss / N * (softmax - OneHot(s.labels, C))
    assert counterexample(chains["SoftmaxNLL"], s.logits, claimed) is None


def batch_norm_gradient(t, divisor=N - 1, xhat=None, dy=None, inv_std=None):
    xhat, dy, inv_std = xhat or t.xhat, t.dy if dy is None else dy, inv_std or t.inv_std
    return t.gain * inv_std * (dy - Sum(t.dy, N) / N - xhat * Sum(t.dy * xhat, N) / divisor)


# forward, of, claim, what is found: hand-checked sizes, data (None: any), index, expected, got.
# batch norm of x = (0, 2), eps = 2: mean 1, var 2, inv_std 1/2, xhat = (-1/2, 1/2), so for
# dy = (1, 0) dx[0] = 1/2*(1 - 1/2 - 1/4) = 1/8. For x = (0, 0), eps = 1: inv_std 1, xhat = 0, so
# dx = (1/2, -1/2). Softmax of (0, log 2): probs (1/3, 2/3).
SPREAD = {"N": 2, "C": 1, "x": [[0], [2]], "gain": [1], "bias": [0], "eps": 2, "dy": [[1], [0]]}
EQUAL = SPREAD | {"x": [[0], [0]], "eps": 1}
WRONG = {
    "Bessel's correction is missing": (
        *("BatchNorm", "x", lambda t: batch_norm_gradient(t, divisor=N)),
        *(SPREAD, "1/8", "3/16"),
    ),
    "y in place of xhat": (
        *("BatchNorm", "x", lambda t: batch_norm_gradient(t, xhat=t.y)),
        *(EQUAL | {"bias": [1]}, "1/2", "-1/2"),
    ),
    "statistics as constants": (
        *("BatchNorm", "x", lambda t: t.gain * t.inv_std * t.dy),
        *(EQUAL, "1/2", "1"),
    ),
    "one upstream gradient ignored": (
        *("BatchNorm", "x", lambda t: batch_norm_gradient(t, dy=1)),
        *(EQUAL | {"dy": [[0], [0]]}, "0", "1"),
    ),
    "a factor of 1 + 1e-12": (
        *("BatchNorm", "x", lambda t: batch_norm_gradient(t) * (1 + Rational(1, 10**12))),
        *(EQUAL, "1/2", "1000000000001/2000000000000"),
    ),
    "right for N = 2 only": (
        *("BatchNorm", "x", lambda t: batch_norm_gradient(t) * (1 + (N - 2) / Integer(10))),
        {"N": 3, "C": 1, "x": [[0]] * 3, "gain": [1], "eps": 1, "dy": [[1], [0], [0]]},
        *("2/3", "11/15"),
    ),
    "right for C = 1 only": (
        *("BatchNorm", "bias", lambda t: Sum(t.dy, N) / C),
        *({"N": 2, "C": 2, "dy": [[1, 0], [0, 0]]}, "1", "1/2"),
    ),
    "a lost half": (
        *("BatchNorm", "var", lambda t: -Sum(t.dxhat * t.diff, N) * t.inv_std**3),
        *(SPREAD, "1/16", "1/8"),
    ),
    "the mean over the batch is missing": (
        *("SoftmaxNLL", "logits", lambda t: t.dloss * (t.probs - OneHot(t.labels, C))),
        {"N": 2, "C": 2, "logits": [[0, log(2)], [log(2), 0]], "labels": [0, 0], "dloss": 1},
        *("1/3", "2/3"),
    ),
    "the upstream gradient is ignored": (
        *("SoftmaxNLL", "logits", lambda t: (t.probs - OneHot(t.labels, C)) / N),
        {"N": 1, "C": 2, "logits": [[0, log(2)]], "labels": [0], "dloss": 0},
        *("0", "2/3"),
    ),
    "softmax over the batch": (
        "SoftmaxNLL",
        "logits",
        lambda t: t.dloss * (exp(t.logits) / Sum(exp(t.logits), N) - OneHot(t.labels, C)) / N,
        *({"N": 2, "C": 1, "logits": [[0], [0]], "labels": [0, 0], "dloss": 1}, "0", "-1/4"),
    ),
    "smoothing forgotten": (
        *("SmoothedNLL", "logits", lambda t: t.dloss * (t.probs - OneHot(t.labels, C)) / N),
        {"N": 1, "C": 2, "logits": [[0, log(2)]], "labels": [0], "smoothing": 1, "dloss": 1},
        *("1/6", "2/3"),
    ),
    "unnormalised weights": (
        *("Attention", "v", lambda t: Sum(t.dout * t.e, N)),
        {"N": 1, "D": 1, "K": 2, "H": 1, "k": [[0], [log(2)]], "dout": [[1]]},
        *("2/3", "1"),
    ),
    "tanh forgotten": (
        *("Embedding", "table", lambda t: Sum(OneHot(t.index, K) * t.dy, N)),
        *({"N": 1, "K": 1, "D": 1, "index": [0], "table": [[log(2)]], "dy": [[1]]}, "16/25", "1"),
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_the_smallest_counterexample_is_the_one_of_the_hand(chains, mistake):
    name, of, claim, data, expected, got = WRONG[mistake]
    t = Names(chains[name])
    found = counterexample(chains[name], getattr(t, of), claim(t))
    shown = rows(found)
    assert {key: shown[key] for key in data} == data
    assert (found.expected, found.got) == (Rational(expected), Rational(got))
    assert found.is_rational and not found.at_kink


def test_rows_come_in_the_order_of_declaration_and_name_the_entry(chains):
    t = Names(chains["BatchNorm"])
    found = counterexample(chains["BatchNorm"], t.x, batch_norm_gradient(t, divisor=N))
    at_entry = {"expected dx[0, 0]": Rational(1, 8), "got dx[0, 0]": Rational(3, 16)}
    assert rows(found) == SPREAD | at_entry
    assert list(rows(found))[:7] == ["N", "C", "x", "gain", "bias", "eps", "dy"]


def test_settled_numbers_are_kept(chains):
    chain, eps = chains["BatchNorm"], Rational(1, 100000)
    t = Names(chain)
    found = counterexample(chain, t.x, batch_norm_gradient(t, divisor=N), {"eps": eps})
    assert rows(found)["eps"] == eps
    # x = (0, 1): var 1/2, so inv_std has the root of 1/2 + 1/100000 in it
    assert not found.is_rational and found.expected.has(sqrt(500010))
    chain = chains["SoftmaxNLL"]
    t = Names(chain)
    claimed = (t.probs - OneHot(t.labels, C)) / N
    assert counterexample(chain, t.logits, claimed, {"dloss": Integer(1)}) is None


def test_eps_outside_of_the_root_is_refuted_where_the_gradient_is_rational(chains):
    t = Names(chains["BatchNorm"])
    claimed = batch_norm_gradient(t, inv_std=1 / (sqrt(t.var) + t.eps))
    found = counterexample(chains["BatchNorm"], t.x, claimed)
    assert found.expected.is_Rational and found.expected != found.got
    assert dict(found.point.sizes) == {"N": 2, "C": 1}


def test_an_irrational_example_is_exact_where_there_is_no_rational_one(chains):
    t = Names(chains["Swish"])
    found = counterexample(chains["Swish"], t.x, t.dy * t.gate)
    # gate = 2/3 at log 2, and x*gate*(1 - gate) = 2/9*log 2
    assert (found.expected, found.got) == (Rational(2, 3) + 2 * log(2) / 9, Rational(2, 3))


def test_a_long_network_has_an_example_too(chains):
    chain = chains["MLP"]
    t = Names(chain)
    found = counterexample(chain, t.C, 2 * t.dC)
    assert dict(found.point.sizes) == {"N": 2, "T": 1, "V": 2, "E": 1, "H": 1}
    assert isinstance(found.expected, Float) and not found.is_rational
    found = counterexample(chain, t.W2, Sum(t.dlogits * t.h, N) / N)
    assert found.is_rational  # h = tanh(log 2) = 3/5, probs = (1/3, 2/3)
    assert (found.expected, found.got) == (Rational(2, 5), Rational(1, 5))


def test_a_claim_without_a_value_is_a_counterexample_only_if_there_is_no_other(chains):
    chain = chains["BatchNorm"]
    t = Names(chain)
    undefined_at_2 = (N**2 - 4) / (N - 2) / (N + 2)
    claimed = batch_norm_gradient(t) * undefined_at_2
    points = random_points(chain.definition)
    assert {3, 11} <= {dict(point.sizes)["N"] for point in points}
    assert largest_difference(chain, t.x, claimed, points) < 1e-40  # N = 2 is left out
    found = counterexample(chain, t.x, claimed)
    assert dict(found.point.sizes)["N"] == 2 and found.got is nan
    found = counterexample(chain, t.x, claimed * 2)
    assert dict(found.point.sizes)["N"] == 3 and found.got == 2 * found.expected
    with pytest.raises(OutOfReach):
        largest_difference(chain, t.x, t.dx / (t.eps - t.eps + Sum(t.diff, N)), points[:1])


def test_a_claim_that_differs_between_equals_alone_is_said_to(chains):
    chain = chains["ClampedNLL"]
    t = Names(chain)
    exact = counterexample(chain, t.row, Piecewise((t.dloss / N, t.row < 2), (0, True)))
    assert exact is None  # no simple logits put a row on the edge
    tied = Sum(Piecewise((1, t.logits >= Max(t.logits, C)), (0, True)), C)
    found = counterexample(chain, t.logits, t.dlogits * tied)
    assert found is not None and found.at_kink


def test_the_gradient_is_confirmed_by_sympy(chains):
    for name, of in (("BatchNorm", "x"), ("SoftmaxNLL", "logits"), ("Attention", "q")):
        chain = chains[name]
        t = Names(chain)
        tensor = getattr(t, of)
        found = counterexample(chain, tensor, 2 * getattr(t, f"d{of}"))
        assert confirm(chain, found.point, tensor, found.index, found.expected)
        with pytest.raises(Contradiction):
            confirm(
                chain, found.point, tensor, found.index, found.expected * (1 + Float(1e-20, 50))
            )


def test_a_mistake_of_the_chain_is_not_blamed_on_the_claim(chains):
    chain = chains["BatchNorm"]
    t = Names(chain)
    gradient = batch_norm_gradient(t)
    broken = [
        replace(a, contributions=(replace(a.contributions[0], expression=2 * gradient),))
        if a.name == "dx"
        else a
        for a in chain.adjoints
    ]
    with pytest.raises(Contradiction, match="BatchNorm: dx"):
        counterexample(replace(chain, adjoints=tuple(broken)), t.x, gradient)


def test_sizes_at_which_the_derivative_is_a_convention_are_passed_over(chains):
    chain = chains["AbsoluteFourthNorm"]
    t = Names(chain)
    found = counterexample(chain, t.x, t.gain * t.scale * t.dy)
    assert dict(found.point.sizes)["N"] == 2 and not found.at_kink  # abs(diff) is abs(0) for N = 1


def test_it_is_quick_and_the_same_every_time(chains):
    for name, of in (("BatchNorm", "x"), ("SoftmaxNLL", "logits"), ("MLP", "C")):
        t = Names(chains[name])
        claim = getattr(t, f"d{of}") * Rational(3, 2)
        began = time.perf_counter()
        first = counterexample(chains[name], getattr(t, of), claim)
        assert time.perf_counter() - began < (6 if name == "MLP" else 3)  # on a busy machine
        assert counterexample(chains[name], getattr(t, of), claim) == first


def bombs(t):
    tower = exp(exp(exp(100 * t.x)))
    power = t.x**t.x
    for _ in range(6):
        power = (1 + power) ** power
    return [
        *(tower, t.x ** Integer(9**40), t.x ** (1 / Integer(9**9)), power),
        *(Integer(3) ** (t.x * 10**9), exp(-tower), exp(10**5 * Abs(t.x)) * t.x),
    ]


@pytest.mark.parametrize("number", range(7))
def test_bombs_are_refused_and_not_computed(chains, number):
    chain = chains["BatchNorm"]
    t = Names(chain)
    claimed = t.dx * 2 + bombs(t)[number]
    began = time.perf_counter()
    counterexample(chain, t.x, claimed)
    with suppress(OutOfReach):
        largest_difference(chain, t.x, claimed, random_points(chain.definition))
    assert time.perf_counter() - began < 4


def test_points_suit_the_mathematics(chains):
    for name, chain in chains.items():
        points = random_points(chain.definition)
        sizes = [tuple(n for _, n in point.sizes) for point in points]
        assert len(set(sizes)) > 2 or name in ("Swish",)
        assert all(min(of_point) >= 2 for of_point in sizes)
        assert points == random_points(chain.definition)
        axes = {a.name: a for a in chain.definition.independent_axes}
        for point in points:
            assert chain.definition.fit({axes[name]: n for name, n in point.sizes})
    first = list(smallest_sizes(chains["BatchNorm"].definition))[:4]
    assert [tuple(s.values()) for s in first] == [(2, 1), (3, 1), (2, 2), (4, 1)]


def test_conditions_are_decided_and_what_is_not_chosen_may_be_undefined(chains):
    chain = chains["Swish"]
    (t,) = chain.definition.inputs
    point = a_point(chain)
    x = list(point.values["x"].values())
    assert x[0] != x[1]
    low, high = sorted(x)
    middle = (low + high) / 2
    evaluation = Evaluation(chain, point, Exact())
    for condition, wanted in (
        (And(t > middle, t < high + 1), high),
        (Or(t < low - 1, t >= high), high),
        (Not(t > middle), low),
    ):
        entries = evaluation.entries(Piecewise((1, condition), (0, True)), (N,))
        assert {x[i] for (i,), value in entries.items() if value == 1} == {wanted}
    guarded = Piecewise((1 / (t - low), t > low), (7, True))
    assert 7 in evaluation.entries(guarded, (N,)).values()
    with pytest.raises(Undefined):
        evaluation.entries(1 / (t - low), (N,))


def test_of_equals_the_first_is_the_largest_and_a_sum_counts_what_is_repeated(chains):
    chain = chains["SoftmaxNLL"]
    point = a_point(chain)
    point.values["logits"].update(dict.fromkeys(point.values["logits"], Integer(1)))
    evaluation, t = Evaluation(chain, point, Exact()), Names(chain)
    chosen = OneHot.over(ArgMax.over(t.logits, [C]), [C])
    assert list(evaluation.entries(chosen, (N, C)).values()) == [1, 0, 0, 1, 0, 0]
    assert evaluation.at_kink
    assert evaluation.entries(Sum.over(t.labels + 1, [C, N]), ()) == {
        (): 3 * sum(label + 1 for label in point.values["labels"].values())
    }


def test_axes_that_only_a_claim_has_get_their_size(chains):
    chain = chains["SoftmaxNLL"]
    t = Names(chain)
    other = Axis("C_other")
    jacobian = t.probs * (OneHot(t.labels, C) - Rename(t.probs, C, other))
    total = Sum(Sum(jacobian * Rename(t.dprobs, C, other), other), C)
    assert len(Evaluation(chain, a_point(chain), Floating()).entries(total, (N,))) == 2


def test_exact_numbers_stay_exact():
    exact = Exact()
    assert exact.apply(tanh, [_logarithm(2)]) == Fraction(3, 5)
    assert exact.apply(exp, [exact.multiply([Fraction(2), _logarithm(3)])]) == 9
    assert exact.add([_logarithm(2), _logarithm(3)]) == _logarithm(6)
    assert exact.add([_logarithm(4), exact.multiply([Fraction(-2), _logarithm(2)])]) == 0
    assert isinstance(_logarithm(2), Logarithms)
    assert exact.power(Fraction(9, 4), Fraction(-3, 2)) == Fraction(8, 27)
    assert exact.apply(sin, [Fraction(0)]) == 0 and exact.apply(erf, [Fraction(0)]) == 0
    assert exact.compare(_logarithm(2), Fraction(7, 10)) == -1
    for function, number in ((exp, 1), (sin, 1), (erf, 1)):
        with pytest.raises(OutOfReach):
            exact.apply(function, [Fraction(number)])
    assert _logarithm(Fraction(1, 2)) == exact.multiply([Fraction(-1), _logarithm(2)])
    for outside in (
        lambda: exact.power(Fraction(0), Fraction(-1)),
        lambda: Exact(irrational=True).power(Fraction(-1), Fraction(1, 2)),
        lambda: _logarithm(-1),
    ):
        with pytest.raises(Undefined):
            outside()


def test_numbers_of_too_many_digits_are_refused():
    exact, floating = Exact(), Floating()
    million, many = Fraction(10**6), floating.number(Integer(10**6))
    for too_large in (
        lambda: exact.power(Fraction(3), million),
        lambda: exact.apply(exp, [exact.multiply([million, _logarithm(3)])]),
        lambda: floating.power(floating.number(Integer(3)), many),
        lambda: floating.apply(exp, [many]),
        lambda: floating.apply(exp, [-many]),
    ):
        with pytest.raises(OutOfReach):
            too_large()


def test_irrational_numbers_are_compared_by_their_digits():
    exact = Exact(irrational=True)
    root = exact.power(Fraction(2), Fraction(1, 2))
    assert isinstance(root, Irrational)
    assert exact.multiply([root, root]) == 2
    near = Rational("1.4142135623730950488016887242097")
    assert exact.compare(root, exact.number(near)) != 0
    one, minus = exact.number(Integer(1)), exact.number(Integer(-1))
    inverse = exact.power(exact.add([root, one]), minus)
    assert exact.compare(inverse, exact.add([root, minus])) == 0  # 1/(sqrt(2) + 1) = sqrt(2) - 1
    assert exact.sympy(exact.number(pi)) is pi


def _logarithm(number):
    return Exact().apply(log, [Fraction(number)])
