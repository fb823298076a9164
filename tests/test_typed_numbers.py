"""A decimal that is typed in a class body is that decimal, wherever it enters and whatever Python
calculated of it: so the right formula with the same decimals is proved.
"""

from __future__ import annotations

import sys
import warnings

import pytest
import torch
from generating import generated
from sympy import Float, Piecewise, Rational, Symbol, exp, log, pi, sqrt, sympify

import derive
from derive.gradient.values.aliases import number_apart
from derive.language.errors import NotationWarning
from derive.language.formulas.text import formula
from derive.language.notation.library import forward_from
from derive.language.symbols import Axis, Tensor

x = Symbol("x")
THIRD, DECIMAL = Rational(1, 3), Rational(3, 10)

HEAD = """
import math
from decimal import Decimal
from fractions import Fraction
import numpy as np
from sympy import Float, Max, Piecewise, S, exp, log, sqrt
from derive import Axis, Forward, Input, Scalar, Sum
import {other} as constants
from {other} import imported

N = Axis("N")
alpha = 0.3
ratio = 1 / 0.3
first, second = 1 / 3, 2 / 3
several = [1 / 7, 2 / 7]
named = {{"third": 1 / 3}}

def helper(x):
    return x * (1 / 7)

def scaled(x, factor):
    return x * factor

def made(factor):
    class Made(Forward):
        x = Input(N)
        y = x / factor
    return Made
"""
EXACT = {
    "x / 0.3": x / DECIMAL,
    "0.3 / (x**2 + 1)": DECIMAL / (x**2 + 1),
    "x / -0.3": -x / DECIMAL,
    "x ** 0.3": x**DECIMAL,
    "x / 1e-12": x * 10**12,
    "1 / 0.3 * x": x / DECIMAL,
    "x * (1 / 3)": x / 3,
    "2 / 3 * x": 2 * x / 3,
    "x - 1 / 3": x - THIRD,
    "x * (0.1 + 0.2)": DECIMAL * x,
    "x * 0.30000000000000004": Rational("0.30000000000000004") * x,
    "x * (1e-3 / 7)": x / 7000,
    "x * math.pi": pi * x,
    "x * math.sqrt(2 / math.pi)": sqrt(2) * x / sqrt(pi),
    "x * np.sqrt(0.3) / np.sqrt(0.3)": x,
    "x * 2 ** 0.5": sqrt(2) * x,
    "exp(0.3) * x": exp(DECIMAL) * x,
    "x * log(0.3)": x * log(DECIMAL),
    "Piecewise((0.3 * x, x > 0.7), (-x / 0.3, True))": Piecewise(
        (DECIMAL * x, x > Rational(7, 10)), (-x / DECIMAL, True)
    ),
    "x / np.float64(0.3)": x / DECIMAL,
    "x / np.float32(0.3)": x / DECIMAL,
    'x / Decimal("0.3")': x / DECIMAL,
    "x / Fraction(3, 10)": x / DECIMAL,
    "x / S(0.3)": x / DECIMAL,
    "x / 3.0": x / 3,
    "x / alpha": x / DECIMAL,
    "x * ratio": x / DECIMAL,
    "x * first + x * second": x,
    "x * several[1]": 2 * x / 7,
    'x * named["third"]': x / 3,
    "x * imported": x / 7,
    "x * constants.imported": x / 7,
    "x * constants.Settings.rate": x * Rational(1, 9),
    "helper(x)": x / 7,
    "scaled(x, 1 / 3)": x / 3,
    "x * 0.3989422804014327": Rational("0.3989422804014327") * x,
    "x * 0.12345678901234567890123": Rational("0.12345678901234567890123") * x,
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A file of a forward with the line ``y = ...``; what it imports lies beside it."""
    other = f"constants_of_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{other}.py").write_text("imported = 1 / 7\n\nclass Settings:\n    rate = 1 / 9\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(line: str):
        file = tmp_path / "mine.py"
        body = f"class Mine(Forward):\n    x = Input(N)\n    y = {line}\n"
        file.write_text(HEAD.format(other=other) + "\n" + body)
        return file

    yield write
    sys.modules.pop(other, None)


@pytest.mark.parametrize("line", EXACT)
def test_a_number_is_what_was_typed(line, written):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotationWarning)
        forward = forward_from(f"{written(line)}:Mine")
    (statement,) = forward.definition.statements
    assert str(statement.expression) == str(EXACT[line])


def test_the_argument_of_a_function_around_the_class_is_what_was_typed(written):
    file = written("x")
    file.write_text(file.read_text() + "\nOther = made(1 / 0.3)\n")
    (statement,) = forward_from(f"{file}:Made").definition.statements
    assert str(statement.expression) == "3*x/10"


@pytest.mark.parametrize("line", ["x * math.gamma(0.3)", "x / Float(0.3)", "x * hash_like / 7"])
def test_what_was_calculated_and_cannot_be_read_is_warned_of(line, written):
    file = written(line)
    file.write_text(
        file.read_text().replace("class Mine", "hash_like = sum([1 / 3] * 2)\n\nclass Mine")
    )
    with pytest.warns(NotationWarning, match="calculated by Python, and rounded"):
        forward_from(f"{file}:Mine")


RIGHT = {
    "x / 0.3": "dy / 0.3",
    "1 / 0.3 * x**2": "2*x*dy*(1/0.3)",
    "x**2 * math.sqrt(2 / math.pi)": "2*x*dy*math.sqrt(2/math.pi)",
    "(x**2 + 1)**0.3": "0.3*dy*2*x*(x**2 + 1)**-0.7",
    "Piecewise((0.3 * x, x > 0.7), (-x / 0.3, True))": "torch.where(x > 0.7, 0.3*dy, -dy/0.3)",
    "exp(-x / 1.702) / 0.7": "-dy*torch.exp(-x/1.702)/0.7/1.702",
    "x * ratio + x / alpha": "dy*(1/0.3) + Sum(0*dy, N) + dy/0.3",
}


@pytest.mark.parametrize("line", RIGHT)
def test_the_right_formula_with_the_same_decimals_is_proved(line, written):
    verdict = derive.check(f"{written(line)}:Mine", RIGHT[line], of="x")
    assert verdict.outcome == "right" and verdict.answers[0].proved.every_size


def test_outside_of_a_class_body_numbers_are_those_of_sympy():
    assert (x / 0.3).has(Float) and isinstance(sympify(0.3), Float)


def test_a_sum_of_decimals_stays_in_the_range_of_float32(written, tmp_path):
    """Over one denominator its numbers would be 10**16 times as large, and their squares too."""
    file = written("x")
    head = file.read_text().partition("class Mine")[0]
    lines = """
    b = 0.3 * x**2 + 0.3989422804014327 * x
    c = b / 1.4142135623730951 + x / 0.3
    y = c**2 / 0.7 + b * c
"""
    file.write_text(f"{head}class Mine(Forward):\n    x = Input(N)\n{lines}")
    function, _, result = generated(file, tmp_path)
    x = torch.tensor([1.0, -2.0, 30.0], requires_grad=True)
    y = function(x)
    y.sum().backward()
    exact = function(x.detach().double())
    assert torch.isfinite(x.grad).all() and torch.allclose(y.double(), exact, rtol=1e-5)
    assert "alpha=0.3989422804014327" in result.text or "0.3989422804014327 * x" in result.text


def test_a_decimal_is_shown_as_it_was_typed():
    typed = {
        x * Rational("0.3989422804014327"): "0.3989422804014327*x",
        x / Rational("1.4142135623730951"): "x/1.4142135623730951",
        exp(-x / Rational("1.702")): "exp(-x/1.702)",
        x + 1 / Rational("1.4142135623730951"): "x + 1/1.4142135623730951",
        x / 65536: "1/65536*x",
        10 * x / 3: "10*x/3",
    }
    assert [formula(e) for e in typed] == [*typed.values()]


def test_decimals_are_not_brought_over_one_denominator():
    """Their numbers would be 10**16 times as large, and NaN in float32 where they are squared."""
    t = Tensor("t", (Axis("N"),))
    of_decimals = Rational("0.3989422804014327") * t + DECIMAL * t**2
    assert number_apart(of_decimals) == (1, of_decimals)
    assert number_apart(t / 2 + t**2 / 3) == (Rational(1, 6), 3 * t + 2 * t**2)
