"""The generated batch norm: its five functions against references typed by hand, and its edges."""

import pytest
import torch
from references import (
    SIZES,
    UPSTREAMS,
    assert_fields_within,
    assert_leaves_alone,
    assert_rounded_once,
    assert_within,
    batch_norm_atoms_by_hand,
    batch_norm_by_hand,
    batch_norm_case,
    batch_norm_through_torch,
    doubled,
    gradients_of_atoms,
    largest,
    torch_batch_norm,
    value_and_gradients,
)

from generated.batch_norm import batch_norm, batch_norm_backward, batch_norm_forward
from generated.chain.batch_norm import batch_norm_atoms, batch_norm_chain

GRADIENTS = ("dx", "dgain", "dbias")
DTYPES = (torch.float64, torch.float32)
HALVES = (torch.float16, torch.bfloat16)
EPS = 1e-5


def by_plain_functions(case, eps=EPS) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """y and the gradients of the two plain functions."""
    y, *kept = batch_norm_forward(*case.inputs, eps)
    found = batch_norm_backward(case.dy, case.x, case.gain, *kept)
    return y, dict(zip(GRADIENTS, found, strict=True))


# The comparison and the references themselves


@pytest.mark.parametrize(
    ("got", "reference"),
    [
        pytest.param(torch.zeros(3), torch.zeros(1, 3).double(), id="a shape that broadcasts"),
        pytest.param(torch.zeros(3), torch.zeros(3), id="a reference of float32"),
        pytest.param(torch.zeros(3).double(), torch.zeros(3).double(), id="a result of float64"),
        pytest.param(torch.tensor([1.0, 1.00001]), torch.ones(2).double(), id="a difference"),
        pytest.param(torch.tensor([1.0, torch.nan]), torch.ones(2).double(), id="a NaN"),
    ],
)
def test_the_comparison_refuses(got, reference):
    with pytest.raises(AssertionError):
        assert_within(got, reference, torch.float32, "a result")


@pytest.mark.parametrize("n", [2, 5, 32])
def test_the_reference_agrees_with_torchs_own_batch_norm(n):
    case = batch_norm_case(n, 7)
    mine = value_and_gradients(batch_norm_by_hand, case.inputs, case.dy)
    torchs = value_and_gradients(batch_norm_through_torch, case.inputs, case.dy)
    for a, b in zip((mine[0], *mine[1]), (torchs[0], *torchs[1]), strict=True):
        assert_within(a, b, torch.float64, "the reference", case.size_of_the_terms_of_dx())


# The values and the gradients


@pytest.mark.parametrize("eps", [1e-5, 0.1, 1.0])
@pytest.mark.parametrize(("n", "c"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_value_and_gradients_agree_with_autograd(dtype, n, c, eps):
    case = batch_norm_case(n, c, dtype, seed=n)
    expected = case.expected(eps)
    cancels = n == 2 and eps < 1
    scales = {"dx": case.size_of_the_terms_of_dx(eps)} if cancels else {}

    y, gradients = value_and_gradients(
        lambda *inputs: batch_norm(*inputs, eps=eps), case.inputs, case.dy
    )
    by_name = dict(zip(GRADIENTS, gradients, strict=True))
    for value, found in ((y, by_name), by_plain_functions(case, eps)):
        assert_within(value, expected["y"], dtype, "y")
        for name, gradient in found.items():
            assert_within(gradient, expected[name], dtype, name, scales.get(name))


def test_eps_is_the_fourth_argument_and_1e_5_by_default():
    case = batch_norm_case(5, 3)
    x = case.x * 1e-3  # a variance as small as eps
    for scalars, eps in (((), 1e-5), ((0.1,), 0.1)):
        expected = batch_norm_by_hand(x, case.gain, case.bias, eps)
        found = batch_norm(x, case.gain, case.bias, *scalars)
        assert_within(found, expected, torch.float64, "y")


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_upstream_may_have_any_layout(dtype, upstream):
    case = batch_norm_case(8, 5, dtype, seed=1, upstream=upstream)
    assert case.dy.is_contiguous() == (upstream == "contiguous")
    assert (0 in case.dy.stride()) == upstream.startswith("stride 0")
    expected = case.expected()
    # An upstream gradient that is the same in every row cancels in dx, not in its terms.
    scales = {"dx": case.size_of_the_terms_of_dx(), "dgain": largest(case.dy) * 8}
    if upstream in ("contiguous", "transposed"):
        scales = {}
    _, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    for name, gradient in zip(GRADIENTS, gradients, strict=True):
        assert_within(gradient, expected[name], dtype, name, scales.get(name))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_may_have_any_layout(dtype):
    case = batch_norm_case(6, 4, dtype)
    wide = batch_norm_case(12, 8, dtype, seed=3)
    layouts = {
        "transposed": (case.x.t().contiguous().t(), case.gain, case.bias),
        "every second": (wide.x[::2, 1::2], wide.gain[::2], wide.bias[1::2]),
        "expanded": (case.x[:, :1].expand(6, 4), case.gain[:1].expand(4), case.bias[:1].expand(4)),
    }
    for layout, inputs in layouts.items():
        y, gradients = value_and_gradients(
            lambda *i: batch_norm(*i), [t.detach() for t in inputs], case.dy
        )
        exact_y, exact = value_and_gradients(batch_norm_by_hand, doubled(*inputs), case.dy.double())
        assert_within(y, exact_y, dtype, f"y, {layout}")
        for name, gradient, reference in zip(GRADIENTS, gradients, exact, strict=True):
            assert_within(gradient, reference, dtype, f"{name}, {layout}")


def test_frozen_inputs_do_not_disturb_the_others():
    case = batch_norm_case(7, 3)
    expected = case.expected()
    for position, name in enumerate(GRADIENTS):
        inputs = [t.clone().requires_grad_(i == position) for i, t in enumerate(case.inputs)]
        batch_norm(*inputs).backward(case.dy)
        assert_within(inputs[position].grad, expected[name], torch.float64, name)
        assert sum(t.grad is not None for t in inputs) == 1


# The atoms and the chain


@pytest.mark.parametrize(("n", "c"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_atom_agrees_with_the_reference(dtype, n, c):
    case = batch_norm_case(n, c, dtype, seed=n)
    by_hand = batch_norm_atoms_by_hand(*doubled(*case.inputs))
    assert_fields_within(batch_norm_atoms(*case.inputs, EPS), by_hand, dtype)


@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize(("n", "c"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_chain_gives_the_gradient_of_every_atom(dtype, n, c, eps):
    case = batch_norm_case(n, c, dtype, seed=n)
    leaves = [tensor.requires_grad_() for tensor in doubled(*case.inputs)]
    by_hand = batch_norm_atoms_by_hand(*leaves, eps=eps)
    inputs = dict(zip(("x", "gain", "bias"), leaves, strict=True))
    expected = gradients_of_atoms(by_hand, inputs, case.dy.double())

    atoms = batch_norm_atoms(*case.inputs, eps)
    chain = batch_norm_chain(case.dy, *case.inputs, eps, atoms)
    scales = {"dmean": largest(expected["ddiff"])}  # a column sum that may cancel
    if n == 2:
        scales["dx"] = case.size_of_the_terms_of_dx(eps)
    assert_fields_within(chain, expected, dtype, scales)


# Facts


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_columns_of_dx_sum_to_zero(upstream):
    case = batch_norm_case(32, 5, upstream=upstream)
    sums = by_plain_functions(case)[1]["dx"].sum(0)
    scale = 32 * case.size_of_the_terms_of_dx()
    assert_within(sums, torch.zeros(5).double(), torch.float64, "the sums", scale)


@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_gradcheck_agrees(eps):
    inputs = [tensor.requires_grad_() for tensor in batch_norm_case(5, 3).inputs]
    assert torch.autograd.gradcheck(
        lambda x, gain, bias: batch_norm(x, gain, bias, eps), inputs, atol=1e-7, rtol=1e-6
    )


def test_the_plain_functions_are_those_of_the_differentiable_one():
    case = batch_norm_case(9, 4, torch.float32)
    y, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    plain, by_name = by_plain_functions(case)
    assert torch.equal(plain, y) and all(map(torch.equal, by_name.values(), gradients))


def test_no_function_changes_its_arguments():
    case = batch_norm_case(6, 4)
    for function in (batch_norm, batch_norm_forward, batch_norm_atoms):
        assert_leaves_alone(function, *case.inputs, EPS)
    _, *kept = batch_norm_forward(*case.inputs, EPS)
    atoms = batch_norm_atoms(*case.inputs, EPS)
    assert_leaves_alone(batch_norm_backward, case.dy, case.x, case.gain, *kept)
    assert_leaves_alone(batch_norm_chain, case.dy, *case.inputs, EPS, atoms)

    leaves = [tensor.clone().requires_grad_() for tensor in case.inputs]
    y = batch_norm(*leaves)
    assert_leaves_alone(lambda *_: y.backward(case.dy), case.dy, *leaves)


# Columns far from zero


@pytest.mark.parametrize(("n", "c"), SIZES)
def test_float32_stays_within_tolerance_at_column_offsets_of_1e4(n, c):
    case = batch_norm_case(n, c, torch.float32, seed=n, offset=1e4)
    expected = case.expected()
    scales = {"dx": case.size_of_the_terms_of_dx()} if n == 2 else {}
    y, gradients = by_plain_functions(case)
    assert_within(y, expected["y"], torch.float32, "y")
    for name, gradient in gradients.items():
        assert_within(gradient, expected[name], torch.float32, name, scales.get(name))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "c"), [size for size in SIZES if size[0] >= 5])
def test_float32_is_at_least_as_accurate_as_torchs_batch_norm_at_offsets_of_1e4(n, c, seed):
    """Each against its own float64, as torch's variance is the biased one; dbias is one sum."""

    def errors(function, reference):
        y, gradients = value_and_gradients(function, case.inputs, case.dy)
        exact_y, exact = value_and_gradients(reference, doubled(*case.inputs), case.dy.double())
        pairs = zip(("y", *GRADIENTS), (y, *gradients), (exact_y, *exact), strict=True)
        return {name: largest(a.double() - b) / largest(b) for name, a, b in pairs}

    case = batch_norm_case(n, c, torch.float32, seed=seed, offset=1e4)
    ours = errors(batch_norm, batch_norm_by_hand)
    torchs = errors(torch_batch_norm, torch_batch_norm)
    for name in ("y", "dx", "dgain"):
        assert ours[name] <= torchs[name], name


# float16 and bfloat16


@pytest.mark.parametrize("n", [5, 4096])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_reduced_in_float32_and_rounded_once(dtype, n):
    case = batch_norm_case(n, 3, dtype, offset=4.0)
    expected = case.expected()
    plain, by_name = by_plain_functions(case)  # whose gradients autograd rounds
    y, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    assert_rounded_once(y, expected["y"], dtype, "y")
    assert torch.equal(plain, y)
    for name, gradient in zip(GRADIENTS, gradients, strict=True):
        assert_rounded_once(gradient, expected[name], dtype, name)
        assert torch.equal(by_name[name].to(dtype), gradient)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_atoms_and_chain_are_of_float32(dtype):
    case = batch_norm_case(64, 3, dtype)
    by_hand = batch_norm_atoms_by_hand(*doubled(*case.inputs))
    atoms = batch_norm_atoms(*case.inputs, EPS)
    assert_fields_within(atoms, by_hand, torch.float32)
    chain = batch_norm_chain(case.dy, *case.inputs, EPS, atoms)
    for name in GRADIENTS:
        assert_within(getattr(chain, name), case.expected()[name], torch.float32, name)


# Edges


def test_one_row_has_no_unbiased_variance():
    case = batch_norm_case(1, 3)
    with pytest.raises(ValueError, match=r"var.*N - 1 is 0"):
        batch_norm(*case.inputs)


def test_of_no_rows_nothing_is_normalised():
    case = batch_norm_case(0, 3)
    y, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    assert y.shape == (0, 3)
    assert gradients[0].shape == (0, 3) and not torch.stack(gradients[1:]).any()
    assert batch_norm_forward(*case.inputs, EPS)[0].shape == (0, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_constant_column_gives_the_bias_and_finite_gradients(dtype):
    case = batch_norm_case(6, 3, dtype)
    case.x[:, 1] = 1234.5
    expected = case.expected()
    y, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    assert torch.equal(y[:, 1], case.bias[1].expand(6))
    assert_within(y, expected["y"], dtype, "y")
    assert gradients[1][1] == 0
    for name, gradient in zip(GRADIENTS, gradients, strict=True):
        assert_within(gradient, expected[name], dtype, name)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.complex64])
def test_inputs_that_are_not_floating_point_are_refused(dtype):
    inputs = [t.to(dtype) for t in batch_norm_case(4, 3).inputs]
    with pytest.raises(TypeError, match="must be floating point"):
        batch_norm(*inputs)


@pytest.mark.parametrize(
    ("position", "shape", "name"),
    [
        (0, (4,), "x"),
        (0, (4, 3, 1), "x"),
        (1, (4,), "gain"),
        (1, (1,), "gain"),
        (1, (1, 3), "gain"),
        (1, (), "gain"),
        (2, (4,), "bias"),
        (2, (1, 3), "bias"),
        (2, (4, 3), "bias"),
    ],
)
def test_inputs_whose_shapes_do_not_fit_are_named(position, shape, name):
    inputs = list(batch_norm_case(4, 3).inputs)
    inputs[position] = torch.randn(shape, dtype=torch.float64)
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        batch_norm(*inputs)


def test_no_columns_give_no_columns():
    case = batch_norm_case(4, 0)
    y, gradients = value_and_gradients(batch_norm, case.inputs, case.dy)
    assert [tuple(t.shape) for t in (y, *gradients)] == [(4, 0), (4, 0), (0,), (0,)]
