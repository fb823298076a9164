"""Names and docstrings that mean something in LaTeX, HTML, Markdown or a terminal are words."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import derive
from derive.commands.show import show_command
from derive.show import document_of
from derive.show.formats import FORMATS
from derive.show.html import fragment

DOC = r"""<script>alert(1)</script> $5 & 100% of `code` | # \\input{/etc/passwd} ^~ *b* _i_ {

    [red]no colour[/red] \x1b[31m\x07\x9b1m </article> <!-- \u202e \\end{document}
    """
FILE = f'''
from sympy import exp
from derive import Axis, Forward, Input, Label, Max, OneHot, Scalar, Sum

N, C_1 = Axis("N"), Axis("C_1")


class end_document(Forward):
    """{DOC}"""

    x_y_z = Input(N, C_1)
    lambda_ = Input(C_1)
    script = Label(N)
    x_1 = Scalar(0.5)

    amp = Max(x_y_z * lambda_, C_1)
    Δ = exp(x_y_z - amp) * x_1
    ñ = Sum(OneHot(script, C_1) * Δ, C_1)
    lt = Sum(ñ**2, N)
'''
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "hostile.py"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def document(file):
    return document_of(derive.derive(file))


def test_a_terminal_obeys_nothing(file, capsys):
    assert show_command([str(file)]) == 0
    text = capsys.readouterr().out
    assert not CONTROL.search(text)
    assert "[red]no colour[/red]" in text and r"\input{/etc/passwd}" in text
    assert "x_y_z" in text and "lambda_" in text and "Δ" in text and "ñ" in text


@pytest.mark.parametrize("write_out", [FORMATS["html"], fragment], ids=["page", "notebook"])
def test_a_page_has_them_as_words(document, write_out):
    text = write_out(document)
    assert not CONTROL.search(text)
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    scripts = [element.text for element in root.iter("script")]  # a page's own
    assert len(scripts) <= 1 and not any("alert" in text for text in scripts)
    words = "".join(root.itertext())
    assert "<script>alert(1)</script>" in words and "</article> <!--" in words
    names = {e.text for e in root.iter("mi")}
    assert {"x_y_z", "λ", "script", "amp", "Δ", "ñ", "lt"} <= names  # λ is lambda_
    assert ("C", "1") in {tuple(e.itertext()) for e in root.iter("msub")}


def test_markdown_has_them_as_words(document):
    text = FORMATS["markdown"](document).partition("-->\n\n")[2]  # after the line that says by whom
    assert not CONTROL.search(text)
    assert not re.search(r"<(?!/?(details|summary)>)", text)
    words = re.sub(r"&#?\w+;", "", text[2:].split("\n## ")[0])
    assert not re.search(r"(?<!\\)[`*_|#$\[{]", words)
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    assert rows and all(line.count("|") == 5 for line in rows)


def test_a_paper_has_them_as_words(document):
    text = FORMATS["latex"](document)
    assert not CONTROL.search(text)
    assert r"\input" not in text and text.count(r"\end{document}") == 1
    body = text.split(r"\begin{document}")[1]
    assert not re.search(r"(?<!\\)[#%](?!$)", body, re.MULTILINE)


@pytest.mark.engine
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_paper_compiles(document, tmp_path):
    (tmp_path / "paper.tex").write_text(FORMATS["latex"](document), encoding="utf-8")
    flags = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape")
    done = subprocess.run(
        ["pdflatex", *flags, "paper.tex"], cwd=tmp_path, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stdout.decode("latin-1")[-2000:]
