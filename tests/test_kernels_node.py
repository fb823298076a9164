"""A node of autograd in C++ launches kernels as Python does: the same bits, the same errors, and
what it cannot do is left to Python.
"""

import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
import warm
from gallery import EVERYTHING
from sampling import sampled
from test_kernels import drawn, kernels_called, norm_arguments, outcome

import generated
from generated import kernels
from generated.cross_entropy import cross_entropy
from generated.kernels import _node, _running, _serving
from generated.layer_norm import layer_norm
from generated.silu import silu
from generated.softmax import softmax
from generated.softmax_nll import softmax_nll

ROOT = Path(generated.__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)


def launchers(name: str = "") -> list:
    """Launchers that use a node: of all Functions, or of one module."""
    found = []
    for module, served in kernels._served.items():
        for own, _ in served.places.values() if name in ("", module) else ():
            found += getattr(own, "nodes", [])
            own = getattr(own, "function", own)
            found += [own] * isinstance(own, _serving.OnKernels)
    return found


@pytest.fixture(scope="module")
def built():
    """The node, for which the first test waits."""
    node = _node.Node("1")
    node.begin()
    if node.module() is None:
        pytest.skip("the node cannot be built here")
    return node


@pytest.fixture
def in_cpp(built, monkeypatch):
    """Functions run on the node."""
    monkeypatch.setattr(_running, "node", built)
    with kernels.use("cpp"):
        for one in launchers():
            monkeypatch.setattr(one, "node", one.first)
        yield


def in_python(monkeypatch) -> None:
    for one in launchers():
        monkeypatch.setattr(one, "node", _serving.refuse)


# Where torch multiplies, scans or picks between kernels, Python calls all of them; also for a size
# that is computed from others.
SEVERAL = {
    *("alpha_compositing", "barlow_twins", "biased_attention", "bilinear", "causal_attention"),
    *("clip", "conv1d", "conv2d", "cox", "embedding", "gaussian_process", "gru_cell", "info_nce"),
    *("linear", "linear_attention", "lstm_cell", "masked_attention", "mlp", "norm_inf", "rnn_cell"),
    *("rotary_embedding", "scaled_dot_product_attention", "selective_scan", "siglip"),
}


@pytest.mark.parametrize("emitted", sampled(EVERYTHING, lambda e: e.snake), ids=str)
def test_the_same_bits_as_from_python(emitted, in_cpp, monkeypatch):
    """With and without what is optional; all gradients, and the first alone."""
    optional = {t.name for t, _ in emitted.definition.optional}

    def outcomes():
        for dtype in (torch.float64, torch.float32):
            arguments = emitted.arguments(dtype=dtype)
            for left_out in (set(), optional):
                passed = {n: v for n, v in arguments.items() if n not in left_out}
                for wanted in (emitted.inputs, emitted.inputs[:1]):
                    yield from outcome(emitted.function, passed, wanted)

    ours = [*outcomes()]
    own = [one for one in launchers(emitted.snake) if one.node != one.first]
    assert own
    if emitted.snake not in SEVERAL:
        assert all(one.node is not _serving.refuse for one in own), "Python has launched them"
    in_python(monkeypatch)
    for one, other in zip(ours, outcomes(), strict=True):
        assert torch.equal(one, other) or torch.equal(one.isnan(), other.isnan())
        assert one.shape == other.shape and one.dtype == other.dtype


def test_python_is_called_for_nothing(in_cpp, monkeypatch):
    """Neither to launch, nor by autograd."""
    leaves = [t.float().requires_grad_() for t in norm_arguments(5, 3).values()]
    layer_norm(*leaves)
    monkeypatch.setattr(_running.Kernel, "__call__", None)
    monkeypatch.setattr(_serving, "serves", None)
    with kernels_called("layer_norm") as called:
        y = layer_norm(*leaves)
        torch.autograd.grad(y, leaves, torch.ones(5, 3))
    assert called == ["forward", "backward"]


def test_what_is_saved_and_freed(in_cpp):
    x = drawn(4, 3).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = softmax(x)
    assert [t.data_ptr() for t in kept] == [y.data_ptr()]
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    doubled = x * 2
    y = silu(doubled)
    doubled.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_of_gradients_are_those_of_the_lines(in_cpp, monkeypatch):
    leaves = [t.requires_grad_() for t in norm_arguments(5, 3).values()]

    def twice():
        first = torch.autograd.grad(layer_norm(*leaves).pow(3).sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), leaves)

    ours = twice()
    in_python(monkeypatch)
    assert all(torch.equal(one, other) for one, other in zip(ours, twice(), strict=True))


def test_upstream_gradients_of_all_kinds(in_cpp, monkeypatch):
    x, labels = drawn(6, 4).requires_grad_(), torch.tensor([0, 3, 1, 1, 2, 0])
    batch = torch.eye(24).double().reshape(24, 6, 4)

    class Subclass(torch.Tensor):
        pass

    def gradients():
        y = softmax(x)
        yield torch.autograd.grad(y, x, drawn(4, 6).T, retain_graph=True)[0]
        yield torch.autograd.grad(y, x, drawn(1, 4).expand(6, 4), retain_graph=True)[0]
        yield torch.autograd.grad(y, x, torch._neg_view(drawn(6, 4)), retain_graph=True)[0]
        yield torch.autograd.grad(y, x, batch, is_grads_batched=True, retain_graph=True)[0]
        yield torch.autograd.grad(y, x, drawn(6, 4).as_subclass(Subclass))[0]
        yield torch.autograd.grad(softmax_nll(x, labels), x, torch.tensor(3.0).double())[0]
        yield torch.autograd.grad(cross_entropy(x, labels), x)[0]

    ours = [*gradients()]
    in_python(monkeypatch)
    for one, other in zip(ours, gradients(), strict=True):
        assert type(one) is type(other) and torch.equal(one, other)


def test_what_raises_raises_the_same(in_cpp, monkeypatch):
    x = drawn(3, 4).requires_grad_()

    def failing(tensor):
        raise KeyError("a hook of mine")

    def said():
        for labels in (torch.tensor([0, 4, 1]), torch.tensor([0, -1, 1])):
            with pytest.raises((IndexError, RuntimeError)) as refused:
                softmax_nll(x, labels)
            yield str(refused.value)
        y = layer_norm(x)
        with pytest.raises(KeyError, match="a hook of mine"):
            y.register_hook(failing)
            torch.autograd.grad(y.sum(), x, create_graph=True)

    ours = [*said()]
    in_python(monkeypatch)
    assert ours == [*said()]


def test_modes_and_inference(in_cpp):
    x = drawn(4, 3).requires_grad_()
    expected = torch.softmax(x, 1)
    with torch.no_grad():
        assert softmax(x).grad_fn is None
    with torch.inference_mode():
        assert softmax(x).is_inference()
    compiled = torch.compile(softmax, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), expected)
    assert torch.allclose(torch.func.vmap(softmax)(x.detach()[:, None])[:, 0], expected)
    with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        softmax(x).sum().backward()


# -- when it is built ---------------------------------------------------------

PROGRAM = """
import time, sys, torch, generated
from generated.softmax import softmax
from generated.kernels import _running
start = time.time()
generated.use("cpp")
softmax(torch.ones(2, 3))
took = time.time() - start
node = _running.node
print(node.over, node.process is not None, took < 15)
"""


def started(cache: Path, **variables: str) -> subprocess.CompletedProcess:
    variables = {"GRADFORM_KERNELS": str(cache), "PYTHONPATH": str(ROOT), **variables}
    own = {name: text for name, text in os.environ.items() if name != "GRADFORM_NODE"}
    return warm.run(
        [sys.executable, "-c", PROGRAM], env=own | variables, capture_output=True, text=True
    )


def test_nobody_waits_while_it_is_built(tmp_path):
    """By a process that goes on where the first one ends; one that fails is not tried again."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *_node.cpp*) sleep 3; exit 1;; esac\nexec {compiler} "$@"\n'
    )
    wrapper.chmod(0o755)
    cache = tmp_path / "cache"
    left_out = started(cache, CXX=str(wrapper), GRADFORM_NODE="0")
    assert left_out.stdout.split()[:2] == ["True", "False"]
    assert started(cache, CXX=str(wrapper)).stdout.split() == ["False", "True", "True"]
    until = time.monotonic() + 60
    while not [*cache.glob("_node-*.failed")] and time.monotonic() < until:
        time.sleep(0.1)
    assert started(cache, CXX=str(wrapper)).stdout.split()[:2] == ["True", "False"]


FORK = """
import os, signal, sys, torch, generated
torch.set_num_threads(2)
generated.use("cpp")
from generated.layer_norm import layer_norm
from generated.softmax import softmax
x = torch.randn(512, 512)
def ours(function):
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf, x)[0][7]  # a row, which torch itself compares
expected = ours(softmax)
child = os.fork()
if not child:
    signal.alarm(20)
    same = torch.equal(ours(softmax), expected)
    ours(layer_norm)  # a library that is loaded only now
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("node", ["0", "1"])
def test_kernels_run_in_a_fork_of_a_process_that_has_used_threads(node, built):
    """Where a thread is waited for that is not there, a signal ends the child."""
    own = {**os.environ, "GRADFORM_NODE": node, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", FORK], env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("function", [silu, softmax, layer_norm])
def test_nothing_stands_between_a_matrix_and_its_function(function):
    """A view before a Function and one behind it cost autograd as much as a small kernel."""
    for target in ("cpp", "torch"):
        with kernels.use(target):
            y = function(drawn(4, 3).requires_grad_())
            ((leaf, _),) = y.grad_fn.next_functions
            assert leaf.name() == "torch::autograd::AccumulateGrad"
            assert function(drawn(2, 4, 3)).shape == (2, 4, 3)
            assert function(drawn(3)).shape == (3,)
