"""Between which numbers values lie: what is known of functions, of sums, and of named values."""

import random
from math import inf, isclose

import pytest
import sympy
from generating import forward_file
from sympy import Abs, Piecewise, cos, cosh, erf, erfc, exp, log, sin, sqrt, tanh
from sympy import atan as arctan

from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.range.bounds import ANYWHERE, Bounds, Ranges, bounds
from derive.gradient.range.exponents import Definitions
from derive.language.nodes import Max, OneHot, Peak, Sum
from derive.language.notation.library import forward_from
from derive.language.symbols import Axis, Tensor

N, C = Axis("N"), Axis("C")
x, w, row = Tensor("x", [N, C]), Tensor("w", [N, C]), Tensor("row", [N])
p = Tensor("p", [N, C], role="scalar", positive=True)
labels = Tensor("labels", [N], role="label")
top, shifted, e = (Tensor(t, [N, C], role="statement") for t in ("top", "shifted", "e"))
shares = Tensor("shares", [N], role="statement")
DEFINITIONS = {top: Max(x, C), shifted: x - top, e: exp(shifted), shares: 2 + Sum(e, C)}

CASES = {
    x: (-inf, inf),
    sympy.Integer(-3): (-3, -3),
    x**2: (0, inf),
    x**3: (-inf, inf),
    tanh(x) ** 2: (0, 1),
    (2 + tanh(x)) ** 2: (1, 9),
    (tanh(x) - 2) ** -2: (1 / 9, 1),
    tanh(x) ** -1: (-inf, inf),
    tanh(x) ** -2: (0, inf),
    -Sum(x**2, C) / row**2: (-inf, 0),
    -Sum(x**2, C) / row**3: (-inf, inf),
    tanh(x) ** 3: (-1, 1),
    sqrt(1 + x**2): (1, inf),
    1 / sqrt(1 + x**2): (0, 1),
    x ** sympy.Rational(1, 3): (-inf, inf),
    1 + exp(-x): (1, inf),
    1 / (1 + exp(-x)): (0, 1),
    2 - 1 / (2 + exp(-x)): (1.5, 2),
    3 * tanh(x) - 2 * sin(w): (-5, 5),
    -p: (-inf, 0),
    exp(tanh(x)): (exp(-1), exp(1)),
    exp(1000 + x**2): (inf, inf),
    log(2 + cos(x)): (0, log(3)),
    -x - exp(-x): (-inf, -1),
    3 * x - 2 * exp(x): (-inf, 3 * log(sympy.Rational(3, 2)) - 3),
    4 * x - exp(2 * x): (-inf, 2 * log(2) - 2),
    x + exp(-x): (-inf, inf),
    x - exp(-x): (-inf, inf),
    w - exp(x): (-inf, inf),
    log(x**2): (-inf, inf),
    cosh(x): (1, inf),
    Abs(x) + 1: (1, inf),
    erf(x) * erfc(w): (-2, 2),
    arctan(x): (-sympy.pi / 2, sympy.pi / 2),
    x - x + x**0: (1, 1),
    sympy.sign(x): (-1, 1),
    sympy.asinh(x): (-inf, inf),
    Piecewise((tanh(x), x > 0), (3, True)): (-1, 3),
    OneHot(labels, C): (0, 1),
    Sum(x**2, C): (0, inf),
    Sum(-(x**2), C): (-inf, 0),
    Sum(x, C): (-inf, inf),
    Sum(tanh(x) ** 2, C): (0, inf),
    x**2 / (1 + Sum(x**2, C)): (0, 1),
    x**2 / Sum(x**2, C): (0, 1),
    e / shares: (0, 1),
    e / (e + x**4): (0, 1),
    x / Sum(x, C): (-inf, inf),
    e / (Sum(e, C) - 3): (-inf, inf),
    x**2 / (1 + Sum(w**2, C)): (0, inf),
    Max(tanh(x), C): (-1, 1),
    Sum(e, C): (1, inf),
    Sum(exp(shifted), C): (1, inf),
    Sum(exp(x - Peak(x, C)), C): (1, inf),
    Sum(exp(w - top), C): (0, inf),  # the largest of others
    Sum(exp(shifted), N): (0, inf),  # along another axis
    Sum(exp(shifted), N, C): (0, inf),  # there may be rows without the largest of all
    Sum(exp(x - 2 * top), C): (0, inf),
    Sum(exp(x), C): (0, inf),
}


@pytest.mark.parametrize("written", CASES, ids=str)
def test_between_which_numbers_it_lies(written):
    found = bounds(written, Ranges(lambda t: DEFINITIONS.get(t.at_home)))
    low, high = map(float, CASES[written])
    assert isclose(found.low, low) and isclose(found.high, high)


FUNCTIONS = (tanh, sin, exp, Abs, erf, lambda u: 1 / (1 + exp(-u)), lambda u: u**2, sympy.atan)


def test_no_value_lies_outside():
    """Of random expressions at random numbers."""
    draw = random.Random(5)
    for _ in range(300):
        made = [x, w, x * w]
        for _ in range(draw.randrange(1, 5)):
            a, b = draw.choice(made), draw.choice(made)
            function = draw.choice(FUNCTIONS)
            made.append(draw.choice((a + b, a * b, a - 2 * b, function(a), function(a) ** -1)))
        found = bounds(made[-1], Ranges(lambda t: None))
        value = made[-1].subs({x: draw.uniform(-3, 3), w: draw.uniform(-3, 3)})
        if value.is_finite:
            slack = 1e-9 * (1 + abs(float(value)))
            assert found.low - slack <= float(value) <= found.high + slack, made[-1]


def test_a_value_lies_where_its_definition_does():
    known = Definitions({"top": tanh(x), "shifted": 2 - top})
    assert known.bounds(shifted) == Bounds(1, 3)


def test_what_may_be_divided_by():
    assert Bounds(0.5, 2).is_away_from_zero and Bounds(-2, -0.5).is_away_from_zero
    assert not Bounds(0, 2).is_away_from_zero and not ANYWHERE.is_away_from_zero


# A forward whose closed form rests on bounds, and what is in that.
USED = {
    "a bounded exponent needs no shift": (
        "    x = Input(N, C)\n    e = exp(3*tanh(x))\n    y = e/Sum(e, C)\n",
        lambda form: not any("max" in v.tensor.name for v in form.relations.values),
    ),
    "an exponent that is bounded at 80 does": (
        "    x = Input(N, C)\n    e = exp(80*tanh(x))\n    y = e/Sum(e, C)\n",
        lambda form: any("max" in v.tensor.name for v in form.relations.values),
    ),
    "the density of Gumbel's distribution": (
        "    x = Input(N)\n    y = exp(-(x + exp(-x)))\n",
        lambda form: form.preference[0] == 0 and "exp(-2*x - exp(-x))" in str(form),
    ),
    "1 + exp(-x) may be divided by anew": (
        "    x = Input(N)\n    k = x/log(2)\n    y = x/(2**(-k) + 1)\n",
        lambda form: form.preference[0] == 0,
    ),
    "what is left of 1 - p may not": (
        "    x = Input(N)\n    p = 1/(1 + exp(-x))\n    y = log(1 - p)\n",
        lambda form: form.preference[0] == 0 and "1 - p" not in str(form),
    ),
    "a logarithm times a number is one": (
        "    x = Input(N, C)\n    k = x/log(2)\n    s = log(Sum(2**k, C))/log(2)\n"
        "    y = x - s*log(2)\n",
        lambda form: str(form) == "dx = dy - exp(y)*Sum(dy, C)" and form.preference[0] == 0,
    ),
}


@pytest.mark.parametrize("case", USED)
def test_the_closed_form_rests_on_them(case, tmp_path):
    body, holds = USED[case]
    file = forward_file(tmp_path, "Bounded", body)
    form = close(derive_chain(forward_from(file).definition))
    assert holds(form), str(form)
