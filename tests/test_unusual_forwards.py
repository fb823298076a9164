"""Forwards of unusual kind come out right, or are refused with a remedy: none ends in an error of
gradform's own.

What is generated was compared with autograd before: `generate` raises where it is off.
"""

import pytest
import torch
from forwards import HEAD
from generating import generated, stated

from codegen.driver.lean import generate
from derive import forward_from
from derive.language.errors import QuestionError
from derive.running import limits

MORE = """from sympy import And, Max as Larger, Min as Smaller, acosh, sign
from derive import Position, Rename
S, T = Axis("S"), Axis("T")
"""
X = "    x = Input(N, C)\n"
RATIO = (
    "    new = Input(N)\n    old = Input(N)\n    gain = Input(N)\n    eps = Scalar(0.2)\n"
    "    ratio = exp(new - old)\n"
)
SCORES = "    q = Input(S, C)\n    k = Input(T, C)\n    score = Sum(q*k, C)\n"
COX = "    risk = Input(N)\n    event = Given(N)\n    time = Given(N)\n"
WHERE = "Piecewise((exp(Rename(risk, N, T)), {}), (0, True))"

UNUSUAL = {
    "powers of a magnitude": X + "    y = Abs(x)**3 - Abs(x)**Rational(3, 2)\n",
    "a power of a magnitude beside another": X + "    y = exp(Abs(x)**3) - x*Abs(x)\n",
    "an unknown power of a magnitude": X + "    p = Scalar(1.5)\n    y = Abs(x)**p - Abs(x)**3\n",
    "a sign and a magnitude": X + "    y = sign(x)*Abs(x)**Rational(3, 2)\n",
    "sides that are multiples": X + "    y = Piecewise((0.8*x, 0.8*x > -0.2*x), (-0.2*x, True))\n",
    "sides that are multiples of a difference": "    x = Input(N)\n    t = Input(N)\n"
    "    y = Piecewise((0.8*(x - t), 0.8*(x - t) > -0.2*(x - t)), (0.2*(t - x), True))\n",
    "a choice of two slopes": X + "    y = Piecewise((x, Eq(Piecewise((1, x > 0), (0, True)), 0)),"
    " (2*x, True))\n",
    "a clipped ratio": RATIO + "    y = -Smaller(ratio*gain,"
    " Smaller(Larger(ratio, 1 - eps), 1 + eps)*gain)\n",
    "a clipped ratio in choices": RATIO + "    held = Piecewise((1 - eps, ratio < 1 - eps),"
    " (1 + eps, ratio > 1 + eps), (ratio, True))\n"
    "    y = Piecewise((ratio*gain, ratio*gain < held*gain), (held*gain, True))\n",
    "a mask that is compared": SCORES + "    y = Piecewise((score,"
    " Eq(Piecewise((1, Position(S) <= Position(T)), (0, True)), 0)), (0, True))\n",
    "the larger of two positions": SCORES
    + "    y = Piecewise((score, Larger(Position(S), Position(T)) <= Position(T)), (0, True))\n",
    "who is at risk, by position": COX.replace("    time = Given(N)\n", "")
    + f"    total = Sum({WHERE.format('Position(T) <= Position(N)')}, T)\n"
    "    y = -Sum(event*(risk - log(total)), N)\n",
    "who is at risk, of a product": "    x = Input(N, C)\n    w = Input(C)\n    event = Given(N)\n"
    "    risk = Sum(x*w, C)\n"
    f"    total = Sum({WHERE.format('Position(T) >= Position(N)')}, T)\n"
    "    y = -Sum(event*(risk - log(total)), N)\n",
    "who is at risk, by time": COX + "    total = Sum(Piecewise((1, Rename(time, N, T) >= time),"
    " (0, True))*exp(Rename(risk, N, T)), T)\n    y = -Sum(event*(risk - log(total)), N)\n",
    "a guarded root": X + "    y = Piecewise((x**Rational(3, 2), x >= 0),"
    " (-(-x)**Rational(3, 2), True))\n",
    "roots of both sides": X + "    y = Piecewise((x**Rational(1, 3), x > 0),"
    " (-(-x)**Rational(1, 3), x < 0), (0, True))\n",
    "a guarded root and logarithm": X + "    y = Piecewise((sqrt(x - 1), x > 1), (0, True))"
    " + Piecewise((log(-x), x < 0), (0, True))\n",
    "a guarded root by its name": X + "    root = sqrt(x)\n"
    "    y = Piecewise((root, x > 0), (0, True))\n",
    "a choice that another line decides": X + "    h = 2*x\n    g = h + 1\n"
    "    y = Smaller(g, h)*x\n",
    "the largest so far": "    x = Input(N)\n    m = Max(Piecewise((Rename(x, N, T),"
    " Position(T) <= Position(N)), (-oo, True)), T)\n    y = Sum(m*x, N)\n",
    "where acosh is defined": X + "    y = acosh(x) + log(x - 1)\n",
    "a logarithm of what is below 0": X + "    y = log(-x)\n",
    "rows of which nothing counts": "    s = Input(N, C)\n    mask = Given(N, C)\n"
    "    y = Piecewise((exp(s)/Sum(exp(s)*mask, C), Sum(mask, C) > 0), (0, True))\n",
}


def forward_file(folder, name, body):
    file = folder / f"{name.lower()}.py"
    file.write_text(f"{HEAD}{MORE}\nclass {name}(Forward):\n{body}", encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", UNUSUAL)
def test_an_unusual_forward_is_generated(kind, tmp_path):
    file = forward_file(tmp_path, "Unusual", UNUSUAL[kind])
    generate(forward_from(file))


BEYOND_FLOAT32 = (
    "x*1e39",
    "x + 1e39*x**2",
    "tanh(x*1e39)",
    "Larger(x, -1e39)",
    "Smaller(Larger(x, -1e39), 1e39)",
    "Piecewise((x, x > -1e39), (1e39, True))",
    "Piecewise((x, x > 0), (1e39*x, True))",
    "Piecewise((x, x > 0), (1e39*(exp(x) - 1), True))",
    "x + 1e-46*x**2",
)


@pytest.mark.parametrize("e", BEYOND_FLOAT32)
def test_a_number_that_float32_does_not_hold_is_infinite_there(e, tmp_path):
    file = forward_file(tmp_path, "Large", f"{X}    y = {e}\n")
    function, _, result = generated(file, tmp_path)
    x = torch.tensor([[0.5, -0.5, 2.0]], requires_grad=True)
    y = function(x)
    y.sum().backward()
    as_written = stated(result)(x.detach())["y"]  # torch's own lines, one after the other
    torch.testing.assert_close(y.detach(), as_written, equal_nan=True)


IMAGINARY = ("x*(-8)**Rational(1, 3)", "x + (-8)**Rational(1, 3)", "exp(x*(-1)**Rational(1, 3))")


NEGATIVE = ("(-2)**x", "log(-1 - x**2)", "(-x**2 - 1)**Rational(1, 3)", "(-exp(x))**(x/2)")


@pytest.mark.parametrize("e", (*IMAGINARY, *NEGATIVE, "x*sqrt(-2)", "x**2*(-3)**Rational(2, 3)"))
def test_a_root_of_a_negative_number_is_refused(e, tmp_path):
    with pytest.raises(QuestionError, match="of a negative number"):
        forward_from(forward_file(tmp_path, "Imaginary", f"{X}    y = {e}\n"))


GUARDED_SIZES = (
    "    y = Piecewise((Sum(x, N)/(N - 1), N > 1), (0, True))\n",
    "    y = Piecewise((Sum(x, N)/(N - 1), N >= 2), (Sum(x, N), True))\n",
    "    y = Piecewise((Sum(x, N)/(N - 1), Ne(N, 1)), (0, True))\n",
    "    y = Piecewise((0, Eq(N, 1)), (Sum(x, N)/(N - 1), True))\n",
    "    y = Piecewise((Piecewise((Sum(x, N)/(N - 1), C > 1), (1, True)), N > 1), (0, True))\n",
    "    y = Sum(x, N)/Larger(N - 1, 1)\n",
    "    share = Piecewise((1/(N - 1), N > 1), (0, True))\n    y = share*x\n",
    "    mean = Sum(x, N)/N\n"
    "    var = Piecewise((Sum((x - mean)**2, N)/(N - 1), N > 1), (0, True))\n"
    "    y = (x - mean)/sqrt(var + 1)\n",
)


@pytest.mark.parametrize("body", GUARDED_SIZES)
def test_a_size_that_a_choice_guards_is_not_refused(body, tmp_path):
    function, _, result = generated(forward_file(tmp_path, "Guarded", X + body), tmp_path)
    x = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert y.isfinite().all() and x.grad.isfinite().all()
    torch.testing.assert_close(y.detach(), stated(result)(x.detach())["y"])


@pytest.mark.parametrize("guard", ("N > 0", "C > 1", "x > 0"))
def test_a_size_that_nothing_guards_is_refused(guard, tmp_path):
    body = f"{X}    y = Piecewise((Sum(x, N)/(N - 1), {guard}), (x, True))\n"
    function, *_ = generated(forward_file(tmp_path, "Unguarded", body), tmp_path)
    with pytest.raises(ValueError, match="N - 1 is 0 where N = 1"):
        function(torch.randn(1, 3, dtype=torch.float64))


def test_what_has_no_limit_ends_all_the_same(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_ALONE", 0.05)
    with limits.limited(None), limits.Stage() as stage:
        while True:
            limits.look()
    assert stage.is_over


def test_a_limit_that_is_given_is_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_ALONE", 0.0)
    with limits.limited(60), limits.limited(None), limits.Stage() as stage:
        limits.look()
    assert not stage.is_over
