"""A number that float64 does not hold is refused where it is written, where it comes out of the
derivation, and in a formula that is checked; what it holds is computed as written.
"""

import pytest
from forwards import HEAD
from sympy import Float, Integer, Rational, exp, log, sqrt

from codegen.driver.lean import generate
from derive import NotationError, forward_from
from derive.claims.checking.check import check
from derive.language.errors import QuestionError
from derive.language.float_range import exact_number, unheld_number


def forward(folder, *lines: str):
    file = folder / "mine.py"
    body = "".join(f"    {line}\n" for line in ("x = Input(N)", *lines))
    file.write_text(f"from sympy import Float, factorial\n{HEAD}\nclass Mine(Forward):\n{body}")
    return forward_from(file)


@pytest.mark.parametrize(
    "line",
    [
        "y = x * 10**400",
        "y = x / 10**400",
        "y = x * 1e400",
        "y = x * 1e-400",
        "y = x * Float('1e-400')",
        "y = x * 10**5000",
        "y = x * (10**5000 + 1) / (10**4999 * 3 + 7)",
        "y = x**(10**400)",
        "y = exp(1000) * x",
        "y = sqrt(10**700 + 1) * x",
        "y = factorial(200) * x",
        "y = Piecewise((x, x > 10**400), (2 * x, True))",
        "k = Scalar(10**400); y = k * x",
        "k = Scalar(10**400 / sqrt(N)); y = k * x",
        "g = Given(N, default=10**5000); y = g * x",
        "l = Label(N, ignored=10**5000); y = x * Kept(l)",
        "G = Axis('G', 10**5000); y = x * OneHot(1, G)",
    ],
)
def test_what_is_written_is_refused_with_its_line(line, tmp_path):
    lines = line.split("; ")
    with pytest.raises(NotationError) as error:
        forward(tmp_path, *lines)
    said = str(error.value)
    assert error.value.place.line and len(said) < 400 and error.value.remedy


def test_what_comes_out_of_a_derivation_is_refused(tmp_path):
    lines = ("a = 10**200 * x", "y = 10**200 * a")
    with pytest.raises(QuestionError, match="larger than float64 holds"):
        generate(forward(tmp_path, *lines))


@pytest.mark.parametrize(
    "line",
    [
        "y = x * 10**30 + x / 10**30",
        "y = x * 2**63",
        "y = Piecewise((x, x > 10**30), (2 * x, True))",
        "g = Given(N, default=10**30); y = g * x",
        "y = log(x) / log(10**400)",
        "y = x * 0.0 + x",
    ],
)
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
def test_what_float64_holds_is_computed(line, tmp_path):
    assert generate(forward(tmp_path, *line.split("; "))).largest_difference < 1e-10


def test_a_formula_that_is_checked_has_numbers_that_torch_reads(tmp_path):
    mine = forward(tmp_path, "y = x**2")
    for formula in ("1e400*x*dy", "2*x*dy/1e400*1e400", "2*x*dy + 1e-400"):
        with pytest.raises(QuestionError, match="than float64 holds"):
            check(mine, formula, of="x")


def test_a_counterexample_may_be_as_large_as_it_likes(tmp_path):
    verdict = check(forward(tmp_path, "y = x**2"), "2*x*dy*1e300*1e300", of="x")
    assert verdict.outcome == "wrong"


def test_a_decimal_is_the_number_that_was_written():
    assert exact_number(0.1) == Rational(1, 10) and exact_number(10**30) == Integer(10) ** 30
    assert exact_number(0.1 * 3) == Rational(3, 10)
    assert float(exact_number(3.141592653589793)) == 3.141592653589793
    assert exact_number(Float("1e-400")) == Rational(1, 10**400)
    assert unheld_number(log(Integer(10) ** 400)) is None
    assert unheld_number(exp(Integer(1000))) and unheld_number(sqrt(Integer(10) ** 700 + 1))
