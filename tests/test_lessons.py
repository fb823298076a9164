"""The lessons are what their derivations say."""

import importlib.util
from pathlib import Path

import pytest

LESSONS = Path(__file__).resolve().parents[1] / "examples" / "lessons"


@pytest.fixture(scope="module")
def lessons():
    spec = importlib.util.spec_from_file_location("lessons_write", LESSONS / "write.py")
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_they_are_up_to_date(lessons):
    for lesson in lessons.LESSONS:
        assert (LESSONS / lesson.file.replace(".py", ".md")).read_text() == lessons.written(lesson)


def test_what_they_state_is_read_off_the_derivation(lessons):
    import derive

    text = lessons.clamped_loss(derive.derive(LESSONS / "clamped_loss.py"))
    assert "everywhere else it is $0$" in text
    text = lessons.saturated_tanh(derive.derive(LESSONS / "saturated_tanh.py"))
    assert "$0$ for $h = -1$ and $0$ for $h = 1$" in text
    text = lessons.row_maximum(derive.derive(LESSONS / "row_maximum.py"))
    assert "The derivative of probs by largest is zero" in text
    assert "dlogits sums to zero along C" in text
