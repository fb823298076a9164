"""What a Function meets when torch calls it: a ctx with any attribute, tensors that are filled in
parts, not contiguous, or of one entry along an axis.
"""

import pytest

from codegen.backwards.checking import QuestionError, check_function

HEAD = "import torch\nfrom torch.autograd import Function\n"


def verdict_of(tmp_path, axes, forward, backward):
    """Of a Function whose lines are given, parted by semicolons."""
    arguments = ", ".join(one.split(":")[0].strip() for one in axes.split(","))
    parts = (("forward", f"ctx, {arguments}", forward), ("backward", "ctx, dy", backward))
    text = f"{HEAD}\n\nclass Case(Function):\n"
    for name, given, lines in parts:
        body = "".join(f"        {line.strip()}\n" for line in lines.split(";"))
        text += f"    @staticmethod\n    def {name}({given}):\n{body}\n"
    file = tmp_path / "ops.py"
    file.write_text(text)
    return check_function(f"{file}:Case", axes)


# A forward with its backward, and one that is wrong.
CONTEXTS = {
    "kept": ("ctx.kept = [x, w]; return x * w", "x, w = ctx.kept; return dy * w, dy * x"),
    "noted": ("ctx.noted = x; ctx.w = w; return x * w", "return dy * ctx.w, dy * ctx.noted"),
    "materializes": (
        "ctx.materializes = x; ctx.is_asked = w; return x * w",
        "return dy * ctx.is_asked, dy * ctx.materializes",
    ),
    "not_differentiable": (
        "ctx.not_differentiable, ctx._needs = {'x': x}, w; return x * w",
        "return dy * ctx._needs, dy * ctx.not_differentiable['x']",
    ),
    "saved": (
        "ctx.saved = x; ctx.save_for_backward(w); return x * w",
        "(w,) = ctx.saved_tensors; return dy * w, dy * ctx.saved",
    ),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_every_attribute_of_a_context_is_the_users(tmp_path, name):
    forward, backward = CONTEXTS[name]
    assert verdict_of(tmp_path, "x: N, w: N", forward, backward).outcome == "right"
    broken = backward.replace("dy * x", "dy").replace(", dy * ctx", ", -dy * ctx")
    assert verdict_of(tmp_path, "x: N, w: N", forward, broken).outcome == "wrong"


def test_what_is_kept_in_a_list_is_said_where_it_has_no_gradient_of_its_own(tmp_path):
    forward = "ctx.kept = [x, torch.sigmoid(x)]; return x * ctx.kept[1]"
    backward = "x, s = ctx.kept; return dy * (s + x * s * (1 - s))"
    verdict = verdict_of(tmp_path, "x: N", forward, backward)
    assert verdict.outcome == "right"
    assert "saved but is neither an input nor an output" in str(verdict)


# One entry, a row or a column is another: the lines of a forward and of its backward.
PARTS = {
    "an entry": (
        "x: N",
        "y = x * 2; y[0] = x[0] * 3; return y",
        "dx = 2 * dy; dx[0] = 3 * dy[0]; return dx",
    ),
    "the last": (
        "x: N",
        "y = x.clone(); y[-1] *= 3; return y",
        "dx = dy.clone(); dx[-1] *= 3; return dx",
    ),
    "a column that is added to": (
        "x: N C",
        "y = x * 2; y[:, 0] += x[:, 0]; return y",
        "dx = 2 * dy; dx[:, 0] += dy[:, 0]; return dx",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_written_is_read(tmp_path, name):
    axes, forward, backward = PARTS[name]
    assert verdict_of(tmp_path, axes, forward, backward).outcome in ("right", "agrees")
    whole = backward.split(";")[0] + "; return dx"
    assert verdict_of(tmp_path, axes, forward, whole).outcome == "wrong"


RAISES = "raises where dy is not contiguous, as y.sum(0) passes it"
SQUARED = "ctx.save_for_backward(x); return x * x"
PRODUCT = "ctx.save_for_backward(x, w); return x @ w"
# Axes, the lines of a forward and of a backward that is wrong for some tensors, what is said,
# and what mends it.
ARRIVING = {
    "a view of what arrives": (
        "x: N C", SQUARED, "(x,) = ctx.saved_tensors; return 2 * x * dy.view(-1).view(x.shape)",
        [RAISES, "reshape"], ("view(-1)", "reshape(-1)"),
    ),
    "one axis of several": (
        "x: B T D, w: D E", PRODUCT,
        "x, w = ctx.saved_tensors; g = dy.view(-1, dy.shape[-1]);"
        "return dy @ w.t(), x.reshape(-1, x.shape[-1]).t() @ g",
        [RAISES], ("dy.view", "dy.contiguous().view"),
    ),
    "a view of what is saved": (
        "x: N C", SQUARED,
        "(x,) = ctx.saved_tensors; return (2 * x.view(-1) * dy.reshape(-1)).view(x.shape)",
        ["raises where x is not contiguous", "x.contiguous()"], ("x.view", "x.reshape"),
    ),
    "squeezed": (
        "x: N C, w: C", PRODUCT,
        "x, w = ctx.saved_tensors; return dy[:, None] * w, (x.t() @ dy[:, None]).squeeze()",
        ["dw of Case where C = 1", "dw has shape ()"], ("squeeze()", "squeeze(1)"),
    ),
    "a branch": (
        "x: N C", "ctx.n = x.shape[0]; return x * 2", "return dy * (2 if ctx.n > 1 else 1)",
        ["dx of Case where N = 1"], ("else 1", "else 2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRIVING)
def test_how_tensors_arrive_is_tried(tmp_path, name):
    axes, forward, backward, words, (bad, good) = ARRIVING[name]
    verdict = verdict_of(tmp_path, axes, forward, backward)
    assert verdict.outcome == "wrong" and all(w in str(verdict) for w in words), str(verdict)
    mended = verdict_of(tmp_path, axes, forward, backward.replace(bad, good))
    assert mended.outcome == "right", str(mended)


def test_what_is_not_of_the_backward_is_no_mistake_of_it(tmp_path):
    backward = "(y,) = ctx.saved_tensors; return dy * y"
    forward = "y = x.view(-1).exp().view(x.shape); ctx.save_for_backward(y); return y"
    verdict = verdict_of(tmp_path, "x: N C", forward, backward)
    assert verdict.outcome == "right"
    assert "the forward of Case raises where x is not contiguous" in str(verdict)
    forward = "ctx.s = x.shape; return x.sum(1, keepdim=True).squeeze()"
    verdict = verdict_of(tmp_path, "x: N C", forward, "return dy.reshape(-1, 1).expand(ctx.s)")
    assert verdict.outcome == "right" and "was not checked where N = 1" in str(verdict)


# The lines of a forward that fills what is empty, and those of its backward.
FILLED = {
    "copied into": (
        "y = torch.empty_like(x); y.copy_(x * x); ctx.save_for_backward(x); return y",
        "(x,) = ctx.saved_tensors; dx = torch.empty_like(x); torch.mul(x, dy, out=dx);"
        "return dx.mul_(2)",
    ),
    "all of its entries": (
        "y = x.new_empty(x.shape); y[...] = x.tanh(); ctx.save_for_backward(y); return y",
        "(y,) = ctx.saved_tensors; dx = torch.empty(dy.shape); dx[:] = dy * (1 - y * y); return dx",
    ),
    "filled with a number": (
        "y = torch.empty_like(x).fill_(2); ctx.save_for_backward(y); return y * x",
        "(y,) = ctx.saved_tensors; return y * dy",
    ),
}


@pytest.mark.parametrize("name", FILLED)
def test_what_is_empty_is_read_where_all_of_it_is_written(tmp_path, name):
    assert verdict_of(tmp_path, "x: N C", *FILLED[name]).outcome == "right"


@pytest.mark.parametrize("part", ["[:, 0]", "[1:]", "[:, ::2]"])
def test_what_is_not_wholly_written_is_refused(tmp_path, part):
    """It may be 0 by chance."""
    backward = f"dx = torch.empty_like(dy); dx{part} = 2 * dy{part}; return dx"
    with pytest.raises(QuestionError) as refused:
        verdict_of(tmp_path, "x: N C", "return x * 2", backward)
    assert "begin with torch.zeros_like(x), or write every part" in str(refused.value)
    mended = backward.replace("empty", "zeros").replace(part, "[:]")
    assert verdict_of(tmp_path, "x: N C", "return x * 2", mended).outcome == "right"


# What is returned for the arguments of `(x, w, a=2.0)`, and why torch refuses it.
RETURNED = {
    "dy * w, dy * x, None": "",
    "dy * w, dy * x, None, None": "",
    "dy * w, dy * x": "2 gradients for 3 arguments",
    "dy * w, dy * x, None, dy": "4 gradients for 3 arguments",
    "dy * w, dy * x, dy": "a gradient for a, which is no tensor",
}


@pytest.mark.parametrize("returned", RETURNED)
def test_as_many_gradients_are_returned_as_torch_takes(tmp_path, returned):
    file = tmp_path / "ops.py"
    file.write_text(
        f"{HEAD}class Case(Function):\n    @staticmethod\n    def forward(ctx, x, w, a=2.0):\n"
        "        ctx.save_for_backward(x, w)\n        return x * w\n    @staticmethod\n"
        f"    def backward(ctx, dy):\n        x, w = ctx.saved_tensors\n        return {returned}\n"
    )
    verdict, said = check_function(f"{file}:Case", "x: N, w: N"), RETURNED[returned]
    assert verdict.outcome == ("wrong" if said else "right")
    assert not said or f"backward returns {said}: torch raises an error" in str(verdict)


def test_sizes_that_the_forward_takes_and_the_backward_does_not_are_named(tmp_path):
    """Pooling drops what is left over, of which the backward knows nothing."""
    forward = "ctx.s = x.shape; return torch.nn.functional.avg_pool1d(x, 2)"
    verdict = verdict_of(tmp_path, "x: N C H", forward, "return dy.repeat_interleave(2, -1) / 2")
    assert verdict.outcome == "wrong"
    assert "dx has shape (5, 2, 6) but x has (5, 2, 7)" in str(verdict)
    assert "where N = 5, C = 2, H = 7" in str(verdict)
    even = "return x.unflatten(-1, (-1, 2)).mean(-1)"
    verdict = verdict_of(tmp_path, "x: N C H", even, "return dy.repeat_interleave(2, -1) / 2")
    assert verdict.outcome == "right" and "H a multiple of 2" in str(verdict)
    padded = "d = dy.repeat_interleave(2, -1) / 2;"
    padded += "return torch.nn.functional.pad(d, (0, ctx.s[-1] - d.shape[-1]))"
    with pytest.raises(QuestionError, match="read as a function that has no values at N = 5"):
        verdict_of(tmp_path, "x: N C H", forward, padded)
