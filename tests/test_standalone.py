"""``--standalone`` writes a file that needs torch alone: it computes what the module does beside
the runtime.
"""

import ast
import subprocess
import sys

import pytest
from forwards import HEAD

from codegen.cli import gradform

USE = """
import torch, {name} as module
x = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
y = module.{name}(x)
(dx,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
(again,) = torch.autograd.grad(dx.square().sum(), x)
tangent = torch.func.jvp(module.{name}, (x.detach(),), (torch.ones_like(x),))[1]
print(float(y.sum()), float(dx.sum()), float(again.sum()), float(tangent.sum()))
"""
SOFTMAX = "    x = Input(N, C)\n    y = exp(x)/Sum(exp(x), C)\n"


def used(folder, name, text):
    run = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{text}"]
    found = subprocess.run(run, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    return [float(number) for number in found.stdout.split()]


@pytest.fixture
def forward(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}\n\nclass Mine(Forward):\n{SOFTMAX}", encoding="utf-8")
    return file


def test_one_file_does_all(forward, tmp_path, capsys):
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    assert gradform([str(forward), "--standalone", "--out", str(alone)]) == 0
    assert gradform([str(forward), "--out", str(beside)]) == 0
    assert {f.name for f in alone.glob("_*.py")} <= {"__init__.py"}
    text = USE.format(name="mine")
    (wanted, found) = (
        used(tmp_path, "mine", text.replace("mine as", "beside.mine as")),
        used(alone, "mine", text),
    )
    assert found == wanted
    names = {
        node.id
        for node in ast.walk(ast.parse((alone / "mine.py").read_text()))
        if isinstance(node, ast.Name)
    }
    assert "_runtime" not in names
    assert gradform([str(forward), "--standalone", "--out", str(alone), "--check"]) == 0
    assert gradform([str(forward), "--out", str(alone), "--check"]) == 1
    capsys.readouterr()


def test_what_cannot_stand_alone_is_refused(forward, tmp_path, capsys):
    for more in (["--target", "cpp"], ["--shard", "N"]):
        out = str(tmp_path / "out")
        assert gradform([str(forward), "--standalone", "--out", out, *more]) == 2
        assert "--standalone" in capsys.readouterr().err


def test_a_folder_that_is_no_package_is_told_of(forward, tmp_path, capsys):
    assert gradform([str(forward), "--out", str(tmp_path), "--force"]) == 0
    assert "--standalone" in capsys.readouterr().err
