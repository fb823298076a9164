"""Verdicts on Functions speak in the user's names: of what a reading invents, none is said."""

import json
import re

import pytest
from sampling import every

from codegen.backwards.checking import check_function

CLASS = """
import torch
import torch.nn.functional as F


class Made(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {arguments}):
        ctx.save_for_backward({arguments})
{forward}

    @staticmethod
    def backward(ctx, {upstreams}):
        {arguments}, = ctx.saved_tensors
{backward}
"""
# Names that only a reading has; the lines below use none of them.
INVENTED = (
    r"\bd?(loss|losses|z|y2|product|scores|counts)\b",
    r"\b(Kept|labels_kept|Size)\b",
    r"\b(Two|Three|Four|One|[PGM]\d?)\b",
    r"OneHot\(\d",
    r"\b(up|grad_)\d",
    r"backward_",
)
# Axes, arguments, forward, upstream gradients, backward, and what is said in their words.
WRONG = {
    "a loss": (
        "x: N C, t: N C", "x, t", "return ((x - t) ** 2).mean()", "arrives",
        "return 2 * (x - t) * arrives, None", ["arrives*(x - t)", "the term -2*arrives*(x - t)"],
    ),
    "without the upstream": (
        "x: N", "x", "return x.square().sum()", "arrives", "return 2 * x",
        ["the upstream gradient arrives is missing"],
    ),
    "ignored labels": (
        "x: N C, labels: N", "x, labels",
        "return F.cross_entropy(x, labels, ignore_index=-1)", "arrives",
        "h = F.one_hot(labels.clamp(min=0), x.shape[-1])\n"
        "return (x.softmax(-1) - h) * (labels != -1).unsqueeze(-1) * arrives, None",
        ["Sum(labels != -1, N)"],
    ),
    "two outputs": (
        "x: N", "x", "return x.sin(), x.cos()", "one, two",
        "return one * x.cos() + two * x.sin()", ["the sign of sin(x)*two is wrong", "two  "],
    ),
    "two outputs, one name": (
        "x: N", "x", "return x.sin(), x.cos()", "*all",
        "return all[0] * x.cos()", ["-all[1]*sin(x)", "all[0]"],
    ),
    "halves": (
        "x: N C", "x", "a, b = x.chunk(2, -1)\nreturn a * b", "arrives",
        "a, b = x.chunk(2, -1)\nreturn torch.cat([arrives * b, arrives], -1)",
        ["cat(", "C  "],
    ),
    "stacked": (
        "x: N, v: N", "x, v", "return torch.stack([x * v, x + v])", "arrives",
        "return arrives[0] * v + arrives[1], arrives[0] * x",
        ["the term arrives[1] is missing", "v + x is treated as constant"],
    ),
    "pooled": (
        "x: N C", "x", "n, c = x.shape\nreturn x.view(n, c // 2, 2).mean(-1)", "arrives",
        "return arrives.repeat_interleave(2, -1)", ["Flatten(arrives, C/2, 2, into=C)"],
    ),
    "scores that take no part": (
        "x: N C, mask: N C",
        "x, mask",
        'return x.masked_fill(~mask, float("-inf")).softmax(-1)',
        "g",
        'y = x.masked_fill(~mask, float("-inf")).softmax(-1)\n'
        "return y * (g - g.mean(-1, keepdim=True)), None",
        ["line 16", "g  "],
    ),
    "nobody named it": (
        "x: N I, w: O I", "x, w", "return torch.relu(x @ w.t())", "arrives",
        "return arrives @ w, arrives.t() @ x", ["Sum(w*x, I) <= 0"],
    ),
    "a second axis": (
        "x: N", "x", "return (x.unsqueeze(0) * x.unsqueeze(1)).exp()", "arrives",
        "y = (x.unsqueeze(0) * x.unsqueeze(1)).exp()\nreturn (arrives * y * x).sum(1)", ["N'"],
    ),
    "an output of another name": (
        "x: N C", "x", "y = x.exp()\nreturn y.reshape(-1)", "g",
        "return g.view(x.shape)", ["the factor y is missing", "into=(N, C)", "g  "],
    ),
    "as it arrives": ("x: N", "x", "return 2 * x", "g", "return g", ["line 15: return g"]),
    "called as something else": (
        "x: N, g: N", "x, g", "return x * g", "g", "d = 2 * g\nx, g = ctx.saved_tensors\n"
        "return d * g, d * x / 2", ["upstream*g"],
    ),
}  # fmt: skip


def _made(tmp_path, arguments, forward, upstreams, backward):
    def lines(text):
        return "\n".join(f"        {line}" for line in text.split("\n"))

    file = tmp_path / "made.py"
    file.write_text(
        CLASS.format(
            arguments=arguments,
            forward=lines(forward),
            upstreams=upstreams,
            backward=lines(backward),
        )
    )
    return f"{file}:Made"


@pytest.mark.parametrize("name", every(2, WRONG))
def test_a_verdict_speaks_in_the_users_names(name, tmp_path):
    axes, *parts, said = WRONG[name]
    verdict = check_function(_made(tmp_path, *parts), axes)
    assert verdict.outcome == "wrong"
    for text in (str(verdict), json.dumps(verdict.as_json())):
        found = [m[0] for pattern in INVENTED for m in re.finditer(pattern, text)]
        assert not found, text
    missing = [words for words in said if words not in str(verdict)]
    assert not missing, str(verdict)
