"""The table of quality: what it counts is right, and the page in the repository is up to date."""

import re
from pathlib import Path

import pytest
from forwards import write
from generating import forward_file

import codegen
from codegen.commands.cli import gradform
from codegen.driver.lean import generate
from codegen.driver.qualities import emitted
from codegen.files.quality import Moves
from codegen.report.moves import AGAIN, Moved, hash_of, is_outdated, moves_in, put_moves
from codegen.report.page import FILE, measured_in, report
from derive import forward_from
from derive.language.notation.library import list_forwards

ROOT = Path(codegen.__file__).parents[1]

PRODUCT_OF_THREE = """
    x = Input(N, C)
    gain = Input(C)
    z = Input(N, C)
    y = gain * x * z
"""
EVERY_PAIR = """
    x = Input(N, C)
    M = Axis("M")
    y = Sum(Sum(abs(x - Rename(x, N, M)), C), M)
"""


def quality(forward):
    return emitted(generate(forward_from(forward))).quality


def test_a_pointwise_function_reads_and_writes_once():
    tanh = quality("tanh")
    assert tanh.saved == ("y (*N,)",) and tanh.reductions == ()
    assert tanh.forward.kernel == tanh.forward.lines == Moves(1, 1)
    assert tanh.backward.kernel == Moves(2, 1)  # dy and y, to dx


def test_an_operation_for_every_sign(tmp_path):
    """dgain = (dy*x*z).sum(0) and two products of three."""
    product = quality(forward_file(tmp_path, "Product", PRODUCT_OF_THREE))
    assert product.full == "(N, C)"
    assert product.forward.kernel == Moves(2, 1)
    assert product.forward.lines == Moves(1 + 2, 2)
    assert product.backward.kernel == Moves(3, 2)


def test_a_saved_argument_is_handed_on_and_not_written():
    norm = quality("batch_norm")
    statistics = ("mean (1, C)", "sum_diff (1, C)", "inv_std (1, C)")
    assert norm.saved == ("x (N, C)", "gain (C,)", "bias (C,)", *statistics)
    assert norm.reductions == ("2 sum[N]",)
    assert norm.forward.kernel == Moves(1, 1)  # x, to y: xhat is computed again
    assert norm.backward.kernel == Moves(2, 1)
    assert norm.backward.loops == (Moves(4, 1),)  # in each of two passes
    assert norm.backward.lines == Moves(11, 7)


def test_what_is_indexed_is_read_where_it_is_picked():
    embedding = quality("embedding")
    assert embedding.full == "(*N, E)"
    assert embedding.forward.lines == Moves(1, 1)


def test_what_is_larger_than_full_size_is_named(tmp_path):
    assert quality("batch_norm").backward.larger == ()
    pairs = quality(forward_file(tmp_path, "Pairs", EVERY_PAIR))
    assert "(N, M, C)" in pairs.forward.larger


def test_an_axis_that_others_were_flattened_into_counts_as_those():
    network = quality("mlp")
    assert network.full == "(K, H)"  # K = T*E


def test_single_precision_is_measured_beside_autograd(tmp_path):
    norm = quality(write(tmp_path, "LayerNorm"))
    assert 1e-9 < norm.rounding.ours < 2e-5
    assert 1e-9 < norm.rounding.autograd < 2e-5


def test_the_errors_in_it_are_those_that_are_allowed():
    rows = measured_in((ROOT / "generated" / FILE).read_text()).values()
    assert rows
    for row in rows:
        assert float(row.double) <= 1e-10, row
        assert float(row.single) <= max(2e-5, 4 * float(row.autograd)), row


@pytest.fixture(scope="module")
def tanh():
    return emitted(generate(forward_from("tanh")))


def test_a_measurement_stays_with_the_text_that_was_measured(tanh):
    page = report([tanh], None)
    (row,) = measured_in(page).values()
    elsewhere = page.replace(f"| {row.seconds} |", "| 12.34 |")
    assert elsewhere != page
    assert report([tanh], elsewhere) == elsewhere
    of_another_text = elsewhere.replace(row.module, "0" * len(row.module))
    assert report([tanh], of_another_text) == page


def test_a_measurement_that_is_none_is_out_of_date(tanh):
    page = report([tanh], None)
    (row,) = measured_in(page).values()
    assert report([tanh], page.replace(f"| {row.seconds} |", "| fast |")) == page


def test_what_kernels_move_was_counted_in_those_of_today():
    kernels = ROOT / "generated" / "triton"
    names = {file.stem for file in kernels.glob("[a-z]*.py")}
    names -= {f.definition.snake for f in list_forwards() if f.definition.chunked}
    assert names == moves_in(kernels).keys()
    assert not [name for name in names if is_outdated(kernels, name)], "run make moves"


def test_what_other_kernels_moved_is_said(tanh, tmp_path):
    for file in ("_functions.py", "_rules.py"):
        (tmp_path / file).write_text("")
    kernels, calls = tmp_path / "tanh.py", "\n\n\ndef tanh_forward():\n    forward()\n"
    long = "@forward.long\ndef forward_in_chunks"
    kernels.write_text(f"@kernel\n\n\n{long}{calls}")
    row = Moved("forward", 16384, 4.0, 4, 4.0, 4, 32, 0, "why")
    put_moves(tmp_path, {"tanh": (hash_of(tmp_path, "tanh"), [row])})
    told = "| tanh | forward | 16384 | 4.0 | 4 | 4.0 | 4 | 32 | 0 |"
    assert f"{told} why |" in report([tanh], None, tmp_path)
    kernels.write_text(f"@kernel\n\n\n{long}{calls}    forward()\n")
    assert f"{told} why |" in report([tanh], None, tmp_path)
    for other in ("@kernel another\n\n\n" + long, f"@kernel\n\n\n{long} another"):
        kernels.write_text(other + calls)
        assert f"{told} {AGAIN}; why |" in report([tanh], None, tmp_path)
    assert "Kernels for GPUs" not in report([tanh], None)


def test_check_says_what_is_out_of_date_and_writes_nothing(tmp_path, capsys):
    arguments = ["report", "tanh", "--out", str(tmp_path / "out")]
    assert gradform([*arguments, "--check"]) == 1
    assert not (tmp_path / "out").exists()
    assert gradform(arguments) == 0
    page = tmp_path / "out" / FILE
    text = page.read_text()
    assert not re.search(r"20\d\d-\d\d", text) and str(ROOT) not in text
    assert gradform([*arguments, "--check"]) == 0
    page.write_text(edited := text.replace("dx = dy*(1 - y**2)", "dx = dy"))
    capsys.readouterr()
    assert gradform([*arguments, "--check"]) == 1
    shown = capsys.readouterr()
    assert "+dx = dy*(1 - y**2)" in shown.out and "out of date" in shown.err
    assert page.read_text() == edited


def test_the_table_says_the_axes_of_what_is_returned(tmp_path, capsys):
    assert gradform(["huber", "relu", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "│ loss () " in out and "│ loss (*N,) before reduction" in out and "│ y (*N,) " in out
