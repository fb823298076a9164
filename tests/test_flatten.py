"""Axes that become one: shapes, gradients beside references typed by hand, and what is refused."""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, generated

from derive import Axis, Flatten, Forward, Input, Sum, forward_from
from derive.language.errors import NotationError, QuestionError
from derive.language.nodes import Unflatten

HEAD = HEAD + 'T, E, V, P, M = (Axis(name) for name in "TEVPM")\n'


def file_of(folder, text: str):
    file = folder / "flat.py"
    file.write_text(HEAD + "\n\n" + text, encoding="utf-8")
    return file


def body(text: str) -> str:
    lines = [line.strip() for line in text.strip().split("\n")]
    return "class Flattened(Forward):\n" + "".join(f"    {line}\n" for line in lines)


def index(*shape, high):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(4))


X = draw(3, 2, 4)  # N, T, E

# name: (class body, reference, inputs)
CASES = {
    "as a whole": ("x = Input(N, T, E)\ny = Flatten(x, T, E, into=K)", lambda x: x.flatten(1), X),
    "into the rows of a matrix": (
        "x = Input(N, T, E)\nw = Input(K, H)\ny = tanh(Sum(Flatten(x, T, E, into=K) * w, K))",
        lambda x, w: torch.tanh(x.flatten(1) @ w),
        X,
        draw(8, 5),
    ),
    "in another order": (
        "x = Input(N, T, E)\nw = Input(K, H)\ny = Sum(Flatten(exp(x), E, T, into=K) * w, K)",
        lambda x, w: x.exp().mT.flatten(1) @ w,
        X,
        draw(8, 5),
    ),
    "axes that do not lie side by side": (
        "x = Input(T, N, E)\ny = tanh(Flatten(x, E, T, into=K))",
        lambda x: x.permute(1, 2, 0).flatten(1).tanh(),
        X,
    ),
    "three axes": (
        "x = Input(N, T, E, H)\ny = exp(Flatten(x, T, E, H, into=K))",
        lambda x: x.flatten(1).exp(),
        draw(3, 2, 4, 5),
    ),
    "twice, one in the other": (
        "x = Input(N, T, E, H)\ny = tanh(Flatten(Flatten(x, T, E, into=K), H, K, into=P))",
        lambda x: x.permute(0, 3, 1, 2).flatten(1).tanh(),
        draw(3, 2, 4, 5),
    ),
    "normalised over the flat axis": (
        """x = Input(N, T, E)
        gain = Input(K)
        flat = Flatten(x, T, E, into=K)
        mean = Sum(flat, K) / K
        diff = flat - mean
        scale = 1 / sqrt(Sum(diff**2, K) / K + 1)
        y = gain * diff * scale""",
        lambda x, gain: F.layer_norm(x.flatten(1), (8,), gain, None, 1.0),
        X,
        draw(8),
    ),
    "softmax over the flat axis": (
        """x = Input(N, T, E)
        flat = Flatten(x, T, E, into=K)
        counts = exp(flat - Max(flat, K))
        y = counts / Sum(counts, K)""",
        lambda x: x.flatten(1).softmax(1),
        X,
    ),
    "an index along the flat axis": (
        """x = Input(N, T, E)
        labels = Label(N)
        flat = Flatten(x, T, E, into=K)
        y = tanh(Sum(OneHot(labels, K) * flat, K))""",
        lambda x, labels: x.flatten(1).gather(1, labels[:, None])[:, 0].tanh(),
        X,
        index(3, high=8),
    ),
    "an index that lies along a part": (
        """x = Input(T, E, C)
        labels = Label(T)
        y = Sum(OneHot(labels, C) * Flatten(x, T, E, into=K), C)""",
        lambda x, labels: torch.einsum("kc,tc->tk", x.flatten(0, 1), F.one_hot(labels, 4).double()),
        draw(3, 2, 4),
        index(3, high=4),
    ),
    "what was picked": (
        """table = Input(V, E)
        labels = Label(N, T)
        y = tanh(Flatten(Sum(OneHot(labels, V) * table, V), T, E, into=K))""",
        lambda table, labels: table[labels].flatten(1).tanh(),
        draw(6, 4),
        index(3, 2, high=6),
    ),
    "a view of the upstream gradient is not written to": (
        "x = Input(N, V, E)\ny = Flatten(x - Max(x, V), V, E, into=K)",
        lambda x: (x - x.max(1, keepdim=True).values).flatten(1),
        X,
    ),
    "a part that is broadcast": (
        "x = Input(N, T)\nb = Input(E)\ny = tanh(Flatten(Broadcast(x, E) + b, T, E, into=K))",
        lambda x, b: (x[..., None] + b).flatten(1).tanh(),
        draw(3, 2),
        draw(4),
    ),
    "a mark alone": (
        "x = Input(N, T)\nb = Input(E)\ny = Flatten(Broadcast(x, E), T, E, into=K) * Sum(b, E)",
        lambda x, b: x[..., None].expand(3, 2, 4).flatten(1) * b.sum(),
        draw(3, 2),
        draw(4),
    ),
    "its parts are met beside it": (
        "x = Input(N, T, E)\ny = Flatten(x, T, E, into=K) * Sum(Sum(x, T) ** 2, E)",
        lambda x: x.flatten(1) * (x.sum(1) ** 2).sum(1, keepdim=True),
        X,
    ),
    "pairs of it": (
        "x = Input(N, T, E)\nf = Flatten(x, T, E, into=K)\ny = Sum(tanh(f * Rename(f, K, P)), N)",
        lambda x: (x.flatten(1)[:, :, None] * x.flatten(1)[:, None]).tanh().sum(0),
        X,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients(name, tmp_path):
    text, reference, *inputs = CASES[name]
    function, _, result = generated(file_of(tmp_path, body(text)), tmp_path)
    assert result.proved.every_size
    assert_same_gradients(function, reference, *inputs)
    assert_same_gradients(
        lambda *leaves: function(*leaves).sum(), lambda *leaves: reference(*leaves).sum(), *inputs
    )


COMPOSED = """
class Rows(Forward):
    x = Input(N, T, E)
    y = tanh(Flatten(x, T, E, into=K))


class Flattened(Forward):
    x = Input(N, T, E)
    z = Input(N, H, D)
    u = Input(N, K)
    first = Rows(x)
    other = Rows(z)
    totals = Sum(u, K) * Sum(other, Axis("K_other"))
    y = Sum(first**2, Axis("K_first")) * totals
"""


def test_an_axis_that_a_block_made_is_not_the_callers(tmp_path):
    function, _, _ = generated(f"{file_of(tmp_path, COMPOSED)}:Flattened", tmp_path)

    def reference(x, z, u):
        squares = (x.flatten(1).tanh() ** 2).sum(1)
        return squares * u.sum(1) * z.flatten(1).tanh().sum(1)

    assert_same_gradients(function, reference, X, draw(3, 5, 6), draw(3, 7))


def test_a_line_of_numbers_is_a_number(tmp_path):
    text = "x = Input(N)\nr = Scalar(3.0)\nc = 2 * r + 1\ny = tanh(c * x)"
    function, _, _ = generated(file_of(tmp_path, body(text)), tmp_path)
    assert_same_gradients(function, lambda x: torch.tanh(5 * x), draw(4), r=2.0)


def test_the_sizes_must_fit(tmp_path):
    text = "x = Input(N, T, E)\nw = Input(K, H)\ny = Sum(Flatten(x, T, E, into=K) * w, K)"
    function, *_ = generated(file_of(tmp_path, body(text)), tmp_path)
    with pytest.raises(ValueError, match=r"K is not .* where K = 7, T = 2, E = 4"):
        function(X, draw(7, 5))


def test_a_flat_size_that_no_argument_has_is_checked(tmp_path):
    text = """x = Input(N, T, E, H)
    v = Input(P)
    f = Flatten(x, T, E, into=K)
    y = Sum(tanh(Flatten(f, K, H, into=P) * v), P)"""
    function, _, _ = generated(file_of(tmp_path, body(text)), tmp_path)
    x = draw(3, 2, 4, 5)

    def reference(x, v):
        return (x.flatten(1) * v).tanh().sum(1)

    assert_same_gradients(function, reference, x, draw(40))
    for wrong in (1, 23):
        with pytest.raises(ValueError, match="P is not"):
            function(x, draw(wrong))


def test_an_axis_cannot_be_a_part_of_itself(tmp_path):
    text = "x = Input(N, T, E)\nf = Flatten(x, T, E, into=K)\ny = Flatten(f, N, K, into=T)"
    with pytest.raises(QuestionError, match="T would be a part of itself"):
        forward_from(file_of(tmp_path, body(text)))


N, T, E, K = Axis("N"), Axis("T"), Axis("E"), Axis("K")
x = Input(N, T, E).named("x")


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda: Flatten(x, T, E), "does not say what the new axis is called"),
        (lambda: Flatten(x, T, E, into="K"), "into 'K', which is not an axis"),
        (lambda: Flatten(x, T, E, into=N), "N is an axis of x already"),
        (lambda: Flatten(x, T, into=K), "fewer than two axes"),
        (lambda: Flatten(x, (T, E), into=K), "stand in brackets"),
        (lambda: Flatten(x, T, K, into=Axis("P")), "there is no axis K"),
        (lambda: Flatten(x, 1, 2, into=K), "1 is not an axis"),
        (lambda: Flatten(x, T, T, into=K), "same axis twice"),
        (lambda: Flatten(x, T, E, onto=K), "has no onto="),
        (lambda: Flatten(into=K), "Flatten of nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused(write, says):
    with pytest.raises(NotationError, match=says.replace("(", r"\(")):
        write()


def test_the_adjoint_of_flatten_and_of_its_reverse():
    class There(Forward):
        x = Input(N, T, E)
        y = Flatten(x, T, E, into=K)

    from derive.gradient.chain.chain import derive_chain

    (adjoint,) = derive_chain(There.definition).adjoints
    (contribution,) = adjoint.contributions
    assert isinstance(contribution.expression, Unflatten)
    assert "unflattened into T, E" in contribution.reason
    assert Flatten(x, T, E, into=K) != Flatten(x, E, T, into=K)
    assert Sum(Flatten(x, T, E, into=K), K).free_axes == {N}
