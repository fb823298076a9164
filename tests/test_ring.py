"""Parts of an axis that go round the ranks that have the parts of another: on processes, beside
autograd of the whole; and what is refused.
"""

import pickle

import pytest
from generating import forward_file
from test_ranks import TOLERANCE, run

from codegen.chunking import RING, ChunkedAxis
from codegen.commands.cli import main
from codegen.driver.chunks import parts_of
from codegen.driver.ranks import generate_of_ranks
from codegen.driver.writing import with_runtime
from codegen.sharding import Sharded
from codegen.targets.lean.chunked import chunked_text
from codegen.targets.lean.target import whole_program
from derive import derive, forward_from
from derive.language.errors import QuestionError
from derive.running.writing import write_all

AXES = "".join(f'    {name} = Axis("{name}")\n' for name in "TSEF")
OWN = {
    # Along both axes, positions of both, and what is larger than a part.
    "Capped": """
    q = Input(T, E)
    k = Input(S, E)
    v = Input(S, F)
    bias = Input(T, S)
    s = 5 * tanh(Sum(q * k, E) / sqrt(E)) + bias
    counts = Piecewise((exp(s), Position(S) <= Position(T)), (0, True))
    y = Sum(counts / Sum(counts, S) * v, S)
""",
    # At home before and behind the ring, along either axis; a gradient of neither.
    "Normed": """
    q = Input(T, E)
    k = Input(S, E)
    v = Input(S, F)
    g = Input(E)
    n = g * k / sqrt(Sum(k**2, E) / E + 1)
    counts = exp(Sum(q * n, E))
    y = Sum(counts / Sum(counts, S) * tanh(v), S) * Sum(tanh(q), E)
""",
    # The first of the largest, which ranks meet in different orders.
    "Late": """
    x = Input(T, E)
    z = Input(S, E)
    best = Max(Sum(x * z, E), S)
    y = Sum(exp(best), T)
""",
    # Maxima and sums that travel, labels of this rank that count in the other axis, one number.
    "BothWays": """
    x = Input(T, E)
    z = Input(S, E)
    labels = Label(T)
    s = Sum(x * z, E)
    rows = s - log(Sum(exp(s), S))
    columns = s - log(Sum(exp(s), T))
    loss = -Sum(OneHot(labels, S) * rows, T, S) / T - Sum(columns * rows, T, S) / (T * S)
""",
}


def own(folder, name):
    return forward_from(forward_file(folder, name, AXES + OWN[name]))


def test_every_rank_meets_all_parts(tmp_path):
    """On one to four ranks, with parts that differ and empty ones along both axes, in chunks."""
    for forward in (forward_from("masked_attention"), *(own(tmp_path, name) for name in OWN)):
        program = whole_program(forward, derive(forward))
        name, parts = parts_of(forward, program, ChunkedAxis("S", ("T",), True))
        page = parts[""].page
        assert parts[""].made.plain is None
        text = chunked_text(page)
        assert not name.startswith("normed") or "    wide_k = k.to(wide)\n" in text
        write_all(with_runtime({tmp_path / f"{name}.py": text}), "")
        found = Sharded(page.chunked.program, page.chunked.groups, {}, frozenset())
        place = f"{forward.definition.place.file}:{forward.__name__}"
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps((place, program, found)))
    for found in run(tmp_path, 4, "gallery"):
        assert len(found) == 1 + len(OWN)
        assert max(found.values()) <= TOLERANCE, found
    for rank, found in enumerate(run(tmp_path, 2, "in_a_ring")):
        assert found["rows"] == [rank == 0, False, False, False]
        assert "index 104 is out of bounds" in found["label"], found
        assert "the ranks disagree on bias" in found["whole"], found
        assert "z must be (S, E), got (4, 7)" in found["shape"], found
        assert "no second derivatives in chunks of ranks" in found["twice"], found
        assert found["after"] <= TOLERANCE


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["linear", "--ring", "H"], "name that one with --shard"),
        (["linear", "--shard", "N", "--ring", "N"], "named twice"),
        (["softmax_nll", "--shard", "N", "--ring", "C"], "nothing goes round"),
        (["linear", "--shard", "N", "--ring", "H", "--ring", "K"], "one in a ring"),
        (["info_nce", "--shard", "N", "--ring", "M"], "no argument along an axis 'M'"),
    ],
)
def test_what_does_not_go_round_is_refused(arguments, words, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_what_needs_several_visits_at_once_is_refused(tmp_path):
    text = f"""{AXES}
    x = Input(T, E)
    z = Input(S, E)
    y = Max(Sum(x * z, E), T)
"""
    with pytest.raises(QuestionError, match="needs rows of several visits at once"):
        generate_of_ranks(forward_from(forward_file(tmp_path, "First", text)), ["T", "S"], way=RING)
