"""The same mathematics in another spelling costs the same and is proved as far; its relatives are
as safe. ``make respellings`` prints the table of all; here is what holds.
"""

from itertools import cycle, product

import pytest
from evaluate import Numbers, close
from respelling import Outcome, outcome, respelled, spellings, verdict, written
from respelling.writing import Pen

from derive import forward_from
from derive.definition import Definition
from derive.library import list_forwards
from derive.nodes import OneHot
from derive.parts import Value
from derive.symbols import Tensor

SECONDS = 60
QUICK = (
    "elu",
    "gelu",
    "hinge",
    "kl_div",
    "l1",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsumexp",
    "mish",
    "mse",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
)
# What does not come out as good yet, by cause: a forward, and the spellings in which it differs.
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "a line that is no part of what it is written in costs an operation more": {
        "hinge": ("inlined",),
        "silu": ("inlined",),
    },
    "a sum with weights of any sign may be 0, and is scaled in the backward": {
        "log_softmax": ("weighted",),
        "logsumexp": ("weighted",),
    },
    "a divisor of the forward's is not known with what is in it written out": {
        "silu": ("weighted",),
    },
    "1 - 2/(2 + exp(x)) is no share of a whole": {
        "mish": ("two for one",),
    },
}
WAITING = {
    (name, spelling): cause
    for cause, where in KNOWN.items()
    for name, others in where.items()
    for spelling in others
}
usual: dict[str, Outcome] = {}


def cases(names, chosen=spellings):
    for name, spelling in product(names, chosen):
        if spelling.applies(forward_from(name).definition):
            cause = WAITING.get((name, spelling.name))
            marks = [pytest.mark.xfail(reason=cause, strict=True)] if cause else []
            yield pytest.param(name, spelling, marks=marks, id=f"{name}-{spelling.name}")


def check(name, spelling):
    definition = forward_from(name).definition
    other = written(definition, spelling, SECONDS)
    if name not in usual:
        usual[name] = outcome(definition, SECONDS)
    assert not verdict(usual[name], other, spelling.same), (usual[name], other)


@pytest.mark.parametrize("name, spelling", [*cases(QUICK)])
def test_a_forward_in_another_spelling_comes_out_as_good(name, spelling):
    check(name, spelling)


REST = [f.definition.snake for f in list_forwards() if f.definition.snake not in QUICK]


@pytest.mark.respellings
@pytest.mark.parametrize("name, spelling", [*cases(REST)])
def test_so_do_all_others(name, spelling):
    check(name, spelling)


SAMPLE = (
    "batch_norm",
    "bce_with_logits",
    "causal_attention",
    "cross_entropy",
    "group_norm",
    "gelu",
)


@pytest.mark.parametrize("name, spelling", [*cases(SAMPLE, [s for s in spellings if s.same])])
def test_what_is_called_the_same_is_the_same(name, spelling):
    """Otherwise the table would compare different functions."""
    definition = forward_from(name).definition
    other = respelled(definition, spelling).definition
    assert [s.expression for s in other.statements] != [s.expression for s in definition.statements]
    for one, same in zip(*outputs(definition, other), strict=True):
        assert close(one, same)


def outputs(one: Definition, other: Definition):
    """The entries of the outputs of both, for the same random inputs."""
    first, second = map(numbers_for, (one, other))
    for a, b in zip(given(one), given(other), strict=True):
        for i in product(*(range(first.sizes[axis]) for axis in a.home)):
            second.known[b.name, i] = first.entry(a, i)
    return [n.entries(d.output, d.output.home) for n, d in ((first, one), (second, other))]


def given(definition: Definition):
    return [*definition.inputs, *(t for t, _ in definition.scalars)]


def numbers_for(definition: Definition):
    sizes = dict(zip(definition.independent_axes, cycle((2, 3)), strict=False))
    lines = [Value(s.tensor, s.expression) for s in definition.statements]
    return Numbers(definition.sizes_from(sizes), definitions=lines, indexed=labelled(definition))


def labelled(definition: Definition):
    """The axis that each label indexes, by its name."""
    hots = (hot for s in definition.statements for hot in s.expression.atoms(OneHot))
    return {hot.operand.name: hot.axis for hot in hots if isinstance(hot.operand, Tensor)}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_pen_that_changes_nothing_writes_the_same_forward(name):
    definition = forward_from(name).definition
    pen = Pen(definition)
    for statement in definition.statements:
        pen.state(statement, pen.line(statement))
    again = pen.finished().definition
    for part in ("inputs", "scalars", "axes", "twins", "flattened", "optional", "ignoring"):
        assert getattr(again, part) == getattr(definition, part)
    for line, same in zip(definition.statements, again.statements, strict=True):
        assert (line.tensor, line.expression) == (same.tensor, same.expression)
    assert again.demands == definition.demands and again.broadcast == definition.broadcast
