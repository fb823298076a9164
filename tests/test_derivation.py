"""The stages of the derivation, and the closed forms of the project's own two."""

import re

import derive
from derive import derivation
from derive.derivation import stages
from derive.language.formulas.text import formula
from derive.language.nodes import Max, Sum


def test_the_docstring_lists_the_stages_that_are_run():
    listed = re.findall(r"^    (\w+)\s+(.+?)\s+-> (\w+)", derivation.__doc__, re.M)
    assert [name for name, _, _ in listed] == ["notation", "chain", "closing", "proving"]
    for (name, given, result), (stage, takes, gives) in zip(listed[1:], stages, strict=True):
        assert f".{name}." in stage.__module__
        assert (given, result) == (takes.__name__, gives.__name__)


def test_every_stage_returns_its_record(proved):
    value = derive.forward_from("softmax_nll").definition
    for stage, takes, gives in stages:
        assert isinstance(value, takes)
        value = stage(value)
        assert isinstance(value, gives)


def statements(p):
    return {s.tensor.name: formula(s.expression) for s in p.closed_form.statements}


def test_batch_norm_in_closed_form(proved):
    p = proved["batch_norm"]
    assert statements(p) == {
        "dgain": "Sum(dy*xhat, N)",
        "dbias": "Sum(dy, N)",
        "dx": "gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1))",
    }
    assert [t.name for t in p.closed_form.saved] == ["gain", "inv_std", "xhat"]
    sums = {n for s in p.closed_form.statements for n in s.expression.atoms(Sum, Max)}
    assert len(sums) == 2  # two reductions over the batch in all


def test_softmax_nll_in_closed_form(proved):
    p = proved["softmax_nll"]
    assert statements(p) == {"dlogits": "dloss*(probs - OneHot(labels, C))/N"}
    assert [t.name for t in p.closed_form.saved] == ["labels", "probs"]


def test_every_rewriting_is_recorded_with_rule_before_after_and_reason(proved):
    for p in proved.values():
        targets = {step.target.name for step in p.closed_form.steps}
        assert {f"d{t.name}" for t in p.definition.differentiable} & targets
        for step in p.closed_form.steps:
            assert step.before != step.after and step.rule and step.why


def test_progress_is_told_in_words():
    told = []
    derive.derive("softmax_nll", told.append)
    assert told[0] == "differentiating" and "proving dlogits" in told


def test_formulas_can_be_pasted_back(proved):
    """The text of a formula is in the notation: evaluated as Python, it is the expression again."""
    names = vars(derive) | {"sqrt": __import__("sympy").sqrt}
    for p in proved.values():
        definition, form = p.definition, p.closed_form
        scope = dict(names) | {a.name: a for a in definition.axes}
        scope |= {t.name: t for t in definition.inputs} | {
            v.tensor.name: v.tensor for v in form.relations.values
        }
        scope |= {s.tensor.name: s.tensor for s in form.statements}
        scope |= {t.name: t for t in form.chain.upstreams}
        for statement in form.statements:
            again = eval(formula(statement.expression), {"__builtins__": {}}, scope)  # text of ours
            assert again - statement.expression == 0
