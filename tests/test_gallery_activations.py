"""The activations of derive/math beside torch's own."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from functionals import (
    LAYOUTS,
    SHAPES,
    TOLERANCES,
    Functional,
    assert_agrees,
    assert_agrees_on,
)

INFINITE = math.inf


def entries(draw, shape):
    return {"x": 2 * draw(*shape)}


def gated(draw, shape):
    return {"gate": 2 * draw(*shape), "x": draw(*shape)}


def softplus(x, beta=1.0):
    """torch's own takes x for the answer above a threshold, where its formula would overflow."""
    return F.softplus(x, beta, threshold=200)


def slopes(name, *values):
    return tuple({name: value} if value is not None else {} for value in values)


UNARY = [
    Functional("relu", F.relu, entries),
    Functional("leaky_relu", F.leaky_relu, entries, slopes("negative_slope", None, 0.3, 0, -0.5)),
    Functional("elu", F.elu, entries, slopes("alpha", None, 0.3, 2)),
    Functional("sigmoid", F.sigmoid, entries),
    Functional("softplus_threshold", F.softplus, entries, ({}, {"beta": 2, "threshold": 0.5})),
    Functional("softplus", softplus, entries, slopes("beta", None, 0.3, 4)),
    Functional("silu", F.silu, entries),
    Functional("mish", F.mish, entries),
    Functional("gelu", F.gelu, entries),
    Functional("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), entries),
]
GATED = [
    Functional("swiglu", lambda gate, x: F.silu(gate) * x, gated),
    Functional("geglu", lambda gate, x: F.gelu(gate) * x, gated),
]
POINTWISE = UNARY + GATED
ALONG_ROWS = [
    Functional("softmax", lambda x: x.softmax(-1), entries),
    Functional("log_softmax", lambda x: x.log_softmax(-1), entries),
    Functional("logsumexp", lambda x: x.logsumexp(-1), entries),
]
ACTIVATIONS = {functional.name: functional for functional in POINTWISE + ALONG_ROWS}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_torchs_in_every_layout(name, dtype):
    for seed, shape in enumerate(SHAPES):
        for layout in LAYOUTS:
            assert_agrees_on(ACTIVATIONS[name], shape, dtype, layout, seed)


# Where the terms of a definition differ in size by more than a float can hold, or overflow.
PLACES = {
    "at a kink": (0.0, -0.0),
    "near zero": (1e-8, -1e-8, 1e-4, -1e-4),
    "far out": (30, -30, 90, -90),
    "beyond every exponential": (800, -800, 1e4, -1e4),
    "where nothing is finite": (INFINITE, -INFINITE, math.nan),
}
VECTOR = 64  # entries: a whole number of vectors of any processor
ROWS = {
    "far apart": [1e4, -1e4, 0.0],
    "far up": [1e4, 1e4, 1e4],
    "far down": [-1e4, -1e4, -1e4 + 1],
    "one impossible": [-INFINITE, 0.0, 1.0],
    "all impossible": [-INFINITE] * 3,
    "one certain": [INFINITE, 0.0, 1.0],
    "one unknown": [math.nan, 0.0, 1.0],
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("functional", POINTWISE, ids=str)
def test_an_activation_is_torchs(functional, place, dtype):
    """Entry by entry: a small one is compared with itself, not with the largest. It fills a vector:
    beside those, torch's elu_backward gives the upstream at NaN in the place of NaN.
    """
    for entry in PLACES[place]:
        at = torch.full((VECTOR,), entry, dtype=dtype)
        gated = {"gate": at, "x": torch.full_like(at, 1.5)}
        arguments = gated if functional in GATED else {"x": at}
        for options in functional.options:
            assert_agrees(functional, arguments, options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("functional", ALONG_ROWS, ids=str)
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_extreme_entries_is_torchs(functional, row, dtype):
    x = torch.tensor([ROWS[row], [0.5, 1.5, -1.0]], dtype=dtype)
    upstream = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.25, -0.75]], dtype=dtype)
    if functional.name == "logsumexp":
        upstream = upstream[:, 0]
    assert_agrees(functional, {"x": x}, upstream=upstream)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_of_nothing_is_nothing(name):
    functional = ACTIVATIONS[name]
    along_rows = (0, 3), (2, 0, 3), (2, 0)
    for shape in ((0,), *along_rows[:2]) if functional in POINTWISE else along_rows:
        assert_agrees_on(functional, shape, torch.float64)
