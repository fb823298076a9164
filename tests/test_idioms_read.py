"""Idioms that people write (``idioms.py``), read as text, beside what torch computes; what is
refused of them, and what is said where a text is read for some sizes alone.
"""

import math
import re

import both_doors
import numpy
import pytest
import torch
import torch.nn.functional as F
from both_doors import by_text, definition_of, numbers_of
from idioms import IDIOMS, NUMPY, REFUSED, Idiom

from derive.claims.reading import read
from derive.claims.reading.operations.picking import hot
from derive.claims.reading.refusals import Refusal
from derive.language.nodes import Position
from derive.language.reading_at import At

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of autocast
SIZES = {"N": 12, "D": 6, "B": 2, "T": 4, "V": 5, "C": 4, "K": 3}
MATRIX, LABELLED = "x: N D, w: D, k: N D", "x: N C, u: N, y: N int C, p: C T N"
BLOCKS = "for i in range(0, x.shape[0], 5):\n    "
MORE = {
    "views are written": Idiom(
        LABELLED,
        (
            "z = x.clone()\nz[1:][:, ::2].mul_(2).add_(1)\nresult = z",
            "z = x.clone()\nz.select(1, 0).zero_()\nz.narrow(0, 1, 3).mul_(2)\nresult = z",
            "z = x.clone()\nz.T[0].add_(u)\nz.transpose(0, 1)[1:].sub_(1)\nresult = z",
            "z = x.clone()\nz.view(len(x), 2, -1)[:, 0].mul_(2)\nz[:, None].add_(1)\nresult = z",
            "z = p.clone()\nz.permute(2, 0, 1)[:, 0].copy_(p[1].T)\nresult = z",
            "z = x.clone()\nz.data[0] = 1\nz.detach().mul_(2)\nz[1:][:, 1:] += 3\nresult = z",
            "z = torch.zeros_like(x)\ntorch.mul(x[1:], x[:-1], out=z[1:])\nz[0] = 1\nresult = z",
        ),
    ),
    "empties": Idiom(
        LABELLED,
        (
            "z = torch.empty_like(x)\nz[1:, 1:] = x[1:, 1:]\nz[0] = 2\nz[:, 0] = 3\nresult = z",
            "z = torch.empty_like(x)\nz[::3] = 0\nz[1::3] = 1\nz[2::3] = x[2::3]\nresult = z",
            "z = x.new_empty(2, *x.shape)\nz[0] = x\nz[1].copy_(-x)\nresult = z",
            "z = torch.empty_like(x)\nz.T[0] = 1\nz.T[1:].copy_(x.T[1:])\nresult = z",
            "z = torch.empty_like(x)\nfor i in range(len(x)):\n    z[i] = x[i] * u[i]\nresult = z",
        ),
    ),
    "indices beside whole dimensions": Idiom(
        LABELLED,
        (
            "result = x[:, y]",
            "result = p.permute(2, 1, 0)[..., y]",
            "result = p.permute(1, 2, 0)[:, torch.arange(x.shape[0]), y]",
            "z = p.permute(1, 2, 0).clone()\nz[:, torch.arange(x.shape[0]), y] -= p[0]\nresult = z",
            "z = p.permute(1, 2, 0).clone()\nz[..., torch.arange(x.shape[0]), y] *= u\nresult = z",
        ),
    ),
    "labels in parts": Idiom(
        "x: B T V, y: B T int V",
        (
            "result = x[:, -1].gather(1, y[:, -1:])",
            "result = F.cross_entropy(x[:, :-1].transpose(1, 2), y[:, 1:])",
            "t = y.flatten()\nresult = x.flatten(0, 1)[torch.arange(t.shape[0]), t]",
            "a, b = y.chunk(2, 1)\nresult = F.one_hot(b, x.size(-1)).sum(1) + x[:, 0]",
        ),
    ),
    "numbers in brackets and behind a star": Idiom(
        "x: N D",
        (
            "k = torch.tensor([[1.0, -1.0], [2, 3]])\nresult = x[:, :2] @ k.double()",
            "result = x.view(*x.shape[:-1], 2, -1).flatten(-2) + x[:, :1].expand(*x.shape)",
            "z = x.T.masked_fill(x.T > 0.5, float('-inf'))\nresult = z.softmax(1)",
            "z = torch.where(x.T > 0.5, -torch.inf, x.T)\nresult = z.logsumexp(1)",
        ),
    ),
    "parts of a size": Idiom(
        MATRIX,
        (
            "a, b, c = x.chunk(3, dim=-1)\nresult = a * b - c",
            "result = F.group_norm(x, 2)",
            "h = x.size(1) // 2\nresult = x[:, :h] @ k[:, h:].T",
            "result = x.unflatten(-1, (2, x.shape[-1] // 2))[:, 1]",
            "a, b = x.hsplit(2)\nresult = torch.cat([b, a], 1) + k",
            "q, v = x.view(x.size(0), 2, x.size(1) // 2).transpose(0, 1)\nresult = q * v",
        ),
    ),
    "blocks": Idiom(
        MATRIX,
        (
            f"g = torch.zeros_like(w)\n{BLOCKS}g += x[i:i + 5].sum(0)\nresult = g",
            f"g = 0\n{BLOCKS}b = x[i:i + 5]\n    g -= 2 * (b.T @ k[i:i + 5]) / len(x)\nresult = g",
            f"z = torch.zeros_like(x)\n{BLOCKS}z[i:i + 5] = (x[i:i + 5] @ k.T).softmax(-1) @ k\n"
            "result = z",
            "z = torch.zeros_like(x)\n"
            f"{BLOCKS}for j in range(0, len(k), 4):\n        a = x[i:i + 5] @ k[j:j + 4].T\n"
            "        z[i:i + 5] += a.exp() @ k[j:j + 4]\nresult = z",
            f"parts = []\n{BLOCKS}parts.append((x[i:i + 5] * w).T)\n"
            "result = torch.cat(parts, 1) @ k",
            f"z = x.clone()\n{BLOCKS}t = k[i:i + 5].clone()\n    t[:, 0] = 0\n    z[i:i + 5, 1:] "
            "*= w[1:]\n    z[i:i + 5] += t\nresult = z",
        ),
    ),
}
ENDS = "depends on where the blocks end"
REFUSED_BLOCKS = {
    "z[i:i + 5] = x[i:i + 5] - x[i:i + 5].mean(0)": ENDS,
    "z[i:i + 5] = x[i:i + 5].softmax(0)": ENDS,
    "z[i:i + 5] = x[i:i + 5].flip(0)": ENDS,
    "z[i:i + 5] = x[i:i + 5] * x[i:i + 5].shape[0]": ENDS,
    "z += x[i:i + 5].mean(0)": ENDS,
    "z += x[i:i + 5].sum(0) ** 2": ENDS,
    "z += x[i:i + 5].sum(0) + 1": ENDS,
    "z += w": ENDS,
    "z += (x[i:i + 5] * x[i:i + 5].sum(0)).sum(0)": ENDS,
    "z += (x[i:i + 5] @ x[i:i + 5].T).sum()": "a block is sliced",
    "z[i:i + 5] = x[i:i + 5][1:]": "a block is sliced",
    "z[i:i + 5] = x[i:i + 4]": "more than its own block",
    "z[i] = x[i]": "more than its own block",
    "z[i:i + 5] = x[i:i + 5]\n    z[0] += 1": "overwrites",
    "z[i:i + 5] = x[i:i + 5]\n    y = z[i:i + 5]": "reads what another",
}
UNWRITTEN = [
    "z[1:] = 1",
    "z[2:] = 1\nz[0] = 1",
    "z[::2] = 1\nz[2::2] = 1",
    "z[:, :-1] = 1\nz[:-1] = 1",
    "z[torch.arange(len(x)), y] = 1",
    "z[1:].add_(1)\nz[0] = 1",
    "z[1:] += 1\nz[0] = 1",
    "z[1:] = z[:-1]\nz[0] = 1",
]
SAID = {
    "a, b = x.chunk(2, 1)\ndx = torch.cat([a, b], 1)": "line 1: read where D is a multiple of 2",
    "half = x.shape[1] // 2\ndx = x\ng = x[:, :half] * x[:, half:]": "D is a multiple of 2",
    "dx = x.view(x.shape[0], 3, -1).flatten(1)": "D is a multiple of 3",
    "dx = x.view(*x.shape[:1], x.shape[1] // 2, 2).flatten(1)": "D is a multiple of 2",
}


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    for axis, size in SIZES.items():
        monkeypatch.setitem(both_doors.SIZES, axis, size)


def lines_of(idioms):
    return [
        pytest.param(re.sub(r"int \w+", "int", idiom.axes), text, id=f"{name} {k}")
        for name, idiom in idioms.items()
        for k, text in enumerate(idiom.texts)
        if "z[y] = 0" not in text  # equal indices: written once here, which import can say
    ]


@pytest.mark.parametrize("axes, text", lines_of(IDIOMS | NUMPY | MORE))
def test_an_idiom_is_read_as_torch_computes_it(axes, text, tmp_path):
    scope = {"torch": torch, "F": F, "math": math, "np": numpy, **numbers_of(axes)}
    if "np." in text or "keepdims" in text:
        scope |= {n: v.numpy() for n, v in scope.items() if torch.is_tensor(v)}
    exec(text, scope)
    found, expected = by_text(axes, text, tmp_path), torch.as_tensor(scope["result"])
    near = 1e-2 if "bfloat16" in text else 1e-5 if ".float()" in text else 1e-9
    assert found.shape == expected.shape
    torch.testing.assert_close(found.double(), expected.double(), rtol=near, atol=near)


EMPTY = {name: idiom for name, idiom in REFUSED.items() if "empty" in name}


@pytest.mark.parametrize("axes, text", lines_of(EMPTY)[:3])  # the fourth is read by nobody
def test_what_is_empty_is_refused_where_it_is_read(axes, text, tmp_path):
    with pytest.raises(Refusal, match="before it is completely written"):
        by_text(axes, text, tmp_path)


@pytest.mark.parametrize("lines", UNWRITTEN)
def test_so_is_what_is_written_in_part(lines, tmp_path):
    text = f"z = torch.empty_like(x)\n{lines}\nresult = z + 1"
    with pytest.raises(Refusal, match="before it is completely written"):
        by_text(LABELLED.replace("int C", "int"), text, tmp_path)


def test_a_gradient_is_all_written(tmp_path):
    with pytest.raises(Exception, match="dx is only partly written"):
        reading("dx = torch.empty_like(x)\ndx[1:] = x[1:]", tmp_path)


@pytest.mark.parametrize("line, problem", REFUSED_BLOCKS.items())
def test_what_is_not_the_same_for_every_block_is_refused(line, problem, tmp_path):
    text = f"z = torch.zeros_like(x)\n{BLOCKS}{line}\nresult = z"
    with pytest.raises(Refusal, match=problem):
        by_text(MATRIX, text, tmp_path)


def test_a_part_of_labels_is_a_part_of_what_they_pick(tmp_path):
    definition = definition_of("x: B T V, y: B T int", tmp_path)
    _, t, v = definition.axes
    labels = next(tensor for tensor in definition.inputs if tensor.name == "y")
    index = t - 1 - Position(t)
    assert hot(At.over(labels, t, index), v) == At.over(hot(labels, v), t, index)


JOINED = {
    "torch.vstack(parts)": "of a list that a loop over blocks filled",
    "torch.cat(parts, 1)": "of a list that a loop over blocks filled",
    "parts[0]": "cannot be indexed",
}


@pytest.mark.parametrize("line, problem", JOINED.items())
def test_what_a_loop_appended_is_joined_as_it_was_cut(line, problem, tmp_path):
    text = f"parts = []\n{BLOCKS}parts.append(x[i:i + 5])\nresult = {line}"
    with pytest.raises(Refusal, match=problem):
        by_text(MATRIX, text, tmp_path)


def reading(text, folder):
    definition = definition_of("x: N D", folder)
    return read(text, definition, definition.differentiable[0])


@pytest.mark.parametrize("text, words", SAID.items())
def test_that_a_size_is_taken_to_be_a_multiple_is_said(text, words, tmp_path):
    said = reading(text, tmp_path).remarks
    assert any(words in remark for remark in said), said


@pytest.mark.parametrize("line", ["x * float('inf')", "x + torch.inf", "x * -math.inf"])
def test_an_infinite_number_is_only_what_is_masked(line, tmp_path):
    with pytest.raises(Refusal, match="inf is not a real number"):
        by_text("x: N D", f"result = {line}", tmp_path)
