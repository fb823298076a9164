"""Special functions, steps and remainders: what they are, how they are differentiated, and that
every table has its line for each.
"""

import pytest
import sympy
import torch
from forwards import HEAD
from generating import assert_same_gradients, draw, generated
from sympy import Function, Piecewise, Rational, Symbol
from torch import lgamma

import derive.language.functions as functions
from codegen.commands.cli import gradform
from codegen.driver import lean
from codegen.schedule.entries import BUILT
from codegen.schedule.library import FUNCTIONS as OF_LIBRARY
from codegen.targets.cpp import vocabulary as cpp
from codegen.targets.languages import kernels
from codegen.targets.torch import interpret
from codegen.targets.torch import vocabulary as torchs
from codegen.targets.triton import vocabulary as triton
from derive import NotationError, forward_from
from derive.claims.checking.numbers.arithmetic import FUNCTIONS as NUMBERS
from derive.claims.reading.operations.functions import SYMPYS
from derive.claims.reading.operations.vocabulary import OPERATIONS
from derive.gradient.range.bounds import ANYWHERE, Ranges, bounds
from derive.language.functions import KNOWN, WRITTEN, in_known_functions

MORE = """
from sympy import LambertW, Heaviside, atan2, besseli, besselj, beta, binomial, ceiling, cot
from sympy import Mod, digamma, erfc, erfinv, factorial, floor, frac, gamma, loggamma, polygamma
from sympy import sech, zeta
from derive import Round
"""
# Lines in x, which is positive, and w; torch typed by hand.
LINES = {
    "loggamma(x) * w": lambda x, w: lgamma(x) * w,
    "digamma(x) * w": lambda x, w: torch.digamma(x) * w,
    "polygamma(2, x) - polygamma(1, w**2 + 1)": lambda x, w: (
        torch.polygamma(2, x) - torch.polygamma(1, w**2 + 1)
    ),
    "log(gamma(x)) + log(factorial(x)) * w": lambda x, w: lgamma(x) + lgamma(x + 1) * w,
    "log(beta(x, w**2))": lambda x, w: lgamma(x) + lgamma(w**2) - lgamma(x + w**2),
    "log(binomial(x + 1, x)) * w": lambda x, w: (
        (lgamma(x + 2) - lgamma(x + 1) - lgamma(w * 0 + 2)) * w
    ),
    "erfc(x) * w": lambda x, w: torch.erfc(x) * w,
    "erfinv(tanh(w)) / x": lambda x, w: torch.erfinv(torch.tanh(w)) / x,
    "besseli(0, w) * x": lambda x, w: torch.special.i0(w) * x,
    "log(besseli(0, x)) + besseli(1, w)": lambda x, w: (
        torch.special.i0(x).log() + torch.special.i1(w)
    ),
    "atan2(w, x)": lambda x, w: torch.atan2(w, x),
    "floor(3 * w) * w + ceiling(x) * x": lambda x, w: (3 * w).floor() * w + x.ceil() * x,
    "Round(3 * w) * w + x": lambda x, w: (3 * w).round() * w + x,
    "frac(w) * x": lambda x, w: (w - w.floor()) * x,
    "Mod(w, x)": lambda x, w: torch.remainder(w, x),
    "Mod(w, 2) * x + w // 2": lambda x, w: torch.remainder(w, 2) * x + (w / 2).floor(),
    "cot(x) + sech(w)": lambda x, w: 1 / torch.tan(x) + 1 / torch.cosh(w),
}


def forward_of(folder, line: str, declared: str = "Input", more: str = ""):
    file = folder / "special.py"
    text = HEAD.replace("\n\nN", f"{MORE}\nN", 1)
    body = f"    x = {declared}(N)\n    w = Input(N)\n{more}    y = {line}\n"
    file.write_text(f"{text}\n\nclass Special(Forward):\n{body}", encoding="utf-8")
    return file


@pytest.mark.parametrize("line", LINES)
def test_a_function_and_its_gradient_are_torchs(line, tmp_path):
    function, _, result = generated(forward_of(tmp_path, line), tmp_path)
    assert result.proved.every_size
    reference = LINES[line]
    assert_same_gradients(function, reference, draw(7).abs() + 0.2, draw(7, seed=2))


def test_the_bessel_function_of_order_one_has_a_slope_at_zero(tmp_path):
    function, _, _ = generated(forward_of(tmp_path, "besseli(1, w) * x"), tmp_path)
    w = torch.tensor([0.0, 0.5], dtype=torch.float64)
    assert_same_gradients(function, lambda x, w: torch.special.i1(w) * x, torch.ones_like(w), w)


# Names of SymPy's that the notation writes in others.
REFUSED = {
    "gamma(x) * w": "write exp(loggamma(x))",
    "beta(x, w)": "write exp(loggamma(w) + loggamma(x) - loggamma(w + x))",
    "factorial(x) * w": "write exp(loggamma(x + 1))",
    "besselj(0, x) * w": "write it in exp",
    "besseli(2, x) * w": "libraries have the orders 0 and 1",
    "zeta(x) * w": "write it in exp",
    "LambertW(x) * w": "write it in exp",
    "Heaviside(x) * w": "write it in exp",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_no_library_has_is_refused_before_anything_is_derived(line, tmp_path):
    with pytest.raises(NotationError) as error:
        forward_from(forward_of(tmp_path, line))
    assert REFUSED[line] in str(error.value) and "special.py:" in str(error.value)


# Of the tables

STEP, DIGITS = Rational(1, 10**10), 50

u, v = Symbol("u", positive=True), Symbol("v", positive=True)
OF_TWO = {"Mod": (u, v), "atan2": (u, v), "polygamma": (sympy.Integer(1), u)}


def applied(name: str) -> sympy.Expr:
    """The function of ours, or SymPy's of that name, of symbols."""
    return getattr(functions, name, getattr(sympy, name, None))(*OF_TWO.get(name, (u,)))


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_table_has_its_line(name):
    assert name in torchs.FUNCTIONS | torchs.SEVERAL
    assert name in interpret.FUNCTIONS or callable(getattr(torch, name))
    assert type(applied(name)) in NUMBERS or name in ("Abs", "sign")
    assert SYMPYS.get(name, name) in OPERATIONS or name in NOT_READ
    kernel = {"Abs": "abs"}.get(name, name)
    for own in (cpp.FUNCTIONS, triton.FUNCTIONS):
        assert (kernel in own or name in BUILT) == (name not in OF_LIBRARY)


# What nobody writes a gradient in.
NOT_READ = {"tan", "asin", "acos", "atan", "asinh", "acosh", "atanh"}


@pytest.mark.parametrize("name", sorted(KNOWN - {"Abs", "sign"}))
def test_a_derivative_is_the_slope_and_is_made_of_known_functions(name):
    e = applied(name)
    for place in (s for s in (u, v) if s in e.free_symbols):
        slope = e.diff(place)
        made_of = {type(f).__name__ for f in slope.atoms(Function) if not isinstance(f, Piecewise)}
        assert made_of <= KNOWN
        at = {u: Rational(17 if name == "acosh" else 7, 10), v: Rational(9, 20)}
        sides = [e.subs(at | {place: at[place] + side * STEP}).evalf(DIGITS) for side in (1, -1)]
        wanted = (sides[0] - sides[1]) / (2 * STEP)
        assert float(slope.subs(at).evalf(DIGITS)) == pytest.approx(float(wanted), rel=1e-12)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_range_holds_what_the_function_gives(name):
    ranges = Ranges(lambda tensor: None)
    within = bounds(applied(name), ranges)
    for a, b in ((0.3, 0.6), (0.9, 0.2), (0.05, 0.95)):
        shift = 1 if name == "acosh" else 0
        value = float(sympy.N(applied(name).subs({u: a + shift, v: b})))
        assert within.low <= value <= within.high
    tight = {"floor", "ceiling", "Mod", "polygamma", "i0", "atan2"}
    assert within != ANYWHERE or name not in tight - {"floor", "ceiling"}


def test_what_is_written_in_others_is_equal():
    at = {u: sympy.Float("0.7", 30), v: sympy.Float("0.45", 30)}
    for kind in WRITTEN.keys() - {sympy.digamma, sympy.trigamma, sympy.besseli}:
        e = kind(*((u, v) if kind is sympy.Mod else (u,)))
        ours = in_known_functions(e)
        assert ours != e
        assert float(sympy.N(ours.subs(at))) == pytest.approx(float(sympy.N(e.subs(at))), rel=1e-12)


KERNELS = ["loggamma(x) * w", "atan2(w, x)", "Mod(w, x) + floor(w) * x"]


@pytest.mark.parametrize("line", KERNELS)
def test_a_kernel_has_the_functions_that_c_has(line, tmp_path):
    """Each is run and compared with torch before it is written."""
    forward = forward_from(forward_of(tmp_path, line, "Given"))
    found = lean.generate(forward, kernels=kernels["cpp"])
    assert found.kernels and not found.slow


def test_without_a_function_of_a_number_there_is_no_kernel_and_torch_runs(tmp_path, capsys):
    file = forward_of(tmp_path, "digamma(alpha) * w * x", more="    alpha = Scalar(2)\n")
    assert gradform([str(file), "--target", "cpp", "--out", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().err
    assert said.count("Special has no kernels, and torch computes it") == 1
    assert "no function for digamma" in said
    assert (tmp_path / "mine" / "special.py").exists()
