"""Forwards longer than those of the gallery, put together from pieces: what grows with the length
of a forward is counted on them. ``LONG`` has the body of each, for `forwards.forward_file`.
"""

from __future__ import annotations

# ``{i}`` tells the lines of one piece from those of another, ``{x}`` is what it is applied to.
NORM = """\
    gain{i} = Input({axis})
    bias{i} = Input({axis})
    mean{i} = Sum({x}, {axis}) / {axis}
    diff{i} = {x} - mean{i}
    var{i} = Sum(diff{i}**2, {axis}) / {axis}
    inv{i} = 1 / sqrt(var{i} + Rational(1, 100000))
    xhat{i} = diff{i} * inv{i}
    n{i} = gain{i} * xhat{i} + bias{i}
"""
LINEAR = """\
    w{i} = Input({axis}, {to})
    b{i} = Input({to})
    u{i} = Sum({x} * w{i}, {axis}) + b{i}
"""
ATTENTION = """\
    wq{i} = Input(D, H)
    wk{i} = Input(D, H)
    wv{i} = Input(D, H)
    wo{i} = Input(H, D)
    q{i} = Sum({x} * wq{i}, D)
    k{i} = Sum({x} * wk{i}, D)
    v{i} = Sum({x} * wv{i}, D)
    scores{i} = Sum(q{i} * Rename(k{i}, N, K), H) / sqrt(H)
    e{i} = exp(scores{i} - Max(scores{i}, K))
    p{i} = e{i} / Sum(e{i}, K)
    o{i} = Sum(p{i} * Rename(v{i}, N, K), K)
    a{i} = Sum(o{i} * wo{i}, H)
"""
GELU = """\
    g{i} = {x} * (1 + erf({x} / sqrt(2))) / 2
"""
GATE = """\
    wz{i} = Input(D, H)
    wc{i} = Input(D, H)
    uz{i} = Input(H)
    uc{i} = Input(H)
    z{i} = 1 / (1 + exp(-(Sum(v * wz{i}, D) + uz{i} * {x})))
    c{i} = tanh(Sum(v * wc{i}, D) + uc{i} * {x})
    h{i} = (1 - z{i}) * {x} + z{i} * c{i}
"""
SOFTMAX = """\
    e{i} = exp({x} - Max({x}, C))
    p{i} = e{i} / Sum(e{i}, C)
    r{i} = {x} + p{i}
"""
SINKHORN = """\
    a{i} = {x} / Sum({x}, C)
    b{i} = a{i} / Sum(a{i}, N)
"""


def chain(length: int) -> str:
    """Functions of functions."""
    lines, inner = "    x = Input(N)\n", "x"
    for i in range(1, length):
        outer = f"tanh({i + 1} * {inner})" if i % 2 else f"exp(-{inner}**2) + {inner}"
        lines, inner = f"{lines}    u{i} = {outer}\n", f"u{i}"
    return lines


def repeated(first: str, piece: str, count: int, result: str) -> str:
    """``piece`` applied to what ``first`` calls x, and then to its own ``result``."""
    values = ["x", *(f"{result}{i}" for i in range(1, count))]
    return first + "".join(piece.format(i=i, x=x) for i, x in enumerate(values, 1))


def mlp(depth: int) -> str:
    """Linear layers, each with a layer norm and a function behind it."""
    lines, value, axis, to = "    x = Input(N, D)\n", "x", "D", "H"
    for i in range(1, depth + 1):
        lines += LINEAR.format(i=i, x=value, axis=axis, to=to)
        lines += NORM.format(i=i, x=f"u{i}", axis=to) + f"    h{i} = tanh(n{i})\n"
        value, axis, to = f"h{i}", to, axis
    return lines


def transformer(blocks: int) -> str:
    """Layer norm, attention of one head, and an MLP, each added to what it was applied to."""
    lines, value = "    from sympy import erf\n    x = Input(N, D)\n", "x"
    for block in range(1, blocks + 1):
        first, second = f"{block}a", f"{block}b"
        lines += NORM.format(i=first, x=value, axis="D")
        lines += ATTENTION.format(i=first, x=f"n{first}")
        lines += f"    r{first} = {value} + a{first}\n"
        lines += NORM.format(i=second, x=f"r{first}", axis="D")
        lines += LINEAR.format(i=first, x=f"n{second}", axis="D", to="C")
        lines += GELU.format(i=first, x=f"u{first}")
        lines += LINEAR.format(i=second, x=f"g{first}", axis="C", to="D")
        value = f"r{second}"
        lines += f"    {value} = r{first} + u{second}\n"
    return lines


LONG = {
    "Chain8": chain(8),
    "Chain16": chain(16),
    "Chain32": chain(32),
    "LayerNorms4": mlp(4),
    "LayerNorms8": mlp(8),
    "Transformer1": transformer(1),
    "Transformer2": transformer(2),
    "Sinkhorn3": repeated("    s = Input(N, C)\n    x = exp(s)\n", SINKHORN, 3, "b"),
    "Gates4": repeated("    v = Input(N, D)\n    x = Input(N, H)\n", GATE, 4, "h"),
    "Softmaxes6": repeated("    x = Input(N, C)\n", SOFTMAX, 6, "r"),
}
