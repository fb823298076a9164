"""The same mathematics in other spellings comes out as good. Here a sample of the forwards stands
for them, ``make test-thorough`` has more, and ``make respellings`` all.
"""

import pytest
from respelling import outcome, respelled, spellings, verdict, written

from derive.notation.library import forward_from

SECONDS = 60
FORWARDS = ("sigmoid", "softmax", "log_softmax", "logsumexp", "l2_normalize", "rms_norm")
MORE = ("silu", "masked_softmax", "layer_norm", "softmax_nll", "bce_with_logits")
# What is dearer than it might be: safe and proved all the same.
DEARER = {
    ("log_softmax", "all named"),
    ("logsumexp", "base 2"),
}


def thorough(*names):
    return [pytest.param(name, marks=pytest.mark.thorough) for name in names]


@pytest.mark.parametrize("forward", [*FORWARDS, *thorough(*MORE)])
def test_a_respelled_forward_comes_out_as_good(forward):
    definition = forward_from(forward).definition
    usual = outcome(definition, SECONDS)
    assert usual.every_size and usual.risk == 0, str(usual)
    dearer = set()
    for spelling in spellings:
        other = written(definition, spelling, SECONDS)
        said = "" if other is None else verdict(usual, other, spelling.same)
        assert said.split(" ")[0] in ("", "cheaper", "dearer"), f"{spelling.name}: {said}, {other}"
        if said.startswith("dearer"):
            dearer.add((forward, spelling.name))
    assert dearer == {pair for pair in DEARER if pair[0] == forward}


def test_the_sample_meets_every_spelling():
    definitions = [forward_from(name).definition for name in FORWARDS]
    for spelling in spellings:
        assert any(respelled(definition, spelling) for definition in definitions), spelling.name


@pytest.mark.parametrize("forward", ["gru_cell", *thorough("lstm_cell", "biased_attention")])
def test_a_block_in_one_line_is_as_safe_and_proved(forward):
    """Its parts are what the usual spelling has names for."""
    definition = forward_from(forward).definition
    inlined = next(spelling for spelling in spellings if spelling.name == "inlined")
    other = written(definition, inlined, SECONDS)
    assert other.every_size and other.risk == 0, str(other)
