"""Entries read at an affine index: slices, shifts, flips, windows, convolutions, pooling, halves of
an axis, tensors one after the other; beside references typed by hand.
"""

import re

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, generated
from sympy import sympify

from derive import At, Axis, NotationError, Position, UnprovedError, derive, forward_from
from derive.gradient.chain.chain import derive_chain
from derive.language import reading_at
from derive.language.reading_at import back
from derive.language.symbols import Tensor
from derive.proof.proving.claim import Derivative, holds_for_every_size

HEAD = (
    HEAD.replace(
        "from derive import ",
        "from derive import At, Concat, Flip, Pad, Shift, Slice, Window\nfrom derive import ",
        1,
    )
    + "from derive.math.conv1d import Conv1d\n"
    + 'B, T, E, I, O, G, W, L, R, S = (Axis(name) for name in "BTEIOGWLRS")\n'
)


def file_of(folder, text: str):
    file = folder / "read.py"
    lines = [line.strip() for line in text.strip().split("\n")]
    axes = [line for line in lines if re.match(r"\w+ = Axis\(", line)]
    body = [line for line in lines if line not in axes]
    written = "".join(f"    {line}\n" for line in body)
    file.write_text(
        "\n".join([HEAD, *axes, "", "class ReadAt(Forward):", written]), encoding="utf-8"
    )
    return file


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


# name: (class body, reference, what stands in the code, inputs)
CASES = {
    "differences": (
        """D = Axis("D", T - 1)
        x = Input(B, T)
        d = Slice(x, T, into=D, start=1) - Slice(x, T, into=D)
        loss = Sum(d**2, D)""",
        lambda x: (x[:, 1:] - x[:, :-1]).pow(2).sum(1),
        ["x[:, 1:] - x[:, :-1]"],
        draw(3, 5),
    ),
    "total variation": (
        """D = Axis("D", T - 1)
        x = Input(T)
        loss = Sum(Abs(At(x, T, Position(D) + 1) - At(x, T, Position(D))), D)""",
        lambda x: (x[1:] - x[:-1]).abs().sum(),
        ["x[1:] - x[:-1]"],
        draw(6),
    ),
    "every second entry": (
        """D = Axis("D", (T - 1) // 2)
        x = Input(B, T)
        y = exp(Slice(x, T, into=D, start=1, step=2))""",
        lambda x: x[:, 1:-1:2].exp(),
        ["x[:, 1:-1:2]"],
        draw(3, 7),
    ),
    "in reverse": (
        "x = Input(B, T)\nw = Input(T)\ny = Flip(tanh(x), T) * w",
        lambda x, w: x.tanh().flip(1) * w,
        [".flip(1)"],
        draw(3, 5),
        draw(5),
    ),
    "a shift": (
        "x = Input(T, B)\na = Input(B)\ny = x - a * Shift(x, T, 2)",
        lambda x, a: x - a * F.pad(x, (0, 0, 2, 0))[:-2],
        ["_padded(x, 0, 2, -2)"],
        draw(5, 3),
        draw(3),
    ),
    "a shift by more than there is": (
        "x = Input(B, T)\ny = x * Shift(x, T, 4) + exp(x)",
        lambda x: x.exp() + x * 0,
        [],
        draw(2, 3),
    ),
    "padding": (
        """P = Axis("P", T + 3)
        x = Input(B, T)
        y = exp(Pad(x, T, into=P, before=1, fill=2))""",
        lambda x: F.pad(x, (1, 2), value=2.0).exp(),
        ["torch.nn.functional.pad(x, (1, 2), value=2)"],
        draw(2, 4),
    ),
    "a causal depthwise convolution": (
        """x = Input(B, C, T)
        w = Input(C, K)
        b = Input(C)
        y = Sum(Window(x, T, into=(T, K), padding=K - 1) * w, K) + b""",
        lambda x, w, b: F.conv1d(F.pad(x, (3, 0)), w[:, None], b, groups=x.shape[1]),
        ["torch.nn.functional.conv1d", "torch.nn.grad.conv1d_input", "torch.nn.grad.conv1d_weight"],
        draw(2, 3, 6),
        draw(3, 4),
        draw(3),
    ),
    "a strided, dilated and padded convolution in groups": (
        """D = Axis("D", (T + 4 - 2 * (K - 1) - 1) // 3 + 1)
        x = Input(B, G, I, T)
        w = Input(G, O, I, K)
        y = Sum(Window(x, T, into=(D, K), stride=3, dilation=2, padding=2) * w, I, K)""",
        lambda x, w: F.conv1d(
            x.flatten(1, 2), w.flatten(0, 1), stride=3, dilation=2, padding=2, groups=2
        ).unflatten(1, (2, 5)),
        ["stride=3, padding=2, dilation=2, groups=G"],
        draw(2, 2, 3, 11),
        draw(2, 5, 3, 4),
    ),
    "a convolution in two dimensions": (
        """P = Axis("P", (H + 2 - K) // 2 + 1)
        Q = Axis("Q", W - L + 1)
        x = Input(B, I, H, W)
        w = Input(O, I, K, L)
        rows = Window(x, H, into=(P, K), stride=2, padding=1)
        y = Sum(Window(rows, W, into=(Q, L)) * w, I, K, L)""",
        lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(1, 0)),
        ["torch.nn.functional.conv2d(x, w, stride=(2, 1), padding=(1, 0))"],
        draw(2, 3, 5, 6),
        draw(4, 3, 3, 2),
    ),
    "the largest in windows": (
        """P = Axis("P", 3)
        D = Axis("D", (T - 1) // 2 + 1)
        x = Input(B, T)
        y = Max(Window(x, T, into=(D, P), stride=2, padding=1, fill=-oo), P)""",
        lambda x: F.max_pool1d(x, 3, 2, 1),
        ["_placed("],
        draw(3, 7),
    ),
    "the largest in windows of two dimensions": (
        """P = Axis("P", 2)
        Q = Axis("Q", 2)
        D = Axis("D", H // 2)
        V = Axis("V", W // 2)
        x = Input(B, H, W)
        rows = Window(x, H, into=(D, P), stride=2)
        y = Max(Flatten(Window(rows, W, into=(V, Q), stride=2), P, Q, into=S), S)""",
        lambda x: F.max_pool2d(x, 2),
        ["x.unfold(1, P, 2).unfold(2, Q, 2)", "(1, P, 2, 1, 0, H),"],
        draw(2, 4, 5),
    ),
    "a maximum of maxima": (
        """P = Axis("P", 2)
        Q = Axis("Q", 2)
        D = Axis("D", H // 2)
        V = Axis("V", W // 2)
        x = Input(B, H, W)
        rows = Window(x, H, into=(D, P), stride=2)
        y = Max(Max(Window(rows, W, into=(V, Q), stride=2), Q), P)""",
        lambda x: F.max_pool2d(x, 2),
        [],
        draw(2, 4, 5),
    ),
    "the mean in windows of two dimensions": (
        """P = Axis("P", 3)
        Q = Axis("Q", 2)
        D = Axis("D", (H - 3) // 2 + 1)
        V = Axis("V", (W - 2) // 2 + 1)
        x = Input(B, H, W)
        rows = Window(x, H, into=(D, P), stride=2)
        y = Sum(Window(rows, W, into=(V, Q), stride=2), P, Q) / 6""",
        lambda x: F.avg_pool2d(x, (3, 2), 2),
        [],
        draw(2, 6, 5),
    ),
    "the mean in windows": (
        """P = Axis("P", 3)
        D = Axis("D", T - 2)
        x = Input(B, T)
        y = Sum(Window(x, T, into=(D, P)), P) / 3""",
        lambda x: F.avg_pool1d(x, 3, 1),
        [],
        draw(2, 6),
    ),
    "rotary embedding": (
        """D = Axis("D", E / 2)
        x = Input(B, T, E)
        cosine = Given(T, E)
        sine = Given(T, E)
        half = Shift(x, E, D) - Shift(x, E, -D)
        y = x * cosine + half * sine""",
        lambda x, cosine, sine: x * cosine + rotate_half(x) * sine,
        ["torch.cat((-x[:, :, D:], x[:, :, :D]), 2)"],
        draw(2, 3, 6),
        draw(3, 6),
        draw(3, 6),
    ),
    "one after the other": (
        """D = Axis("D", L + R)
        x = Input(B, L, C)
        z = Input(B, R, C)
        y = tanh(Concat((x, L), (z, R), into=D))""",
        lambda x, z: torch.cat((x, z), 1).tanh(),
        ["torch.cat((x, z), 1)"],
        draw(2, 3, 4),
        draw(2, 5, 4),
    ),
    "a convolution of a convolution, composed": (
        """x = Input(B, C, T)
        w = Input(I, C, K)
        v = Input(O, I, L)
        h = tanh(Conv1d(x, w, 0))
        y = Conv1d(h, v, 0)""",
        lambda x, w, v: F.conv1d(F.conv1d(x, w).tanh(), v),
        ["torch.nn.functional.conv1d(x, w)", "torch.nn.functional.conv1d(h, v)"],
        draw(2, 3, 9),
        draw(4, 3, 2),
        draw(5, 4, 3),
    ),
    "the last entry": (
        "x = Input(B, T)\ny = exp(At(x, T, T - 1))",
        lambda x: x[:, -1].exp(),
        [],
        draw(3, 4),
    ),
}


AT_SMALL_SIZES = ("a maximum of maxima",)  # of which the one is not unfolded in the other


@pytest.mark.parametrize("name", CASES)
def test_as_torch(name, tmp_path):
    text, reference, code, *inputs = CASES[name]
    function, _, result = generated(file_of(tmp_path, text), tmp_path)
    assert result.proved.every_size or name in AT_SMALL_SIZES
    for line in code:
        assert line in result.text
    assert "one_hot" not in result.text or name in AT_SMALL_SIZES
    given = inputs if "Given" not in text else inputs[:1]
    rest = inputs[len(given) :]
    assert_same_gradients(
        lambda *leaves: function(*leaves, *rest), lambda *leaves: reference(*leaves, *rest), *given
    )


def test_second_derivatives_and_transforms(tmp_path):
    """The function is compared with autograd in every use before it is returned."""
    text, reference, _, x, w = CASES["a strided, dilated and padded convolution in groups"]
    function, *_ = generated(file_of(tmp_path, text), tmp_path)
    torch.autograd.gradgradcheck(function, (x.requires_grad_(), w.requires_grad_()))
    x, w = x.detach(), w.detach()
    rows = torch.func.vmap(function, in_dims=(0, None))(torch.stack([x, 2 * x]), w)
    torch.testing.assert_close(rows, torch.stack([reference(x, w), reference(2 * x, w)]))


def test_a_size_that_is_none_is_refused(tmp_path):
    halves = CASES["rotary embedding"][0]
    function, _, _ = generated(file_of(tmp_path, halves), tmp_path)
    with pytest.raises(ValueError, match=r"D = E/2 is not whole|E = 5"):
        function(draw(2, 3, 5), draw(3, 5), draw(3, 5))


REFUSED = {
    "y = At(x, T, Position(T) ** 2)": "not affine in positions",
    "y = At(x, T, Position(T) * Sum(x, T))": "not affine in positions",
    "y = At(x, B, Position(T))": "there is no axis B in it",
    "y = At(x, T)": "is not an entry",
    "y = At(x, T, Position(T), fill=x)": "is not a number",
    "y = At(x, T, Position(S))": "the size of S is unknown",
    "y = Pad(x, T)": "does not name the new axis",
    "y = Slice(x, T, into=S, start=-1)": "entries are counted from 0",
    "y = Window(x, T, into=S)": "does not name where a window is",
    "y = Concat((x, T), (x, T), into=S)": "is not that of the parts together",
    "y = Concat(x, into=S)": "each tensor comes with its axis",
    "y = Flip(x, 1)": "is not an axis",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused(line, tmp_path):
    with pytest.raises(NotationError, match=re.escape(REFUSED[line])) as error:
        forward_from(file_of(tmp_path, f"x = Input(T)\n{line}"))
    assert re.search("write |axes of", str(error.value))


def test_a_length_is_made_of_sizes():
    size, x = Axis("N"), Tensor("x", ())
    assert Axis("M", size - 1) == Axis("M", size - 1) != Axis("M")
    for wrong in (x, sympify(2) / 3, Position(size)):
        with pytest.raises(NotationError, match="not made of the sizes of other axes"):
            Axis("M", wrong)


@pytest.mark.parametrize("name", ["a causal depthwise convolution", "the mean in windows"])
def test_what_is_wrong_is_not_shown_for_every_size(name, tmp_path):
    definition = forward_from(file_of(tmp_path, CASES[name][0])).definition
    (adjoint, *_) = derive_chain(definition).adjoints

    def with_reads(change):
        def changed(node):
            return At.over(node.operand, node.axis, change(node.index), node.fill)

        return adjoint.expression.replace(lambda node: isinstance(node, At), changed)

    def is_shown(e):
        claim = Derivative(definition, adjoint.of, e, definition.output)
        return holds_for_every_size(claim, [])

    assert is_shown(adjoint.expression)
    wrong = [with_reads(lambda index, by=by: index + by) for by in (-1, 1)]
    for e in (*wrong, with_reads(lambda index: -index), -adjoint.expression):
        assert not is_shown(e)


def test_a_wrong_adjoint_is_refuted(tmp_path, monkeypatch):
    def wrong(node, upstream):
        e = back(node, upstream)
        shifted = lambda n: At.over(n.operand, n.axis, n.index + 1, n.fill)  # noqa: E731
        return e.replace(lambda n: isinstance(n, At), shifted)

    forward = forward_from(file_of(tmp_path, CASES["a shift"][0]))
    monkeypatch.setattr(reading_at, "back", wrong)
    with pytest.raises(UnprovedError, match="dx is unproved"):
        derive(forward)
