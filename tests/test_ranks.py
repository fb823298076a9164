"""Modules whose axes are split, on the processes of one machine, beside one process."""

import json
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import warm

from codegen.chunking import BOTH
from codegen.driver.ranks import generate_of_ranks, program_of_one
from codegen.driver.writing import with_runtime
from codegen.sharding import sharded
from codegen.targets.torch.parts import sharded_module
from derive import derive, forward_from
from derive.running.writing import write_all

HERE = Path(__file__).parent
ROOT = HERE.parent
TOLERANCE = 1e-12
LONGEST = 120  # seconds that a test of processes may take

# By axis; all axes of all forwards are compared on threads (test_sharding.py). The suite takes
# those that need different collectives, `make test-all` what else people split.
SPLIT = [
    *(("softmax_nll", "C"), ("softmax_nll", "N"), ("batch_norm", "N"), ("linear", "K")),
    *(("linear", "N"), ("group_norm", "C"), ("masked_attention", "S"), ("embedding", "V")),
]
MORE = [
    *(("cross_entropy", "C"), ("cross_entropy", "N"), ("info_nce", "N"), ("layer_norm", "C")),
    *((name, "C") for name in ("softmax", "log_softmax", "masked_softmax", "rms_norm", "nll")),
    *((f"cross_entropy_{name}", "C") for name in ("z_loss", "softcap", "probabilities")),
    *(("scaled_dot_product_attention", "S"), ("biased_attention", "S"), ("causal_attention", "S")),
    *(("batch_norm_biased", "N"), ("linear", "H"), ("mlp", "N")),
]


@cache
def of_one_process(name: str):
    forward = forward_from(name)
    return program_of_one(forward, derive(forward))


def run(folder: Path, count: int, task: str, wait: int = LONGEST) -> list[dict]:
    """A task on so many processes, and what each found."""
    processes = [
        warm.Popen(
            [sys.executable, str(HERE / "of_ranks.py"), str(folder), str(rank), str(count), task],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [process.communicate(timeout=wait)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert not any(process.returncode for process in processes), "\n".join(said)
    return [json.loads((folder / f"found_{rank}.json").read_text()) for rank in range(count)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The modules that single tests are about."""
    folder = tmp_path_factory.mktemp("texts")
    for name, *axes in (
        ("softmax_nll", "C"),
        ("softmax_nll", "N"),
        ("softmax_nll", "N", "C"),
        ("batch_norm", "N"),
        ("linear", "N"),
        ("cross_entropy", "C"),
    ):
        found = generate_of_ranks(forward_from(name), axes)
        write_all(with_runtime({folder / found.file: found.text}), "")
    for axes in (["C", "N"],):
        found = generate_of_ranks(forward_from("softmax_nll"), axes, way=BOTH)
        write_all(with_runtime({folder / found.file: found.text}), "")
    return folder


@pytest.mark.parametrize(
    "pairs", [SPLIT, pytest.param(MORE, marks=pytest.mark.slow)], ids=["sample", "more"]
)
def test_every_rank_has_its_part_of_what_one_process_computes(tmp_path, pairs):
    for name, axis in pairs:
        program = of_one_process(name)
        found = sharded(program, [axis])
        text = sharded_module(found)
        write_all(with_runtime({tmp_path / f"{found.program.name}.py": text}), "")
        stem = tmp_path / f"{found.program.name}.pkl"
        stem.write_bytes(pickle.dumps((name, program, found)))
    for found in run(tmp_path, 4, "gallery"):
        assert len(found) == len(pairs)
        assert max(found.values()) <= TOLERANCE, found


def test_parts_in_chunks(texts):
    first, second = run(texts, 2, "in_chunks")
    for found in (first, second):
        assert max(found["apart"], found["after"]) <= TOLERANCE
        assert "out of bounds" in found["label"]
        assert "the ranks disagree on chunk (rank 0: 2; rank 1: 3)" in found["chunk"]
        assert "the ranks disagree on whether a gradient is needed" in found["wanted"]
        assert "no second derivatives in chunks of ranks" in found["twice"]
    assert second["shape"].startswith("ValueError: softmax_nll_shard_c_chunk_n: logits must be")
    assert "another rank failed: rank 1: ValueError" in first["shape"]


def test_one_rank_raises_and_all_say_why(texts):
    found = run(texts, 3, "mistakes")
    *others, wrong = found
    assert wrong["label"].startswith("IndexError: softmax_nll_shard_n: labels holds")
    assert wrong["shape"].startswith("ValueError: softmax_nll_shard_c: logits must have")
    assert wrong["kind"].startswith("TypeError: softmax_nll_shard_c: logits must be a tensor")
    for other in others:
        for what in ("label", "shape", "kind"):
            assert other[what].startswith("RuntimeError"), other
            assert f"another rank failed: rank 2: {wrong[what]}" in other[what]
    for each in found:
        assert each["everywhere"].startswith("IndexError: softmax_nll_shard_c: labels holds")
        for what in ("rows", "format", "function"):
            assert "the ranks disagree on" in each[what], each[what]
        assert each["after"] == ""


# What is said where one rank of three is other than the rest: the name of what differs, or what
# that rank itself raises.
OTHER = {
    "labels": "labels (rank 0, 1: torch.int64 of shape (6,) from ",
    "labels in another order": "labels (",
    "labels out of range": "labels (",
    "labels below 0": "labels (",
    "labels of a kind": "TypeError: softmax_nll_shard_c: labels must have an integer dtype",
    "labels left out": "TypeError: softmax_nll_shard_c: labels must be a tensor",
    "rows of labels": "IndexError: softmax_nll_shard_n: labels holds",
    "gain": "gain (",
    "bias NaN": "bias (",
    "gain of a shape": "ValueError: batch_norm_shard_n: gain must have shape",
    "eps": "eps (rank 0, 1: 1e-05; rank 2: 0.0001)",
    "eps below 0": "ValueError: batch_norm_shard_n: eps must be above 0",
    "eps no number": "TypeError: batch_norm_shard_n: eps must be a number",
    "format": "dtype (rank 0, 1: torch.float64; rank 2: torch.float32)",
    "gain wants": "gain (rank 0, 1: torch.float64 of shape (8,) from 1.0 to 1.0, digest",
    "x wants": "whether a gradient is needed (rank 0, 1: False; rank 2: True)",
    "no_grad": "whether a gradient is needed (rank 0, 1: True; rank 2: False)",
    "weight": "weight (",
    "weight of a shape": "ValueError: linear_shard_n: ",
    "weight wants": "whether a gradient is needed (rank 0, 1: False; rank 2: True)",
    "bias passed": "bias (rank 0, 1: None; rank 2: torch.float64",
    "weight passed": "weight (rank 0, 1: False; rank 2: True)",
    "smoothing": "label_smoothing (rank 0, 1: 0.2; rank 2: 0.1)",
    "ignored": "ignore_index (rank 0, 1: 2; rank 2: 1)",
    "dimensions": "S (rank 0, 1: (2, 3); rank 2: (3, 2))",
}


def test_what_is_wrong_on_one_rank_alone_is_raised_on_all_and_the_group_is_used_again(texts):
    for rank, found in enumerate(run(texts, 3, "disagree")):
        assert found["said"].keys() == OTHER.keys()
        for name, words in OTHER.items():
            said = found["said"][name]
            if "Error: " not in words:
                assert "the ranks disagree on " in said, (name, said)
                assert said.startswith("ValueError: ") and words in said, (name, said)
            elif rank == 2:
                assert said.startswith(words), (name, said)
            else:
                assert said.startswith("RuntimeError: ") and f"rank 2: {words}" in said, said
        assert max(found["fine"].values()) < TOLERANCE, found["fine"]


def test_two_groups_are_told_of_what_one_rank_raises(texts):
    found = run(texts, 4, "crossed")
    for each in found:
        assert each.keys() == found[0].keys() and all(each.values()), each
    assert "labels (" in found[0]["one: label"] and "labels (" in found[1]["one: label"]
    assert all("rank 0: " in found[rank]["one: label"] for rank in (2, 3))
    assert all("IndexError" in each["a row: label"] for each in found)


def test_a_tensor_that_one_rank_has_placed_otherwise_is_told_of(texts):
    for found in run(texts, 2, "misplaced"):
        assert "a DTensor has placements (Replicate(),), expected [Shard(dim=1)]" in found["placed"]


def test_a_rank_that_has_died_is_torchs_error(texts):
    first, second, _ = run(texts, 3, "dies")
    for found in (first, second):
        assert found["told"].startswith(("RuntimeError", "DistBackendError")) and found["in time"]


def test_second_derivatives_are_refused(texts):
    for found in run(texts, 2, "twice"):
        assert found["twice"].startswith("NotImplementedError: softmax_nll_shard_c has no se")


def test_as_few_collectives_as_there_are_levels(texts):
    for found in run(texts, 2, "counted"):
        assert found["softmax_nll_shard_c few"] == ["all_gather", "all_reduce", "backward"]
        assert found["batch_norm_shard_n few"] == ["all_gather", "backward", "all_reduce"]


@pytest.mark.parametrize(
    "task, count",
    [
        ("of_torch", 2),
        ("two_groups", 4),
        pytest.param("compiled", 2, marks=pytest.mark.slow),  # torch.compile takes 18 s
    ],
)
def test_beside_what_torch_has_for_many_ranks(texts, task, count):
    for found in run(texts, count, task):
        assert max(found.values()) <= TOLERANCE, found
