"""What a rank computes of an axis that is split, on threads in the place of processes: every axis
of every forward, forwards written for it, and what is refused.
"""

from functools import cache

import pytest
import sympy
import torch
from generating import forward_file

import codegen.driver.ranks
from codegen.commands.cli import main
from codegen.driver.ranks import generate_of_ranks, program_of_one
from codegen.program.arrays import Arrange, Reduce
from codegen.program.shards import Exchange, Overwritten
from codegen.program.steps import Assign
from codegen.program.values import Apply, Load, Plus
from codegen.sharding import sharded
from codegen.sharding.counting import axes_of, collectives_of, told
from codegen.sharding.overwriting import overwriting
from codegen.targets.torch import _ranks, shard_check
from codegen.targets.torch.parts import sharded_module
from codegen.targets.torch.shard_check import largest_difference_of_parts, load
from codegen.targets.torch.simulated import on_ranks, simulated
from derive import derive, forward_from
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.library import list_forwards
from derive.proof.proving.parts import OfParts, identities

TOLERANCE = 1e-12
NAMES = [forward.definition.snake for forward in list_forwards()]
SAMPLES = ["softmax_nll", "var", "group_norm", "info_nce", "embedding", "gru_cell"]
REFUSED = {
    *(("gru_cell", "P"), ("linear_kl", "E"), ("lstm_cell", "P"), ("mlp", "E"), ("rnn_cell", "J")),
}


@cache
def of_one_process(forward):
    return program_of_one(forward, derive(forward))


def compared(forward, refused=()) -> dict[str, float]:
    """The largest difference by axis."""
    program = of_one_process(forward)
    found = {}
    for axis in axes_of(program):
        if axis in refused:
            with pytest.raises(QuestionError):
                sharded_module(sharded(program, [axis]))
            continue
        split = sharded(program, [axis])
        text = sharded_module(split)
        found[axis] = largest_difference_of_parts(text, forward.definition, program, split)
    return found


@pytest.mark.parametrize(
    "name, axis",
    [("var", "C"), ("batch_norm_biased", "N"), ("layer_norm", "C"), ("softmax_nll", "C")],
)
def test_what_is_larger_than_a_packet(name, axis, monkeypatch):
    forward = forward_from(name)
    program = of_one_process(forward)
    split = sharded(program, [axis])
    text = sharded_module(split)
    monkeypatch.setattr(_ranks.Ranks, "ROOM", 0)
    given = text, forward.definition, program, split
    assert largest_difference_of_parts(*given) < TOLERANCE


@pytest.mark.parametrize(
    "name",
    [n if n in SAMPLES else pytest.param(n, marks=pytest.mark.thorough) for n in NAMES],
)
def test_every_axis_of_every_forward(name):
    refused = {axis for other, axis in REFUSED if other == name}
    found = compared(forward_from(name), refused)
    assert found and max(found.values()) <= TOLERANCE, found


OWN = {
    "Ranking": """
    x = Input(N, C)
    t = Input(N)
    m = Max(x, C)
    loss = Sum((m - t)**2 * Sum(x, C), N) / N
""",
    "Pairs": """
    x = Input(N, C)
    y = Input(N, C)
    M = Axis("M")
    d = Sum((Rename(x, N, M) - y)**2, C)
    loss = Sum(exp(-d), N, M) / N**2
""",
    "Twice": """
    x = Input(N, C)
    mean = Sum(x, N) / N
    diff = x - mean
    third = Sum(diff**3, N) / N
    y = diff * third + Sum(diff**2, N) / N
""",
    "Away": """
    x = Input(N, C)
    w = Input(C)
    far = x + 1000
    y = w * (far - Sum(far, N, C) / (N * C)) / (1 + Sum(far**2, C) / C)
""",
    "Ordered": """
    x = Input(N, C)
    y = Sum(Piecewise((x, Position(C) < 2), (x**2, True)), C)
""",
    "Unseen": """
    x = Input(N)
    w = Input(C, N)
    z = Input(N, C, default=1)
    M = Axis("M")
    s = Piecewise((Rename(x, N, M), Eq(Position(M), Position(N) + 1)), (0, True))
    y = tanh(Sum(s, N) + Sum(w, C, N) / (C * N)) * tanh(Sum(z**2 * x, N, C))
""",
    "Weighted": """
    x = Input(N, C)
    labels = Label(N)
    w = Input(C)
    shares = exp(x) / Sum(exp(x), C)
    loss = -Sum(Sum(OneHot(labels, C) * w, C) * log(Sum(OneHot(labels, C) * shares, C)), N)
""",
}


@pytest.mark.parametrize("name", OWN)
def test_forwards_of_ones_own(name, tmp_path):
    forward = forward_from(forward_file(tmp_path, name, OWN[name]))
    found = compared(forward)
    assert found and max(found.values()) <= TOLERANCE, found


def exchanged(name, *axes, kind="forward"):
    program = of_one_process(forward_from(name))
    found = sharded(program, axes)
    return told((found.plain or found).exchanges[kind], kind == "backward")


@pytest.mark.parametrize(
    "name, axis, forward, backward",
    [
        ("softmax_nll", "C", ["largest of N", "sum of N + N"], []),
        ("cross_entropy", "C", ["largest of N*S", "sum of N*S + N*S"], []),
        ("batch_norm", "N", ["mean and squares of C + C"], ["sum of C + C"]),
        ("masked_attention", "S", ["largest of B*T", "sum of B*T + B*T + B*T*F"], None),
        ("layer_norm", "C", ["mean and squares of N + N"], ["sum of N + N"]),
        ("linear", "K", ["sum of N*H"], []),
        ("group_norm", "C", [], []),
        (
            "cross_entropy_probabilities",
            "C",
            ["largest of N*S", "sum of N*S + N*S + N*S"],
            ["sum of N*S"],
        ),
    ],
)
def test_as_few_collectives_as_the_mathematics_needs(name, axis, forward, backward):
    assert list(exchanged(name, axis)) == forward
    if backward is not None:
        assert list(exchanged(name, axis, kind="backward")) == backward


def test_what_is_smoothed_and_weighted_needs_no_other_collective():
    program = of_one_process(forward_from("cross_entropy"))
    found = sharded(program, ["C"])
    assert [each.kind for each in found.exchanges["forward"]] == ["largest", "sum"]
    assert told(found.exchanges["backward"], again=True) == ()


def test_what_is_no_logarithm_of_shares_is_not_taken_apart(tmp_path):
    """A mean that is subtracted after the sum would cancel."""
    text = """
    x = Input(N, C)
    w = Input(C)
    mean = Sum(x, C) / C
    far = x - mean
    y = Sum(w * far, C)
"""
    forward = forward_from(forward_file(tmp_path, "Apart", text))
    program = of_one_process(forward)
    assert "logarithm" not in sharded(program, ["C"]).rewritten


def test_all_but_the_first_record_nothing():
    program = of_one_process(forward_from("softmax_nll"))
    text = sharded_module(sharded(program, ["C"]))
    module = load(text, "recorded")

    def on_one(groups, place):
        x = torch.randn(3, 4, requires_grad=True)
        forward = module.softmax_nll_shard_c_forward(x, torch.tensor([0, 1, 7]), *groups)
        atoms = module.softmax_nll_shard_c_atoms(x, torch.tensor([0, 1, 7]), *groups)
        return any(v.requires_grad for v in (*forward, *atoms))

    with simulated():
        assert on_ranks([2], on_one) == [False, False]


def test_the_report_has_them():
    program = of_one_process(forward_from("rnn_cell"))
    rows = {row.axis: row for row in collectives_of(program)}
    assert rows["K"].forward == ("sum of N*H",) and not rows["K"].refused
    assert "is another name of" in rows["J"].refused and not rows["J"].forward


@pytest.mark.parametrize("name", identities)
def test_identities_of_parts_are_proved(name):
    assert identities[name].proved


def test_a_wrong_identity_is_not_proved():
    n, s = sympy.symbols("n s", integer=True, nonnegative=True)
    i, f = sympy.Symbol("i", integer=True), sympy.Function("f")
    one_missing = sympy.Sum(f(i), (i, 0, s - 1)) + sympy.Sum(f(i), (i, s + 1, s + n - 1))
    difference = one_missing - sympy.Sum(f(i), (i, 0, s + n - 1))
    assert not OfParts("", lambda: (difference,)).proved


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["softmax_nll", "--shard", "Q"], "no argument along an axis 'Q'"),
        (["softmax_nll", "--shard", "C", "--shard", "C"], "named twice"),
        (["rnn_cell", "--shard", "J"], "J of rnn_cell is another name of H"),
        (["lstm_cell", "--shard", "P"], "split H"),
        (["softmax_nll", "--shard", "C", "--target", "cpp"], "leave --target out"),
        (["--shard", "C"], "which forward is split"),
        (["group_norm", *["--shard", "N", "--shard", "C", "--shard", "S"]], "name at most 2"),
        (["mlp", "--shard", "E"], "cannot know the length of its part of E"),
    ],
)
def test_what_cannot_be_split_is_refused(arguments, words, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_module_is_written_checked_and_written_anew(tmp_path, capsys):
    out = tmp_path / "out"
    command = ["softmax_nll", "--out", str(out)]
    assert main([*command, "--shard", "N", "--shard", "C"]) == 0
    file = out / "softmax_nll_shard_n_c.py"
    text = file.read_text()
    assert "group_n=None, group_c=None" in text and "forward: 3 collectives" in text
    assert main([*command, "--shard", "N", "--shard", "C", "--check"]) == 0
    file.write_text(text.replace("largest", "smallest"))
    assert main([*command, "--shard", "N", "--shard", "C", "--check"]) == 1
    assert main(command) == 0  # what stands there is written with the others
    assert file.read_text() == text


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("over_n.sum((dy * xhat).sum(0), dy.sum(0))", "((dy * xhat).sum(0), dy.sum(0))"),
        ("(over_n.size - 1)", "(N - 1)"),
        ("diff = diff.add_(diff_shift)", "diff = diff"),
    ],
)
def test_a_wrong_module_is_not_written(right, wrong, tmp_path, monkeypatch, capsys):
    def broken(split):
        text = sharded_module(split)
        assert right in text, text
        return text.replace(right, wrong)

    monkeypatch.setattr(codegen.driver.ranks, "sharded_module", broken)
    with pytest.raises(UnprovedError, match="nothing was written"):
        generate_of_ranks(forward_from("batch_norm"), ["N"])


def test_what_rests_on_an_identity_that_is_not_proved_is_not_written(monkeypatch):
    from codegen.sharding import proofs

    monkeypatch.setattr(proofs, "_proved", lambda name: name != "sum")
    with pytest.raises(UnprovedError, match="a sum is the sum"):
        generate_of_ranks(forward_from("softmax_nll"), ["N"])


def test_the_shares_have_an_empty_part():
    assert any(0 in shares for shares in shard_check.SHARES)
    assert [len(shares) for shares in shard_check.SHARES] == [1, 2, 3, 4]
    assert Exchange  # the one record of what ranks tell each other


@pytest.mark.parametrize("axis", ["C", "N"])
def test_what_is_read_again_is_not_written_over(axis, tmp_path):
    """A view of a value, a value that is returned, one that is read further on, an argument."""
    text = """
    x = Input(N, C)
    M = Axis("M")
    twice = 2 * x
    flat = Flatten(twice, N, C, into=M)
    e = exp(twice)
    s = tanh(e)
    late = e * Sum(e, N, C)
    y = late + s + Sum(flat**2, M) * exp(x)
"""
    forward = forward_from(forward_file(tmp_path, "Views", text))
    program = of_one_process(forward)
    split = sharded(program, [axis])
    text = sharded_module(split)
    given = text, forward.definition, program, split
    assert largest_difference_of_parts(*given) <= TOLERANCE


def test_what_nothing_reads_any_more_is_written_over():
    program = of_one_process(forward_from("softmax_nll"))
    text = sharded_module(sharded(program, ["C"]))
    assert "counts = norm_logits.exp_()" in text and "probs = counts.div_(counts_sum)" in text


def test_what_has_a_view_is_not_written_over():
    program = of_one_process(forward_from("softmax_nll"))
    dims = program.forward.parameters[0].layout
    x, a, v = Load("logits", dims=dims), Load("a", dims=dims), Load("v", dims=dims[::-1])
    made = Assign("a", Plus(((x, False), (x, False)), dims=dims))
    view = Assign("v", Arrange(a, (1, 0), dims=dims[::-1]))
    over = Assign("b", Apply("exp", a, dims=dims))
    last = Assign("loss", Reduce("sum", v, (0, 1), False))

    def written_over(*steps):
        found = overwriting(steps, program.forward)
        return [s.name for s in found if isinstance(s.value, Overwritten)]

    assert written_over(made, over) == ["b"]
    assert written_over(made, view, over, last) == []
