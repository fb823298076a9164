"""Where one edit makes a wrong backward right, that edit is said, once, at its line: right ones
with one thing broken, as a Function, in several lines and as one formula.
"""

import re

import pytest
from sympy import Integer, Piecewise, exp, log, pi

import derive.claims.checking.explaining.edits as edits
from codegen.backwards.checking import check_function
from derive import check
from derive.claims.checking.explaining.written import WrittenClaim
from derive.claims.checking.numbers.residues import Residues
from derive.claims.reading import TextLine
from derive.language.nodes import Position
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor

UNIT = """
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q):
        n = q.norm(dim=-1, keepdim=True)
        u = q / n
        ctx.save_for_backward(u, n)
        return u * u.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, dy):
        u, n = ctx.saved_tensors
        du = dy * u.sum(-1, keepdim=True) + (dy * u).sum(-1, keepdim=True)
        return (du - u * (u * du).sum(-1, keepdim=True)) / n
"""
MISH = """
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(torch.nn.functional.softplus(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        t = torch.tanh(torch.nn.functional.softplus(x))
        s = torch.sigmoid(x)
        slope = s * (1 - t * t)
        return g * (t + x * slope)
"""
RENDER = """
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, sigma, c, delta):
        alpha = 1 - torch.exp(-sigma * delta)
        T = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1]], -1), -1)
        w = T * alpha
        ctx.save_for_backward(alpha, T, w, c, delta)
        return (w[..., None] * c).sum(1)

    @staticmethod
    def backward(ctx, g):
        alpha, T, w, c, delta = ctx.saved_tensors
        gc = (g[:, None, :] * c).sum(-1)
        wg = w * gc
        after = wg.sum(-1, keepdim=True) - torch.cumsum(wg, -1)
        dalpha = T * gc - after / (1 - alpha)
        return dalpha * delta * (1 - alpha), w[..., None] * g[:, None, :], None
"""
HUBER = """
class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, d):
        ctx.save_for_backward(x, d)
        return torch.where(x.abs() <= d, 0.5 * x**2, d * (x.abs() - 0.5 * d))

    @staticmethod
    def backward(ctx, g):
        x, d = ctx.saved_tensors
        return g * torch.where(x.abs() <= d, x, d * torch.sign(x)), None
"""
UNIT_AXES, RENDER_AXES = "q: N D", "sigma: R S, c: R S K, delta: R S given"
# Axes, text, what is broken in it and how, the line to blame, and what is said.
BROKEN = {
    "a projection": (
        *(UNIT_AXES, UNIT, "(du - u * (u * du).sum(-1, keepdim=True)) / n", "du / n"),
        *("du / n", "the projection is missing: g must be g - u*Sum(g*u, D), where g = du/n"),
    ),
    "a value in a sum": (
        *(UNIT_AXES, UNIT, "(dy * u).sum", "dy.sum", "du = ", "the factor u is missing"),
    ),
    "a factor": ("x: N", MISH, "x * slope", "slope", "return", "the factor x is missing"),
    "a factor that no line names": (
        *("x: N", MISH, "s * (1 - t * t)", "1 - t * t", "return"),
        "the factor 1/(exp(-x) + 1) is missing",
    ),
    "a square": ("x: N", MISH, "t * t", "t", "slope = ", "1 - t must be 1 - t**2"),
    "a divisor": (
        *(RENDER_AXES, RENDER, "after / (1 - alpha)", "after", "dalpha = "),
        "the divisor 1 - alpha is missing: T*gc - after must be T*gc - after/(1 - alpha)",
    ),
    "an outer factor": (
        *(RENDER_AXES, RENDER, "dalpha * delta * ", "dalpha * ", "return"),
        "the factor delta is missing",
    ),
    "one branch": (
        *("x: N, d: given", HUBER, "d * torch.sign", "torch.sign", "return"),
        "the factor d is missing: sign(x) must be d*sign(x)",
    ),
}


def broken(folder, text: str, right: str, wrong: str):
    assert text.count(right) == 1
    file = folder / "mine.py"
    file.write_text("import torch\n" + text.replace(right, wrong))
    return file


@pytest.mark.parametrize("name", BROKEN)
def test_one_edit_is_said_once_at_its_line(name, tmp_path):
    axes, text, right, wrong, blamed, words = BROKEN[name]
    file = broken(tmp_path, text, right, wrong)
    verdict = check_function(f"{file}:Mine", axes)
    assert verdict.outcome == "wrong"
    said = str(verdict)
    assert words in said and not re.search(r"the term|coefficient|more term", said)
    edit = next(a.refutation.edit for v in verdict.verdicts for a in v.answers if a.refutation)
    lines = file.read_text().splitlines()
    body = next(i for i, line in enumerate(lines) if "backward" in line and "def" in line)
    assert blamed in lines[edit.line - 1] and edit.line > body


PASTED = {
    "a sum over the wrong axis": (
        *("softmax", "y*(dy - (dy*y).sum(0))", "Sum(dy*y, N) must be Sum(dy*y, C)"),
    ),
    "a factor under a sum": (
        *(
            "softmax",
            "y*(dy - dy.sum(-1, keepdim=True))",
            "the factor y is missing: dy must be dy*y",
        ),
    ),
    "a value under a sum": (
        "layer_norm",
        "g = dy*gain\nm = g.mean(-1, keepdim=True)\n"
        "dx = inv_std*(g - m - xhat*(dy*xhat).mean(-1, keepdim=True))",
        "the factor gain is missing",
    ),
}


@pytest.mark.parametrize("name", PASTED)
def test_of_a_text_too(name):
    forward, text, words = PASTED[name]
    said = str(check(forward, text))
    assert said.startswith("wrong") and words in said and "is missing\n(terms" not in said


def test_what_does_not_hold_is_not_said(monkeypatch, tmp_path):
    """A guess is tried at other points and sizes before it is said."""
    file = broken(tmp_path, UNIT, "du - u * (u * du).sum(-1, keepdim=True)", "du")
    monkeypatch.setattr(edits.Holding, "_holds", lambda self, edit: False)
    (verdict,) = check_function(f"{file}:Mine", UNIT_AXES).verdicts
    assert verdict.answers[0].refutation.edit is None


N = Axis("N")
X = Tensor("x", (N,))


def spots_of(e):
    written = WrittenClaim(e, (), TextLine("dx", 1, "dx", e))
    return written, {spot.node: spot for spot in written.spots}


def test_no_edit_is_looked_for_in_the_place_that_is_read():
    """As of ``x.flip(0)``: an index that is scaled is none."""
    for index in (N - 1 - Position(N), Position(N) + 2, 2 * Position(N)):
        _, spots = spots_of(3 * At.over(X, N, index))
        assert X in spots and Position(N) not in spots and index not in spots


def test_another_value_changes_no_condition():
    written, spots = spots_of(X * Piecewise((X, X > 2), (0, True)))
    found = written.with_other(spots[X], X * exp(X))
    assert found == X * exp(X) * Piecewise((X * exp(X), X > 2), (0, True))


def test_a_sum_of_one_number_keeps_what_it_is_made_of():
    """As ``x.logsumexp(0)`` and ``x.norm()`` at N = 1: they tie with x in a maximum."""
    numbers = Residues()
    x = numbers.number(pi)
    one = numbers.add([numbers.apply(exp, [x])])
    assert numbers.compare(numbers.apply(log, [one]), x) == 0
    zero = numbers.number(Integer(0))
    masked = numbers.add([zero, numbers.apply(exp, [x]), zero])
    assert numbers.compare(numbers.apply(log, [masked]), x) == 0
