"""What torch calls a function, and how it passes a gradient through it: every entry is right."""

from fractions import Fraction

import pytest
import sympy
import torch
from generating import assert_same_gradients, forward_file, generated

from codegen.lowering import idioms
from codegen.program import Load, Number, Power
from codegen.targets.torch.printer import FUNCTIONS, PULLBACKS, Printer

MEANT = {"log1p": lambda u: sympy.log(1 + u), "expm1": lambda u: sympy.exp(u) - 1}
MEANT |= {"sigmoid": lambda u: 1 / (1 + sympy.exp(-u))}
LARGE = ("acosh",)  # of numbers from 1
NAMES = (  # of the functions that a forward may be written in, and of the idioms
    *("exp", "log", "Abs", "sign", "floor", "ceiling", "erf", "erfc", *MEANT),
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
    torchs = getattr(torch, FUNCTIONS[name].removeprefix("torch."))
    for point in [
        *points(name),
        *([-p for p in POINTS] if name in ("Abs", "sign", "floor") else []),
    ]:
        ours = float(torchs(torch.tensor(point, dtype=torch.float64)))
        assert ours == pytest.approx(float(meant(name).subs(u, point)), rel=1e-13)


EXTREME = {
    "Larger(a, b)": torch.maximum,
    "Min(a, b)": torch.minimum,
    "Larger(a, 2) + b": lambda a, b: a.clamp(min=2) + b,
    "Min(a, 2) + b": lambda a, b: a.clamp(max=2) + b,
}


@pytest.mark.parametrize("written", EXTREME)
def test_the_larger_and_the_smaller_of_what_is_no_number_are_none(written, tmp_path):
    body = "    from sympy import Max as Larger\n    a = Input(N)\n    b = Input(N)\n"
    file = forward_file(tmp_path, "Extreme", f"{body}    y = {written}\n")
    function, _, _ = generated(file, tmp_path)
    a, b = torch.tensor([1.0, torch.nan, 3.0, 4.0]), torch.tensor([2.0, 1.0, torch.nan, 3.0])
    torch.testing.assert_close(function(a, b), EXTREME[written](a, b), equal_nan=True)


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


@pytest.mark.parametrize("idiom", idioms.idioms, ids=lambda idiom: idiom.statement)
def test_an_idiom_is_what_its_statement_says(idiom):
    name = idiom.statement.split("(")[0]
    whole = {"log1p": sympy.log(1 + u), "expm1": sympy.exp(u) - 1}.get(
        name, 1 / (1 + sympy.exp(-u))
    )
    left = idiom.rewrite(whole)
    assert type(left).__name__ == name and left.args == (u,)
    assert sympy.simplify(meant(name).subs(u, left.args[0]) - whole) == 0
    if name == "sigmoid":
        assert idiom.rewrite(whole**2) == left**2 and idiom.rewrite(1 / (2 + sympy.exp(u))) is None
    if name == "expm1":
        assert idiom.rewrite(1 + u - sympy.exp(u)) == u - left
        assert idiom.rewrite(3 - sympy.exp(u)) is idiom.rewrite(1 + sympy.exp(u)) is None
    if name == "log1p":
        assert idiom.rewrite(sympy.log(1 + u + u**2)).args == (u + u**2,)
        assert idiom.rewrite(sympy.log(2 + u)) is None
