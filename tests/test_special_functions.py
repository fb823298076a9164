"""Special functions, steps and remainders: what they are, how they are differentiated, and that
every table has its line for each.
"""

import os
from fractions import Fraction
from math import inf

import pytest
import sympy
import torch
from forwards import HEAD
from generating import assert_same_gradients, draw, generated, pages
from sympy import Function, Integer, Piecewise, Rational, Rel, Symbol
from torch import lgamma

import derive
from codegen.commands.cli import gradform
from codegen.driver import lean
from codegen.program.values import Apply, Load, Number
from codegen.schedule.entries import BUILT
from codegen.targets.functions import IN_TARGETS
from codegen.targets.languages import kernels
from codegen.targets.torch.interpret import torch_function
from codegen.targets.torch.printer import Printer
from derive import NotationError, forward_from
from derive.claims.checking.numbers.arithmetic import CONTEXT, Floating, Undefined
from derive.claims.checking.numbers.arithmetic import FUNCTIONS as NUMBERS
from derive.claims.checking.numbers.doubles import Doubles
from derive.claims.checking.numbers.exact_numbers import Exact
from derive.claims.checking.numbers.residues import Residues
from derive.claims.reading.operations.vocabulary import OPERATIONS
from derive.language.functions import KINKED, KNOWN, TABLE, in_known_functions

MORE = """
from sympy import LambertW, Heaviside, atan2, besseli, besselj, beta, binomial, ceiling, cot
from sympy import Mod, digamma, erfc, erfinv, factorial, floor, frac, gamma, loggamma, polygamma
from sympy import acos, acosh, asin, asinh, atan, atanh, cos, cosh, erf, sign, sin, sinh, tan
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


# Of the tables: what is missing for a function is named.

u, v = Symbol("u", real=True), Symbol("v", real=True)
PLACE, OTHER, STEP, DIGITS = Rational(3, 10), Rational(19, 20), Rational(1, 10**10), 50
EXACT, NEAR = {"rel": 1e-12}, {"rel": 1e-9}  # torch's polygamma has nine digits
ORDER = 3  # of functions that have one
OF_ONE = [name for name, row in KNOWN.items() if row.arguments == 1]


def applied(name: str) -> sympy.Expr:
    row = KNOWN[name]
    return row.function(*[Integer(ORDER)] * row.orders, *(u, v)[: row.arguments - row.orders])


def at(name: str) -> dict[Symbol, sympy.Expr]:
    """Arguments of which the function has a value: beside the place where it is safe."""
    return {u: (KNOWN[name].safe_at or 0) + PLACE, v: OTHER}


def has_value(name: str, place: sympy.Expr) -> bool:
    try:
        Floating().apply(KNOWN[name].function, [Floating().number(place)])
    except Undefined:
        return False
    return True


@pytest.mark.parametrize("name", KNOWN)
def test_every_table_has_its_line(name):
    row, own = KNOWN[name], IN_TARGETS.get(name)
    assert own, "it has no row in codegen/targets/functions.py"
    assert torch_function(name), f"torch has none of {row.in_torch}"
    assert (own.cpp is None) == (own.triton is None), "C++ and Triton both have it, or none"
    assert own.cpp != "" or name in BUILT, "loops do not make it of others"
    assert row.function in NUMBERS or row.function in KINKED, "mpmath has no such name"
    assert OPERATIONS.keys() & {*row.in_libraries}, "no operation of torch's reads it"
    typed = row.called()[0]
    assert hasattr(sympy, typed) or typed in derive.PUBLIC, "no user can import it"


@pytest.mark.parametrize("name", KNOWN)
def test_every_table_has_the_same_function(name):
    e, row, given = applied(name), KNOWN[name], at(name)
    values = [arg.subs(given) for arg in e.args]
    wanted = float(row.function(*values).evalf(DIGITS))
    for arithmetic in (Floating(), Doubles(), Exact(irrational=True), Residues()):
        number = arithmetic.apply(row.function, [*map(arithmetic.number, values)])
        assert float(arithmetic.sympy(number)) == pytest.approx(wanted, **EXACT), arithmetic
    tensors = [torch.tensor(float(value), dtype=torch.float64) for value in values]
    assert torch_function(name)(*tensors).item() == pytest.approx(wanted, **NEAR)
    x, y = (Load(letter, dims=()) for letter in "xy")
    others = (y,) * (row.arguments - row.orders - 1) + (Number(Fraction(ORDER)),) * row.orders
    text = Printer({}, (), "x").text(Apply(name, x, others, dims=()))
    named = dict(zip("xy", tensors[row.orders :], strict=False))
    assert eval(text, {"torch": torch} | named).item() == pytest.approx(wanted, **NEAR), text


@pytest.mark.parametrize("name", [n for n in KNOWN if n not in ("Abs", "sign")])
def test_a_derivative_is_the_slope_and_is_made_of_known_functions(name):
    e, given = applied(name), at(name)
    for place in (s for s in (u, v) if s in e.free_symbols):
        slope = e.diff(place)
        made_of = {type(f).__name__ for f in slope.atoms(Function) if not isinstance(f, Piecewise)}
        assert made_of <= KNOWN.keys()
        sides = [given | {place: given[place] + side * STEP} for side in (1, -1)]
        above, below = (e.subs(side).evalf(DIGITS) for side in sides)
        wanted = float((above - below) / (2 * STEP))
        assert float(slope.subs(given).evalf(DIGITS)) == pytest.approx(wanted, **EXACT)
        assert KNOWN[name].stepped == (slope == 0)


@pytest.mark.parametrize("name", KNOWN)
def test_an_image_holds_what_the_function_gives(name):
    e, row, given = applied(name), KNOWN[name], at(name)
    value = float(e.subs(given).evalf())
    point = [(float(arg.subs(given)),) * 2 for arg in e.args]
    for intervals in (point, [*point[: row.orders], *[(-inf, inf)] * (len(point) - row.orders)]):
        low, high = row.image_of(*intervals)
        assert low - 1e-12 <= value <= high + 1e-12


@pytest.mark.parametrize("name", OF_ONE)
def test_what_a_row_says_is_true(name):
    row = KNOWN[name]
    relation, compared = row.domain or (">=", lambda u: Integer(1))
    places = [sign * (PLACE + n) for n in range(4) for sign in (1, -1)]
    for place in places:
        assert has_value(name, place) == bool(Rel(compared(place), 0, relation))
    ends = [applied(name).subs(u, side * PLACE).evalf(DIGITS) for side in (1, -1)]
    assert row.odd == (abs(sum(ends)) < STEP)
    if row.anywhere:
        assert Floating().apply(row.function, [CONTEXT.mpf(10) ** 6]) is not None
    far = [-1e4, 0.5, 1e4] if row.safe_at is None else [row.safe_at]
    x = torch.tensor(far, dtype=torch.float32, requires_grad=True)
    y = torch_function(name)(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert y.isfinite().all() and slope.isfinite().all()


def test_what_is_written_in_others_is_equal():
    place = {u: sympy.Float("0.7", 30), v: sympy.Float("0.45", 30)}
    for row in (row for row in TABLE if row.written):
        e = row.function(*[Integer(1)] * row.orders, *(u, v)[: row.arguments - row.orders])
        ours = in_known_functions(e)
        assert {type(f).__name__ for f in ours.atoms(Function)} <= KNOWN.keys()
        assert float(sympy.N(ours.subs(place))) == pytest.approx(float(sympy.N(e.subs(place))))


def term(name: str) -> str:
    """The function, as a user types it, where it has a value."""
    row = KNOWN[name]
    typed, *leading = row.called()
    operands = [f"tanh(x)/2 + {row.safe_at or 0}", "2 + w**2"][: row.arguments - row.orders]
    return f"{typed}({', '.join(map(str, [*leading, *[ORDER] * row.orders, *operands]))})"


LANGUAGES = [*kernels] if os.environ.get("TRITON_INTERPRET") == "1" else ["cpp"]
GROUPS = [[*KNOWN][first::7] for first in range(7)]


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_every_function_goes_through_every_pass(group, tmp_path):
    """Its module and its kernels are run, and compared with torch, before they are written."""
    forward = forward_from(forward_of(tmp_path, " + ".join(map(term, group))))
    for language in LANGUAGES:
        found = lean.generate(forward, chain=True, kernels=kernels[language])
        assert found.proved.every_size and found.kernels and not found.slow
    assert all(pages(found.proved).values())


def test_without_a_function_of_a_number_there_is_no_kernel_and_torch_runs(tmp_path, capsys):
    file = forward_of(tmp_path, "digamma(alpha) * w * x", more="    alpha = Scalar(2)\n")
    assert gradform([str(file), "--target", "cpp", "--out", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().err
    assert said.count("Special has no kernels, and torch computes it") == 1
    assert "no function for digamma" in said
    assert (tmp_path / "mine" / "special.py").exists()
