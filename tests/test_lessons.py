"""The lessons are what their derivations say, beside their forwards and as pages."""

from xml.etree import ElementTree

import derive
from derive.show.terminal import words_of


def test_they_are_up_to_date(lessons):
    for path, text in lessons.in_markdown().items():
        assert path.read_text() == text, "run python examples/lessons/write.py"


def test_what_they_state_is_read_off_the_derivation(lessons):
    said = {
        lesson.file: words_of(lesson.words(derive.derive(lessons.HERE / lesson.file)))
        for lesson in lessons.LESSONS
    }
    assert (
        "Where most > (guess \N{MINUS SIGN} target)² the gradient is "
        "2·dloss·(guess \N{MINUS SIGN} target)/N" in said["clamped_loss.py"]
    )
    assert "everywhere else it is 0" in said["clamped_loss.py"]
    assert "is 0 for h = \N{MINUS SIGN}1 and 0 for h = 1" in said["saturated_tanh.py"]
    assert "The derivative of probs by largest is zero" in said["row_maximum.py"]
    assert "dlogits sums to zero along C" in said["row_maximum.py"]


def test_each_is_a_page_with_its_own_words_on_top(lessons, tmp_path):
    assert lessons.main(["--html", str(tmp_path)]) == 0
    assert len(list(tmp_path.iterdir())) == len(lessons.LESSONS) + 1
    for lesson in lessons.LESSONS:
        text = (tmp_path / lesson.file.replace(".py", ".html")).read_text(encoding="utf-8")
        root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
        assert root.find(".//h1").text == lesson.title
        assert root.find(".//p[@class='lede']").find("math") is not None
        assert len(list(root.iter("details"))) + len(list(root.iter("figure"))) > 2
        assert lesson.title in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_one_that_is_out_of_date_is_seen(lessons, monkeypatch, capsys):
    assert lessons.main(["--check"]) == 0
    monkeypatch.setattr(lessons, "current", lambda path: "")
    assert lessons.main(["--check"]) == 1
    assert "clamped_loss.md" in capsys.readouterr().err
