"""Checking a formula: the verdict, what it says about a wrong one, and the command."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from generating import forward_file
from sympy import Rational

import derive
from derive.commands.check import check_command
from derive.language.errors import QuestionError
from tests.checked_forwards import LayerNorm, RowNLL

RIGHT = "gain*inv_std/n*(n*dy - dy.sum(0) - n/(n-1)*xhat*(dy*xhat).sum(0))"
WITHOUT_BESSEL = "gain*inv_std/n*(n*dy - dy.sum(0) - xhat*(dy*xhat).sum(0))"

OWN = '''
from sympy import sqrt
from derive import Axis, Forward, Input, Scalar, Sum
N, C = Axis("N"), Axis("C")

class Standardised(Forward):
    """Rows of zero mean, divided by the root of the fourth moment."""
    x = Input(N, C)
    tiny = Scalar(1e-6)
    centre = Sum(x, C) / C
    off = x - centre
    fourth = Sum(off**4, C) / C
    width = sqrt(fourth + tiny)
    y = off / width
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "standardised.py"
    file.write_text(OWN)
    return f"{file}:Standardised"


def wrong(name, formula, of=None, **options):
    verdict = derive.check(name, formula, of, **options)
    assert verdict.right is False and verdict.status == 1, verdict
    return verdict.first_wrong.refutation


def test_right_says_which_sizes_and_how():
    verdict = derive.check("batch_norm", RIGHT, of="x")
    assert verdict.right and verdict.status == 0
    assert verdict.answers[0].proved.every_size
    assert "2x3, 3x4, 4x2" in str(verdict) and "for every size" in str(verdict)


def test_the_missing_factor_is_named_as_a_function_of_n():
    why = wrong("batch_norm", WITHOUT_BESSEL, "x")
    (difference,) = why.comparison.differences
    N = derive.Axis("N")
    assert difference.kind == "coefficient"
    assert (difference.got, difference.expected) == (-1 / N, -1 / (N - 1))
    text = str(derive.check("batch_norm", WITHOUT_BESSEL, of="x"))
    assert "the coefficient of xhat*Sum(dy*xhat, N) is -1/N, it must be -1/(N - 1)" in text
    assert "(the factor N/(N - 1) is missing)" in text
    assert "var = Sum(diff2, N)/N in place of var = Sum(diff2, N)/(N - 1)" in text


def test_the_counterexample_is_small_and_exact():
    found = wrong("batch_norm", WITHOUT_BESSEL, "x").counterexample
    assert dict(found.point.sizes) == {"N": 2, "C": 1}
    assert (found.expected, found.got) == (Rational(1, 8), Rational(3, 16))
    assert "1/8" in str(derive.check("batch_norm", WITHOUT_BESSEL, of="x"))


@pytest.mark.parametrize(
    ("formula", "kind", "got", "expected"),
    [
        ("gain*inv_std*(dy - dy.mean(0) + xhat*(dy*xhat).sum(0)/(n-1))", "sign", 1, -1),
        ("gain*inv_std*(dy - dy.mean(0))", "missing", 0, -1),
        ("gain*inv_std*(dy - dy.mean(0) - 2*xhat*(dy*xhat).sum(0)/(n-1))", "coefficient", -2, -1),
    ],
)
def test_terms(formula, kind, got, expected):
    (difference,) = wrong("batch_norm", formula, "x").comparison.differences
    N = derive.Axis("N")
    assert difference.kind == kind
    assert (difference.got * (N - 1), difference.expected * (N - 1)) == (got, expected)


def test_an_extra_term_and_the_one_in_its_place():
    why = wrong("batch_norm", "gain*inv_std*(dy - dy.mean(0) - y*(dy*y).sum(0)/(n-1))", "x")
    assert {str(d.product): d.kind for d in why.comparison.differences} == {
        "xhat*Sum(dy*xhat, N)": "missing",
        "y*Sum(dy*y, N)": "extra",
    }


def test_a_sum_that_vanishes_is_an_extra_term():
    text = "g = gain*dy\ndx = inv_rms*(g - g.mean(-1, True) - xhat*(g*xhat).mean(-1, True))"
    assert "the term -Sum(g, C)/C is extra: remove it" in str(derive.check("rms_norm", text))


def test_a_factor_of_the_whole():
    why = wrong("batch_norm", "inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0)/(n-1))", "x")
    assert [str(e) for e in why.comparison.factor] == ["inv_std", "gain*inv_std"]


def test_terms_are_told_of_any_spelling():
    """Raw moments, and a mean over N that should be one over N - 1."""
    formula = (
        "gain*(dy - dy.mean(0) - (x - x.mean(0))*(dy*(x - x.mean(0))).mean(0)"
        "/(x.var(0) + eps))/torch.sqrt(((x**2).sum(0) - n*x.mean(0)**2)/(n - 1) + eps)"
    )
    (difference,) = wrong("batch_norm", formula, "x").comparison.differences
    assert str(difference.product) == "xhat*Sum(dy*xhat, N)"
    assert str(difference.got) == "-1/N" and str(difference.expected) == "-1/(N - 1)"


@pytest.mark.parametrize(
    ("formula", "change"),
    [
        (
            "(dy - dy.mean(1, keepdim=True))/width",
            "fourth is treated as constant",
        ),
        ("dy/width", "treated as constant"),
        (
            "((dy - dy.mean(1, True))/(fourth.sqrt() + tiny) - 2*(off**3 - (off**3).mean(1, True))"
            "*(dy*off).mean(1, True)/fourth.sqrt()/(fourth.sqrt() + tiny)**2)",
            "width = sqrt(fourth) + tiny in place of width = sqrt(fourth + tiny)",
        ),
        (
            "(dy - dy.mean(1, True))/width - 2*(off**3 - (off**3).mean(1, True))"
            "*(dy*off).sum(1, True)/width**3",
            "fourth = Sum(off**4, C) in place of fourth = Sum(off**4, C)/C",
        ),
    ],
)
def test_a_neighbouring_mathematics_is_found_by_editing_the_definition(own, formula, change):
    verdict = derive.check(own, formula)
    assert change in verdict.answers[0].refutation.neighbour.change
    assert change in repr(verdict) and change in str(verdict)


def test_a_loss_is_checked_for_an_upstream_of_one_unless_the_formula_reads_it():
    formula = "(F.softmax(logits, 1) - F.one_hot(labels, C))/n"
    verdicts = [
        derive.check("softmax_nll", text) for text in (formula, f"dlogits = {formula}\ndlogits")
    ]
    assert all(v.right and "for dloss = 1" in str(v) for v in verdicts)
    assert derive.check("softmax_nll", f"dloss*{formula}").right
    said = str(derive.check("softmax_nll", "(F.one_hot(labels, C) - F.softmax(logits, 1))/n"))
    assert "by -1" in said and "missing" not in said and re.search("dloss += 1", said)


def test_the_gradient_of_another_input_is_recognised():
    assert (
        "it is dbias, the gradient with respect to bias"
        in wrong("batch_norm", "dy.sum(0)", "gain").hints
    )


def test_a_number_that_is_the_default_of_a_scalar_is_a_condition():
    verdict = derive.check("batch_norm", "(dy*diff*(var + 1e-5)**-0.5).sum(0)", of="gain")
    assert verdict.right and "eps = 1e-05" in verdict.answers[0].conditions[0]
    assert "for eps = 1e-05" in str(verdict)
    wrong("batch_norm", "(dy*diff*(var + 1e-4)**-0.5).sum(0)", "gain")


def test_torch_would_align_the_wrong_axis():
    formula = "inv_std*(gain*dy - (gain*dy).mean(1))"
    refutation = wrong(LayerNorm, formula, "x")
    assert refutation.misaligned is not None
    text = str(derive.check(LayerNorm, formula, of="x"))
    assert "keepdim" in text and "N" in text and "C" in text


def test_by_name_it_would_be_right():
    formula = "dloss*probs - dloss[:, None]*F.one_hot(labels, C)"
    assert any("by axis name" in hint for hint in wrong(RowNLL, formula).hints)


# --- several lines

LINES = """\
dlogprobs = torch.zeros_like(logprobs)
dlogprobs[range(n), labels] = -1.0/n
dprobs = (1.0 / probs) * dlogprobs
dcounts_sum_inv = (counts * dprobs).sum(1, keepdim=True)
dcounts = counts_sum_inv * dprobs
dcounts_sum = (-counts_sum**-2) * dcounts_sum_inv
dcounts += torch.ones_like(counts) * dcounts_sum
dnorm_logits = counts * dcounts
dlogits = dnorm_logits.clone()
dlogit_maxes = (-dnorm_logits).sum(1, keepdim=True)
dlogits += F.one_hot(logits.max(1).indices, num_classes=logits.shape[1]) * dlogit_maxes
"""


def test_a_whole_backward_is_proved_line_by_line():
    verdict = derive.check("softmax_nll", LINES)
    assert verdict.right and len(verdict.answers) == 8
    assert all(answer.conditions == ("dloss = 1",) for answer in verdict.answers)


def test_the_first_wrong_line_is_named_and_the_others_are_not_blamed():
    verdict = derive.check("softmax_nll", LINES.replace("counts_sum**-2", "counts_sum**-1"))
    assert verdict.status == 1
    assert (verdict.first_wrong.name, verdict.first_wrong.line) == ("dcounts_sum", 6)
    outcomes = {a.name: (a.outcome, a.inherits) for a in verdict.answers}
    assert [name for name, found in outcomes.items() if found[0] == "wrong"] == ["dcounts_sum"]
    assert outcomes["dprobs"] == ("right", False) and outcomes["dlogits"] == ("right", True)


def test_the_closed_form_of_the_second_exercise():
    lines = "dlogits = F.softmax(logits, 1)\ndlogits[range(n), labels] -= 1\ndlogits /= n\n"
    assert derive.check("softmax_nll", lines).right
    assert derive.check("softmax_nll", lines.replace("-= 1", "-= 2")).right is False


def test_two_errors_that_cancel_are_both_found():
    lines = "dxhat = 2*gain*dy\ndgain = (dy*xhat).sum(0)\ndbias = dy.sum(1)\n"
    verdict = derive.check("batch_norm", lines)
    assert {a.name: a.outcome for a in verdict.answers} == {
        "dxhat": "wrong",
        "dgain": "right",
        "dbias": "wrong",
    }


# --- neither proved nor refuted


def test_the_sign_of_a_value_is_decided_case_by_case(tmp_path):
    """|x| = x*sign(x): no polynomial knows that."""
    file = tmp_path / "size.py"
    file.write_text(
        "from sympy import Abs\nfrom derive import Axis, Forward, Input\nN = Axis('N')\n"
        "class Size(Forward):\n    x = Input(N)\n    y = Abs(x)**3\n"
    )
    assert derive.check(str(file), "dy*3*x**2*(x/x.abs())").right


def test_undecided_without_a_proof(monkeypatch):
    from derive.claims.checking import ground
    from derive.language.errors import UnprovedError

    def unproved(*_):
        raise UnprovedError("no proof")

    monkeypatch.setattr(ground, "proved_gradient", unproved)
    verdict = derive.check("batch_norm", RIGHT, of="x")
    assert verdict.right is None and verdict.status == 1 and verdict.answers[0].proved is None
    assert "neither proved nor refuted" in str(verdict)
    assert verdict.answers[0].difference < 1e-30


# --- what was asked


@pytest.mark.parametrize("of", ["inputs", "dq", "eps"])
def test_an_unknown_tensor(of):
    with pytest.raises(QuestionError, match="--of takes one of x, gain, bias"):
        derive.check("batch_norm", RIGHT, of=of)


@pytest.mark.parametrize(
    "arguments",
    [
        ("batch_norm", None),
        ("batch_norm", b"dy"),
        (int, "dy"),
        ("batch_norm", "dy", 3),
        ("batch_norm", "dy", "x", [("a", "x")]),
    ],
)
def test_what_is_no_text_and_no_forward(arguments):
    with pytest.raises(QuestionError):
        derive.check(*arguments)


def test_the_gradient_of_a_statement_can_be_asked_for():
    assert derive.check("batch_norm", "gain*dy", of="xhat").right
    assert derive.check("batch_norm", "gain*dy", of="dxhat").right
    assert derive.check("batch_norm", "dxhat = gain*dy").right


# --- the command


def run(capsys, *arguments) -> tuple[int, str, str]:
    status = check_command(arguments)
    out, err = capsys.readouterr()
    return status, out, err


def test_the_exit_status(capsys):
    assert run(capsys, "batch_norm", "--of", "x", RIGHT)[0] == 0
    assert run(capsys, "batch_norm", "--of", "x", WITHOUT_BESSEL)[0] == 1
    status, _, err = run(capsys, "batch_norm", "dy*inv_stdd")
    assert status == 2 and "inv_std" in err and "^" in err


def test_a_formula_may_begin_with_a_minus_sign(capsys):
    status, out, _ = run(capsys, "batch_norm", "-gain*dy", "--of", "xhat")
    assert status == 1 and "sign" in out
    assert run(capsys, "batch_norm", "--of", "bias", "--", "-(-dy).sum(0)")[0] == 0


def test_json(capsys):
    status, out, _ = run(capsys, "batch_norm", "--json", "--of", "x", WITHOUT_BESSEL)
    data = json.loads(out)
    (gradient,) = data["gradients"]
    assert (data["status"], data["outcome"], status) == (1, "wrong", 1)
    assert gradient["terms"][0]["expected"] == "-1/(N - 1)"
    assert gradient["counterexample"]["N"] == 2
    data = json.loads(run(capsys, "batch_norm", "--json", "--of", "x", RIGHT)[1])
    assert data["gradients"][0]["proved"]["every_size"] is True


def test_standard_input_and_files(capsys, tmp_path, monkeypatch):
    file = tmp_path / "backward.py"
    file.write_text(LINES)
    assert run(capsys, "softmax_nll", "--file", str(file))[0] == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RIGHT.encode())))
    assert run(capsys, "batch_norm", "-")[0] == 0


def test_a_dash_is_standard_input_for_a_file_too(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES.encode())))
    assert run(capsys, "softmax_nll", "--file", "-")[0] == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "there is no formula"),
        (b" \n", "there is no formula"),
        (b"\xff\xfe", "is not text"),
        (None, ""),
    ],
)
def test_standard_input_that_holds_no_formula(capsys, monkeypatch, content, problem):
    stream = None if content is None else io.TextIOWrapper(io.BytesIO(content))
    monkeypatch.setattr("sys.stdin", stream)
    status, out, err = run(capsys, "batch_norm", "-")
    assert status == 2 and problem in err and "standard input" in err and not out
    assert "gradform itself" not in err


SQUARES = """
from derive import Axis, Forward, Input
N = Axis("N")
class Squares(Forward):
    x = Input(N)
    y = x**2
"""


@pytest.mark.parametrize("number", ["1e39", "-1e300", "1e-300"])
def test_huge_and_tiny_numbers_are_numbers(capsys, tmp_path, number):
    """The counterexample is the one with the least to read."""
    file = tmp_path / "squares.py"
    file.write_text(SQUARES)
    status, out, err = run(capsys, str(file), f"{number}*x*dy")
    assert status == 1 and not err and out.startswith("wrong")
    assert max(map(len, out.split())) < 60


@pytest.mark.parametrize("number", ["1e400", "1e-400", "1e400/1e399"])
def test_a_number_that_torch_does_not_hold_is_marked(capsys, tmp_path, number):
    file = tmp_path / "squares.py"
    file.write_text(SQUARES)
    status, out, err = run(capsys, str(file), f"{number}*x*dy")
    assert status == 2 and not out and "float64" in err and "\n    ^" in err


def test_names_of_ones_own(capsys):
    formula = "bngain*s/n*(n*dy - dy.sum(0) - n/(n-1)*bnraw*(dy*bnraw).sum(0))"
    lets = ("--let", "bngain=gain", "--let", "bnraw=xhat", "--let", "s=inv_std")
    assert run(capsys, "batch_norm", *lets, formula)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("batch_norm",), "there is no formula"),
        (("batch_norm", "dy", "--file", "x.py"), "there are two formulas"),
        (("batch_norm", "--file", "nowhere.py"), "cannot be read"),
        (("batch_norm", __file__), f"read it with --file {__file__}"),
        (("batch_norm", "--file", "."), "cannot be read"),
        (("batch_nrm", "dy"), "did you mean batch_norm"),
        (("batch_norm", "dy", "--let", "xhat"), "is not YOURS=OURS"),
        (("batch_norm", "dy", "--let", "x = 2"), "is not YOURS=OURS"),
        (("batch_norm", ""), ""),
    ],
)
def test_mistakes_get_one_message(capsys, arguments, problem):
    status, out, err = run(capsys, *arguments)
    assert status == 2 and problem in err and not out and "Traceback" not in err


def test_large_and_binary_files_are_refused(capsys, tmp_path):
    large, binary = tmp_path / "large.py", tmp_path / "binary.py"
    large.write_text("x" * 2**20)
    binary.write_bytes(b"\xff\xfe\x00")
    for file in (large, binary):
        assert run(capsys, "batch_norm", "--file", str(file))[0] == 2


# --- choices

CHOICES = """
from sympy import Abs, Piecewise, exp, log, sqrt
from derive import Axis, Forward, Input, Scalar, Sum
N, C = Axis("N"), Axis("C")

class Rectified(Forward):
    x = Input(N)
    y = Piecewise((x, x > 0), (0, True))

class HuberLoss(Forward):
    x = Input(N)
    t = Input(N)
    delta = Scalar(1.0)
    r = x - t
    a = Abs(r)
    row = Piecewise((r**2 / 2, a <= delta), (delta * (a - delta / 2), True))
    loss = Sum(row, N) / N

class Entropy(Forward):
    z = Input(N)
    t = Input(N)
    loss = Sum(log(1 + exp(z)) - t * z, N) / N

class Normalised(Forward):
    x = Input(N, C)
    norm = sqrt(Sum(x**2, C))
    y = x / norm
"""


@pytest.fixture
def choices(tmp_path: Path) -> str:
    file = tmp_path / "choices.py"
    file.write_text(CHOICES)
    return str(file)


@pytest.mark.parametrize(
    ("name", "formula", "right"),
    [
        ("Rectified", "dy*(y > 0)", True),
        ("Rectified", "dy*(1 - (x <= 0).double())", True),
        ("Rectified", "dy*(1 + x.sign())/2*(x != 0)", True),
        ("Rectified", "dy*(x > 1)", False),
        ("Rectified", "dy*x.sign()", False),
        ("HuberLoss", "dloss/n*r.clamp(-delta, delta)", True),
        ("HuberLoss", "dloss/n*r.clamp(-1, 1)", False),
        ("HuberLoss", "dloss/n*torch.where(r <= delta, r, delta*r.sign())", False),
        ("Entropy", "dloss*(0.5*(1 + torch.tanh(z/2)) - t)/n", True),
        ("Entropy", "dloss*(0.5*(1 + torch.tanh(z)) - t)/n", False),
    ],
)
def test_choices_are_decided_case_by_case(choices, name, formula, right):
    verdict = derive.check(f"{choices}:{name}", formula)
    assert verdict.right is right, verdict
    assert "delta > 0" in str(verdict) or name != "HuberLoss" or not right


def test_a_difference_at_a_kink_alone_says_so(choices):
    verdict = derive.check(f"{choices}:Rectified", "dy*(x >= 0)")
    assert verdict.right is False and "differs only at a zero or a tie" in str(verdict)
    assert verdict.as_json()["gradients"][0]["at_kink"] is True


def test_two_edits_of_which_one_takes_an_axis_away(choices):
    """A claim that reads what the first edit changed once came to a traceback."""
    formula = "dy/norm - x*(dy*x).sum(1, keepdim=True)/norm**2"
    assert "norm" in str(derive.check(f"{choices}:Normalised", formula))


@pytest.mark.parametrize(
    ("line", "right", "wrong"),
    [
        ("h = 2 * x; y = h**2", "2*h*dy", "h*dy"),
        ("s = Sum(x, N); h = 1 / s; y = x * h", "(dy*x).sum(0)", "(dy*h).sum(0)"),
        ("h = 3 * (x**2 + 1); y = h**2", "2*h*dy", "6*h*dy"),
    ],
)
def test_the_gradient_of_another_name_for_a_value(line, right, wrong, tmp_path):
    """The closed form does without the name; whoever asks for its gradient means the forward as it
    is written.
    """
    body = "".join(f"    {part}\n" for part in ["x = Input(N)", *line.split("; ")])
    forward = derive.forward_from(forward_file(tmp_path, "Mine", body))
    assert derive.check(forward, right, of="h").right
    assert not derive.check(forward, wrong, of="h").right


# --- who is to blame


@pytest.mark.parametrize(
    ("line", "mistake", "blamed"),
    [
        ("dnorm_logits = counts * dcounts", "dnorm_logits = dcounts", "dnorm_logits"),
        ("(counts * dprobs).sum(1, keepdim=True)", "(counts * dprobs).sum(1)", "dcounts_sum_inv"),
    ],
)
def test_a_gradient_of_a_wrong_kind_is_blamed_alone(line, mistake, blamed):
    """One that is another's tensor, and one that lies in other places."""
    assert line in LINES
    verdict = derive.check("softmax_nll", LINES.replace(line, mistake))
    assert [a.name for a in verdict.answers if a.outcome == "wrong"] == [blamed]


# --- the command, once more


def test_a_formula_of_a_minus_sign_and_a_letter(capsys):
    assert run(capsys, "batch_norm", "-x")[0] == 1


def test_json_tells_what_was_not_understood(capsys):
    status, out, err = run(capsys, "batch_norm", "--json", "dy*foo")
    data = json.loads(out)
    assert (status, data["status"], data["outcome"]) == (2, 2, "not understood")
    assert data["problem"] == "there is no foo" and data["line"] == 1 and "foo" in err
    assert json.loads(run(capsys, "nowhere", "--json", "dy")[1])["line"] is None
