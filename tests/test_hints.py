"""What people type who know torch or numpy is answered with the axis that it means: the line of the
hint is run, and gives what torch gives.
"""

import re
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from evaluate import Numbers
from forwards import HEAD

from derive import Axis, forward_from
from derive.language.errors import QuestionError

TOP = f"""{HEAD}
import numpy as np
import torch
import torch.nn.functional as F
from derive import At, Axes, CumProd, CumSum

B, N2, C2 = Axes("B"), Axis("N2"), Axis("C2")
LAST = -1


def reduced(u, axis):
    return Sum(u, axis)


def helped(u):
    return 2 * u
"""
DECLARED = (
    "x = Input(N, C)",
    "w = Input(N, C)",
    "turned = Input(C, N)",
    "cube = Input(N, C, D)",
    "batch = Input(B, C)",
    "labels = Label(N)",
    "m = Sum(x, N) / N",
    "centred = x - m",
    "slab = Sum(cube, N) / N",
)
SIZES = {"N": 3, "C": 4, "D": 2}
HINT = re.compile(r"^write (?P<code>.*?)(, (with|where|which) .*)?: .* lies along ")


def message(folder, line: str) -> QuestionError:
    file = folder / "mine.py"
    body = "".join(f"    {each}\n" for each in (*DECLARED, line))
    file.write_text(f"{TOP}\n\nclass Mine(Forward):\n{body}")
    with pytest.raises(QuestionError) as error:
        forward_from(file)
    assert error.value.place.line == file.read_text().split("\n").index(f"    {line}") + 1
    return error.value


def values() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"x": (3, 4), "w": (3, 4), "turned": (4, 3), "cube": (3, 4, 2)}
    found = {
        name: torch.rand(shape, generator=generator, dtype=torch.float64) + 0.1
        for name, shape in shapes.items()
    }
    m = found["x"].sum(0) / 3
    more = {"m": m, "centred": found["x"] - m, "slab": found["cube"].sum(0) / 3}
    return found | more


TYPED = """
x.sum(1); x.sum(-1); x.sum(0); x.sum(); x.sum(dim=None); x.sum((0, 1)); x.sum([-1]); x.sum(LAST)
x.sum(axis=-1); x.mean(1); x.mean(0); x.mean(-2); x.mean(); x.mean((0, 1)); x.sum(1, True)
x.mean(dim=1, keepdim=True); torch.sum(x, dim=1); torch.mean(x, 0, keepdim=True)
torch.sum(input=x, dim=1); np.sum(x, axis=1); np.mean(x, -1, keepdims=True); sum(x)
x.var(1); x.var(); x.var(False); x.var(0, False); x.var(0, unbiased=False); x.std(1)
x.std(dim=0, correction=0); torch.var(x, 1, correction=2); torch.std(x, 0); np.var(x, axis=0)
np.std(x, 1); np.var(x, 1, ddof=1); x.var((0, 1))
x.max(1).values; x.max(dim=-1)[0]; x.amax(0); x.amax((0, 1)); torch.amax(x, dim=1); np.max(x, 0)
x.min(0).values; x.amin(1); np.min(x); x.max(); torch.amin(-x, 1)
F.softmax(x, dim=-1); F.softmax(x, 0); torch.softmax(x, 1); x.softmax(dim=0); x.log_softmax(1)
F.log_softmax(x, dim=0); F.softmin(x, dim=1); x.logsumexp(1); torch.logsumexp(x, dim=(0, 1))
x.norm(); x.norm(dim=1); x.norm(1, 0); x.norm(p=3, dim=1); torch.norm(x, dim=0); x.norm(0.5, 1)
torch.linalg.vector_norm(x, 3, 1); np.linalg.norm(x, axis=1); torch.linalg.norm(x, dim=1)
x.prod(1); x.cumsum(1); torch.cumsum(x, dim=0); x.count_nonzero(1)
x.cumprod(1); torch.logcumsumexp(x, 0)
(x - w).mean(1); (x - m).mean(1); (x - m).mean(0); torch.sum(2.0 * x + 1, -1); (x * w).var(1)
F.softmax(x / 2, dim=0); (x**2).sum(1); (-x).amax(1)
turned.sum(0); turned.mean(-1); (2 * turned).sum(0); cube.sum(1); cube.mean((0, 2)); cube.amax(-1)
centred.sum(0); centred.mean(1); m.mean(0); m.sum(-1); slab.sum(0); slab.mean(-1)
x.T.sum(0); x.t().mean(1); x.transpose(0, 1).sum(0); torch.transpose(x, 0, 1).sum(1)
cube.permute(2, 0, 1).mean(0); torch.sum(x.T, 0); cube.transpose(-1, 0).sum((0, 1)); cube.mT.sum(1)
x.unsqueeze(0).sum(1); x.unsqueeze(-1).mean(1)
"""
CASES = [each.strip() for line in TYPED.strip().split("\n") for each in line.split(";")]


@pytest.mark.parametrize("typed", CASES)
def test_a_hint_that_is_followed_gives_what_torch_gives(typed, tmp_path):
    hint = message(tmp_path, f"y = {typed}").remedy
    code = HINT.match(hint)["code"]
    arrays = values()
    as_torch = arrays | {"torch": torch, "F": F, "np": np, "LAST": -1}
    if "np." in typed:
        as_torch |= {name: value.numpy() for name, value in arrays.items()}
    expected = torch.as_tensor(eval(typed, as_torch)).to(torch.float64)
    found = followed(tmp_path, code, arrays)
    torch.testing.assert_close(found.squeeze(), expected.squeeze(), rtol=1e-9, atol=1e-9)


def followed(folder, code: str, arrays: dict[str, torch.Tensor]) -> torch.Tensor:
    """What a line gives after those above it that it needs."""
    lines = [f"y = {code}"]
    for line in reversed(DECLARED):
        if re.search(rf"\b{line.split()[0]}\b", "\n".join(lines)):
            lines.insert(0, line)
    file = folder / "followed.py"
    body = "".join(f"    {line}\n" for line in lines)
    file.write_text(f"{TOP}\n\nclass Mine(Forward):\n{body}")
    definition = forward_from(file).definition
    numbers = Numbers({axis: SIZES[axis.name[0]] for axis in all_axes(definition)})
    numbers.definitions = {s.name: s.expression for s in definition.statements}
    for tensor in definition.inputs:
        numbers.known |= {
            (tensor.name, index): float(arrays[tensor.name][index])
            for index in product(*(range(size) for size in arrays[tensor.name].shape))
        }
    shape = [SIZES[axis.name] for axis in definition.output.home]
    entries = [
        float(numbers.entry(definition.output, index))
        for index in product(*(range(size) for size in shape))
    ]
    return torch.tensor(entries, dtype=torch.float64).reshape(shape)


def all_axes(definition) -> set[Axis]:
    found = {axis for tensor in definition.inputs for axis in tensor.home}
    return found | {Axis("N2"), Axis("C2")}


# What no axis is named for, and why.
UNCLEAR = {
    "x.sum(2)": "x lies along (N, C), and has no dimension 2",
    "x.sum(-3)": "has no dimension -3",
    "Sum(x, 5)": "has no dimension 5",
    "m.sum(3)": "m lies along (C), and has no dimension 3",
    "slab.sum(1)": "dimension 1 is C or D",
    "batch.sum(0)": "B stands for any number of dimensions",
    "batch.mean(1)": "B stands for any number of dimensions",
    "x.sum((0, 0))": "names one dimension of x twice",
    "x.sum(0.5)": "cannot be read here",
    "x.sum(D)": "and not along D",
    "(turned * x).sum(0)": "turned lies in another order",
    "x.squeeze().sum(0)": "squeeze moves its dimensions",
    "helped(x).sum(0)": "which axes helped(x) has is not known here",
}


@pytest.mark.parametrize("typed", UNCLEAR)
def test_where_it_cannot_be_told_no_axis_is_named(typed, tmp_path):
    hint = message(tmp_path, f"y = {typed}").remedy
    assert hint.startswith("name the axis that is meant") and UNCLEAR[typed] in hint
    assert not re.search(r"Sum\(\w+, [A-Z]", hint)


# What is not numbered keeps its hint, or says what is needed.
OTHERS = {
    "Sum(x, 1)": "write Sum(x, C)",
    "Sum(x, (0, 1))": "write Sum(x, N, C)",
    "Sum(x, dim=-1)": "write Sum(x, C)",
    "Max(x, dim=0)": "write Max(x, N)",
    "Min(x, (0, 1))": "write Min(Min(x, N), C)",
    "F.softmax(x)": "write exp(x) / Sum(exp(x), N) or exp(x) / Sum(exp(x), C): x lies",
    "Sum(x)": "write Sum(x, C) or Sum(x, N)",
    "mean(x, 1)": "write Sum(x, C) / C",
    "batch.sum(-1)": "write Sum(batch, C)",
    "x.sum('C')": "write Sum(x, C)",
    "sum(x, C)": "write Sum(x, C)",
    "x.size(1) * x": "write C:",
    "x.shape[0] * x": "write N:",
    "x.gather(1, labels)": "write Sum(OneHot(labels, C) * x, C)",
    "x.sum": "for x along (N, C) write Sum(x, N)",
    "x.exp().sum(1)": "write exp(x)",
    "x.transpose(0, 1)": "axes have names: nothing is moved, leave it out",
    "torch.max(x, w)": "write Max(x, w)",
    "torch.min(x, m)": "write Min(x, m)",
    "max(x, 2)": "write Max(x, 2)",
}


@pytest.mark.parametrize("typed", OTHERS)
def test_other_hints_name_what_was_typed(typed, tmp_path):
    assert message(tmp_path, f"y = {typed}").remedy.startswith(OTHERS[typed])


def test_an_axis_that_is_passed_to_a_function_is_no_number(tmp_path):
    assert followed(tmp_path, "reduced(x, C) + reduced(x, C)", values()).shape == (3,)
