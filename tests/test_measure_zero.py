"""What SymPy takes for equal but for single numbers is not equal: `check` finds the number, and a
forward of which something was cancelled is named, with the line and where it had no value.
"""

from __future__ import annotations

import warnings

import pytest
from forwards import HEAD
from sympy import Abs, Eq, Ne, Piecewise, Rational, log, sign, symbols

import derive
from derive import Axis, Forward, Input
from derive.language.errors import NotationWarning
from derive.language.notation.library import forward_from
from derive.proof.zero.exact import is_zero

N = Axis("N")
x, y = symbols("x y", real=True)


class Itself(Forward):
    x = Input(N)
    y = x


class Size(Forward):
    x = Input(N)
    w = Input(N)
    y = Abs(x - w)


class Rectified(Forward):
    x = Input(N)
    y = Piecewise((x, x > 0), (0, True))


class Logarithm(Forward):
    x = Input(N)
    y = log(x)


class Power(Forward):
    x = Input(N)
    y = Abs(x) ** Rational(3, 2)


class Guarded(Forward):
    x = Input(N)
    y = Piecewise((5 * x, Eq(x, 0)), (log(Abs(x)), True))


WRONG = [
    (Itself, "dy*torch.sign(x)**2"),
    (Itself, "dy*torch.sign(x)*torch.sign(x)"),
    (Itself, "dy*x.sign().square()"),
    (Itself, "dy*torch.sign(x)**4"),
    (Itself, "dy*torch.sign(x**2)"),
    (Itself, "dy*x.sign().abs()"),
    (Itself, "dy*torch.sign(x - 1)**2"),
    (Itself, "dy*torch.sign(x.tanh())**2"),
    (Itself, "dy*sign(x)**2 + 0*Sum(dy, N)"),
    (Size, "dy*(2*(x > w).float() - 1)"),
    (Size, "dy*(x - w).sign() + dy*(x - w).sign()**2 - dy"),
    (Rectified, "dy*(x.sign() + 1)/2"),
    (Guarded, "dy*torch.where(x == 0, 4, 1/x)"),
]
RIGHT = [
    (Size, "dy*(x - w).sign()", None),
    (Size, "dy*(x - w).sign()**3", None),
    (Size, "dy*((x > w).float() - (x < w).float())", None),
    (Size, "dy*(x - w)/(x - w).abs()", "w - x != 0"),
    (Itself, "dy*torch.sign(x)*x.abs()/x", "x != 0"),
    (Rectified, "dy*(x.sign()**2 + x.sign())/2", None),
    (Rectified, "dy*torch.sign(x.relu())", None),
    (Logarithm, "dy*x.sign()**2/x", None),
    (Power, "1.5*dy*x.abs().sqrt()*x.sign()**3", None),
    (Power, "1.5*dy*x/x.abs()**0.5", "x != 0"),
    (Guarded, "dy*torch.where(x == 0, 5, 1/x)", None),
]


@pytest.mark.parametrize(("forward", "text"), WRONG)
def test_a_formula_that_is_wrong_at_one_number_is_wrong(forward, text):
    verdict = derive.check(forward, text, of="x")
    assert verdict.outcome == "wrong"
    assert verdict.answers[0].refutation.counterexample is not None


@pytest.mark.parametrize(("forward", "text", "where"), RIGHT)
def test_a_formula_that_is_right_at_the_kink_too_is_right(forward, text, where):
    verdict = derive.check(forward, text, of="x")
    assert verdict.outcome == "right"
    found = verdict.answers[0].narrowing
    assert (found and str(found)) == where


def test_a_sign_is_zero_at_zero():
    assert not is_zero(sign(x) ** 2 - 1)
    assert not is_zero(sign(x**2) - 1)
    assert not is_zero(sign(x * y) ** 2 - sign(x) ** 2)
    for e in (
        sign(x) ** 3 - sign(x),
        sign(x) * Abs(x) - x,
        sign(x) ** 2 * x - x,
        sign(x * y) - sign(x) * sign(y),
        sign(x - y) ** 2 * (x - y) - (x - y),
        sign(x) ** 2 - Piecewise((1, Ne(x, 0)), (0, True)),
        x / Abs(x) - sign(x),
        sign(x) * Abs(x) / x - 1,
    ):
        assert is_zero(e), e


NAMED = {
    "exp(log(x))": "x > 0",
    "exp(log(x) + log(w)) + x": "x > 0 and w > 0",
    "exp(2 * log(x))": "x > 0",
    "sqrt(x)**2": "x >= 0",
    "x**0.5 * x**0.5": "x >= 0",
    "x**Rational(3, 2) / x**0.5": "x > 0",
    "x + log(x) - log(x)": "x > 0",
    "x**2 / x": "x != 0",
    "x / w * w": "w != 0",
    "(x + 1) / (x + 1) * x": "x + 1 != 0",
    "tanh(atanh(x))": "1 - x**2 > 0",
    "x*sqrt(-2)*sqrt(-3)": "-3 >= 0 and -2 >= 0",
    "x*log(-1)**2": "-1 > 0",
    "x*exp(log(-2))": "-2 > 0",
    "Sum(exp(log(x)) * w, N)": "x > 0",
    "Piecewise((exp(log(x)), x > -1), (0, True))": "x > 0",
}
SILENT = [
    "log(exp(x))",
    "sqrt(x**2)",
    "1 / (1 / x)",
    "sqrt(x**2 + eps)**2",
    "exp(x) / exp(x) * x",
    "x / eps * eps",
    "x / Sum(exp(x), N) * Sum(exp(x), N)",
    "2 * x / (2 * w)",
    "(x**2 - 1) / (x - 1)",
    "log(x / w)",
    "x / sqrt(Sum(x**2, N) / N + eps)",
    "Piecewise((exp(log(x)), x > 0), (0, True))",
    "Piecewise((x**2 / x, Ne(x, 0)), (0, True))",
    "x**w",
]


def _said(line: str, tmp_path) -> list[str]:
    file = tmp_path / "mine.py"
    declared = "    x = Input(N)\n    w = Input(N)\n    eps = Scalar(1e-5, above=0)\n"
    names = "from sympy import Ne, atanh\nfrom derive import Scalar\n"
    file.write_text(f"{HEAD}\n{names}\n\nclass Mine(Forward):\n{declared}    y = {line}\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forward_from(file)
    lines = file.read_text().splitlines()
    found = [w for w in caught if issubclass(w.category, NotationWarning) and "to SymPy" in str(w)]
    assert all(lines[w.lineno - 1] == f"    y = {line}" for w in found)
    return [str(w.message) for w in found]


@pytest.mark.parametrize("line", NAMED)
def test_what_sympy_cancels_in_a_forward_is_named(line, tmp_path):
    (said,) = _said(line, tmp_path)
    assert f"that needs {NAMED[line]}\n" in said


@pytest.mark.parametrize("line", ["exp(log(x))", "x**2 / x", "x / w * w", "exp(log(x) + log(w))"])
def test_the_choice_that_is_advised_is_not_named(line, tmp_path):
    (said,) = _said(line, tmp_path)
    advised = said.partition("such as ")[2].strip()
    assert advised.startswith("Piecewise((") and not _said(advised, tmp_path)


@pytest.mark.parametrize("line", SILENT)
def test_what_has_the_same_value_as_it_is_typed_is_not_named(line, tmp_path):
    assert not _said(line, tmp_path)
