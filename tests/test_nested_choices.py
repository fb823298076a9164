"""Choices in one another derive, whatever stands in their conditions: other choices, their maxima,
statements that are choices.
"""

import pytest
from forwards import HEAD
from sympy import Piecewise, Symbol
from sympy.logic.boolalg import ITE

from codegen.driver.lean import generate
from derive import forward_from
from derive.language.choices import Branches, Compared

LARGER = "from sympy import Max as Larger"

NESTED = {
    "branches": "y = Piecewise((Piecewise((Piecewise((x, x > 2), (x**2, True)), x > 1), (w, True)),"
    " x > 0), (x * w, True))",
    "conditions": "y = Piecewise((x, Piecewise((x, x > w), (w, True)) > 1), (w * x, True))",
    "statements": "a = Piecewise((x, x > 2), (x**2, True));"
    " b = Piecewise((a, a > 1), (x**3, True)); c = Piecewise((b, b > 0), (a**4, True));"
    " y = Piecewise((c, c > b), (a, True))",
    "sums": "a = Piecewise((x, x > 0), (0, True)); s = Sum(a, N); b = Piecewise((s, s > 1),"
    " (1, True)); c = a / b; y = Piecewise((c, c > b), (b, True))",
    "three thresholds": "y = Piecewise((x, x < 1), (2 * x, x < 2), (w * x, x < 3), (0, True))",
    "functions": "h = Piecewise((x**2 / 2, Abs(x) < 1), (Abs(x) - Rational(1, 2), True));"
    " k = Piecewise((h, h < 3), (3 * log(h), True)); y = Piecewise((k**2, k < 1), (k, True))",
    "a loop written out": "a = Piecewise((x * x, x > 0), (x + x, True));"
    " b = Piecewise((a * x, a > 1), (a + x, True)); c = Piecewise((b * x, b > 2), (b + x, True));"
    " y = 2 * c",
    "the larger of the larger": "y = Larger(Larger(x, 1), w)",
    "of statements": "a = Larger(x, w); b = Larger(a, 1); y = Larger(b, a * w)",
    "of four": "y = Larger(x, w, x * w, 1)",
    "of a multiple": "y = Larger(Larger(x, 1), Rational(1, 2) * x)",
    "between": "y = Larger(Min(Larger(x, 0) - 1, 6), Min(x, w))",
    "of a row": "a = Larger(x, 1); b = Max(a, N); y = Larger(b, x) * w",
    "a median": "y = Larger(Min(x, w), Min(Larger(x, w), 1))",
    "duplicates": "y = Larger(x, x, 2 * x, w, w)",
    "of what has a stable form": "s = log(1 + exp(x)); y = Min(s, 1) * w",
    "a stable form inside": "s = x * log(1 + exp(x)); y = Larger(Min(s, 2), w)",
    "a distance of it": "y = Abs(log(1 + exp(x)) - w)",
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
def test_nested_choices_are_derived_and_proved(name, tmp_path):
    file = tmp_path / "mine.py"
    lines = ["x = Input(N)", "w = Input(N)", *NESTED[name].split("; ")]
    body = "".join(f"    {line}\n" for line in lines)
    file.write_text(f"{LARGER}\n{HEAD}\nclass Mine(Forward):\n{body}")
    generated = generate(forward_from(file))
    assert generated.largest_difference < 1e-10


def test_a_condition_compares_a_choice_as_one_thing():
    x, w, a = (Symbol(name, real=True) for name in "xwa")
    inner = Piecewise((x, w < x), (w, True))
    outer = Piecewise((x, Compared(a) > 1), (w, True)).xreplace({a: inner})
    assert not outer.has(ITE) and outer.atoms(Branches)
    assert str(outer) == "Piecewise((x, Piecewise((x, w < x), (w, True)) > 1), (w, True))"
    (branches,) = outer.atoms(Branches)
    assert branches.choice == inner
    assert outer.xreplace({x: 3, w: 2}) == 3 and outer.xreplace({x: 0, w: 1}) == 1
    for place in ({w < x: True}, {w < x: False}):
        assert not outer.xreplace(place).has(Branches)


def test_a_statement_that_is_a_choice_is_compared_as_one_thing(tmp_path):
    file = tmp_path / "mine.py"
    lines = ("x = Input(N)", "a = Piecewise((x, x > 2), (x**2, True))", "b = a + 1", "c = x + 1")
    lines += ("y = Piecewise((a, b > 1), (c, c > 2), (x**3, True))",)
    file.write_text(f"{HEAD}\nclass Mine(Forward):\n" + "".join(f"    {e}\n" for e in lines))
    by_name = forward_from(file).definition.by_name
    y = by_name["y"].expression
    assert [str(side) for side in y.atoms(Compared)] == ["b"]
    b, a = by_name["b"], by_name["a"]
    unfolded = y.xreplace({b.tensor: b.expression}).xreplace({a.tensor: a.expression})
    assert unfolded.atoms(Branches) and not unfolded.has(ITE)
