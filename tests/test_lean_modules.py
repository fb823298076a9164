"""Lean modules, and forwards that are called as functions: in every transform of torch, in what is
kept, in what is refused.
"""

import copy
import functools
import inspect
import linecache
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
import transforms
from sympy import cosh, exp, log, sqrt
from torch.func import grad, hessian, jacfwd, jacrev
from transforms import compiled, loss_of

import codegen.called.functions
import codegen.driver.lean
from codegen.called.functions import function
from codegen.called.recognized import digest_of
from codegen.commands.cli import main
from codegen.driver.qualities import emitted
from codegen.targets.lean.autograd import OF_CTX
from codegen.targets.torch.wrong import WrongUse
from derive import (
    Axes,
    Axis,
    Concat,
    Forward,
    Given,
    Input,
    Kept,
    Label,
    OneHot,
    Outputs,
    Reduced,
    Scalar,
    Sum,
)
from derive.gradient.orders import SECOND
from derive.language.errors import QuestionError, UndecidedError, UnprovedError
from derive.language.notation.library import forward_from

N, C, K, S = Axis("N"), Axis("C"), Axis("K"), Axes("S")
CK = Axis("CK", C + K)
IGNORED = -100
ROOT = Path(__file__).resolve().parents[1]
LABELS = torch.tensor([1, IGNORED, 0, 3, 2])


class Norm(Forward):
    """Every row divided by its root mean square."""

    x = Input(S, C)
    gain = Input(C, default=1)
    eps = Scalar(1e-5, above=0)
    square = Sum(x**2, C) / C
    inv_rms = 1 / sqrt(square + eps)
    y = gain * inv_rms * x


class Centred(Forward):
    """Every column without its mean, over its deviation."""

    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, N) / N
    diff = x - mean
    inv_std = 1 / sqrt(Sum(diff**2, N) / (N - 1) + eps)
    y = gain * inv_std * diff


class Entropy(Forward):
    """The cross entropy of every row, by the weights of the classes, its target smoothed."""

    logits = Input(N, C)
    labels = Label(N, ignored=IGNORED)
    weight = Given(C, default=1)
    smoothing = Scalar(0)
    logp = log(exp(logits) / Sum(exp(logits), C))
    counted = Sum(OneHot(labels, C) * weight, C)
    picked = counted * Sum(OneHot(labels, C) * logp, C)
    spread = Kept(labels) * Sum(weight * logp, C) / C
    losses = (smoothing - 1) * picked - smoothing * spread
    loss = Reduced(losses, mean=Sum(counted, N))


class Bent(Forward):
    """Its lines decide where its statement does not."""

    x = Input(N, C)
    w = Input(C)
    y = w * log(cosh(x))


def norm(x, gain, eps=1e-5):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def centred(x, gain, eps=1e-5):
    return (x - x.mean(0)) / torch.sqrt(x.var(0) + eps) * gain


def entropy(logits, weight):
    return torch.nn.functional.cross_entropy(logits, LABELS, weight.detach(), reduction="none")


def bent(x, w):
    return w * torch.log(torch.cosh(x))


CASES = {Norm: norm, Centred: centred, Entropy: entropy, Bent: bent}
x, w = (
    torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for shape in ((5, 4), (4,))
)
w = w.abs() + 0.5
dx, dw = torch.cos(x), torch.sin(w)
x[2, 1] = 0.0  # where lines by the absolute value bend


def leaves():
    return x.clone().requires_grad_(), w.clone().requires_grad_()


def on_both(transform):
    """The transform of a function of ``x`` and ``w``, along ``dx`` and ``dw``."""
    return lambda f: transform(f, (x, w), (dx, dw))


TRANSFORMS = {name: on_both(transform) for name, transform in transforms.TRANSFORMS.items()}


@pytest.fixture(scope="module")
def functions():
    found = {case: function(case).derive() for case in CASES}
    entries = found[Entropy]
    found[Entropy] = lambda a, b: entries(a, LABELS, b.detach(), reduction="none")
    return found, entries


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_transform_is_that_of_torch(case, transform, functions):
    of = TRANSFORMS[transform]
    found, expected = of(functions[0][case]), of(CASES[case])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


# Calls that pass nothing optional, which have a pair of their own.
PLAIN = {
    Norm: (
        lambda f: lambda a, b: f[0][Norm](a * b),
        lambda a, b: norm(a * b, torch.ones_like(b)),
    ),
    Entropy: (
        lambda f: lambda a, b: f[1](a * b, LABELS, reduction="none"),
        lambda a, b: entropy(a * b, torch.ones_like(b)),
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.__name__)
def test_every_transform_without_options_is_that_of_torch(case, transform, functions):
    of, (plain, expected) = TRANSFORMS[transform], PLAIN[case]
    pair = of(plain(functions)), of(expected)
    torch.testing.assert_close(*pair, rtol=1e-9, atol=1e-9)


def test_scalars_are_compared_at_another_value_than_their_default(monkeypatch):
    """Within their range; what is wrong there alone is not emitted."""

    class Smoothed(Forward):
        x = Input(N, C)
        smoothing = Scalar(0, at_least=0, at_most=1)
        y = (1 - smoothing) * x**2 + smoothing * exp(x)

    printed = codegen.driver.lean.module_text

    def broken(*pairs):
        text = printed(*pairs)
        assert text.count("smoothing * torch.exp(x)")
        return text.replace("smoothing * torch.exp(x)", "smoothing * torch.exp(-x)")

    function(Smoothed).derive()
    monkeypatch.setattr(codegen.driver.lean, "module_text", broken)
    with pytest.raises(UnprovedError, match="differs from autograd"):
        function(Smoothed).derive()


# What is broken in the text of a module, a transform that shows it, and how.
BREAKS = (
    (Norm, "if torch.is_grad_enabled():", "if False:", "double backward", AssertionError),
    (Norm, "run = norm_forward if _by_lines() else Norm.apply", "run = Norm.apply", "jvp",
     NotImplementedError),
    (Norm, "generate_vmap_rule = True", "generate_vmap_rule = False", "vmap of gradient",
     RuntimeError),
    (Centred, "C = x.shape\n", "C = x.shape; x = x.detach()\n", "gradient", AssertionError),
    (Bent, "return bent_statements(", "return bent_forward(", "jvp of jvp", AssertionError),
)  # fmt: skip


@pytest.mark.parametrize("case, before, after, transform, error", BREAKS)
def test_a_break_of_the_module_shows(case, before, after, transform, error, functions):
    made = functions[0][case]
    assert before in made.source
    broken = ModuleType("broken")
    exec(made.source.replace(before, after), vars(broken))
    of, run = TRANSFORMS[transform], getattr(broken, made.__name__)
    expected = of(CASES[case])
    with pytest.raises(error):
        torch.testing.assert_close(of(run), expected, rtol=1e-9, atol=1e-9)


# What stands outside: the reduction, ignored labels, defaults, dimensions that are merged, formats.


def reduced(reduction, weight=None, dtype=torch.float64):
    own = x.detach().to(dtype).clone().requires_grad_()
    more = {} if weight is None else {"weight": weight.to(dtype)}
    return own, LABELS, more


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, w], ids=["plain", "weighted"])
def test_reductions_and_ignored_labels_are_those_of_torch(reduction, weight, functions):
    own, labels, more = reduced(reduction, weight)
    found = functions[1](own, labels, **more, reduction=reduction)
    expected = torch.nn.functional.cross_entropy(own, labels, **more, reduction=reduction)
    torch.testing.assert_close(found, expected)
    up = torch.cos(found.detach())
    pair = (torch.autograd.grad(y, own, up)[0] for y in (found, expected))
    torch.testing.assert_close(*pair)


def test_a_row_that_is_ignored_alone_has_no_gradient(functions):
    own = x[:1].clone().requires_grad_()
    loss = functions[1](own, torch.tensor([IGNORED]), reduction="sum")
    assert loss == 0 and not torch.autograd.grad(loss, own)[0].any()


@pytest.mark.parametrize("shape", [(4,), (0, 4), (2, 3, 4)])
def test_dimensions_are_merged_and_restored(shape, functions):
    a = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    y = functions[0][Norm](a)
    torch.testing.assert_close(y, norm(a, torch.ones(4, dtype=a.dtype)))
    assert torch.autograd.grad(y.sum(), a)[0].shape == shape


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_is_kept_has_16_bits_and_is_an_input_or_a_statistic(dtype, functions):
    kept = []
    a, b = x.to(dtype).requires_grad_(), w.to(dtype).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = functions[0][Centred](a, b)
    assert y.dtype == dtype
    assert all(t.dtype == dtype for t in kept if t.numel() >= a.numel())
    assert sum(t.numel() >= a.numel() for t in kept) == 1  # x itself
    found = torch.autograd.grad(y.float().sum(), (a, b))
    wide = [t.detach().double().requires_grad_() for t in (a, b)]
    expected = torch.autograd.grad(centred(*wide).sum(), wide)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, rtol=2e-2, atol=2e-2)


def test_a_single_input_gives_its_format_and_no_whole_numbers():
    class Bump(Forward):
        x = Input(N, C)
        y = x * exp(-(x**2))

    bump = function(Bump)
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        a = x.detach().to(dtype, copy=True).requires_grad_()
        y = bump(a)
        y.sum().backward()
        assert y.dtype == a.grad.dtype == dtype
    with pytest.raises(TypeError, match=r"bump: x must be floating point, got torch.int64"):
        bump(x.long())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_formats_that_differ_are_those_of_the_activation(dtype, functions):
    """A gain of float32 beside one of 16 bits makes it no larger."""
    own, gain = x.detach().to(dtype).requires_grad_(), w.float().requires_grad_()
    y = functions[0][Norm](own, gain)
    assert y.dtype == dtype
    y.float().sum().backward()
    assert own.grad.dtype == dtype and gain.grad.dtype == torch.float32
    wide = norm(x.to(dtype).float(), w.float(), 1e-5)
    torch.testing.assert_close(y.float(), wide, rtol=1e-2, atol=1e-2)
    assert functions[0][Norm](x.float(), w.to(dtype)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.float32])
def test_labels_that_torch_would_not_take_for_labels_are_refused(dtype, functions):
    with pytest.raises(TypeError, match=f"entropy: labels must be int32 or int64, got {dtype}"):
        functions[1](x, LABELS.clamp(0).to(dtype))
    found = [functions[1](x, LABELS.to(whole)) for whole in (torch.int32, torch.int64)]
    assert torch.equal(*found)


def test_what_is_given_loses_no_gradient_in_silence(functions):
    weight = w.clone().requires_grad_()
    said = r"entropy: weight gets no gradient: pass weight.detach\(\)"
    with pytest.raises(RuntimeError, match=said):
        functions[1](x, LABELS, weight)
    with torch.no_grad():
        loss = functions[1](x, LABELS, weight)
    assert torch.equal(loss, functions[1](x, LABELS, weight.detach()))


def test_a_class_in_lower_case_has_another_title_than_its_function():
    class focal_loss(Forward):
        x = Input(N)
        y = x**3

    made = function(focal_loss).derive()
    assert "class FocalLoss(torch.autograd.Function):" in made.source
    own = w.clone().requires_grad_()
    (found,) = torch.autograd.grad(made(own).sum(), own)
    torch.testing.assert_close(found, 3 * own**2)


def test_the_names_that_torch_keeps_in_ctx_are_known():
    names = dir(torch.autograd.function.BackwardCFunction)
    assert {name for name in names if not name.startswith("_")} <= OF_CTX


def test_a_number_is_called_as_what_torch_keeps_in_ctx():
    class Named(Forward):
        x = Input(N)
        metadata = Scalar(2)
        saved_tensors = Scalar(3)
        needs_input_grad = Scalar(4)
        name = Scalar(0.5)
        t = metadata * x + saved_tensors * x**2
        y = t * needs_input_grad * x**3 + name * x**2

    own = w.clone().requires_grad_()
    (found,) = torch.autograd.grad(function(Named)(own).sum(), own)
    torch.testing.assert_close(found, 32 * own**3 + 60 * own**4 + own)


def test_autocast_changes_no_number(functions):
    class Product(Forward):
        x = Input(N, C)
        w = Input(C)
        y = Sum(x * w, C)

    product = function(Product)
    own = x.detach().float().requires_grad_()
    for run in (product, compiled(product.derive())):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = run(own, w.float())
            (found,) = torch.autograd.grad(y.sum(), own)
        torch.testing.assert_close(y, own @ w.float())
        torch.testing.assert_close(found, w.float().expand(5, 4))
    y = product(own.detach().to("meta").requires_grad_(), w.float().to("meta"))
    y.sum().backward()  # meta has no autocast
    assert y.is_meta and y.shape == (5,)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((x, w[:3]), "norm: gain must be (C,), got (3,)"),
        ((x[0, 0], w), "norm: x must be (*S, C), got ()"),
        ((x, w, -1.0), "norm: eps must be a number above 0, got -1.0"),
        ((x, w, torch.tensor(1.0)), "norm: eps must be a number above 0, got 1.0"),
        ((x.tolist(), w), "norm: x must be a tensor, got list"),
        ((x, w.numpy()), "norm: gain must be a tensor, got ndarray"),
        ((x.long(), w.int()), "norm: x must be floating point, got torch.int64"),
        ((x.to(torch.complex64), w * 1j), "norm: x must be floating point, got torch.complex64"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(arguments, words, functions):
    made = functions[0][Norm]
    with pytest.raises((ValueError, TypeError)) as error:
        made(*arguments)
    assert words in str(error.value)
    shown = "".join(traceback.format_exception(error.value))
    assert any(line.strip().startswith("raise ") for line in shown.splitlines())
    assert linecache.getlines(traceback.extract_tb(error.value.__traceback__)[-1].filename)


def test_a_statistic_that_is_returned_is_saved_once_and_not_as_it_is_rounded():
    """The second centring of a value has its reason in words."""

    class Returned(Forward):
        x = Input(N, C)
        gain = Input(C)
        mean = Sum(x, C) / C
        sigma = sqrt(Sum((x - mean) ** 2, C) / C + 1)
        y = gain * (x - mean) / sigma
        outputs = Outputs(y, sigma)

    text = function(Returned).source
    backward = text.partition("def returned_backward(")[2]
    assert "sigma_inner: Tensor" in backward and " sigma: Tensor" not in backward
    assert "- x_minus_mean is centred twice: rounding leaves it a mean." in text


def test_a_mask_that_does_not_broadcast_and_a_divisor_of_0_are_refused_in_words():
    class Masked(Forward):
        x = Input(N, C)
        p = Scalar(2)
        mask = Given(N, C, default=1, broadcast=True)
        y = mask * x + 1 / p

    masked = function(Masked)
    compiled = torch.compile(masked.derive(), backend="aot_eager", fullgraph=True)
    for shape in ((4,), (5, 1), (1, 4), ()):
        mask = torch.randn(shape, dtype=x.dtype)
        for run in (masked, compiled):
            torch.testing.assert_close(run(x, mask=mask), x * mask + 0.5)
    for shape in ((5,), (2, 4), (1, 5, 4)):
        with pytest.raises(ValueError, match=r"masked: mask must be broadcast to \(N, C\), got"):
            masked(x, mask=torch.ones(shape))
    with pytest.raises(ValueError, match="divides by p, which is 0"):
        masked(x, p=0)


def test_a_shape_of_any_rank_that_does_not_fit_is_said_in_sizes():
    class Weighted(Forward):
        x = Input(S)
        w = Given(S)
        y = w * x

    with pytest.raises(ValueError, match=r"w must be \(\*S,\), here \(5, 4\), got \(4,\)"):
        function(Weighted)(x, x[0])


def test_a_size_that_only_what_is_kept_shows_is_read_off_it():
    class Joined(Forward):
        x = Input(N, C)
        w = Input(N, K)
        both = Concat((x, C), (w, K), into=CK)
        p = exp(both) / Sum(exp(both), CK)
        y = Sum(p * both, CK)

    def joined(a, b):
        both = torch.cat([a, b], 1)
        return (both.softmax(1) * both).sum(1)

    own = x, dx[:, :3]
    pair = [torch.func.grad(loss_of(f), (0, 1))(*own) for f in (function(Joined), joined)]
    torch.testing.assert_close(*pair)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_label_out_of_range_is_refused(wrong):
    """Plain indexing would count -1 from the end."""

    class Picked(Forward):
        table = Input(C)
        labels = Label(N)
        y = Sum(OneHot(labels, C) * table, C) ** 2

    picked = function(Picked)
    torch.testing.assert_close(picked(w, torch.tensor([0, 3])), w[[0, 3]] ** 2)
    with pytest.raises(IndexError, match=f"picked: labels holds {wrong}, not in 0 .. 3"):
        picked(w, torch.tensor([0, wrong]))


def in_a_compiled_transform(of):
    torch.compiler.reset()
    return lambda f: torch.compile(of(loss_of(f)), backend="aot_eager")(x, w)


SECOND_ORDER = {
    **{name: TRANSFORMS[name] for name in ("double backward", "jacrev of jacrev", "hessian")},
    **{name: TRANSFORMS[name] for name in ("forward mode of a gradient", "jvp of jvp")},
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(loss_of(f)))(x, w),
    "compiled hessian": in_a_compiled_transform(hessian),
    "compiled jacrev of jacrev": in_a_compiled_transform(lambda f: jacrev(jacrev(f))),
}


@pytest.mark.parametrize("case", [Norm, Centred], ids=lambda case: case.__name__)
def test_a_second_order_that_is_wrong_is_refused_by_the_module(case, monkeypatch):
    """In words, wherever one is asked for; the first order is what it was."""
    checked = codegen.driver.lean.check_every_use

    def wrong(text, pair):
        if pair.twice:
            raise WrongUse(f"{case.__name__}: the second derivative differs", SECOND)
        return checked(text, pair)

    monkeypatch.setattr(codegen.driver.lean, "check_every_use", wrong)
    made = function(case).derive()
    assert "Second derivatives are refused" in made.source
    for first in ("gradient", "vmap of gradient", "compiled", "jacrev", "batched gradients"):
        of = TRANSFORMS[first]
        torch.testing.assert_close(of(made), of(CASES[case]), rtol=1e-9, atol=1e-9)
    of = in_a_compiled_transform(grad)
    torch.testing.assert_close(of(made), of(CASES[case]), rtol=1e-9, atol=1e-9)
    own = leaves()
    y = made(*own)
    for graph in (made, lambda *args: made(*args) + args[0] ** 2):
        for second in SECOND_ORDER:
            with pytest.raises(NotImplementedError, match="the second derivative differs"):
                SECOND_ORDER[second](graph)
    torch.autograd.grad(y.sum(), own, create_graph=True)


def test_the_module_needs_nothing_but_torch(functions, tmp_path):
    written = functions[0][Norm].write(tmp_path / "my_norm.py")
    modules = [line.split()[1] for line in written.read_text().splitlines() if "import" in line[:7]]
    assert {name.split(".")[0] for name in modules} <= {"math", "functools", "torch"}
    alone = ModuleType("alone")
    exec(written.read_text(), vars(alone))
    y, inv_rms = alone.norm_forward(x, w, 1e-5)
    dx_, dw_ = alone.norm_backward(torch.ones_like(y), x, w, inv_rms)
    own = leaves()
    expected = torch.autograd.grad(norm(*own).sum(), own)
    torch.testing.assert_close((dx_, dw_), expected)


# From Python


@function("x: N C, gain: C")
def of_torch(x, gain, eps=1e-6):
    """A norm of mine."""
    return x / torch.sqrt((x**2).mean(1, keepdim=True) + eps) * gain


def test_a_torch_function_is_imported_when_it_is_called():
    assert "not derived yet" in repr(of_torch) and of_torch.__doc__ == "A norm of mine."
    torch.testing.assert_close(of_torch(x, w), norm(x, w, 1e-6))
    assert repr(of_torch) == "<gradform function of_torch(x, gain, eps), proved for every size>"
    assert "Proved: exactly zero difference" in of_torch._repr_html_()
    assert of_torch.derivation.every_size


def test_it_is_derived_while_torch_compiles():
    class Cube(Forward):
        x = Input(N)
        y = x**3

    cube = function(Cube)
    found = torch.compile(lambda a: cube(a).sum(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(found(w), (w**3).sum())


def test_where_a_notebook_is_imported_and_none_runs_nothing_is_said(monkeypatch, capsys):
    pytest.importorskip("ipykernel")  # as a test of notebooks does in the same process
    monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
    monkeypatch.setattr(codegen.called.functions, "keep", lambda *_: None)

    class Halved(Forward):
        x = Input(N)
        y = x / 2

    assert torch.equal(function(Halved)(torch.ones(2)), torch.full((2,), 0.5))
    assert not any(capsys.readouterr())


def test_it_is_kept_for_the_next_process(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path / "kept"))
    first = function(Bent).derive()

    def derived_again(*_):
        raise AssertionError("it was not kept")

    monkeypatch.setattr(codegen.called.functions, "_derived", derived_again)
    assert function(Bent).source == first.source
    monkeypatch.setattr(codegen.called.functions, "machinery_hash", lambda: "another gradform")
    with pytest.raises(AssertionError, match="not kept"):
        function(Bent).derive()


def test_what_is_kept_and_damaged_is_derived_again(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    monkeypatch.setenv("GRADFORM_CACHE", str(kept))
    text = function(Bent).source
    (entry,) = kept.glob("*.json")
    for damaged in (entry.read_bytes()[:-9], b"", b"\xff"):
        entry.write_bytes(damaged)
        assert function(Bent).source == text
    own = entry.stem
    codegen.called.functions.keep(own, ["bent", None, "", ""])
    assert function(Bent).source == text


def test_a_cache_that_may_only_be_read_is_read(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path / "kept"))
    text = function(Bent).source
    for name in ("utime", "replace"):
        monkeypatch.setattr(f"codegen.driver.cache.os.{name}", refused)
    monkeypatch.setattr(codegen.called.functions, "_derived", None)
    assert function(Bent).source == text


PROGRAM = """
import sys, torch, gradform

@gradform.function("x: N, w: N")
def product(x, w, power=2.0):
    return w * x**2 / 2

if __name__ == "__main__":
    x = torch.ones(3, requires_grad=True)
    product(x, x.detach()).sum().backward()
    print(x.grad.tolist(), "sympy" in sys.modules)
    with torch.multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(product, (x.detach(), x.detach())).tolist())
"""


@pytest.mark.slow  # three processes that start cold, and two more
def test_two_processes_derive_at_once_and_a_third_one_imports_no_sympy(tmp_path):
    """And a process that is spawned finds the function by its name."""
    (tmp_path / "program.py").write_text(PROGRAM)
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "GRADFORM_CACHE": str(tmp_path / "kept")}

    def started():
        command = [sys.executable, "program.py"]
        return subprocess.Popen(command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE)

    first = [started(), started()]
    said = [process.communicate(timeout=200)[0].decode().split("\n")[:2] for process in first]
    assert said == [["[1.0, 1.0, 1.0] True", "[0.5, 0.5, 0.5]"]] * 2
    third = started().communicate(timeout=100)[0].decode().split("\n")[:2]
    assert third == ["[1.0, 1.0, 1.0] False", "[0.5, 0.5, 0.5]"]


SCALE = 2.0


def test_a_torch_function_is_another_where_what_it_reads_is(monkeypatch):
    def helper(x):
        return SCALE * x

    def made(power):
        return lambda x: helper(x) ** power

    def imports(x):
        import math

        return math.pi * x

    def wrapping(factor):
        @functools.wraps(torch.nn.functional.softplus)  # which says that this is of torch
        def wrapped(x):
            return factor * x

        return wrapped

    def of_wrapped(factor):
        inner = wrapping(factor)
        return digest_of(lambda x: inner(x), "x: N")

    assert of_wrapped(2) == of_wrapped(2) != of_wrapped(3)
    before = digest_of(made(2), "x: N")
    assert before == digest_of(made(2), "x: N")
    assert before != digest_of(made(3), "x: N") and before != digest_of(made(2), "x: N C")
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert before != digest_of(made(2), "x: N")
    table = torch.ones(3)
    assert digest_of(lambda x: x * table) is None and digest_of(imports) is None


def test_threads_that_call_first_derive_once(monkeypatch):
    bent_once, derived = function(Bent), []
    find = codegen.called.functions.DerivedFunction._find
    monkeypatch.setattr(
        codegen.called.functions.DerivedFunction,
        "_find",
        lambda self: (derived.append(1), find(self)),
    )
    with ThreadPoolExecutor(3) as threads:
        found = [*threads.map(lambda _: bent_once(x, w), range(3))]
    assert len(derived) == 1 and all(torch.equal(y, found[0]) for y in found)


@function("x: N")
def called_again(x):
    return x * called_again(x)


@function("x: N")
def one_of_two(x):
    return x * other_of_two(x)


@function("x: N")
def other_of_two(x):
    return one_of_two(x) ** 2


@pytest.mark.parametrize("made", [called_again, one_of_two])
def test_a_function_that_calls_itself_is_refused(made):
    """And does not wait for its own derivation."""
    said = []

    def call():
        with pytest.raises(QuestionError, match=f"{made.__name__} calls itself") as error:
            made(w)
        said.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(100)
    assert said


def test_a_derivation_is_left_at_once_and_taken_up_again(monkeypatch):
    """By Ctrl-C, which here is of another thread."""
    begun, ended, found = threading.Event(), threading.Event(), []
    find = codegen.called.functions.DerivedFunction._find

    def slow(self):
        found.append(self)
        begun.set()
        assert ended.wait(100)
        find(self)

    def interrupt():
        begun.wait(100)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    monkeypatch.setattr(codegen.called.functions.DerivedFunction, "_find", slow)
    made = function(Bent)
    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        made(x, w)
    assert not ended.is_set()
    ended.set()
    torch.testing.assert_close(made(x, w), bent(x, w))
    assert found == [made]
    other.join()


def test_it_is_a_function_to_python(functions):
    assert of_torch.__name__ == "of_torch" and [*inspect.signature(of_torch).parameters] == [
        "x", "gain", "eps"
    ]  # fmt: skip
    assert pickle.loads(pickle.dumps(of_torch)) is of_torch
    assert copy.deepcopy(of_torch) is of_torch
    made = functions[0][Norm]
    again = pickle.loads(pickle.dumps(made))
    torch.testing.assert_close(again(gain=w, x=x), made(x, w))
    local = function("x: N")(lambda x: x**2)
    with pytest.raises(pickle.PicklingError, match="define it at the top of a module"):
        pickle.dumps(local)


def test_formulas_are_shown_escaped(functions):
    class Less(Forward):
        """A < b & c."""

        x = Input(N)
        y = x**2

    less = function(Less)
    shown = "&lt;gradform function less, not derived yet&gt;</code><pre>y = x**2</pre>"
    assert shown in less._repr_html_() and "y &= x^{2}" in less._repr_latex_()
    assert r"\mathrm{d}x &=" not in less._repr_latex_()
    html = less.derive()._repr_html_()
    assert "A &lt; b &amp; c" in html and "dx = 2*dy*x" in html and "A < b" not in html
    assert less.derivation and r"\mathrm{d}x &=" in less._repr_latex_()


def test_a_file_that_was_edited_is_not_replaced(functions, tmp_path):
    made, file = functions[0][Norm], tmp_path / "norm.py"
    text = made.write(file).read_text()
    functions[0][Bent].write(file)
    made.write(file)
    assert file.read_text() == text
    file.write_text(text.replace("gain", "scale"))
    with pytest.raises(QuestionError, match=r"was edited: the edits would be lost\n.*force=True"):
        made.write(file)
    assert made.write(file, force=True).read_text() == text
    file.write_text("mine")
    with pytest.raises(QuestionError, match="not written by gradform"):
        made.write(file)


def test_a_function_writes_what_the_command_writes(tmp_path, capsys):
    """Either replaces what the other wrote, and what nobody edited."""
    source, file = tmp_path / "bump.py", tmp_path / "out" / "bump.py"
    opening = "from derive import Axis, Forward, Input\n\nN = Axis('N')\n\n\n"
    source.write_text(f"{opening}class Bump(Forward):\n    x = Input(N)\n    y = x**2\n")
    words = [str(source), "--out", str(file.parent)]
    bump = function(forward_from(str(source)))
    assert main(words) == 0
    text = file.read_text()
    assert bump.write(file).read_text() == text and main([*words, "--check"]) == 0
    file.write_bytes(text.replace("\n", "\r\n").encode())  # as git writes it elsewhere
    assert main(words) == 0 and file.read_text() == text
    file.write_text(f"{text}x = 1\n")
    assert main(words) == 2 and "was edited" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0 and file.read_text() == text


def star(*args):
    return args[0] ** 2


class Ready(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy


# A mistake, and what is said of it where it is made: not at the first call.
MISTAKES = {
    lambda: function(norm): "neither a Forward nor the axes",
    lambda: function(torch.nn.Linear(2, 2)): "an object of Linear",
    lambda: function(Ready): "it: gradform.check.Ready",
    lambda: function("x: N")(star): "star takes .args",
    lambda: function("x: N, gian: C")(norm): "norm has no argument gian\n    it takes x, gain, eps",
    lambda: function("x N")(norm): "\n    separate tensors by commas: axes=",
    lambda: function("x: N")(torch.nn.Linear(2, 2).forward): "a method of an object",
    lambda: type("Mine", (), {"f": function("x: N")(lambda self, x: x)}): "is a method",
    lambda: function("x: N C")(norm).derive(): "norm needs gain, whose axes are missing\n.*axes=",
}


@pytest.mark.parametrize("mistake, words", MISTAKES.items(), ids=MISTAKES.values())
def test_a_mistake_is_said(mistake, words):
    with pytest.raises(QuestionError, match=words) as error:
        mistake()
    assert "--" not in str(error.value)


WRONG = (
    (Bent, "w * torch", "2 * w * torch", r"Bent: .* of the generated code differs by"),
    (Norm, "    y = inv_rms * x", "    y = 2 * inv_rms * x", "Norm: .* differs"),
    (Entropy, "losses = -picked", "losses = -2 * picked", "Entropy: .* differs"),
    (Norm, "norm_plain_forward if _by_lines() else", "", "Norm: .* does not run"),
)


@pytest.mark.parametrize("case, before, after, words", WRONG)
def test_nothing_wrong_is_called(case, before, after, words, monkeypatch):
    import codegen.driver.lean as driver

    monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
    monkeypatch.setattr(codegen.called.functions, "keep", lambda *_: None)
    right = driver.module_text

    def wrong(*arguments):
        text = right(*arguments)
        assert before in text
        return text.replace(before, after)

    monkeypatch.setattr(driver, "module_text", wrong)
    with pytest.raises(UnprovedError, match=words):
        function(case).derive()


class Smooth(Forward):
    """A loss whose smoothing saves little where it is left out."""

    x = Input(N, C)
    weight = Given(C, default=1)
    smoothing = Scalar(0)
    y = weight * exp(-(x**2)) / (1 + exp(x) ** 2) - smoothing * x


def test_a_pair_without_options_is_proved_where_it_moves_a_third_less(functions, monkeypatch):
    import codegen.driver.lean as driver

    assert "class NormPlain(" in functions[0][Norm].source
    assert "    if gain is None:\n" in functions[0][Norm].source
    assert "plain = weight is None and smoothing == 0\n" in functions[1].source

    def proved(*_):
        raise AssertionError("it is not worth it")

    monkeypatch.setattr(driver, "prove", proved)
    assert "Plain" not in function(Smooth).source
    with pytest.raises(AssertionError, match="not worth it"):
        monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
        function(Norm).derive()


def test_both_pairs_are_compared_in_every_use(monkeypatch):
    import codegen.driver.lean as driver

    monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
    monkeypatch.setattr(codegen.called.functions, "keep", lambda *_: None)
    compared = []
    for name in ("largest_difference", "check_every_use"):
        right = getattr(driver, name)

        def recorded(*arguments, name=name, right=right):
            program = getattr(arguments[-1], "program", arguments[-1])
            compared.append((name, [p.name for p in program.forward.tensors]))
            return right(*arguments)

        monkeypatch.setattr(driver, name, recorded)
    function(Norm).derive()
    assert compared == [
        ("largest_difference", ["x", "gain"]),
        ("largest_difference", ["x"]),
        ("check_every_use", ["x", "gain"]),
        ("check_every_use", ["x"]),
    ]


@pytest.mark.parametrize("helps", [True, False])
def test_the_pair_that_needs_it_is_held(helps, monkeypatch):
    """The other stays as it is; what remains is said of the calls that it concerns."""
    import codegen.driver.lean as driver

    held = []

    def hold(program):
        held.append([p.name for p in program.forward.tensors])
        return replace(program, doc="held")

    def unsafe(text, pair):
        safe = not pair.absent or (helps and pair.program.doc == "held")
        return () if safe else ("y may be NaN for some",)

    monkeypatch.setattr(driver, "with_arguments_held", hold)
    monkeypatch.setattr(driver, "check_every_use", unsafe)
    source = function(Norm).source
    assert held == [["x"]]
    assert ("- Where gain is omitted: y may be NaN for some.\n" in source) is not helps
    assert "omitted: float32" not in source  # which is said of all calls


def test_without_a_proof_there_is_no_pair_without_options(monkeypatch):
    import codegen.driver.lean as driver

    def unproved(*_):
        raise UnprovedError("not proved")

    monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
    monkeypatch.setattr(codegen.called.functions, "keep", lambda *_: None)
    monkeypatch.setattr(driver, "prove", unproved)
    assert "Plain" not in function(Norm).source


@pytest.mark.parametrize("undecided", [True, False])
def test_a_pair_without_options_for_which_the_time_ran_out_is_not_kept(undecided, monkeypatch):
    """And it is said: the next run may find it."""
    import codegen.driver.lean as driver

    def late(form, *_):
        if undecided:
            raise UndecidedError("the time is over")
        return replace(proved(form), cut_short="Norm: the time is over")

    kept, proved = [], driver.prove
    monkeypatch.setattr(codegen.called.functions, "recalled", lambda name: None)
    monkeypatch.setattr(codegen.called.functions, "keep", lambda *found: kept.append(found))
    function(Norm).derive()
    assert kept
    kept.clear()
    monkeypatch.setattr(driver, "prove", late)
    function(Norm).derive()
    assert not kept
    said = emitted(driver.generate(Norm)).cut_short
    assert said.startswith("Norm: the time ") and "for calls that pass nothing optional" in said
