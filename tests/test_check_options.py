"""The options of a Function: every value that its code compares them with is checked, by name."""

import sys

import pytest
import warm

from codegen.backwards.checking import check_function
from codegen.backwards.functions import function_of
from codegen.backwards.options import settings_of
from codegen.importing.asked import arguments_of, options_of
from derive.language.errors import QuestionError

HEAD = """
import enum
import torch
import torch.nn.functional as F
from torch.autograd import Function

MEANS = ("mean", "batchmean")
TABLE = {"mean": torch.mean, "sum": torch.sum}


class Mode(enum.Enum):
    FAST = 1
    SLOW = "slow"


def reduced(l, how):
    match how:
        case "mean":
            return l.mean()
        case "sum" | "total":
            return l.sum()
        case _:
            raise ValueError(how)


class G(Function):
    @staticmethod
    def forward(ctx, x, OPTIONS):
        ctx.save_for_backward(x)
        KEPT
        FORWARD

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        BACKWARD
"""


def written(folder, options, forward, backward="return g, None", kept="pass"):
    text = HEAD.replace("OPTIONS", options).replace("FORWARD", forward).replace("KEPT", kept)
    (folder / "ops.py").write_text(text.replace("BACKWARD", backward))
    return f"{folder}/ops.py:G"


FOUND = {  # how an option is met, and the values that are found
    "equal": ("how='mean'", "return x if how == 'mean' else 2 * x", "how=mean any_other"),
    "the default is else": ("how='sum'", "return x if how == 'mean' else 2 * x", "sum mean"),
    "among": ("how='mean'", "assert how in ('mean', 'sum')", "mean sum any_other"),
    "among named": ("how='sum'", "return x if how in MEANS else 2 * x", "sum mean batchmean"),
    "lower case": ("how='sum'", "return x if how.lower() != 'mean' else x", "sum mean"),
    "another name": ("how='sum'", "to = str(how)\n        return x if to == 'mean' else x", "sum"),
    "a table": ("how='sum'", "return TABLE[how](x)", "sum mean any_other"),
    "a table here": ("how='sum'", "return {'sum': x, 'none': x}[how]", "sum none any_other"),
    "a helper": ("how='mean'", "return reduced(x, how=how)", "mean sum total any_other"),
    "torch's": ("how='sum'", "return F.mse_loss(x, x * 2, reduction=how)", "sum none mean"),
    "a bool": ("causal=False", "return x", "False True"),
    "an annotation": ("causal: bool", "return x", "False True"),
    "a truth": ("causal", "return x if not causal else 2 * x", "False True"),
    "whole numbers": ("p=2", "return x if p == 1 else x if p == 2 else x", "2 1 3"),
    "a bound": ("p=2", "return x if p > 1 else x * x", "2 1 0"),
    "an Enum": ("mode=Mode.FAST", "return x", "Mode.FAST Mode.SLOW"),
    "an Enum compared": ("mode", "return x if mode is Mode.SLOW else x", "Mode.FAST Mode.SLOW"),
    "None": ("how=None", "return x if how is None or how == 'sum' else 2", "None sum any_other"),
    "a negative number": ("dim=-1", "return x if dim == -1 else x", "-1 0"),
    "a number alone": ("eps=1e-6", "return x + eps", "1e-06"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_the_code_compares_with_is_found(tmp_path, name):
    options, forward, expected = FOUND[name]
    subject = function_of(written(tmp_path, options, forward))
    settings = settings_of(subject, arguments_of("x: N"), {})
    found = [str(v) for s in settings.each for v in s.options.values()]
    assert {*found} >= {*expected.removeprefix("how=").split()} and found[0] in expected
    assert len(found) <= len(expected.split()) + 2


@pytest.mark.parametrize("kept", ["ctx.how = how", "ctx.all = (1, how)", "pass"])
def test_what_only_the_backward_compares_with_is_found(tmp_path, kept):
    met = {"ctx.how = how": "ctx.how", "ctx.all = (1, how)": "how", "pass": "F_HOW"}[kept]
    lines = "_, how = ctx.all\n        " if met == "how" else ""
    backward = f"{lines}return (g if {met} == 'sum' else g), None"
    subject = function_of(written(tmp_path, "how='mean'", "return x", backward, kept))
    settings = settings_of(subject, arguments_of("x: N"), {})
    assert ("sum" in [s.options["how"] for s in settings.each]) == (kept != "pass")


REDUCED = "return x.sin().mean() if how == 'mean' else x.sin().sum()"
RIGHT = "return g * x.cos() / (x.numel() if ctx.how == 'mean' else 1), None"


def test_each_value_has_its_verdict(tmp_path):
    path = written(tmp_path, "how='mean'", REDUCED, RIGHT, "ctx.how = how")
    verdict = check_function(path, "x: N C")
    assert verdict.right
    assert str(verdict).splitlines()[0] == 'right: dx of G (how="mean"; any other how)'
    path = written(tmp_path, "how='mean'", REDUCED, "return g * x.cos() / x.numel(), None")
    verdict = check_function(path, "x: N C")
    assert verdict.wrong == ["dx"] and verdict.as_json()["outcome"] == "wrong"
    assert str(verdict).splitlines()[0] == 'G is wrong for any other how, right for how="mean"'
    verdict = check_function(path, "x: N C", options="how=mean")
    assert verdict.right and 'how="mean" only' in str(verdict).splitlines()[0]


def test_options_that_meet_are_checked_together(tmp_path):
    forward = "y = 2 * x if a else x\n        return 3 * y if b else y"
    backward = "return g * (2 if ctx.a else 3 if ctx.b else 1), None, None"
    path = written(tmp_path, "a=False, b=False", forward, backward, "ctx.a, ctx.b = a, b")
    wrong, right = str(check_function(path, "x: N")).splitlines()[0].split(", right for ")
    assert wrong == "G is wrong for a=True, b=True"
    assert right == "a=False, b=False; a=False, b=True; a=True, b=False"


def test_a_tensor_that_may_be_missing_is_left_out_too(tmp_path):
    backward = "return g, 2 * g.sum(0) if ctx.needs_input_grad[1] else None"
    path = written(tmp_path, "b=None", "return x + b if b is not None else x", backward)
    first = str(check_function(path, "x: N C, b: C")).splitlines()[0]
    assert first == "G is wrong for b given, right for b=None"


def test_what_one_option_decides_is_said_of_it_alone(tmp_path):
    forward = "y = x if b is None else x + b\n        return x + y if a else y"
    backward = "return g, g.sum(0) if ctx.needs_input_grad[1] else None, None"
    path = written(tmp_path, "b=None, a=False", forward, backward)
    text = str(check_function(path, "x: N C, b: C"))
    first, second, *_ = text.splitlines()
    assert (first, second) == ("G is wrong for a=True, right for a=False", "for b given, a=True:")
    assert text.count("every right gradient is proved") == text.count("proved") == 1


def test_a_value_that_cannot_be_told_is_asked_for(tmp_path):
    path = written(tmp_path, "scale", "return x * scale", "return g * 0.5, None")
    with pytest.raises(QuestionError, match='--with "scale='):
        check_function(path, "x: N")
    assert check_function(path, "x: N", options={"scale": 0.5}).right
    command = [
        sys.executable,
        "-m",
        "gradform",
        "check",
        path,
        "--axes",
        "x: N",
        "--with",
        "scale=2",
    ]
    found = warm.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.splitlines()[0]) == (
        1,
        "G is wrong, checked with scale=2 only",
    )


def test_options_are_typed_as_python_has_them():
    assert options_of("a=0.5, b=mean, c='x y', d=None, e=-1, f=float('inf')") == {
        "a": 0.5, "b": "mean", "c": "x y", "d": None, "e": -1, "f": float("inf"),
    }  # fmt: skip
    for wrong in ("a", "a=b()", "a=1; b=2", "=3"):
        with pytest.raises(QuestionError, match="--with"):
            options_of(wrong)


IDLE = "return x * w if how == 'mean' else x * 2"
IDLE_BACKWARD = "return g * w if ctx.how == 'mean' else 2 * g, {}, None"


@pytest.mark.parametrize("axes", ["x: N, w: N", "x:, w:", "x: N, w:"])
@pytest.mark.parametrize(("other", "outcome"), [("0 * w", "right"), ("w", "wrong"), ("g", "wrong")])
def test_an_argument_may_be_without_influence_for_one_value(tmp_path, axes, other, outcome):
    own = "(x * g).sum()" if axes == "x: N, w:" else "x * g"
    gradient = f"({own} if ctx.how == 'mean' else {other})"
    path = written(
        tmp_path, "w, how='mean'", IDLE, IDLE_BACKWARD.format(gradient), "ctx.how, ctx.w = how, w"
    )
    text = (tmp_path / "ops.py").read_text()
    (tmp_path / "ops.py").write_text(text.replace("(x,) = ctx.", "w = ctx.w; (x,) = ctx."))
    verdict = check_function(path, axes)
    assert verdict.outcome == outcome, str(verdict)
    assert outcome == "right" or verdict.wrong == ["dw"]


ROOT, ROOTS = "return torch.sqrt(x * x + eps)", "return g * x * torch.rsqrt(x * x + {}), None"
HUBER = "return torch.where(x.abs() <= d, 0.5 * x * x, d * (x.abs() - 0.5 * d))"


@pytest.mark.parametrize(
    ("option", "forward", "backward", "first"),
    [
        ("eps=0.5", ROOT, ROOTS.format("ctx.eps"), "right: dx of G (for every eps)"),
        ("eps=0.5", ROOT, ROOTS.format(0.5), "G is wrong for eps=0.25, right for eps=0.5"),
        ("p=3.0", "return x**p", "return g * ctx.p * x ** (ctx.p - 1), None",
         "right: dx of G (for every p)"),
        ("p=3.0", "return x**p", "return g * 3 * x**2, None",
         "G is wrong for p=1.5, right for p=3.0"),
        ("n=2.0", "return x * int(n)", "return g * int(ctx.n), None",
         "right: dx of G (checked with n=2.0, n=1.0 only)"),
        ("n=2.5", "return x * x if float(n) * 2 > 99 else n * x", "return g * ctx.n, None",
         "right: dx of G (checked with n=2.5, n=1.25 only)"),
        ("d=1.0", HUBER, "return g * x.clamp(-ctx.d, ctx.d), None",
         "right: dx of G (for every d, where d > 0)"),
        ("t=0.5", "return x * x / t", "return g * x / ctx.t, None", "wrong: dx of G"),
        ("t=1.0", "return t * torch.logsumexp(x / t, -1)",
         "return g[..., None] * torch.softmax(x / ctx.t, -1), None",
         "right: dx of G (for every t)"),
    ],
)  # fmt: skip
def test_a_float_is_every_float_where_that_is_proved(tmp_path, option, forward, backward, first):
    """And another one where it is not: nothing is said of those that were not looked at."""
    name = option.partition("=")[0]
    path = written(tmp_path, option, forward, backward, kept=f"ctx.{name} = {name}")
    found = check_function(path, "x: N C")
    assert str(found).splitlines()[0] == first
    assert found.right == first.startswith("right")


@pytest.mark.parametrize(
    ("options", "forward", "backward", "first"),
    [
        ("a=2.0, b=3.0", "return a * torch.sin(b * x)",
         "return 6 * g * torch.cos(3 * x), None, None",
         "G is wrong for a=1.0, b=3.0; a=2.0, b=1.5, right for a=2.0, b=3.0"),
        ("a=2.0, how='one'", "return a * x if how == 'one' else a * x * x",
         "return (g * ctx.a if ctx.how == 'one' else 4 * g * x), None, None",
         'G is wrong for any other how, a=1.0, right for a=2.0'),
        ("a=2.0, how='one'", "return a * x if how == 'one' else a * x * x",
         "return (g * ctx.a if ctx.how == 'one' else 2 * ctx.a * g * x), None, None",
         'right: dx of G (how="one"; any other how; for every a)'),
    ],
)  # fmt: skip
def test_a_float_is_tried_beside_other_options(tmp_path, options, forward, backward, first):
    kept = "ctx.a = a" + ("; ctx.how = how" if "how" in options else "")
    found = check_function(written(tmp_path, options, forward, backward, kept=kept), "x: N C")
    assert str(found).splitlines()[0] == first
