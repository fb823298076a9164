"""What can be written in several ways comes out the same: every equation of the one spelling is
true, and a respelled forward costs what the usual one does.
"""

import re
from itertools import product

import pytest
import torch
from evaluate import Numbers
from evaluate import close as equal
from forwards import HEAD
from generating import module_from
from sympy import (
    Abs,
    Rational,
    S,
    asinh,
    atanh,
    cosh,
    erf,
    erfc,
    exp,
    log,
    sinh,
    sqrt,
    symbols,
    tanh,
)

from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.target import written
from derive import Axis, Forward, Input, Label, Max, OneHot, Sum, forward_from
from derive.derivation import derive_definition
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.range.exponents import extreme
from derive.gradient.values.canonical import canonical, equations

x, y = symbols("x y", real=True)
N, C = Axis("N"), Axis("C")
NUMBERS = [Rational(n, 7) for n in (-40, -3, 0, 1, 12)]

# Expressions in one spelling and in others, by the equation that brings them there.
SPELLINGS = {
    "a**u": {
        exp(x * log(2)): [2**x],
        exp(2 * x * log(6)): [36**x],
        exp(-x * log(Rational(3, 2))): [Rational(2, 3) ** x],
    },
    "exp(k*u)": {
        1 / (1 + exp(-x)): [exp(x) / (1 + exp(x)), exp(x - 3) / (exp(-3) + exp(x - 3))],
        (1 + exp(-x)) ** -2: [exp(2 * x) / (1 + exp(x)) ** 2],
        2 * y / (6 + exp(y - x)): [2 * y * exp(x) / (6 * exp(x) + exp(y))],
    },
    "(a - b)": {
        tanh(x): [
            (exp(x) - exp(-x)) / (exp(x) + exp(-x)),
            (exp(2 * x) - 1) / (exp(2 * x) + 1),
            (1 - exp(-2 * x)) / (1 + exp(-2 * x)),
            -(exp(-x) - exp(x)) / (exp(x) + exp(-x)),
        ],
        y * tanh((x - y) / 2): [y * (exp(x) - exp(y)) / (exp(x) + exp(y))],
        x * tanh(log(1 + exp(x))): [x * ((1 + exp(x)) ** 2 - 1) / ((1 + exp(x)) ** 2 + 1)],
    },
    "1 + tanh(u)": {
        1 / (1 + exp(-x)): [(1 + tanh(x / 2)) / 2],
        2 * y / (1 + exp(x)): [y - y * tanh(x / 2)],
        tanh(x): [1 - 2 / (1 + exp(2 * x)), 2 / (1 + exp(-2 * x)) - 1],
        cosh(x) ** -2: [1 - tanh(x) ** 2],
        y * erfc(x): [y - y * erf(x)],
        x * (1 + erf(y)): [2 * x - x * erfc(y)],
        y - erf(x): [y + erfc(x) - 1],
    },
    "1 - a/(a + b)": {
        1 / (1 + exp(-x)): [1 - 1 / (1 + exp(x))],
        y / (1 + exp(x)): [y - y / (1 + exp(-x))],
        1 / (1 + 3 * exp(-x)): [1 - 3 / (3 + exp(x))],
    },
    "sinh(u)/cosh(u)": {y * tanh(x): [y * sinh(x) / cosh(x)]},
    "exp(u) + exp(-u)": {
        y * cosh(x): [y * exp(x) / 2 + y * exp(-x) / 2],
        sinh(2 * x) + y: [exp(2 * x) / 2 - exp(-2 * x) / 2 + y],
        -sinh(x): [exp(-x) / 2 - exp(x) / 2],
    },
    "exp(u)/(a*exp(2*u)": {
        y / cosh(x): [2 * y * exp(x) / (exp(2 * x) + 1)],
        2 / (1 + exp(-2 * x)): [exp(x) / cosh(x)],
        2 / (1 + exp(2 * x)): [exp(-x) / cosh(x)],
        exp(2 * x) / 2 - Rational(1, 2): [exp(x) * sinh(x)],
        Rational(1, 2) - exp(-2 * x) / 2: [exp(-x) * sinh(x)],
    },
    "tanh(u)*": {
        exp(2 * x) - 1: [tanh(x) * (exp(2 * x) + 1)],
        y * (1 - exp(-2 * x)): [y * tanh(x) * (1 + exp(-2 * x))],
    },
    "log(a*exp(u))": {
        x + log(1 + exp(y)): [log(exp(x) * (1 + exp(y)))],
        -log(cosh(y)): [log(1 / cosh(y))],
    },
    "cosh(Abs(u))": {cosh(x): [cosh(Abs(x))]},
    "log(n*a)": {
        log(3) + log(1 + exp(x)): [log(3 * (1 + exp(x)))],
        log(cosh(x)) - log(2): [log(cosh(x) / 2)],
    },
    "u + n*log": {
        log(1 + exp(x)): [x + log(1 + exp(-x)), x / 2 + log(cosh(x / 2)) + log(2)],
        -2 * log(1 + exp(-x)): [2 * x - 2 * log(1 + exp(x))],
        log(cosh(x)): [x + log(1 + exp(-2 * x)) - log(2)],
    },
    "log(u + sqrt": {
        asinh(x): [log(x + sqrt(x**2 + 1))],
        -asinh(2 * x): [log(sqrt(1 + 4 * x**2) - 2 * x)],
    },
    "log((1 + u)": {
        2 * atanh(x / 9): [log((1 + x / 9) / (1 - x / 9)), log(1 + x / 9) - log(1 - x / 9)],
    },
}
STAY = [
    (x**2 - 1) / (x**2 + 1),
    x**y,
    (-2) ** x,
    exp(x) / (1 + exp(y)),
    exp(x) / (1 + exp(x)) ** 2,
    exp(x) / (exp(x) - 1),
    (exp(x) - 1) / (exp(x) + 2),
    2 + tanh(x),
    1 + tanh(x) ** 2,
    2 - 1 / (1 + exp(x)),
    exp(x) + exp(-y),
    exp(x) - 2 * exp(-x),
    exp(x) / cosh(y),
    tanh(x) * (exp(x) + 1),
    x + log(1 + exp(x)),
    x + log(1 + exp(y)),
    log(x + sqrt(x**2 - 1)),
    log((2 + x) / (1 - 2 * x)),
    log(3),
]


@pytest.mark.parametrize("equation", equations, ids=lambda equation: equation.statement)
def test_an_equation_is_true_and_leads_to_one_spelling(equation):
    table = next((t for key, t in SPELLINGS.items() if equation.statement.startswith(key)), {})
    assert table or any(map(equation.statement.startswith, OF_TENSORS)), "no example"
    for one, others in table.items():
        assert canonical(one) == one
        for other in others:
            assert equation.rewrite(other) is not None and canonical(other) == one
            for a, b in product(NUMBERS, NUMBERS):
                difference = (one - other).xreplace({x: a, y: b})
                assert abs(difference.evalf(60, maxn=200)) < 1e-40


@pytest.mark.parametrize("e", STAY, ids=str)
def test_what_is_no_spelling_of_something_else_stays(e):
    assert canonical(e) == e


class Example(Forward):
    a = Input(N, C)
    b = Input(N, C)
    i = Label(N)
    y = a + b * Sum(OneHot(i, C), C)


a, b, i = Example.definition.arguments
E, PICKED = exp(a), Sum(OneHot(i, C) * exp(a) * (1 + b**2), C)
TOTAL = Sum(exp(b), C)
# By the equation: both sides, where it is about sums or choices.
OF_TENSORS = {
    "log(Sum(OneHot": (log(PICKED), Sum(OneHot(i, C) * (a + log(1 + b**2)), C)),
    "Max(a, b)": (extreme(a, b) + log(1 + exp(-Abs(a - b))), log(exp(a) + exp(b))),
    "Max(a, b) + log": (
        extreme(a, S.Zero, largest=False) - log(1 + exp(-Abs(a))),
        -log(1 + exp(-a)),
    ),
    "log(a*exp(u))": (log(PICKED / TOTAL), canonical(log(PICKED)) - log(TOTAL)),
}


@pytest.mark.parametrize("start", OF_TENSORS)
def test_an_equation_of_tensors_is_true(start):
    other, one = OF_TENSORS[start]
    assert canonical(other) == one == canonical(one)
    numbers = Numbers({N: 3, C: 4}, seed=3, indexed={"i": C})
    assert all(map(equal, numbers.entries(other, [N, C]), numbers.entries(one, [N, C])))


def test_the_smaller_is_not_the_larger():
    smaller = extreme(a, b, largest=False) + log(1 + exp(-Abs(a - b)))
    assert canonical(smaller) == smaller


def test_a_mean_is_by_shares_where_its_weights_are_positive_alone():
    mean = Sum(a * b, C) / Sum(a, C)
    assert canonical(mean) == mean


def test_what_is_summed_along_an_axis_is_not_turned():
    total = Sum(exp(forward_from("softmax").definition.inputs[0]), Axis("C"))
    assert canonical(exp(x) / (1 + total)) == exp(x) / (1 + total)


# The lines of a forward as they are usually written, and in other ways.
FORWARDS = {
    "y = 1/(1 + exp(-x))": [
        "y = exp(x)/(1 + exp(x))",
        "y = 1/(1 + 1/exp(x))",
        "e = exp(-x); whole = 1 + e; y = 1/whole",
    ],
    "y = tanh(x)": [
        "y = (exp(x) - exp(-x))/(exp(x) + exp(-x))",
        "y = (1 - exp(-2*x))/(1 + exp(-2*x))",
    ],
    "y = x/(1 + exp(-x))": ["y = x*exp(x)/(1 + exp(x))"],
    "y = x*tanh(log(1 + exp(x)))": ["y = x*((1 + exp(x))**2 - 1)/((1 + exp(x))**2 + 1)"],
    "y = -log(1 + exp(w - x))": ["y = log(exp(x)/(exp(x) + exp(w)))"],
    "y = exp(x*log(2))/Sum(exp(x*log(2)), C)": ["y = 2**x/Sum(2**x, C)"],
    "y = log(1 + exp(x*log(2)))/log(2)": ["y = log(1 + 2**x)/log(2)"],
    "y = exp(x)/Sum(exp(x), C)": [
        "e = exp(x); r = 1/Sum(e, C); again = exp(x); y = r*again",
        "k = x/log(2); j = x/log(2); y = 2**k/Sum(2**j, C)",
        "d = x - Max(x, C); e = 2**(d/log(2)); y = e/Sum(e, C)",
    ],
    "p = 1/(1 + exp(-x)); y = (w - 1)*log(1 - p) - w*log(p)": [
        "y = (w - 1)*log(1 - 1/(1 + exp(-x))) - w*log(1/(1 + exp(-x)))",
        "e = exp(-x); s = 1 + e; p = 1/s; q = 1 - p; y = (w - 1)*log(q) - w*log(p)",
        "p = exp(x)/(1 + exp(x)); y = (w - 1)*log(1 - p) - w*log(p)",
    ],
    "e = Piecewise((exp(x), Position(C) <= Position(N)), (0, True)); y = e/Sum(e, C)": [
        "y = Piecewise((exp(x), Position(C) <= Position(N)), (0, True))"
        "/Sum(Piecewise((exp(x), Position(C) <= Position(N)), (0, True)), C)",
    ],
    "v = Sum((x - Sum(x, C)/C)**2, C)/C; y = Piecewise((0, v <= 0), (sqrt(v), True))": [
        "y = Piecewise((0, Sum((x - Sum(x, C)/C)**2, C)/C <= 0),"
        " (sqrt(Sum((x - Sum(x, C)/C)**2, C)/C), True))",
    ],
}


MOST_MORE = 3  # operations, entry by entry, where a product is factored otherwise


@pytest.mark.parametrize("usual", FORWARDS)
def test_a_forward_costs_the_same_however_it_is_written(usual, tmp_path):
    results = []
    for number, spelled in enumerate([usual, *FORWARDS[usual]]):
        lines = ["x = Input(N, C)", *(["w = Input(N, C)"] if re.search(r"\bw\b", spelled) else [])]
        body = "\n    ".join([*lines, *spelled.split("; ")])
        file = tmp_path / f"own{number}.py"
        file.write_text(f"{HEAD}\n\nclass Own(Forward):\n    {body}\n")
        forward = forward_from(file)
        outside = outside_of(forward.definition)
        _, text = written(forward, outside, derive_definition(outside.inside))
        module = module_from(text, tmp_path, f"own{number}")
        results.append((close(derive_chain(forward.definition)), module.own))
    form, own = results[0]
    for other, respelled in results[1:]:
        known = (other.cost.moved, other.cost.reductions, other.cost.saved)
        assert known == (form.cost.moved, form.cost.reductions, form.cost.saved)
        assert other.preference[0] == form.preference[0] and len(other.saved) == len(form.saved)
        assert other.cost.operations <= form.cost.operations + MOST_MORE
        for size in (1, 30, 200, 1e4):
            values = [_run(function, form, size) for function in (own, respelled)]
            for one, same in zip(*values, strict=True):
                torch.testing.assert_close(same, one, rtol=1e-5, atol=1e-6)
                assert same.isfinite().all()


def _run(function, form, size):
    """Value and gradients in float32 at numbers of this size."""
    generator = torch.Generator().manual_seed(5)
    inputs = [
        (size * torch.randn(4, 5, generator=generator)).requires_grad_()
        for _ in form.definition.inputs
    ]
    output = function(*inputs)
    return [output.detach(), *torch.autograd.grad(output.sum(), inputs)]


@pytest.mark.parametrize("line", ["y = x*exp(x)", "y = exp(-2*x)/x", "y = x*2**x"])
def test_a_value_is_not_solved_for_what_its_own_exponential_multiplies(tmp_path, line):
    """x = y*exp(-x) follows from y = x*exp(x), and rewriting by it would never end."""
    file = tmp_path / "own.py"
    file.write_text(f"{HEAD}\n\nclass Own(Forward):\n    x = Input(N, C)\n    {line}\n")
    form = close(derive_chain(forward_from(file).definition))
    assert not form.relations.eliminations


def test_a_maximum_that_is_written_twice_is_taken_once(tmp_path):
    file = tmp_path / "own.py"
    line = "y = Sum(w*log(exp(x - Max(x, C))/Sum(exp(x - Max(x, C)), C)), C)"
    lines = f"    x = Input(N, C)\n    w = Given(N, C)\n    {line}\n"
    file.write_text(f"{HEAD}\n\nclass Own(Forward):\n{lines}")
    form = close(derive_chain(forward_from(file).definition))
    assert not any(statement.expression.has(Max) for statement in form.statements)
    assert form.preference[0] == 0
