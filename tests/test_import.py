"""Torch code that people have becomes a forward: what is read, how it reads, and what is refused.

The functions are in ``torch_code``; a sample of them is imported here, all of them where that is
asked for (``make test-thorough``).
"""

import ast
import importlib.util
import math
import sys
from pathlib import Path

import pytest
import sympy
import torch
import torch.nn as nn
import warm
from torch.utils._sympy.functions import FloorDiv, PythonMod

import derive
from codegen.commands.cli import gradform
from codegen.driver.lean import generate
from codegen.importing.asked import Argument, arguments_of, sizes_of
from codegen.importing.beyond import violated
from codegen.importing.driver import from_torch, imported
from codegen.importing.nodes import mathematics
from codegen.importing.rules import rules
from derive.language.errors import QuestionError
from derive.language.nodes import Sum
from derive.language.symbols import Axis, Tensor
from derive.language.torch_ops import trees
from derive.language.torch_ops.numbers import exact
from derive.language.torch_ops.text import text

CODE = Path(__file__).with_name("torch_code")
sys.path.append(str(CODE))


def axes_of(file: str) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location(f"torch_code_{file}", CODE / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


BATTERY = [
    (file, name, axes)
    for file in ("losses", "layers")
    for name, axes in axes_of(file)["AXES"].items()
]
SAMPLE = {"focal_loss", "lm_loss", "clip_loss", "new_gelu", "rotary", "graph_attention"}
SAMPLE |= {"SelfAttention", "Normalized", "supervised_contrastive", "total_variation"}


def of(file: str, name: str, axes: str):
    return imported(f"{CODE / file}.py:{name}", axes)


def lines(text: str) -> list[str]:
    """The lines of the class body, without its docstring."""
    body = ast.parse(text).body[-1].body
    return [ast.unparse(statement) for statement in body[1:]]


@pytest.mark.parametrize(
    ("file", "name", "axes"),
    [case for case in BATTERY if case[1] in SAMPLE],
    ids=lambda part: part if part in SAMPLE else "",
)
def test_a_sample_is_read(file, name, axes):
    """The function itself is compared at the end, at several sizes."""
    agreement = of(file, name, axes).agreement
    assert agreement.values <= 1e-12 and agreement.gradients <= 1e-10
    assert len(agreement.sizes) > 1


@pytest.mark.thorough
@pytest.mark.parametrize(("file", "name", "axes"), BATTERY, ids=lambda part: part[:24])
def test_all_that_is_typed_anew_is_read_and_proved_for_every_size(file, name, axes):
    forward = of(file, name, axes).forward
    assert derive.derive(forward).every_size


@pytest.mark.thorough
def test_nearly_all_references_of_the_tests_are_read():
    from of_tests import references

    refused = {}
    for name, (function, axes, sizes) in references():
        try:
            imported(function, axes, sizes)
        except QuestionError as error:
            refused[name] = str(error)
    assert len(refused) <= 3, refused


def written(folder: Path, code: str, axes: str, name: str = "f") -> list[str]:
    file = folder / "code.py"
    file.write_text(f"import math\nimport torch\nimport torch.nn.functional as F\n\n{code}")
    return lines(imported(f"{file}:{name}", axes).text)


READS = {
    "names, and what is met twice": (
        "def f(x, w, eps=1e-5):\n    mu = x.mean(-1, keepdim=True)\n"
        "    xhat = (x - mu) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)\n"
        "    return xhat * w\n",
        "x: N C, w: C",
        [
            "eps = Scalar(1e-05)",
            "mu = Sum(x, C) / C",
            "diff = x - mu",
            "xhat = diff / sqrt(Sum(diff ** 2, C) / C + eps)",
            "y = xhat * w",
        ],
    ),
    "labels that are ignored": (
        "def f(x, y):\n    return F.cross_entropy(x.view(-1, x.size(-1)), y.view(-1))\n",
        "x: B T V, y: B T",
        [
            "logprobs = x - log(Sum(exp(x), V))",
            "losses = -Sum(OneHot(y, V) * logprobs, V)",
            "loss = Sum(losses, B, T) / Sum(Kept(y), B, T)",
        ],
    ),
    "a root of a size": (
        "def f(q, k):\n    return q @ k.T / math.sqrt(k.size(-1))\n",
        "q: N E, k: M E",
        ["y = Sum(q * k, E) / sqrt(E)"],
    ),
    "numbers that Python rounded": (
        "def f(x):\n    return (math.sqrt(2 / math.pi) * x + 3 * 0.044715 * x**2 + x / 3).sum()\n",
        "x: N",
        ["loss = Sum(sqrt(2) / sqrt(pi) * x + 0.134145 * x ** 2 + x / 3, N)"],
    ),
    "the axis of a tensor that is met twice": (
        "def f(x):\n    return (x @ x.T).exp().sum()\n",
        "x: N D",
        ["loss = Sum(exp(Sum(x * Rename(x, N, M), D)), N, M)"],
    ),
    "a mask that is only compared": (
        "def f(s, mask):\n    return s.masked_fill(mask == 0, -math.inf).softmax(-1)\n",
        "s: N C, mask: N C",
        ["counts = Piecewise((0, Eq(mask, 0)), (exp(s), True))", "y = counts / Sum(counts, C)"],
    ),
    "in place on a copy": (
        "def f(x):\n    y = x.clone()\n    y += 1\n    y *= x\n    return y\n",
        "x: N",
        ["y = x + 1", "y2 = y * x"],
    ),
    "parts": (
        "def f(x):\n    a, b = x.chunk(2, -1)\n    return a * torch.sigmoid(b)\n",
        "x: N C",
        [
            "a = Sum(OneHot(0, Two) * Unflatten(x, C, into=(Two, P)), Two)",
            "b = Sum(OneHot(1, Two) * Unflatten(x, C, into=(Two, P)), Two)",
            "y = a / (1 + exp(-b))",
        ],
    ),
    "a matrix and its transposed one": (
        "def f(w):\n    return (w - w.T).square().sum()\n",
        "w: N N",
        ["loss = Sum((w - Rename(Rename(Rename(w, M, L), N, M), L, N)) ** 2, N, M)"],
    ),
    "names that torch takes and SymPy has": (
        "def f(input, sin):\n    return input * sin.sin()\n",
        "input: N, sin: N",
        ["y = input * sin(sin_)"],
    ),
    "a constant that is called as an argument is": (
        "def f(pi, log):\n    return pi - 0.5 * math.log(2 * math.pi) + log\n",
        "pi: N, log: N",
        ["y = pi_ - log(2 * pi) / 2 + log_"],
    ),
    "a loss of torch's that bends": (
        "def f(x, t):\n    return F.huber_loss(x, t, reduction='none')\n",
        "x: N, t: N",
        [
            "diff = x - t",
            "distance = Abs(diff)",
            "y = Piecewise((diff ** 2 / 2, distance < 1), (distance - 0.5, True))",
        ],
    ),
    "what has no influence is left out": (
        "def f(x, unused):\n    return x * 2\n",
        "x: N, unused: N",
        ["y = 2 * x"],
    ),
    "a rounding that passes the gradient on": (
        "def f(x):\n    return x + (x.round() - x).detach()\n",
        "x: N",
        ["y = x + Detach(Round(x) - x)"],
    ),
    "autocast is computed as it is written": (
        "def f(x, w):\n    with torch.autocast('cuda', dtype=torch.float16):\n"
        "        y = x @ w\n        with torch.autocast('cpu', enabled=False):\n"
        "            y = y.float().exp()\n    return y * 2\n",
        "x: N D, w: D K",
        ["y = Sum(x * w, D)", "y2 = exp(y)", "y3 = 2 * y2"],
    ),
    "a label that is a number": (
        "def f(x, y):\n    return (x * (y[:, None] == y[None, :])).sum()\n",
        "x: N N, y: N int",
        ["loss = Sum(Piecewise((x, Eq(y, Rename(y, N, M))), (0, True)), N, M)"],
    ),
}


@pytest.mark.parametrize("what", READS)
def test_it_reads_as_a_person_would_have_typed_it(what, tmp_path):
    code, axes, expected = READS[what]
    found = written(tmp_path, code, axes)
    assert [line for line in found if not any(w in line for w in ("put(", "Label(", "Given("))] == (
        expected
    )


REFUSED = axes_of("hostile")["SAID"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_said_is_refused_with_its_line(name):
    said, line = REFUSED[name]
    with pytest.raises(QuestionError) as error:
        of("hostile", name, "x: N C")
    assert said in str(error.value) and error.value.remedy
    if line:
        place = error.value.place
        assert (CODE / "hostile.py").read_text().splitlines()[place.line - 1].strip() == line


class Net(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 10), nn.Linear(10, 4)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def test_a_module_is_imported_with_its_parameters():
    """Nobody names the axes of parameters: each is the axis of what it meets."""
    net = Net()
    forward = derive.from_torch(net, "x: B T K")
    inputs = {t.name: [a.name for a in t.home] for t in forward.definition.inputs}
    assert inputs == {
        "x": ["B", "T", "K"],
        "fc1_weight": ["H", "K"],
        "fc1_bias": ["H"],
        "fc2_weight": ["D", "H"],
        "fc2_bias": ["D"],
    }
    assert generate(forward).largest_difference < 1e-10


def test_the_command_writes_a_file_and_goes_on_to_the_module(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def charge(x, y):\n    return ((x - y) ** 2).mean()\n")
    arguments = ["import", "mine.py:charge", "--axes", "x: N, y: N", "--out", "here"]
    assert gradform([*arguments, "--emit"]) == 0
    assert {"charge_forward.py", "charge.py"} <= {path.name for path in Path("here").iterdir()}
    assert "loss = Sum((x - y)**2, N) / N" in capsys.readouterr().out
    Path("here/charge_forward.py").write_text("# mine now\n")
    assert gradform(arguments) == 2, "the file is the user's: it is not replaced"
    assert gradform([*arguments, "--force"]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(x)\n", "not Python"),
        ("import nothing_of_the_kind\n", "No module named"),
        ("def f(x):\n    return g(x)\n", "name 'g' is not defined"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_cannot_be_run_is_named(text, said, tmp_path, capsys):
    file = tmp_path / "broken.py"
    if text is not None:
        file.write_text(text)
    assert gradform(["import", f"{file}:f", "--axes", "x: N"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("axes", "said"),
    [("x", "is not NAME: AXES"), ("x: N, x: M", "axes twice"), ("x: N%2", "neither a name")],
)
def test_axes_that_cannot_be_read(axes, said):
    with pytest.raises(QuestionError, match=said):
        arguments_of(axes)


def test_axes_and_sizes():
    assert arguments_of("x: N 4, y: N int") == (
        Argument("x", ("N", "4")),
        Argument("y", ("N",), "int"),
    )
    assert sizes_of("N: 8, C=12") == {"N": 8, "C": 12}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (3 * 0.044715, sympy.Rational(134145, 10**6)),
        (math.sqrt(2 / math.pi), sympy.sqrt(2 / sympy.pi)),
        (1 - 0.9, sympy.Rational(1, 10)),
        (0.5 * math.log(2 * math.pi), sympy.log(2 * sympy.pi) / 2),
        (1 / 3, sympy.Rational(1, 3)),
        (math.cos(0.5), sympy.cos(sympy.Rational(1, 2))),
        (0.7978845608, sympy.Rational("0.7978845608")),
        (1.0507009873554805, sympy.Rational("1.0507009873554805")),
        (1e-12, sympy.Rational(1, 10**12)),
    ],
)
def test_a_number_is_what_was_meant(value, meant):
    assert exact(value) == meant


def test_a_tree_is_text_and_mathematics():
    x = trees.tensor("x", ["N", "C"])
    mean = trees.quotient(trees.total(x, ["C"]), trees.number("C"))
    tree = trees.difference(x, mean)
    n, c = Axis("N"), Axis("C")
    symbol = Tensor("x", (n, c))
    assert text(tree, str) == "x - Sum(x, C) / C"
    assert mathematics(tree, {"x": symbol}, {"N": n, "C": c}) == symbol - Sum(symbol, c) / c


def test_an_argument_that_a_rule_does_not_know_is_refused():
    with pytest.raises(QuestionError, match="rounding"):
        from_torch(lambda x, y: torch.div(x, y, rounding_mode="floor"), "x: N, y: N")
    assert "div" in rules


def test_a_line_of_several_statements_names_nothing(tmp_path):
    """Which of them an operation was of cannot be seen; a wrong name would be read as a promise."""
    file = tmp_path / "one_line.py"
    file.write_text(
        "def overlap(p, t):\n"
        "    tp = (p * t).sum(1); fp = (p * (1 - t)).sum(1)\n"
        "    score = tp / (tp + 2 * fp + 1)\n"
        "    return score.mean()\n"
    )
    found = imported(f"{file}:overlap", "p: N C, t: N C")
    assert "score" in found.text and "tp" not in found.text and "fp" not in found.text


def test_a_tensor_may_have_no_dimension_and_a_function_any_name(tmp_path):
    file = tmp_path / "named.py"
    file.write_text("def random(x, scale):\n    return (scale * x).sum()\n")
    for said in ("()", ""):
        found = imported(f"{file}:random", f"x: N, scale: {said}")
        assert "class RandomForward(Forward):" in found.text
        assert "scale = Input()" in found.text


UNUSUAL = """
import torch
import torch.nn.functional as F
from torch import nn


def scaled(x, temperature, how):
    return (x / temperature).sum(-1) if how == "sum" else x


class Normed(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin, self.bn = nn.Linear(6, dim), nn.BatchNorm1d(dim)

    def forward(self, x, k=1.0):
        return k * self.bn(F.relu(self.lin(x), inplace=True))


evaluated = Normed(8).eval()


def running(x, mean, avg):
    avg.mul_(0.9).add_(0.1 * x.mean(0))
    return F.batch_norm(F.relu(x * 2, inplace=True), mean, mean, training=False) - avg
"""


@pytest.mark.parametrize(
    ("name", "axes", "options", "said"),
    [
        ("scaled", "x: N C", "temperature=0.07, how=sum", "temperature = Scalar(0.07)"),
        (
            "Normed",
            "x: N C",
            "dim=8, k=2.5",
            "bn.running_var, bn.num_batches_tracked; the forward has no state",
        ),
        ("evaluated", "x: N C", "", "bn_running_var = Given("),
        (
            "running",
            "x: N C, mean: C given, avg: C given",
            "",
            "writes into avg; the forward has no state",
        ),
    ],
)
def test_numbers_are_given_and_what_is_written_is_said(tmp_path, name, axes, options, said):
    """Also in place before a batch norm, which changes what torch calls that."""
    (tmp_path / "unusual.py").write_text(UNUSUAL)
    assert said in imported(f"{tmp_path}/unusual.py:{name}", axes, "", options).text


def test_a_second_import_is_the_same_or_says_what_would_be_lost(tmp_path):
    (tmp_path / "unusual.py").write_text(UNUSUAL)

    def again(number):
        what = f"{tmp_path}/unusual.py:scaled"
        given = ["--axes", "x: N C", "--with", f"temperature={number}, how=sum"]
        command = [sys.executable, "-m", "gradform", "import", what, *given, "--out", str(tmp_path)]
        return warm.run(command, capture_output=True, text=True, check=False)

    assert [again(number).returncode for number in (0.5, 0.5)] == [0, 0]
    assert "was imported before and differs" in again(0.25).stderr
    with pytest.raises(QuestionError, match='--with "temperature'):
        imported(f"{tmp_path}/unusual.py:scaled", "x: N C")


def test_a_guard_that_divides_by_a_size_of_0_is_no_error():
    """As grouped queries give, H modulo H // G, where H is less than G."""
    heads, groups = sympy.symbols("H G", integer=True, positive=True)
    guard = sympy.Eq(PythonMod(heads, FloorDiv(heads, groups)), 0)
    plain = guard.xreplace({heads: sympy.Symbol("H"), groups: sympy.Symbol("G")})
    assert violated(plain, "H", {"H": 6, "G": 3}) == {"H": 7, "G": 3}


FLOATS = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def contrastive(a, b, temperature=0.07):
    return F.cross_entropy(a @ b.T / temperature, torch.arange(a.shape[0]))


def powered(x, p=3.0, eps=1e-6):
    return (x.clamp(min=eps) ** p).mean(-1) ** (1 / p)


def huber(x, y, delta: float = 1):
    return F.huber_loss(x, y, delta=delta)


def smoothed(x, labels, eps=0.1, unused=2.0):
    return F.cross_entropy(x, labels, label_smoothing=eps)


def rooted(x, dim=0.3):
    return x / math.sqrt(dim)


def scaled(x, scale=None):
    return x * (x.shape[-1] ** -0.5 if scale is None else scale)


def branch(x, margin=0.5, k=3.0):
    return k * torch.relu(x - margin) if margin > 0 else k * x


def larger(x, a=2.0):
    return x * max(a, 1.0)


def by_numpy(x, a=2.0):
    return x * np.maximum(a, 0.01)


def close(x, a=2.0):
    return x * (1.0 if math.isclose(a, 0.01) else a)


def typed(x, a=2.0):
    return x * float(f"{a:.1f}")


def keyed(x, a=2.0):
    return x * (3.0 if {2.0: "two"}.get(a) else a)


class Attributes(nn.Module):
    alpha = 0.5

    def __init__(self, slope=0.1):
        super().__init__()
        self.norm, self.act, self.beta = nn.LayerNorm(8), nn.LeakyReLU(slope), 1.7

    def forward(self, x):
        return self.act(self.norm(x)) * self.beta + self.alpha * x


class Centred(nn.Module):
    def __init__(self, momentum=0.1):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.momentum = momentum

    def forward(self, x):
        self.steps += 1
        self.mean = self.mean * (1 - self.momentum) + self.momentum * x.mean(0).detach()
        return x - self.mean
"""
STAYS = "# {} stays {}: line {} of floats.py needs its value."


@pytest.mark.parametrize(
    ("name", "axes", "said"),
    [
        ("contrastive", "a: N C, b: N C", ["temperature = Scalar(0.07)", "/ temperature"]),
        ("powered", "x: N C", ["p = Scalar(3.0)", "eps = Scalar(1e-06)", "**(1 / p)"]),
        ("huber", "x: N C, y: N C", ["delta = Scalar(1.0)", "delta * (distance - delta / 2)"]),
        ("smoothed", "x: N C, labels: N", ["eps = Scalar(0.1)", "(1 - eps) * "]),
        ("rooted", "x: N C", ["dim = Scalar(0.3)", "sqrt(dim)"]),
        ("scaled", "x: N C", ["sqrt(C)"]),
        ("branch", "x: N C", ["k = Scalar(3.0)", "x - 0.5", STAYS.format("margin", 0.5, 34)]),
        ("larger", "x: N C", ["y = 2 * x", STAYS.format("a", 2.0, 38)]),
        ("by_numpy", "x: N C", ["y = 2 * x", STAYS.format("a", 2.0, 42)]),
        ("close", "x: N C", ["y = 2 * x", STAYS.format("a", 2.0, 46)]),
        ("typed", "x: N C", ["y = 2 * x", STAYS.format("a", 2.0, 50)]),
        ("keyed", "x: N C", ["y = 3 * x", "# a stays 2.0: a value computed from it was not"]),
        (
            "Attributes",
            "x: N C",
            [f"{n} = Scalar(" for n in ("beta", "norm_eps", "act_negative_slope", "alpha")],
        ),
        (
            "Centred",
            "x: N C",
            ["mean = Given(C)", "momentum = Scalar(0.1)", "also writes into mean, steps; the"],
        ),
    ],
)
def test_floats_with_a_default_are_scalars_or_it_is_said_why_not(tmp_path, name, axes, said):
    (tmp_path / "floats.py").write_text(FLOATS)
    found = imported(f"{tmp_path}/floats.py:{name}", axes)
    assert [words for words in said if words not in found.text] == []
    assert "unused" not in found.text
    assert found.text.count("Scalar(") == sum(" = Scalar(" in words for words in said)
    assert found.agreement.tried == (3 if found.agreement.scalars else 1)
