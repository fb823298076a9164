"""Nothing that lies in memory, in the cache or in a folder ends the process or is silently wrong
where kernels run: what they cannot read is computed by the lines, what was damaged is built anew.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

from codegen.commands.cli import main
from codegen.driver.lean import generate
from codegen.targets.languages import kernels as languages
from derive import forward_from
from derive.language.errors import NotationError, QuestionError

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)
LONGEST = 120  # seconds of a process


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A package of two functions with what all kernels share, as it is written now."""
    package = tmp_path_factory.mktemp("package") / "generated"
    (package / "kernels").mkdir(parents=True)
    shutil.copy(ROOT / "generated" / "__init__.py", package)
    for name in ("softmax", "softmax_nll"):
        shutil.copy(ROOT / "generated" / f"{name}.py", package)
        for file in (ROOT / "generated" / "kernels").glob(f"{name}.*"):
            shutil.copy(file, package / "kernels")
    for name, text in languages["cpp"].shared().items():
        (package / "kernels" / name).write_text(text)
    return package.parent


def started(program: str, folder: Path, cache: Path) -> subprocess.Popen:
    return warm.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "GRADFORM_KERNELS": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, folder: Path, cache: Path):
    """The JSON that a process prints; if it fails, its error output."""
    process = started(program, folder, cache)
    out, said = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, (process.returncode, said)
    return json.loads(out)


# -- memory ---------------------------------------------------------------------

TENSORS = """
import json
import torch
import generated
from generated.softmax import softmax, softmax_backward
from generated.softmax_nll import softmax_nll
from torch._subclasses import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

torch.manual_seed(0)
x, labels = torch.randn(4, 5).double(), torch.tensor([0, 1, 4, 2])
def zeros(*shape, dtype=torch.float64):
    return torch._efficientzerotensor(*shape, dtype=dtype, device="cpu")

def gradient(upstream, function=softmax):
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf, upstream)[0]

class Subclass(torch.Tensor):
    pass

with FakeTensorMode() as mode:
    fake = mode.from_tensor(x)
escaped = []
torch.func.grad(lambda t: (escaped.append(t), t.sum())[1])(x)
cases = {
    "no memory": lambda: softmax(zeros(4, 5)),
    "no memory upstream": lambda: gradient(zeros(4, 5)),
    "no memory, backward": lambda: softmax_backward(zeros(4, 5), torch.softmax(x, 1)),
    "no memory, loss": lambda: gradient(zeros(()), lambda t: softmax_nll(t, labels)),
    "no memory, labels": lambda: softmax_nll(x, zeros(4, dtype=torch.int64)),
    "negative": lambda: softmax(torch._neg_view(x)),
    "negative upstream": lambda: gradient(torch._neg_view(x)),
    "negative labels": lambda: softmax_nll(x, torch._neg_view(-labels)),
    "conjugated": lambda: softmax(torch.complex(x, x).conj().imag),
    "part of a complex one": lambda: softmax(torch.view_as_real(torch.complex(x, -x))[..., 0]),
    "meta": lambda: softmax(x.to("meta")),
    "fake": lambda: softmax(fake),
    "fake upstream": lambda: gradient(fake),
    "sparse": lambda: softmax(x.to_sparse()),
    "rows of a sparse one": lambda: softmax(x.to_sparse_csr()),
    "mkldnn": lambda: softmax(x.float().to_mkldnn()),
    "nested": lambda: softmax(torch.nested.nested_tensor([x, x])),
    "quantized": lambda: softmax(torch.quantize_per_tensor(x.float(), 0.1, 0, torch.quint8)),
    "functional": lambda: torch._from_functional_tensor(softmax(torch._to_functional_tensor(x))),
    "not aligned": lambda: softmax(
        torch.frombuffer(bytearray(200), dtype=torch.float64, count=20, offset=3).reshape(4, 5)
    ),
    "an offset": lambda: softmax(torch.arange(24.0, dtype=torch.float64)[3:23].reshape(4, 5)),
    "overlapping": lambda: softmax(x.as_strided((4, 5), (1, 1))),
    "expanded upstream": lambda: gradient(x[:1].expand(4, 5)),
    "nothing": lambda: gradient(x[:0], lambda t: softmax(t[:0])),
    "a subclass": lambda: softmax(x.as_subclass(Subclass)),
    "dispatching": lambda: softmax(TwoTensor(x, x.clone())).a,
    "inference": lambda: torch.inference_mode()(softmax)(x),
    "traced": lambda: torch.jit.trace(softmax, x)(x.flip(0)),
    "forward mode": lambda: torch.func.jvp(softmax, (x,), (zeros(4, 5),))[1],
    "escaped": lambda: softmax(escaped[0]),
}
found = {}
for name, case in cases.items():
    results = []
    for target in ("torch", "cpp"):
        with generated.use(target):
            try:
                results.append(case())
            except Exception as error:
                results.append(str(error)[:60])
    one, other = results
    if isinstance(one, str) or isinstance(other, str):
        same = isinstance(one, str) and one == other
    elif one.device.type == "meta" or isinstance(one, type(fake)):
        same = type(one) is type(other) and one.shape == other.shape
    else:
        same = torch.allclose(one, other, rtol=1e-13, atol=1e-15, equal_nan=True)
    found[name] = "" if same else [str(one), str(other)]
print(json.dumps(found))
"""


def test_what_a_kernel_cannot_read_is_left_to_the_lines(folder, tmp_path):
    found = run(TENSORS, folder, tmp_path)
    assert len(found) == 30 and not any(found.values()), found


STEP = """
import json, importlib, pathlib
import torch
from generated.kernels._training import TrainingStep

zero = torch._efficientzerotensor(4, 5, dtype=torch.float64, device="cpu")
tied, rows, said = torch.randn(30).double(), torch.randn(8, 3).double(), []
over = {"w": tied[:20].view(4, 5), "v": tied[10:]}
for parameters in ({"w": zero}, over, {"w": torch._neg_view(tied)}):
    try:
        TrainingStep(pathlib.Path("none.cpp"), {"N": 4}, {"x": rows}, parameters, ())
    except ValueError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def test_a_step_changes_only_what_it_can(folder, tmp_path):
    plain = "w must be a plain contiguous tensor on the CPU"
    same = "w and v share memory: clone one of them"
    assert run(STEP, folder, tmp_path) == [plain, same, plain]


def test_a_gradient_that_comes_from_no_number_is_none(tmp_path):
    """By kernels and by lines, whatever the number of entries."""
    written = generate(forward_from("elu"), kernels=languages["cpp"])
    package = tmp_path / "elus"
    kernels = package / "kernels"
    kernels.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "elu.py").write_text(written.text)
    for name, text in languages["cpp"].shared().items():
        (kernels / name).write_text(text)
    for end, text in zip((".cpp", ".py"), written.kernels, strict=True):
        (kernels / f"elu{end}").write_text(text)
    program = """
import json, torch
from elus.elu import elu
from elus.kernels import use
found = []
for target in ("torch", "cpp"):
    with use(target):
        for n in (1, 3, 40):
            for alpha in (1, 0.5):
                x = torch.full((n,), torch.nan).double().requires_grad_()
                elu(x, alpha).sum().backward()
                found.append(bool(x.grad.isnan().all()))
print(json.dumps(found))
"""
    assert run(program, tmp_path, tmp_path / "cache") == [True] * 12


# -- the cache ------------------------------------------------------------------

USING = """
import json, warnings
import torch
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import generated
    generated.use("cpp")
    from generated.softmax import softmax
    x = torch.arange(6.0).reshape(2, 3)
    y = softmax(x)
    softmax(x)
assert torch.allclose(y, torch.softmax(x, 1))
from generated.kernels import softmax as wrapper
kernel = "loaded" if wrapper.kernels.forward.functions else "refuses"
print(json.dumps([kernel, *(str(w.message) for w in said)]))
"""


def flipped(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[4096:] = bytes(255 - byte for byte in content[4096:])
    library.write_bytes(content)


def foreign(library: Path) -> None:
    """Another library under its name, which has no such kernel."""
    source = library.with_name("other.cpp")
    source.write_text('extern "C" int other() { return 0; }')
    compiler = (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")).split()
    subprocess.run([*compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    source.unlink()


DAMAGE = {
    "cut off": lambda library: os.truncate(library, 5000),
    "nearly whole": lambda library: os.truncate(library, library.stat().st_size - 1),
    "empty": lambda library: os.truncate(library, 0),
    "flipped": flipped,
    "foreign": foreign,
    "text": lambda library: library.write_text("nothing of use"),
    "dangling": lambda library: (library.unlink(), library.symlink_to("nowhere")),
}


def test_a_library_that_is_not_what_was_built_is_built_anew(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADFORM_KERNELS", str(tmp_path))
    kernels = folder / "generated" / "kernels"
    spec = importlib.util.spec_from_file_location("building", kernels / "_building.py")
    building = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(building)
    library = building.built(kernels / "softmax.cpp")
    whole, made = library.read_bytes(), library.stat().st_mtime_ns
    assert building.built(kernels / "softmax.cpp") == library
    assert library.stat().st_mtime_ns == made
    for name, damage in DAMAGE.items():
        damage(library)
        assert building.built(kernels / "softmax.cpp") == library, name
        assert [*tmp_path.iterdir()] == [library] and library.read_bytes() == whole, name


def test_a_library_that_cannot_be_loaded_leaves_it_to_torch_and_says_so_once(folder, tmp_path):
    """Its name says that it is whole; or nothing can be put into its place."""
    run(USING, folder, tmp_path)
    (library,) = tmp_path.iterdir()
    start = library.stem.rpartition("-")[0]
    foreign(library)
    library.rename(tmp_path / f"{start}-{hashlib.sha256(library.read_bytes()).hexdigest()[:32]}.so")
    kernel, *said = run(USING, folder, tmp_path)
    assert kernel == "refuses" and len(said) == 1 and "undefined symbol: forward" in said[0]
    assert said[0].endswith("softmax runs on torch")
    (wrong,) = tmp_path.iterdir()
    wrong.unlink()
    library.mkdir()
    kernel, *said = run(USING, folder, tmp_path)
    assert kernel == "refuses" and len(said) == 1 and "softmax runs on torch" in said[0]


def test_what_a_killed_build_leaves_is_removed_by_the_next_one(folder, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit 0\ntouch $TMPDIR/left.s\nexec sleep 60\n"
    )
    slow.chmod(0o755)
    cache = tmp_path / "cache"
    setting = f"import os; os.environ['CXX'] = '{slow}'\n"
    process, other = (started(setting + USING, folder, cache) for _ in range(2))
    until = time.monotonic() + LONGEST
    while len([*cache.glob(".building-*/left.s")]) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert len([*cache.iterdir()]) == 2
    try:
        assert run(USING, folder, cache) == ["loaded"]
        left = sorted(path.name.partition("-")[0] for path in cache.iterdir())
        assert left == [".building", "softmax"]  # of who builds still, and the new library
    finally:
        other.kill()
        other.wait()


# -- names and folders ------------------------------------------------------------

BODY = "    x = Input(N)\n    y = exp(x)\n"
HEAD = "from sympy import exp\nfrom derive import Axis, Forward, Input\nN = Axis('N')\n"


@pytest.mark.parametrize("name", ["Kernels", "KERNELS", "kernels", "Use", "use"])
def test_a_name_that_stands_beside_the_modules_is_refused(name, tmp_path):
    file = tmp_path / "named.py"
    file.write_text(f"{HEAD}class {name}(Forward):\n{BODY}")
    with pytest.raises(NotationError, match="kernels and use stand beside the modules"):
        forward_from(file)


def test_two_forwards_of_one_kernel_file_are_refused(tmp_path):
    from codegen.driver.writing import kernel_files

    class Result:
        def __init__(self, name, *kernels):
            self.file, self.kernels = f"{name}.py", kernels

    results = [Result("net", "a", "b", "the step"), Result("net_step", "c", "d")]
    with pytest.raises(QuestionError, match=r"net_step\.cpp would be written twice"):
        kernel_files(tmp_path, results, languages["cpp"])


@pytest.mark.parametrize("leads_to", ["elsewhere", "nowhere"])
def test_a_folder_of_kernels_that_is_a_link_is_not_written_through(leads_to, tmp_path, capsys):
    file, out = tmp_path / "thing.py", tmp_path / "out"
    file.write_text(f"{HEAD}class Thing(Forward):\n{BODY}")
    for each in (out, tmp_path / "elsewhere"):
        each.mkdir()
    (out / "kernels").symlink_to(tmp_path / leads_to)
    command = [str(file), "--target", "cpp", "--out", str(out)]
    assert main(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "kernels is a symbolic link" in said and "remove the link" in said
    assert not [*(tmp_path / "elsewhere").iterdir()] and len([*out.iterdir()]) == 1
    (out / "kernels").unlink()
    (out / "kernels").mkdir()
    (out / "kernels" / "thing.cpp").symlink_to(tmp_path / leads_to / "thing.cpp")
    assert main(command) == 2 and not [*(tmp_path / "elsewhere").iterdir()]
    assert "thing.cpp is a symbolic link" in " ".join(capsys.readouterr().err.split())
