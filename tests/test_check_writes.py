"""What a Function writes into, and what breaks by it, as torch runs it."""

import pytest

from codegen.backwards.checking import check_function
from codegen.backwards.functions import function_of
from codegen.backwards.writes import written_in
from codegen.importing.asked import arguments_of

HEAD = """import torch
import torch.nn.functional as F
from torch.autograd import Function


def doubled_(t):
    t.mul_(2)
    return t
"""
# A forward with its backward: which lines write, and what is said of them. {} is what is left.
FORWARD = "the forward of Case writes into its argument x"
CALLER = "the caller's x changes"
UP = "writes into the upstream gradient dy"
AGAIN = "a second backward (retain_graph=True)"
WRONG = {  # axes, the lines of the forward, the lines of the backward, what is said
    "mul_ in forward": (
        "x: N",
        "x.mul_(2); ctx.save_for_backward(x); return x * x",
        "(x,) = ctx.saved_tensors; return 4 * dy * x",
        [FORWARD, CALLER, "mark_dirty(x) and return x"],
    ),
    "added to": ("x: N", "x += 1; return x * 2", "return dy * 2", [FORWARD]),
    "out": (
        "x: N",
        "torch.exp(x, out=x); ctx.save_for_backward(x); return x.clone()",
        "(x,) = ctx.saved_tensors; return dy * x",
        [FORWARD],
    ),
    "an index": ("x: N", "x[0] = 1; return x * 2", "return 2 * dy", [FORWARD]),
    "inplace": (
        "x: N",
        "y = F.relu(x, inplace=True); ctx.save_for_backward(y); return y * 3",
        "(y,) = ctx.saved_tensors; return dy * 3 * (y > 0)",
        [FORWARD],
    ),
    "a column": ("x: N C", "x[:, 0].zero_(); return x * 2", "return 2 * dy", [FORWARD]),
    "a view": ("x: N C", "x.view(-1).mul_(2); return x * 1", "return 2 * dy", [FORWARD]),
    "transposed": ("x: N C", "x.t().add_(1); return x * 1", "return dy", [FORWARD]),
    "a helper": (
        "x: N",
        "return doubled_(x) * 1",
        "return 2 * dy",
        [FORWARD, "line 7", "t.mul_(2)"],
    ),
    "data": ("x: N", "x.data.mul_(2); return x * 2", "return 4 * dy", [FORWARD]),
    "NumPy": ("x: N", "x.numpy()[:] = 0; return x * 2", "return 0 * dy", [FORWARD]),
    "its shape": ("x: N", "x.unsqueeze_(0); return x * 2", "return 2 * dy[0]", [FORWARD]),
    "returned": (
        "x: N",
        "x.mul_(2); return x",
        "return 2 * dy",
        [FORWARD, "call ctx.mark_dirty(x)"],
    ),
    "dirty, not returned": (
        "x: N",
        "x.mul_(2); ctx.mark_dirty(x); return x * 2",
        "return 4 * dy",
        ["torch raises where Case is called", "were not returned as output"],
    ),
    "copied into": (
        "x: N, w: N",
        "w.copy_(2 * x); return x * 2",
        "return 2 * dy, None",
        ["into its argument w", "w: given"],
    ),
    "labels": (
        "x: N C, t: N int",
        "t.clamp_(min=0); return x.gather(1, t[:, None])[:, 0]",
        "return dy[:, None].expand(-1, ctx.c), None",
        ["into its argument t"],
    ),
    "a saved tensor": (
        "x: N",
        "y = x.sigmoid(); ctx.save_for_backward(y); return y * 2",
        "(y,) = ctx.saved_tensors; g = 2 * dy * y; y.sub_(1); return -g * y",
        ["into y, which its forward keeps", f"{AGAIN} raises"],
    ),
    "an attribute": (
        "x: N",
        "ctx.p = x.exp(); return ctx.p + 1",
        "return ctx.p.mul_(dy)",
        ["into ctx.p", f"{AGAIN} gives another dx"],
    ),
    "in a tuple": (
        "x: N",
        "ctx.c = (x.exp(), 2); return ctx.c[0] + 1",
        "p, k = ctx.c; p *= dy; return p",
        ["into p", f"{AGAIN} gives another dx"],
    ),
    "a saved argument": (
        "x: N",
        "ctx.save_for_backward(x); return x * x",
        "(x,) = ctx.saved_tensors; x.mul_(2); return dy * x",
        ["into its argument x", CALLER, AGAIN],
    ),
    "a saved output": (
        "x: N",
        "y = x.exp(); ctx.save_for_backward(y); return y",
        "(y,) = ctx.saved_tensors; return y.mul_(dy)",
        ["into its output y", AGAIN],
    ),
    "what arrives": (
        "x: N",
        "y = x.exp(); ctx.save_for_backward(y); return y",
        "(y,) = ctx.saved_tensors; return dy.mul_(y)",
        [UP, "the gradient of z becomes wrong", "y.sum().backward() raises"],
    ),
    "an index of what arrives": (
        "x: N",
        "ctx.save_for_backward(x); return x.relu()",
        "(x,) = ctx.saved_tensors; dx = dy; dx[x <= 0] = 0; return dx",
        [UP],
    ),
    "what arrives, in a helper": ("x: N", "return x * 2", "return doubled_(dy)", [UP, "line 7"]),
    "a view of what arrives": (
        "x: N C",
        "return x * 2",
        "return dy.reshape(-1).mul_(2).view_as(dy)",
        [UP],
    ),
    "returned and written again": (
        "x: N",
        "ctx.b = torch.zeros_like(x); return x * 2",
        "return torch.mul(dy, 2, out=ctx.b)",
        [f"{AGAIN} changes the dx"],
    ),
    "a counter": (
        "x: N",
        "ctx.k = 2; return x * 2",
        "k, ctx.k = ctx.k, 3; return dy * k",
        [f"{AGAIN} gives another dx"],
    ),
}
RIGHT = {
    "its own": (
        "x: N",
        "y = torch.empty_like(x); y.copy_(x); y.mul_(2); return y",
        "dx = dy.clone(); dx.mul_(2); return dx",
    ),
    "a sum of its own": (
        "x: N",
        "y = x.clone(); y += x; ctx.save_for_backward(y); return y * 1",
        "dx = torch.zeros_like(dy); dx += dy; dx *= 2; return dx",
    ),
    "dirty": (
        "x: N",
        "x.exp_(); ctx.mark_dirty(x); ctx.save_for_backward(x); return x",
        "(x,) = ctx.saved_tensors; return dy * x",
    ),
    "saved, then written": (
        "x: N",
        "y = x * 1; ctx.save_for_backward(y); y.exp_(); return 2 * y",
        "(y,) = ctx.saved_tensors; return 2 * dy * y",
    ),
    "an argument returned": ("x: N", "return x", "return dy"),
    "a view of an argument": ("x: N C", "return x.view(-1)", "return dy.reshape(-1, ctx.c)"),
    "a buffer written whole": (
        "x: N",
        "ctx.b = torch.zeros_like(x); return x * 2",
        "ctx.b.copy_(dy); return ctx.b * 2",
    ),
    "a copy of what arrives": (
        "x: N C",
        "return x.t() * 2",
        "d = dy.t().contiguous(); return d.mul_(2)",
    ),
    "a sum of what arrives": ("x: N", "return x * 2", "s = dy + 0; s.mul_(2); return s"),
}


def written(folder, axes, forward, backward):
    names = ", ".join(part.split(":")[0].strip() for part in axes.split(","))
    path = folder / "cases.py"
    path.write_text(
        f"{HEAD}\n\nclass Case(Function):\n"
        f"    @staticmethod\n    def forward(ctx, {names}):\n"
        f"        ctx.c = x.shape[-1]; {forward}\n\n"
        f"    @staticmethod\n    def backward(ctx, dy):\n        {backward}\n"
    )
    return f"{path}:Case"


def found_in(folder, axes, forward, backward):
    asked = function_of(written(folder, axes, forward, backward))
    return written_in(asked, arguments_of(axes), {})


@pytest.mark.parametrize("name", WRONG)
def test_a_write_into_what_is_not_its_own_is_said(tmp_path, name):
    axes, forward, backward, words = WRONG[name]
    found = found_in(tmp_path, axes, forward, backward)
    said = "\n".join(str(one) for one in found if one.wrong)
    assert all(word in said for word in words), said


@pytest.mark.parametrize("name", RIGHT)
def test_a_write_into_its_own_is_right(tmp_path, name):
    assert found_in(tmp_path, *RIGHT[name]) == ()


@pytest.mark.parametrize("name", ["a saved tensor", "what arrives", "mul_ in forward", "NumPy"])
def test_it_is_the_verdict_and_the_first_backward_is_judged_beside_it(tmp_path, name):
    axes, forward, backward, words = WRONG[name]
    verdict = check_function(written(tmp_path, axes, forward, backward), axes)
    said = str(verdict)
    assert verdict.outcome == verdict.as_json()["outcome"] == "wrong"
    assert all(word in said for word in words), said
    assert ("right: dx of Case" in said) != ("were not checked" in said)


def test_running_statistics_are_written_and_no_gradient_depends_on_it(tmp_path):
    axes = "x: N, m: N given"
    lines = "m.mul_(0.9).add_(x); return x * 2", "return 2 * dy, None"
    (found,) = found_in(tmp_path, axes, *lines)
    assert not found.wrong and "into its argument m" in str(found)
    verdict = check_function(written(tmp_path, axes, *lines), axes)
    assert verdict.outcome == "right" and "into its argument m" in str(verdict)
