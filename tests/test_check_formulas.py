"""The corpus of `formulas.py`: every label is confirmed numerically, every answer is the label
(here of a sample, in ``make test-thorough`` of all).

The labels know nothing of `derive.check`: a text is evaluated by torch (or, in the project's
notation, by names) in float64, and compared with autograd of mathematics typed by hand.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import checked_forwards
import pytest
import torch
import torch.nn.functional as F
from formulas import FORMULAS, Formula
from references import (
    batch_norm_atoms_by_hand,
    drawing,
    gradients_of_atoms,
    largest,
    softmax_nll_atoms_by_hand,
)
from torch import Tensor

import derive
from derive.language.notation.layout import layouts_of

FORWARDS = {
    "BatchNorm": derive.forward_from("batch_norm"),
    "SoftmaxNLL": derive.forward_from("softmax_nll"),
    **{
        name: getattr(checked_forwards, name)
        for name in (
            "LayerNorm",
            "RMSNorm",
            "SmoothedNLL",
            "WeightedNLL",
            "RowNLL",
            "SumNLL",
            "TemperedNLL",
        )
    },
}
SIZES = [(5, 3), (4, 4)]  # the second lets torch broadcast along the wrong axis in silence
SCALARS = {"eps": 0.37, "smoothing": 0.3, "temperature": 1.7}
RIGHT, WRONG = 1e-12, 1e-11  # relative differences: at most, and at least


# The mathematics, typed by hand


def layer_norm(x, gain, bias, eps):
    mean = x.mean(1, keepdim=True)
    diff = x - mean
    var = (diff**2).mean(1, keepdim=True)
    inv_std = 1 / torch.sqrt(var + eps)
    xhat = diff * inv_std
    return {
        "mean": mean,
        "diff": diff,
        "var": var,
        "inv_std": inv_std,
        "xhat": xhat,
        "y": gain * xhat + bias,
    }


def rms_norm(x, gain, eps):
    square = (x**2).mean(1, keepdim=True)
    inv_rms = 1 / torch.sqrt(square + eps)
    xhat = x * inv_rms
    return {"square": square, "inv_rms": inv_rms, "xhat": xhat, "y": gain * xhat}


def softmax(logits):
    counts = torch.exp(logits - logits.max(1, keepdim=True).values)
    return {"counts": counts, "probs": counts / counts.sum(1, keepdim=True)}


def picked(probs, labels):
    return torch.log(probs)[torch.arange(len(labels)), labels]


def smoothed_nll(logits, labels, smoothing):
    atoms = softmax(logits)
    classes = logits.shape[1]
    target = F.one_hot(labels, classes).double() * (1 - smoothing) + smoothing / classes
    target.requires_grad_()  # a statement like any other: its gradient has a name
    loss = -(target * torch.log(atoms["probs"])).sum(1).mean()
    return atoms | {"target": target, "loss": loss}


def weighted_nll(logits, weight, labels):
    atoms = softmax(logits)
    total = weight[labels].sum()
    return atoms | {
        "total": total,
        "loss": -(weight[labels] * picked(atoms["probs"], labels)).sum() / total,
    }


def row_nll(logits, labels):
    atoms = softmax(logits)
    return atoms | {"loss": -picked(atoms["probs"], labels)}


def sum_nll(logits, labels):
    atoms = softmax(logits)
    return atoms | {"loss": -picked(atoms["probs"], labels).sum()}


def tempered_nll(logits, labels, temperature):
    scaled = logits / temperature
    atoms = softmax(scaled)
    return {"scaled": scaled} | atoms | {"loss": -picked(atoms["probs"], labels).mean()}


BY_HAND = {
    "BatchNorm": batch_norm_atoms_by_hand,
    "LayerNorm": layer_norm,
    "RMSNorm": rms_norm,
    "SoftmaxNLL": softmax_nll_atoms_by_hand,
    "SmoothedNLL": smoothed_nll,
    "WeightedNLL": weighted_nll,
    "RowNLL": row_nll,
    "SumNLL": sum_nll,
    "TemperedNLL": tempered_nll,
}
# What torch itself has: the references above are held to it.
BY_TORCH = {
    "LayerNorm": lambda x, gain, bias, eps: F.layer_norm(x, x.shape[1:], gain, bias, eps),
    "RMSNorm": lambda x, gain, eps: F.rms_norm(x, x.shape[1:], gain, eps),
    "SoftmaxNLL": F.cross_entropy,
    "SmoothedNLL": lambda logits, labels, s: F.cross_entropy(logits, labels, label_smoothing=s),
    "WeightedNLL": lambda logits, weight, labels: F.cross_entropy(logits, labels, weight.detach()),
    "RowNLL": lambda logits, labels: F.cross_entropy(logits, labels, reduction="none"),
    "SumNLL": lambda logits, labels: F.cross_entropy(logits, labels, reduction="sum"),
    "TemperedNLL": lambda logits, labels, t: F.cross_entropy(logits / t, labels),
}


@lru_cache
def arguments(forward: str, n: int, c: int) -> dict[str, Tensor | float]:
    """Random inputs, labels and scalars; a gain has both signs, and eps is no small number."""
    draw = drawing(100 * n + c)
    signs = 1.0 - 2.0 * (torch.arange(c) % 2)
    made = {
        "x": lambda: 1.5 * draw(n, c) + 0.5,
        "logits": lambda: 1.5 * draw(n, c),
        "gain": lambda: signs * (0.5 + draw(c).abs()),
        "bias": lambda: draw(c),
        "weight": lambda: 0.3 + draw(c).abs(),
        "labels": lambda: (torch.arange(n) ** 2 + 1) % c,
    }
    definition = FORWARDS[forward].definition
    found = {t.name: made[t.name]() for t in definition.inputs}
    for name, value in found.items():
        value.requires_grad_(name != "labels")
    return found | {t.name: SCALARS[t.name] for t, _ in definition.scalars}


@lru_cache
def values(forward: str, n: int, c: int) -> dict[str, Tensor | float]:
    """Everything that a formula may name: arguments, statements, and d<name> of all by autograd."""
    given = arguments(forward, n, c)
    atoms = BY_HAND[forward](**given)
    inputs = {k: v for k, v in given.items() if isinstance(v, Tensor) and v.requires_grad}
    output = list(atoms.values())[-1]
    upstream = drawing(n + c)(output.numel()).reshape(output.shape)
    gradients = gradients_of_atoms(atoms, inputs, upstream)
    return {
        name: value.detach() if isinstance(value, Tensor) else value
        for name, value in (given | atoms | gradients).items()
        if value is not None
    }


# A text, evaluated


def in_torch(formula: Formula, n: int, c: int) -> Tensor:
    """Evaluate in torch, where a number times a one-hot is float64 too."""
    known = values(formula.forward, n, c)
    named = {own: known[name] for own, name in formula.let.items()}
    tools = {"torch": torch, "F": F, "n": n, "N": n, "C": c}
    torch.set_default_dtype(torch.float64)
    try:
        return eval(formula.text, {"__builtins__": {"len": len}}, tools | known | named)
    finally:
        torch.set_default_dtype(torch.float32)


def by_name(formula: Formula, n: int, c: int) -> Tensor:
    """Shapes of the notation: every tensor has both dimensions, of size 1 without the axis."""
    known = values(formula.forward, n, c)
    layouts = layouts_of(FORWARDS[formula.forward].definition)

    def full(name: str, value: Tensor | float) -> Tensor:
        layout = layouts[name.removeprefix("d") if name not in layouts else name]
        axes = {str(dim.axis) for dim in layout if not dim.one}
        shape = (n if "N" in axes else 1, c if "C" in axes else 1)
        kind = value.dtype if isinstance(value, Tensor) else torch.float64
        return torch.as_tensor(value, dtype=kind).reshape(shape)

    def total(value, *dims):
        filled = (n if 0 in dims else 1, c if 1 in dims else 1)
        return (value + torch.zeros(filled, dtype=torch.float64)).sum(dims, keepdim=True)

    class Size(int):
        """An axis: its size, and its dimension where it is the axis of a node."""

    rows, columns = Size(n), Size(c)

    def dims(axes):
        return tuple(0 if axis is rows else 1 for axis in axes)

    tools = {
        "N": rows,
        "n": rows,
        "C": columns,
        "Sum": lambda e, *axes: total(e, *dims(axes)),
        "Max": lambda e, axis: e.amax(dims([axis]), keepdim=True),
        "OneHot": lambda labels, axis: (labels == torch.arange(axis)).double(),
        "Rational": lambda p, q: p / q,
        "exp": torch.exp,
        "log": torch.log,
        "sqrt": torch.sqrt,
    }
    named = {own: full(name, known[name]) for own, name in formula.let.items()}
    return eval(
        formula.text,
        {"__builtins__": {}},
        {name: full(name, value) for name, value in known.items()} | tools | named,
    )


def difference(formula: Formula, n: int, c: int) -> float:
    """The largest relative difference to autograd; infinite where the shapes do not fit."""
    expected = values(formula.forward, n, c)[f"d{formula.of}"]
    found = []
    if not formula.in_torch:
        got = by_name(formula, n, c)
        shape = (*(1,) * (2 - expected.dim()), *expected.shape)
        fits = all(size in (1, whole) for size, whole in zip(got.shape, shape, strict=True))
        found.append(largest(got - expected.reshape(shape)) if fits else torch.inf)
    if not formula.in_project_notation:
        try:
            got = in_torch(formula, n, c)
            fits = torch.broadcast_shapes(got.shape, expected.shape) == expected.shape
        except RuntimeError as misaligned:
            assert "must match" in str(misaligned) or "hape" in str(misaligned), misaligned
            fits = False
        if formula.right:
            assert fits, "it does not fit"
            assert got.shape == expected.shape
        found.append(largest(got - expected) if fits else torch.inf)
    assert len(found) == 1 or (max(found) < RIGHT) == (min(found) < RIGHT), "two readings"
    worst = max(found) / largest(expected)
    return torch.inf if worst != worst else worst


# The tests


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("n, c", SIZES)
def test_the_mathematics_typed_by_hand_is_the_forward(forward, n, c):
    """By torch's own where it has one; statements under their names, in their shapes."""
    given, known = arguments(forward, n, c), values(forward, n, c)
    definition = FORWARDS[forward].definition
    sizes = {"N": n, "C": c, "1": 1}
    for name, layout in layouts_of(definition).items():
        if isinstance(known[name], Tensor):
            assert known[name].shape == tuple(sizes[str(dim)] for dim in layout), name
    if forward in BY_TORCH:
        torch.testing.assert_close(
            BY_TORCH[forward](*given.values()), known[str(definition.output)]
        )


def test_the_corpus_is_large_and_has_no_formula_twice():
    assert len(FORMULAS) == len({str(f) for f in FORMULAS})
    assert len(FORMULAS) == len({(f.forward, f.of, f.text) for f in FORMULAS})
    counts = Counter(f.right for f in FORMULAS)
    assert counts[True] >= 50 and counts[False] >= 80


@pytest.mark.parametrize("formula", FORMULAS, ids=str)
def test_the_label_is_confirmed_numerically(formula):
    differences = [difference(formula, *size) for size in SIZES]
    if formula.right:
        assert max(differences) <= RIGHT
    else:
        assert max(differences) >= WRONG


def sample_and_rest(formulas):
    """Every fourth formula that is right, and that is wrong, of every gradient; every other one is
    for ``make test-all``, the rest for ``make test-thorough``.
    """
    met = Counter()
    for formula in formulas:
        kind = formula.forward, formula.of, formula.right
        slow = pytest.mark.thorough if met[kind] % 2 else pytest.mark.slow
        yield pytest.param(formula, marks=slow) if met[kind] % 4 else formula
        met[kind] += 1


@pytest.mark.skipif(not hasattr(derive, "check"), reason="derive.check does not exist yet")
@pytest.mark.parametrize("formula", [*sample_and_rest(FORMULAS)], ids=str)
def test_the_answer_is_the_label(formula):
    verdict = derive.check(
        FORWARDS[formula.forward], formula.text, of=formula.of, let=dict(formula.let)
    )
    assert verdict.right is formula.right, str(verdict)
    assert verdict.status == (0 if formula.right else 1)
