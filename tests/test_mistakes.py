"""Every mistake of a user gets one message with file, line and remedy, exit status 2, and
nothing is written. Where the remedy is a line, that line works in the place of the wrong one.
"""

import ast
import re

import pytest
import torch
from forwards import HEAD

import codegen.commands.generating
from codegen.commands.cli import gradform, main
from derive import Forward, QuestionError, derive, forward_from

# name: (lines of a class body, the line of the mistake among them, words of the message)
MISTAKES = {
    "unknown name": (["x = Input(N, C)", "y = x - maen"], 2, "maen is unknown"),
    "misspelt name": (["x = Input(N, C)", "mean = Sum(x, N)", "y = maen"], 3, "did you mean mean?"),
    "a later statement": (
        ["x = Input(N, C)", "y = x - mean", "mean = Sum(x, N) / N"],
        2,
        "mean is used here, but defined only on line",
    ),
    "itself": (["x = Input(N, C)", "y = x - y"], 2, "in its own definition"),
    "not imported": (["x = Input(N, C)", "y = cosh(x)"], 2, "from sympy import cosh"),
    "axis missing on one side of a sum": (
        ["x = Input(N, C)", "bias = Input(D)", "y = x + bias"],
        3,
        "axis D is on one side and missing on the other",
    ),
    "axis missing on one side of a product": (
        ["x = Input(N, D)", "w = Input(H)", "y = Sum(x * w, D)"],
        3,
        "w has only H",
    ),
    "no such axis to sum": (["x = Input(N, C)", "y = Sum(x, D)"], 2, "there is no axis D in it"),
    "a dimension number": (["x = Input(N, C)", "y = Sum(x, 0)"], 2, "axes are named, not numbered"),
    "label in arithmetic": (["x = Input(N, C)", "l = Label(N)", "y = x * l"], 3, "OneHot(l, C)"),
    "one-hot of a tensor": (["x = Input(N, C)", "y = OneHot(x, D)"], 2, "x is not a label"),
    "label along its own axis": (
        ["x = Input(N, C)", "l = Label(N)", "y = x * OneHot(l, N)"],
        3,
        "cannot index it",
    ),
    "assigned twice": (["x = Input(N, C)", "y = x", "y = 2 * y"], 3, "y is defined already"),
    "axis without a size": (
        ["x = Input(N)", "l = Label(N)", "y = x * Sum(OneHot(l, H), H)"],
        3,
        "axis H, which no input has",
    ),
    "gradient's own name": (
        ["x = Input(N)", "dx = Input(N)", "y = x * dx"],
        2,
        "the name of the gradient",
    ),
    "reserved name": (["torch = Input(N)", "y = torch"], 1, "cannot be the name"),
    "private name": (["_x = Input(N)", "y = _x"], 1, "cannot be the name"),
    "declaration in a formula": (["y = Input(N) + 1"], 1, "a line and a name of its own"),
    "wrong declaration": (["x = Input(5)"], 1, "is not an axis"),
    "no statement": (["x = Input(N)"], 0, "states nothing"),
    "no input": (["l = Label(N)", "y = Sum(OneHot(l, C), C)"], 0, "no differentiable input"),
    "error of python": (["x = Input(N)", "y = x / 'a'"], 2, "TypeError"),
    "a trailing comma": (["x = Input(N)", "y = x,"], 2, "y is a tuple"),
    "a list": (["x = Input(N)", "y = [x]"], 2, "y is a list"),
    "a number as the output": (["x = Input(N)", "h = 2 * x", "y = 5"], 3, "y stands last"),
    "a condition as the output": (["x = Input(N)", "h = 2 * x", "y = x > 0"], 3, "y stands last"),
    "a choice with a gap": (
        ["x = Input(N)", "y = Piecewise((x, x > 1), (2 * x, x < 0))"],
        2,
        "no value where none of its conditions holds",
    ),
    "infinite": (["x = Input(N)", "y = x / 0"], 2, "not a finite real number"),
    "imaginary": (["x = Input(N)", "y = x * sqrt(-1)"], 2, "not a finite real number"),
    "a symbol": (["x = Input(N)", "y = x * Symbol('q')"], 2, "import it: from sympy import Symbol"),
    "an extreme without an order": (
        ["x = Input(N)", "w = Input(N)", "import sympy", "y = x - sympy.Min(x, w)"],
        4,
        "this Min is SymPy's, which does not know which of equals is the first",
    ),
    "a method": (["x = Input(N)", "y = x.sum()"], 2, "tensors have no methods"),
    "a matrix product": (["x = Input(N, C)", "y = x @ x"], 2, "write Sum(x * x, C)"),
    "an index": (["x = Input(N, C)", "y = x[0]"], 2, "tensors are not indexed"),
    "Python's sum": (["x = Input(N, C)", "y = sum(x, C)"], 2, "write Sum(x, C)"),
    "no default": (["x = Input(N)", "e = Scalar()"], 2, "write eps = Scalar(1e-5)"),
    "a generated name": (["mine = Input(N)", "y = mine"], 1, "a name of the generated module"),
    "a default that is none": (["x = Input(N)", "e = Scalar('a')"], 2, "not a finite number"),
    "a keyword": (["x = Input(N)", "y = Sum(x, dim=0)"], 2, "write Sum(x, N): x lies"),
    "rename without the axis": (["x = Input(N)", "y = Rename(x, C, D)"], 2, "no axis C to rename"),
}


def _failed(arguments, folder, capsys) -> str:
    """Run the command; it must fail with status 2, say one thing, and write nothing."""
    out = folder / "out"
    assert main([*arguments, "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err and captured.out == ""
    assert captured.err.startswith("error: ") and captured.err.count("error:") == 1
    assert not out.exists()
    return captured.err


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_file_is_named_with_its_line(mistake, tmp_path, capsys):
    lines, wrong, words = MISTAKES[mistake]
    file = tmp_path / "mine.py"
    body = "\n".join(f"    {line}" for line in lines)
    file.write_text(f"{HEAD}\n\nclass Mine(Forward):\n{body}\n")
    message = _failed([str(file)], tmp_path, capsys)
    first = file.read_text().split("\n").index(f"    {lines[0]}") + 1
    assert words in message
    if wrong:
        assert f"mine.py:{first + wrong - 1}: " in message
    _, remedy = message.rstrip().split("\n")
    assert remedy.startswith("    ") and len(remedy) > 8


FILES = {
    "syntax": (b"class X(\n", "this is not Python"),
    "not text": (b"\x89PNG\xff\xfe\x00", "not a text file"),
    "null bytes": (b"x = 1\x00", "not a text file"),
    "no forward": (b"x = 1\n", "holds no forward"),
    "empty": (b"", "holds no forward"),
    "exits": (b"import sys\nsys.exit(3)\n", "mine.py:2: SystemExit"),
    "raises": (b"1 / 0\n", "mine.py:1: ZeroDivisionError"),
    "missing module": (b"import numpyy\n", "mine.py:1: ModuleNotFoundError"),
    "inherits from a forward": (
        HEAD.encode()
        + b"class A(Forward):\n    x = Input(N)\n    y = x\nclass B(A):\n    z = A.y\n",
        "B inherits from A",
    ),
    "another forward's tensor": (
        HEAD.encode() + b"class A(Forward):\n    x = Input(N)\n    h = 2 * x\n"
        b"class B(Forward):\n    x = Input(N)\n    y = x * A.h\n",
        "h is not a tensor of this forward",
    ),
    "a name of Python's": (
        HEAD.encode() + b"class Lambda(Forward):\n    x = Input(N)\n    y = x\n",
        "cannot be the name of a generated function",
    ),
    "shadowed Sum": (
        b"from derive import *\nfrom sympy import *\nN = Axis('N')\n"
        b"class A(Forward):\n    x = Input(N)\n    y = Sum(x, N)\n",
        "Sum is SymPy's here",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_no_forward_is_said_to_be_none(kind, tmp_path, capsys):
    content, words = FILES[kind]
    file = tmp_path / "mine.py"
    file.write_bytes(content)
    assert words in _failed([str(file)], tmp_path, capsys)


def test_unknown_names_and_files(tmp_path, capsys):
    assert "did you mean batch_norm?" in _failed(["batchnorm"], tmp_path, capsys)
    assert "does not exist" in _failed([str(tmp_path / "none.py")], tmp_path, capsys)
    assert "is a folder" in _failed([f"{tmp_path}/"], tmp_path, capsys)
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}\nclass A(Forward):\n    x = Input(N)\n    y = x\n")
    assert "no forward is called 'B'" in _failed([f"{file}:B"], tmp_path, capsys)


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_derived(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(codegen.commands.generating, "emit_all", None)
    (tmp_path / "taken").write_text("")
    assert "taken is not a folder" in _failed(["mse"], tmp_path / "taken", capsys)


def test_of_two_targets_neither_is_dropped(tmp_path, capsys):
    with pytest.raises(SystemExit):
        _failed(["mse", "--target", "triton", "--target", "cpp"], tmp_path, capsys)
    assert "triton and cpp are two runs" in capsys.readouterr().err


def test_a_function_that_cannot_be_written_is_named(tmp_path, capsys):
    file = tmp_path / "mine.py"
    for line, problem in {
        "x * gamma(x)": "no library computes gamma(x)",
        "zeta(x)": "no library computes zeta(x)",
        "mine(x)": "no library computes mine(x)",
    }.items():
        own = "class mine(Function):\n    nargs = 1\n"
        head = f"from sympy import Function, gamma, zeta\n{own}{HEAD}"
        file.write_text(f"{head}\nclass A(Forward):\n    x = Input(N)\n    y = {line}\n")
        assert problem in _failed([str(file)], tmp_path, capsys)


def test_a_name_is_checked_before_it_reaches_a_template(tmp_path, capsys):
    file = tmp_path / "mine.py"
    for name in ("N); import os", "class", "a b", "", "N\\n"):
        file.write_text(f'{HEAD}\nclass A(Forward):\n    x = Input(Axis("{name}"))\n    y = x\n')
        assert "cannot be the name of an axis" in _failed([str(file)], tmp_path, capsys)


def test_the_console_script_knows_its_verbs(capsys):
    assert gradform(["list"]) == 0
    listed = capsys.readouterr().out
    assert "batch_norm" in listed and "softmax_nll" in listed
    with pytest.raises(SystemExit) as stopped:
        gradform(["--nonsense"])
    assert stopped.value.code == 2


# -- the line that works next ---------------------------------------------------------------------

TOP = f"""{HEAD}
import math
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
INPUTS = (
    "x = Input(N, C)",
    "w = Input(K, C)",
    "b = Input(C)",
    "t = Given(N, C)",
    "labels = Label(N)",
)
# The wrong line of a class body, and words of what is said about it.
FOLLOWED = {
    "y = x.mean(dim=1)": "write Sum(x, C) / C",
    "y = x - x.mean(0, keepdim=True)": "write Sum(x, N) / N",
    "y = Sum(x, 'C')": "'C' is not an axis",
    "y = Sum(x, 1)": "axes are named, not numbered",
    "y = Sum(x, axis=C)": "write Sum(x, C)",
    "y = Sum(x, C, keepdim=True)": "no dimension is kept",
    "y = Sum(x, (N, C))": "write Sum(x, N, C)",
    "y = Sum(C, x)": "the tensor comes first",
    "y = Sum(x, K)": "the axes of x are: C, N",
    "y = Sum(x)": "names no axis",
    "y = Max(x, N, C)": "write Max(Max(x, N), C)",
    "y = torch.exp(x)": "computes with numbers",
    "y = np.tanh(x)": "write tanh(x)",
    "y = math.sin(x)": "from sympy import sin",
    "y = x.exp()": "tensors have no methods",
    "y = x.pow(3)": "write x**3",
    "y = F.softmax(x)": "or exp(x) / Sum(exp(x), C)",
    "y = softmax(x, C)": "write exp(x) / Sum(exp(x), C)",
    "y = nn.Softmax(dim=1)(x)": "write exp(x) / Sum(exp(x), C)",
    "y = relu(x)": "from gradform.derive.math.relu import Relu",
    "y = nn.ReLU()(x)": "from gradform.derive.math.relu import Relu",
    "y = F.mse_loss(x, t)": "from gradform.derive.math.mse import MSE",
    "y = F.nll_loss(x, labels)": "write NLL(x, labels)",
    "y = x @ w": "write Sum(x * w, C)",
    "y = x @ w.T": "write Sum(x * w, C)",
    "y = x @ x.T": "write Sum(x * Rename(x, N, N2), C)",
    "y = torch.matmul(x, w)": "write Sum(x * w, C)",
    "y = torch.einsum('nc,kc->nk', x, w)": "write Sum(x * w, C)",
    "y = F.linear(x, w, Sum(w, C))": "write Sum(x * w, C) + Sum(w, C)",
    "y = torch.outer(b, b)": "write b * Rename(b, C, C2)",
    "y = x.T": "write x: axes have names",
    "y = x[0]": 'N = Axis("N", 4)',
    "y = x[:, 1]": "write Sum(OneHot(1, C) * x, C)",
    "y = x[:, None] * b": "broadcast by the names",
    "y = x[labels]": "write Sum(OneHot(labels, C) * x, C)",
    "y = x[range(3), labels]": "write Sum(OneHot(labels, C) * x, C)",
    "y = x / x.shape[0]": "write N",
    "y = x / len(x)": "write N",
    "y = x / N.size": "stands for its own size",
    "y = x / N.size()": "write N: an axis stands for its own size",
    "y = x / len(N)": "write N: an axis stands for its own size",
    "y = x / float(N)": "write N: an axis stands for its own size",
    "y = x ^ 2": "write x**2",
    "y = max(x, 0)": "write Max(x, 0)",
    "y = torch.where(x > 0, x, 0)": "write Piecewise((x, x > 0), (0, True))",
    "y = x.clamp(min=0)": "write Piecewise((0, x < 0), (x, True))",
    "y = torch.maximum(x, b)": "write Piecewise((x, x > b), (b, True))",
    "y = x * x.masked_fill(x > 1, 0)": "write Piecewise((0, x > 1), (x, True))",
    "y = Piecewise((x > 0, x), (True, 0))": "(value, condition)",
    "y = Piecewise((x, x > 0), 0)": "write Piecewise((x, x > 0), (0, True))",
    "y = Piecewise(x > 0, x, 0)": "write Piecewise((x, x > 0), (0, True))",
    "y = x > 0": "a condition, not a tensor",
    "y = (x > 0) * x": "is a condition, not a number",
    "y = x if x > 0 else 0": "write Piecewise((x, x > 0), (0, True))",
    "y = 2(x + 1)": "2 is not a function",
    "y = x(x + 1)": "x is not a function",
    "y = x,": "a tuple with one tensor",
    "y = x, b": 'with State = Axis("State", 2)',
    "y: Tensor = x * 2": "leave the annotation out",
    "y = x * torch.tensor(0.5)": "write 0.5",
    "z = Scalar([0.5])": "write Scalar(0.5)",
    "z = Scalar('0.5')": "write Scalar(0.5)",
    "z = Scalar(0.5, min=0)": "write Scalar(0.5, at_least=0)",
    "z = Input('N', 'C')": 'with N, C = Axis("N"), Axis("C") above the class',
    "z = Input((N, C))": "write Input(N, C)",
    "z = Input(N, N)": "write Input(N, N2)",
    "z = Input(N, 10)": "10 is not an axis",
    "z = Input(N, C, requires_grad=True)": "an Input has a gradient",
    "z = Input": "declares nothing",
    "z: Input(N, C)": "write z = Input(N, C)",
    "y = OneHot(labels) * x": "write OneHot(labels, C)",
    "y = OneHot(C, labels) * x": "write OneHot(labels, C)",
    "y = Rename(x, N)": "write Rename(x, N, M)",
    "y = BatchNorm(x)": "where gain = Input(C), bias = Input(C), with: from gradform.derive.",
    "return x * 2": "write y = x * 2",
    "y = 2x": "write y = 2 * x",
    "y = exp(x": "write y = exp(x)",
    "y = x \u2212 b": "write y = x - b",
    "lambda = x * 2": "a word of Python's",
}


def _source(*lines: str, top: str = TOP) -> str:
    body = "".join(f"    {line}\n" for line in (*INPUTS, *lines))
    return f"{top}\n\nclass Mine(Forward):\n{body}"


def _followed(line: str, error: QuestionError) -> str:
    """The class with the line of the remedy in the place of ``line``."""
    remedy = error.remedy.partition("write ")[2]
    code = re.split(r"; |, with\b|, where | or [A-Za-z]+\(|: ", remedy)[0]
    added = re.findall(r"from [\w.]+ import \w+|(?:\w+, )*\w+ = (?:Axis\(.*?\)(?:, )?)+", remedy)
    declared = re.findall(r"\w+ = (?:Input|Given)\([\w, ]*\)", remedy.partition(", ")[2])
    wrong = error.problem.partition(": ")[0]
    if re.match(r"\w+ = ", code):
        new = code
    else:
        line = ast.unparse(ast.parse(line))
        called = re.search(rf"\b{re.escape(code.partition('(')[0])}\(.*\)(?= \*|$)", line)
        new = line.replace(wrong if wrong in line or not called else called[0], code)
    after = [f"y = 2 * {new.partition(' ')[0]} * x"] if new.startswith("z ") else []
    return _source(*declared, new, *after, top="\n".join([TOP, *added]))


@pytest.mark.parametrize("line", FOLLOWED)
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_line_that_is_suggested_works_in_the_place_of_the_wrong_one(line, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(_source(line, *(["y = 2 * z * x"] if line.startswith("z") else [])))
    with pytest.raises(QuestionError) as error:
        forward_from(file)
    assert error.value.place.line == 1 + file.read_text().split("\n").index(f"    {line}")
    assert FOLLOWED[line] in str(error.value)
    file.write_text(_followed(line, error.value))
    derive(file)  # raises where it is not proved


# What takes several lines: the wrong ones, words of what is said, and what it says to write.
REWRITTEN = {
    "a loop over entries": (
        ["y = 0", "for i in range(x.shape[1]):", "    y = y + x[:, i]"],
        "write Sum(x, C) or Max(x, C)",
        ["y = Sum(x, C)"],
    ),
    "a branch": (
        ["if x > 0:", "    y = x", "else:", "    y = exp(x) - 1"],
        "write y = Piecewise((x, x > 0), (exp(x) - 1, True))",
        ["y = Piecewise((x, x > 0), (exp(x) - 1, True))"],
    ),
    "def forward": (
        ["def forward(self, x):", "    return 2 * x"],
        "the last one as y = 2 * x",
        ["y = 2 * x"],
    ),
    "__init__": (
        ["def __init__(self):", "    self.w = 1", "y = 2 * x"],
        "a forward has no methods",
        ["y = 2 * x"],
    ),
    "assigned again": (
        ["y = 2 * x", "y = y + 1"],
        "write y_2 = y + 1",
        ["y = 2 * x", "y_2 = y + 1"],
    ),
    "added to": (["y = 2 * x", "y += 1"], "y_2 = y + 1", ["y = 2 * x", "y_2 = y + 1"]),
    "returned": (["y = 2 * x", "return y"], "leave it out", ["y = 2 * x"]),
    "used too early": (
        ["y = h + x", "h = 2 * x"],
        "move one of the two lines",
        ["h = 2 * x", "y = h + x"],
    ),
    "another case": (
        ["h = Sum(x, n) / N", "y = x - h"],
        "did you mean N?",
        ["y = x - Sum(x, N)/N"],
    ),
    "an array": (
        ["scale = np.loadtxt(['1 2 3'])", "y = x * scale"],
        "scale = Given(C)",
        ["scale = Given(C)", "y = x * scale"],
    ),
    "a tensor as eps": (
        ["eps = torch.tensor(1e-5)", "y = x + eps"],
        "write 1e-05",
        ["eps = 1e-05", "y = x + eps"],
    ),
    "random": (
        ["noise = random.random()", "y = x * noise"],
        "draw it outside, and pass it as Given",
        ["noise = Given(N, C)", "y = x * noise"],
    ),
    "dropout": (
        ["y = F.dropout(x, 0.5)"],
        "draw it outside, and pass it as Given",
        ["mask = Given(N, C)", "y = x * mask"],
    ),
    "a lambda": (
        ["f = lambda u: u * b", "y = f(x)"],
        "pass the tensor as an argument",
        ["f = lambda u, v: u * v", "y = f(x, b)"],
    ),
    "text": (["y = f'{x}'"], "it is text, not a tensor", ["y = x"]),
}


@pytest.mark.parametrize("mistake", REWRITTEN)
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
def test_several_lines_are_answered_with_lines_that_work(mistake, tmp_path):
    wrong, words, right = REWRITTEN[mistake]
    file = tmp_path / "mine.py"
    file.write_text(_source(*wrong))
    with pytest.raises(QuestionError) as error:
        forward_from(file)
    assert words in str(error.value) and str(error.value.place).startswith(f"{file}:")
    file.write_text(_source(*right))
    assert derive(file).every_size


CLASSES = {
    "class Mine:": "write class Mine(Forward):",
    "class Mine(nn.Module):": "write class Mine(Forward):",
    "class Mine(Forwrad):": "did you mean Forward?",
    "class Mine(Forward)": "write class Mine(Forward):",
    "class Mine(Forward()):": "inherited from, and not called",
}


@pytest.mark.parametrize("head", CLASSES)
def test_a_class_that_is_no_forward_is_told_how_it_begins(head, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(_source("y = 2 * x").replace("class Mine(Forward):", head))
    with pytest.raises(QuestionError) as error:
        forward_from(file)
    assert CLASSES[head] in str(error.value) and str(error.value.place).startswith(f"{file}:")


IMPORTED = {
    "from gradform import Forwrad": "write from gradform import Forward",
    "from gradform import input": "write from gradform import Input",
    "from derive import exp": "write from sympy import exp",
    "from sympy import Axis": "write from gradform import Axis",
    "from derive.math import Softmax": "write from gradform.derive.math.softmax import Softmax",
    "import derived": "did you mean derive?",
    "N, C = Axis('N', 'C')": 'write N, C = Axis("N"), Axis("C")',
    "N, C = Axis('N C')": 'write N, C = Axis("N"), Axis("C")',
    "N = Axis(32)": 'Axis("N", 32) for as many entries',
    "N = Axis()": 'write N = Axis("N")',
}


@pytest.mark.parametrize("line", IMPORTED)
def test_an_import_or_an_axis_that_is_wrong_is_answered_with_the_right_one(line, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(f"{HEAD}\n{line}\n")
    with pytest.raises(QuestionError) as error:
        forward_from(file)
    assert IMPORTED[line] in error.value.remedy


TORCHS = {
    "def f(u, v):\n    return u * v": 'gradform import {file}:f --axes "u: N C, v: N C"',
    "class Net:\n    pass": "write class Net(Forward):",
    "import torch\nclass Net(torch.nn.Module):\n    pass": "gradform import {file}:Net",
    "x = 1": "class MyNorm(Forward): ...",
}


@pytest.mark.parametrize("text", TORCHS)
def test_a_file_without_a_forward_is_told_what_reads_it(text, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(QuestionError, match="holds no forward") as error:
        forward_from(file)
    assert TORCHS[text].format(file=file) in error.value.remedy


def test_what_is_no_forward_cannot_be_derived():
    from derive.math.batch_norm import BatchNorm

    for asked in (3, None, torch.zeros(2), torch.exp, dict, Forward):
        with pytest.raises(QuestionError, match="is not a forward"):
            derive(asked)
    with pytest.raises(QuestionError) as error:
        derive(BatchNorm())
    assert "to mean the forward itself, write BatchNorm" in error.value.remedy
    with pytest.raises(QuestionError) as error:
        BatchNorm(torch.zeros(2, 3), torch.ones(3), torch.ones(3))
    assert "call the function that gradform writes: batch_norm" in error.value.remedy


def test_an_error_of_ours_in_a_file_is_not_said_to_be_the_users(tmp_path, monkeypatch):
    from derive.language.source import class_reading

    file = tmp_path / "mine.py"
    file.write_text(_source("y = 2 * x"))
    monkeypatch.delattr(class_reading, "check_line")
    with pytest.raises(NameError):
        forward_from(file)
