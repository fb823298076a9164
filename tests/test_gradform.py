"""``import gradform``: the public face, and the gallery in it beside a user's own folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warm

import derive
import gradform
from codegen.commands.cli import gradform as command
from codegen.files.dependencies import files_behind
from derive.language.notation.library import forward_from

ROOT = Path(__file__).resolve().parents[1]
OWN = """
from sympy import tanh
from {package} import Axis, Forward, Input, Sum
N, C = Axis("N"), Axis("C")
class Centred(Forward):
    x = Input(N, C)
    y = tanh(x - Sum(x, N) / N)
"""


def said(program: str, folder: Path, *path: Path, run=warm.run) -> str:
    """The output of a program run in ``folder``, with these folders to import from."""
    places = os.pathsep.join(map(str, (*path, ROOT)))
    done = run(
        [sys.executable, *([] if program.startswith("-") else ["-c"]), *program.split("\0")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [*derive.PUBLIC, *derive.BESIDE])
def test_it_has_what_derive_has(name):
    assert getattr(gradform, name) is getattr(derive, name) and name in dir(gradform)


def test_what_it_has_not_is_said_to_be_missing():
    with pytest.raises(AttributeError, match="'gradform' has no attribute 'Nothing'"):
        _ = gradform.Nothing
    assert gradform.__version__ == derive.version.VERSION


def test_its_import_is_light_and_a_star_brings_no_torch(tmp_path):
    program = (
        "import sys, gradform; heavy = {'sympy', 'torch', 'numpy', 'rich', 'jinja2'};"
        "print(heavy & {*sys.modules}); from gradform import *; print('torch' in sys.modules, Sum)"
    )
    found = said(program, tmp_path, run=subprocess.run)
    assert found == "set()\nFalse <class 'derive.language.sums.Sum'>\n"


def test_it_is_a_command(tmp_path):
    assert "batch_norm" in said("-m\0gradform\0list", tmp_path)


@pytest.mark.parametrize("package", ["gradform", "derive"])
def test_a_file_may_import_from_either(package, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(package=package))
    assert str(forward_from(file).definition.statements[-1].expression) == "tanh(x - Sum(x, N)/N)"
    assert files_behind(file) == (file,)


def test_a_file_is_told_of_gradform(tmp_path, capsys):
    (tmp_path / "own.py").write_text(
        OWN.format(package="gradform").replace("x - Sum", "Position(N) - Sum")
    )
    assert command([str(tmp_path / "own.py"), "--out", str(tmp_path / "out")]) == 2
    assert "import it: from gradform import Position" in capsys.readouterr().err


def test_what_is_said_and_written_for_users_names_gradform():
    """In messages, templates and files that a command begins; the mathematics imports below it."""
    files = [f for p in ("derive", "codegen", "examples") for f in (ROOT / p).rglob("*.*")]
    files = [f for f in files if f.suffix in (".py", ".jinja") and "math" not in f.parts]
    own = re.compile(r"^from derive import", re.M)  # of the file itself
    assert [str(f) for f in files if "from derive import" in own.sub("", f.read_text())] == []


def test_an_imported_function_is_written_with_gradform(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.py").write_text("def half(x):\n    return x / 2\n")
    assert command(["import", "half.py:half", "--axes", "x: N", "--out", "out"]) == 0
    text = (tmp_path / "out" / "half_forward.py").read_text()
    assert "\nfrom gradform import Axis, Forward, Input\n" in text


# The names under which a checkout has the gallery, one of which comes first.
BOTH = [("generated", "gradform.generated"), ("gradform.generated", "generated")]


@pytest.mark.parametrize("names", BOTH, ids=lambda names: names[0])
def test_a_module_of_the_gallery_is_one_under_both_names(names, tmp_path):
    one, other = names
    program = f"""
import importlib, sys
import {one}.kernels.softmax, {one}.relu
import {other}.kernels.softmax, {other}.relu, gradform
for module in ("", ".relu", ".kernels", ".kernels.softmax"):
    own, same = (sys.modules[name + module] for name in {names})
    assert own is same and own.__spec__.name == own.__name__ == "generated" + module
assert gradform.generated is sys.modules["generated"]
from gradform.generated import relu, mlp
assert relu is sys.modules["generated.relu"] and mlp is importlib.import_module("generated.mlp")
"""
    said(program, tmp_path)


def test_a_folder_of_ones_own_is_in_nobodys_way(tmp_path):
    """Whether it has what the gallery has or not, and whichever is imported first."""
    own = tmp_path / "generated"
    own.mkdir()
    for name in ("__init__.py", "relu.py", "mine.py"):
        (own / name).write_text(f"WHOSE = 'mine: {name}'\n")
    program = """
import {}
import generated.relu, generated.mine, gradform.generated.softmax, gradform.generated.relu
print(generated.WHOSE, generated.relu.WHOSE, generated.mine.WHOSE)
print(gradform.generated.relu.__name__, gradform.generated.relu.relu.__module__)
print(gradform.generated.use.__module__, gradform.generated.softmax.__file__)
"""
    for first in ("generated", "gradform.generated"):
        mine, *gallery = said(program.format(first), tmp_path, tmp_path).splitlines()
        assert mine == "mine: __init__.py mine: relu.py mine: mine.py"
        assert gallery[0] == "gradform.generated.relu gradform.generated.relu"
        assert gallery[1].startswith("gradform.generated ")
        assert gallery[1].endswith(str(ROOT / "generated" / "softmax.py"))
