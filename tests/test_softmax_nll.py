"""The generated softmax NLL: its five functions against references typed by hand, and its edges."""

import sys

import pytest
import torch
import torch.nn.functional as F
from references import (
    SIZES,
    SoftmaxNLLCase,
    assert_fields_within,
    assert_leaves_alone,
    assert_rounded_once,
    assert_within,
    doubled,
    gradients_of_atoms,
    largest,
    softmax_nll_atoms_by_hand,
    softmax_nll_by_hand,
    softmax_nll_case,
    value_and_gradients,
)

import generated
from generated.chain.softmax_nll import softmax_nll_atoms, softmax_nll_chain
from generated.softmax_nll import softmax_nll, softmax_nll_backward, softmax_nll_forward

DTYPES = (torch.float64, torch.float32)
HALVES = (torch.float16, torch.bfloat16)
TAKE_INPUTS = (softmax_nll, softmax_nll_forward, softmax_nll_atoms)  # the first one checks them


def by_plain_functions(case) -> tuple[torch.Tensor, torch.Tensor]:
    """loss and dlogits of the two plain functions, of lines or on kernels."""
    module = sys.modules["generated.softmax_nll"]
    loss, *kept = module.softmax_nll_forward(case.logits, case.labels)
    return loss, module.softmax_nll_backward(case.dloss, case.logits, case.labels, *kept)


def differentiated(case) -> tuple[torch.Tensor, torch.Tensor]:
    """loss and dlogits of the differentiable function."""
    loss, (dlogits,) = value_and_gradients(
        lambda logits: softmax_nll(logits, case.labels), [case.logits], case.dloss
    )
    return loss, dlogits


def assert_agrees_with_autograd(case, dtype) -> None:
    """The forward, the backward and the differentiable function, against the float64 reference."""
    expected = case.expected()
    for loss, dlogits in (by_plain_functions(case), differentiated(case)):
        assert_within(loss, expected["loss"], dtype, "loss")
        assert_within(dlogits, expected["dlogits"], dtype, "dlogits")


# The values and the gradients


@pytest.mark.parametrize("n", [1, 5, 32])
def test_the_two_references_agree(n):
    case = softmax_nll_case(n, 7)
    loss, (dlogits,) = value_and_gradients(
        lambda logits: softmax_nll_atoms_by_hand(logits, case.labels)["loss"],
        [case.logits],
        case.dloss,
    )
    assert_within(loss, case.expected()["loss"], torch.float64, "loss")
    assert_within(dlogits, case.expected()["dlogits"], torch.float64, "dlogits")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "c"), [(1, 4), *SIZES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_value_and_gradient_agree_with_autograd(dtype, n, c, seed):
    assert_agrees_with_autograd(softmax_nll_case(n, c, dtype, seed=seed), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_may_have_any_layout(dtype):
    case = softmax_nll_case(6, 4, dtype)
    wide = softmax_nll_case(12, 8, dtype, seed=3)
    layouts = (
        case.logits.t().contiguous().t(),
        wide.logits[::2, 1::2],
        case.logits[:1].expand(6, 4),
    )
    for logits in layouts:
        assert not logits.is_contiguous()
        assert_agrees_with_autograd(SoftmaxNLLCase(logits, case.labels, case.dloss), dtype)


def test_labels_may_have_any_layout():
    case = softmax_nll_case(6, 4)
    for labels in (case.labels.repeat_interleave(2)[::2], torch.tensor([2]).expand(6)):
        assert not labels.is_contiguous()
        assert_agrees_with_autograd(SoftmaxNLLCase(case.logits, labels, case.dloss), torch.float64)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_labels_may_have_either_dtype_of_an_index(dtype):
    case = softmax_nll_case(8, 5)
    narrow = SoftmaxNLLCase(case.logits, case.labels.to(dtype), case.dloss)
    assert_agrees_with_autograd(narrow, torch.float64)
    atoms = softmax_nll_atoms(narrow.logits, narrow.labels)
    chain = softmax_nll_chain(narrow.dloss, narrow.logits, narrow.labels, atoms)
    assert_within(chain.dlogits, case.expected()["dlogits"], torch.float64, "dlogits")


# The atoms and the chain


@pytest.mark.parametrize(("n", "c"), [(1, 4), *SIZES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_atom_agrees_with_the_reference(dtype, n, c):
    case = softmax_nll_case(n, c, dtype, seed=n)
    by_hand = softmax_nll_atoms_by_hand(*doubled(case.logits), case.labels)
    assert_fields_within(softmax_nll_atoms(case.logits, case.labels), by_hand, dtype)


@pytest.mark.parametrize(("n", "c"), [(1, 4), *SIZES])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_chain_gives_the_gradient_of_every_atom(dtype, n, c):
    case = softmax_nll_case(n, c, dtype, seed=n)
    (logits,) = doubled(case.logits)
    by_hand = softmax_nll_atoms_by_hand(logits.requires_grad_(), case.labels)
    expected = gradients_of_atoms(by_hand, {"logits": logits}, case.dloss.double())

    atoms = softmax_nll_atoms(case.logits, case.labels)
    chain = softmax_nll_chain(case.dloss, case.logits, case.labels, atoms)
    # The gradient of the row maximum is exactly zero: what is left is the rounding of its terms.
    scales = {"dlogit_maxes": largest(expected["dnorm_logits"])}
    assert_fields_within(chain, expected, dtype, scales)


def test_the_chain_routes_the_gradient_of_a_row_maximum_to_the_first_of_equals():
    """That gradient is zero in truth, and shows only where the atoms do not belong together."""
    logits = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, -1.0, 2.0], [0.0, 1.0, 4.0, 4.0]])
    logits = logits.double()
    labels = torch.tensor([2, 1, 0])
    atoms = softmax_nll_atoms(logits, labels)
    atoms = atoms._replace(counts_sum_inv=2 * atoms.counts_sum_inv)
    chain = softmax_nll_chain(torch.tensor(0.7).double(), logits, labels, atoms)

    maxes = -chain.dnorm_logits.sum(1, keepdim=True)
    assert maxes.abs().min() > 0.01
    assert_within(chain.dlogit_maxes, maxes, torch.float64, "dlogit_maxes")
    routed = torch.zeros(3, 4).double()
    for row, first in enumerate((1, 0, 2)):
        routed[row, first] = maxes[row, 0]
    assert_within(chain.dlogits - chain.dnorm_logits, routed, torch.float64, "what is routed")


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_in_the_row_maximum_do_not_disturb(dtype):
    logits = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]], dtype=dtype)
    case = SoftmaxNLLCase(logits, torch.tensor([2, 1]), torch.tensor(0.7, dtype=dtype))
    assert_agrees_with_autograd(case, dtype)


# Facts


@pytest.mark.parametrize(("n", "c"), SIZES)
def test_rows_of_dlogits_sum_to_zero(n, c):
    case = softmax_nll_case(n, c)
    _, dlogits = differentiated(case)
    zeros = torch.zeros(n).double()
    assert_within(dlogits.sum(1), zeros, torch.float64, "the sums", largest(dlogits))


def test_gradcheck_agrees():
    case = softmax_nll_case(5, 4)
    assert torch.autograd.gradcheck(
        lambda logits: softmax_nll(logits, case.labels),
        [case.logits.requires_grad_()],
        atol=1e-7,
        rtol=1e-6,
    )


def test_the_plain_functions_are_those_of_the_differentiable_one():
    case = softmax_nll_case(9, 4, torch.float32)
    with generated.use("torch"):  # kernels compute a loss at once with its gradient: other bits
        assert all(map(torch.equal, differentiated(case), by_plain_functions(case)))


def test_no_function_changes_its_arguments():
    case = softmax_nll_case(6, 4)
    for function in TAKE_INPUTS:
        assert_leaves_alone(function, case.logits, case.labels)
    _, *kept = softmax_nll_forward(case.logits, case.labels)
    atoms = softmax_nll_atoms(case.logits, case.labels)
    assert_leaves_alone(softmax_nll_backward, case.dloss, case.logits, case.labels, *kept)
    assert_leaves_alone(softmax_nll_chain, case.dloss, case.logits, case.labels, atoms)

    leaf = case.logits.clone().requires_grad_()
    loss = softmax_nll(leaf, case.labels)
    assert_leaves_alone(lambda *_: loss.backward(case.dloss), case.dloss, leaf, case.labels)


# Logits far out


@pytest.mark.parametrize("offset", [1e4, -1e4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_around_1e4_keep_the_tolerance(dtype, offset):
    assert_agrees_with_autograd(softmax_nll_case(32, 27, dtype, offset=offset), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_1e4_apart_stay_finite(dtype):
    case = softmax_nll_case(8, 5, dtype)
    case.logits[::2, 1] = 1e4
    case.logits[1::2, 3] = -1e4
    assert_agrees_with_autograd(case, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_label_200_below_the_maximum_has_a_finite_loss_and_gradient(dtype):
    """The loss through log(probs) is infinite in float32 here, and its gradient NaN."""
    case = softmax_nll_case(6, 5, dtype)
    rows = torch.arange(6)
    case.logits[rows, case.labels] = case.logits.amax(1) - 200
    assert case.expected()["loss"] > 190
    assert_agrees_with_autograd(case, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_of_minus_infinity_beside_the_label_have_no_gradient(dtype):
    case = softmax_nll_case(6, 5, dtype)
    masked = (case.labels + 2) % 5
    rows = torch.arange(6)
    case.logits[rows, masked] = -torch.inf
    case.logits[0, [c for c in range(5) if c != case.labels[0]]] = -torch.inf
    assert_agrees_with_autograd(case, dtype)
    assert torch.equal(differentiated(case)[1][rows, masked], torch.zeros(6, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_label_of_probability_zero_has_an_infinite_loss_and_a_finite_gradient(dtype):
    case = softmax_nll_case(6, 5, dtype)
    case.logits[torch.arange(6), case.labels] = -torch.inf
    loss, dlogits = differentiated(case)
    expected = F.softmax(case.logits.double(), 1) - F.one_hot(case.labels, 5)
    assert loss == torch.inf
    assert softmax_nll_forward(case.logits, case.labels)[0] == torch.inf
    assert_within(dlogits, expected * case.dloss.double() / 6, dtype, "dlogits")


# float16 and bfloat16


@pytest.mark.parametrize(("n", "c"), [(5, 7), (4096, 3), (3, 4096)])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_is_reduced_in_float32_and_rounded_once(dtype, n, c):
    case = softmax_nll_case(n, c, dtype)
    expected = case.expected()
    loss, dlogits = differentiated(case)
    assert_rounded_once(loss, expected["loss"], dtype, "loss")
    assert_rounded_once(dlogits, expected["dlogits"], dtype, "dlogits")
    loss, dlogits = by_plain_functions(case)  # whose gradient autograd would round
    assert_rounded_once(loss, expected["loss"], dtype, "loss")
    assert_within(dlogits, expected["dlogits"], torch.float32, "dlogits")


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_atoms_and_chain_are_of_float32(dtype):
    case = softmax_nll_case(64, 5, dtype)
    by_hand = softmax_nll_atoms_by_hand(*doubled(case.logits), case.labels)
    atoms = softmax_nll_atoms(case.logits, case.labels)
    assert_fields_within(atoms, by_hand, torch.float32)
    chain = softmax_nll_chain(case.dloss, case.logits, case.labels, atoms)
    assert_within(chain.dlogits, case.expected()["dlogits"], torch.float32, "dlogits")


# Edges


@pytest.mark.parametrize("n", [3, 0])
def test_no_classes_are_refused(n):
    logits, labels = torch.randn(n, 0), torch.zeros(n, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"\bC is 0"):
        softmax_nll(logits, labels)


def test_the_mean_of_no_rows_is_nan():
    logits, labels = torch.randn(0, 4, requires_grad=True), torch.zeros(0, dtype=torch.int64)
    loss = softmax_nll(logits, labels)
    loss.backward()
    assert loss.isnan() and logits.grad.shape == (0, 4)


@pytest.mark.parametrize("label", [-1, -100, 5, 2**31])
def test_a_label_out_of_range_is_named(label):
    case = softmax_nll_case(4, 5)
    case.labels[2] = label
    with pytest.raises((IndexError, RuntimeError), match=rf"labels holds {label}, not in "):
        softmax_nll(case.logits, case.labels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool, torch.complex64])
def test_labels_that_are_not_integers_are_refused(dtype):
    case = softmax_nll_case(4, 5)
    with pytest.raises(TypeError, match="softmax_nll: labels must be int32 or int64"):
        softmax_nll(case.logits, case.labels.to(dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_logits_that_are_not_floating_point_are_named(dtype):
    case = softmax_nll_case(4, 5)
    with pytest.raises(TypeError, match=r"\blogits\b.*floating"):
        softmax_nll(case.logits.to(dtype), case.labels)


@pytest.mark.parametrize(
    ("logits", "labels", "name"),
    [
        ((4,), (4,), "logits"),
        ((4, 5, 1), (4,), "logits"),
        ((4, 5), (5,), "labels"),
        ((4, 5), (1,), "labels"),
        ((4, 5), (4, 1), "labels"),
        ((4, 5), (), "labels"),
    ],
)
def test_inputs_whose_shapes_do_not_fit_are_named(logits, labels, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        softmax_nll(torch.randn(logits), torch.zeros(labels, dtype=torch.int64))


def test_the_upstream_gradient_is_a_factor_and_not_taken_for_one():
    case = softmax_nll_case(6, 4)
    _, (plain,) = value_and_gradients(
        lambda logits: softmax_nll_by_hand(logits, case.labels),
        [case.logits],
        torch.tensor(1.0).double(),
    )
    leaf = case.logits.clone().requires_grad_()
    (-3 * softmax_nll(leaf, case.labels)).backward()
    assert_within(leaf.grad, -3 * plain, torch.float64, "dlogits")
