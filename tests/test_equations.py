"""A definition that is solved for another of its members is true: both sides are evaluated, on
definitions made for that and on all of the gallery.
"""

from functools import cache

import pytest
from evaluate import Numbers, close
from sampling import sampled
from sympy import exp, log, sqrt, tanh

from derive.gradient.closing.forms import Form
from derive.gradient.values.equations import table
from derive.gradient.values.relations import relations_of
from derive.language.declarations import Input, Scalar
from derive.language.nodes import OneHot, Sum
from derive.language.notation.forward import Forward
from derive.language.notation.library import list_forwards
from derive.language.scans import Scan
from derive.language.symbols import Axis, Tensor, axes_of
from derive.proof.proving.batch_sizes import batches_of

N, C = Axis("N"), Axis("C")


class Example(Forward):
    x = Input(N, C)
    w = Input(N, C)
    g = Input(N)
    s = Scalar(2)

    root = 1 / sqrt(g**2 + 1)
    scaled = x * root
    cubed = (1 + w**2) ** 3 * (x**2 + 1)
    growing = x * exp(w)
    squared = w**2
    length = sqrt(Sum(squared, C) / C)
    bent = 2 * tanh(x) + s
    scaled_bent = s * tanh(w) + 1
    gate = 1 / (1 + exp(-w))
    whole = 3 + 2 * exp(x + w)
    total = Sum(exp(x), C)
    level = 3 * log(total) - x
    hidden = x * log(1 + w**2)
    entrywise = log(3 + w**2)
    state = Scan(w, x, C, initial=g)
    y = (
        Sum(state**3 + scaled * cubed + growing + bent * gate * scaled_bent, C) * length
        + Sum(level * whole + hidden + entrywise, C)
        + total
    )


D = Example.definition
x, w, g = D.inputs
named = {name: statement.tensor for name, statement in D.by_name.items()}


@cache
def relations():
    """Of the example; when a test asks, for collecting tests derives nothing."""
    return relations_of(D)


# For every way, what the example is solved for by it.
SOLVED = {
    "factor": {x},
    "function": {tanh(x), exp(-w)},  # and a part, below
    "logarithm": {named["total"]},
    "reduction": {Sum.over(named["squared"], [C]), Sum.over(exp(x), [C])},
    "reduction of powers": {Sum.over(w**2, [C])},
    "state before": {Scan(w, x, C, initial=g, exclusive=True)},
    "remainder": {1 - named["gate"], 1 - 3 / named["whole"]},
    "definition": {named["scaled"], named["cubed"], named["squared"]},
}


# What it is not solved for: a root has two signs, a scalar may be 0, exp(w) is no tensor; what is
# taken entry by entry is no sum; a sum, a root, an exponential and a tanh of a name are saved.
OPEN = {
    "factor": {w, g, named["gate"]},
    "function": {tanh(w), exp(w)},
    "logarithm": {1 + w**2},  # and no part
    "definition": {named[name] for name in ("total", "root", "growing", "bent")},
}


def assert_all_hold(relations, seed):
    definition = relations.definition
    sizes = definition.sizes_from(batches_of(definition)[0])
    hots = (hot for value in relations.values for hot in value.expression.atoms(OneHot))
    indexed = {hot.operand.name: hot.axis for hot in hots if isinstance(hot.operand, Tensor)}
    numbers = Numbers(sizes, seed, relations.values, indexed)
    for name, found in relations.solved.items():
        for member, (equal, value) in found.items():
            axes = definition.in_order(axes_of(member) | axes_of(equal))
            sides = numbers.entries(member, axes), numbers.entries(equal, axes)
            assert all(map(close, *sides)), f"{name}: {member} = {equal}, by {value.tensor}"


def test_every_way_has_what_it_solves():
    assert SOLVED.keys() == table.keys()
    solved = {name: members.keys() for name, members in relations().solved.items()}
    for name, members in SOLVED.items():
        assert members <= solved[name], name
    assert relations().with_parts(exp(x + w)) in solved["function"]
    for name, members in OPEN.items():
        assert not members & solved[name], name
    assert not {part.tensor for part in relations().parts} & solved["logarithm"]


def test_what_lies_along_more_axes_is_used_beside_an_exponential_that_does():
    total, of = named["total"], Tensor("of", [N], role="adjoint")
    form = Form("logarithm", "", total, exp(x - w))
    tried, _ = form.tried([(of, exp(x) / total), (of, exp(g) / total)])
    assert [e for _, e in tried] == [exp(w), exp(g) / total]


def test_a_function_that_has_a_name_is_told_by_what_is_made_of_it():
    class Named(Forward):
        x = Input(N, C)
        e = exp(-x)
        s = 1 + e
        y = (e + x) / s

    relations = relations_of(Named.definition)
    (x,), s = Named.definition.inputs, Named.definition.by_name["s"].tensor
    assert relations.solved["function"][exp(-x)][0] == s - 1
    assert_all_hold(relations, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_member_is_what_it_is_said_to_equal(seed):
    assert_all_hold(relations(), seed)


@pytest.mark.parametrize(
    "forward",
    sampled(list_forwards(), lambda f: f.definition.snake),
    ids=lambda f: f.definition.snake,
)
def test_in_the_gallery_too(forward):
    assert_all_hold(relations_of(forward.definition), 1)
