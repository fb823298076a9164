"""The blocks of derive/math beside torch's own: layers, attention and recurrent cells."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from functionals import LAYOUTS, TOLERANCES, Functional, assert_agrees, assert_agrees_on
from references import drawing

ROWS = ((4, 3), (3, 8), (5, 2))
SEQUENCES = ((2, 5, 3), (3, 4, 2))


def pairs(draw, shape):
    *rows, k = shape
    return {
        "x1": draw(*rows, k),
        "x2": draw(*rows, k + 1),
        "weight": draw(3, k, k + 1),
        "bias": draw(3),
    }


def attended(draw, shape):
    *batch, t, e = shape
    return {"query": draw(*batch, t, e), "key": draw(*batch, 4, e), "value": draw(*batch, 4, 3)}


def cell_of(gates):
    """The arguments of a recurrent cell: ``gates`` blocks of hidden units."""

    def drawn(draw, shape):
        (n, k), h = shape, shape[1] + 2
        return {
            "x": draw(n, k),
            "h": draw(n, h),
            **({"c": draw(n, h)} if gates == 4 else {}),
            "weight_ih": draw(gates * h, k),
            "weight_hh": draw(gates * h, h),
            "bias_ih": draw(gates * h),
            "bias_hh": draw(gates * h),
        }

    return drawn


def lstm_cell(x, h, c, *weights):
    return torch.stack(torch.lstm_cell(x, (h, c), *weights))


BLOCKS = [
    Functional("bilinear", F.bilinear, pairs, shapes=ROWS),
    Functional("rnn_cell", torch.rnn_tanh_cell, cell_of(1), shapes=ROWS),
    Functional("gru_cell", torch.gru_cell, cell_of(3), shapes=ROWS),
    Functional("lstm_cell", lstm_cell, cell_of(4), shapes=ROWS),
    Functional(
        "scaled_dot_product_attention",
        F.scaled_dot_product_attention,
        attended,
        shapes=SEQUENCES,
    ),
]
ALL = {functional.name: functional for functional in BLOCKS}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_a_block_is_torchs_in_every_layout(name, dtype):
    functional = ALL[name]
    for seed, shape in enumerate(functional.shapes):
        for layout in LAYOUTS:
            assert_agrees_on(functional, shape, dtype, layout, seed)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("bilinear", (3,)),
        ("bilinear", (2, 4, 3)),
        ("scaled_dot_product_attention", (5, 3)),
        ("scaled_dot_product_attention", (2, 3, 5, 4)),
        ("scaled_dot_product_attention", (2, 1, 3, 5, 4)),
    ],
)
def test_a_block_has_any_number_of_leading_axes(name, shape):
    for dtype in TOLERANCES:
        for layout in LAYOUTS:
            assert_agrees_on(ALL[name], shape, dtype, layout)


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_one_example_and_of_none(name):
    functional = ALL[name]
    for n in (1, 0):
        shape = (n, *functional.shapes[0][1:])
        assert_agrees_on(functional, shape, torch.float64)
        assert_agrees_on(functional, shape, torch.float32)


@pytest.mark.parametrize("name", ["gru_cell", "lstm_cell", "rnn_cell"])
def test_a_saturated_cell_is_torchs(name):
    """Gates that are closed and open by 200 and 1e4."""
    for scale in (200.0, 1e4):
        draw, functional = drawing(7), ALL[name]
        arguments = {n: scale * t for n, t in functional.arguments(draw, (3, 4)).items()}
        for dtype in (torch.float64, torch.float32):
            rounded = {n: t.to(dtype) for n, t in arguments.items()}
            assert_agrees(functional, rounded)


def test_the_two_results_of_a_cell_are_separate():
    """Training through the hidden state alone, the cell alone, or both."""
    arguments = ALL["lstm_cell"].arguments(drawing(2), (3, 4))
    leaves = [t.requires_grad_() for t in arguments.values()]
    x, h, c, *rest = leaves
    results = ALL["lstm_cell"].ours(*leaves), torch.lstm_cell(x, (h, c), *rest)
    for of_hidden, of_cell in ((1, 0), (0, 1), (2, 3)):
        losses = [
            of_hidden * (hidden**2).sum() + of_cell * (cell**2).sum() for hidden, cell in results
        ]
        gradients = [torch.autograd.grad(loss, leaves, retain_graph=True) for loss in losses]
        for got, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_a_recurrent_network_trains_as_torchs(dtype=torch.float64):
    """Five steps, one after the other, with the weights of torch.nn.LSTM as they are."""
    torch.manual_seed(0)
    network = torch.nn.LSTM(3, 4, dtype=dtype)
    inputs = torch.randn(5, 2, 3, dtype=dtype)
    expected, _ = network(inputs)
    weights = [getattr(network, f"{kind}_l0") for kind in
               ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]  # fmt: skip
    h = c = torch.zeros(2, 4, dtype=dtype)
    states = []
    for x in inputs:
        h, c = ALL["lstm_cell"].ours(x, h, c, *weights)
        states.append(h)
    got = torch.stack(states)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(
        torch.autograd.grad((got**2).sum(), weights),
        torch.autograd.grad((expected**2).sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_weights_of_another_number_of_gates_are_refused():
    arguments = ALL["gru_cell"].arguments(drawing(1), (3, 4))
    with pytest.raises(ValueError, match="P"):
        ALL["lstm_cell"].ours(arguments["x"], arguments["h"], arguments["h"],
                              *list(arguments.values())[2:])  # fmt: skip


def test_attention_survives_large_scores():
    functional = ALL["scaled_dot_product_attention"]
    for scale in (30.0, 300.0):
        arguments = functional.arguments(drawing(4), (2, 5, 3))
        arguments |= {n: scale * arguments[n] for n in ("query", "key")}
        for dtype in (torch.float64, torch.float32):
            assert_agrees(functional, {n: t.to(dtype) for n, t in arguments.items()})


def test_attention_makes_nothing_of_queries_by_keys_by_features():
    """The largest tensor is queries by keys, forward and backward."""
    import generated.scaled_dot_product_attention as module

    with open(module.__file__, encoding="utf-8") as file:
        text = file.read()
    body = text.partition("def scaled_dot_product_attention_forward")[2]
    body = body.partition("def scaled_dot_product_attention_chain")[0]
    assert "einsum" not in body and body.count(" @ ") >= 6
