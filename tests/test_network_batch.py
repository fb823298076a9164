"""The generated functions inside the network of names, on a real batch of 32 examples.

The network is typed by hand and differentiated by autograd in float64. The generated batch norm
gets its pre-activations and the gradient that arrives there, the generated softmax NLL its logits;
then both stand in the network together.
"""

import os
import random
from pathlib import Path

import pytest
import torch
from references import (
    assert_within,
    batch_norm_by_hand,
    doubled,
    largest,
    softmax_nll_by_hand,
)

from generated.batch_norm import batch_norm, batch_norm_backward, batch_norm_forward
from generated.softmax_nll import softmax_nll, softmax_nll_backward, softmax_nll_forward

pytestmark = pytest.mark.names
CONTEXT, EMBEDDING, HIDDEN, SYMBOLS, BATCH = 3, 10, 64, 27, 32
SEED = 2147483647
PARAMETERS = ("C", "W1", "b1", "W2", "b2", "bngain", "bnbias")
NAMES = Path(
    os.environ.get("GRADFORM_NAMES")
    or Path(__file__).resolve().parents[2] / "shared" / "data" / "names.txt"
)
DTYPES = (torch.float64, torch.float32)


def examples_of(words: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts (n, 3) and the symbol that follows each (n); '.' is 0 and ends every word."""
    contexts, labels = [], []
    for word in words:
        context = [0] * CONTEXT
        for symbol in [*(ord(letter) - ord("a") + 1 for letter in word), 0]:
            contexts.append(context)
            labels.append(symbol)
            context = [*context[1:], symbol]
    return torch.tensor(contexts), torch.tensor(labels)


def training_examples(path: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """The first 80 % of the shuffled words."""
    words = path.read_text().split()
    random.Random(42).shuffle(words)
    return examples_of(words[: int(0.8 * len(words))])


def drawn_parameters() -> dict[str, torch.Tensor]:
    """The parameters in float32, in the order in which they are drawn."""
    generator = torch.Generator().manual_seed(SEED)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    inputs = CONTEXT * EMBEDDING
    return {
        "C": normal(SYMBOLS, EMBEDDING),
        "W1": normal(inputs, HIDDEN) * (5 / 3) / inputs**0.5,
        "b1": normal(HIDDEN) * 0.1,
        "W2": normal(HIDDEN, SYMBOLS) * 0.1,
        "b2": normal(SYMBOLS) * 0.1,
        "bngain": normal(HIDDEN) * 0.1 + 1.0,
        "bnbias": normal(HIDDEN) * 0.1,
    }


def run_network(parameters, contexts, labels, normalise, loss_of) -> dict[str, torch.Tensor]:
    """The network with its normalisation and its loss left open; gradients are kept on the way."""
    C, W1, b1, W2, b2, bngain, bnbias = (parameters[name] for name in PARAMETERS)
    hprebn = C[contexts].view(len(contexts), -1) @ W1 + b1
    hpreact = normalise(hprebn, bngain, bnbias)
    logits = torch.tanh(hpreact) @ W2 + b2
    loss = loss_of(logits, labels)
    for tensor in (hprebn, hpreact, logits):
        tensor.retain_grad()
    loss.backward()
    return {"hprebn": hprebn, "hpreact": hpreact, "logits": logits, "loss": loss}


def leaves_of(parameters, dtype) -> dict[str, torch.Tensor]:
    return {name: p.to(dtype, copy=True).requires_grad_() for name, p in parameters.items()}


@pytest.fixture(
    scope="module",
    params=["words of our own", "names"],
)
def batch(request) -> tuple[torch.Tensor, torch.Tensor]:
    """The contexts and labels of 32 training examples."""
    path = Path(__file__).resolve().parents[1] / "examples" / "words.txt"
    if request.param == "names":
        path = NAMES
        if not path.is_file():
            pytest.skip(f"no names at {path}: set GRADFORM_NAMES to the file of names")
    contexts, labels = training_examples(path)
    generator = torch.Generator().manual_seed(SEED)
    chosen = torch.randint(len(labels), (BATCH,), generator=generator)
    return contexts[chosen], labels[chosen]


@pytest.mark.skipif(not NAMES.is_file(), reason=f"no names at {NAMES}: set GRADFORM_NAMES")
def test_the_names_give_the_published_number_of_examples():
    contexts, labels = training_examples(NAMES)
    assert tuple(contexts.shape) == (182_625, CONTEXT)
    assert tuple(labels.shape) == (182_625,)


def test_a_word_becomes_one_example_for_each_letter_and_one_for_its_end():
    contexts, labels = examples_of(["ab"])
    assert contexts.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2]]
    assert labels.tolist() == [1, 2, 0]


def test_the_network_has_4137_parameters():
    parameters = drawn_parameters()
    assert tuple(parameters) == PARAMETERS
    assert sum(p.numel() for p in parameters.values()) == 4137


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_on_the_pre_activations(batch, dtype):
    contexts, labels = batch
    leaves = leaves_of(drawn_parameters(), torch.float64)
    real = run_network(leaves, contexts, labels, batch_norm_by_hand, softmax_nll_by_hand)
    inputs = [t.detach().to(dtype) for t in (real["hprebn"], leaves["bngain"], leaves["bnbias"])]
    dy = real["hpreact"].grad.to(dtype)
    assert inputs[0].shape == (BATCH, HIDDEN)

    exact = [tensor.requires_grad_() for tensor in doubled(*inputs)]
    y = batch_norm_by_hand(*exact)
    y.backward(dy.double())
    expected = dict(zip(("dx", "dgain", "dbias"), (t.grad for t in exact), strict=True))

    found, *kept = batch_norm_forward(*inputs, 1e-5)
    assert_within(found, y.detach(), dtype, "hpreact")
    gradients = batch_norm_backward(dy, *inputs[:2], *kept)
    for (name, wanted), gradient in zip(expected.items(), gradients, strict=True):
        assert_within(gradient, wanted, dtype, name)
    if dtype == torch.float64:
        assert_within(expected["dx"], real["hprebn"].grad, dtype, "the reference of dhprebn")


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_nll_on_the_logits(batch, dtype):
    contexts, labels = batch
    leaves = leaves_of(drawn_parameters(), torch.float64)
    real = run_network(leaves, contexts, labels, batch_norm_by_hand, softmax_nll_by_hand)
    logits = real["logits"].detach().to(dtype)
    assert logits.shape == (BATCH, SYMBOLS)

    (exact,) = doubled(logits)
    loss = softmax_nll_by_hand(exact.requires_grad_(), labels)
    upstream = torch.tensor(0.6180339887, dtype=dtype)
    loss.backward(upstream.double())

    found, *kept = softmax_nll_forward(logits, labels)
    assert_within(found, loss.detach(), dtype, "loss")
    dlogits = softmax_nll_backward(upstream, logits, labels, *kept)
    assert_within(dlogits, exact.grad, dtype, "dlogits")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradients_of_all_parameters_pass_through_both(batch, dtype):
    contexts, labels = batch
    reference = leaves_of(drawn_parameters(), torch.float64)
    ours = leaves_of(drawn_parameters(), dtype)
    real = run_network(reference, contexts, labels, batch_norm_by_hand, softmax_nll_by_hand)
    run = run_network(ours, contexts, labels, batch_norm, softmax_nll)

    # b1 stands in front of the normalisation: its gradient is zero, a column sum that cancels.
    scales = {"b1": BATCH * largest(real["hprebn"].grad)}
    for name in ("hprebn", "hpreact", "logits"):
        assert_within(run[name].grad, real[name].grad, dtype, f"d{name}")
    for name in PARAMETERS:
        assert_within(ours[name].grad, reference[name].grad, dtype, f"d{name}", scales.get(name))
    assert_within(run["loss"].detach(), real["loss"].detach(), dtype, "loss")
