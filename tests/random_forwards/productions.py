"""What a line of a random forward may be: a table of productions with their weights.

A production receives the forward while it is made and returns the expression of its last line, or
None where nothing fits; lines before that one it states itself.
"""

from __future__ import annotations

from random_forwards import calling, parts, picking, shaping
from random_forwards.combining import (
    choice_of,
    combined,
    function_of,
    positive,
    reduced,
    reduced_some,
    squashed,
)
from random_forwards.parts import Part, number, size, summed


def pointwise(m) -> Part:
    return function_of(m, m.tensor())


def choice(m) -> Part:
    return choice_of(m, m.tensor())


def two_together(m) -> Part:
    return combined(m, m.operand(), m.operand())


def with_a_number(m) -> Part:
    return m.chance.choice((lambda a: a * m.scalar(), lambda a: a + m.scalar()))(m.operand())


def reduction(m) -> Part | None:
    a = m.operand(least=1)
    return a and reduced_some(m, a, 0.7)


def largest(m) -> Part | None:
    a = m.operand(least=1)
    return a and summed(a, [m.chance.choice(sorted(a.axes))], "Max")


def below_the_largest(m) -> Part | None:
    a = m.operand(least=1)
    return a and a - summed(a, [m.chance.choice(sorted(a.axes))], "Max")


def contraction(m) -> Part | None:
    a = m.operand(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    return summed(a * m.operand(having=[axis]), [axis])


def centred(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    return a - summed(a, [axis]) / size(axis)


def standardized(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    diff = m.state(a - summed(a, [axis]) / size(axis))
    count = size(axis) + number("1") if m.chance.random() < 0.2 else size(axis)
    var = m.state(summed(diff.power("2", 2), [axis]) / count)
    eps = m.scalar()
    if m.chance.random() < 0.5:
        return diff / Part(f"sqrt({var.text} + {eps.text})", var.axes, 0.3, 7.0)
    return diff * Part(f"({var.text} + {eps.text})**Rational(-1, 2)", var.axes, 0.1, 3, parts.POWER)


def softmax(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    if m.chance.random() < 0.3:
        a = m.state(a - summed(a, [axis], "Max"))
    elif a.high > 3.5:
        a = m.state(squashed(m, a))
    e = Part(f"exp({a.text})", a.axes, 0.001, 35.0)
    if m.chance.random() < 0.6:
        e = m.state(e)
    share = Part(f"{e.text} / Sum({e.text}, {axis})", a.axes, 0.0, 1.0, parts.PRODUCT)
    way = m.chance.random()
    if way < 0.2:
        return Part(f"log(Sum({e.text}, {axis}))", a.axes - {axis}, -3.0, 6.0)
    if way < 0.4:
        share = m.state(share)
        return Part(f"log({share.text})", a.axes, -8.0, 0.0)
    return share


def gated(m) -> Part | None:
    """A tensor times the sigmoid of one."""
    a = m.tensor()
    gate = m.tensor(having=a.axes)
    if gate.largest > 8:
        return None
    share = Part(f"1 / (1 + exp(-{gate.text}))", gate.axes, 0.0, 1.0, parts.PRODUCT)
    return a * (m.state(share) if m.chance.random() < 0.6 else share)


def brought_back(m) -> Part | None:
    """A number made of a tensor, beside the tensor."""
    a = m.tensor(least=1)
    if a is None:
        return None
    total = reduced(m, a, a.axes)
    if m.chance.random() < 0.6:
        total = m.state(total)
    return a * total if m.chance.random() < 0.5 else a / positive(m, total)


def sum_of_sums(m) -> Part | None:
    a, b = m.tensor(least=1), m.tensor(least=1)
    if a is None:
        return None
    one, other = reduced_some(m, a, 0.6), reduced_some(m, b, 0.6)
    return combined(m, one, other)


PRODUCTIONS = (
    (pointwise, 10),
    (choice, 5),
    (picking.choices_of_one_condition, 3),
    (gated, 3),
    (two_together, 12),
    (with_a_number, 3),
    (reduction, 6),
    (largest, 4),
    (below_the_largest, 3),
    (contraction, 8),
    (centred, 4),
    (standardized, 4),
    (softmax, 7),
    (picking.causal, 3),
    (picking.masked, 4),
    (picking.pick, 7),
    (picking.likelihood, 4),
    (picking.scatter, 6),
    (picking.segments, 4),
    (picking.kept, 6),
    (shaping.pairs, 6),
    (shaping.swapped, 4),
    (shaping.renamed, 3),
    (shaping.flattened, 6),
    (shaping.unflattened, 5),
    (shaping.split, 3),
    (shaping.side_by_side, 4),
    (shaping.shifted, 3),
    (brought_back, 5),
    (sum_of_sums, 4),
    (calling.block, 30),
    (calling.of_the_gallery, 4),
)
