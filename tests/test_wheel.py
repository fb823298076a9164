"""The installed package is whole, and works away from the repository: the archive of the sources is
built, the wheel from it, and that is installed where nothing else is but what gradform needs.
"""

import ast
import email
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import derive
from codegen.commands.cli import gradform
from codegen.files.dependencies import files_behind
from derive.language.distributions import NONE, distribution_of
from derive.language.errors import QuestionError
from derive.language.notation.library import forward_from
from derive.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("derive", "codegen", "gradform", "certificates")
GALLERY = "generated"
INSIDE = ("derive", "codegen", "certificates", GALLERY)  # of the one package that a wheel holds
LARGEST = 3_000_000  # bytes of a wheel
COMPILED = bool(os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++"))
pytestmark = pytest.mark.xdist_group("wheel")  # it is built once

OWN = """
from helper import mean
from sympy import tanh
from gradform import Axis, Forward, Input
N, C = Axis("N"), Axis("C")
class Centred(Forward):
    x = Input(N, C)
    y = tanh(x - mean(x, N))
"""
HELPER = """
from gradform import Sum
def mean(x, axis):
    return Sum(x, axis) / axis
"""
# Commands in the words of a person, each with what it says when it worked.
SAID = {
    "own.py --out out": "written to out: centred.py",
    "batch_norm": "written to generated: batch_norm.py",
    "batch_norm --check": "batch_norm",
    "show cross_entropy": "logits",
    "show softmax --format html": "</html>",
    "check softmax 'y*(dy - (dy*y).sum(-1, keepdim=True))'": "right: dx of softmax",
    "check own.py 'dy*(1 - y**2) - Sum(dy*(1 - y**2), N)/N'": "right: dx of centred",
    "trace relu": "codegen.driver.gate.compared",
    "report relu": "written to generated/REPORT.md",
    "site relu --output pages": "pages",
}
COMMANDS = f"""
import contextlib, io, json, shlex, sys
from gradform.codegen.commands.cli import gradform
if __name__ == "__main__":
    for command in {list(SAID)!r}:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = gradform(shlex.split(command))
        print(json.dumps([command, status, out.getvalue(), err.getvalue()]))
"""
KERNELS = """
import torch
from gradform import generated
from gradform.generated.softmax import softmax
generated.use("cpp")
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
torch.testing.assert_close(softmax(x), torch.softmax(x, -1))
(softmax(x) ** 2).sum().backward()
other = x.detach().requires_grad_()
(torch.softmax(other, -1) ** 2).sum().backward()
torch.testing.assert_close(x.grad, other.grad)
"""
# Somebody's own folder has the name that the gallery has in the repository.
BESIDE = """
import gradform.generated.batch_norm as theirs
import generated.batch_norm as own
import generated.centred as centred
print(own.__file__, theirs.__file__, own.batch_norm.__module__, theirs.batch_norm.__module__)
import torch
x, gain, bias = torch.randn(3, 4), torch.randn(4), torch.randn(4)
assert torch.equal(own.batch_norm(x, gain, bias), theirs.batch_norm(x, gain, bias))
assert centred.centred(x).shape == x.shape
"""


def repository(*folders: str, new: bool = False) -> set[str]:
    """The files of git's in folders, or all; with those that it will have."""
    options = ["--others", "--exclude-standard"] if new else []
    words = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", *options, *folders]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).is_file()}


def in_wheel(names: set[str]) -> set[str]:
    """Where a wheel has files of the repository: all in the package ``gradform``."""
    return {f"gradform/{n}" if n.split("/")[0] in INSIDE else n for n in names}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the archive of the sources, and with the wheel that was built from it."""
    sources, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("built")
    for name in repository(new=True):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, sources / name)
    archive = "from setuptools import build_meta as b; import sys; b.build_sdist(sys.argv[1])"
    ran(sys.executable, "-c", archive, str(folder), cwd=sources)
    [made] = folder.glob("*.tar.gz")
    offline = ("--no-index", "--no-deps", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    ran(*pip, "wheel", *offline, "--wheel-dir", str(folder), str(made), cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The folder of an environment with the wheel, which sees what gradform needs, but no editable
    install: of a folder that a .pth names, no .pth is read.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    [wheel] = built.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ("--no-index", "--no-deps", "--no-compile", "--quiet")
    ran(*pip, "--python", str(folder), "install", *options, str(wheel), cwd=folder)
    [packages] = folder.glob("lib/python3*/site-packages")
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "others.pth").write_text("\n".join(others))
    return folder


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder with a file of one's own, which is not where gradform is."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "helper.py").write_text(HELPER)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("GRADFORM_KERNELS", str(tmp_path / "libraries"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(*words: str, cwd: Path) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_wheel_and_the_sources_hold_every_file_of_the_repository(built):
    [wheel], [sources] = built.glob("*.whl"), built.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sources) as archive:
        archived = {name.partition("/")[2] for name in archive.getnames()}
    assert in_wheel(repository(*PACKAGES, GALLERY)) - names == set()
    assert repository() - archived == set()
    added = names - in_wheel(repository(*PACKAGES, GALLERY, new=True))
    assert [name for name in added if ".dist-info/" not in name] == []
    about = email.message_from_bytes(_of_distribution(wheel, "METADATA"))
    assert about["License-Expression"] == "MIT" and about["Version"] == VERSION
    assert about["Author"] == "The gradform developers" and len(about.get_all("Project-URL")) > 2
    assert {*_of_distribution(wheel, "top_level.txt").decode().split()} == {"gradform"}
    assert wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as packed:
        for name in (n for n in names if n.endswith((".py", ".pyi")) and GALLERY not in n):
            assert elsewhere(ast.parse(packed.read(name))) == [], name


def elsewhere(tree: ast.Module) -> list[str]:
    """The modules that a file imports, or names, by what they are called in the repository."""
    nodes = [*ast.walk(tree)]
    found = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    found += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom) and not n.level]
    strings = (n.value for n in nodes if isinstance(n, ast.Constant))
    found += [text for text in strings if re.fullmatch(r"(derive|codegen)(\.\w+)+", str(text))]
    beside = {f"codegen.{of.partition('.')[2]}" for of in derive.BESIDE.values()}
    return [name for name in found if name.split(".")[0] in INSIDE and name not in beside]


def _of_distribution(wheel: Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as packed:
        [path] = (each for each in packed.namelist() if each.endswith(f".dist-info/{name}"))
        return packed.read(path)


def test_the_installed_console_script_lists_the_gallery(installed, work):
    listed = ran(str(installed / "bin" / "gradform"), "list", cwd=work).splitlines()
    names = [line.split()[0] for line in listed]
    assert {"batch_norm", "cross_entropy", "softmax"} <= {*names}
    assert len(names) == len(list((ROOT / "generated").glob("[a-z]*.py")))
    python = str(installed / "bin" / "python")
    assert ran(python, "-m", "gradform", "list", cwd=work).splitlines() == listed
    said = ran(python, "-c", "import gradform; print(gradform.__version__)", cwd=work)
    assert said.strip() == VERSION


def test_the_installed_console_script_says_its_version(installed, work):
    said = ran(str(installed / "bin" / "gradform"), "--version", cwd=work)
    assert said == f"gradform {VERSION}\n"


def test_every_verb_works_away_from_the_repository(installed, work):
    """Nothing is written but to where one is."""
    before = {f for f in installed.rglob("*") if "__pycache__" not in f.parts}
    (work / "commands.py").write_text(COMMANDS)
    python = str(installed / "bin" / "python")
    found = [json.loads(line) for line in ran(python, "commands.py", cwd=work).splitlines()]
    assert [command for command, *_ in found] == list(SAID)
    for command, status, out, err in found:
        assert status == 0 and SAID[command] in out + err, f"{command}\n{out}{err}"
    assert {f for f in installed.rglob("*") if "__pycache__" not in f.parts} == before
    assert str(ROOT) not in ran(python, "-c", "import gradform; print(gradform.__path__)", cwd=work)


def test_the_gallery_is_in_the_way_of_no_folder_of_ones_own(installed, work):
    """And its kernels are built in another folder."""
    script, python = str(installed / "bin" / "gradform"), str(installed / "bin" / "python")
    with pytest.raises(AssertionError, match="No module named 'generated'"):
        ran(python, "-c", "import generated", cwd=work)
    ran(script, "batch_norm", "own.py", cwd=work)
    own, theirs, *modules = ran(python, "-c", BESIDE + KERNELS * COMPILED, cwd=work).split()
    assert own == str(work / "generated" / "batch_norm.py")
    assert Path(theirs).parent.parts[-3:] == ("site-packages", "gradform", "generated")
    assert modules == ["generated.batch_norm", "gradform.generated.batch_norm"]
    assert not COMPILED or list((work / "libraries").glob("softmax-*.so"))


def test_a_module_of_ones_own_may_be_called_as_a_folder_of_the_repository(installed, work):
    """And a file that imports from that folder is told where it is now."""
    script, python = str(installed / "bin" / "gradform"), str(installed / "bin" / "python")
    (work / "checkout.py").write_text(OWN.replace("gradform", "derive"))
    told = subprocess.run([script, "checkout.py"], cwd=work, capture_output=True, text=True)
    assert "write from gradform import Axis, Forward, Input" in told.stderr
    (work / "derive.py").write_text(HELPER)
    (work / "codegen.py").write_text("from gradform.derive.math.tanh import Tanh as tanh\n")
    own = OWN.replace("helper", "derive").replace("sympy", "codegen")
    own = own.replace("tanh(x - mean(x, N))", "x - mean(x, N)") + "    z = tanh(y)\n"
    (work / "own.py").write_text(own)
    ran(script, "own.py", cwd=work)
    ran(python, "-c", "import own, derive; assert derive.mean", cwd=work)


def recorded(folder: Path, name: str, *files: str, record: bool = True) -> None:
    """Files as pip leaves them, or as a system's packages do, without a record of files."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    if record:
        (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))


# A folder may be called anything: what is recorded in it decides.
@pytest.mark.parametrize("folder", ["lib/site-packages", "dist-packages", "vendored", "sympy"])
def test_what_is_installed_is_known_by_its_record(folder, tmp_path):
    place = tmp_path / folder
    recorded(place, "norms", "norms/__init__.py", "norms/deep/layer.py", "single.py")
    recorded(place, "of-debian", "of_debian/__init__.py", record=False)
    recorded(place, "editable", "__editable___finder.py")
    for own in ("mine.py", "editable/theirs.py", "normsy/__init__.py"):
        assert distribution_of(place / own) == NONE
    for file in ("norms/__init__.py", "norms/deep/layer.py", "norms/added.py", "single.py"):
        assert distribution_of(place / file) == "norms 1.0"
    assert distribution_of(place / "of_debian" / "__init__.py") == "of-debian 1.0"
    assert distribution_of(tmp_path / "norms" / "__init__.py") == NONE


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages/mine", "sympy", "derive"])
def test_a_file_of_ones_own_may_lie_in_a_folder_of_any_name(folder, tmp_path):
    """Its helpers are seen as its own, what is wrong with it is said of its line, and a change of a
    helper is a change of it.
    """
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "own.py").write_text(OWN)
    (place / "helper.py").write_text(HELPER)
    assert forward_from(place / "own.py").definition.place.file == str(place / "own.py")
    assert place / "helper.py" in files_behind(place / "own.py")
    (place / "helper.py").write_text("def mean(x, axis):\n    return x.sum(axis)\n")
    with pytest.raises(QuestionError) as wrong:
        forward_from(place / "own.py")
    assert (wrong.value.place.file, wrong.value.place.line) == (str(place / "helper.py"), 2)


def test_a_file_that_is_installed_has_the_helpers_of_its_distribution(tmp_path):
    recorded(tmp_path, "norms", "norms/own.py", "norms/helper.py")
    recorded(tmp_path, "others", "others/__init__.py")
    (tmp_path / "norms" / "own.py").write_text(OWN)
    (tmp_path / "norms" / "helper.py").write_text(HELPER)
    assert forward_from(tmp_path / "norms" / "own.py")
    assert tmp_path / "norms" / "helper.py" in files_behind(tmp_path / "norms" / "own.py")


def test_what_pip_installed_is_not_written_over(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GRADFORM_CACHE", "")
    recorded(tmp_path, "gradform", "generated/relu.py", "generated/__init__.py")
    assert gradform(["relu", "--out", str(tmp_path / "generated")]) == 2
    assert "is of gradform 1.0, as it was installed" in capsys.readouterr().err
    assert (tmp_path / "generated" / "relu.py").read_text() == ""
