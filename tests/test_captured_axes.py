"""Forwards in which a label lies along an axis that is bound below it, shifts by a position, and
tensors that are met along swapped axes: values and gradients are those of torch.
"""

import pytest
import torch
from generating import assert_same_gradients, draw, forward_file, generated, labels

from codegen.building.programs import program_of
from codegen.targets.torch.check import arguments_of, dims_tried
from derive import derive, forward_from
from derive.gradient.chain.chain import derive_chain, outer_argument

AXES = 'V, E, L, M, Gate = *map(Axis, "VELM"), Axis("Gate", 2)\n\n\nclass'
PICK = "Piecewise((1, Eq(Position(M), Broadcast(Position(L), K) + Position(K))), (0, True))"


def own_file(folder, body):
    file = forward_file(folder, "Own", body)
    file.write_text(file.read_text().replace("class", AXES, 1))
    return file


def one_hot(label, size):
    return torch.nn.functional.one_hot(label, size).double()


def scatter_and_gather(e, v, dst):
    total = torch.zeros_like(v).index_add(0, dst, e) * v
    return total[dst] * e


def attention(scores, h, src, dst):
    """Softmax over the edges that arrive at a node, as in graph attention networks."""
    score = torch.exp(scores)
    total = torch.zeros(len(h), dtype=h.dtype).index_add(0, dst, score)
    return torch.zeros_like(h).index_add(0, dst, (score / total[dst])[:, None] * h[src])


def shifted(x, w):
    """Correlation, the input continued with zeros."""
    windows = torch.nn.functional.pad(x, (0, len(w) - 1)).unfold(0, len(w), 1)
    return windows @ w


def convolved(x, w):
    return shifted(x.flip(0), w).flip(0)


X, LAB = draw(5, 3), labels(5, 3)
FORWARDS = {
    "one-hot of a sum": (
        "x = Input(N, C)\n    lab = Label(N)\n    y = OneHot(lab, C)*Sum(x, N)",
        lambda x, lab: one_hot(lab, 3) * x.sum(0),
        (X, LAB),
    ),
    "picked sum": (
        "x = Input(N, C)\n    lab = Label(N)\n    y = Sum(OneHot(lab, C)*Sum(x, N), C)",
        lambda x, lab: x.sum(0)[lab],
        (X, LAB),
    ),
    "picked maximum": (
        "x = Input(N, C)\n    lab = Label(N)\n    y = Sum(OneHot(lab, C)*Max(x, N), C)",
        lambda x, lab: x.amax(0)[lab],
        (X, LAB),
    ),
    "scatter and gather": (
        "e = Input(E)\n    v = Input(V)\n    dst = Label(E)\n"
        "    total = v*Sum(OneHot(dst, V)*e, E)\n    y = e*Sum(OneHot(dst, V)*total, V)",
        scatter_and_gather,
        (draw(6), draw(4, seed=3), labels(6, 4)),
    ),
    "in the backward alone": (
        "x = Input(N, C)\n    b = Input(C)\n    lab = Label(C)\n"
        "    s = Sum(b*OneHot(lab, N), C)\n    y = x*s",
        lambda x, b, lab: x * torch.zeros(5, dtype=x.dtype).index_add(0, lab, b)[:, None],
        (X, draw(3, seed=3), labels(3, 5)),
    ),
    "graph attention": (
        "scores = Input(E)\n    h = Input(V, D)\n    src = Label(E)\n    dst = Label(E)\n"
        "    score = exp(scores)\n    total = Sum(OneHot(dst, V)*score, E)\n"
        "    alpha = score/Sum(OneHot(dst, V)*total, V)\n"
        "    y = Sum(OneHot(dst, V)*alpha*Sum(OneHot(src, V)*h, V), E)",
        attention,
        (draw(9), draw(4, 3, seed=3), labels(9, 4), labels(9, 4, seed=5)),
    ),
    "a label read at a label": (
        "table = Input(V, D)\n    lab = Label(N)\n    at = Label(M)\n"
        "    y = Sum(OneHot(at, N)*Sum(OneHot(lab, V)*table, V), N)**2",
        lambda table, lab, at: (table[lab[at]] ** 2).mT,
        (draw(6, 2), labels(5, 6), labels(4, 5)),
    ),
    "a sum over nothing but a one-hot": (
        "x = Input(N, C)\n    lab = Label(C)\n    y = x*Sum(OneHot(lab, N), N, C)",
        lambda x, lab: x * 3,
        (X, labels(3, 5)),
    ),
    "a sum of a sum along the same axis": (
        "x = Input(N, C)\n    y = Sum(x*Sum(x*Max(x, N), N), N)",
        lambda x: (x * (x * x.amax(0)).sum(0)).sum(0),
        (X,),
    ),
    "met along swapped axes": (
        "x = Input(N, C)\n    w = Input(N)\n    g = Sum(x*Rename(x, N, M), C)*w\n"
        "    y = g + 2*Rename(Rename(Rename(g, M, K), N, M), K, N)",
        lambda x, w: (g := x @ x.mT * w[:, None]) + 2 * g.mT,
        (X, draw(5, seed=3)),
    ),
    "added to an entry that is picked by number": (
        "x = Input(C)\n    u = Max(x, C)\n    v = u + OneHot(1, Gate)*x\n    y = v**2",
        lambda x: torch.stack([x.amax(0).expand_as(x), x.amax(0) + x]) ** 2,
        (draw(4),),
    ),
    "added to an entry of what is broadcast": (
        "x = Input(N, Gate)\n    b = Input(Gate)\n"
        "    u = Sum(x, N)*b + OneHot(1, Gate)*Sum(b, Gate)\n    y = tanh(x + u)",
        lambda x, b: torch.tanh(x + x.sum(0) * b + one_hot(torch.tensor(1), 2) * b.sum()),
        (draw(5, 2), draw(2, seed=3)),
    ),
    "windows": (
        f"x = Input(L)\n    w = Input(K)\n    pick = {PICK}\n"
        "    windows = Sum(Rename(x, L, M)*pick, M)\n    y = Sum(windows*w, K)",
        shifted,
        (draw(6), draw(3, seed=3)),
    ),
    "correlation in one line": (
        f"x = Input(L)\n    w = Input(K)\n"
        f"    y = Sum(Broadcast(Rename(x, L, M), L, K)*Broadcast(w, L, M)*{PICK}, M, K)",
        shifted,
        (draw(6), draw(3, seed=3)),
    ),
    "convolution by the difference of positions": (
        "x = Input(L)\n    w = Input(K)\n"
        "    at = Eq(Position(L) - Broadcast(Position(M), L), Position(K))\n"
        "    kernel = Sum(Piecewise((Broadcast(w, L, M), at), (0, True)), K)\n"
        "    y = Sum(kernel*Rename(x, L, M), M)",
        convolved,
        (draw(6), draw(3, seed=3)),
    ),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_values_and_gradients_are_those_of_torch(name, tmp_path):
    body, by_hand, arguments = FORWARDS[name]
    function, _, result = generated(own_file(tmp_path, f"    {body}\n"), tmp_path)
    assert_same_gradients(function, by_hand, *arguments)
    assert "(dst == dst)" not in result.text


def test_the_chain_brings_a_tensor_home_once(tmp_path):
    body, _, _ = FORWARDS["met along swapped axes"]
    chain = derive_chain(forward_from(own_file(tmp_path, f"    {body}\n")).definition)
    plain = [
        contribution
        for adjoint in chain.adjoints
        for contribution in adjoint.contributions
        if outer_argument(chain.definition.by_name[contribution.via]) is None
    ]
    assert plain and all(c.through_outer == c.expression for c in plain)


@pytest.mark.parametrize("nodes_first", [False, True])
def test_the_data_of_the_comparison_hide_nothing(nodes_first, tmp_path):
    """All sizes differ, and a label means several entries and one of them twice, also where there
    are more entries than labels.
    """
    lines = ["e = Input(E)", "v = Input(V)", "dst = Label(E)"]
    lines = [*sorted(lines, reverse=nodes_first), "y = Sum(OneHot(dst, V)*e, E)*v"]
    proved = derive(forward_from(own_file(tmp_path, "    " + "\n    ".join(lines) + "\n")))
    program = program_of(proved, tmp_path / "own.py", "")
    (dims,) = dims_tried(proved.definition)
    assert len(set(dims.values())) == 2
    generator = torch.Generator().manual_seed(0)
    drawn = arguments_of(proved.definition, program, torch.randn, generator, dims)
    entries = drawn["dst"].tolist()
    assert 1 < len(set(entries)) < len(entries)
