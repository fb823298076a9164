"""A long equality is proved by the parts that its sides share, and a wrong one is not."""

import pytest
from forwards import forward_file
from sympy import Rational, exp, log, sqrt, tanh

from derive import forward_from
from derive.language.nodes import Max, Sum
from derive.language.symbols import Axis
from derive.proof.proving.alike import by_parts, shown_by_parts
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.claim import Batch, Equality, holds_for_every_size

BODY = "    x = Input(N, D)\n    w = Input(D, C)\n    y = Sum(x * w, D)\n"
N, C, D = Axis("N"), Axis("C"), Axis("D")


@pytest.fixture(scope="module")
def definition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alike")
    return forward_from(forward_file(folder, "Linear", BODY)).definition


def expressions(definition):
    """The logarithm of a softmax of a normalised product, and the same with a quotient."""
    x, w = definition.inputs
    product = Sum(x * w, D)
    centred = product - Sum(product, N) / N
    z = tanh(centred / sqrt(1 + Sum(centred**2, N) / N))
    shifted = z - Max(z, C)
    return shifted - log(Sum(exp(shifted), C)), log(exp(shifted) / Sum(exp(shifted), C))


def claimed(definition, left, right):
    batches = [Batch(definition, sizes) for sizes in batches_of(definition)]
    return Equality(definition, (N, C), left, right), batches


def test_what_both_sides_share_stands_under_one_name(definition):
    left, right = expressions(definition)
    claim, batches = claimed(definition, 3 * left, left + 2 * right)
    claims = by_parts(claim, batches)
    assert not any(e.has(tanh, Sum, Max) for c in claims[-1:] for e in (c.left, c.right))
    found = shown_by_parts(claim, batches)
    assert [each for each, _ in found] == claims
    assert all(holds_for_every_size(*each) for each in found)


def test_multiples_and_reciprocals_are_of_one_kind(definition):
    (y,) = (s.tensor for s in definition.statements)
    left, right = tanh(exp(-tanh(y))) - tanh(tanh(2 * y)), tanh(exp(tanh(-y))) + tanh(-tanh(2 * y))
    claim, batches = claimed(definition, left * exp(tanh(y)), right * exp(tanh(y)))
    named = [s.expression for s in by_parts(claim, batches)[-1].definition.statements]
    assert len([e for e in named if isinstance(e, exp)]) == 1
    assert shown_by_parts(claim, batches) is not None


@pytest.mark.parametrize("factor", [2, 1 + 1 / (N + 1)])
def test_what_differs_is_not_shown(definition, factor):
    left, right = expressions(definition)
    claim, batches = claimed(definition, left, factor * right)
    assert shown_by_parts(claim, batches) is None


def test_what_only_has_the_same_numbers_is_not_shown(definition):
    (y,) = (s.tensor for s in definition.statements)
    nearly = tanh(y) * (1 + Rational(1, 10**12))
    claim, batches = claimed(definition, exp(tanh(y)), exp(nearly))
    assert len(by_parts(claim, batches)) == 1  # the parts are equal, so the whole is
    assert shown_by_parts(claim, batches) is None
