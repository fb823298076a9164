"""What `show` prints: the record that was proved, in the order in which a person reads it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sympy import expand

import derive
from codegen.cli import gradform
from derive.command import main
from derive.presentation import document_of
from derive.presentation.document import Derivation, Equations, Matrix
from derive.presentation.paths import paths_to
from derive.symbols import tensors_in

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def documents(proved):
    return {name: document_of(p) for name, p in proved.items()}


def blocks(document, kind, section=None):
    chosen = [s for s in document.sections if section in (None, s.title)]
    return [block for s in chosen for block in s.blocks if isinstance(block, kind)]


def shown(capsys, *arguments) -> str:
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_the_sections_are_those_of_a_derivation(documents):
    assert [s.title for s in documents["batch_norm"].sections] == [
        "The forward",
        "The chain",
        "To the closed form",
        "What else was found",
        "The small batch",
        "What was proved",
    ]


def test_x_of_batch_norm_reaches_y_on_three_paths(proved):
    form = proved["batch_norm"].closed_form
    x = form.definition.differentiable[0]
    paths = paths_to(form.definition, x)
    assert [str(path.via) for path in paths] == ["None", "mean", "var"]
    assert str(paths[0].contribution) == "dy*gain*inv_std"
    assert str(paths[1].contribution) == "-gain*inv_std*Sum(dy, N)/N"
    whole = sum(path.contribution for path in paths)
    by_xhat = {"diff": form.definition.by_name["xhat"].tensor}
    inv_std = form.definition.by_name["inv_std"].tensor
    whole = whole.xreplace(
        {t: by_xhat[t.name] / inv_std for t in tensors_in(whole) if t.name in by_xhat}
    )
    assert expand(whole - form.closed["dx"]) == 0


def test_it_answers_what_a_student_asks(capsys):
    text = shown(capsys, "batch_norm", "--of", "x")
    assert "Why the derivative of var by mean is zero" in text
    assert re.search(r"= 0 +because Sum\(diff, N\) = 0", text)
    assert "var     (1, C) = Σ[N] diff2/(N \N{MINUS SIGN} 1)" in text
    assert "through mean" in text and "through var" in text and "directly" in text
    closed = "gain·inv_std·(dy - dbias/N - dgain·xhat/(N - 1))".replace("-", "\N{MINUS SIGN}")
    assert f"dx    = {closed}" in text


def test_of_leaves_the_other_gradients_out(capsys):
    text = shown(capsys, "batch_norm", "--of", "gain")
    assert "dgain = Σ[N](dy·xhat)" in text and "dbias" not in text and "dx " not in text


def test_chain_shows_the_forward_and_the_chain_alone(capsys):
    text = shown(capsys, "softmax_nll", "--chain")
    assert "routed to the arg max along C" in text
    assert "To the closed form" not in text


def test_a_matrix_product_is_shown_two_by_two():
    matrices = blocks(document_of(derive.derive("linear")), Matrix)
    assert [m.remark for m in matrices if m.remark] == [
        "two by two entries: dbias = Sum(dy, N)",
        "two by two entries: dweight = x.T @ dy",
        "two by two entries: dx = dy @ weight.T",
    ]


def test_the_small_batch_has_as_many_rows_as_were_asked_for(proved):
    for entries in (2, 4):
        document = document_of(proved["batch_norm"], "x", entries=entries)
        (matrix,) = blocks(document, Matrix)
        assert len(matrix.rows) == entries and len(matrix.rows[0]) == 2


def test_a_label_is_readable_in_the_small_batch(capsys):
    assert "[labels_1 = 1]" in shown(capsys, "softmax_nll")


def test_what_is_shown_is_the_record(proved, documents):
    for name, document in documents.items():
        form = proved[name].closed_form
        after = {step.after for step in form.steps} | {f.value for f in form.facts}
        for fact in form.facts:
            after |= {step.after for step in fact.steps}
        for derivation in blocks(document, Derivation, "To the closed form"):
            for line in derivation.steps:
                assert line.right in after, f"{line.right} was not recorded"
        *_, last = blocks(document, Equations, "To the closed form")
        assert [line.right for line in last.lines] == [s.expression for s in form.statements]


def test_code_stands_beside_the_derivation(capsys):
    assert gradform(["show", "batch_norm", "--of", "x"]) == 0
    text = capsys.readouterr().out
    assert "dx = gain * inv_std * (dy - dbias / N - dgain / (N - 1) * xhat)" in text
    assert main(["show", "batch_norm", "--of", "x"]) == 0
    assert "The code" not in capsys.readouterr().out


def test_a_users_own_file_is_shown(capsys):
    text = shown(capsys, str(ROOT / "examples" / "fourth_moment_norm.py"))
    assert "FourthMomentNorm" in text and "through fourth" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("batch_norm", "--of", "y"), "y is no differentiable input of BatchNorm"),
        (("batch_norm", "--small-batch", "0"), "a person compares 1 to"),
        (("batch_norm", "--small-batch", "1000"), "a person compares 1 to"),
        (("no_such_thing",), "no_such_thing"),
        (("batch_norm", "--output", "/dev/null/x"), "cannot be written"),
    ],
)
def test_a_question_that_is_not_understood(arguments, says, capsys):
    assert main(["show", *arguments]) == 2
    output = capsys.readouterr()
    assert says in output.err and not output.out


def test_piped_text_is_plain_and_narrow_enough(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "derive", "show", "batch_norm"], capture_output=True, cwd=ROOT
    )
    text = run.stdout.decode()
    assert run.returncode == 0 and "\x1b" not in text
    assert all(len(line) <= 160 and line == line.rstrip() for line in text.splitlines())


def test_output_is_written_whole(tmp_path, capsys):
    file = tmp_path / "deep" / "batch_norm.txt"
    assert shown(capsys, "batch_norm", "--output", str(file)) == ""
    assert file.read_text() == shown(capsys, "batch_norm")
    assert [f.name for f in file.parent.iterdir()] == ["batch_norm.txt"]


HOSTILE = '''
from derive import Axis, Forward, Input, Sum

N = Axis("N")


class Hostile(Forward):
    """[red]not a colour[/red] \\x1b[31m and \\x07 no bell"""

    x_ = Input(N)
    bold = x_**2
    y = Sum(bold, N)
'''


def test_what_a_terminal_would_obey_is_left_out(tmp_path, capsys):
    file = tmp_path / "hostile.py"
    file.write_text(HOSTILE)
    text = shown(capsys, str(file))
    assert "\x1b" not in text and "\x07" not in text
    assert "[red]not a colour[/red]" in text
