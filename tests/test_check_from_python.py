"""``gradform.check`` called from Python: of a formula and of an autograd Function, what the verdict
shows at a prompt and in a notebook, and what is said of mistakes.
"""

import html
import inspect

import pytest
import torch

import gradform
from codegen.backwards.checking import check_function
from gradform import Axis, Forward, Input, QuestionError

N, C = Axis("N"), Axis("C")
AXES = "x: N C, gain: C"


class Square(torch.autograd.Function):
    """Its dx lacks a factor."""

    @staticmethod
    def forward(ctx, x, gain):
        ctx.save_for_backward(x, gain)
        return x**2 * gain

    @staticmethod
    def backward(ctx, dy):
        x, gain = ctx.saved_tensors
        return dy * x * gain, (dy * x**2).sum(0)  # <2 & x>


class Power(torch.autograd.Function):
    """It is right for one of its modes."""

    @staticmethod
    def forward(ctx, x, scale: float = 2.0, mode: str = "plain"):
        ctx.save_for_backward(x)
        ctx.scale, ctx.mode = scale, mode
        return scale * (x if mode == "plain" else x**2)

    @staticmethod
    def backward(ctx, dy):
        return ctx.scale * dy, None, None


def power(x, scale=2.0, mode="plain"):
    return scale * x


class Scaled(Forward):
    x = Input(N, C)
    gain = Input(C)
    y = gain * x**2


LINE = inspect.getsourcelines(Square.backward)[1] + 3
BRIEF = f"""\
wrong: dx of Square
    line {LINE}: return dy * x * gain, (dy * x**2).sum(0)  # <2 & x>
    multiply the whole formula by 2
right: dgain of Square"""


@pytest.fixture(scope="module")
def square():
    return gradform.check(Square, AXES)


def test_the_verdict_is_brief_at_a_prompt(square):
    assert (square.right, square.outcome, square.wrong) == (False, "wrong", ["dx"])
    assert repr(square) == BRIEF


def test_as_a_text_it_is_all_that_the_command_prints(square):
    assert str(square) == str(check_function(Square, AXES))
    assert "the smallest counterexample" in str(square)


def test_a_notebook_shows_both_escaped(square):
    shown = square._repr_html_()
    assert shown.startswith("<pre><b>wrong: dx of Square</b>\n")
    assert "<2 &" not in shown and html.escape(str(square)) in shown


def test_options_are_those_of_the_command():
    both = gradform.check(Power, "x: N")
    assert both.outcome == "wrong" and len(repr(both).splitlines()) < 6
    plain = gradform.check(Power, "x: N", options="mode=plain", sizes="N: 3", limit=60)
    assert plain.right and repr(plain).startswith("right: dx of Power (")
    assert gradform.check(Power.apply, "x: N", options={"mode": "plain"}, like=power).outcome == (
        "agrees"
    )


def test_a_formula_is_checked_as_before():
    verdict = gradform.check(Scaled, "dy*gain*x", of="x")
    assert not verdict.right
    assert repr(verdict) == (
        "wrong: dx of scaled\n    dy*gain*x\n    multiply the whole formula by 2"
    )
    assert "<b>wrong: dx of scaled</b>" in verdict._repr_html_()
    right = gradform.check(gradform.function(Scaled), "2*dy*gain*x", of="x")
    assert right.right and repr(right) == "right: dx of scaled"


MISTAKES = {
    (): 'no axes were given\n    write axes="x: N C',
    ("x: N C",): "Square needs gain, whose axes are missing\n    write axes=",
    ("x: N C, gian: C",): "Square has no argument gian\n    it takes x, gain",
    ("x N C",): "axes: 'x N C' is not NAME: AXES",
}


@pytest.mark.parametrize("given, words", MISTAKES.items(), ids=MISTAKES.values())
def test_a_mistake_is_said_in_the_words_of_python(given, words):
    with pytest.raises(QuestionError) as error:
        gradform.check(Square, *given)
    assert words in str(error.value) and "--" not in str(error.value)
