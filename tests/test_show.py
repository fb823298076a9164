"""The output of `show`: the record that was proved, in the order in which a person reads it."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm
from forwards import HEAD
from rich.console import Console
from sympy import Integer, Symbol, exp, expand, log, sqrt

import codegen.driver.cache
import codegen.driver.lean
import codegen.driver.passed
from codegen.commands.cli import gradform
from codegen.driver.cache import VARIABLE, Cache
from codegen.driver.emitting import emit_all
from codegen.program.steps import Assign
from codegen.targets.lean.printer import LEAN
from codegen.targets.torch.vocabulary import FUNCTIONS
from derive.commands.main import main
from derive.gradient.closing.steps import RewriteStep
from derive.language.formulas.unicode import unicode_formula, words_of
from derive.language.nodes import Sum
from derive.language.notation.definition import Statement
from derive.language.notation.library import forward_from
from derive.language.symbols import Axis, Tensor, tensors_in
from derive.running.writing import MARK
from derive.show import document_of
from derive.show.derivations import _remark
from derive.show.document import Derivation, Equations, Foldable, Matrix
from derive.show.paths import paths_to
from derive.show.terminal import rendered

ROOT = Path(__file__).resolve().parents[1]
OWN = "\n\nclass Mine(Forward):\n    x = Input(N)\n    y = x**2 / (1 + x**2)\n"


@pytest.fixture(scope="module")
def documents(shown):
    return {name: shown(name) for name in ("batch_norm", "softmax_nll")}


def blocks(document, kind, section=None):
    chosen = [s for s in document.sections if section in (None, s.title)]
    return [block for s in chosen for block in s.blocks if isinstance(block, kind)]


def printed(capsys, *arguments) -> str:
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_the_sections_are_those_of_a_derivation(documents):
    assert [s.title for s in documents["batch_norm"].sections] == [
        "The forward",
        "The closed form",
        "What was proved",
        "The chain",
        "To the closed form",
        "What else was found",
        "The small batch",
        "The forward, as it is computed",
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
    text = printed(capsys, "batch_norm", "--of", "x")
    assert "Why the derivative of var by mean is zero" in text
    assert re.search(r"= 0 +because Σ\[N\] diff = 0", text)
    assert "var     (1, C) = Σ[N] diff2/(N \N{MINUS SIGN} 1)" in text
    assert "Why Σ[N] diff = 0" in text and "definition: diff = x \N{MINUS SIGN} mean" in text
    assert "with N/(N \N{MINUS SIGN} 1) because var divides by N \N{MINUS SIGN} 1" in text
    assert "through mean" in text and "through var" in text and "directly" in text
    closed = "gain·inv_std·(dy - dbias/N - dgain·xhat/(N - 1))".replace("-", "\N{MINUS SIGN}")
    assert f"dx    (N, C) = {closed}" in text


def test_of_leaves_the_other_gradients_out(capsys):
    text = printed(capsys, "batch_norm", "--of", "gain")
    assert "dgain (C,) = Σ[N](dy·xhat)" in text and "dbias" not in text and "dx " not in text


def test_chain_shows_the_forward_and_the_chain_alone(capsys):
    text = printed(capsys, "softmax_nll", "--chain")
    assert "routed to the arg max along C" in text
    assert "To the closed form" not in text


def test_a_matrix_product_is_shown_two_by_two(shown):
    matrices = blocks(shown("linear"), Matrix)
    assert [words_of(m.remark) for m in matrices] == [
        "a sum: dbias = Σ[N] dy",
        "a product of matrices: dweight = x.T @ dy",
        "a product of matrices: dx = dy @ weight.T",
    ]
    assert all(len(m.rows) == 2 for m in matrices)


def test_the_small_batch_has_as_many_rows_as_were_asked_for(proved):
    for entries in (2, 4):
        document = document_of(proved["batch_norm"], "x", entries=entries)
        (matrix,) = blocks(document, Matrix)
        assert len(matrix.rows) == entries and len(matrix.rows[0]) == 2


def test_what_is_shown_is_the_record(proved, documents):
    for name, document in documents.items():
        form = proved[name].closed_form
        after = {step.after for step in form.steps} | {f.value for f in form.facts}
        for fact in form.facts:
            after |= {step.after for step in fact.steps}
        section = "To the closed form"
        for derivation in blocks(document, Derivation, section):
            for line in derivation.steps:
                assert line.right in after, f"{line.right} was not recorded"
        tables = [block.lines for block in blocks(document, Equations, section)]
        statements = [s.expression for s in form.statements]
        result = blocks(document, Equations, "The closed form")[0]
        assert statements == [line.right for line in result.lines]
        for line in (line for lines in tables for line in lines if line.remark):
            assert line.right in after, f"{line.right} was not recorded"


def test_steps_that_a_reader_follows_at_once_are_one_line(documents):
    chosen = blocks(documents["batch_norm"], Derivation, "To the closed form")
    remarks = [words_of(line.remark) for d in chosen for line in d.steps]
    assert "share: that sum is dgain, that sum is dbias" in remarks
    assert all(a != b for a, b in pairwise(remarks)) and all(remarks)
    (to_dx,) = (d for d in chosen if str(d.start.left) == "dx")
    said = [words_of(line.remark).split(":")[0] for line in to_dx.steps]
    assert said == ["chain rule", "share", "factor"]


def test_the_line_that_gives_a_reason_is_that_whose_name_is_gone():
    """Not another line in which the same sum stands."""
    N, V = Axis("N"), Axis("V")
    logits = Tensor("logits", (N, V))
    total = Sum(exp(logits), V)
    named = Statement(Tensor("sum_exp", (N,), role="statement"), total, None)
    other = Statement(Tensor("y", (N, V), role="statement"), logits - log(total), None)
    written, spelled = ({s.name: s for s in own} for own in ([other], [named, other]))
    form = SimpleNamespace(
        definition=SimpleNamespace(statements=[other], by_name=written),
        spelled=SimpleNamespace(
            definition=SimpleNamespace(statements=[named, other], by_name=spelled)
        ),
    )
    step = RewriteStep(logits, "definition", total / named.tensor - 1, Integer(0), "")
    assert words_of(_remark(step, form, ())) == "definition: sum_exp = Σ[V](exp(logits))"


def test_of_a_long_forward_an_overview_is_shown_and_opened_by_of(capsys, shown):
    document = shown("mlp")
    assert document.overview and not shown("batch_norm").overview
    groups = [words_of(b.title) for b in blocks(document, Foldable)]
    assert "inside of hpreact: 6 lines" in groups and "the graph of the forward" in groups
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(rendered(document))
    text = captured.get()
    assert len(text.splitlines()) < 120
    assert "chain rule: the gradients found so far" in text  # of gradients that took one step
    assert "multiplied out" not in text and "--of INPUT shows the steps" in text
    opened = printed(capsys, "mlp", "--of", "b2")
    assert "multiplied out" in opened and "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}" not in opened


def test_one_over_a_sum_keeps_its_brackets():
    x = Symbol("x", real=True)
    shown = [unicode_formula(e) for e in (1 / (1 + exp(-x)), 1 / (2 * (1 + x)), 1 / sqrt(1 + x))]
    shown = [text.replace("\N{MINUS SIGN}", "-") for text in shown]
    assert shown == ["1/(1 + exp(-x))", "1/(2 + 2·x)", "1/√(1 + x)"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_formulas_and_remarks_stay_within_the_width(documents, width):
    for document in documents.values():
        console = Console(width=width, color_system=None)
        with console.capture() as captured:
            console.print(rendered(document))
        lines = captured.get().splitlines()
        assert max(map(len, lines)) <= width
        beside = any(re.search(r"= 0 +because Σ", line) for line in lines)
        assert beside or width < 200
        assert not beside or width > 40


def test_code_stands_beside_the_derivation(capsys):
    assert gradform(["show", "batch_norm", "--of", "x"]) == 0
    text = capsys.readouterr().out
    assert (
        "dx = gain * inv_std * torch.addcmul(dy - dbias / N, dgain / (N - 1), xhat, value=-1)"
        in text
    )
    assert main(["show", "batch_norm", "--of", "x"]) == 0
    assert "The code" not in capsys.readouterr().out


def printed_by_gradform(capsys, *arguments) -> tuple[int, str, str]:
    status = gradform(["show", *arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


WRONG = {
    "a wrong number": "dx = 2 * dy",
    "no Python": "dx = dy +* 2",
    "an unknown name": "dx = unknown",
    "another shape": "dx = dy[None]",
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG)
def test_code_that_autograd_refuses_is_not_shown(line, capsys, monkeypatch):
    """The derivation is proved all the same, and is shown."""
    right = LEAN[Assign]
    monkeypatch.setitem(LEAN, Assign, lambda p, step: line if step.name == "dx" else right(p, step))
    status, out, err = printed_by_gradform(capsys, "tanh")
    assert status == 1 and "unproved: Tanh: the generated code" in err
    assert "What was proved" in out and "There is no code to show" in out
    assert "torch." not in out and line not in out


def test_code_that_cannot_be_written_is_named_beside_the_derivation(tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(FUNCTIONS, "erfinv")
    file = tmp_path / "quantile.py"
    file.write_text(
        f"from sympy import erfinv\n{HEAD}\n\nclass Quantile(Forward):\n"
        "    x = Input(N)\n    y = erfinv(x)\n"
    )
    status, out, err = printed_by_gradform(capsys, str(file))
    assert status == 1 and "erfinv" in err and "What was proved" in out


def test_lines_that_are_not_those_of_the_module_are_not_shown(capsys, monkeypatch):
    monkeypatch.setattr(codegen.driver.passed, "backward_lines", lambda *of: {"dx": "dx = dy"})
    status, out, err = printed_by_gradform(capsys, "tanh")
    assert status == 1 and "dx = dy" in err and "There is no code" in out


def test_what_has_passed_before_is_not_compared_again(tmp_path, capsys, monkeypatch):
    """Forwards of the gallery, and cached ones; all others are compared."""
    compared, right = [], codegen.driver.lean.lean_tried

    def comparing(forward, *of):
        compared.append(forward.__name__)
        return right(forward, *of)

    monkeypatch.setattr(codegen.driver.lean, "lean_tried", comparing)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(HEAD + OWN)
    os.utime("mine.py", (10**9, 10**9))
    monkeypatch.setattr(codegen.driver.cache, "STARTED", 10**10)
    assert printed_by_gradform(capsys, "tanh")[0] == 0 and compared == []
    assert printed_by_gradform(capsys, "mine.py")[0] == 0 and compared == ["Mine"]
    monkeypatch.setenv(VARIABLE, "kept")
    emit_all([forward_from("mine.py")], Cache(Path("kept")))
    assert compared == ["Mine", "Mine"]  # as it was emitted
    assert printed_by_gradform(capsys, "mine.py")[0] == 0 and compared == ["Mine", "Mine"]
    monkeypatch.setattr(codegen.driver.passed, "SHIPPED", tmp_path)
    assert printed_by_gradform(capsys, "tanh")[0] == 0 and compared == ["Mine", "Mine", "Tanh"]


def test_what_was_proved_is_one_thing_and_what_was_compared_another(capsys):
    _, out, _ = printed_by_gradform(capsys, "tanh")
    _, _, proved = out.partition("What was proved\n")
    proved, title, code = proved.partition("The code, compared with autograd\n")
    assert title and "dx = torch" in code and "torch" not in proved and "1e-10" in code


def test_a_users_own_file_is_printed(capsys):
    text = printed(capsys, str(ROOT / "examples" / "fourth_moment_norm.py"))
    assert "FourthMomentNorm" in text and "through fourth" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("batch_norm", "--of", "y"), "y is not a differentiable input of BatchNorm"),
        (("batch_norm", "--small-batch", "0"), "it must be between 1 and"),
        (("batch_norm", "--small-batch", "1000"), "it must be between 1 and"),
        (("batch_norm", "--small-batch", "-1"), "it must be between 1 and"),
        (("batch_norm", "--small-batch", "1"), "var divides by N - 1, which is 0 where N = 1"),
        (("softmax_nll", "--of", "labels"), "labels is not a differentiable input"),
        (("batch_norm", "--output", "/dev"), "cannot be written"),
        (("no_such_thing",), "no_such_thing"),
        (("batch_norm", "--output", "/dev/null/x"), "cannot be written"),
    ],
)
def test_a_question_that_is_not_understood(arguments, says, capsys):
    assert main(["show", *arguments]) == 2
    output = capsys.readouterr()
    assert says in output.err and not output.out


def test_piped_text_is_plain_and_narrow_enough(tmp_path):
    command = [sys.executable, "-m", "derive", "show", "batch_norm"]
    run = warm.run(command, capture_output=True, cwd=ROOT)
    text = run.stdout.decode()
    assert run.returncode == 0 and "\x1b" not in text
    assert all(len(line) <= 160 and line == line.rstrip() for line in text.splitlines())


def test_output_is_written_whole(tmp_path, capsys):
    file = tmp_path / "deep" / "batch_norm.txt"
    assert printed(capsys, "batch_norm", "--output", str(file)) == ""
    assert file.read_text() == f"{MARK}\n\n{printed(capsys, 'batch_norm')}"
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
    text = printed(capsys, str(file))
    assert "\x1b" not in text and "\x07" not in text
    assert "[red]not a colour[/red]" in text


def test_whoever_reads_may_stop_reading():
    show = warm.Popen(
        [sys.executable, "-m", "derive", "show", "tanh"], cwd=ROOT, stdout=-1, stderr=-1
    )
    show.stdout.close()
    said = re.sub(rb"tanh: [^,\n]+, \d+ s\n", b"", show.stderr.read())  # where the machine is slow
    assert said == b"" and show.wait() == 0


def test_showing_needs_neither_the_checker_nor_the_templates():
    """`derive.check` and the HTML templates are imported when they are asked for."""
    program = (
        "import sys; from derive.commands.main import main; main(['show', 'tanh', '--chain']);"
        "loaded = [m for m in sys.modules if m.startswith(('derive.claims.checking', 'jinja2'))];"
        "import derive, inspect;"
        "assert not loaded and inspect.signature(derive.check) and derive.check.__doc__"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
