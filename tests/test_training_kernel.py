"""A step of training in one call: the parameters arrive where autograd's arrive, whatever the sizes
and however the network is written; what does not fit changes nothing.
"""

import os
import re
import shutil
import sys
from importlib import import_module

import pytest
import torch
from forwards import HEAD

from codegen.commands.cli import gradform
from codegen.driver.lean import generate
from codegen.targets.languages import kernels as languages
from derive import forward_from
from derive.language.errors import UnprovedError
from generated.chain.mlp import mlp_atoms
from generated.kernels import _building
from generated.kernels.mlp import training_step

pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)


def drawn(generator, *shape, dtype=torch.float64):
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def network(symbols, context, features, hidden, examples, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    data = {
        "contexts": torch.randint(symbols, (examples, context), generator=g),
        "labels": torch.randint(symbols, (examples,), generator=g),
    }
    shapes = {
        "C": (symbols, features),
        "W1": (context * features, hidden),
        "b1": (hidden,),
        "W2": (hidden, symbols),
        "b2": (symbols,),
        "bngain": (hidden,),
        "bnbias": (hidden,),
    }
    return data, {name: drawn(g, *shape, dtype=dtype) for name, shape in shapes.items()}


def by_autograd(function, data, parameters, picks, rate, **numbers):
    """The loss and the parameters after a step."""
    leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
    loss = function(**{name: t[picks] for name, t in data.items()}, **leaves, **numbers)
    found = torch.autograd.grad(loss, [*leaves.values()])
    after = {
        name: (p - rate * d).detach() for (name, p), d in zip(leaves.items(), found, strict=True)
    }
    return loss.item(), after


def assert_steps_agree(make, function, data, parameters, batch, tolerance, **numbers):
    """Three steps, each from where the one before has arrived."""
    g = torch.Generator().manual_seed(5)
    own = {name: p.clone() for name, p in parameters.items()}
    step = make(**data, **own, batch=batch, **numbers)
    for rate in (0.1, 0.5, 2.0):
        picks = torch.randint(len(next(iter(data.values()))), (batch,), generator=g)
        loss, parameters = by_autograd(function, data, parameters, picks, rate, **numbers)
        assert step(picks, rate) == pytest.approx(loss, rel=tolerance)
        for name, expected in parameters.items():
            scale = expected.abs().max().clamp(min=1)
            assert ((own[name] - expected).abs().max() / scale).item() < tolerance, name


def by_atoms(**arguments):
    return mlp_atoms(**arguments).loss


@pytest.mark.parametrize(
    ("sizes", "batch"),
    [
        ((27, 3, 10, 200), 32),
        ((5, 1, 3, 7), 2),
        ((9, 2, 1, 1), 3),
        ((8, 4, 4, 24), 17),
        ((33, 2, 5, 25), 8),
        ((2, 3, 7, 9), 50),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)], ids=str
)
def test_the_network_of_names_steps_as_by_autograd(sizes, batch, dtype, tolerance):
    data, parameters = network(*sizes, examples=60, dtype=dtype)
    assert_steps_agree(training_step, by_atoms, data, parameters, batch, tolerance, eps=1e-3)


NETWORKS = {
    "weights first, a vector of them": """
class Net(Forward):
    W = Input(K, H)
    v = Input(H)
    x = Input(N, K)
    target = Input(N)
    h = tanh(Sum(x * W, K))
    y = Sum(h * v, H)
    error2 = (y - target) ** 2
    loss = Sum(error2, N) / N
""",
    "labels, two layers, a softplus": """
class Net(Forward):
    x = Input(N, K)
    labels = Label(N)
    W = Input(H, K)
    b = Input(H)
    U = Input(C, H)
    a = Sum(x * W, K) + b
    h = log(1 + exp(a))
    logits = Sum(h * U, H)
    loss = Sum(log(Sum(exp(logits), C)) - Sum(OneHot(labels, C) * logits, C), N) / N
""",
    "numbers, and a parameter of one entry": """
class Net(Forward):
    x = Input(N, K)
    target = Input(N)
    W = Input(K, H)
    v = Input(H)
    rows = Input()
    zeta = Scalar(0.5)
    alpha = Scalar(2.0)
    h = tanh(Sum(x * W, K) * alpha)
    y = Sum(h * v, H) + rows
    e = (y - target) ** 2 * zeta
    loss = Sum(e, N) / N
""",
    "attention between the rows of an example": """
class Net(Forward):
    x = Input(N, T, K)
    target = Input(N, T)
    Q = Input(K, H)
    R = Input(K, H)
    v = Input(K)
    q = Sum(x * Q, K)
    r = Rename(Sum(x * R, K), T, S)
    scores = exp(Sum(q * r, H))
    probs = scores / Sum(scores, S)
    values = Rename(Sum(x * v, K), T, S)
    y = Sum(probs * values, S)
    error2 = (y - target) ** 2
    loss = Sum(Sum(error2, T), N) / N
""",
}
DIMENSIONS = {"K": 5, "H": 9, "C": 4, "T": 3}
AXES = """
N, C, H, K = Axis("N"), Axis("C"), Axis("H"), Axis("K")
T, S = Axis("T"), Axis("S")
"""


@pytest.mark.parametrize("body", NETWORKS.values(), ids=NETWORKS.keys())
def test_a_network_of_the_readers_own_has_a_step(body, tmp_path, monkeypatch):
    file, package = tmp_path / "net.py", f"own_{abs(hash(body))}"
    file.write_text(HEAD + AXES + body)
    out = tmp_path / package
    assert gradform([str(file), "--target", "cpp", "--out", str(out)]) == 0
    monkeypatch.syspath_prepend(tmp_path)
    module, kernels = (import_module(f"{package}.{name}") for name in ("net", "kernels.net"))
    g = torch.Generator().manual_seed(2)
    layouts = dict(re.findall(r"(\w+) = (?:Input|Label)\((.*?)\)", body))
    data, parameters = {}, {}
    for name, layout in layouts.items():
        shape = [{"N": 40, **DIMENSIONS}[axis] for axis in re.findall(r"\w", layout)]
        if name == "labels":
            data[name] = torch.randint(DIMENSIONS["C"], shape, generator=g)
        else:
            (data if layout.startswith("N") else parameters)[name] = drawn(g, *shape)
    assert_steps_agree(kernels.training_step, module.net, data, parameters, 6, 1e-11)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]


def test_a_wrong_step_is_not_written(tmp_path):
    language = languages["cpp"]
    file = tmp_path / "net.py"
    file.write_text(HEAD + AXES + NETWORKS["weights first, a vector of them"])

    class Changed(type(language)):
        def texts(self, pairs, module):
            kernels, wrapper, step = super().texts(pairs, module)
            return kernels, wrapper, step.replace("Real(given_rate)", "Real(given_rate * 1.01)")

    with pytest.raises(UnprovedError, match=r"the kernels differ from the torch code"):
        generate(forward_from(file), kernels=Changed())


@pytest.mark.parametrize("name", ["softmax_nll", "linear", "lstm_cell", "mse", "cross_entropy"])
def test_what_is_no_network_has_no_step(name):
    assert not hasattr(import_module(f"generated.kernels.{name}"), "training_step")


def test_what_does_not_fit_is_refused_and_changes_nothing():
    data, parameters = network(6, 2, 3, 5, examples=20)
    before = {name: p.clone() for name, p in parameters.items()}
    step = training_step(**data, **parameters, batch=4)
    with pytest.raises(IndexError):
        step(torch.tensor([0, 1, 2, 20]), 0.1)
    with pytest.raises(IndexError):
        step(torch.tensor([0, 1, 2, -1]), 0.1)
    with pytest.raises(ValueError, match="must be contiguous of shape"):
        step(torch.tensor([0, 1, 2]), 0.1)
    with pytest.raises(ValueError, match="must be contiguous of shape"):
        step(torch.arange(8)[::2], 0.1)
    with pytest.raises(TypeError, match="int64"):
        step(torch.zeros(4), 0.1)
    data["labels"][7] = 6
    with pytest.raises(IndexError):
        step(torch.tensor([0, 1, 2, 7]), 0.1)
    assert all(torch.equal(before[name], p) for name, p in parameters.items())
    step(torch.tensor([0, 1, 2, 3]), 0.1)
    assert not torch.equal(before["W1"], parameters["W1"])


def test_what_cannot_be_changed_where_it_lies_is_refused():
    data, parameters = network(6, 2, 3, 5, examples=20)
    with pytest.raises(ValueError, match="W2 must be a plain contiguous tensor on the CPU"):
        training_step(**data, **parameters | {"W2": parameters["W2"].T.contiguous().T}, batch=4)
    with pytest.raises(TypeError, match=r"float16|format"):
        training_step(**data, **{n: p.half() for n, p in parameters.items()}, batch=4)
    with pytest.raises((TypeError, ValueError)):
        training_step(**data, **parameters | {"b1": parameters["b1"].float()}, batch=4)
    with pytest.raises(ValueError, match="one row per example"):
        training_step(**data | {"labels": data["labels"][:-1]}, **parameters, batch=4)
    with pytest.raises(ValueError, match="N - 1 is 0"):
        training_step(**data, **parameters, batch=1)
    with pytest.raises(ValueError, match="eps must be a number above 0"):
        training_step(**data, **parameters, eps=torch.tensor(1e-5), batch=4)


def test_a_change_in_place_is_told_of():
    data, parameters = network(6, 2, 3, 5, examples=20)
    x = torch.ones(5, dtype=torch.float64, requires_grad=True)
    y = (x * parameters["bngain"]).sum()
    training_step(**data, **parameters, batch=4)(torch.arange(4), 0.1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_the_same_steps_give_the_same_bits():
    reached = []
    for _ in range(2):
        data, parameters = network(27, 3, 10, 64, examples=50, dtype=torch.float32)
        step = training_step(**data, **parameters, batch=32)
        for start in range(10):
            step(torch.arange(start, start + 32), 0.1)
        reached.append(parameters)
    assert all(torch.equal(p, reached[1][name]) for name, p in reached[0].items())


def test_without_a_compiler_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    data, parameters = network(6, 2, 3, 5, examples=20)
    with pytest.raises(_building.NoCompiler, match="install g\\+\\+"):
        training_step(**data, **parameters, batch=4)
