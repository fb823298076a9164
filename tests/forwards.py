"""Forwards of a user's own, as files outside of the repository: written to a folder of the test."""

from __future__ import annotations

from pathlib import Path

from derive.language.notation.library import list_forwards

HEAD = """\
from sympy import Abs, Eq, Min, Ne, Piecewise, Rational, exp, log, oo, sqrt, tanh
from derive import Axis, Broadcast, Detach, Flatten, Forward, Given, Gradient, Input
from derive import Kept, Label, Max, OneHot, Ordered, Outputs, Position, Rename, Scalar, Sum

N, C, D, H, K = Axis("N"), Axis("C"), Axis("D"), Axis("H"), Axis("K")
"""

OWN = {
    "LayerNorm": '''
    """Layer normalization over the last axis."""
    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    var = Sum((x - mean) ** 2, C) / C
    inv_std = 1 / sqrt(var + eps)
    xhat = (x - mean) * inv_std
    y = gain * xhat + bias
''',
    "LayerNormInOneLine": """
    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    y = gain * (x - mean) / sqrt(Sum((x - mean) ** 2, C) / C + eps)
""",
    "CubeRootNorm": """
    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-3)
    mean = Sum(x, N) / N
    diff = x - mean
    var = Sum(diff**2, N) / (N - 1)
    inv = (var + eps) ** Rational(-1, 3)
    xhat = diff * inv
    y = gain * xhat + bias
""",
    "SmoothedNLL": """
    logits = Input(N, C)
    labels = Label(N)
    smoothing = Scalar(0.1)
    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    target = (1 - smoothing) * OneHot(labels, C) + smoothing / C
    loss = -Sum(target * log(probs), N, C) / N
""",
    "WeightedNLL": """
    logits = Input(N, C)
    weight = Input(C)
    labels = Label(N)
    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    total = Sum(OneHot(labels, C) * weight, N, C)
    loss = -Sum(OneHot(labels, C) * weight * log(probs), N, C) / total
""",
    "AbsoluteFourthNorm": '''
    """Nobody has published this: the mean absolute deviation times a fourth moment."""
    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-2)
    middle = Sum(x, N) / N
    diff = x - middle
    spread = Sum(Abs(diff), N) / N
    fourth = Sum(diff**4, N) / N
    scale = (spread**2 + fourth + eps) ** Rational(-1, 4)
    y = gain * diff * scale
''',
    "Attention": """
    q = Input(N, D)
    k = Input(K, D)
    v = Input(K, H)
    s = Sum(q * k, D) / sqrt(D)
    e = exp(s - Max(s, K))
    p = e / Sum(e, K)
    out = Sum(p * v, K)
""",
    "Embedding": """
    index = Label(N)
    table = Input(K, D)
    rows = Sum(OneHot(index, K) * table, K)
    y = tanh(rows)
""",
    "PairDistances": """
    x = Input(N, D)
    M = Axis("M")
    d2 = Sum((x - Rename(x, N, M)) ** 2, D)
    y = Sum(exp(-d2), M)
""",
    "Swish": """
    x = Input(N)
    gate = 1 / (1 + exp(-x))
    y = x * gate
""",
    "ClampedNLL": """
    logits = Input(N, C)
    labels = Label(N)
    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    row = -Sum(OneHot(labels, C) * log(probs), C)
    loss = Sum(Min(row, 2), N) / N
""",
}


def source(*names: str) -> str:
    """The text of a file with these forwards."""
    return HEAD + "".join(f"\n\nclass {name}(Forward):{OWN[name]}" for name in names)


def forward_file(folder: Path, name: str, body: str) -> Path:
    """A user's own file with one forward."""
    file = folder / f"{name.lower()}.py"
    file.write_text(f"{HEAD}\n\nclass {name}(Forward):\n{body}", encoding="utf-8")
    return file


def write(folder: Path, *names: str) -> Path:
    """A file with these forwards in ``folder``."""
    file = folder / f"{'_'.join(names).lower()}.py"
    file.write_text(source(*names), encoding="utf-8")
    return file


def told_apart() -> list[str]:
    """The project's forwards and `OWN`, of the reductions of a loss the mean alone: the derivation
    of the others is a part of its.
    """
    return [*(forward.definition.snake for forward in list_forwards()), *OWN]
