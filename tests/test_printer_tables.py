"""What torch calls a function, and how it passes a gradient through it: every entry is right."""

import math
from fractions import Fraction

import mpmath
import pytest
import sympy
import torch
from generating import assert_same_gradients, forward_file, generated
from sympy import Piecewise

from codegen.lowering import idioms
from codegen.lowering.constants import constant
from codegen.lowering.idioms import (
    expm1,
    log1p,
    logsigmoid,
    sigmoid,
    sigmoid_pulled,
    softplus,
    tanh_pulled,
)
from codegen.program.values import Load, Number, Power, Times
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.vocabulary import FUNCTIONS, PULLBACKS
from derive.language.functions import Round
from derive.language.nodes import OneHot
from derive.language.symbols import Axis, Tensor

MEANT = {"log1p": lambda u: sympy.log(1 + u), "expm1": lambda u: sympy.exp(u) - 1}
MEANT |= {
    "sigmoid": lambda u: 1 / (1 + sympy.exp(-u)),
    "softplus": lambda u: sympy.log(1 + sympy.exp(u)),
}
MEANT |= {
    "logsigmoid": lambda u: -sympy.log(1 + sympy.exp(-u)),
    "digamma": lambda u: sympy.polygamma(0, u),
    "i0": lambda u: sympy.besseli(0, u),
    "i1": lambda u: sympy.besseli(1, u),
    "Round": Round,
}
LARGE = ("acosh",)  # of numbers from 1
NAMES = (  # of the functions that a forward may be written in, and of the idioms
    *("exp", "log", "Abs", "sign", "floor", "ceiling", "erf", "erfc", *MEANT),
    *("erfinv", "loggamma"),
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
POINTS = [0.21, 0.75, 0.98]
u = sympy.Symbol("u", real=True)


def meant(name):
    """The function as SymPy has it; the idioms by their equations."""
    return (MEANT.get(name) or getattr(sympy, name))(u)


def points(name):
    return [1 + p if name in LARGE else p for p in POINTS]


def test_every_function_is_compared():
    assert FUNCTIONS.keys() == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_torchs_function_is_that_of_sympy(name):
    torchs = eval(FUNCTIONS[name], {"torch": torch})
    for point in [
        *points(name),
        *([-p for p in POINTS] if name in ("Abs", "sign", "floor") else []),
    ]:
        ours = float(torchs(torch.tensor(point, dtype=torch.float64)))
        assert ours == pytest.approx(float(meant(name).subs(u, point)), rel=1e-13)


EXTREME = {
    "Max(a, b)": torch.maximum,
    "Min(a, b)": torch.minimum,
    "Max(a, 2) + b": lambda a, b: a.clamp(min=2) + b,
    "Min(a, 2) + b": lambda a, b: a.clamp(max=2) + b,
}


@pytest.mark.parametrize("written", EXTREME)
def test_the_larger_and_the_smaller_of_what_is_no_number_are_none(written, tmp_path):
    body = "    a = Input(N)\n    b = Input(N)\n"
    file = forward_file(tmp_path, "Extreme", f"{body}    y = {written}\n")
    function, _, _ = generated(file, tmp_path)
    a, b = torch.tensor([1.0, torch.nan, 3.0, 4.0]), torch.tensor([2.0, 1.0, torch.nan, 3.0])
    torch.testing.assert_close(function(a, b), EXTREME[written](a, b), equal_nan=True)


NUMBERS = {
    sympy.sqrt(2 / sympy.pi): "math.sqrt(2 / math.pi)",
    sympy.sqrt(2) / 2: "math.sqrt(2) / 2",
    1 / sympy.sqrt(2 * sympy.pi): "math.sqrt(2 / math.pi) / 2",
    3 * sympy.sqrt(sympy.pi): "3 * math.sqrt(math.pi)",
    sympy.sqrt(6) / sympy.sqrt(sympy.pi) / 5: "math.sqrt(6 / math.pi) / 5",
    2 ** sympy.Rational(1, 3): "2**(1 / 3)",
    sympy.exp(-2): "0.1353352832366127",
    1 + sympy.sqrt(2): "2.414213562373095",
    sympy.log(3): "math.log(3)",
}


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_number_is_written_by_its_formula(number):
    text = Printer({}, (), "x").text(constant(number))
    assert text == NUMBERS[number]
    assert eval(text, {"math": math}) == pytest.approx(float(number), rel=1e-15)
    x = Load("x", dims=())
    product = Times(((x, False), (constant(number), False)))
    assert eval(Printer({}, (), "x").text(product), {"math": math, "x": 3.0}) == pytest.approx(
        3 * float(number), rel=1e-15
    )


def test_a_root_is_taken_as_a_root():
    x = Load("x", dims=())
    printer = Printer({}, (), "x")
    assert printer.text(Power(x, Number(Fraction(1, 2)), dims=())) == "torch.sqrt(x)"
    assert printer.text(Power(x, Number(Fraction(3, 2)), dims=())) == "x ** 1.5"


@pytest.mark.parametrize("name", PULLBACKS)
def test_a_gradient_passes_by_the_derivative(name):
    for point in points(name):
        x = torch.tensor(point, dtype=torch.float64)
        names = {"torch": torch, "x": x, "y": getattr(torch, name.lower())(x), "g": 1.7 * x**0}
        ours = eval(PULLBACKS[name].format(g="g", x="x", y="y"), names)
        derivative = float(sympy.diff(meant(name), u).subs(u, point))
        assert float(ours) == pytest.approx(1.7 * derivative, rel=1e-13)


# A function of small numbers that needs its idiom: what is written, and torch's.
SMALL = {
    "log(1 + x)": torch.log1p,
    "w * log(1 + x**2)": lambda x: torch.log1p(x**2),
    "exp(x) - 1": torch.expm1,
    "1 - w - exp(x)": lambda x: -torch.expm1(x) - 1,
}


@pytest.mark.parametrize("written", SMALL)
def test_small_numbers_keep_their_digits(written, tmp_path):
    body = "    w = Scalar(1)\n" * ("w" in written) + f"    x = Input(N)\n    y = {written}\n"
    function, _, _ = generated(forward_file(tmp_path, "Small", body), tmp_path)
    x = torch.tensor([1e-12, -1e-7, 1e-150], dtype=torch.float64)
    assert_same_gradients(function, SMALL[written], x)
    torch.testing.assert_close(function(x), SMALL[written](x), rtol=1e-15, atol=0)


N, C = Axis("N"), Axis("C")
x, y, g = (Tensor(name, [C]) for name in "xyg")
small, ROW, LABEL = Tensor("small", []), Tensor("row", [N, C]), Tensor("labels", [], role="label")
PEAK, TAIL = Piecewise((x, x >= 0), (0, True)), sympy.log(1 + sympy.exp(-sympy.Abs(x)))
LOWEST = Piecewise((x, x <= 0), (0, True))
KEPT = Piecewise((1, g > 0), (0, True))
# What is written, and what an idiom makes of it; None where it is no case of it.
CASES = {
    "log1p": {
        sympy.log(1 + x): log1p(x),
        sympy.log(1 + x + x**2): log1p(x + x**2),
        sympy.log(2 + x): None,
    },
    "expm1": {
        sympy.exp(x) - 1: expm1(x),
        1 + x - sympy.exp(x): x - expm1(x),
        3 - sympy.exp(x): None,
        1 + sympy.exp(x): None,
    },
    "sigmoid": {
        1 / (1 + sympy.exp(-x)): sigmoid(x),
        (1 + sympy.exp(-x)) ** -2: sigmoid(x) ** 2,
        1 / (2 + sympy.exp(x)): None,
        1 + sympy.exp(x): None,
    },
    "softplus": {
        PEAK + TAIL: softplus(x),
        TAIL - LOWEST: -logsigmoid(x),
        x + TAIL - LOWEST: softplus(x),
        TAIL + PEAK - x: -logsigmoid(x),
        2 * y - 3 * g * TAIL + 3 * g * LOWEST: 2 * y + 3 * g * logsigmoid(x),
        2 * PEAK + TAIL: None,
        PEAK - TAIL: None,
        PEAK + sympy.log(1 + sympy.exp(-x)): None,
    },
    "tanh_pulled": {
        g * (1 - y**2): tanh_pulled(g, y),
        -2 * x * g * (1 - y**2): -tanh_pulled(2 * x * g, y),
        ROW * g * (1 - y**2): ROW * tanh_pulled(g, y),
        g * (1 - sympy.tanh(x) ** 2): tanh_pulled(g, sympy.tanh(x)),
        2 * (1 - y**2): None,
        g * (1 - y**3): None,
        g * (1 + y**2): None,
        g * (1 - (x + y) ** 2): None,
        # where the choice is 0, nothing else is met
        x * KEPT * (1 - y**2): None,
        small * KEPT * (1 - y**2): None,
        OneHot(LABEL, C) * (1 - y**2): None,
    },
    "sigmoid_pulled": {
        g * y * (1 - y): sigmoid_pulled(g, y),
        -g * y**2 * (1 - y): -sigmoid_pulled(g * y, y),
        y * (1 - y): None,
        g * (1 - y): None,
        g * (1 - y) / y: None,
    },
}


@pytest.mark.parametrize("idiom", idioms.idioms, ids=lambda idiom: idiom.statement)
def test_an_idiom_is_what_its_statement_says(idiom):
    for written, expected in CASES[idiom.statement.split("(")[0]].items():
        found = idiom.rewrite(written)
        assert found == expected, written
        if found is not None:
            at = {t: 0.3 + 0.2 * i for i, t in enumerate((x, y, g, ROW))}
            assert float(meaning(found).subs(at)) == pytest.approx(float(written.subs(at)))


def meaning(e):
    """``e`` with the idioms in it written out."""
    for name, function in MEANT.items():
        e = e.replace(getattr(idioms, name, sympy.Dummy), lambda u, function=function: function(u))
    return e.replace(idioms.tanh_pulled, lambda g, y: g * (1 - y**2)).replace(
        idioms.sigmoid_pulled, lambda g, y: g * y * (1 - y)
    )


@pytest.mark.parametrize("function", ("softplus", "logsigmoid"))
def test_the_softplus_keeps_its_digits_far_out(function, tmp_path):
    sign = 1 if function == "softplus" else -1
    written = f"{sign} * log(1 + exp({sign} * x))"
    function, _, _ = generated(
        forward_file(tmp_path, "Far", f"    x = Input(N)\n    y = {written}\n"), tmp_path
    )
    at = [-700.0, -30.0, -1.0, 1.0, 21.0, 35.0, 39.0, 41.0, 700.0]
    exact = [sign * mpmath.log1p(mpmath.exp(sign * mpmath.mpf(u))) for u in at]
    ours = function(torch.tensor([*at, torch.inf, -torch.inf], dtype=torch.float64))
    for value, true in zip(ours, exact, strict=False):
        assert abs(value - float(true)) <= 4e-16 * abs(float(true))
    assert ours[-2:].tolist() == ([torch.inf, 0.0] if sign == 1 else [0.0, -torch.inf])


def test_a_logarithm_that_two_read_is_joined_with_both(tmp_path):
    body = "    x = Input(N)\n    t = Input(N)\n    p = 1/(1 + exp(-x))\n"
    for written, joined in {
        "t*log(p) + (1 - t)*log(1 - p)": True,
        "t*log(p) + (1 - t)*log(1 - p) + log(1 + exp(-Abs(x)))": False,
    }.items():
        file = forward_file(tmp_path, "Joined", body + f"    y = {written}\n")
        lines = generated(file, tmp_path)[2].text.partition("def joined_forward")[2]
        assert ("log1p" not in lines.partition("def joined_backward")[0]) == joined
