"""The blocks of derive/math beside torch's own: layers, attention and recurrent cells."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import getsource

import pytest
import torch
import torch.nn.functional as F
from functionals import LAYOUTS, TOLERANCES, Functional, assert_agrees, assert_agrees_on
from references import drawing

import generated

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


def layer(draw, shape):
    *rows, k = shape
    return {"x": draw(*rows, k), "weight": draw(k, 4), "bias": draw(4)}


def images(draw, shape):
    """Of one dimension or two, and windows of 2 places, or of 2 x 3."""
    window = (2, 3)[: len(shape) - 2]
    return {"x": draw(*shape), "weight": draw(4, shape[1], *window), "bias": draw(4)}


def turned(draw, shape):
    return {"x": draw(*shape), "cosine": draw(*shape[-2:]), "sine": draw(*shape[-2:])}


def rotary_embedding(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


def picked(draw, shape):
    """Five rows to pick from, some of them several times where there are more indices."""
    return {"index": torch.randint(5, shape, generator=SEEDED.manual_seed(3)), "table": draw(5, 3)}


def attended(draw, shape):
    *batch, t, e = shape
    return {"query": draw(*batch, t, e), "key": draw(*batch, 4, e), "value": draw(*batch, 4, 3)}


def masked(draw, shape):
    """Every query has a key, but the first, which has none."""
    mask = draw(*shape[:-1], 4) > -0.5
    mask[..., -1] = True
    mask[..., 0, :] = False
    return attended(draw, shape) | {"mask": mask}


def biased(draw, shape):
    """The first query has no key, the others lack some."""
    arguments = masked(draw, shape)
    mask = arguments.pop("mask")
    return arguments | {"bias": draw(*mask.shape).masked_fill(~mask, -torch.inf)}


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


def linear(x, weight, bias):
    return F.linear(x, weight.mT, bias)


def with_biases(cell):
    """A cell of torch's, which takes both biases or none."""

    def with_both(*arguments):
        *tensors, weight_hh, bias_ih, bias_hh = arguments
        if bias_ih is None and bias_hh is None:
            return cell(*tensors, weight_hh)
        zero = weight_hh.new_zeros(len(weight_hh))
        both = (zero if bias is None else bias for bias in (bias_ih, bias_hh))
        return cell(*tensors, weight_hh, *both)

    return with_both


def lstm_cell(x, h, c, *weights):
    return torch.stack(torch.lstm_cell(x, (h, c), *weights))


def attention(query, key, value, mask=None, **options):
    return F.scaled_dot_product_attention(query, key, value, mask, **options)


def causal_attention(query, key, value, **options):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, **options)


SEEDED = torch.Generator()
BIASES = frozenset({"bias_ih", "bias_hh"})
BIAS, TURNS = frozenset({"bias"}), frozenset({"cosine", "sine"})
SCALES = ({}, {"scale": 0.3})
ATTENTIONS = [
    Functional("scaled_dot_product_attention", attention, attended, SCALES, shapes=SEQUENCES),
    Functional("masked_attention", attention, masked, SCALES, shapes=SEQUENCES),
    Functional("biased_attention", attention, biased, SCALES, shapes=SEQUENCES),
    Functional("causal_attention", causal_attention, attended, SCALES, shapes=SEQUENCES),
]
BLOCKS = [
    Functional("linear", linear, layer, optional=frozenset({"bias"}), shapes=ROWS),
    Functional("bilinear", F.bilinear, pairs, optional=frozenset({"bias"}), shapes=ROWS),
    Functional("conv1d", F.conv1d, images, optional=BIAS, shapes=((2, 3, 7), (3, 2, 4))),
    Functional("conv2d", F.conv2d, images, optional=BIAS, shapes=((2, 3, 5, 6), (3, 2, 4, 3))),
    Functional(
        "rotary_embedding", rotary_embedding, turned, constant=TURNS, shapes=((2, 3, 6), (3, 5, 4))
    ),
    Functional("embedding", F.embedding, picked, shapes=((7,), (4, 3))),
    Functional(
        "rnn_cell", with_biases(torch.rnn_tanh_cell), cell_of(1), optional=BIASES, shapes=ROWS
    ),
    Functional("gru_cell", with_biases(torch.gru_cell), cell_of(3), optional=BIASES, shapes=ROWS),
    Functional("lstm_cell", with_biases(lstm_cell), cell_of(4), optional=BIASES, shapes=ROWS),
    *ATTENTIONS,
]
ALL = {functional.name: functional for functional in BLOCKS}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_a_block_is_torchs_in_every_layout(name, dtype):
    functional = ALL[name]
    for seed, shape in enumerate(functional.shapes):
        for layout in LAYOUTS:
            assert_agrees_on(functional, shape, dtype, layout, seed)


LAYERS = [(name, shape) for name in ("linear", "bilinear") for shape in ((3,), (2, 4, 3))]
PICKED = [("embedding", shape) for shape in ((), (2, 5, 3), (3, 2, 4, 5), (2, 3, 2, 4, 3))]
OF_HEADS = [
    (functional.name, shape)
    for functional in ATTENTIONS
    for shape in ((5, 3), (2, 3, 5, 4), (2, 1, 3, 5, 4))
]


@pytest.mark.parametrize(("name", "shape"), LAYERS + PICKED + OF_HEADS)
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


@pytest.mark.parametrize("functional", ATTENTIONS, ids=str)
def test_attention_survives_large_scores(functional):
    for scale in (30.0, 300.0):
        arguments = functional.arguments(drawing(4), (2, 5, 3))
        arguments |= {n: scale * arguments[n] for n in ("query", "key")}
        for dtype in (torch.float64, torch.float32):
            rounded = {n: t if t.dtype == torch.bool else t.to(dtype) for n, t in arguments.items()}
            assert_agrees(functional, rounded)


@pytest.mark.parametrize("functional", ATTENTIONS[1:3], ids=str)
def test_a_query_without_keys_gets_0_and_passes_nothing_on(functional):
    arguments = functional.arguments(drawing(4), (2, 5, 3))
    for large in (1.0, 1e4):
        query = (large * arguments["query"]).requires_grad_()
        y = functional.ours(query, *list(arguments.values())[1:])
        (dquery,) = torch.autograd.grad(y, query, drawing(5)(*y.shape))
        for found in (y, dquery):
            assert torch.equal(found[:, 0], torch.zeros_like(found[:, 0]))
            assert found[:, 1:].isfinite().all() and y[:, 1:].abs().min() > 0


def test_a_mask_may_be_of_numbers_and_of_booleans_seen_by_all_heads():
    """A key that is masked out for one of 2 examples, in all of 3 heads."""
    arguments = attended(drawing(4), (2, 3, 5, 4))
    mask = torch.tensor([[True] * 4, [True, True, True, False]])[:, None, None, :]
    expected = F.scaled_dot_product_attention(*arguments.values(), mask)
    for kind in (torch.bool, torch.int64, torch.float64):
        seen = mask.to(kind).expand(2, 3, 5, 4)
        got = ALL["masked_attention"].ours(*arguments.values(), seen)
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_a_large_score_that_is_masked_out_hides_nothing():
    """A hundred behind the mask: shifted by it, all that is left would be zero."""
    query, key, value = torch.ones(1, 1), torch.tensor([[400.0], [-1.0], [-2.0]]), torch.eye(3)
    mask = torch.tensor([[False, True, True]])
    arguments = {"query": query, "key": key, "value": value, "mask": mask}
    assert_agrees(ALL["masked_attention"], arguments)
    assert ALL["masked_attention"].ours(*arguments.values())[0, 1] > 0.7


@pytest.mark.parametrize("functional", ATTENTIONS, ids=str)
def test_attention_makes_nothing_of_queries_by_keys_by_features(functional):
    """The largest tensor is queries by keys, and the mask is looked at in the forward alone."""
    module = import_module(f"generated.{functional.name}")
    with generated.use("torch"):
        kinds = (f"{functional.name}_forward", f"{functional.name}_backward")
        forward, backward = (getsource(getattr(module, name)) for name in kinds)
    assert len(re.findall(r" @ |baddbmm\(", forward)) == 2 and backward.count(" @ ") == 4
    assert not {"einsum", "where"} & {*re.findall(r"\w+", backward)}
    assert "probs * (dprobs - (dprobs * probs).sum(2, keepdim=True))" in backward
