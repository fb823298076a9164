"""Kernels in the place of lines of torch: the same values whatever is passed, and never a wrong one
where no kernel can compute.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
import torch
import warm
from gallery import EVERYTHING
from sampling import sampled
from torch._subclasses import FakeTensorMode

import generated
from codegen.driver.lean import generate
from codegen.targets.languages import kernels as languages
from derive import forward_from
from derive.language.errors import QuestionError, UnprovedError
from generated import kernels
from generated.batch_norm import batch_norm
from generated.cross_entropy import cross_entropy
from generated.huber import huber
from generated.kernels import _building, _running
from generated.layer_norm import layer_norm
from generated.mse import mse
from generated.softmax import softmax
from generated.softmax_nll import softmax_nll

ROOT = Path(generated.__file__).parents[1]
everything = pytest.mark.parametrize("emitted", sampled(EVERYTHING, lambda e: e.snake), ids=str)
pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)


@contextmanager
def kernels_called(name: str):
    """The names of the kernels of a forward that compute something."""
    module = import_module(f"generated.kernels.{name}")
    with _running.watched(module) as called, kernels.use("cpp"):
        yield called


def outcome(function, arguments, names, seed=3):
    """The output and the gradients of the inputs, for a random upstream gradient."""
    leaves = {
        name: t.detach().requires_grad_(name in names) if isinstance(t, torch.Tensor) else t
        for name, t in arguments.items()
    }
    output = function(**leaves)
    generator = torch.Generator().manual_seed(seed)
    upstream = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    inputs = [leaves[name] for name in names if isinstance(leaves.get(name), torch.Tensor)]
    gradients = torch.autograd.grad(
        output, inputs, upstream.to(output.dtype), allow_unused=True, materialize_grads=True
    )
    return [output.detach(), *gradients]


def both(function, arguments, names):
    with kernels.use("cpp"):
        ours = outcome(function, arguments, names)
    with kernels.use("torch"):
        theirs = outcome(function, arguments, names)
    return ours, theirs


def assert_same(ours, theirs, tolerance):
    for own, other in zip(ours, theirs, strict=True):
        assert own.shape == other.shape and own.dtype == other.dtype
        assert torch.equal(own.isnan(), other.isnan())
        assert torch.equal(own.isinf(), other.isinf())
        finite = other.isfinite()
        scale = other[finite].abs().max().item() if finite.any() else 0.0
        gap = (own[finite] - other[finite]).abs().max().item() if finite.any() else 0.0
        assert gap <= tolerance * max(scale, 1.0), (gap, scale)


@everything
def test_kernels_compute_what_the_lines_do(emitted):
    """In both formats, with and without what is optional: all gradients, and the first alone."""
    optional = {t.name for t, _ in emitted.definition.optional}
    with kernels_called(emitted.snake) as called:
        for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 2e-6)):
            arguments = emitted.arguments(dtype=dtype)
            for left_out in (set(), optional):
                passed = {n: v for n, v in arguments.items() if n not in left_out}
                for wanted in (emitted.inputs, emitted.inputs[:1]):
                    assert_same(*both(emitted.function, passed, wanted), tolerance)
    assert called


def drawn(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def norm_arguments(n, c, dtype=torch.float64):
    return {
        "x": drawn(n, c, dtype=dtype),
        "gain": drawn(c, seed=1, dtype=dtype),
        "bias": drawn(c, seed=2, dtype=dtype),
    }


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [(300, 301), (3, 70_000), (70_000, 2), (2100, 65)])
def test_blocks_threads_and_long_rows(size, threads):
    """Sizes beyond all blocks and tiles, shared by threads; the same bits each time."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        names = ["x", "gain", "bias"]
        for function in (layer_norm, batch_norm):
            arguments = norm_arguments(*size)
            ours, theirs = both(function, arguments, names)
            assert_same(ours, theirs, 1e-9 if function is layer_norm else 1e-10)
            again, _ = both(function, arguments, names)
            assert all(torch.equal(one, other) for one, other in zip(ours, again, strict=True))
        logits = drawn(*size)
        labels = torch.arange(size[0]) % size[1]
        assert_same(*both(softmax_nll, {"logits": logits, "labels": labels}, ["logits"]), 1e-12)
        assert_same(*both(softmax, {"x": logits}, ["x"]), 1e-12)
    finally:
        torch.set_num_threads(before)


HARD = {
    "large": [300.0, -300.0, 0.0, 1e4, -1e4],
    "infinite": [float("inf"), 1.0, -float("inf"), 0.0, 2.0],
    "nothing": [-float("inf")] * 5,
    "no number": [float("nan"), 1.0, 2.0, -1.0, 0.0],
    "zeros": [0.0, -0.0, 0.0, -0.0, 0.0],
    "tiny": [5e-324, 1e-310, -1e-310, 1e-39, -1e-45],
}
ALONE = [
    e
    for e in EVERYTHING
    if len(e.definition.arguments) == 1 and not e.definition.scalars and e.inputs
]


@pytest.mark.parametrize("row", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("emitted", ALONE, ids=str)
def test_extremes_come_out_as_from_the_lines(emitted, row):
    (name,) = emitted.inputs
    rank = len(emitted.definition.arguments[0].home)
    entries = torch.tensor([row, row[::-1], [1.0, 2.0, -3.0, 0.5, 0.0]], dtype=torch.float64)
    shape = {1: (15,), 2: (3, 5), 3: (3, 5, 1)}[rank]
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 1e-5)):
        x = entries.reshape(shape).to(dtype)
        assert_same(*both(emitted.function, {name: x}, [name]), tolerance)


@pytest.mark.parametrize("size", [(0, 3), (1, 3), (2, 1), (1, 1)])
def test_sizes_of_nothing_and_of_one(size):
    x = drawn(*size)
    assert_same(*both(softmax, {"x": x}, ["x"]), 1e-14)
    labels = torch.zeros(size[0], dtype=torch.int64)
    assert_same(*both(softmax_nll, {"logits": x, "labels": labels}, ["logits"]), 1e-14)
    assert_same(*both(layer_norm, norm_arguments(*size), ["x", "gain", "bias"]), 1e-12)


def test_any_strides_and_an_expanded_upstream_gradient():
    base = drawn(12, 20)
    views = [base.T, base[::2, 1::3], base.flip(0), drawn(1, 7).expand(5, 7), base[3:, 5:]]
    for view in views:
        expected = softmax(view)
        with kernels_called("softmax") as called:
            x = view.detach().requires_grad_()
            y = softmax(x)
            (dx,) = torch.autograd.grad(y.sum(), x)
        assert called and torch.allclose(y, expected, rtol=1e-14, atol=0)
        assert dx.shape == view.shape and dx.abs().max() < 1e-15


def test_a_wrong_label_is_refused_as_by_the_lines():
    for labels in (torch.tensor([0, 4, 1]), torch.tensor([0, -1, 1])):
        for function in (softmax_nll, cross_entropy):
            said = []
            for target in ("cpp", "torch"):
                with kernels.use(target), pytest.raises((IndexError, RuntimeError)) as refused:
                    function(drawn(3, 4), labels)
                said.append(str(refused.value))
            assert said[0] == said[1]


def test_ignored_labels_weights_and_more_dimensions():
    logits, labels = (
        drawn(4, 5, 3),
        torch.tensor([[0, -100, 2], [4, 1, 1], [2, 2, -100], [3, 0, 4]]),
    )
    for more in ({}, {"weight": drawn(5).abs()}, {"label_smoothing": 0.1}):
        arguments = {"logits": logits, "labels": labels, **more}
        assert_same(*both(cross_entropy, arguments, ["logits"]), 1e-14)


# -- where kernels do not compute ---------------------------------------------


def test_what_autograd_or_a_transform_records_is_left_to_the_lines():
    arguments = norm_arguments(5, 3)
    leaves = [t.requires_grad_() for t in arguments.values()]
    with kernels_called("batch_norm") as called:
        y, *_ = generated.batch_norm.batch_norm_forward(*leaves, 1e-5)
        assert y.grad_fn is not None and not called  # recorded, operation by operation
        first = torch.autograd.grad(batch_norm(*leaves).square().sum(), leaves, create_graph=True)
        assert called == ["forward"]
        second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        assert called == ["forward", "backward"]  # of y, which is not differentiated again
    with kernels.use("torch"):
        first = torch.autograd.grad(batch_norm(*leaves).square().sum(), leaves, create_graph=True)
        expected = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
    assert_same(second, expected, 1e-11)


def test_the_plain_functions_run_on_kernels_too():
    """Which train without autograd; by name or by place."""
    module, x = generated.rms_norm, drawn(4, 3)
    gain, dy = drawn(3, seed=1), drawn(4, 3, seed=2)
    with kernels_called("rms_norm") as called:
        y, inv_rms = module.rms_norm_forward(x, gain, 1e-5)
        dx, dgain = module.rms_norm_backward(dy, x, gain, inv_rms, True, False)
        assert called == ["forward", "backward"] and dgain is None
        module.rms_norm_backward(dy, x, gain, inv_rms, need_gain=False)
    expected = module.rms_norm_backward(dy, x, gain, inv_rms)
    assert_same([dx], expected[:1], 1e-14)
    assert_same([y], [module.rms_norm_forward(x, gain, 1e-5)[0]], 1e-14)


def test_transforms_and_tensors_without_data():
    x = drawn(4, 3)
    expected = softmax(x)
    with kernels_called("softmax") as called:
        batched = torch.func.vmap(softmax)(x.unsqueeze(1)).squeeze(1)
        assert torch.allclose(batched, expected)
        with FakeTensorMode() as mode:
            assert softmax(mode.from_tensor(x)).shape == (4, 3)
        assert softmax(x.to("meta")).shape == (4, 3)
        jacobian = torch.func.jacrev(softmax)(x)
        assert torch.allclose(jacobian, torch.func.jacrev(lambda t: torch.softmax(t, 1))(x))
        compiled = torch.compile(softmax, backend="eager", fullgraph=True)
        assert torch.allclose(compiled(x), expected)
        assert not called
        assert softmax(x.bfloat16()).dtype == torch.bfloat16  # computed in float32
        assert called == ["forward"]


@pytest.fixture
def given(monkeypatch):
    """Arguments of the kernels that were called, by name."""
    found, call = [], _running.Kernel.__call__

    def seen(kernel, *arguments):
        found.append((kernel.name, arguments))
        return call(kernel, *arguments)

    monkeypatch.setattr(_running.Kernel, "__call__", seen)
    return found


@pytest.mark.parametrize("wanted", [["gain"], ["gain", "bias"], ["x", "bias"], ["bias"]])
def test_a_gradient_that_is_not_wanted_has_no_place(wanted, given):
    arguments = norm_arguments(5, 3)
    leaves = [arguments[name].requires_grad_() for name in wanted]
    with kernels_called("layer_norm") as called:
        ours = torch.autograd.grad(layer_norm(**arguments).square().sum(), leaves)
    assert called == ["forward", "backward"]
    (_, passed), makes = given[-1], ("gain", "bias", "x")
    there = [array is not None for array in passed[-5:-2]]  # before the sizes
    assert there == [name in wanted for name in makes]
    assert_same(ours, torch.autograd.grad(layer_norm(**arguments).square().sum(), leaves), 1e-12)


# -- losses with their gradients ------------------------------------------------


def test_a_loss_comes_with_its_gradients_in_one_kernel(given):
    x, y = drawn(6, 7).requires_grad_(), drawn(6, 7, seed=1)
    with kernels_called("mse") as called:
        (ours,) = torch.autograd.grad(3 * mse(x, y), x)
        assert called == ["at_once"]
        mse(x.detach(), y), mse(x, y, reduction="none")
        assert called == ["at_once", "forward", "forward"]
    assert_same([ours], torch.autograd.grad(3 * mse(x, y), x), 1e-15)


@pytest.mark.parametrize("more", [{}, {"weight": drawn(3).abs()}, {"label_smoothing": 0.2}])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_options_ignored_labels_and_reductions(more, reduction):
    """A label that is ignored may be none of the classes, or one of them."""
    arguments = {"logits": drawn(4, 3), "labels": torch.tensor([0, 2, -100, 1]), **more}
    for ignored in (-100, 2, 7):
        arguments["labels"][2] = ignored
        own = {**arguments, "ignore_index": ignored, "reduction": reduction}
        assert_same(*both(cross_entropy, own, ["logits"]), 1e-14)
    own["labels"] = torch.full((4,), ignored)  # of nothing the mean is NaN
    assert_same(*both(cross_entropy, own, ["logits"]), 1e-14)


def test_a_label_that_is_out_of_range_is_refused_as_the_lines_do():
    logits, labels = drawn(4, 3).requires_grad_(), torch.tensor([0, 3, -100, 1])
    with kernels.use("cpp"), pytest.raises(IndexError, match="labels holds 3"):
        cross_entropy(logits, labels)


@pytest.mark.parametrize("loss", [mse, softmax_nll], ids=lambda loss: loss.__name__)
def test_gradients_of_a_loss_may_be_asked_for_again_and_differentiated(loss):
    x = drawn(4, 3).requires_grad_()
    y = drawn(4, 3, seed=1) if loss is mse else torch.tensor([0, 2, 1, 1])
    with kernels.use("cpp"):
        value = loss(x, y)
        first = [torch.autograd.grad(n * value, x, retain_graph=True)[0] for n in (1, 2, 1)]
        assert torch.equal(first[1], 2 * first[0]) and torch.equal(first[2], first[0])
        upstreams = torch.arange(3.0, dtype=x.dtype)
        (batch,) = torch.autograd.grad(value, x, upstreams, True, is_grads_batched=True)
        assert_same([batch[2]], [first[1]], 1e-14)
        assert torch.autograd.gradgradcheck(lambda x: loss(x, y), x)


def test_a_gradient_in_16_bits_is_not_rounded_before_it_is_scaled():
    """The scale of a loss is there so that small gradients do not vanish in float16."""
    x = torch.full((512, 512), 1e-3, dtype=torch.float16, requires_grad=True)
    y = torch.zeros_like(x)
    with kernels.use("cpp"):
        (ours,) = torch.autograd.grad(mse(x, y).float() * 2**16, x)
    assert_same([ours], torch.autograd.grad(mse(x, y).float() * 2**16, x), 1e-3)
    assert ours.min() > 0


def test_what_was_changed_in_place_after_a_loss_is_told_of():
    logits, labels = drawn(4, 3).requires_grad_(), torch.tensor([0, 2, 1, 1])
    with kernels.use("cpp"):
        doubled = logits * 2
        loss = softmax_nll(doubled, labels)
        doubled.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


# -- choosing -----------------------------------------------------------------


def test_one_word_chooses_and_a_block_restores():
    x = {"x": drawn(4, 3)}
    with kernels_called("softmax") as called:
        softmax(**x)
        with generated.use("torch"):
            softmax(**x)
            with generated.use("cpp"):
                softmax(**x)
        assert called == ["forward"] * 2
    softmax(**x)
    assert called == ["forward"] * 2
    with pytest.raises(ValueError, match="unknown target 'cuda': choose one of torch, cpp"):
        generated.use("cuda")


PROGRAM = """
import torch, warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from generated.softmax import softmax
    x = torch.arange(6.0).reshape(2, 3)
    y = softmax(x)
    softmax(x)
assert torch.allclose(y, torch.softmax(x, 1)), y
from generated import kernels
from generated.kernels import _building, _running
print(kernels._state["target"], len(said), *(str(w.message) for w in said))
"""


def run(program: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    environment = {n: v for n, v in os.environ.items() if n != "GRADFORM_TARGET"}
    return warm.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
    )


def test_a_variable_chooses_too():
    assert run(PROGRAM).stdout.split() == ["torch", "0"]
    assert run(PROGRAM, GRADFORM_TARGET="cpp").stdout.split() == ["cpp", "0"]
    wrong = run(PROGRAM, GRADFORM_TARGET="cuda")
    assert wrong.returncode and "unknown target 'cuda'" in wrong.stderr


def test_where_no_kernels_were_written_it_is_said_how_they_are(tmp_path):
    (tmp_path / "mine").mkdir()
    shutil.copy(ROOT / "generated" / "__init__.py", tmp_path / "mine")
    wrong = run("import mine; mine.use('triton')", tmp_path)
    assert "gradform NAME --target triton" in wrong.stderr


def test_without_a_compiler_torch_runs_and_says_so_once(tmp_path):
    alone = {"PATH": str(tmp_path), "GRADFORM_TARGET": "cpp", "GRADFORM_KERNELS": str(tmp_path)}
    alone["CXX"] = ""
    said = run(PROGRAM, **alone).stdout
    assert said.startswith("torch 1 no C++ compiler found: install g++, or set CXX to one")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\n[ $1 = --version ] && exit 0\necho of no use >&2\nexit 1\n")
    broken.chmod(0o755)
    said = run(PROGRAM, **(alone | {"CXX": str(broken)})).stdout
    assert said.startswith("cpp 1 ") and "of no use" in said and "softmax runs on torch" in said
    said = run(PROGRAM, **(alone | {"CXX": "g++ -D'A"})).stdout
    assert said.startswith(
        "torch 1 the CXX environment variable is not a command: No closing quotation"
    )


def test_the_variable_of_the_compiler_may_hold_options(tmp_path):
    variables = {"GRADFORM_TARGET": "cpp", "GRADFORM_KERNELS": str(tmp_path)}
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    for options in ("-g", "-g '-DTWO=1 + 1'"):
        assert run(PROGRAM, CXX=f"{compiler} {options}", **variables).stdout.split() == ["cpp", "0"]
    assert len(list(tmp_path.glob("*.so"))) == 2
    said = run(PROGRAM, CXX=f"{compiler} --no-such-option", **variables).stdout
    assert said.startswith("cpp 1 ") and "--no-such-option" in said


def copied(folder: Path) -> Path:
    package = folder / "generated"
    (package / "kernels").mkdir(parents=True)
    for name in ("__init__.py", "softmax.py"):
        shutil.copy(ROOT / "generated" / name, package / name)
    kernels = ROOT / "generated" / "kernels"
    for file in (*kernels.glob("_*.py"), *kernels.glob("*.h"), *kernels.glob("softmax.*")):
        shutil.copy(file, package / "kernels" / file.name)
    return package


def test_kernels_of_another_text_are_not_used(tmp_path):
    package = copied(tmp_path)
    assert run(PROGRAM, tmp_path, GRADFORM_TARGET="cpp").stdout.split()[:2] == ["cpp", "0"]
    with (package / "softmax.py").open("a") as module:
        module.write("# edited\n")
    said = run(PROGRAM, tmp_path, GRADFORM_TARGET="cpp").stdout
    assert said.startswith("cpp 1 the kernels of softmax belong to another version of the module")
    assert "gradform softmax --target cpp" in said


def test_a_cache_that_cannot_be_written_breaks_nothing(tmp_path):
    """Root may write everywhere, but no folder can be made below a file."""
    (tmp_path / "file").write_text("")
    variables = {"GRADFORM_KERNELS": str(tmp_path / "file" / "below"), "GRADFORM_TARGET": "cpp"}
    assert run(PROGRAM, **variables).stdout.split() == ["cpp", "0"]


def test_many_threads_and_processes_build_at_once(tmp_path):
    variables = {"GRADFORM_KERNELS": str(tmp_path), "GRADFORM_TARGET": "cpp"}
    program = PROGRAM.replace("y = softmax(x)", "y = in_threads(lambda: softmax(x))")
    threads = (
        "import threading\n"
        "def in_threads(f):\n"
        "    found = []\n"
        "    every = [threading.Thread(target=lambda: found.append(f())) for _ in range(8)]\n"
        "    [t.start() for t in every]; [t.join() for t in every]\n"
        "    assert len(found) == 8\n"
        "    return found[0]\n"
    )
    found: list[str] = []
    processes = [
        threading.Thread(target=lambda: found.append(run(threads + program, **variables).stdout))
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [said.split() for said in found] == [["cpp", "0"]] * 2
    assert [file.suffix for file in tmp_path.iterdir()] == [".so"]


# -- what is written ----------------------------------------------------------


def test_a_wrong_kernel_is_not_written():
    """The driver runs what it writes, in both formats."""
    language = languages["cpp"]

    def generated_with(change):
        texts = type(language).texts

        class Changed(type(language)):
            def texts(self, pairs, module):
                kernel, wrapper = texts(self, pairs, module)
                return change(kernel), wrapper

        return generate(forward_from("mse"), kernels=Changed())

    assert generated_with(lambda kernel: kernel).kernels
    with pytest.raises(UnprovedError, match="differs from autograd"):
        generated_with(lambda kernel: kernel.replace("Real(2)", "Real(3)"))
    with pytest.raises(UnprovedError, match=r"in torch\.float32"):
        more = "Real(2 + sizeof(Real) % 8)"  # in float32
        generated_with(lambda kernel: kernel.replace("Real(2)", more))
    with pytest.raises(QuestionError, match="cannot build"):
        generated_with(lambda kernel: kernel.replace("return DONE", "return DOES"))
    with pytest.raises(UnprovedError, match="no test call reached at_once, backward, forward"):
        generated_with(lambda kernel: kernel.replace("return DONE", "return OUT_OF_RANGE"))


def test_without_a_compiler_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(QuestionError, match="no C"):
        generate(forward_from("mse"), kernels=languages["cpp"])


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64", reason="no libmvec"
)
@pytest.mark.parametrize("name", ["softmax_nll", "gelu", "focal"])  # focal: chosen by a number
def test_vectors_are_filled(name):
    """A loop that is not vectorised calls the functions of one number alone."""
    library = _building.built(_building.FOLDER / f"{name}.cpp")
    assert {b"_ZGVdN8v_expf", b"_ZGVeN16v_expf", b"_ZGVbN4v_expf"} & {*symbols(library)}


def symbols(library: Path) -> list[bytes]:
    return re.findall(rb"_ZGV\w+", library.read_bytes())


def test_mse_and_huber_are_told_apart():
    """A file of kernels is found by its text, so one is never run in the place of another."""
    x, y = drawn(4), drawn(4, seed=1)
    with kernels.use("cpp"):
        assert not torch.allclose(mse(x, y), huber(x, y))
