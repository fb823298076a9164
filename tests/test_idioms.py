"""Idioms that people write (``idioms.py``), at each door beside what torch computes."""

import pytest
from both_doors import by_trace
from idioms import IDIOMS, REFUSED

from derive.language.errors import QuestionError

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of autocast
FIRST = 6  # line of the function's file: its head
SOME = 2  # of the spellings of an idiom are read in `make test-all`, one of them in the suite


def left_to(k):
    return [] if k == 0 else [pytest.mark.slow if k < SOME else pytest.mark.thorough]


def lines_of(idioms):
    return [
        pytest.param(idiom.axes, text, id=f"{name} {k}", marks=left_to(k))
        for name, idiom in idioms.items()
        for k, text in enumerate(idiom.texts)
    ]


@pytest.mark.parametrize("axes, text", lines_of(IDIOMS))
def test_an_idiom_is_imported_with_its_gradients(axes, text, tmp_path):
    agreement = by_trace(axes, text, tmp_path)
    assert agreement.values <= 1e-10 and agreement.gradients <= 1e-9 and agreement.sizes


@pytest.mark.parametrize("axes, text", lines_of(REFUSED))
def test_an_idiom_that_is_not_imported_is_refused_with_its_line(axes, text, tmp_path):
    with pytest.raises(QuestionError, match=r"written|its own block|never seen") as raised:
        by_trace(axes, text, tmp_path)
    assert raised.value.place.line > FIRST and raised.value.remedy
