"""Sums of products in which products of means cancel, and means by exponentials, in any spelling:
both sides of what is found are evaluated, and float32 keeps its digits at a mean of 1e4, or with
exponents of hundreds.
"""

import pytest
import torch
from evaluate import Numbers, close
from generating import forward_file, generated

import derive.gradient.values.graph as graph
from derive import Axis, forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close as closed
from derive.gradient.values.relations import relations_of
from derive.language.errors import UnprovedError
from derive.language.symbols import axes_of
from derive.proof.proving.forward_plan import forward_plan

SIZES = {"N": 64, "C": 3, "H": 2, "K": 4}
SMALL = {Axis(name): size for name, size in (("N", 3), ("C", 2), ("H", 2), ("K", 2))}
X = "x = Input(N, C)\n"
XZ = X + "z = Input(N, C)\n"
W = X + "u = Input(N)\nw = u**2 + 1\n"
SHARES = X + "u = Input(N)\np = exp(u)/Sum(exp(u), N)\n"

MOMENTS = {
    "means": X + "m = Sum(x, N)/N\ny = Sum(x**2, N)/N - m**2",
    "inline": X + "y = Sum(x**2, N)/N - (Sum(x, N)/N)**2",
    "no division": X + "y = N*Sum(x**2, N) - Sum(x, N)**2",
    "Bessel": X + "a = Sum(x, N)\nb = Sum(x*x, N)\ny = (b - a**2/N)/(N - 1)",
    "a sum of differences": X + "m = Sum(x, N)/N\ny = Sum(x**2 - m**2, N)/N",
    "with all named": X + "m = Sum(x, N)/N\nq = Sum(x**2, N)/N\nv = q - m**2\n"
    "y = (x - m)/sqrt(v + Rational(1, 100000))",
    "under a root": X + "m = Sum(x, N)/N\nq = Sum(x**2, N)/N\ny = sqrt(q - m**2)",
    "two axes": X + "m = Sum(x, N, C)/(N*C)\ny = Sum(x**2, N, C)/(N*C) - m**2",
    "covariance": XZ + "y = Sum(x*z, N)/N - Sum(x, N)*Sum(z, N)/N**2",
    "of all pairs": X + "z = Input(N, H)\ny = Sum(x*z, N)/N - Sum(x, N)*Sum(z, N)/N**2",
    "correlation": XZ + "a = Sum(x, N)\nb = Sum(z, N)\n"
    "y = (N*Sum(x*z, N) - a*b)/sqrt((N*Sum(x**2, N) - a**2)*(N*Sum(z**2, N) - b**2))",
    "slope": XZ + "y = (N*Sum(x*z, N) - Sum(x, N)*Sum(z, N))/(N*Sum(x**2, N) - Sum(x, N)**2)",
    "third": X + "m = Sum(x, N)/N\ny = Sum(x**3, N)/N - 3*m*Sum(x**2, N)/N + 2*m**3",
    "fourth": X + "m = Sum(x, N)/N\n"
    "y = Sum(x**4, N)/N - 4*m*Sum(x**3, N)/N + 6*m**2*Sum(x**2, N)/N - 3*m**4",
    "weights": W + "t = Sum(w, N)\nm = Sum(w*x, N)/t\ny = Sum(w*x**2, N)/t - m**2",
    "weights inline": W + "y = Sum(w*x**2, N)/Sum(w, N) - (Sum(w*x, N)/Sum(w, N))**2",
    "weights, no division": W + "y = Sum(w, N)*Sum(w*x**2, N) - Sum(w*x, N)**2",
    "normalised": W + "p = w/Sum(w, N)\ny = Sum(p*x**2, N) - Sum(p*x, N)**2",
    "shares": SHARES + "m = Sum(p*x, N)\ny = Sum(p*x**2, N) - m**2",
    "weighted covariance": W + "z = Input(N, C)\nt = Sum(w, N)\n"
    "y = Sum(w*x*z, N)/t - Sum(w*x, N)*Sum(w*z, N)/t**2",
}

S = "x = Input(N, C)\nv = Input(C, H)\n"
MEAN = "Sum(exp(x)*v, C)/Sum(exp(x), C)"
MEANS = {
    "alone": S + f"y = {MEAN}",
    "in a sum": S + f"k = Input(H)\ny = Sum(k*{MEAN}, H)",
    "among terms": S + f"k = Input(N, H)\ny = {MEAN} + k",
    "in a square": S + f"k = Input(N, H)\ny = Sum(({MEAN} - k)**2, H)",
    "with a temperature": S + "t = Scalar(2, above=0)\ne = exp(x/t)\na = Sum(e*v, C)\n"
    "b = Sum(e, C)\ny = Sum(a/b, H)",
    "two of them": S + f"y = Sum(({MEAN})*{MEAN.replace('exp(x)', 'exp(-x)')}, H)",
    "squares": S + "y = Sum(Sum(exp(x)*v, C)**2/Sum(exp(x), C)**2, H)",
}
ALL = MOMENTS | MEANS


def lines(body):
    return "".join(f"    {line}\n" for line in body.split("\n"))


def relations(body, folder):
    return relations_of(forward_from(forward_file(folder, "Case", lines(body))).definition)


@pytest.mark.parametrize("case", ALL)
def test_both_sides_are_equal(case, tmp_path):
    known = relations(ALL[case], tmp_path)
    assert known.about and not known.cancelling
    for written, about in known.about.items():
        axes = sorted(axes_of(written), key=str)
        numbers = Numbers(SMALL, 1, known.values)
        assert all(map(close, numbers.entries(written, axes), numbers.entries(about, axes)))


def runs(function, definition, fill):
    """Value and gradients in float64 and in float32, of the same numbers."""
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for t in definition.inputs:
        shape = [SIZES[axis.name] for axis in t.axes]
        inputs.append(fill(t.name, torch.randn(shape, generator=generator)))
    found = []
    for dtype in (torch.float64, torch.float32):
        leaves = [t.to(dtype).requires_grad_() for t in inputs]
        y = function(*leaves)
        upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        found.append([y.detach(), *torch.autograd.grad(y, leaves, upstream)])
    return zip(*found, strict=True)


@pytest.mark.parametrize("case", MOMENTS)
def test_moments_keep_their_digits(case, tmp_path):
    function, _, made = generated(forward_file(tmp_path, "Moments", lines(MOMENTS[case])), tmp_path)
    assert made.proved.every_size

    def far(name, numbers):
        return numbers + 1e4 if name in "xz" else numbers

    exact = runs(function, made.proved.closed_form.definition, far)
    for place, (wanted, ours) in enumerate(exact):
        gap = float((ours - wanted).abs().max() / wanted.abs().max())
        assert gap <= (1e-3 if place else 1e-5), (place, gap)  # the rounded mean of 1e4


@pytest.mark.parametrize("case", MEANS)
def test_means_by_exponentials_stay_finite(case, tmp_path):
    function, _, made = generated(forward_file(tmp_path, "Means", lines(MEANS[case])), tmp_path)
    assert made.proved.every_size and made.proved.closed_form.preference[0] == 0

    def large(name, numbers):
        return 300 * numbers if name == "x" else numbers

    for wanted, ours in runs(function, made.proved.closed_form.definition, large):
        assert wanted.isfinite().all()
        assert float((ours - wanted).abs().max()) <= 1e-4 * float(wanted.abs().max())


CENTRED = {
    "means": X + "m = Sum(x, N)/N\ny = Sum((x - m)**2, N)/N",
    "covariance": XZ + "y = Sum((x - Sum(x, N)/N)*(z - Sum(z, N)/N), N)/N",
    "weights": W + "t = Sum(w, N)\nm = Sum(w*x, N)/t\ny = Sum(w*(x - m)**2, N)/t",
    "shares": SHARES + "m = Sum(p*x, N)\ny = Sum(p*(x - m)**2, N)",
}


@pytest.mark.parametrize("case", CENTRED)
def test_it_costs_no_more_than_what_is_centred_by_hand(case, tmp_path):
    forms = [
        closed(derive_chain(forward_from(forward_file(tmp_path, "Cost", lines(body))).definition))
        for body in (MOMENTS[case], CENTRED[case])
    ]
    ours, by_hand = forms
    assert ours.preference <= by_hand.preference
    assert len(forward_plan(ours)) <= len(forward_plan(by_hand))


UNSAFE = {
    "weights of any sign": X + "u = Input(N)\ny = Sum(u, N)*Sum(u*x**2, N) - Sum(u*x, N)**2",
    "a matrix product": "x = Input(N, C)\nv = Input(C, H)\np = exp(x)/Sum(exp(x), C)\n"
    "y = Sum(p*v**2, C) - Sum(p*v, C)**2",
}


@pytest.mark.parametrize("case", UNSAFE)
def test_what_may_cancel_is_named(case, tmp_path):
    _, module, made = generated(forward_file(tmp_path, "Lost", lines(UNSAFE[case])), tmp_path)
    (words,) = [u for u in made.program.unsafe if "may cancel" in u]
    assert "y and its gradients lose their digits" in words
    assert "may cancel" in " ".join(module.__doc__.split() + module.lost.__doc__.split())


WEIGHTED = {
    "a logarithm": "x = Input(N, C)\nu = Input(C)\ny = log(Sum(u**2*exp(x), C))",
    "shares": "x = Input(N, C)\nu = Input(C)\ne = Abs(u)*exp(x)\ny = e/Sum(e, C)",
    "given weights": "x = Input(N, C)\nu = Given(C)\ny = log(Sum(u*exp(x), C))",
}


@pytest.mark.parametrize("case", WEIGHTED)
def test_weights_that_may_be_nothing_are_named(case, tmp_path):
    body = WEIGHTED[case]
    _, _, made = generated(forward_file(tmp_path, "Weighted", lines(body)), tmp_path)
    assert any("their sum may underflow" in words for words in made.program.unsafe)
    safe = body.replace("u**2", "(u**2 + 1)").replace("Abs(u)", "(Abs(u) + 1)")
    safe = safe.replace("Sum(u*", "Sum((u**2 + 1)*")
    _, _, made = generated(forward_file(tmp_path, "Safe", lines(safe)), tmp_path)
    assert not any("underflow:" in words for words in made.program.unsafe)


K_N = "x = Input(K, N)\nu = Input(N)\n"
CHOSEN = {
    "a logarithm": K_N + "e = u**2*Piecewise((exp(x), Ne(u, 0)), (0, True))\ny = log(Sum(e, N))",
    "shares": K_N + "e = Abs(u)*Piecewise((exp(x), Ne(Abs(u), 0)), (0, True))\ny = e/Sum(e, N)",
}


@pytest.mark.parametrize("case", CHOSEN)
def test_weights_of_nothing_are_safe_where_that_is_a_choice(case, tmp_path):
    function, _, made = generated(forward_file(tmp_path, "Chosen", lines(CHOSEN[case])), tmp_path)
    assert not any("underflow:" in words for words in made.program.unsafe)

    def first_is_nothing(name, numbers):
        numbers[..., 0] = 300.0 if name == "x" else 0.0
        return numbers

    for wanted, ours in runs(function, made.proved.closed_form.definition, first_is_nothing):
        assert wanted.isfinite().all()
        torch.testing.assert_close(ours.double(), wanted, rtol=1e-4, atol=1e-5)


UNTOUCHED = [
    X + "y = Sum(x**2, N)/N + (Sum(x, N)/N)**2",
    X + "y = Sum(x**2, N) - Sum(x, N)**2",
    X + "c = Input(C)\ny = Sum(x**2, N)/N - c**2",
    X + "m = Sum(x, N)/N\ny = Sum((x - m)**2, N)/N",
    XZ + "y = Sum(x, N)*Sum(z, N)",
]


@pytest.mark.parametrize("body", UNTOUCHED)
def test_where_nothing_cancels_nothing_is_rewritten(body, tmp_path):
    assert not relations(body, tmp_path).about


def test_what_is_wrong_about_the_means_is_refused(tmp_path, monkeypatch):
    right = graph.about_means
    monkeypatch.setattr(graph, "about_means", lambda e, known: 2 * right(e, known))
    with pytest.raises(UnprovedError):
        generated(forward_file(tmp_path, "Wrong", lines(MOMENTS["means"])), tmp_path)
