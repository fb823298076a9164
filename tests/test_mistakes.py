"""Every mistake of a user gets one message with file, line and remedy, exit status 2, and
nothing is written.
"""

import pytest
from forwards import HEAD

from codegen.cli import gradform, main

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
        ["x = Input(N)", "dx = x + 1", "y = dx"],
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
    "pointwise max over an axis": (
        ["x = Input(N, C)", "y = x - Min(x, C)"],
        2,
        "Min is SymPy's here, and C is an axis",
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


def test_a_function_that_cannot_be_written_is_named(tmp_path, capsys):
    file = tmp_path / "mine.py"
    for line, problem in {
        "x * floor(x)": "no derivative of floor(x)",
        "loggamma(x)": "no code for polygamma",
    }.items():
        head = f"from sympy import floor, loggamma\n{HEAD}"
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
