"""The normalisations of derive/math beside torch's own."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from functionals import (
    LAYOUTS,
    TOLERANCES,
    Functional,
    assert_agrees,
    assert_agrees_on,
    distance,
    outcome,
)
from references import drawing

CONSTANT = "expanded upstream"
ROWS = ((4, 3), (3, 8), (7, 2))
LEADING = ((5,), (2, 5, 3), (3, 2, 4, 5), (2, 3, 2, 4, 3))  # what stands before the last axis
PLACES = ((4, 3, 5), (2, 6, 2))
OTHER_PLACES = ((4, 3), (3, 2, 4, 5), (2, 3, 2, 4, 3))  # none, images, volumes


def channels(draw, shape):
    return {"x": draw(*shape), "gain": draw(shape[1]), "bias": draw(shape[1])}


def with_statistics(draw, shape):
    x, gain, bias = channels(draw, shape).values()
    mean, var = draw(shape[1]), draw(shape[1]) ** 2
    return {"x": x, "running_mean": mean, "running_var": var, "gain": gain, "bias": bias}


def row(draw, shape):
    return {"x": draw(*shape)}


def scaled_row(draw, shape):
    return row(draw, shape) | {"gain": draw(shape[-1])}


def moved_row(draw, shape):
    return scaled_row(draw, shape) | {"bias": draw(shape[-1])}


def weights(draw, shape):
    return {"v": draw(*shape), "g": draw(shape[0])}


def batch_norm(x, gain, bias, eps=1e-5):
    return F.batch_norm(x, None, None, gain, bias, training=True, eps=eps)


def batch_norm_evaluation(x, mean, var, gain, bias, eps=1e-5):
    return F.batch_norm(x, mean, var, gain, bias, training=False, eps=eps)


def instance_norm(x, gain, bias, eps=1e-5):
    return F.instance_norm(x, weight=gain, bias=bias, eps=eps)


def layer_norm(x, gain, bias, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def rms_norm(x, gain, eps=1e-5):
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def l2_normalize(x, eps=1e-12):
    return F.normalize(x, dim=-1, eps=eps)


def norm_p(x, p=3):
    return torch.linalg.vector_norm(x, p, dim=-1)


def weight_norm(v, g):
    return torch._weight_norm(v, g.reshape(-1, *[1] * (v.dim() - 1)), 0)


def group_norm(x, gain, bias, groups, eps=1e-5):
    if gain is None and bias is not None:  # torch fails in its backward
        gain = torch.ones_like(bias)
    return F.group_norm(x, groups, gain, bias, eps)


def variance(x, correction=1):
    return x.var(-1, correction=correction)


def deviation(x, correction=1):
    return x.std(-1, correction=correction)


EPS = ({}, {"eps": 0.5})
GROUPS = ({"groups": 1}, {"groups": 1, "eps": 0.5})
AFFINE = frozenset({"gain", "bias"})
STATISTICS = frozenset({"running_mean", "running_var"})
CORRECTION = ({}, {"correction": 0}, {"correction": 0.5})

OVER_PLACES = [
    Functional("batch_norm_biased", batch_norm, channels, EPS, AFFINE),
    Functional("instance_norm", instance_norm, channels, EPS, AFFINE),
    Functional("group_norm", group_norm, channels, GROUPS, AFFINE),
]
OVER_ROWS = [
    Functional("layer_norm", layer_norm, moved_row, EPS, AFFINE),
    Functional("rms_norm", rms_norm, scaled_row, EPS, AFFINE),
    Functional("l2_normalize", l2_normalize, row, ({}, {"eps": 2.0})),
    Functional("var", variance, row, CORRECTION),
    Functional("std", deviation, row, CORRECTION),
]
EVALUATION = Functional(
    "batch_norm_evaluation", batch_norm_evaluation, with_statistics, EPS, AFFINE, STATISTICS
)
OF_WEIGHTS = [Functional("weight_norm", weight_norm, weights)]
LENGTHS = [
    Functional("norm", partial(norm_p, p=2), row),
    Functional("norm1", partial(norm_p, p=1), row),
    Functional("norm_p", norm_p, row, ({}, {"p": 2.5})),
    Functional("norm_inf", partial(norm_p, p=torch.inf), row),
]
ALL = {
    functional.name: functional
    for functional in [*OVER_PLACES, *OVER_ROWS, *OF_WEIGHTS, *LENGTHS, EVALUATION]
}


CANCELLING = [*OVER_PLACES, ALL["layer_norm"]]  # where the upstream gradient is the same everywhere


def shapes_of(functional):
    return PLACES if functional in [*OVER_PLACES, EVALUATION] else ROWS


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_a_normalisation_is_torchs_in_every_layout(name, dtype):
    functional = ALL[name]
    for seed, shape in enumerate(shapes_of(functional)):
        for layout in LAYOUTS:
            if layout != CONSTANT or functional not in CANCELLING:
                assert_agrees_on(functional, shape, dtype, layout, seed)


@pytest.mark.parametrize("functional", CANCELLING, ids=str)
def test_the_same_gradient_everywhere_cancels_as_torchs(functional):
    """dgain and dx are zero but for what is rounded, so the terms are what errors are measured
    by: their number times the upstream gradient.
    """
    for shape in PLACES:
        draw = drawing(6)
        upstream = draw(1).squeeze().expand(shape)
        scale = upstream.abs().sum()
        for options, arguments in functional.ways(functional.arguments(draw, shape)):
            found, expected = (
                outcome(function, arguments, options, upstream).results()
                for function in (functional.ours, functional.reference)
            )
            for result, wanted in expected.items():
                assert distance(found[result], wanted) <= TOLERANCES[torch.float64] * scale, result


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_groups_of_any_size_are_torchs(groups, dtype):
    functional = Functional("group_norm", group_norm, channels, ({"groups": groups},), AFFINE)
    for layout in LAYOUTS:
        if layout != CONSTANT:
            assert_agrees_on(functional, (2, 6, 5), dtype, layout)


@pytest.mark.parametrize("groups", [0, -1, 4, 12])
def test_groups_that_do_not_divide_are_refused_as_torch_does(groups):
    arguments = channels(torch.randn, (2, 6, 5)).values()
    with pytest.raises(ValueError, match=f"C = 6 is not a multiple of groups = {groups}"):
        ALL["group_norm"].ours(*arguments, groups=groups)


def test_a_number_behind_what_may_be_left_out_is_passed_by_name():
    x = drawing(2)(2, 6, 5)
    assert torch.equal(
        ALL["group_norm"].ours(x, groups=3), ALL["group_norm"].ours(x, None, groups=3)
    )
    torch.testing.assert_close(ALL["group_norm"].ours(x, groups=3), F.group_norm(x, 3))
    with pytest.raises(TypeError, match="groups"):
        ALL["group_norm"].ours(x)


@pytest.mark.parametrize("shape", LEADING, ids=str)
@pytest.mark.parametrize("functional", OVER_ROWS, ids=str)
def test_rows_have_any_number_of_leading_axes(functional, shape):
    for dtype in TOLERANCES:
        for layout in LAYOUTS:
            if layout != CONSTANT or functional not in CANCELLING:
                assert_agrees_on(functional, shape, dtype, layout)


@pytest.mark.parametrize("shape", OTHER_PLACES, ids=str)
@pytest.mark.parametrize("functional", [*OVER_PLACES, *OF_WEIGHTS, EVALUATION], ids=str)
def test_channels_have_any_number_of_places(functional, shape):
    if functional.name in ("weight_norm", "instance_norm") and len(shape) == 2:
        shape = (*shape, 2, 2)  # of one place torch refuses an instance norm
    for dtype in TOLERANCES:
        for layout in LAYOUTS:
            if layout != CONSTANT:
                assert_agrees_on(functional, shape, dtype, layout)


@pytest.mark.parametrize("functional", LENGTHS, ids=str)
def test_a_row_of_zeros_or_of_none_has_the_gradient_of_torchs_norm(functional):
    for x in (torch.zeros(2, 3), torch.tensor([[0.0, 3, 0], [0, 0, 0]]), torch.zeros(0, 3)):
        assert_agrees(functional, {"x": x.double()})


# The edges, as torch decides them


EDGES = {
    "one feature": (
        lambda draw: draw(4, 1),
        tuple(f.name for f in OVER_ROWS if f.name not in ("var", "std")),
    ),
    "one row": (lambda draw: draw(1, 5), tuple(f.name for f in OVER_ROWS)),
    "rows without variance": (
        lambda draw: draw(4, 1).expand(4, 5),
        ("layer_norm", "rms_norm", "l2_normalize", "var"),
    ),
    "zeros": (lambda draw: 0 * draw(4, 5), tuple(f.name for f in OVER_ROWS)),
    "integers without variance": (lambda draw: 3 + 0 * draw(4, 5), ("var", "std", "layer_norm")),
    "no row": (lambda draw: draw(0, 5), tuple(f.name for f in OVER_ROWS)),
    "means of ten thousand": (lambda draw: draw(4, 64) + 1e4, ("layer_norm", "var", "std")),
    "one large entry": (
        lambda draw: draw(2, 8) * torch.tensor([1e3, *[1e-3] * 7]).double(),
        tuple(f.name for f in OVER_ROWS),
    ),
    "tiny": (lambda draw: 1e-6 * draw(4, 5), tuple(f.name for f in OVER_ROWS)),
    "not a number": (
        lambda draw: torch.cat([draw(1, 5), draw(1, 5) / 0 * 0]),
        tuple(f.name for f in OVER_ROWS),
    ),
}
AT_EDGES = [(edge, name) for edge, (_, names) in EDGES.items() for name in names]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("edge", "name"), AT_EDGES)
def test_a_row_at_the_edge_is_torchs(edge, name, dtype):
    drawn = drawing(3)
    made, functional = EDGES[edge][0](drawn), ALL[name]
    arguments = functional.arguments(drawn, tuple(made.shape)) | {"x": made}
    arguments = {n: t.to(dtype) for n, t in arguments.items()}
    upstream = drawn(*made.shape) if name not in ("var", "std") else drawn(made.shape[0])
    assert_agrees(functional, arguments, {}, upstream.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("functional", OVER_PLACES, ids=str)
def test_channels_at_the_edge_are_torchs(functional, dtype):
    draw = drawing(5)

    def drawn(*shape):
        return draw(*shape).to(dtype)

    edges = [drawn(4, 2, 1).round().expand(4, 2, 8), 0 * drawn(4, 2, 8)]
    if dtype == torch.float32:  # in float64 the reference is as far away
        edges += [drawn(4, 2, 8) + 1e4]
    if functional.name == "group_norm":  # torch's others fail on a batch of no entries
        edges += [drawn(0, 2, 8)]
    for x in edges:
        arguments = channels(drawn, tuple(x.shape)) | {"x": x}
        upstream = drawn(*x.shape)
        assert_agrees(functional, arguments, functional.options[0], upstream)


def test_a_norm_equal_to_eps_passes_its_gradient():
    """As ``torch.clamp_min`` does at equality."""
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    upstream = torch.tensor([[0.5, -2.0]], dtype=torch.float64)
    assert_agrees(ALL["l2_normalize"], {"x": x}, {"eps": 5.0}, upstream)


def test_a_deviation_of_zero_has_the_gradient_zero():
    x = torch.full((2, 3), 0.1, requires_grad=True)
    ALL["std"].ours(x).sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 3))


@pytest.mark.parametrize("correction", [-1, 0, 0.5, 1, 1.5, 2, 3])
@pytest.mark.parametrize("name", ["var", "std"])
def test_a_correction_that_leaves_nothing_is_refused(name, correction):
    """torch warns there, and answers inf or NaN; what leaves something is torch's."""
    for x in ([[1.0, 2.0]], [[2.0, 2.0]], [[0.5, 0.0], [-1.0, 3.0]]):
        for dtype in (torch.float64, torch.float32):
            arguments = {"x": torch.tensor(x, dtype=dtype)}
            if correction < 2:
                assert_agrees(ALL[name], arguments, {"correction": correction})
                continue
            with pytest.raises(ValueError, match=f"got {correction} where C = 2"):
                ALL[name].ours(**arguments, correction=correction)


def test_a_batch_of_one_entry_is_what_torch_refuses():
    """torch raises where a channel has one entry; the mathematics gives the bias, as here."""
    x, gain, bias = torch.randn(1, 3, 1), torch.randn(3), torch.randn(3)
    with pytest.raises(ValueError, match="more than 1 value"):
        batch_norm(x, gain, bias)
    assert torch.equal(ALL["batch_norm_biased"].ours(x, gain, bias)[0, :, 0], bias)


def test_examples_that_come_one_by_one_are_torchs():
    """In evaluation a batch may be of one example, or of none."""
    for n in (1, 0):
        arguments = with_statistics(drawing(4), (n, 3, 2))
        for dtype in TOLERANCES:
            rounded = {name: t.to(dtype) for name, t in arguments.items()}
            assert_agrees(EVALUATION, rounded)
