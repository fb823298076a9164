"""A class body is read before it is run: what Python would decide about a tensor is refused with
what to write, and what is recommended derives.
"""

import textwrap
import warnings

import pytest
from forwards import HEAD

from codegen.commands.cli import gradform, main
from derive import NotationError, derive, forward_from
from derive.language.errors import NotationWarning, QuestionError
from derive.language.source.spellings import HAS, in_the_gallery, in_the_notation, spellings

TOP = f"""{HEAD}
import functools
import math
import sympy
from types import SimpleNamespace

import numpy as np
from sympy import (
    And, Derivative, Mod, Not, Or, atan2, besseli, ceiling, cos, diff, erf, floor, integrate, limit,
    loggamma, simplify, sin, solve,
)
from sympy import Max as Larger
from derive import Concat, CumMax, CumProd, CumSum, Flip, Pad, Previous, Scan, Shift, Slice
from derive import Cholesky, Diagonal, Identity, Inverse, LogDet, Round, Solve, Unflatten, Window

M, G, State = Axis("M"), Axis("G", 2), Axis("State", 2)
L, P, D = Axis("L", 2 * C), Axis("P", C + 1), Axis("D", C - 1)
HEADS, options = 1, SimpleNamespace(flag=True, heads=2)


def clipped(u, low):
    return Piecewise((low, u == low), (u, True))


def renamed(u):
    v = 2 * u
    return clipped(v, 1)


def slope(u):
    return diff(u**2, u)


def first_zero(parts):
    for p in parts:
        if p == 0:
            return p
    return parts[0]


def power(u, k):
    return u if k == 1 else u * power(u, k - 1)


def shifted(u, by=None):
    return u if by is None else u + by


def total(parts):
    assert len(parts) > 0
    result = 0
    for i, part in enumerate(parts):
        result = part if i == 0 else result + part
    return result


@functools.lru_cache
def cached(u):
    return Piecewise((u, Eq(u, 1)), (0, True)) if u else 0
"""


def written(*lines: str, declared=("x = Input(N, C)", "w = Input(N, C)")) -> str:
    return f"{TOP}\n\nclass Mine(Forward):\n" + textwrap.indent(
        "\n".join([*declared, *lines]), "    "
    )


def read(folder, *lines: str, **declared):
    file = folder / "mine.py"
    file.write_text(written(*lines, **declared))
    return forward_from(file).definition


# What is written on the last line, and what is to be written instead.
DECIDED = {
    "y = Piecewise((x, x == 0), (w, True))": "write Eq(x, 0)",
    "y = Piecewise((x, 2 * x - w != 0), (w, True))": "write Ne(2 * x - w, 0)",
    "y = Piecewise((x, x is w), (w, True))": "write Eq(x, w)",
    "y = Piecewise((x, N == 1), (w, True))": "write Eq(N, 1)",
    "y = Piecewise((x, x in (0, 1)), (w, True))": "write Or(Eq(x, ...), Eq(x, ...))",
    "y = Piecewise((x, not x), (w, True))": "write Eq(x, 0)",
    "y = Piecewise((x, not (x > 0)), (w, True))": "write Not(x > 0)",
    "y = Piecewise((x, x > 0 and w > 0), (w, True))": "write And(x > 0, w > 0)",
    "y = x or w": "write Or(Ne(x, 0), Ne(w, 0))",
    "y = Piecewise((x, 0 < x < 1), (w, True))": "write And(0 < x, x < 1)",
    "y = x if x > 0 else w": "write Piecewise((x, x > 0), (w, True))",
    "y = x if x else w": "write Piecewise((x, Ne(x, 0)), (w, True))",
    "if x > 0: y = x": "write Piecewise((a, x > 0), (b, True))",
    "while x: y = w": "a loop has as many rounds as a number says: for i in range(3)",
    "assert x; y = w": "write Piecewise((a, Ne(x, 0)), (b, True))",
    "for i in N: y = x": "the index is Position(N)",
    "for i in range(N): y = x": "the index is Position(N)",
    "y = [v for v in x][0]": "write Sum(x, N)",
    "y = sum(x)": "write Sum(x, N)",
    "y = max(x, 0)": "write Max(x, 0)",
    "y = len(x) * x": "write N: x lies along (N, C)",
    "y = float(x)": "leave it out",
    "y = Piecewise((x, bool(w)), (w, True))": "Ne(x, 0)",
    "y = Piecewise((x, w), (0, True))": "compare it: Ne(w, 0)",
    "y = Piecewise((x, ~w), (0, True))": "compare it: Eq(w, 0)",
    "y = Piecewise((x, x & w), (0, True))": "And(Ne(x, 0), Ne(w, 0))",
    "y = Piecewise((x, And(w, x > 0)), (0, True))": "compare it: Ne(w, 0)",
    "y = x ^ w": "write x**w",
    "y = x @ w": "write Sum(x * w, C)",
    "y = x.T * w": "axes have names",
    "y = x.mean(0)": "write Sum(x, N) / N",
    "y = x.exp()": "write exp(x)",
    "y = x.is_positive * w": "the notation has",
    "y = (x * w).subs(x, 0)": "leave it out",
    "y = (x / 3).evalf() * w": "leave it out",
    "y = simplify(x * w)": "leave it out",
    "y = diff(x * w, x)": "write Gradient(x * w, x)",
    "y = (x * w).diff(x)": "write Gradient(x * w, x)",
    "y = Derivative(x, w)": "write Gradient(x, w)",
    "y = integrate(x, x) + limit(x, x, 0)": "has to be written out",
    "y = solveset(x, w)": "has to be written out",
    "y = sympy.solve(x, w)": "the solution lies along K",
    "y = x[0]": "write Sum(OneHot(0, N) * x, N)",
    "y = math.exp(x) * w": "write exp(x)",
    "y = np.exp(x) * w": "write exp(x)",
    "y = np.sum(x)": "write Sum(x, N, C)",
    "y = Max(x, (0, 1))": "write Max(Max(x, N), C)",
    "y = Max(x, 0, C)": "a size stands first: Max(C, x, 0)",
    "y = Larger(1, C)": "a size stands first: Max(C, 1)",
    "y = Min(N, C)": "of two sizes write Piecewise((C, C < N), (N, True))",
    "y = sympy.Max(x, w)": "import Max from gradform",
    "y = clipped(x, 1) * w": "write Eq(u, low)",
    "y = renamed(x) * w": "write Eq(u, low)",
    "y = slope(x) * w": "write Gradient(u ** 2, u)",
    "y = first_zero((x, w))": "write Eq(p, 0)",
    "y = cached(x)": "Python chooses once",
    "y = functools.reduce(lambda a, b: a if a == b else b, [x, w])": "write Eq(a, b)",
    "y = Piecewise((x, (lambda u: u == 0)(w)), (w, True))": "write Eq(u, 0)",
    "c = x == 0": "write Eq(x, 0)",
    "h = x * w; h += 1": "h_2 = h + 1",
    "y = (h := 2 * x) + w": "h = 2 * x",
    "b: Input(C); y = x * w": "write b = Input(C)",
    "del x; y = w": "leave the line out",
    "Sum(x, N); y = x * w": "h = Sum(x, N)",
    "N = Input(C); y = x * w": "N is an axis",
    "N = 2 * x; y = N * w": "N is an axis",
    "x = 3; y = w": "x is defined already",
    "h = x * w; h = 3; y = h * x": "h is defined already",
    "y = sum(x * k for k in range(3))": "is not seen by a function or a comprehension",
    "y = x * 1e400": "1e400 is inf to Python",
    "y = x * 1e-400": "1e-400 is 0.0 to Python",
    "y = cumsum(x, N)": "CumSum(x, N)",
    "y = Concat(x, w)": "write Concat((a, N), (b, M), into=K)",
    "y = Softmax(x)": "from gradform.derive.math.softmax import Softmax",
    "y = TopK(x, 3)": "cannot be written in the notation",
    "y = Sort(x)": "cannot be written in the notation",
    "y = Unheard(x)": "the notation has At, Broadcast",
    "y = einsum('nc,nc->n', x, w)": "write Sum(x * w, C)",
}


@pytest.mark.parametrize("line", DECIDED)
def test_what_python_would_decide_is_refused_with_what_to_write(line, tmp_path):
    lines = line.split("; ")
    with pytest.raises(NotationError) as error:
        read(tmp_path, *lines)
    assert DECIDED[line] in str(error.value)
    place = error.value.place
    text = (tmp_path / "mine.py").read_text().split("\n")[place.line - 1]
    assert text.strip() in lines or "class" not in text  # a function that is called has its own


SAID_OF_NUMBERS = (
    "y = x * w if HEADS == 1 else x",
    "y = x * w if options.flag and options.heads == 2 else x",
    "y = power(x, 3) * w",
    "y = shifted(x) * shifted(x, w)",
    "y = total((x, w)) + total([x])",
    "y = sum([x, w]) * int(3.0) * max(1, 2)",
    "y = functools.reduce(lambda a, b: a + b, [x, w])",
    "f = lambda u: u**2; y = f(x) * w",
    "for k in range(3): pass; y = x * w * k",
    "k = 1; k += 2; y = x * w * k",
    "c = x > 0; y = Piecewise((x, c), (w, True))",
    "y = Piecewise((x, (x > 0) & ~(w > 0)), (w, True))",
    "y = abs(x) * pow(w, 2)",
    "a, b = 2 * x, 3 * w; y = a * b",
    "y = (x, w)[0] * w",
    "from sympy import cosh; y = cosh(x) * w",
    "y = x * w * math.pi * len((x, w))",
    "if HEADS == 1: y = x * w",
)


@pytest.mark.parametrize("line", SAID_OF_NUMBERS)
def test_what_is_said_of_numbers_is_pythons(line, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(tmp_path, *line.split("; ")).output.name == "y"


CODES = {code: name for name, spelling in spellings.items() for code in spelling.codes}
DECLARED = ("x = Input(N, C)", "w = Input(N, C)", "labels = Label(N)", "k = Given(K)")


@pytest.mark.parametrize("codes", [[*CODES][i::4] for i in range(4)])
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
def test_what_is_recommended_can_be_derived(codes, tmp_path):
    for i, code in enumerate(codes):
        body = [f"y = {code}", "z = 2 * y"]
        file = tmp_path / f"mine_{i}.py"
        file.write_text(f"from sympy import *\n{written(*body, declared=DECLARED)}")
        assert derive(file).every_size


@pytest.mark.parametrize(
    "line",
    [
        "y = Piecewise((x, Eq(x, 0)), (w, True))",
        "y = Piecewise((x, Not(x > 0)), (w, Or(Eq(w, 1), Ne(w, x))), (0, True))",
        "y = Piecewise((x, And(0 < x, x < 1)), (w, True))",
        "y = Piecewise((x, Eq(N, 1)), (w, True))",
        "y = Sum(OneHot(0, G) * Unflatten(x, C, into=(G, K)), G) * Sum(w, C)",
    ],
)
def test_the_conditions_that_are_recommended_can_be_derived(line, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(written(line))
    assert derive(file).every_size


def test_a_forward_of_the_gallery_is_recommended_as_it_is_called():
    for name in ("softmax", "LogSoftmax", "ReLU", "layer_norm", "CrossEntropy"):
        remedy = in_the_gallery(name)
        imported = remedy.partition("with: ")[2].split()
        module = __import__(imported[1], fromlist=[imported[3]])
        assert getattr(module, imported[3]).definition.name == imported[3]
        assert in_the_notation(name) == remedy
    assert in_the_notation("unheard_of") == HAS


def test_where_the_source_cannot_be_read_nothing_is_decided_in_python():
    plain = written("y = x * w")
    names: dict = {"__name__": "own"}
    exec(compile(plain, "<made up>", "exec"), names)
    assert names["Mine"].definition.output.name == "y"
    with pytest.raises(NotationError, match="the source of Mine cannot be read"):
        exec(compile(written("y = Piecewise((x, x == 0), (w, True))"), "<made up>", "exec"), {})


def test_a_class_in_a_function_sees_what_stands_around_it():
    from derive import Axis, Forward, Input

    N, factor, flag = Axis("N"), 3, True

    class Local(Forward):
        x = Input(N)
        y = x * factor if flag else x

    assert str(Local.definition.statements[0].expression) == "3*x"
    with pytest.raises(NotationError, match="write Eq"):

        class Comparing(Forward):
            x = Input(N)
            y = x * (x == factor)

    with pytest.raises(NotationError, match="did you mean mean"):

        class Misspelt(Forward):
            x = Input(N)
            mean = x / N
            y = maen  # noqa: F821


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y = " + "(" * 100_000 + "x" + ")" * 100_000, "this is not Python"),
        ("y = " + "-" * 50_000 + "x", ""),
        ("y = x" + " + x" * 20_000, ""),
        ("y = (x", "this is not Python"),
        ("raise ValueError('mine')", "ValueError: mine"),
        ("exec('y = x == 0')\ny = x", ""),
        ("1 / 0", "ZeroDivisionError"),
        ("y = " + "exp(" * 90 + "x" + ")" * 90, ""),
        ("import nothing_of_that_name\ny = x", "ModuleNotFoundError"),
    ],
)
def test_a_hostile_class_body_is_an_error_with_a_line_or_a_forward(body, words, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(written(*body.split("\n"), declared=["x = Input(N)"]))
    try:
        forward_from(file)
    except QuestionError as error:
        assert words in str(error) and error.place.file.endswith("mine.py")
    else:
        assert not words


# -- influence ------------------------------------------------------------------------------------

WITHOUT_INFLUENCE = {
    "y = w + 0 * x": ["x stands in y"],
    "y = w * x**0": ["x stands in y"],
    "y = w * x / x": ["x stands in y", "that needs x != 0"],
    "y = Piecewise((w, x > 0), (w, True))": ["x stands in y"],
    "h = x - x + w; y = h**2": ["x stands in h"],
    "y = Sum(x * w, C) / N": ["for a mean write Sum(Sum(w*x, C), N) / N"],
    "y = x * w / (N * C)": ["write Sum(", "write Sum("],
    "y = x * w - Sum(x, N) / N": [],
    "h = x * w / N; y = Sum(h, N)": [],
    "h = 2 * x; y = w": ["x = Input(...) has no", "the statement h has no"],
    "g = Given(C); y = x * w": ["g = Given(...) has no"],
    "eps = Scalar(1e-5); y = x * w": ["eps = Scalar(...) has no"],
    "l = Label(N, ignored=-100); y = x * w": ["l = Label(...) has no"],
    "l = Label(N); y = x * w + 0 * OneHot(l, C)": ["l stands in y"],
    "size = Size(H); y = x * w": ["size = Size(H) has no"],
    # Without these the size of an axis would be unknown.
    "l = Label(N); size = Size(H); y = x * w * Sum(OneHot(l, H), H)": [],
    "l = Label(N); of = Given(H); y = x * w * Gather(SegmentMax(x, l, H), l, H)": [],
    'size = Size(H); P = Axis("P", C + H); y = Sum(Pad(x * w, C, into=P, before=1), P)': [],
    "size = Size(H); z = Scalar(0, below=H); y = x * z * w": [],
    "l = Label(N, ignored=-100); y = x * w * Kept(l)": [],
    "g = Given(K); y = Broadcast(x, K) * w": [],
    "y = x * w": [],
    "h = w * x; y = h": [],
}


@pytest.mark.parametrize("lines", WITHOUT_INFLUENCE)
def test_what_has_no_influence_on_the_output_is_warned_of(lines, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = tmp_path / "mine.py"
        more = "import Axis, Gather, Pad, SegmentMax, Size,"
        file.write_text(written(*lines.split("; ")).replace("import Axis,", more))
        forward_from(file)
    said = [str(w.message) for w in caught if issubclass(w.category, NotationWarning)]
    assert len(said) == len(WITHOUT_INFLUENCE[lines])
    for words, message, place in zip(WITHOUT_INFLUENCE[lines], said, caught, strict=True):
        assert words in message and place.filename == str(file.resolve())
        assert place.lineno > written().count("\n") - 3


@pytest.mark.parametrize(
    ("declared", "line", "axes"),
    [
        ("x = Input(N); w = Input(C)", "y = w + 0 * x", "NC"),
        ("x = Input(N); w = Input(C)", "y = Piecewise((w, x > 0), (w, True))", "NC"),
        ("x = Input(N); w = Input(C)", "y = w * x**0", "NC"),
        ("x = Input(N); w = Input(C)", "y = Sum(w + 0 * x, C)", "N"),
        ("x = Input(N); w = Input(C)", "y = Max(Piecewise((w, x > 0), (w, True)), C)", "N"),
        ("x = Input(N); w = Input(N)", "y = Piecewise((1, x > w), (1, True))", "N"),
        ("x = Input(N); w = Input(N)", "y = Rename(0 * x + 1, N, M) + 0 * w", None),
        (
            "x = Input(N); w = Input(M)",
            "y = Sum(x, N) * Sum(w, M) * Piecewise((1, Position(N) < Position(M)), (1, True))",
            "NM",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::derive.language.errors.NotationWarning")
def test_no_axis_gets_lost_where_sympy_simplifies(declared, line, axes, tmp_path):
    if axes is None:
        with pytest.raises(NotationError, match="no axis N to rename"):
            read(tmp_path, line, declared=declared.split("; "))
        return
    definition = read(tmp_path, line, declared=declared.split("; "))
    assert [axis.name for axis in definition.output.axes] == [*axes]
    assert derive(tmp_path / "mine.py").every_size


def test_the_gallery_is_free_of_warnings_and_a_command_says_each_once(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "mine.py"
    file.write_text(written("unused = Sum(x, C)", "y = x * w") + "\n")
    assert gradform(["list"]) == 0
    assert capsys.readouterr().err == ""
    for _ in range(2):  # the second time it is unchanged
        assert main([str(file), "--out", str(tmp_path / "out")]) == 0
        lines = [line for line in capsys.readouterr().err.split("\n") if "influence" in line]
        assert len(lines) == 1 and lines[0].startswith("warning: ") and "mine.py:" in lines[0]
        assert "the statement unused has no influence on y" in lines[0]


SLOPES = {  # of SymPy's names, torch's and others
    "h = tanh(x); y = diff(h, x)": "write Gradient(h, x)",
    "h = tanh(x); u = exp(h) * w; y = u.diff(x)": "write Gradient(u, x)",
    "y = Derivative(tanh(x), x)": "write Gradient(tanh(x), x)",
    "h = tanh(x); y = torch.autograd.grad(h, x, create_graph=True)[0]": "write Gradient(h, x)",
    "h = x * w; y = torch.autograd.grad(h, [x, w])": "write Gradient(h, x) and Gradient(h, w)",
    "h = tanh(x); y = h.backward()": "write Gradient(tanh(x), x): of the sum of all entries",
}


@pytest.mark.parametrize("lines", SLOPES)
def test_a_derivative_is_refused_with_the_line_that_it_is(lines, tmp_path):
    with pytest.raises(NotationError) as error:
        read(tmp_path, *lines.split("; "))
    assert SLOPES[lines] in error.value.remedy
