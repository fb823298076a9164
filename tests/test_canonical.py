"""What can be written in several ways comes out the same: every equation of the one spelling is
true, and a respelled forward costs what the usual one does.
"""

from itertools import product

import pytest
import torch
from forwards import HEAD
from generating import module_from
from sympy import Rational, exp, log, symbols, tanh

from codegen.driver import generate
from derive import Axis, Sum, forward_from
from derive.canonical import canonical, equations, spelled
from derive.chain import derive_chain
from derive.closed_form import close
from derive.forward_plan import forward_plan

x, y = symbols("x y", real=True)
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
}
STAY = [
    (x**2 - 1) / (x**2 + 1),
    x**y,
    (-2) ** x,
    exp(x) / (1 + exp(y)),
    exp(x) / (1 + exp(x)) ** 2,
    exp(x) / (exp(x) - 1),
    (exp(x) - 1) / (exp(x) + 2),
]


@pytest.mark.parametrize("equation", equations, ids=lambda equation: equation.statement)
def test_an_equation_is_true_and_leads_to_one_spelling(equation):
    (table,) = (t for start, t in SPELLINGS.items() if equation.statement.startswith(start))
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


def test_what_is_summed_along_an_axis_is_not_turned():
    total = Sum(exp(forward_from("softmax").definition.inputs[0]), Axis("C"))
    assert canonical(exp(x) / (1 + total)) == exp(x) / (1 + total)


# Lines of a forward, and those that are left of them in the one spelling.
LINES = {
    "a multiple is written where it is read": ("h = 2*x\ny = h**2", ["y = 4*x**2"]),
    "so is what another name stands for": ("h = x\ny = exp(h)*h", ["y = x*exp(x)"]),
    "a number stays apart where it is taken back": (
        "h = 2*tanh(x)\ny = h/2 + h**2",
        ["h_part = tanh(x)", "y = 4*h_part**2 + h_part"],
    ),
    "it stays where whatever reads it has it": (
        "h = tanh(x)/2\ny = x*h",
        ["h = tanh(x)/2", "y = h*x"],
    ),
    "a sign stays": ("h = -tanh(x)\ny = h + h**2", ["h = -tanh(x)", "y = h**2 + h"]),
    "what is compared with 0 has lost its number": (
        "h = tanh(x)/2\ny = Piecewise((h, h > 0), (0, True))",
        ["h = tanh(x)/2", "y = Piecewise((h, h > 0), (0, True))"],
    ),
    "an exponential is no value": ("h = exp(-x)\ns = 1 + h\ny = h/s", ["y = 1/(exp(x) + 1)"]),
    "with something beside it, it is one": (
        "h = x + exp(x)\ny = h**2",
        ["h = x + exp(x)", "y = h**2"],
    ),
    "nor in a choice": (
        "h = Piecewise((exp(x), x > 0), (0, True))\ny = h**2",
        ["h = Piecewise((exp(x), x > 0), (0, True))", "y = h**2"],
    ),
    "a product that is only summed belongs to the sum": (
        "h = x**3\ny = Sum(h, C)",
        ["y = Sum(x**3, C)"],
    ),
    "unless something else reads it": (
        "h = x**3\ny = Sum(h, C)*h",
        ["h = x**3", "y = h*Sum(h, C)"],
    ),
    "a function of it is computed where it stands": (
        "h = tanh(x)\ny = Sum(h, C)",
        ["h = tanh(x)", "y = Sum(h, C)"],
    ),
    "what is broadcast has its axes": (
        "h = Broadcast(2*w, N)\ny = h*x",
        ["h = 2*w", "y = h*x"],
    ),
}


@pytest.mark.parametrize("what", LINES)
def test_where_lines_are_divided_decides_nothing(what, tmp_path):
    lines, left = LINES[what]
    text = "".join(f"    {line}\n" for line in lines.split("\n"))
    file = tmp_path / "own.py"
    inputs = "    x = Input(N, C)\n    w = Input(C)\n"
    file.write_text(f"{HEAD}\n\nclass Own(Forward):\n{inputs}{text}")
    assert [str(s) for s in spelled(forward_from(file).definition).definition.statements] == left


SUMMED = {
    "h = x**3\n    y = Sum(h, C)": ["h = x**3", "y = Sum(h, C)"],
    "h = x*k\n    y = Sum(h, C)": ["y = Sum(k*x, C)"],  # a matrix product is none of its products
}


@pytest.mark.parametrize("lines", SUMMED)
def test_what_is_summed_keeps_its_name_in_the_forward(lines, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        f"{HEAD}\n\nclass Own(Forward):\n    x = Input(N, C)\n    k = Given(C, H)\n    {lines}\n"
    )
    form = close(derive_chain(forward_from(file).definition))
    assert [f"{line.tensor} = {line.expression}" for line in forward_plan(form)] == SUMMED[lines]


# The lines of a forward as they are usually written, and in other ways.
FORWARDS = {
    "y = 1/(1 + exp(-x))": ["y = exp(x)/(1 + exp(x))", "y = 1/(1 + 1/exp(x))"],
    "y = tanh(x)": [
        "y = (exp(x) - exp(-x))/(exp(x) + exp(-x))",
        "y = (1 - exp(-2*x))/(1 + exp(-2*x))",
    ],
    "y = x/(1 + exp(-x))": ["y = x*exp(x)/(1 + exp(x))"],
    "y = x*tanh(log(1 + exp(x)))": ["y = x*((1 + exp(x))**2 - 1)/((1 + exp(x))**2 + 1)"],
    "y = -log(1 + exp(w - x))": ["y = log(exp(x)/(exp(x) + exp(w)))"],
    "y = exp(x*log(2))/Sum(exp(x*log(2)), C)": ["y = 2**x/Sum(2**x, C)"],
    "y = log(1 + exp(x*log(2)))/log(2)": ["y = log(1 + 2**x)/log(2)"],
    "s = 1/(1 + exp(-x))\n    y = x*s": [
        "h = 2*x\n    e = exp(-h/2)\n    s = 1/(1 + e)\n    y = s*h/2"
    ],
    "y = x - log(Sum(exp(x), C))": ["m = -log(Sum(exp(x), C))\n    y = x + m"],
}


@pytest.mark.parametrize("usual", FORWARDS)
def test_a_forward_costs_the_same_however_it_is_written(usual, tmp_path):
    results = []
    for number, line in enumerate([usual, *FORWARDS[usual]]):
        other = "    w = Input(N, C)\n" if "w" in line else ""
        file = tmp_path / f"own{number}.py"
        file.write_text(f"{HEAD}\n\nclass Own(Forward):\n    x = Input(N, C)\n{other}    {line}\n")
        forward = forward_from(file)
        module = module_from(generate(forward).text, tmp_path, f"own{number}")
        results.append((close(derive_chain(forward.definition)), module.own))
    form, own = results[0]
    for other, respelled in results[1:]:
        assert other.preference == form.preference and len(other.saved) == len(form.saved)
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
