"""Kernels of forwards that are in no gallery: the driver compares them with autograd and with the
lines before it writes them, so what is generated here was compared.
"""

import os
import re
import shutil

import pytest
from forwards import HEAD

from codegen.driver.lean import generate
from codegen.targets.cpp.expressions import named
from codegen.targets.languages import kernels
from codegen.targets.tables.sizes import SizeTexts
from derive import forward_from

COMPILED = bool(os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++"))
BODIES = {
    "the first of equal maxima": """
    x = Input(N, C)
    w = Input(C)
    peak = Max(x * w, C)
    y = peak**2 + Max(peak, N)
""",
    "a maximum of what is computed, along rows": """
    x = Input(N, C, K)
    v = Piecewise((2 * x, x >= 1), (1, True))
    y = tanh(Max(v, N) * Sum(x, N) / 20)
""",
    "a length that is a product": """
    x = Input(C, K, N)
    flat = Flatten(x, K, N, into=M)
    y = Max(flat, C) * Sum(flat, M, C)
""",
    "a length that is a quotient, in the backward": """
    x = Input(N, C)
    parts = Size(D)
    u = Unflatten(x, C, into=(D, L))
    y = tanh(Sum(Sum(u, D, N), L) / L) * Max(x, N)
""",
    "one label, which may be ignored": """
    x = Input(N)
    w = Input(N)
    label = Label(ignored=-100)
    r = exp(x) / Sum(exp(x), N)
    p = -Sum(OneHot(label, N) * log(r), N)
    y = tanh((p - Sum(w * x, N)) / 15)
""",
    "labels whose axis is nowhere else": """
    x = Input(N, C)
    scale = Input(C)
    labels = Label(C)
    y = Sum(OneHot(labels, N) * scale, C) * Sum(x, C)
""",
    "more sums than one pass adds up, beside maxima": """
    x = Input(N, C)
    w = Input(N, C)
    e = exp(x / 3)
    moments = Sum(e, C) * Sum(x * e, C) + Sum(w, C) * Sum(x**2, C) + Sum(tanh(x), C) * Sum(x**3, C)
    y = tanh(moments / 2000) * Max(x, C) + Max(w, C)
""",
    "values that pass no gradient": """
    x = Input(N, C)
    share = Detach(exp(x) / Sum(exp(x), C))
    y = Detach(x) * share + x * Sum(share * x, C)
""",
    "the same with more axes": """
    x = Input(N, C, K)
    e = exp(x / 3)
    moments = Sum(e, C, K) * Sum(x * e, C, K) + Sum(x, C, K) * Sum(x**2, C, K) + Sum(x**3, C, K)
    y = tanh(moments / 2000) * Max(Max(x, K), C)
""",
    "sums along either axis of a row": """
    x = Input(N, C, K)
    e = exp(x / 3)
    y = Sum(e / Sum(e, C), K) * Sum(x, K) + Max(x, K)
""",
    "gradients that another one is made of": """
    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    diff = x - Sum(x, N) / N
    xhat = diff / (Sum(diff**2, N) / N + 1)
    y = gain * xhat + bias
""",
    "a number that is divided by a size, which may be 0, in a loss with divisors of its own": """
    divisor = Input(N, C)
    table = Input(N, C)
    given = Input(C, default=2)
    power = Scalar(0.5)
    losses = Sum((divisor - table * given)**2, C) * power / C
    loss = Reduced(losses, mean=N, batchmean=N * C)
""",
    "neighbours of what is computed, in either direction": """
    x = Input(N, C)
    w = Input(C)
    e = tanh(x) - w * Shift(tanh(x), C, 1)
    y = Sum(e**2, C) + Sum(Flip(e, C) * x, C) / C
""",
    "windows of a length of their own, and a convolution beside a loop": """
    x = Input(N, D, C)
    w = Input(D, K)
    u = Sum(Window(exp(x / 3), C, into=(P, G), stride=2, padding=1) ** 2, G)
    v = Sum(Window(x, C, into=(P, K), stride=2) * w, K)
    y = tanh(u * Max(Window(x, C, into=(P, G), stride=2, padding=1, fill=-oo), G) + v)
""",
    "several outputs, one of which is an argument, and one of which is a number": """
    x = Input(N, C)
    w = Input(C)
    h = x + w
    y = h / (Sum(h**2, C) / C + 1)
    loss = Sum(y * x, N, C)
    outputs = Outputs(y, loss, h)
""",
    "what goes along an axis from place to place, with numbers and loops around it": """
    x = Input(N, C)
    decay = Scalar(0.9)
    kept = 1 - decay
    mean = Scan(kept, decay * tanh(x), C)
    seen = CumProd(1 - mean / 3, C, exclusive=True)
    h = tanh(Previous(h, C) * seen + x)
    y = h / (1 + CumSum(h**2, C, reverse=True))
""",
    "sums and maxima by index, and additions along one axis of several": """
    x = Input(N, C)
    w = Input(K)
    labels = Label(N, C)
    into = Label(N)
    count = Size(D)
    score = Sum(w * Sum(OneHot(labels, K) * x, C), K)
    e = exp(score - Gather(SegmentMax(score, into, D), into, D))
    y = e / Gather(SegmentSum(e, into, D), into, D)
""",
    "names that C++ and the writer have": """
    x = Input(N, C)
    rows = Input(C)
    n = Input(N)
    x_now = exp(x - Max(x, C))
    first = Sum(x_now, C)
    x_total = x_now / first
    each = x_total * rows + n
    size_N = tanh(each)
    largest = Sum(size_N, N)
    x_block = exp(size_N - largest)
    c = Sum(x_block, C)
    found = log(c) * size_N
    i_C = found * largest + each
    entries = Sum(i_C**2, C)
    Kept = entries * rows
    one_over_N = Sum(Sum(Kept * x, C), N) / N
""",
    "labels along axes in another order than what they pick of": """
    x = Input(K, C)
    w = Input(K, N)
    labels = Label(C, N)
    r = Sum(x * OneHot(labels, K), K)
    y = tanh(Sum(Max(r, C), N) / 17) * w
""",
    "places of maxima that are maxima of places": """
    x = Input(N, C)
    v = 2 * (x - Max(x, C)) + 1
    s = Broadcast(v, M) - Rename(v, C, M)
    g = tanh(Sum(exp(x), N) * (Sum(Max(s, N), M) / M) / 448)
    y = Max(g, C)
""",
    "a matrix and its transpose, with sums of its rows": """
    x = Input(N, C)
    v = tanh(x * Rename(x, C, M))
    s = exp(v - Sum(v, M) / M)
    y = (s + Rename(Rename(Rename(s, C, L), M, C), L, M)) * x
""",
    "functions that are torch's alone": """
    x = Given(N)
    w = Input(N)
    y = polygamma(1, exp(x)) * w + erfinv(tanh(w)) * Sum(besseli(0, w), N)
""",
    "axes that no tensor has": """
    x = Input()
    w = Input(K, N)
    v = Sum(w * Rename(w, N, M), K)
    y = tanh((Min(2 * w, 1) + x) * (Sum(v, M) / M) / 200)
""",
    "sums along one axis beside a maximum along another": """
    x = Input(C)
    w = Input(C)
    z = Input(C, N)
    y = Sum(tanh(z), N) / (2 + tanh(x)) / (1 + Max(w * Rename(w, C, M), M)**2)
""",
    "gates by their numbers, in a loss": """
    x = Input(C, N)
    alpha = Scalar(1.5)
    u = OneHot(0, Gate) * Abs(x) + OneHot(1, Gate) * x
    v = Min(u, 1)
    h = Piecewise((v, Or(v > alpha, Position(Gate) < 1)), (2 * v - 1, v <= -1), (0, True))
    s = h + Piecewise((h, And(h <= u, Position(Gate) >= 1)), (h**2, True))
    t = tanh(Sum(Sum(s, C, Gate) / (C * Gate), N) / N)
""",
    "gates that rows read the sums of": """
    x = Input(C)
    w = Input(N, C)
    u = OneHot(1, Gate) * tanh(w) + OneHot(0, Gate) * (w / 2)
    h = exp(tanh(u / 2))
    r = tanh(Sum(log(h / Sum(h, N)), Gate, C) / 67)
    y = r / (2 + tanh(Max(x, C)))
""",
    "what has fewer axes than rows": """
    x = Input(N, C)
    w = Input(N, C)
    u = Piecewise((x, And(x <= -1, Position(C) <= 1)), (0, True)) * w
    v = Sum(u * tanh(u / 2), N)
    h = tanh(v * Rename(v, C, M) / 134)
    y = h / (1 + exp(-h))
""",
    "one label for all rows": """
    x = Input(N, C)
    label = Label()
    y = exp(Sum(OneHot(label, C) * x, C)) * x
""",
    "the place of a maximum among places": """
    x = Input(N)
    w = Input(N)
    h = Max(sin(Broadcast(x, M) - Rename(x, N, M)), N)
    y = Max(h * tanh(Sum(x, N) * Sum(w, N) / 34), M)
""",
    "signs, and numbers beyond integers": """
    x = Input()
    w = Input(N, C)
    v = (w - Sum(w, C) / 3)**2 / (1 + Abs(x))
    y = tanh(v / 107) + Piecewise((Max(v, C), v < 10**39), (1, True))
""",
}
AXES = "from sympy import And, Or, besseli, erfinv, polygamma, sin\n"
AXES += "M, L, G, P = Axis('M'), Axis('L'), Axis('G', 3), Axis('P', (C + 1) // 2)\n"
AXES += "Gate = Axis('Gate', 2)\n"


@pytest.mark.skipif(not COMPILED, reason="no C++ compiler")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body, id=name, marks=[pytest.mark.slow] * (i % 3 > 0))
        for i, (name, body) in enumerate(BODIES.items())
    ],
)
def test_kernels_of_a_forward_of_ones_own(body, tmp_path):
    file = tmp_path / "own.py"
    more = "from derive import Flip, Reduced, Scalar, Shift, Size, Unflatten, Window\n"
    more += "from derive import CumProd, CumSum, Gather, Outputs, Previous, Scan, SegmentMax\n"
    more += "from derive import SegmentSum\n"
    file.write_text(f"{HEAD}{more}{AXES}\n\nclass Own(Forward):{body}")
    generated = generate(forward_from(file), kernels=kernels["cpp"])
    text, wrapper = generated.kernels
    assert "EXPORTED(" in text and "forward(" in wrapper
    assert not re.search("#pragma|omp_|firstprivate|steady_", text)  # a matter of loops.h


def test_names_that_are_taken_stay_apart():
    names = ["rows", "rows_", "rows__", "x", "x_", "x_now", "x_now_", "size_N", "exp"]
    found = [named(name) for name in names]
    assert len({*found}) == len(names)
    assert found[3] == "x" and "rows" not in found and "x_now" not in found


def test_sizes_come_from_shapes_and_from_one_another():
    sizes = SizeTexts(
        {"C": "x.shape[1]", "N": "x.shape[0]"}, ["L"], {"C": ["D", "L"], "M": ["N", "D"]}
    )
    assert sizes.lines(["M"]) == [
        "N = x.shape[0]",
        "C = x.shape[1]",
        "D = C // max(L, 1)",
        "M = N * D",
    ]
    with pytest.raises(KeyError, match="K"):
        sizes.lines(["K"])
    with pytest.raises(KeyError, match="A"):
        SizeTexts({}, [], {"A": ["B"], "B": ["A"]}).lines(["A"])
