"""What the forward computes is proved exactly, line by line, whatever has rewritten the lines: a
stage that goes wrong is refused by the proof, and not by a comparison of floating point numbers.
"""

from dataclasses import replace

import pytest
from evaluate import Numbers, close
from forwards import HEAD

import derive.gradient.closing.closed_form as closed_form
import derive.gradient.closing.drafting as drafting
import derive.gradient.closing.simplifying as simplifying
import derive.proof.proving.forward_plan as plan
from derive import Axis, forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.stages import Arrangement, Move, stages
from derive.gradient.values.naming import NamedValue
from derive.language.errors import UnprovedError
from derive.language.nodes import Peak
from derive.proof.proving.line_proof import PROVED, STEP, UNPROVED, WRITTEN, proved_lines
from derive.proof.proving.proof import prove

SIZES = {Axis("N"): 3, Axis("C"): 4}
X = "x = Input(N, C)\n"
PROBS = X + "p = exp(x) / Sum(exp(x), C)\n"
PICKED = (
    PROBS + "labels = Label(N)\nown = Sum(OneHot(labels, C) * p, C)\nloss = -Sum(log(own), N) / N"
)
NAMED = (
    X + "labels = Label(N)\ne = exp(x - Max(x, C))\np = e / Sum(e, C)\n"
    "loss = -Sum(OneHot(labels, C) * log(p), N, C) / N"
)
CENTRED = (
    X + "mean = Sum(x, N) / N\ndiff = x - mean\nvar = Sum(diff**2, N) / N\n"
    "y = diff * (var + 1) ** Rational(-1, 2)"
)


@pytest.fixture(scope="module")
def form(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")

    def of(body):
        file = folder / "lines.py"
        lines = "".join(f"    {line}\n" for line in body.split("\n"))
        file.write_text(f"{HEAD}\n\nclass Lines(Forward):\n{lines}")
        return closed_form.close(derive_chain(forward_from(file).definition))

    return of


def doubled(result):
    """A wrong factor: before an expression, or in the last of several lines."""
    if isinstance(result, NamedValue):
        return replace(result, expression=2 * result.expression)
    if isinstance(result, list):
        *others, last = result
        return [*others, doubled(last)]
    if isinstance(result, tuple):  # a tensor and its expression, or lines and what they stand for
        return (result[0], 2 * result[1]) if result[1:] != ({},) else (doubled(result[0]), {})
    return 2 * result


def broken(monkeypatch, module, stage):
    right = getattr(module, stage)
    monkeypatch.setattr(module, stage, lambda *args: doubled(right(*args)))


def outputs(form, values):
    """The output by these lines, on numbers."""
    folded: dict[str, NamedValue] = {}
    for value in values:
        before = folded.get(value.tensor.name, value)
        inside = {} if before is value else {value.tensor: before.expression}
        folded[value.tensor.name] = NamedValue(value.tensor, value.expression.xreplace(inside))
    numbers = Numbers(SIZES, 1, folded.values(), {"labels": Axis("C")})
    for tensor in form.definition.inputs:
        numbers.entries(tensor, tensor.home)
    return numbers.entries(form.definition.output, form.definition.output.home)


# The stages of the plan, each with forwards that it changes.
STAGES = [
    ("_stable", PROBS),
    ("_stable", PICKED),
    ("_stable", NAMED),
    ("_inlined", PICKED),
    ("_centred", CENTRED),
    ("_with_its_readers", PROBS),
    ("_needed", PROBS),
]


@pytest.mark.parametrize("stage, body", STAGES)
def test_a_stage_of_the_forward_that_goes_wrong_is_refused(stage, body, form, monkeypatch):
    right, met = form(body), []
    broken(monkeypatch, plan, stage)

    def noted(values, closed):
        met.append(proved_lines(values, closed))
        return met[-1]

    monkeypatch.setattr(plan, "proved_lines", noted)
    try:
        lines = plan.forward_plan(right)
    except UnprovedError as error:
        assert "nothing was emitted" in str(error)
    else:
        statements = (NamedValue(s.tensor, s.expression) for s in right.definition.statements)
        assert all(map(close, outputs(right, lines), outputs(right, statements)))
    assert UNPROVED in {line.how for line in met[0]}


def test_what_is_wrong_even_as_it_is_written_is_not_emitted(form, monkeypatch):
    right = form(NAMED)
    broken(monkeypatch, plan, "_stable")
    broken(monkeypatch, plan, "_as_written")
    with pytest.raises(
        UnprovedError, match=r"the computed line .* is not equal to the statement as written"
    ):
        plan.forward_plan(right)


def test_a_line_that_is_read_before_it_is_computed_or_never_is_unproved(form):
    right = form(CENTRED)
    lines = plan.forward_plan(right)
    assert {line.how for line in lines} == {WRITTEN, PROVED, STEP}
    assert [line.tensor.name for line in lines].count("diff") == 2
    swapped = proved_lines([*lines[1:2], lines[0], *lines[2:]], right)
    lacking = proved_lines(lines[1:], right)
    assert swapped[0].how == UNPROVED and lacking[0].how == UNPROVED


def test_a_part_that_the_backward_reads_is_what_the_gradients_took_it_for(form):
    """Although the output is right: here a factor moves from one part to the other."""
    right = form(X + "y = x / sqrt(Sum(x**2, C))")
    lines = list(plan.forward_plan(right))
    (saved,) = (t for t in right.saved if t.role == "statement" and t != right.definition.output)
    at = [line.tensor for line in lines].index(saved)
    moved = {saved: saved / 2}
    wrong = [replace(line, expression=line.expression.xreplace(moved)) for line in lines]
    wrong[at] = replace(lines[at], expression=2 * lines[at].expression)
    how = {line.tensor: line.how for line in proved_lines(wrong, right)}
    assert how[saved] == UNPROVED and how[right.definition.output] != UNPROVED


def test_the_largest_of_something_else_is_not_what_was_written(form):
    right = form(X + "m = Max(x, C)\ny = exp(x - m)")
    x, *_ = right.definition.inputs
    for operand, how in ((x, WRITTEN), (2 * x, UNPROVED)):
        peak = NamedValue(right.definition.by_name["m"].tensor, Peak.over(operand, [Axis("C")]))
        (line,) = proved_lines([peak], right)
        assert line.how == how


def wrong(found: Arrangement) -> Arrangement:
    return found.on(doubled(found.pairs))


@pytest.mark.parametrize("stage", [*stages, "factored_out", "inserted"])
def test_a_stage_of_the_closed_form_that_goes_wrong_is_refused(stage, form, monkeypatch):
    chain = form(NAMED).chain
    prove(closed_form.close(chain))
    if stage in stages:
        right = stages[stage]
        monkeypatch.setitem(stages, stage, Move(lambda a: wrong(right.make(a)), unasked=True))
    else:
        broken(monkeypatch, drafting if stage == "inserted" else simplifying, stage)
    with pytest.raises(UnprovedError, match=r"d\w+ is unproved"):
        prove(closed_form.close(chain))
