"""Edge cases in a docstring are what was tried: what breaks at hard points is there, and a risk
that no such point shows is not.
"""

import pytest
import torch
from generating import forward_file, generated

from codegen.called.functions import function
from codegen.driver import lean
from codegen.targets.torch.hard_points import EQUAL
from derive import forward_from

# Statements of x (and labels, p): what is said, and what is not.
BROKEN = {
    "a number at the end of its domain": (
        "    p = Scalar(0.5, at_least=0, at_most=1)\n    y = x/(1 - p)\n",
        "y, dx may be infinite or NaN for p = 1",
    ),
    "a number without a domain": (
        "    p = Scalar(0.5)\n    y = x/(1 - p)\n",
        "y, dx may be infinite or NaN for p = 1",
    ),
    "every label ignored": (
        "    labels = Label(N, ignored=-100)\n    hot = OneHot(labels, C)\n"
        "    y = Sum(hot*x, N, C)/Sum(hot, N, C)\n",
        "y may be infinite or NaN where every entry of labels is ignored",
    ),
    "a mask that is 0": (
        "    mask = Given(N)\n    y = Sum(mask*x, N, C)/Sum(mask, N)\n",
        "y, dx may be infinite or NaN where all entries of mask are 0",
    ),
    "0/0": (
        "    y = x/sqrt(Sum(x**2, C))\n",
        "y, dx may be infinite or NaN where all entries of x are 0",
    ),
    "equal entries": (
        "    m = Sum(x, C)/C\n    y = (x - m)/sqrt(Sum((x - m)**2, C))\n",
        "y, dx may be infinite or NaN where all entries of x are equal",
    ),
    "a number that is refused": (
        "    s = Scalar(3.0)\n    y = x/s + x/(s - 2)\n",
        "ValueError for s = 0",
    ),
    "a divisor that is 0 at one place and nowhere negative": (
        "    y = sqrt((x - 3)**2 + (x - 3)**4)\n",
        "y may be 0 or underflow: then dx may be infinite or NaN",
    ),
    "a divisor that is 0 where two inputs meet": (
        "    w = Input(N, C)\n    y = sqrt((x - 2)**2 + (w + 5)**2)\n",
        "y may be 0 or underflow: then dx, dw may be infinite or NaN",
    ),
    "a domain that ends elsewhere": (
        "    y = exp(log(5 - x))\n",
        "y as written is NaN where x is large, and a number here",
    ),
    "a domain far from 0": (
        "    w = Input(N, C)\n    y = exp(log(x - 5) + log(w))\n",
        "y as written is NaN where x is negative or x is 0 or w is negative, and a number here",
    ),
    "a divisor that is cancelled": (
        "    y = x**2/x\n",
        "y as written is NaN where x is 0, and a number here",
    ),
    "a domain that is widened in its line": (
        "    y = exp(log(x))\n",
        "y as written is NaN where x is negative, and a number here",
    ),
    "a domain that is widened between lines": (
        "    u = log(x)\n    y = exp(u) + x\n",
        "y as written is NaN where x is negative, and a number here",
    ),
}
WHOLE = {
    "an end that is not in the domain": "    p = Scalar(0.5, below=1)\n    y = x/(1 - p)\n",
    "a domain that is kept": "    y = log(1 + Abs(x))\n",
    "a power that cancels in every domain": "    y = log(exp(x))\n",
    "a mean over at least one": (
        "    labels = Label(N, ignored=-100)\n    hot = OneHot(labels, C)\n"
        "    y = Sum(hot*x, N, C)/(1 + Sum(hot, N, C))\n"
    ),
    "an exponential of what is never positive": "    y = exp(-x**2)\n",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", BROKEN)
def test_what_breaks_at_a_hard_point_is_named(case, tmp_path):
    body, said = BROKEN[case]
    file = forward_file(tmp_path, "Hard", f"    x = Input(N, C)\n{body}")
    _, module, result = generated(file, tmp_path)
    assert said in result.program.unsafe
    assert f"- {said}." in " ".join(module.__doc__.split())
    assert f"- {said}." in " ".join(function(forward_from(file)).source.split())


@pytest.mark.parametrize("case", WHOLE)
def test_what_does_not_break_is_not_named(case, tmp_path):
    file = forward_file(tmp_path, "Hard", f"    x = Input(N, C)\n{WHOLE[case]}")
    assert not generated(file, tmp_path)[2].program.unsafe
    assert "may be" not in function(forward_from(file)).source


# Statements of x, and what is said where an axis has no entries.
EMPTY = {
    "y = Sum(x, N, C)/(N*C)": "y is NaN if N is 0 or if C is 0",
    "y = x - Sum(x, C)/C": "",  # it is empty itself
    "y = x/Sum(x, N, C)": "",
    "losses = x**2\n    loss = Reduced(losses, mean=N)": "loss is NaN if N is 0",
    "p = Scalar(0.5)\n    y = Sum(x, C) + p/C": "",  # it is refused in words
}


@pytest.mark.parametrize("statements", EMPTY)
def test_what_is_nan_where_an_axis_is_empty_is_named(statements, tmp_path):
    file = forward_file(tmp_path, "Empty", f"    x = Input(N, C)\n    {statements}\n")
    file.write_text(f"from derive import Reduced\n{file.read_text()}")
    said = " ".join(function(forward_from(file)).source.split())
    assert f"- {EMPTY[statements]}." in said if EMPTY[statements] else " is 0." not in said


def test_a_risk_that_no_point_shows_is_left_out(tmp_path):
    """The logarithm of a softmax is never positive, which no interval says of the picked one."""
    body = "    x = Input(N, C)\n    labels = Label(N)\n    logp = x - log(Sum(exp(x), C))\n"
    body += "    c = Sum(OneHot(labels, C)*logp, C)\n    y = c - log(1 - exp(c))\n"
    _, _, result = generated(forward_file(tmp_path, "Odds", body), tmp_path)
    assert result.program.risks and "exp(c) may overflow" in " ".join(
        map(str, result.program.risks)
    )
    assert "exp(c)" not in " ".join(line for line in result.program.unsafe if "overflow" in line)


def test_a_module_that_breaks_where_the_mathematics_does_not_is_seen(tmp_path):
    file = forward_file(tmp_path, "Tame", "    x = Input(N, C)\n    y = x/(1 + Abs(x))\n")
    _, _, result = generated(file, tmp_path)
    assert not result.program.unsafe
    line = next(s for s in result.text.splitlines() if s.startswith("    y = x / "))
    broken = result.text.replace(line, f"{line}\n    y = y + 0 / (x - {EQUAL})", 1)
    said = lean.Runs().extremes(broken, result.proved.definition, result.program)
    assert "float32: y, dx may be infinite or NaN where all entries of x are equal" in " ".join(
        said
    )
    assert torch.get_default_dtype() == torch.float32


EQUALS = {
    "y = Max(Abs(x), C)": "Abs(x)",
    "m = Max(x**2, C)\n    y = sqrt(1 + m)": "x**2",
    "y = log(Sum(exp(x - Max(x, C)), C)) + Max(x, C)": "",
}


@pytest.mark.parametrize("statements", EQUALS)
def test_who_has_the_gradient_of_equal_entries_is_said_where_it_matters(statements, tmp_path):
    file = forward_file(tmp_path, "Largest", f"    x = Input(N, C)\n    {statements}\n")
    largest, module, _ = generated(file, tmp_path)
    said = f"The first of equal largest entries of {EQUALS[statements]} has the gradient"
    known = " ".join(module.__doc__.split())
    assert (said in known) if EQUALS[statements] else ("equal largest" not in known)
    x = torch.tensor([[1.0, 1.001, -1.001]]).bfloat16().requires_grad_()
    (dx,) = torch.autograd.grad(largest(x).sum(), x)
    assert (dx.count_nonzero() == 1) == bool(EQUALS[statements])
