"""What else a Function meets when torch calls it: a ctx that has any attribute, tensors that are
filled in parts.
"""

import pytest

from codegen.backwards.checking import check_function

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
