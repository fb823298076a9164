"""`show --order 2` and `check --order 2`: second derivatives, read and asked about as the first."""

import json
import re
from dataclasses import dataclass

import pytest
from evaluate import Numbers, close
from sympy import Expr, Symbol

import derive
from derive.commands.main import main
from derive.gradient.orders.check import check_second
from derive.gradient.orders.second import second_order
from derive.gradient.orders.sections import BACKWARD, PULLBACK, SECOND, document_of_second
from derive.gradient.orders.together import in_one_program
from derive.language.errors import QuestionError
from derive.language.symbols import Tensor, axes_of, ordered
from derive.show.document import Derivation, Equation, Equations, Foldable, Matrix, Prose
from derive.show.formats import FORMATS
from derive.show.renamed import Renaming
from derive.show.terminal import words_of

NAMES = ("softmax", "batch_norm", "softmax_nll")
TANGENT = "y*(v - (v*y).sum(-1, keepdim=True))"
RESULT, CHAIN, CLOSED = "the closed form", "the chain", "to the closed form"


@pytest.fixture(scope="module", params=NAMES)
def second(request, derived):
    return second_order(derived(request.param))


@pytest.fixture(scope="module")
def document(second):
    return document_of_second(second)


@pytest.fixture(scope="module")
def softmax(derived):
    return second_order(derived("softmax"))


def blocks(document, kind, title):
    (section,) = (s for s in document.sections if s.title == title)
    flat = [b for block in section.blocks for b in _opened(block)]
    return [block for block in flat if isinstance(block, kind)]


def _opened(block):
    return (
        [b for inner in block.blocks for b in _opened(inner)]
        if isinstance(block, Foldable)
        else [block]
    )


def said(document, title):
    return "\n".join(words_of(block.words) for block in blocks(document, Prose, title))


def lines(document, title):
    return [line for block in blocks(document, Equations, title) for line in block.lines]


def printed(capsys, *arguments) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@dataclass
class Value:
    tensor: Tensor
    expression: Expr


# Shown


def test_the_lines_are_those_of_a_textbook(capsys):
    text = printed(capsys, "show", "softmax", "--order", "2").replace("\N{MINUS SIGN}", "-")
    for line in (
        "total = Σ[C, N](g_x·v_x)",
        "g_minus_sum_g_y = g - Σ[C](g·y)",
        "v_x_times_y     = v_x·y",
        "v_y             = v_x_times_y - sum_v_x_times_y·y         the tangent of y",
        "c_y             = g_minus_sum_g_y·v_x - sum_v_x_times_y·g the cotangent of y",
        "dx              = y·(c_y - Σ[C](c_y·y))",
        "With c_y = g and no other cotangent, the pullback is the first backward.",
    ):
        assert f"  {line}\n" in text
    assert "is 0 here" not in text  # y is saved
    assert "is the tangent of y (JVP)" in text and "the Hessian" in text


def test_the_sections_are_those_of_both_programs(document):
    steps = ["the forward", RESULT, CHAIN, CLOSED, "the small batch"]
    assert [s.title for s in document.sections] == [
        SECOND,
        *(f"{program}: {step}" for program in (BACKWARD, PULLBACK) for step in steps),
        "What was proved",
    ]


def test_the_results_go_by_their_names_from_the_chain_on(document, second):
    names = {line.left for line in lines(document, f"{BACKWARD}: {CHAIN}")}
    assert set(second.second.results.values()) <= names
    reached = {b.start.left for b in blocks(document, Derivation, f"{BACKWARD}: {CLOSED}")}
    assert {*second.second.results.values()} & reached
    (upstream,) = second.upstreams.values()
    assert f"d{upstream}" not in map(str, names)


def test_what_was_proved_is_the_proof_of_both_programs(document, second):
    assert second.summary[1:] in said(document, "What was proved")
    assert "for every size" in second.summary


def test_a_line_says_what_it_needs_before(document, second):
    """From what is given, in the order of computation, and nothing that no other line reads."""
    form = second.first.closed_form
    given = (*form.definition.inputs, *form.saved, *second.upstreams.values())
    known = {t.name for t in (*given, *second.vectors.values())}
    asked = {t.name for t in (*second.tangents, *second.pullback.results.values())}
    read, written, values = set(), [], []
    for line in lines(document, SECOND)[1:]:
        now = {t.name for t in line.right.atoms(Tensor)}
        assert now <= known | set(written)
        read |= now
        written.append(line.left.name)
        values += [(line.right, line.left.home)] * (line.left.name not in asked)
    assert asked <= set(written) <= asked | read and known.isdisjoint(written)
    assert len({*written}) == len(written) and len({*values}) == len(values)  # one name for each


def test_the_lines_of_the_answer_are_proved(tmp_path):
    """Where values are computed again and outputs are not saved: as a reader would paste them."""
    file = tmp_path / "my_norm.py"
    file.write_text(
        "from sympy import sqrt\nfrom derive import Axis, Forward, Input, Sum\n"
        'N, C = Axis("N"), Axis("C")\n\n\nclass MyNorm(Forward):\n    x = Input(N, C)\n'
        "    gain = Input(C)\n    rms = sqrt(Sum(x**2, C)/C + 1)\n    y = gain * x / rms\n"
    )
    found = in_one_program(second_order(derive.derive(file)))
    verdict = check_second(file, "\n".join(f"{t} = {e}" for t, e in found.items()))
    assert {"v_y", "dx", "dgain"} <= {a.name for a in verdict.answers} and verdict.right
    assert len(found) == 11 and not any("_again" in t.name or "_2" in t.name for t in found)


@pytest.mark.parametrize("program", [BACKWARD, PULLBACK])
def test_every_line_of_every_step_has_the_same_value(document, second, program):
    """On random rationals: what is shown under the names of the results is true of these."""
    behind = second.second if program == BACKWARD else second.pullback
    form = behind.proved.closed_form
    chain = {}
    for line in lines(document, f"{program}: {CHAIN}"):
        if isinstance(line.left, Tensor) and line.left.name not in chain:
            target = chain[line.left.name] = Value(line.left, 0)
        elif line.left != "+":
            break  # the paths, which say it again
        target.expression += line.right
    closed = [Value(li.left, li.right) for li in lines(document, f"{program}: {RESULT}")]
    known = [*form.relations.parts, *form.definition.statements, *chain.values()]
    sizes = dict(zip(form.definition.axes, (3, 2), strict=True))
    indexed = {t.name: form.definition.axes[-1] for t in form.definition.labels}
    names = {k.tensor.name for k in known}
    shared = [c for c in closed if c.tensor.name not in names]
    numbers = Numbers(sizes, 1, [*shared, *known], indexed)
    derivations = blocks(document, Derivation, f"{program}: {CLOSED}")
    compared = [[b.start, *b.steps] for b in derivations]
    compared += [[Equation(c.tensor, c.tensor), Equation("", c.expression)] for c in closed]
    assert len(compared) >= 2
    for equations in compared:
        axes = ordered({a for e in equations for a in axes_of(e.right)})
        first, *others = ([*numbers.entries(e.right, axes)] for e in equations)
        for other in others:
            assert all(map(close, first, other)), str(equations[0])


def test_the_last_line_of_the_steps_is_the_line_that_is_computed(document):
    for program in (BACKWARD, PULLBACK):
        computed = {}
        for line in lines(document, f"{program}: {RESULT}"):
            computed.setdefault(line.left, line.right)  # below it may stand as it is published
        shown = blocks(document, Derivation, f"{program}: {CLOSED}")
        reached = {b.start.left: b.reached for b in shown if isinstance(b.start.left, Tensor)}
        for tensor, e in reached.items():
            assert computed.get(tensor, e) == e


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_said_of_what_arrives_at_the_total(document, format):
    text = re.sub(
        r'<details class="numbers">.*?</details>', "", FORMATS[format](document), flags=re.S
    )
    text = re.sub(r"<[^>]*>|mathrm|[\\{}]", "", text)
    assert "1 arrives" in text.replace("$", "") and "v_" in text
    assert not re.search(r"\bd *total", text)


def test_of_leaves_the_other_gradients_out(derived):
    second = second_order(derived("batch_norm"))
    document = document_of_second(second, "gain")
    names = [line.left.name for line in lines(document, SECOND)]
    assert "dgain" in names and "dx" not in names and "dbias" not in names
    assert [m.name.name for m in blocks(document, Matrix, f"{PULLBACK}: the small batch")] == [
        "dgain"
    ]
    assert "c_y is 0 here, since y is not saved." in said(document, SECOND)


def test_an_overview_is_shown_until_one_gradient_is_asked_for(softmax, monkeypatch):
    monkeypatch.setattr("derive.show.sections.LONGEST_WHOLE", 1)
    assert document_of_second(softmax).overview and not document_of_second(softmax, "x").overview


def test_chain_shows_the_forwards_and_the_chains_alone(capsys):
    text = printed(capsys, "show", "softmax", "--order", "2", "--chain")
    titles = [line for line in text.splitlines()[3:] if line and not line.startswith(" ")]
    assert titles == [
        SECOND,
        *(f"{p}: {s}" for p in (BACKWARD, PULLBACK) for s in ("the forward", CHAIN)),
    ]


def test_the_first_order_is_what_is_shown_unless_asked(capsys):
    first = printed(capsys, "show", "softmax")
    assert printed(capsys, "show", "softmax", "--order", "1") == first
    assert SECOND not in first and "v_" not in first


@pytest.mark.parametrize("order", ["0", "4", "two", ""])
@pytest.mark.parametrize(
    ("verb", "orders"),
    [(["show", "softmax"], "1, 2 and 3"), (["check", "softmax", TANGENT], "1 and 2")],
)
def test_there_are_so_many_orders(verb, orders, order, capsys):
    assert main([*verb, "--order", order]) == 2
    error = capsys.readouterr().err
    assert f"--order {order}: there are orders {orders}" in error
    assert "autograd, over the generated lines" in error


def test_a_step_that_says_the_line_before_again_is_left_out():
    x, dx, dtotal = (Tensor(name, ()) for name in ("x", "dx", "dtotal"))
    steps = (Equation("", dtotal * x, "dtotal moves"), Equation("", dtotal * x**2, "see dx"))
    shown = Renaming({"dtotal": Symbol("one"), "dx": x}).block(
        Derivation("", Equation(dx, dtotal * x), steps)
    )
    assert shown.start.left == x and [s.remark for s in shown.steps] == ["see x"]


# Checked


@pytest.mark.parametrize(
    "text",
    [
        TANGENT,
        "y*(v_x - Sum(v_x*y, C))",
        f"jvp = {TANGENT}",
        f"v_y = {TANGENT}",
        f"dg = {TANGENT}",
        f"ddy = {TANGENT}",
        f"def softmax_jvp(v, y):\n    return {TANGENT}",
    ],
)
def test_a_tangent_is_proved_by_any_of_its_names(text):
    verdict = check_second("softmax", text)
    assert verdict.right and verdict.answers[0].proved.every_size
    assert [a.name for a in verdict.answers] == ["v_y"]
    assert str(verdict).startswith("right: ") and "total" not in str(verdict)


DOUBLE = """\
def softmax_double_backward(v, g, y):
    s = (v*y).sum(-1, keepdim=True)
    dg = y*(v - s)
    c = (g - (g*y).sum(-1, keepdim=True))*v - s*g
    dx = y*(c - (c*y).sum(-1, keepdim=True))
    return dg, dx
"""


def test_a_double_backward_is_proved():
    verdict = check_second("softmax", DOUBLE)
    assert verdict.right and [a.name for a in verdict.answers] == ["v_y", "dx"]
    by_old_name = DOUBLE.replace("v, g, y", "v, dy, y").replace("g -", "dy -")
    assert check_second("softmax", by_old_name.replace("(g*", "(dy*").replace("s*g", "s*dy")).right
    own = check_second("softmax", DOUBLE.replace("c ", "dy ").replace("(c", "(dy"))
    assert [(a.name, a.outcome) for a in own.answers] == [(n, "right") for n in ("v_y", "dy", "dx")]


def test_an_expression_that_reads_the_upstream_gradient_is_about_the_first_input():
    product = "g*probs*(v - (probs*v).sum(1, keepdim=True))/N"
    verdict = check_second("softmax_nll", product)
    assert verdict.right and verdict.answers[0].name == "dlogits"
    assert check_second("softmax_nll", product.replace("g*", "dloss*")).right
    mine = check_second("softmax_nll", product.replace("g*", "up*"), let={"up": "dloss"})
    assert mine.right and mine.answers[0].name == "dlogits"
    assert check_second("softmax", "y*v - g_x*0 - y*Sum(v*y, C)", of="jvp").right


def test_one_door_has_both_orders():
    assert derive.check("softmax", "y*(dy - Sum(dy*y, C))", order=1).right
    assert derive.check("softmax", "y*(dy - Sum(dy*y, C))").right
    assert derive.check("softmax", DOUBLE, order=2).right
    assert derive.check("softmax", TANGENT, order=2).right
    with pytest.raises(QuestionError, match="names are"):
        derive.check("softmax", f"{TANGENT}*q", order=1)
    for order in (0, 3, True, "2", None):
        with pytest.raises(QuestionError, match="expected 1 or 2"):
            derive.check("softmax", TANGENT, order=order)


def test_a_missing_factor_and_a_missing_term_are_told():
    factor = str(check_second("softmax_nll", "g*probs*(v - Sum(probs*v, C))"))
    assert factor.startswith("wrong: dlogits of softmax_nll, second order\n")
    assert "multiply the whole formula by 1/N\n" in factor
    term = str(check_second("softmax", "jvp = y*v"))
    assert "the term -Sum(v_x*y, C) is missing\n(terms" in term
    assert "expected v_y[0, 0] = 0\n" in term
    n = "v_bias + v_gain*xhat + gain*inv_std*(v_x - v_x.mean(0) - xhat*(v_x*xhat).mean(0))"
    verdict = str(check_second("batch_norm", n))
    assert "(the factor N/(N - 1) is missing)" in verdict
    assert not any("total" in words for words in (factor, term, verdict))


def test_what_stands_for_another_is_told():
    verdict = str(check_second("softmax", TANGENT, of="x"))
    assert "it is v_y, the gradient with respect to g\n" in verdict and "total" not in verdict
    nothing = str(check_second("softmax", "0*x", of="x"))
    assert nothing.startswith("wrong") and "upstream" not in nothing


def test_a_refusal_says_the_names_that_there_are():
    with pytest.raises(QuestionError) as refused:
        check_second("softmax", f"{TANGENT}*q")
    assert "the names are x (N, C), g (N, C), v_x (N, C), y (N, C), g_x (N, C)\n" in str(
        refused.value
    )
    assert "called dx, and so on" in str(refused.value) and "total" not in str(refused.value)


def test_a_program_is_told_the_order(capsys):
    assert main(["check", "softmax", "--order", "2", "--json", "y*v"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["forward"] == "softmax" and answer["order"] == 2
    assert answer["gradients"][0]["gradient"] == "v_y"
    assert "dtotal" not in json.dumps(answer)
    assert main(["check", "softmax", "--json", "y*(dy - Sum(dy*y, C))"]) == 0
    assert "order" not in json.loads(capsys.readouterr().out)


def test_names_of_the_forward_are_not_taken_for_others(tmp_path):
    """A forward that has g, v, v_x and jvp of its own keeps them."""
    file = tmp_path / "gate.py"
    file.write_text(
        "from derive import Axis, Forward, Input\n"
        'N = Axis("N")\n\n\n'
        "class Gate(Forward):\n    v = Input(N)\n    g = v**2\n    jvp = g * v\n"
    )
    verdict = check_second(file, "6*g_2*v*v_v")
    assert verdict.right and verdict.answers[0].name == "dv"
    assert check_second(file, "dg_2 = 3*g*v_v").answers[0].name == "v_jvp"
