"""The chain is proved step by step: a step that is wrong in any of its forms is refused by name."""

from dataclasses import replace

import pytest
from sympy import tanh

import derive
from derive import Axis, Forward, Input, Label, Max, OneHot, Rename, Sum
from derive.gradient.chain.chain import Chain, derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.errors import UnprovedError
from derive.language.nodes import renamed
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.chain_proof import shown_adjoint
from derive.proof.proving.claim import Batch
from derive.proof.proving.proof import prove

N, C, M = Axis("N"), Axis("C"), Axis("M")


class Mixed(Forward):
    """Every way in which a gradient travels: broadcast, summed, routed, picked, met twice."""

    x = Input(N, C)
    w = Input(C)
    label = Label(N)

    h = tanh(w * x)
    peak = Max(h, C)
    picked = Sum(OneHot(label, C) * h, C)
    pairs = Sum(h * Rename(h, N, M), C)
    near = Sum(pairs**3, M)
    y = near + peak * picked


class Swapped(Forward):
    """A tensor met along its own two axes the other way round."""

    x = Input(N, M)
    square = x**2
    y = Rename(Rename(Rename(square, N, C), M, N), C, M)


def chain_of(forward) -> Chain:
    return derive_chain(forward.definition)


def proved(chain: Chain):
    batches = [Batch(chain.definition, sizes) for sizes in batches_of(chain.definition)]
    return [shown_adjoint(chain, adjoint, batches) for adjoint in chain.adjoints]


def with_contribution(chain: Chain, adjoint, contribution, wrong) -> Chain:
    """The chain with one contribution replaced, or without it where ``wrong`` is None."""
    others = (wrong if c is contribution else c for c in adjoint.contributions)
    changed = replace(adjoint, contributions=tuple(c for c in others if c is not None))
    adjoints = tuple(changed if a is adjoint else a for a in chain.adjoints)
    return Chain(chain.definition, chain.upstreams, adjoints)


FORMS = {
    "the step": lambda c: replace(c, expression=2 * c.expression),
    "the step as the code has it": lambda c: replace(c, through_outer=-c.through_outer),
    "another statement's": lambda c: replace(c, via="y" if c.via != "y" else "h"),
    "none at all": lambda c: None,
}


@pytest.mark.parametrize("forward", [Mixed, Swapped], ids=lambda f: f.__name__)
def test_every_step_is_proved_for_every_size(forward):
    assert all(shown.decide() for shown in proved(chain_of(forward)))


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_step_is_refused_by_name(form):
    chain = chain_of(Mixed)
    for adjoint in chain.adjoints:
        for contribution in adjoint.contributions:
            wrong = with_contribution(chain, adjoint, contribution, FORMS[form](contribution))
            with pytest.raises(UnprovedError, match=f"d{adjoint.of.name} is unproved in the step"):
                proved(wrong)


def test_a_transposed_step_is_refused():
    chain = chain_of(Swapped)
    for adjoint in chain.adjoints[:1]:
        (contribution,) = adjoint.contributions
        swapped = renamed(contribution.expression, {N: M, M: N})
        assert swapped != contribution.expression
        wrong = replace(contribution, expression=swapped, through_outer=swapped)
        with pytest.raises(UnprovedError):
            proved(with_contribution(chain, adjoint, contribution, wrong))


def test_what_is_emitted_says_that_the_chain_was_proved():
    proved = derive.derive("tanh")
    assert "; every step of the chain rule as well" in proved.summary
    assert [str(gradient.tensor) for gradient in proved.adjoints] == ["dx"]


def test_nothing_is_emitted_where_a_step_is_wrong():
    form = close(chain_of(Mixed))
    adjoint = form.chain.adjoints[0]
    contribution = adjoint.contributions[0]
    wrong = with_contribution(form.chain, adjoint, contribution, FORMS["the step"](contribution))
    with pytest.raises(UnprovedError, match="nothing was emitted"):
        prove(replace(form, chain=wrong))
