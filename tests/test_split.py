"""Axes that are split, sizes that are arguments, and axes of a length that never changes."""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, generated

from derive import Axis, Forward, Input, OneHot, Size, Sum, Unflatten, forward_from
from derive.language.errors import NotationError
from derive.language.notation.definition import Definition
from derive.language.notation.made_axes import axis_order, known_sizes
from derive.proof.proving.small_batch import SmallBatch

HEAD = (
    HEAD
    + "from derive import Size, Unflatten\n"
    + 'G, S, P, M = (Axis(name) for name in "GSPM")\n'
    + 'Gate, Part = Axis("Gate", 3), Axis("Part", 2)\n'
)

N, C, H, G, K, P = (Axis(name) for name in "NCHGKP")
GATE = Axis("Gate", 3)


def forward_of(folder, text: str):
    """A file whose last forward has the class body ``text``; classes before it as they are."""
    *before, body = text.split("---\n")
    file = folder / "split.py"
    lines = "".join(f"    {line.strip()}\n" for line in body.strip().split("\n"))
    file.write_text(f"{HEAD}\n\n{''.join(before)}\n\nclass Split(Forward):\n{lines}")
    return f"{file}:Split"


def assert_agrees(folder, text, reference, *inputs, **sizes):
    function, module, result = generated(forward_of(folder, text), folder)

    def with_sizes(*tensors):
        return function(*tensors, **sizes)

    assert_same_gradients(with_sizes, reference, *inputs)
    return function, module, result


GROUPS = """
x = Input(N, C)
groups = Size(G)
y = Sum(tanh(Unflatten(x, C, into=(G, K))) ** 2, K)
"""


def by_groups(x):
    return (x.unflatten(1, (2, 3)).tanh() ** 2).sum(2)


def test_the_number_of_parts_is_an_argument(tmp_path):
    function, _, result = assert_agrees(tmp_path, GROUPS, by_groups, draw(4, 6), groups=2)
    assert "def split(x: Tensor, groups: int) -> Tensor" in result.text
    assert function(draw(4, 6), 3).shape == (4, 3)


@pytest.mark.parametrize("groups", [4, 0, -2])
def test_what_does_not_divide_is_refused(tmp_path, groups):
    function, *_ = generated(forward_of(tmp_path, GROUPS), tmp_path)
    with pytest.raises(ValueError, match=f"C = 6 is not a multiple of groups = {groups}"):
        function(draw(4, 6), groups)


def test_the_number_of_parts_follows_from_the_other_axes(tmp_path):
    text = """
    x = Input(N, P)
    w = Input(H)
    y = Sum(Unflatten(x, P, into=(M, H)) * w, H)
    """

    def by_hand(x, w):
        return x.unflatten(1, (-1, 5)) @ w

    function, _, _ = assert_agrees(tmp_path, text, by_hand, draw(4, 15), draw(5))
    with pytest.raises(ValueError, match="P = 14 is not a multiple of H = 5"):
        function(draw(4, 14), draw(5))


def test_an_axis_is_split_and_put_together_in_another_order(tmp_path):
    """The shuffle of channels between groups: Zhang et al. (2018), ShuffleNet."""
    text = """
    x = Input(N, C, S)
    groups = Size(G)
    y = tanh(Flatten(Unflatten(x, C, into=(G, K)), K, G, into=C))
    """
    assert_agrees(
        tmp_path, text, lambda x: F.channel_shuffle(x[..., None], 2)[..., 0].tanh(), draw(3, 6, 4),
        groups=2,
    )  # fmt: skip


BLOCK = """
class Grouped(Forward):
    x = Input(N, C)
    groups = Size(G)
    parts = Unflatten(x, C, into=(G, K))
    mean = Sum(parts, K) / K
    y = Flatten(parts - mean, G, K, into=C)
---
"""


def centred(x, groups):
    parts = x.unflatten(1, (groups, -1))
    return (parts - parts.mean(2, keepdim=True)).flatten(1)


def test_a_block_takes_an_axis_for_its_size(tmp_path):
    text = (
        BLOCK
        + """
    x = Input(N, C)
    w = Input(C, H)
    groups = Size(G)
    a = Grouped(x, groups)
    b = tanh(Sum(a * w, C))
    y = Grouped(b, Part)
    """
    )

    def by_hand(x, w):
        return centred(torch.tanh(centred(x, 3) @ w), 2)

    _, _, result = assert_agrees(tmp_path, text, by_hand, draw(4, 6), draw(6, 4), groups=3)
    assert {"K", "K_y"} <= {axis.name for axis in result.proved.definition.axes}


def test_a_block_without_its_size_is_refused(tmp_path):
    with pytest.raises(NotationError, match="lacks groups"):
        forward_from(forward_of(tmp_path, BLOCK + "x = Input(N, C)\ny = Grouped(x)"))
    with pytest.raises(NotationError, match="groups is the size of an axis, got 2"):
        forward_from(forward_of(tmp_path, BLOCK + "x = Input(N, C)\ny = Grouped(x, 2)"))


CELL = """
x = Input(N, P)
h = Input(N, H)
parts = Unflatten(x, P, into=(Gate, H))
a = Sum(OneHot(0, Gate) * parts, Gate)
b = Sum(OneHot(2, Gate) * parts, Gate) * h
y = OneHot(0, Part) * tanh(a) * b + OneHot(1, Part) * h**2
"""


def cell(x, h):
    a, _, b = x.chunk(3, 1)
    return torch.stack([a.tanh() * b * h, h**2])


def test_entries_of_a_fixed_axis_are_picked_and_results_lie_side_by_side(tmp_path):
    function, _, result = assert_agrees(tmp_path, CELL, cell, draw(4, 15), draw(4, 5))
    first, second = function(draw(4, 15), draw(4, 5))
    assert first.shape == second.shape == (4, 5)
    assert "one_hot" not in result.text.partition("def split_backward")[0], "a number is an index"
    with pytest.raises(ValueError, match="P is not Gate"):
        function(draw(4, 20), draw(4, 5))


def test_an_input_along_a_fixed_axis_has_its_length(tmp_path):
    text = "x = Input(N, Gate)\ny = tanh(Sum(OneHot(1, Gate) * x, Gate))"
    function, _, _ = assert_agrees(tmp_path, text, lambda x: x[:, 1].tanh(), draw(4, 3))
    with pytest.raises(ValueError, match=r"x must be \(N, 3\), got"):
        function(draw(4, 4))


def test_a_one_hot_of_a_number_that_is_no_index(tmp_path):
    text = "x = Input(N, Gate)\ny = exp(x * OneHot(1, Gate))"

    def by_hand(x):
        return torch.exp(x * torch.tensor([0.0, 1, 0], dtype=x.dtype))

    assert_agrees(tmp_path, text, by_hand, draw(4, 3))


def test_axes_of_one_name_and_two_lengths_are_two():
    assert Axis("Gate", 3) == GATE and hash(Axis("Gate", 3)) == hash(GATE)
    assert Axis("Gate", 4) != GATE != Axis("Gate")
    assert OneHot(0, Axis("Gate", 4)) != OneHot(0, GATE)
    assert Input(GATE).named("x") != Input(Axis("Gate", 4)).named("x")


def test_every_place_along_a_fixed_axis_is_proved(tmp_path):
    """The notation names them one by one, so none stands for the others."""
    definition: Definition = forward_from(forward_of(tmp_path, CELL)).definition
    batch = SmallBatch(definition, dict.fromkeys(definition.independent_axes, 2))
    x = definition.inputs[0]
    places = batch.representatives(x.home, definition.by_name["y"].expression)
    assert {place for _, place in places} == {0, 2, 4}, "the first unit of each gate"


def test_what_follows_from_what():
    flattened = {C: (G, K), P: (GATE, H)}
    assert known_sizes([C, G, GATE, P], flattened) == {K: (C, G), H: (P, GATE)}
    assert known_sizes([G, K], flattened) == {C: (G, K)}
    assert known_sizes([C], flattened) == {}


def test_the_places_of_parts_among_the_dimensions():
    x, h = Input(N, P).named("x"), Input(N, H).named("h")
    assert axis_order([x], {}, {P: (GATE, H)}) == [N, P, GATE, H]
    assert axis_order([h, x], {}, {P: (GATE, H)}) == [N, GATE, H, P]
    assert axis_order([x], {}, {}, [GATE]) == [GATE, N, P]


REFUSED = {
    "size of G is unknown": "x = Input(N, C)\ny = Sum(Unflatten(x, C, into=(G, K)), K)",
    "size of C is known already": "x = Input(N, C)\nn = Size(C)\ny = x * n",
    "always has 3 entries": "x = Input(N, C)\nn = Size(Gate)\ny = x * n",
    "need not have that entry": "x = Input(N, C)\ny = Sum(OneHot(1, C) * x, C)",
    "has the entries 0 .. 2": "x = Input(N, Gate)\ny = Sum(OneHot(3, Gate) * x, Gate)",
    "no axis H in it": "x = Input(N, C)\ny = Unflatten(x, H, into=(G, K))",
    "N is an axis of x already": "x = Input(N, C)\ny = Unflatten(x, C, into=(N, K))",
    "does not name the new axes": "x = Input(N, C)\ny = Unflatten(x, C)",
    "not one axis that becomes several": "x = Input(N, C)\ny = Unflatten(x, N, C, into=(G, K))",
    "takes the same axis twice": "x = Input(N, C)\ny = Unflatten(x, C, into=(G, G))",
    "is a label": "x = Input(N, C)\ni = Label(N)\ny = Unflatten(i, N, into=(G, K)) * x",
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_meant_is_refused(tmp_path, problem):
    with pytest.raises(NotationError, match=problem) as error:
        forward_from(forward_of(tmp_path, REFUSED[problem]))
    assert error.value.remedy


def test_a_length_is_a_whole_number():
    for length in (0, -1, 2.0, True):
        with pytest.raises(NotationError):
            Axis("Gate", length)


def test_the_class_body_knows_a_size_by_its_name():
    class Counted(Forward):
        x = Input(N, C)
        groups = Size(G)
        y = Sum(Unflatten(x, C, into=(G, K)), G) / groups

    assert Counted.definition.size_arguments == (("groups", G),)
    assert Counted.definition.sizes_from({N: 2, C: 6, G: 3})[K] == 2
