"""Third derivatives: derived, proved, and shown."""

import pytest
from sampling import every

from codegen.commands.cli import gradform
from derive.derivation import derive
from derive.gradient.orders.second import second_order
from derive.gradient.orders.third import third_order
from derive.language.formulas.text import formula
from derive.language.notation.library import forward_from

# One that saves its output, one that saves other values and has options, one with labels and a
# shorter pair without options, one with an addition at an index.
NAMES = ("softmax", "layer_norm", "nll", "embedding")


@pytest.mark.parametrize("name", every(2, NAMES))
def test_it_is_derived_and_proved_for_every_size(name):
    third = third_order(second_order(derive(forward_from(name))))
    assert third.every_size
    for again in third.programs:
        at_hand = {t.name for t in again.program.proved.definition.inputs}
        assert set(again.program.results) <= at_hand
        assert {v.name for v in again.vectors.values()} <= at_hand


def test_behind_the_pullback_of_a_softmax_it_is_the_textbooks():
    third = third_order(second_order(derive(forward_from("softmax"))))
    lines = {s.tensor.name: formula(s.expression) for s in third.of_pullback.program.statements}
    assert lines["c_c_y"] == "dc_y_minus_sum_c_y_y - sum_dc_y_minus_sum_c_y_y*y"


def test_it_is_shown(capsys):
    assert gradform(["show", "softmax", "--order", "3"]) == 0
    text = capsys.readouterr().out
    assert "Third order: double backward, differentiated" in text
    assert "Third order: the pullback, differentiated" in text
    assert "c_v_x" in text and "Exactly zero difference" in text
    assert gradform(["show", "softmax", "--order", "3", "--of", "x"]) == 2
    assert "as a whole" in capsys.readouterr().err
