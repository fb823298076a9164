"""Choices that torch has a function for: what each becomes, and that it is the same at the edges
between the pieces, at infinities and of NaN.
"""

from itertools import product

import pytest
import torch
from generating import forward_file, generated
from sympy import Abs, Ne, Piecewise, Rational, exp, sign

from codegen.lowering import Lowering
from codegen.lowering.fused import fused
from codegen.targets.torch.printer import Printer
from derive.language.notation.layout import Dim
from derive.language.symbols import Axis, Tensor

N = Axis("N")
x, g = (Tensor(name, [N], role="input") for name in "xg")
s = Tensor("s", (), role="scalar")
p = Tensor("p", (), role="scalar", positive=True)
q = Tensor("q", (), role="scalar", nonnegative=True)
LAYOUTS = {t.name: (Dim(N),) if t.axes else () for t in (x, g, s, p, q)}
INF, NAN = torch.inf, torch.nan
AT = [-INF, -7.0, -3.0, -2.0, -1.0, -0.5, -0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 7.0, INF, NAN]
THRESHOLD, LEAKY = "torch.ops.aten.threshold_backward", "torch.ops.aten.leaky_relu_backward"
SLOPED = f"{LEAKY}(g * torch.exp(x.clamp(max=0)), x, s, False)"
BOUNDED = "torch.abs(x).clamp(max=p)"


def choice(*pairs):
    *some, last = pairs
    return Piecewise(*some, (last, True), evaluate=False)


# What is written, by what becomes of it.
PIECES = {
    # the larger and the smaller of two
    "x.clamp(min=0)": choice((x, x >= 0), 0),
    "(1 - x).clamp(min=0)": choice((1 - x, x <= 1), 0),
    "(2 * x - 2).clamp(max=0)": choice((2 * x - 2, x < 1), 0),
    "torch.maximum(x, g)": choice((x, x > g), g),
    "torch.minimum(p * x, p * g)": choice((p * x, x < g), p * g),
    # held between bounds
    "x.clamp(-1, 1)": choice((-1, x < -1), (1, x > 1), x),
    "x.clamp(-p, p)": choice((p * sign(x), p < Abs(x)), x),
    "x.clamp(-3, 3) / 6 + 0.5": choice((0, x <= -3), (1, x >= 3), x / 6 + Rational(1, 2)),
    "x - x.clamp(-q, q)": choice((x - q, x > q), (x + q, x < -q), 0),
    "x.clamp(-p, p) ** 2": choice((x**2, Abs(x) <= p), p**2),
    "(1 - x.clamp(max=1)) ** 2": choice(((1 - x) ** 2, x <= 1), 0),
    # what continues
    f"{BOUNDED} * torch.add(torch.abs(x), {BOUNDED}, alpha=-0.5)": choice(
        (p * (Abs(x) - p / 2), p < Abs(x)), x**2 / 2
    ),
    "(x.clamp(-q, q) / q if q > 0 else torch.where(q <= torch.abs(x), torch.sign(x), x / q))": (
        choice((sign(x), q <= Abs(x)), x / q)
    ),
    # two pieces that are 0 where they meet, and an exponential that is 1 there
    "torch.add(x.clamp(min=0), torch.expm1(x.clamp(max=0)), alpha=s)": choice(
        (s * (exp(x) - 1), x <= 0), x
    ),
    "torch.add(x.clamp(min=0), x.clamp(max=0), alpha=s)": choice((x, x >= 0), s * x),
    f"{LEAKY}(torch.exp(x.clamp(max=0)), x, 2, False)": choice((1, x > 0), 2 * exp(x)),
    SLOPED: g * choice((s * exp(x), x <= 0), 1),
    # what bends
    "torch.nn.functional.leaky_relu(x, s)": choice((x, x > 0), s * x),
    f"{LEAKY}(g, x, s, False)": g * choice((1, x > 0), s),
    "(x >= 0).to(x.dtype) - 1 + s": choice((s, x >= 0), s - 1),
    # gates: 0 where a condition does not hold
    f"{THRESHOLD}(g, x, 0)": choice((0, x <= 0), g),
    f"{THRESHOLD}(g, 1 - x, 0)": choice((0, x >= 1), g),
    f"{THRESHOLD}(g, torch.sign(x), -1)": choice((g, x >= 0), 0),
    f"{THRESHOLD}(g, torch.sign(x - g), 0)": choice((g, x > g), 0),
    f"{THRESHOLD}(g, torch.sign(g - x), -1)": choice((0, x > g), g),
    f"{THRESHOLD}(g, torch.sign(g * x - p * x), -1)": choice((g, g * x >= p * x), 0),  # as compared
    f"{THRESHOLD}(g, torch.abs(x), 0)": choice((g, Ne(x, 0)), 0),
    f"{THRESHOLD}(g, torch.abs(x), p)": choice((g, (x > p) | (x < -p)), 0),
    f"{THRESHOLD}({THRESHOLD}(g, 3 - x, 0), x, -2)": choice((0, (x >= 3) | (x <= -2)), g),
    f"{THRESHOLD}(g * x, torch.sign(x), -1)": g * choice((x, x >= 0), 0),
}

# What stays a choice: it would not be the same.
OTHERS = {
    "torch.where(x <= g, 0, x)": choice((0, x <= g), x),  # of two infinities, and of NaN
    "torch.where(x < 0, x, g)": choice((x, x < 0), g),
    "torch.where(x < 1, x ** 2, x)": choice((x**2, x < 1), x),
    "torch.where(x > s, x - s, torch.where(x < -s, x + s, 0))": choice(
        (x - s, x > s), (x + s, x < -s), 0
    ),
}


def written(e, plain=False):
    """The code of ``e``; with ``plain`` as it is chosen in the step-by-step functions."""
    lowering = Lowering(LAYOUTS, [N], {} if plain else None)
    (step,) = lowering.accumulated("y", [e], (Dim(N),), "x")
    return Printer({}, "spq", "x").text((step if plain else fused(step, "spq")).value)


def values(code: str, numbers) -> torch.Tensor:
    at = torch.tensor([*product(AT, AT)], dtype=torch.float64).T
    return eval(code, {"torch": torch, "x": at[0], "g": at[1], **numbers})


@pytest.mark.parametrize("expected", PIECES)
def test_a_choice_is_what_torch_has_for_it(expected):
    assert written(PIECES[expected]) == expected


@pytest.mark.parametrize("expected", OTHERS)
def test_what_would_not_be_the_same_stays_a_choice(expected):
    assert written(OTHERS[expected]) == expected


@pytest.mark.parametrize("s", (0.5, 2.0, 1.0))
@pytest.mark.parametrize("expected", PIECES)
def test_it_is_the_same_at_edges_at_infinities_and_of_nan(expected, s):
    """Where the choice is NaN so is what it becomes; a NaN that decides gives NaN, or a branch."""
    numbers = {"s": s, "p": 1.0 + s, "q": s if s < 2 else 0.0}
    before, after = (values(written(PIECES[expected], plain), numbers) for plain in (True, False))
    decides = values("x.isnan()", {}) | values("g.isnan()", {})
    if "g * x - p" in expected:  # what is compared is a NaN itself, 0 times an infinity
        decides |= values("(g * x).isnan()", {})
    here = ~decides & ~before.isnan()
    torch.testing.assert_close(after[here], before[here], rtol=1e-14, atol=1e-15)
    assert after[before.isnan()].isnan().all(), "a NaN has become a number"
    g = values("g", {})
    allowed = after.isnan() | (after == before) | (after == g) | (after == values("g * x", {}))
    assert allowed[decides].all()


PPO = """
    logp = Input(N)
    old = Given(N)
    adv = Given(N)
    eps = Scalar(0.2, above=0)
    ratio = exp(logp - old)
"""
SPELLINGS = {
    "as the paper": """
    clipped = Min(Max(ratio, 1 - eps), 1 + eps)
    loss = -Sum(Min(ratio * adv, clipped * adv), N)
""",
    "in cases": """
    clipped = Piecewise((1 - eps, ratio < 1 - eps), (1 + eps, ratio > 1 + eps), (ratio, True))
    plain = ratio * adv
    careful = clipped * adv
    loss = -Sum(Piecewise((plain, plain <= careful), (careful, True)), N)
""",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_clipped_ratio_of_ppo_asks_once(spelling, tmp_path):
    body = "    from sympy import Min, Max\n    from derive import Given\n" + PPO
    file = forward_file(tmp_path, "Ppo", body + SPELLINGS[spelling])
    function, _, emitted = generated(file, tmp_path)
    lines = emitted.text.partition("_backward(")[2].partition("return")[0]
    assert lines.count(THRESHOLD) == 1 and "torch.where" not in lines
    assert "ratio.clamp(1 - eps, 1 + eps)" in emitted.text
    ratio = torch.tensor([0.5, 0.8, 1.0, 1.2, 1.5, 0.5, 1.0, 1.5, INF, 0.0], dtype=torch.float64)
    adv = torch.tensor([1.0, 1, 1, 1, 1, -1, -1, -1, 1, 1], dtype=torch.float64)
    logp = ratio.log().requires_grad_()
    (gradient,) = torch.autograd.grad(function(logp, torch.zeros(10).double(), adv), logp)
    clipped = [0, 0, 0, 0, 1, 1, 0, 0, 1, 0]  # what the loss has of the limits, and passes nothing
    expected = torch.where(torch.tensor(clipped) == 1, 0, -(ratio * adv))
    torch.testing.assert_close(gradient, expected)
