"""Textbook forwards whose exponentials overflow come out safe, in value and gradient, as torch's
own functions do.
"""

import math
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated, labels
from sampling import every

from derive import forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.nodes import Peak
from derive.proof.proving.forward_plan import forward_plan

N, C = 4, 5


def nll(z):
    return F.cross_entropy(z, labels(N, C))


def focal(x):
    t, s = target(x), torch.sigmoid(x)
    good, bad = t * (1 - s) ** 2 * F.logsigmoid(x), (1 - t) * s**2 * F.logsigmoid(-x)
    return -(good + bad).mean()


def target(x):
    return torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape) % 3 / 2


def bce(x):
    return F.binary_cross_entropy_with_logits(x, target(x))


def log_cosh(x):
    return x.abs() + F.softplus(-2 * x.abs()) - torch.log(torch.tensor(2.0, dtype=x.dtype))


def masked(z, least):
    """The softmax of the entries whose mirror image is larger than ``least``; 0 where none is."""
    return torch._safe_softmax(z.masked_fill(z.flip(1).detach() <= least, -torch.inf), 1)


def attention(q):
    return F.scaled_dot_product_attention(q[None], q.flip(0)[None], q.flip(1)[None])[0]


# Name: statements, the reference, and the other inputs as functions of the first.
ROWS = {
    "Softmax": ("p = exp(z) / Sum(exp(z), C)", lambda z: F.softmax(z, 1)),
    "SoftmaxInSteps": (
        "counts = exp(z)\n    total = Sum(counts, C)\n    p = counts / total",
        lambda z: F.softmax(z, 1),
    ),
    "LogSoftmax": (
        "p = exp(z) / Sum(exp(z), C)\n    y = log(p)",
        lambda z: F.log_softmax(z, 1),
    ),
    "LessLogSumExp": ("y = z - log(Sum(exp(z), C))", lambda z: F.log_softmax(z, 1)),
    "LogSumExp": ("y = log(Sum(exp(z), C))", lambda z: z.logsumexp(1)),
    "LogOfTotal": (
        "counts = exp(z)\n    total = Sum(counts, C)\n    y = log(total)",
        lambda z: z.logsumexp(1),
    ),
    "NLL": (
        "labels = Label(N)\n    p = exp(z) / Sum(exp(z), C)\n"
        "    loss = -Sum(OneHot(labels, C) * log(p), N, C) / N",
        nll,
    ),
    "NLLOfPicked": (
        "labels = Label(N)\n    p = exp(z) / Sum(exp(z), C)\n"
        "    own = Sum(OneHot(labels, C) * p, C)\n    loss = -Sum(log(own), N) / N",
        nll,
    ),
    "NLLShiftedByHand": (
        "labels = Label(N)\n    e = exp(z - Max(z, C))\n    p = e / Sum(e, C)\n"
        "    loss = -Sum(OneHot(labels, C) * log(p), N, C) / N",
        nll,
    ),
    "LogMeanExp": (
        "T = Scalar(1.0)\n    y = T * log(Sum(exp(z / T), C) / C)",
        lambda z: z.logsumexp(1) - math.log(z.shape[1]),
    ),
    "Temperature": (
        "T = Scalar(2.0)\n    p = exp(z / T) / Sum(exp(z / T), C)",
        lambda z: F.softmax(z / 2, 1),
    ),
    "WeightedMean": (
        "w = Input(N, C)\n    y = Sum(w * exp(z), C) / Sum(exp(z), C)",
        lambda z: (F.softmax(z, 1) * z.flip(1).detach()).sum(1),
    ),
    "KL": (
        "b = Input(N, C)\n    p = exp(z) / Sum(exp(z), C)\n    q = exp(b) / Sum(exp(b), C)\n"
        "    loss = Sum(p * (log(p) - log(q)), N, C) / N",
        lambda z: F.kl_div(
            F.log_softmax(z.flip(1).detach(), 1),
            F.log_softmax(z, 1),
            reduction="batchmean",
            log_target=True,
        ),
    ),
    "MaskedSoftmax": (
        "m = Input(N, C)\n    counts = Piecewise((exp(z), m > -1), (0, True))\n"
        "    p = counts / Sum(counts, C)",
        lambda z: masked(z, -1),
    ),
    "MaskedSoftmaxOrNothing": (
        "m = Input(N, C)\n    counts = Piecewise((exp(z), m > 1), (0, True))\n"
        "    kept = Sum(Piecewise((1, m > 1), (0, True)), C)\n"
        "    nothing = Piecewise((1, Eq(kept, 0)), (0, True))\n"
        "    p = counts / (Sum(counts, C) + nothing)",
        lambda z: masked(z, 1),
    ),
    "LogSumExpOfProducts": (
        "b = Input(N, C)\n    y = log(Sum(exp(b * z), C))",
        lambda z: (z.flip(1).detach() * z).logsumexp(1),
    ),
    "LogSumExpWeighted": (
        "b = Input(N, C)\n    y = log(Sum(exp(z) * exp(b), C))",
        lambda z: (z + z.flip(1).detach()).logsumexp(1),
    ),
    "LogSumExpAndOne": (
        "y = log(1 + Sum(exp(z), C))",
        lambda z: F.pad(z, (0, 1)).logsumexp(1),
    ),
    "SoftmaxAndOne": (
        "p = exp(z) / (1 + Sum(exp(z), C))",
        lambda z: F.softmax(F.pad(z, (0, 1)), 1)[:, :-1],
    ),
    "SoftmaxBase2": ("p = 2**z / Sum(2**z, C)", lambda z: F.softmax(z * math.log(2), 1)),
    "SoftmaxOfNegatives": (
        "p = exp(-z**2) / Sum(exp(-z**2), C)",
        lambda z: F.softmax(-(z**2), 1),
    ),
    "SoftminOfDistances": (
        "d = z**2\n    p = exp(-d)\n    y = p / Sum(p, C)",
        lambda z: F.softmax(-(z**2), 1),
    ),
    "LogOfDensities": (
        "y = log(Sum(exp(-z**2), C))",
        lambda z: (-(z**2)).logsumexp(1),
    ),
    "Attention": (
        "k = Input(N, C)\n    v = Input(N, C)\n    s = Sum(z * Rename(k, N, K), C) / sqrt(C)\n"
        "    p = exp(s) / Sum(exp(s), K)\n    y = Sum(p * Rename(v, N, K), K)",
        lambda z: F.scaled_dot_product_attention(
            z[None], z.flip(1).detach()[None], z.flip(1).detach()[None]
        )[0],
    ),
}
POINTS = {
    "Softplus": ("y = log(1 + exp(z))", lambda z: -F.logsigmoid(-z)),
    "Sigmoid": ("y = 1 / (1 + exp(-z))", torch.sigmoid),
    "LogSigmoid": ("s = 1 / (1 + exp(-z))\n    y = log(s)", F.logsigmoid),
    "LogisticLoss": (
        "b = Input(N, C)\n    y = Sum(log(1 + exp(-b * z)), N, C)",
        lambda z: -F.logsigmoid(z.flip(1).detach() * z).sum(),
    ),
    "LogOfTheRest": (
        "s = 1 / (1 + exp(-z))\n    y = log(1 - s)",
        lambda z: F.logsigmoid(-z),
    ),
    "BCE": (
        "t = Input(N, C)\n    s = 1 / (1 + exp(-z))\n"
        "    loss = -Sum(t * log(s) + (1 - t) * log(1 - s), N, C) / (N * C)",
        bce,
    ),
    "Focal": (
        "t = Input(N, C)\n    s = 1 / (1 + exp(-z))\n"
        "    loss = -Sum(t * (1 - s)**2 * log(s) + (1 - t) * s**2 * log(1 - s), N, C) / (N * C)",
        focal,
    ),
    "Mish": ("y = z * tanh(log(1 + exp(z)))", F.mish),
    "Silu": ("y = z / (1 + exp(-z))", F.silu),
    "LogCosh": ("from sympy import cosh\n    y = log(cosh(z))", log_cosh),
    "GeluTanh": (
        "from sympy import pi\n"
        "    y = z * (1 + tanh(sqrt(2 / pi) * (z + Rational(44715, 10**6) * z**3))) / 2",
        lambda z: F.gelu(z, approximate="tanh"),
    ),
    "LogShare": (
        "b = Input(N, C)\n    y = log(exp(z) / (exp(z) + exp(b)))",
        lambda z: F.logsigmoid(z - z.flip(1).detach()),
    ),
    "SoftplusBase2": (
        "y = log(1 + 2**z) / log(2)",
        lambda z: -F.logsigmoid(-z * math.log(2)) / math.log(2),
    ),
    "TanhByExponentials": ("y = (exp(z) - exp(-z)) / (exp(z) + exp(-z))", torch.tanh),
    "MishWithoutLogarithm": (
        "y = z * ((1 + exp(z))**2 - 1) / ((1 + exp(z))**2 + 1)",
        F.mish,
    ),
    "LogAddExp": (
        "b = Input(N, C)\n    y = log(exp(z) + exp(b))",
        lambda z: torch.logaddexp(z, z.flip(1).detach()),
    ),
    "LogAddExpOfThree": (
        "b = Input(N, C)\n    y = log(exp(z) + exp(b) + 1)",
        lambda z: torch.logaddexp(torch.logaddexp(z, z.flip(1).detach()), 0 * z),
    ),
}
FORWARDS = ROWS | POINTS
SQUARES = ("LogSumExpOfProducts", "SoftmaxOfNegatives", "SoftminOfDistances", "LogOfDensities")
TOLERANCES = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 8e-3}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(differentiable function, module, `Generated`) of a forward above, by its name."""
    folder = tmp_path_factory.mktemp("stability")

    @cache
    def of(name):
        body = f"    z = Input(N, C)\n    {FORWARDS[name][0]}\n"
        return generated(forward_file(folder, name, body), folder)

    return of


def logits(size, dtype):
    z = torch.randn(N, C, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (z * size).to(dtype)


def run(made, name, z):
    """Value and gradient by the first input, ours."""
    function, _, result = made(name)
    others = []
    for other in result.program.forward.parameters[1:]:
        if other.role == "label":
            others.append(labels(N, C))
        elif other.role == "input":
            others.append(target(z) if other.name == "t" else z.flip(1))
    return value_and_gradient(lambda z: function(z, *others), z)


def value_and_gradient(function, z):
    z = z.detach().clone().requires_grad_()
    y = function(z)
    return y.detach(), torch.autograd.grad(y, z, upstream(y))[0]


def upstream(y):
    numbers = torch.arange(1, y.numel() + 1, dtype=y.dtype).reshape(y.shape)
    return torch.where(numbers % 2 == 0, numbers, -1) / y.numel()


def gap(one, other):
    return float((one.double() - other.double()).abs().max())


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("size", [1, 30, 1e4])
@pytest.mark.parametrize("name", every(2, FORWARDS))
def test_value_and_gradient_are_those_of_torch(made, name, size, dtype):
    """Relative to the largest entry; or no more than four times as far off as torch itself is."""
    size = min(size, 60) if dtype == torch.float16 else size
    if name in SQUARES and dtype == torch.float16:
        size = min(size, 4)  # the squares of such numbers are rounded to whole ones
    if name in ("Attention", "GeluTanh"):
        size = min(size, 30)  # the products of such inputs are beyond what tells them apart
    z = logits(size, dtype)
    wanted = value_and_gradient(FORWARDS[name][1], z.double())
    torchs = value_and_gradient(FORWARDS[name][1], z)
    for ours, reference, own in zip(run(made, name, z), wanted, torchs, strict=True):
        assert ours.shape == reference.shape and ours.dtype == dtype
        allowed = TOLERANCES[dtype] * float(reference.abs().max())
        assert gap(ours, reference) <= max(allowed, 4 * gap(own, reference), 1e-30)


INFINITE = {
    "LogSumExp": [[-torch.inf, 0.0, 1.0], [-torch.inf] * 3, [torch.inf, 0.0, 1.0]],
    "Softmax": [
        [-torch.inf, 0.0, 1.0],
        [-torch.inf] * 3,
        [torch.inf, 0.0, 1.0],
        [torch.nan, 0.0, 1.0],
    ],
    "LogSoftmax": [
        [-torch.inf, 0.0, 1.0],
        [-torch.inf] * 3,
        [torch.inf, 0.0, 1.0],
        [torch.nan, 0.0, 1.0],
    ],
    "LessLogSumExp": [
        [-torch.inf, 0.0, 1.0],
        [-torch.inf] * 3,
        [torch.inf, 0.0, 1.0],
        [torch.nan, 0.0, 1.0],
    ],
    "Softplus": [[torch.inf, -torch.inf, torch.nan]],
    "Sigmoid": [[torch.inf, -torch.inf, torch.nan]],
    "LogSigmoid": [[torch.inf, -torch.inf, torch.nan]],
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinite_entries_go_as_in_torch(made, name):
    z = torch.tensor(INFINITE[name], dtype=torch.float64)
    wanted = value_and_gradient(FORWARDS[name][1], z)
    for ours, reference in zip(run(made, name, z), wanted, strict=True):
        torch.testing.assert_close(ours, reference, equal_nan=True)


@pytest.mark.parametrize("size", [-20.0, -50.0, -80.0])
def test_small_numbers_keep_their_digits(made, size):
    """log(1 + exp(-50)) is no zero in float32."""
    z = torch.tensor([[size]], dtype=torch.float32)
    for name, wanted in [("Softplus", z.double().exp()), ("LogSigmoid", z.double())]:
        value, _ = run(made, name, z)
        torch.testing.assert_close(value.double(), wanted.log1p() if name == "Softplus" else wanted)


@pytest.mark.parametrize("name", ["LogSigmoid", "LogisticLoss"])
def test_the_gradient_of_what_is_nearly_met_keeps_its_digits(made, name):
    """1 - 1/(1 + exp(-50)) is 0 in every format; 1/(1 + exp(50)) is not."""
    z = torch.tensor([[7.0 if name == "LogisticLoss" else 50.0]], dtype=torch.float32)
    _, ours = run(made, name, z)
    _, wanted = value_and_gradient(FORWARDS[name][1], z.double())
    torch.testing.assert_close(ours.double(), wanted, rtol=2e-5, atol=0)


def test_a_line_that_is_not_proved_equal_stays_as_it_is(made, monkeypatch):
    form = made("LogSumExp")[2].proved.closed_form
    assert forward_plan(form)[-1].expression.has(Peak, form.relations.by_name["max_z"].tensor)
    monkeypatch.setattr("derive.proof.proving.line_proof.vanishes", lambda *_: False)
    (line,) = forward_plan(form)
    assert str(line.expression) == "log(Sum(exp(z), C))"


@pytest.mark.parametrize("name", every(2, FORWARDS))
def test_every_value_is_its_factor_times_its_exponential(made, name):
    """The rewriting relies on it; proved of each value by itself."""
    from sympy import exp

    from derive.proof.proving.line_proof import in_statements_and_peaks, vanishes

    relations = made(name)[2].proved.closed_form.relations
    for value in (v for v in relations.values if v.tensor.name not in relations.scales.made):
        scaled = relations.scales.known.get(value.tensor.name)
        scaled = scaled or relations.scales.of(value.expression)
        claim = value.tensor - scaled.factor * exp(scaled.exponent)
        assert vanishes(in_statements_and_peaks(claim, relations), relations), value


def test_no_exponential_of_a_hand_subtracted_maximum_is_shifted_again(derived):
    relations = derived("softmax_nll").closed_form.relations
    assert not relations.scales.known and not relations.scales.made


def test_the_logarithm_in_what_is_stable_is_taken_once(made):
    lines = forward_plan(made("BCE")[2].proved.closed_form)
    assert sum(str(line.expression).count("log(") for line in lines) == 1


def test_the_larger_and_the_smaller_of_two_are_the_two(tmp_path):
    body = "    z = Input(N)\n    s = 1 / (1 + exp(-z))\n    y = log(s) - log(1 - s)\n"
    form = close(derive_chain(forward_from(forward_file(tmp_path, "Logit", body)).definition))
    assert [str(line.expression) for line in forward_plan(form)] == ["z"]


# Quotients of what is too small to be written down: statements of x and w, and the values.
TOO_SMALL = {
    "with an exponential that all entries have": (
        "x = Input(N)\n    w = Input(N, C)\n    k = w**2 * exp(-x**2)\n    p = k / Sum(k, C)",
        lambda x, w: w**2 / (w**2).sum(1, keepdim=True) + 0 * x[:, None],
        (N,),
    ),
    "of two sums": (
        "x = Input(N, C)\n    w = Input(N, C)\n    k = exp(-x**2)\n"
        "    p = k / (Sum(k, C) + Sum(exp(-w**2), C))",
        lambda x, w: torch.cat((-(x**2), -(w**2)), 1).softmax(1)[:, :C],
        (N, C),
    ),
    "of two in lines of their own": (
        "x = Input(N, C)\n    w = Input(N, C)\n    k = exp(-x**2)\n    g = exp(-w**2)\n"
        "    y = k / g",
        lambda x, w: torch.exp(w**2 - x**2),
        (N, C),
    ),
}


@pytest.mark.parametrize("quotient", TOO_SMALL)
def test_quotients_of_what_is_too_small_are_found(quotient, tmp_path):
    body, by_hand, shape = TOO_SMALL[quotient]
    function, _, _ = generated(forward_file(tmp_path, "Quotient", f"    {body}\n"), tmp_path)
    x = torch.linspace(29, 30, math.prod(shape), dtype=torch.float64).reshape(shape)
    assert_same_gradients(function, by_hand, x, logits(0.1, torch.float64) + 30)


def test_a_choice_by_something_else_is_no_bound(tmp_path):
    """The value that is subtracted may be the smaller one here."""
    body = (
        "    z = Input(N, C)\n    w = Input(N, C)\n    k = Given(N)\n"
        "    d = z - Piecewise((z, k > 0), (w, True))\n    p = exp(d) / Sum(exp(d), C)\n"
    )
    function, _, _ = generated(forward_file(tmp_path, "Chosen", body), tmp_path)
    z, w, k = 1e3 * draw(N, C), draw(N, C, seed=3), torch.tensor([1.0, 0.0, 0.0, 1.0]).double()
    ours = function(z, w, k)
    torch.testing.assert_close(ours, torch.where(k[:, None] > 0, 0, z - w).softmax(1))


@pytest.mark.parametrize("nothing", ["Eq(total, 0)", "m > 1"])
def test_a_guard_that_is_not_of_what_is_guarded_is_no_guard(nothing, tmp_path):
    """A total that underflows says nothing of the masks; and one that is not proved to be alone
    where it is not 0 has a value of its own.
    """
    body = (
        "    from derive import Position\n    z = Input(N, C)\n    m = Given(N)\n"
        "    counts = Piecewise((exp(z), Position(C) > 0), (0, True))\n    total = Sum(counts, C)\n"
        f"    nothing = Piecewise((1, {nothing}), (0, True))\n    p = counts / (total + nothing)\n"
    )
    _, _, result = generated(forward_file(tmp_path, "Guarded", body), tmp_path)
    line = next(line for line in result.text.splitlines() if line.startswith("    p = "))
    assert "shifted" not in line


def test_the_output_that_overflows_by_definition_stays_what_it_is(tmp_path):
    body = "    z = Input(N, C)\n    y = Sum(exp(z), C)\n"
    _, _, result = generated(forward_file(tmp_path, "Total", body), tmp_path)
    assert [s.name for s in result.program.forward.steps] == ["y"]


def test_the_names_that_are_added_are_not_the_users(tmp_path):
    body = (
        "    z = Input(N, C)\n    z_max = Input(N)\n    exp_z_shifted = z_max + 1\n"
        "    y = exp_z_shifted * log(Sum(exp(z), C))\n"
    )
    function, _, _ = generated(forward_file(tmp_path, "Taken", body), tmp_path)
    z, m = logits(1e3, torch.float64), torch.ones(N, dtype=torch.float64)
    torch.testing.assert_close(function(z, m), 2 * z.logsumexp(1))


@pytest.mark.parametrize(
    "var",
    ["Sum(z**2, N) / N - mean**2", "(Sum(z**2, N) - N * mean**2) / N"],
    ids=["difference of means", "difference of sums"],
)
def test_a_textbook_variance_is_computed_about_the_mean(tmp_path, var):
    body = f"    z = Input(N, C)\n    mean = Sum(z, N) / N\n    y = {var}\n"
    function, _, _ = generated(forward_file(tmp_path, "Spread", body), tmp_path)
    z = (logits(1, torch.float64) + 1e4).float()
    wanted, slope = value_and_gradient(lambda z: z.var(0, correction=0), z.double())
    value, gradient = value_and_gradient(function, z)
    assert gap(value, wanted) <= 2e-5 * float(wanted.max())
    assert gap(gradient, slope) <= 1e-3 * float(slope.abs().max())  # the rounded mean of 1e4


# What nearly cancels is large: an entry and the largest of its row, on either side.
CANCELLING = {
    "entropy of offset logits": (
        "    z = x + 3\n    e = exp(z)\n    p = e/Sum(e, C)\n    y = -Sum(p*log(p), C)\n",
        lambda x: -(x.softmax(1) * x.log_softmax(1)).sum(1),
    ),
    "divergence of Jensen and Shannon": (  # Lin 1991; proved statement by statement
        "    p = exp(x)/Sum(exp(x), C)\n    q = exp(w)/Sum(exp(w), C)\n    m = (p + q)/2\n"
        "    y = Sum(p*log(p/m), C) + Sum(q*log(q/m), C)\n",
        lambda x, w: sum(
            (s.softmax(1) * (s.log_softmax(1) - ((x.softmax(1) + w.softmax(1)) / 2).log())).sum(1)
            for s in (x, w)
        ),
    ),
}


@pytest.mark.parametrize("case", CANCELLING)
def test_what_nearly_cancels_is_subtracted_first(case, tmp_path):
    lines, reference = CANCELLING[case]
    inputs = ["x", "w"] if "w" in lines else ["x"]
    body = "".join(f"    {name} = Input(N, C)\n" for name in inputs) + lines
    function, _, result = generated(forward_file(tmp_path, "Cancelling", body), tmp_path)
    assert result.proved.every_size
    assert_same_gradients(
        function, reference, *(draw(5, 3, seed=s + 1) for s in range(len(inputs)))
    )
    generator = torch.Generator().manual_seed(0)
    x = 1000 + (8 * torch.randn(4, 3, generator=generator)).round() / 8  # x + 3 is exact
    arguments = [x, x[:, [1, 2, 0]]][: len(inputs)]
    ours, exact = [], []
    for found, run, kind in ((ours, function, torch.float32), (exact, reference, torch.float64)):
        leaves = [t.to(kind).requires_grad_() for t in arguments]
        y = run(*leaves)
        found += [y, *torch.autograd.grad(y.sum(), leaves)]
    for one, other in zip(ours, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6)
