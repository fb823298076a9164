"""Every recorded step is true: before and after are evaluated on random numbers and are equal."""

import pytest
from evaluate import Numbers, close
from forwards import told_apart
from sampling import sampled
from sympy import exp, log

import derive
from derive import Axis, Forward, Input, Kept, Label, OneHot, Sum
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close as close_form
from derive.language.symbols import Tensor, axes_of
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.proved import Proved
from derive.show.document import Derivation
from derive.show.sections import CLOSED_FORM, RESULT, document_of

N, C = Axis("N"), Axis("C")

FORWARDS = told_apart()


def _numbers(form, sizes, seed):
    definition = form.definition
    sizes = definition.sizes_from(sizes)
    indexed = {
        hot.operand.name: hot.axis
        for s in definition.statements
        for hot in s.expression.atoms(derive.OneHot)
        if isinstance(hot.operand, Tensor)
    }
    return Numbers(sizes, seed, [*form.relations.values, *form.statements], indexed)


@pytest.mark.parametrize("name", sampled(FORWARDS))
def test_every_step_is_true(name, derived):
    form = derived(name).closed_form
    steps = [*form.steps, *(step for fact in form.facts for step in fact.steps)]
    closed_at_once = all(a.expression == form.closed[a.name] for a in form.chain.adjoints)
    assert steps or closed_at_once
    assert all(step.rule and step.why for step in steps)
    for seed, sizes in enumerate(batches_of(form.definition)[:2]):
        numbers = _numbers(form, sizes, seed)
        # a step may speak of any gradient: its own chain rule
        for adjoint in (*form.spelled.adjoints, *form.chain.adjoints):
            if adjoint.name not in numbers.definitions:
                numbers.definitions[adjoint.name] = adjoint.expression
        for step in steps:
            axes = form.definition.in_order(axes_of(step.before) | axes_of(step.after))
            before, after = numbers.entries(step.before, axes), numbers.entries(step.after, axes)
            assert all(map(close, before, after)), str(step)


def test_facts_about_the_forward_are_found_and_not_listed(proved):
    facts = {str(fact) for p in proved.values() for fact in p.closed_form.facts}
    assert {"Sum(xhat, N) = 0", "Sum(probs, C) = 1"} <= facts


def test_the_gradient_of_the_row_maximum_is_exactly_zero(proved):
    steps = [s for s in proved["softmax_nll"].closed_form.steps if s.target.name == "dlogit_maxes"]
    assert steps[-1].after == 0


class MaskedPick(Forward):
    """The gradient of what is picked has a name, which no line of the forward has."""

    z = Input(N, C)
    labels = Label(N, ignored=-100)
    logprobs = z - log(Sum(exp(z), C))
    picked = -Sum(OneHot(labels, C) * logprobs, C)
    loss = Sum(picked, N) / Sum(Kept(labels), N)


def test_what_a_step_reads_is_derived_before_it():
    """And in the closed form it has a shape."""
    proved = Proved(close_form(derive_chain(MaskedPick.definition)), (), ())
    result, steps = document_of(proved, titles=(RESULT, CLOSED_FORM)).sections
    shapes = {line.left.name: line.shape for line in result.blocks[0].lines}
    assert shapes == {"d_logprobs_at_labels": "(N,)", "dz": "(N, C)"}
    derived = [b.start.left.name for b in steps.blocks if isinstance(b, Derivation)]
    assert derived == ["d_logprobs_at_labels", "dz"]
    read = next(i for i, b in enumerate(steps.blocks) if "dlogprobs" in str(b))
    assert read > [isinstance(b, Derivation) for b in steps.blocks].index(True)
