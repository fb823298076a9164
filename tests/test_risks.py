"""What a way of writing a gradient is said to risk: each form beside a forward that is finite."""

import re

import pytest
from generating import forward_file, generated
from sympy import Ne, Piecewise, exp, log, sqrt

from codegen.commands.cli import gradform
from codegen.driver.qualities import emitted
from codegen.report.page import report
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.closing.risks import divisors, preference
from derive.gradient.values.relations import relations_of
from derive.language.nodes import Sum
from derive.language.notation.library import forward_from
from derive.language.symbols import Tensor

BODY = """
    x = Input(N, C)
    w = Input(N, C)
    eps = Scalar(1e-5)
    delta = Scalar(1e-5, above=0)
    p = 1/(1 + exp(-w))
    length = Piecewise((w, w >= eps), (eps, True))
    product = sqrt((x + 3)*(x - 2)*(x - 4 + w))
    y = x/length + w/product + log(1 - p) + delta*sqrt(Sum(w**2, C)) + 1/(x - 7)
"""

# An expression, from the tensors of the forward, and how much it risks.
RISKS = {
    "1/x": (lambda x, w, **_: 1 / x, 1),
    "1/x twice": (lambda x, w, **_: 1 / x + w / x**2, 1),
    "1/x + 1/w": (lambda x, w, **_: 1 / x + 1 / w, 2),
    "1/2": (lambda x, w, **_: x / 2, 0),
    "x**(-1/2)": (lambda x, w, **_: x / sqrt(w), 1),
    "by what the forward divides by": (lambda x, w, **_: w / (x - 7), 0),
    "by a named value that it divides by": (lambda x, length, **_: x / length**2, 0),
    "by a factor of what it divides by": (lambda x, w, **_: w / (x + 3), 0),
    "by a term of that": (lambda x, w, **_: w / (x - 4), 1),
    "by 1 - p, of which nothing may be left": (lambda x, p, **_: x / (1 - p), 1),
    "by 1 + x**2": (lambda x, **_: x / (1 + x**2), 0),
    "where it is positive": (lambda x, **_: Piecewise((1 / x, x > 0), (0, True)), 0),
    "where it is not negative": (lambda x, **_: Piecewise((1 / x, x >= 0), (0, True)), 1),
    "where it is at least 2": (lambda x, **_: Piecewise((1 / x, x >= 2), (0, True)), 0),
    "where it is negative": (lambda x, **_: Piecewise((1 / x, x < 0), (0, True)), 0),
    "where it is not positive": (lambda x, **_: Piecewise((1 / x, x <= 0), (0, True)), 1),
    "where it is at most -2": (lambda x, **_: Piecewise((1 / x, x <= -2), (0, True)), 0),
    "where it is not 0": (lambda x, **_: Piecewise((1 / x, Ne(x, 0)), (0, True)), 0),
    "where it is not 1": (lambda x, **_: Piecewise((1 / x, Ne(x, 1)), (0, True)), 1),
    "where it is none of the others": (lambda x, **_: Piecewise((0, x <= 0), (1 / x, True)), 0),
    "where a product with it is positive": (
        lambda x, w, **_: Piecewise((1 / (3 * x), w * x**2 > 0), (0, True)),
        0,
    ),
    "where a factor of it is positive": (
        lambda x, w, **_: Piecewise((1 / (w * x), x > 0), (0, True)),
        1,
    ),
    "where a sum with it is positive": (
        lambda x, w, **_: Piecewise((1 / x, x + w > 0), (0, True)),
        1,
    ),
    "where another is positive": (lambda x, w, **_: Piecewise((1 / x, w > 0), (0, True)), 1),
    "above a positive number": (
        lambda x, delta, **_: Piecewise((1 / x, x >= delta), (0, True)),
        0,
    ),
    "above any number": (lambda x, eps, **_: Piecewise((1 / x, x >= eps), (0, True)), 1),
    "as the choice that it divides by": (
        lambda w, eps, **_: Piecewise((1 / w, w >= eps), (0, True)),
        0,
    ),
    "in a condition": (lambda x, **_: Piecewise((1, 1 / x > 0), (0, True)), 1),
    "exp(x)": (lambda x, **_: exp(x), 1),
    "exp(-x**2)": (lambda x, **_: exp(-(x**2)), 0),
    "exp(p)": (lambda p, **_: exp(p), 0),
    "log(p)": (lambda p, **_: log(p), 1),
    "log(1 - p)": (lambda p, **_: log(1 - p), 1),
    "log(2 - p)": (lambda p, **_: log(2 - p), 0),
    "log(1 + p)": (lambda p, **_: log(1 + p), 0),
    "log(1 + p + exp(x))": (lambda x, p, **_: log(1 + p + exp(x)), 1),
}


@pytest.fixture(scope="module")
def relations(tmp_path_factory):
    file = forward_file(tmp_path_factory.mktemp("risks"), "Risky", BODY)
    return relations_of(forward_from(file).definition)


@pytest.mark.parametrize("case", RISKS)
def test_what_an_expression_risks(case, relations):
    written, risks = RISKS[case]
    definition = relations.definition
    tensors = {t.name: t for t in definition.inputs}
    tensors |= {t.name: t for t, _ in definition.scalars}
    tensors |= {s.name: s.tensor for s in definition.statements}
    dx = Tensor("dx", tensors["x"].home, role="adjoint")
    assert preference([(dx, written(**tensors))], relations)[0] == risks


def test_what_is_named_on_the_way_is_seen_where_it_is_read(relations):
    """The smaller of x and 0 is at most x, and its exponential at most exp(x)."""
    x = relations.definition.inputs[0]
    home = x.home
    dx, smaller = (Tensor(name, home, role="adjoint") for name in ("dx", "smaller"))
    pairs = [(smaller, Piecewise((x, x <= 0), (0, True)))]
    assert preference([*pairs, (dx, exp(-smaller))], relations)[0] == 1
    assert preference([*pairs, (dx, exp(smaller - x))], relations)[0] == 0


def test_what_the_output_grows_with_is_no_risk(tmp_path):
    body = "    x = Input(N)\n    w = Input(N)\n    e = exp(x)\n    k = w*e\n"
    body += "    y = k - 1/(1 + exp(w))\n"
    definition = forward_from(forward_file(tmp_path, "Growing", body)).definition
    x, w = definition.inputs
    dx = Tensor("dx", x.home, role="adjoint")
    k, y = definition.statements[1].tensor, definition.output
    known = {exp(x): 0, exp(x) * w: 0, k: 0, y: 0, exp(w): 1, exp(x + w): 1, exp(-x): 1}
    for written, risks in known.items():
        assert preference([(dx, written)], relations_of(definition))[0] == risks, written


def test_a_divisor_of_the_forward_is_no_risk_as_the_output_that_it_is(tmp_path):
    body = "    x = Input(N, C)\n    sigma = sqrt(Sum(x**2, C) / C)\n    y = x / sigma\n"
    body += "    outputs = Outputs(y, sigma)\n"
    definition = forward_from(forward_file(tmp_path, "WithSigma", body)).definition
    x, (_, sigma) = definition.inputs[0], definition.outputs
    dx = Tensor("dx", x.home, role="adjoint")
    relations = relations_of(definition)
    assert sigma.name not in {t.name for e in relations.divisors for t in e.atoms(Tensor)}
    assert preference([(dx, x / sigma)], relations)[0] == 0
    assert preference([(dx, 1 / x)], relations)[0] == 1


UNSAFE = """
    x = Input(N)
    e = exp(x)
    y = (e - e**2/(1 + e)) * sqrt(Sum(x**2, N))
"""


def test_what_is_not_safe_is_named(tmp_path, capsys):
    """In the docstring, the table and the report."""
    file = forward_file(tmp_path, "Unsafe", UNSAFE)
    named = (
        "exp(x) may overflow: then e may be infinite or NaN",
        "sqrt(Sum(x**2, N)) may be 0 or underflow: then dx may be infinite or NaN",
    )
    _, module, result = generated(file, tmp_path)
    assert result.program.unsafe[:2] == named
    said = " ".join(module.__doc__.split())
    assert all(f"- {line}." in said for line in named)
    page = report([emitted(result)], None)
    assert all(f"Not safe: {words}." in page for words in named)
    assert gradform([str(file), "--out", str(tmp_path / "out")]) == 0
    cells = " ".join(re.findall(r"│ [^│]*│ (.*?) +│", capsys.readouterr().out))
    assert all(line in cells for line in named)


def test_what_it_divides_by(relations):
    x, w = relations.definition.inputs[:2]
    assert divisors(x / w + 1 / Sum(x, x.axes[1]) + x**2 / 3) == {w, Sum(x, x.axes[1])}


NAMED = """
    x = Input(N)
    t = Input(N)
    e = exp(-x)
    f = e + 1
    p = 1/f
    q = 1 - p
    lp = log(p)
    lq = log(q)
    r = 1 - t
    a = t*lp
    b = r*lq
    s = a + b
    g = t*p
    h = q*r
    k = g + h
    m = (1 - k)**2
    y = -s*m
"""


def test_names_that_risk_something_are_done_without(tmp_path):
    form = close(derive_chain(forward_from(forward_file(tmp_path, "Named", NAMED)).definition))
    assert form.preference[0] == 0, str(form)
