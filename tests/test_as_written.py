"""Emitted code does what the class body says: it is run again with numbers, and a forward that
was taken for another one is refused. What is read inside of what is read comes out right.
"""

from types import SimpleNamespace

import pytest
import torch
from forwards import HEAD
from generating import generated
from random_forwards.grammar import READING_FROM, random_forward
from sampling import sampled

import codegen.as_written.comparing as comparing
from codegen.as_written import difference_from_body
from codegen.driver.lean import generate
from derive import Broadcast, NotationError, UnprovedError, forward_from
from derive.language.nodes import OneHot
from derive.language.notation.class_body import ClassBody
from derive.language.notation.library import list_forwards

pytestmark = pytest.mark.filterwarnings("ignore:.*:derive.language.errors.NotationWarning")

TOP = f"""{HEAD}
import functools
from types import SimpleNamespace
from sympy import Max as Larger
from derive import Concat, CumSum, Flip, Gather, Next, Outputs, Previous, Reduced, SegmentMax
from derive import SegmentMean, SegmentSum, Shift, Size, Slice, Window
from derive.math.softmax import Softmax

H, I, J, K, T, V = (Axis(name) for name in "HIJKTV")
P, W, Half, Two = Axis("P", T - 1), Axis("W", 2 * V), Axis("Half", V / 2), Axis("Two", 2)


def gated(u, k=2):
    return Piecewise((k * u, u > 0), (tanh(u), True))


own = SimpleNamespace(gated=gated)


class Mine(Forward):
    x = Input(T, V)
"""
LABELS = "labels = Label(T)\n"


def read(folder, *lines: str):
    file = folder / "mine.py"
    body = "".join(f"    {line}\n" for text in lines for line in text.splitlines())
    file.write_text(TOP + body)
    return forward_from(file)


def arguments(definition):
    """The parts of a program that `difference_from_body` reads."""
    labels = [
        (tensor.name, hot.axis.name)
        for s in definition.statements
        for hot in s.expression.atoms(OneHot)
        for tensor in hot.operand.free_symbols
    ]
    layout = {t: [SimpleNamespace(axis=axis) for axis in t.home] for t in definition.arguments}
    passed = [SimpleNamespace(name=t.name, role=t.role, layout=layout[t]) for t in layout]
    sizes = [(axis.name, name) for name, axis in definition.size_arguments]
    passed += [SimpleNamespace(name=name, role="size", layout=[]) for _, name in sizes]
    return SimpleNamespace(labels=labels, sizes=sizes, forward=SimpleNamespace(parameters=passed))


def difference(forward) -> str:
    return difference_from_body(forward, arguments(forward.definition))


@pytest.fixture
def strict(monkeypatch):
    """Everything can be run with numbers: nothing is left out."""
    monkeypatch.setattr(comparing, "Unreadable", type("Never", (Exception,), {}))


@pytest.mark.parametrize(
    "forward", sampled(list_forwards(), lambda f: f.definition.snake), ids=lambda f: f.__name__
)
def test_every_forward_of_the_gallery_is_what_it_says(forward, strict):
    assert not difference(forward)


# Read inside of what is read, with the axes that come out.
NESTED = {
    f"{LABELS}y = Gather(Shift(x, T, 1), labels, V)": "T",
    f"{LABELS}y = Gather(Flip(x, V), labels, V)": "T",
    f"{LABELS}y = Gather(Concat((x, V), (2 * x, V), into=W), labels, W)": "T",
    f"{LABELS}y = Gather(CumSum(Shift(x, T, 1), T), labels, V)": "T",
    f"{LABELS}y = Shift(Gather(Shift(x, T, 1), labels, V), T, -1)": "T",
    f"{LABELS}y = SegmentMax(Gather(Shift(x, T, 1), labels, V), labels, V)": "V",
    f"{LABELS}n = Size(K)\ny = SegmentSum(Shift(x, T, 1), labels, K)": "K V",
    f"{LABELS}n = Size(K)\ny = Gather(SegmentMean(Flip(x, T), labels, K), labels, K)": "T V",
    "labels = Label(P)\nd = Slice(x, T, into=P, start=1)\n"
    "y = Gather(d - Slice(x, T, into=P), labels, V)": "P",
    f"{LABELS}y = Gather(Max(Window(x, V, into=(Half, Two)), Two), labels, Half)": "T",
    "y = Rename(Shift(x, T, 1), T, H) * x": "T H V",
    "y = Flatten(Slice(x, T, into=P, start=1), P, V, into=K)": "K",
    "y = Rename(Rename(x, V, K), T, V)": "V K",
    "z = Input(H, V)\ny = Sum(z * Rename(Rename(x, V, K), T, V), V)": "K H",
    "s = Sum(x * Rename(x, T, H), V)\ny = Rename(s, H, K)": "T K",
    "a = Slice(x, V, into=Half)\nb = Slice(x, V, into=Half, start=V / 2)\n"
    "y = Concat((-b, Half), (a, Half), into=V)": "T V",
    "y = Gather(x, 0, V) - Gather(x, V - 1, V)": "T",
    "y = Sum((1 - OneHot(0, V)) * x, V)": "T",
    "h = 1 / (Position(T) + 1)\ny = Abs(Shift(h, T, 1)) * x": "T V",
    "h = exp(x)\nlate = Shift(h, T, 1)\ny = Abs(late) + sqrt(late**2)": "T V",
}


@pytest.mark.parametrize("lines", NESTED)
def test_what_is_read_inside_of_what_is_read_is_right(lines, tmp_path, strict):
    forward = read(tmp_path, lines)
    assert not difference(forward)
    assert " ".join(map(str, forward.definition.output.home)) == NESTED[lines]


@pytest.mark.parametrize("seed", range(READING_FROM + 1, READING_FROM + 60, 2))
def test_a_random_forward_that_reads_elsewhere_is_what_it_says(seed, tmp_path, strict):
    """Read, and not derived: `make fuzz SEED=100000` does that."""
    file = tmp_path / "drawn.py"
    file.write_text(random_forward(seed))
    assert not difference(forward_from(f"{file}:Drawn"))


# What a class body may do in Python.
BODIES = (
    "y = own.gated(x, k=3) + functools.reduce(lambda a, b: a * b, [x, tanh(x)])",
    "u = x\nfor i in range(3):\n    u = tanh(u) * (i + 1)\ny = u + sum([x, x**2]) + Larger(x, 0)",
    "p = Softmax(x)\ny = Sum(p * log(p), V) * T / (V + 1)",
    "u = Sum(x**3, T, V)\ng = Gradient(u, x)\ny = Sum(g**2, V)",
    "h = tanh(x + Previous(h, T, initial=0) * x)\ny = h - Next(h, T)",
    "w = Input(V)\nc = tanh(x + w * Previous(h, T, initial=0))\n"
    "h = 2 * c + Previous(c, T, initial=1)",
    "labels = Label(T, ignored=-100)\nlosses = -Sum(OneHot(labels, V) * x, V)\n"
    "loss = Reduced(losses, mean=Sum(Kept(labels), T))",
    "y = Ordered(x**2, V, T)",
    "m = Sum(x, V)\nouts = Outputs(m, x)",
)


@pytest.mark.parametrize("lines", BODIES)
def test_a_class_body_runs_once_more_with_numbers(lines, tmp_path, strict):

    forward = read(tmp_path, lines)
    assert not difference(forward)


def test_a_forward_that_is_taken_for_another_one_is_refused(tmp_path, monkeypatch):
    """An axis too many, as labels read at what was shifted had one."""
    lost = ClassBody._as_written

    def with_an_axis(self, name, value, line):
        value = lost(self, name, value, line)
        return value if name != "y" else Broadcast(value, self.tensors["x"].axes[1])

    monkeypatch.setattr(ClassBody, "_as_written", with_an_axis)
    with pytest.raises(UnprovedError, match=r"y lies along \(T\) as it is written, and along"):
        generate(read(tmp_path, "y = Sum(x, V)"))


def test_a_class_body_that_draws_numbers_is_not_compared(tmp_path):
    """It is another forward each time that it runs."""
    file = tmp_path / "mine.py"
    file.write_text(TOP.replace("import functools", "import functools, itertools") + "    y = x\n")
    text = file.read_text().replace("own = Simple", "count = itertools.count(1)\nown = Simple")
    file.write_text(text.replace("    y = x\n", "    y = next(count) * x\n"))
    assert not difference(forward_from(file))


def test_other_numbers_are_refused(tmp_path, monkeypatch):
    """A shift that is read as one in the other direction."""
    forward = read(tmp_path, "y = Shift(x, T, 1)")
    other = read(tmp_path, "y = Shift(x, T, -1)")
    forward.outside_names = other.outside_names
    with pytest.raises(UnprovedError, match=r"as it is written, and .* as it is read"):
        generate(forward)


@pytest.mark.parametrize(("number", "place"), {"2": "2", "-1": "V - 1"}.items())
def test_a_place_that_need_not_be_there_is_refused_with_what_works(number, place, tmp_path):
    with pytest.raises(NotationError) as refused:
        read(tmp_path, f"y = Sum(OneHot({number}, V) * x, V)")
    works = f"Piecewise((1, Eq(Position(V), {place})), (0, True))"
    assert works in refused.value.remedy
    assert not difference(read(tmp_path, f"y = Sum({works} * x, V)"))


def test_a_blank_is_picked_by_its_number(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        TOP + "    p = log(exp(x) / Sum(exp(x), V))\n    y = Sum(OneHot(0, V) * p, V)\n"
    )
    function, *_ = generated(file, tmp_path)
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.allclose(function(x), x.log_softmax(1)[:, 0])
