"""One line of a forward in torch, and how a gradient is pulled back through it.

A `Line` has the text of its value, the axes of it, and for every operand a `Pull`. In the texts
``{y}`` stands for the line's own value and ``{g}`` for the gradient that arrives at it. An axis
that was kept by a sum has the name ``"1"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

KEPT = "1"


@dataclass(frozen=True)
class Tensor:
    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Pull:
    """The gradient of ``of``: the product of ``factors``, summed as ``sums`` says."""

    of: Tensor
    factors: tuple[str, ...]
    sums: str = ""


@dataclass(frozen=True)
class Line:
    text: str
    axes: tuple[str, ...]
    pulls: tuple[Pull, ...]


# f(a), and the factors of its derivative.
POINTWISE = {
    "torch.exp({a})": ("{y}",),
    "torch.tanh({a})": ("(1 - {y} * {y})",),
    "torch.sigmoid({a})": ("{y}", "(1 - {y})"),
    "torch.sin({a})": ("torch.cos({a})",),
    "{a} * {a}": ("2", "{a}"),
    "{a}.square()": ("2", "{a}"),
    "{a}.pow(3)": ("3", "{a}.square()"),
    "torch.relu({a})": ("({a} > 0)",),
    "{a}.clamp(min=0.1)": ("({a} > 0.1)",),
    "{a}.abs()": ("{a}.sign()",),
    "torch.sqrt(1 + {a} * {a})": ("{a} / {y}",),
    "torch.log1p({a}.square())": ("2", "{a} / (1 + {a} * {a})"),
    "torch.nn.functional.softplus({a})": ("torch.sigmoid({a})",),
    "1 / (1 + {a} * {a})": ("-2", "{a}", "{y}.square()"),
    "torch.where({a} > 0, {a}, 0.1 * {a})": ("torch.where({a} > 0, 1.0, 0.1)",),
    "-{a}": ("-1",),
    "0.5 * {a} + 1": ("0.5",),
}
# f(a, b), and the factors of both derivatives.
OF_TWO = {
    "{a} + {b}": ((), ()),
    "{a} - {b}": ((), ("-1",)),
    "{a} * {b}": (("{b}",), ("{a}",)),
    "{a} / (1 + {b}.square())": (
        ("1 / (1 + {b}.square())",),
        ("-2", "{b}", "{y} / (1 + {b}.square())"),
    ),
    "{a} * torch.sigmoid({b})": (
        ("torch.sigmoid({b})",),
        ("{a}", "torch.sigmoid({b})", "(1 - torch.sigmoid({b}))"),
    ),
    "torch.maximum({a}, {b})": (("({a} > {b})",), ("({b} >= {a})",)),
}


def random_line(rng: Random, a: Tensor, others: list[Tensor]) -> Line | None:
    """A line that uses ``a``, or None where the draw has no meaning for these axes."""
    draw = rng.choice([_pointwise, _of_two, _of_two, _of_two, _reduced, _reduced, _along, _product])
    return draw(rng, a, rng.choice(others))


def _pointwise(rng: Random, a: Tensor, _: Tensor) -> Line:
    text = rng.choice([*POINTWISE])
    factors = tuple(f.replace("{a}", a.name) for f in POINTWISE[text])
    return Line(text.replace("{a}", a.name), a.axes, (Pull(a, ("{g}", *factors)),))


def _of_two(rng: Random, a: Tensor, b: Tensor) -> Line | None:
    if rng.random() < 0.3:
        a, b = b, a
    text = rng.choice([*OF_TWO])
    axes = broadcast(a.axes, b.axes)
    if axes is None or (a == b and "maximum" in text):
        return None

    def named(words: str) -> str:
        return words.replace("{a}", a.name).replace("{b}", b.name)

    pulls = (
        Pull(t, ("{g}", *map(named, factors)), summed(axes, t.axes))
        for t, factors in zip((a, b), OF_TWO[text], strict=True)
    )
    return Line(named(text), axes, tuple(pulls))


def broadcast(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...] | None:
    """The axes of ``a + b``; None where they do not fit."""
    rank = max(len(a), len(b))
    a, b = ((KEPT,) * (rank - len(t)) + t for t in (a, b))
    if any(KEPT not in (p, q) and p != q for p, q in zip(a, b, strict=True)):
        return None
    return tuple(q if p == KEPT else p for p, q in zip(a, b, strict=True))


def summed(axes: tuple[str, ...], to: tuple[str, ...]) -> str:
    """The sums that undo a broadcast of ``to`` to ``axes``."""
    if not to:
        return ".sum()" if axes else ""
    first = len(axes) - len(to)
    kept = (f".sum({i}, keepdim=True)" for i, x in enumerate(to) if x != axes[first + i])
    return ".sum(0)" * first + "".join(kept)


def _reduced(rng: Random, a: Tensor, _: Tensor) -> Line | None:
    """A sum, a mean or a logsumexp, along one dimension or (the first two) of everything."""
    if not a.axes:
        return None
    how = rng.choice(["sum", "mean", "logsumexp"])
    if how != "logsumexp" and rng.random() < 0.3:
        spread = rng.choice(
            [("{g}.expand_as({a})".replace("{a}", a.name),), ("{g}", f"torch.ones_like({a.name})")]
        )
        part = () if how == "sum" else (f"(1 / {a.name}.numel())",)
        return Line(f"{a.name}.{how}()", (), (Pull(a, spread + part),))
    dim, keep = rng.randrange(len(a.axes)), rng.random() < 0.5
    axes = a.axes[:dim] + (KEPT,) * keep + a.axes[dim + 1 :]
    g = "{g}" if keep else f"{{g}}.unsqueeze({dim})"
    text = f"{a.name}.{how}({dim}{', keepdim=True' * keep})"
    if how == "logsumexp":
        return Line(text, axes, (Pull(a, (g, f"torch.softmax({a.name}, {dim})")),))
    part = () if how == "sum" else (f"(1 / {a.name}.shape[{dim}])",)
    return Line(text, axes, (Pull(a, (f"{g}.expand_as({a.name})", *part)),))


def _along(rng: Random, a: Tensor, _: Tensor) -> Line | None:
    """A line along one dimension that keeps the axes, or moves them."""
    if not a.axes:
        return None
    dim, name, rank = rng.randrange(len(a.axes)), a.name, len(a.axes)
    kept = f"{dim}, keepdim=True"
    lines = [
        (
            f"torch.softmax({name}, {dim})",
            a.axes,
            ("{y}", f"({{g}} - ({{g}} * {{y}}).sum({kept}))"),
        ),
        (f"{name} - {name}.mean({kept})", a.axes, (f"({{g}} - {{g}}.mean({kept}))",)),
        (f"{name}.cumsum({dim})", a.axes, (f"{{g}}.flip({dim}).cumsum({dim}).flip({dim})",)),
        (f"{name}.flip({dim})", a.axes, (f"{{g}}.flip({dim})",)),
    ]
    if rank == 1:
        lines.append((f"{name}[:, None]", (*a.axes, KEPT), ("{g}.squeeze(1)",)))
    if rank == 2:
        lines.append((f"{name}.t()", a.axes[::-1], ("{g}.t()",)))
    text, axes, factors = rng.choice(lines)
    return Line(text, axes, (Pull(a, factors),))


def _product(rng: Random, a: Tensor, b: Tensor) -> Line | None:
    """A product of matrices, or of a matrix and a vector."""
    if len(a.axes) != 2 or not b.axes or a.axes[1] != b.axes[0] or KEPT in a.axes + b.axes:
        return None
    x, w = a.name, b.name
    first = f"{{g}} @ {w}.t()" if len(b.axes) == 2 else f"torch.outer({{g}}, {w})"
    axes = a.axes[:1] + b.axes[1:]
    return Line(f"{x} @ {w}", axes, (Pull(a, (first,)), Pull(b, (f"{x}.t() @ {{g}}",))))
