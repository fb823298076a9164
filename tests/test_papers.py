"""LaTeX and Markdown: what is written can be set by a real engine, and no name is a command.

Tests marked ``engine`` need ``pdflatex`` or KaTeX's command line (``KATEX``, or ``katex`` on the
path) and are skipped without them.
"""

import os
import re
import shutil
import subprocess
from itertools import product

import pytest
from forwards import OWN, write
from sympy import Abs, Eq, Expr, Integer, Piecewise, Rational, exp, preorder_traversal, sqrt

from derive.language.errors import MATH
from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry
from derive.language.formulas.latex import latex_formula, latex_statements
from derive.language.formulas.latex_lines import formula_lines, width
from derive.language.formulas.latex_names import latex_name, latex_text, told_apart
from derive.language.formulas.mathml import mathml
from derive.language.nodes import ArrayNode, Flatten, Max, OneHot, Sum
from derive.language.notation.library import forwards_from
from derive.language.symbols import Axis, Tensor
from derive.running.writing import MARK
from derive.show.document import (
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Foldable,
    Matrix,
    Prose,
    Section,
)
from derive.show.markdown import escaped, markdown
from derive.show.paper import entries, latex_document, side, words_of
from derive.show.small import matrix_of

N, C, T, E, K = (Axis(name) for name in "NCTEK")
X, Y = Tensor("x", (N, C)), Tensor("y", (N, C))
LABELS = Tensor("labels", (N,), role="label")

HOSTILE = r"$x$ 5% #1 ~ ^ & {a} \input{/etc/passwd} `code` a|b <script>alert(1)</script> *b* _i_"

BUILT_IN = sorted(path.stem for path in MATH.glob("[a-z]*.py"))
EVERY = [*BUILT_IN, *OWN]


def statements_of(name, folder):
    """The statements of all forwards of a file of the gallery's, or of a forward of the tests'."""
    source = MATH / f"{name}.py" if name in BUILT_IN else write(folder, name)
    return [s for forward in forwards_from(source) for s in forward.definition.statements]


def balanced(tex: str) -> bool:
    """Braces, environments, and brackets of growing size that pair."""
    depth = 0
    for brace in re.findall(r"\\.|[{}]", tex, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    pairs = [(r"\\left(?![a-z])", r"\\right(?![a-z])"), (r"\\bigl\(", r"\\bigr\)")]
    counted = all(len(re.findall(a, tex)) == len(re.findall(b, tex)) for a, b in pairs)
    opened = []
    for kind, environment in re.findall(r"\\(begin|end)\{([a-z*]+)\}", tex):
        if kind == "begin":
            opened.append(environment)
        elif not opened or opened.pop() != environment:
            return False
    return depth == 0 and counted and not opened


def hostile() -> Document:
    names = (
        "alpha_beta",
        "end",
        "x_",
        "begin",
        "d",
        "lamda",
        "input",
        "W1",
        "xhat",
        "\u03c3",
        "é中",
    )
    tensors = [Tensor(name, (N, C)) for name in names]
    equations = tuple(Equation(t, t**2 * X - Sum(t, N), HOSTILE, "(N, C)") for t in tensors)
    plain = tuple(Equation("" if i else HOSTILE, t + 1, HOSTILE) for i, t in enumerate(tensors))
    code = ((r"\end{verbatim}", "```` \\input{/etc/passwd} \\end{verbatim} é"), ("x", "y" * 300))
    blocks = (
        Prose((f"{HOSTILE} and ", tensors[0], " \x1b[31m")),
        Foldable((HOSTILE, Eq(tensors[1], 0)), (Prose(HOSTILE),)),
        Equations(equations),
        Derivation((HOSTILE, Eq(tensors[2], 0)), plain[0], plain[1:]),
        Matrix(tensors[0], ((tensors[0], tensors[1]), (X, Abs(Y))), (2, 2), HOSTILE),
        Code(code),
    )
    return Document("end_", (f"{HOSTILE} π 中 é", "Second."), (Section(HOSTILE, blocks),))


@pytest.fixture(scope="module")
def papers(shown):
    return {"hostile": hostile()} | {name: shown(name) for name in ("batch_norm", "softmax_nll")}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x", "x"),
        ("alpha", r"\alpha"),
        ("lamda", r"\lambda"),
        ("\u03c3", r"\sigma"),
        ("xhat", r"\hat{x}"),
        ("W1", "W_{1}"),
        ("x_1", "x_{1}"),
        ("sigma2", r"\sigma_{2}"),
        ("alpha_hat", r"\hat{\alpha}"),
        ("lambda_max", r"\lambda_{\mathrm{max}}"),
        ("end", r"\mathrm{end}"),
        ("alpha_beta", r"\alpha_{\beta}"),
        ("inv_std", r"\mathrm{inv\_std}"),
        ("x_", r"\mathrm{x\_}"),
    ],
)
def test_a_name_is_one_symbol(name, shown):
    assert latex_name(name) == shown


@pytest.mark.parametrize("names", ["beta1 beta_1", "x_hat xhat", "lamda lambda_", "W_12 W12"])
def test_two_names_are_never_the_same_symbol(names):
    one, other = names.split()
    with told_apart():
        assert latex_name(one) != latex_name(other) and mathml(one) != mathml(other)
        assert latex_name(one) == latex_name(one) and mathml(other) == mathml(other)
    assert latex_name(one) == latex_name(other)


def test_a_document_tells_its_names_apart():
    symbols = [Tensor(name, (N,)) for name in ("beta1", "beta_1")]
    shown = latex_statements([(symbols[0], symbols[1])])
    assert r"\beta_{1} &= \mathrm{beta\_1}" in shown


@pytest.mark.parametrize(
    ("e", "shown"),
    [
        (Sum(X, N) / N, r"\frac{1}{N}\,\sum_{N} x"),
        (Sum(X, N) * Sum(Y, N), r"\left(\sum_{N} x\right)\,\sum_{N} y"),
        (Sum(X - Y, N), r"\sum_{N} \left(x - y\right)"),
        (Sum(X, N) ** 2, r"\left(\sum_{N} x\right)^{2}"),
        (1 / sqrt(X), r"\frac{1}{\sqrt{x}}"),
        (-X / 2 - Y, r"-y - \frac{x}{2}"),
        (Tensor("W1", (N,)) ** 2, "W_{1}^{2}"),
        (Max(X, C), r"\max_{C} x"),
        (OneHot(LABELS, C), r"\mathbf{1}[\,\mathrm{labels} = C\,]"),
        (Tensor("dy", (N,), role="adjoint"), r"\mathrm{d}y"),
        (Tensor("x", (T,), (N,)), "x_{T}"),
        (exp(X), r"\exp{\left(x \right)}"),
        (entry("W1", (0, 1)), "{W_{1}}_{1,2}"),
        (entry("x_1", (1,)), "{x_{1}}_{2}"),
        (Chosen(entry("labels", (0,)), 2), r"\mathbf{1}[\,\mathrm{labels}_{1} = 2\,]"),
        (
            Chosen(ArgMaxOfEntries(entry("x", (0,)), entry("x", (1,))), 2),
            r"\mathbf{1}[\,\arg\max\left(x_{1}, x_{2}\right) = 2\,]",
        ),
        (Rational(3, 4) * X, r"\frac{3\,x}{4}"),
    ],
)
def test_a_formula_is_written_as_in_a_paper(e, shown):
    assert latex_formula(e) == shown


def test_a_flattened_tensor_says_which_axes_became_which():
    shown = latex_formula(Flatten(Tensor("e", (N, T, E)), T, E, into=K))
    assert shown == r"\mathrm{flat}_{T \cdot E \to K}\left(e\right)"


def test_a_node_without_a_line_of_its_own_is_named():
    class Unknown(ArrayNode):
        pass

    with pytest.raises(TypeError, match="Unknown has no LaTeX: add _print_Unknown"):
        latex_formula(Unknown(X, N))


@pytest.mark.parametrize("name", EVERY)
def test_every_expression_is_balanced_however_it_is_broken(name, tmp_path):
    for statement in statements_of(name, tmp_path):
        for e in preorder_traversal(statement.expression):
            assert not isinstance(e, Expr) or balanced(latex_formula(e))
        for room in (8, 20, 60):
            assert balanced(" ".join(formula_lines(statement.expression, room)))


def test_words_between_formulas_keep_their_spaces():
    words = (X, " through ", Y)
    assert side(words) == r"x\text{ through }y"
    assert words_of(words) == "$x$ through $y$"
    title = markdown(Document("", (words,), ())).split("\n\n")[2]
    assert title == "$x$ through $y$\n"
    remarked = Document("", (), (Section("", (Equations((Equation(X, Y, ("as ", X)),)),)),))
    assert r"\text{as }x" in markdown(remarked)


@pytest.mark.parametrize("sizes", [(), (2,), (1, 2), (2, 1, 2)])
def test_an_entry_that_stands_alone_has_an_index_for_every_axis(sizes):
    places = [*product(*map(range, sizes))]
    matrix = matrix_of(Y, dict.fromkeys(places, X), sizes)
    assert [name for name, _ in entries(matrix)] == [
        latex_formula(entry("y", place)) for place in places
    ]


def test_a_choice_is_as_wide_as_its_widest_row():
    inner = Piecewise((Y, X > 1), (0, True))
    assert 12 < width(latex_formula(inner)) < 16
    assert 20 < width(latex_formula(Piecewise((inner, X > 2), (Y, True)))) < 28
    assert formula_lines(-X * inner, 18) == [latex_formula(-X * inner)]


def test_lines_of_code_stay_lines():
    code = Code((("dx", "dx = f(\n    x - y,\n)"), ("dgain", "dgain = 1")))
    document = Document("", (), (Section("", (code,)),))
    rows = "dx:    dx = f(\n           x - y,\n       )\ndgain: dgain = 1\n"
    assert rows in latex_document(document) and rows in markdown(document)


def test_a_long_formula_is_broken_at_its_signs_and_loses_nothing():
    terms = [Tensor(f"word{k}s", (N,)) for k in range(30)]
    e = X * (Integer(1) + sum(terms))
    lines = formula_lines(e, 40)
    assert len(lines) > 5 and max(map(width, lines)) <= 40
    assert all(t.name in " ".join(lines) for t in terms)


def test_no_word_of_a_user_is_a_command():
    tex = latex_document(hostile())
    body = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", tex, flags=re.DOTALL)
    assert r"\input" not in body and "\x1b" not in tex
    assert tex.count(r"\end{verbatim}") == 1
    assert balanced(body) and latex_text("50% of $x_1$") == r"50\% of \$x\_1\$"


def test_no_word_of_a_user_is_markup():
    text = markdown(hostile()).removeprefix(f"<!-- {MARK} -->")
    outside = re.sub(r"(`{5,}).*?\1|\$\$.*?\$\$", "", text, flags=re.DOTALL)
    outside = re.sub(r"</?(details|summary)>|(?<!\$)\$[^$\n]+\$(?!\$)", "", outside)
    assert "<" not in outside and "\x1b" not in outside
    assert "<script>" not in text
    assert escaped("# a") == r"\# a" and escaped("1. a") == r"1\. a" and escaped("- a") == r"\- a"
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    assert rows and all(line.count("|") == 5 for line in rows)


@pytest.mark.parametrize("write_out", [latex_document, markdown])
def test_the_same_document_gives_the_same_bytes(write_out, papers):
    for document in papers.values():
        assert write_out(document) == write_out(document)


def equations_of(document):
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Equations):
                yield from block.lines
            elif isinstance(block, Derivation):
                yield from (block.start, *block.steps)


def without_breaks(tex: str) -> str:
    """Without what depends on where a line ends."""
    signs = r"[\s&]|\\qquad|\{\}|\\\\|\\big[lr]|\\left|\\right|\\,|\\cdot"
    return re.sub(signs, "", tex)


@pytest.mark.parametrize("write_out", [latex_document, markdown])
def test_every_equation_of_a_document_appears(write_out, papers):
    for document in (papers["batch_norm"], papers["softmax_nll"]):
        text = without_breaks(write_out(document))
        for line in equations_of(document):
            assert without_breaks(latex_formula(line.shown)) in text, line


def run(*command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.engine
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", ["batch_norm", "softmax_nll", "hostile"])
def test_latex_compiles_as_it_is(name, papers, tmp_path):
    (tmp_path / "paper.tex").write_text(latex_document(papers[name]), encoding="utf-8")
    flags = ("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape")
    done = run("pdflatex", *flags, "paper.tex", folder=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:]
    wide = [float(n) for n in re.findall(r"Overfull \\hbox \(([\d.]+)pt", done.stdout)]
    assert max(wide, default=0) < 15, wide


KATEX = os.environ.get("KATEX") or shutil.which("katex")


@pytest.mark.engine
@pytest.mark.skipif(KATEX is None, reason="KaTeX is not installed")
@pytest.mark.parametrize("name", ["batch_norm", "softmax_nll", "hostile"])
def test_katex_renders_every_formula(name, papers, tmp_path):
    text = markdown(papers[name])
    displays = re.findall(r"^\$\$\n(.*?)\n\$\$$", text, re.DOTALL | re.MULTILINE)
    inline = re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", text)
    assert displays and inline
    together = " \\\\ ".join(sorted(set(inline)))
    for tex in [*displays, rf"\begin{{aligned}}{together}\end{{aligned}}"]:
        done = subprocess.run(
            [KATEX, "--display-mode"], input=tex, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{tex}\n{done.stderr[-500:]}"
