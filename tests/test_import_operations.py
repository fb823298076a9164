"""What every operation of torch means: one line for each, imported and compared with torch.

The lines are in ``torch_code/one_liners.py``. A few are imported here, all of them where that is
asked for (``make test-thorough``).
"""

import functools
import sys
from pathlib import Path

import pytest

from codegen.importing.driver import imported
from codegen.importing.rules import rules
from derive.language.errors import QuestionError
from derive.language.torch_ops import table

sys.path.append(str(Path(__file__).with_name("torch_code")))

from one_liners import READ, SAID

SOME = 8  # of so many lines one is imported in the suite


@pytest.fixture
def reached(monkeypatch):
    """The operations whose rules are asked."""
    found = set()

    def watched(name, rule):
        @functools.wraps(rule)
        def asked(*values, **named):
            found.add(name)
            return rule(*values, **named)

        return asked

    for name, rule in list(rules.items()):
        monkeypatch.setitem(rules, name, watched(name, rule))
    return found


def sampled(names):
    """As parameters of a test: one of several, and the rest where all are asked for."""
    return [
        pytest.param(name, marks=[] if i % SOME == 0 else [pytest.mark.thorough])
        for i, name in enumerate(names)
    ]


def test_every_operation_has_a_line():
    assert rules.keys() <= READ.keys() | SAID.keys() | table.keys() | {"float_power"}


@pytest.mark.parametrize("name", sampled(READ))
def test_an_operation_is_what_torch_computes(name, reached):
    axes, function = READ[name]
    agreement = imported(function, axes).agreement
    assert name in reached
    assert agreement.values <= 1e-12 and agreement.gradients <= 1e-10


@pytest.mark.parametrize("name", sampled(SAID))
def test_an_operation_that_no_forward_can_do_says_why(name):
    said, axes, function = SAID[name]
    with pytest.raises(QuestionError, match=said) as error:
        imported(function, axes)
    assert error.value.remedy
