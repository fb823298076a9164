"""The whole network as it is emitted: block by block, every edge decided, no loop over a batch."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw

import derive
from generated import mlp as module
from generated.chain.mlp import mlp_atoms, mlp_chain
from generated.mlp import mlp, mlp_backward, mlp_forward

N, T, V, E, H = 6, 3, 7, 2, 5
EPS = 1e-5
SHAPES = {"C": (V, E), "W1": (T * E, H), "b1": (H,), "W2": (H, V), "b2": (V,)}
SHAPES |= {"bngain": (H,), "bnbias": (H,)}


def index(*shape, seed=1):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def arguments(dtype=torch.float64):
    parameters = [draw(*shape, seed=i).to(dtype) for i, shape in enumerate(SHAPES.values())]
    return [index(N, T), index(N, seed=2), *parameters]


def by_hand(contexts, labels, C, W1, b1, W2, b2, bngain, bnbias):
    hprebn = C[contexts].flatten(1) @ W1 + b1
    diff = hprebn - hprebn.mean(0)
    hpreact = bngain * diff / torch.sqrt(hprebn.var(0) + 1e-5) + bnbias
    return F.cross_entropy(torch.tanh(hpreact) @ W2 + b2, labels)


def test_value_and_gradients_are_those_of_the_network_by_hand():
    assert_same_gradients(mlp, by_hand, *arguments())


def test_the_backward_is_one_closed_form_for_each_block():
    lines = [line.strip() for line in str(derive.derive("mlp").closed_form).split("\n")]
    assert lines == [
        "dlogits = dloss*(probs - OneHot(labels, V))/N",
        "dh = Sum(W2*dlogits, V)",
        "dW2 = Sum(dlogits*h, N)",
        "db2 = Sum(dlogits, N)",
        "dhpreact = dh*(1 - h**2)",
        "dbngain = Sum(dhpreact*xhat, N)",
        "dbnbias = Sum(dhpreact, N)",
        "dhprebn = bngain*inv_std*(-dbngain*xhat/(N - 1) + dhpreact - dbnbias/N)",
        "dembcat = Sum(W1*dhprebn, H)",
        "dC = Sum(OneHot(contexts, V)*Unflatten(dembcat, K, into=(T, E)), N, T)",
        "dW1 = Sum(dhprebn*embcat, N)",
        "db1 = 0",
    ]


def test_it_is_proved_for_every_size():
    assert derive.derive("mlp").every_size


def test_the_embedding_is_an_index_and_an_index_add_and_nothing_loops():
    text = Path(module.__file__).read_text()
    functions = text[text.index("def mlp_forward") : text.index("class MLP(")]
    assert "emb = torch.nn.functional.embedding(contexts, C)" in functions
    assert len(re.findall(r"(?:new_zeros\(V, E\)),\s+contexts\.flatten\(\),", functions)) == 1
    assert not re.search(r"^ *for\b|\bwhile\b|one_hot", functions, re.M)


def test_every_gradient_has_the_shape_of_its_tensor():
    values = arguments()
    atoms = mlp_atoms(*values, EPS)
    chain = mlp_chain(torch.ones(()).double(), *values, EPS, atoms)
    named = dict(zip(("contexts", "labels", *SHAPES), values, strict=True)) | atoms._asdict()
    for field in chain._fields:
        assert getattr(chain, field).shape == named[field.removeprefix("d")].shape, field
    for shape, gradient in zip(SHAPES.values(), gradients_of(values), strict=True):
        assert tuple(gradient.shape) == shape


def gradients_of(values):
    """By the two plain functions."""
    named = dict(zip(SHAPES, values[2:], strict=True))
    _, *kept = mlp_forward(*values, EPS)
    read = [named[name] for name in ("C", "W1", "W2", "bngain")]
    return mlp_backward(torch.ones((), dtype=torch.float64), *values[:2], *read, *kept)


def changed(place: int, value) -> list:
    return [value if i == place else a for i, a in enumerate(arguments())]


@pytest.mark.parametrize(
    ("place", "value", "error", "says"),
    [
        (0, index(N, T) - 10, IndexError, r"mlp: \w+ holds -10, not in 0 \.\. \d"),
        (0, index(N, T) + 5, IndexError, r"mlp: \w+ holds \d+, not in 0 \.\. \d"),
        (1, index(N) - 7, IndexError, r"mlp: labels holds -7, not in 0 \.\. \d"),
        (1, index(N) * 100 + 7, IndexError, r"mlp: labels holds \d+, not in 0 \.\. \d"),
        (1, draw(N), TypeError, "mlp: labels must be int32 or int64, got torch.float64"),
        (3, draw(T * E + 1, H), ValueError, "K is not .* where K = 7, T = 3, E = 2"),
        (3, draw(H, T * E), ValueError, r"b1 must be \(H,\), got \(5,\)"),
        (4, draw(1, H), ValueError, r"b1 must be \(H,\), got \(1, 5\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(place, value, error, says):
    with pytest.raises(error, match=says):
        mlp(*changed(place, value))


def test_integers_of_other_formats_and_half_precision():
    values = arguments(torch.float16)
    values[:2] = [values[0].int(), values[1].int()]
    loss = mlp(*values)
    assert loss.dtype == torch.float16
    exact = mlp(*[v.double() if v.is_floating_point() else v for v in values])
    assert abs(loss.double() - exact) <= 2e-3 * exact


def test_it_compiles_as_one_graph():
    values = arguments()
    compiled = torch.compile(gradients_of, fullgraph=True, backend="eager")(values)
    for ours, plain in zip(compiled, gradients_of(values), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)
