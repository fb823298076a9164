"""Single precision at its ends: the order in which terms are added up, and what is said of numbers
that are too large or too small on the way.
"""

import re

import pytest
import torch
from generating import forward_file, generated, stated

from codegen.called.functions import function
from codegen.commands.cli import gradform
from codegen.driver import lean
from codegen.driver.qualities import emitted
from codegen.report.page import report
from derive import forward_from

# Spellings of the same numbers, x, low, top (and w): what is exact in single precision.
ORDERS = {
    "x - low + 1": lambda x, low, top, w: x - low + 1,
    "1 + x - low": lambda x, low, top, w: x - low + 1,
    "1 - low + x": lambda x, low, top, w: x - low + 1,
    "(x - low)/(top - low + 1)": lambda x, low, top, w: (x - low) / (top - low + 1),
    "(1 + x - low)/(1 - low + top)": lambda x, low, top, w: (x - low + 1) / (top - low + 1),
    "x - Rational(1, 4) - low": lambda x, low, top, w: x - low - 0.25,
    "x + eps - low": lambda x, low, top, w: x - low + 1e-5,
    "x - low + 2*w": lambda x, low, top, w: x - low + 2 * w,
    "w*x - w*low + 1": lambda x, low, top, w: w * x - w * low + 1,
    "x - Sum(x, C)/C + w": lambda x, low, top, w: x - x.mean(1, keepdim=True) + w,
    "(w*(x - low + 1))": lambda x, low, top, w: w * (x - low + 1),
}


def numbers():
    """At 2e7, where whole numbers have gaps of 2; ``w`` is small."""
    low = 2e7 + torch.arange(12.0).reshape(3, 4) * 16
    return low + 4, low, low + 12, torch.full((3, 4), 0.5)


@pytest.mark.parametrize("spelling", ORDERS)
def test_a_difference_comes_before_what_is_rounded_off_beside_it(spelling, tmp_path):
    names = [n for n in ("x", "low", "top", "w") if re.search(rf"\b{n}\b", spelling)]
    body = "".join(f"    {name} = Input(N, C)\n" for name in names)
    body += "    eps = Scalar(1e-5)\n" * ("eps" in spelling)
    function, _, result = generated(
        forward_file(tmp_path, "Ordered", f"{body}    y = {spelling}\n"), tmp_path
    )
    given = dict(zip(("x", "low", "top", "w"), numbers(), strict=True))
    wanted = ORDERS[spelling](*(v.double() for v in given.values()))
    single = [given[name] for name in names]
    for found in (function(*single), stated(result)(*single)["y"]):
        torch.testing.assert_close(found.double(), wanted, rtol=2e-6, atol=2e-6)


MASKS = ("s - 1e9*(1 - m)", "s*m + (m - 1)*1e9", "s + (1 - m)*-10000.0", "s + m*1e30 - 1e30")


@pytest.mark.parametrize("spelling", MASKS)
def test_a_score_beside_an_additive_mask_keeps_its_digits(spelling, tmp_path):
    """SymPy multiplies the 1e9 out, and beside it nothing would be left of a score."""
    body = "    s = Input(N, C)\n    m = Given(N, C)\n" + f"    z = {spelling}\n"
    body += "    e = exp(z - Max(z, C))\n    y = e/Sum(e, C)\n"
    function, _, result = generated(forward_file(tmp_path, "Masked", body), tmp_path)
    s, m = torch.randn(3, 4), (torch.arange(12).reshape(3, 4) % 3 > 0).float()
    wanted = torch.where(m > 0, s, -torch.inf).softmax(1)
    for found in (function(s, m), stated(result)(s, m)["y"]):
        torch.testing.assert_close(found, wanted)


def test_what_keeps_a_difference_from_0_is_added_last(tmp_path):
    """1 + eps is 1 in single precision, and eps - x is -1."""
    body = "    x = Input(N)\n    eps = Scalar(1e-8)\n    y = log(1 - x + eps)\n"
    function, _, _ = generated(forward_file(tmp_path, "Guarded", body), tmp_path)
    x = torch.tensor([1.0, 0.5], requires_grad=True)
    y = function(x)
    y.sum().backward()
    torch.testing.assert_close(y.detach(), torch.tensor([1e-8, 0.5]).log())
    torch.testing.assert_close(x.grad, torch.tensor([-1e8, -2.0]))


def test_several_differences_are_each_by_itself(tmp_path):
    """Whichever two are taken for a difference: in a chain the first would be rounded off."""
    body = "".join(f"    {name} = Input(N)\n" for name in "abcd") + "    y = a - b + c - d\n"
    _, _, result = generated(forward_file(tmp_path, "Pairs", body), tmp_path)
    code = result.text.partition("def pairs_forward")[2]
    line = next(line for line in code.splitlines() if line.startswith("    y = "))
    assert re.fullmatch(r"    y = \w - \w \+ \(\w - \w\)", line)


# Statements of x and w: what is said of them, or nothing.
ENDS = {
    "y = x**2/(1 + x**2)": "y, dx may be infinite or NaN for x beyond 1e19",
    "s = x**2\n    y = s/(s + 1)": "y, dx may be infinite or NaN for x beyond 1e19",
    "y = x**4/(1 + x**4)": "y, dx may be infinite or NaN for x beyond 1e9",
    "y = x/sqrt(Sum(x**2, C) + 1e-5)": "y, dx may be inaccurate for x beyond 1e19",
    "y = sqrt(x**2 + Rational(1, 10**6))": "x beyond 1e19",
    "y = Sum(x*w, C)/sqrt(Sum(x**2, C)*Sum(w**2, C))": "x, w beyond 1e19 or x, w below 1e-19",
    "y = sqrt(Sum((x - Sum(x, C)/C)**2, C)/(C - 1))": "x beyond 1e19 or x below 1e-20",
    "y = log(Sum(x**2, C))": "x beyond 1e19 or x below 1e-19",
    "y = x*w/(x + w)": "x, w beyond 1e19",
    "y = x**3/(1 + x**4)": "y, dx may be infinite, NaN or inaccurate for x beyond 1e9",
    "y = 1/(1 + x**2)": "dx may be infinite or NaN for x beyond 1e38",
    "y = Sum((x - w)**2, N, C)": "",
    "y = exp(-Sum((x - w)**2, C))": "",
    "y = 1/(1 + Sum((x - w)**2, C))": "",
    "y = x/(1 + Abs(x))": "",
    "y = exp(x)/Sum(exp(x), C)": "",
    "y = (x - w)/(Max(x, C) - w + 1)": "",
    "y = 2*x + w": "",
    "y = log(1 + exp(-x))": "",
}


@pytest.mark.parametrize("statements", ENDS)
def test_where_single_precision_ends_is_named(statements, tmp_path):
    names = [n for n in ("x", "w") if re.search(rf"\b{n}\b", statements)]
    body = "".join(f"    {name} = Input(N, C)\n" for name in names) + f"    {statements}\n"
    _, _, result = generated(forward_file(tmp_path, "Ends", body), tmp_path)
    said = [line for line in result.program.unsafe if "float32" in line]
    assert len(said) == bool(ENDS[statements])
    assert all(line.startswith("float32: ") and ENDS[statements] in line for line in said)


TOGETHER = {
    "y = exp(Sum(x*w, C))/Sum(exp(Sum(x*w, C)), K)": "x, w beyond 1e19",
    "y = tanh(Sum(x*w, C))": "x, w beyond 1e19",
    "y = Sum(x*w, C)": "",
}


@pytest.mark.parametrize("statement", TOGETHER)
def test_logits_that_overflow_where_two_inputs_are_large_are_named(statement, tmp_path):
    body = f"    x = Input(N, C)\n    w = Input(K, C)\n    {statement}\n"
    _, _, result = generated(forward_file(tmp_path, "Logits", body), tmp_path)
    said = " ".join(result.program.unsafe)
    assert TOGETHER[statement] in said and bool(said) == bool(TOGETHER[statement])


# Statements of a, b and c, and the two that cancel first as it is typed, or none.
CANCELLING = {
    "y = (a - c) + b": "",
    "y = (b - c) + a": "b and c",
    "y = tanh(a + b - c)": "a and b",
    "s = (b - c + a)**2\n    y = Sum(s, C)": "b and c",
    "d = b - c\n    y = d + a": "",
    "y = a*b + c": "",
}


@pytest.mark.parametrize("statements", CANCELLING)
def test_digits_that_the_typed_order_keeps_and_ours_does_not_are_named(statements, tmp_path):
    body = "".join(f"    {name} = Input(N, C)\n" for name in "abc") + f"    {statements}\n"
    file = forward_file(tmp_path, "Ordered", body)
    _, module, result = generated(file, tmp_path)
    said = [line for line in result.program.unsafe if "loses digits" in line]
    assert len(said) == bool(CANCELLING[statements])
    assert all(f"where {CANCELLING[statements]} are large and cancel" in line for line in said)
    own = function(forward_from(file)).source
    for text in (module.__doc__, own):
        assert all(f"- {line}." in " ".join(text.split()) for line in said)


def test_it_is_named_in_table_docstring_and_report(tmp_path, capsys):
    file = forward_file(tmp_path, "Ratio", "    x = Input(N)\n    y = x**2/(1 + x**2)\n")
    words = "float32: y, dx may be infinite or NaN for x beyond 1e19"
    _, module, result = generated(file, tmp_path)
    assert f"- {words}." in " ".join(module.__doc__.split())
    assert f"- {words}." in " ".join(function(forward_from(file)).source.split())
    assert f"Not safe: {words}." in report([emitted(result)], None)
    assert gradform([str(file), "--out", str(tmp_path / "out")]) == 0
    assert words in " ".join(re.findall(r"│ [^│]*│ (.*?) +│", capsys.readouterr().out))


def test_the_half_of_what_can_be_written_down_is_taken_first(tmp_path):
    body = "    x = Input(N)\n    y = x*(1 + tanh(x))/2\n"
    function, _, _ = generated(forward_file(tmp_path, "Gated", body), tmp_path)
    x = torch.tensor([3e38, 1.0, -3e38])
    assert function(x).isfinite().all() and function(x)[0] == x[0]


def test_what_is_worse_than_the_statements_is_seen(tmp_path):
    """Where they are exact: around numbers that have gaps."""
    body = "    x = Input(N, C)\n    y = x - Max(x, C) + 1\n"
    _, _, result = generated(forward_file(tmp_path, "Spread", body), tmp_path)
    assert lean.Runs().extremes(result.text, result.proved.definition, result.program) == ()
    right = "y = x - x.amax(1, keepdim=True) + 1\n    return y.to"
    assert right in result.text
    broken = result.text.replace(right, right.replace("x - x", "x + 1 - x").replace(" + 1\n", "\n"))
    said = lean.Runs().extremes(broken, result.proved.definition, result.program)
    assert said == ("float32: y may be inaccurate for x around 2e7",)
