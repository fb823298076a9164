"""Who waits is told what is being done; what is over soon says nothing."""

import re
import time
from io import StringIO

import pytest
from forwards import HEAD
from rich.console import Console

import derive.gradient.closing.closed_form
import derive.running.progress
from codegen.commands.cli import gradform
from codegen.report.progress import in_a_bar
from derive.running.progress import Waiting, told

SLOW = "\n\nclass Slow(Forward):\n    x = Input(N)\n    y = x**2\n"


def test_a_line_after_2_4_8_and_16_seconds():
    now = [100.0]
    waiting = Waiting(lambda: now[0])
    waiting("sinkhorn: proving db1")
    lines = []
    for tenth in range(200):
        now[0] = 100 + tenth / 10
        if line := waiting.line():
            lines.append(line)
    assert lines == [f"sinkhorn: proving db1, {n} s" for n in (2, 4, 8, 16)]


def test_what_was_missed_is_said_once():
    now = [0.0]
    waiting = Waiting(lambda: now[0])
    assert waiting.line() is None
    waiting("writing")
    now[0] = 9.0
    assert (waiting.line(), waiting.line()) == ("writing, 9 s", None)
    now[0] = 16.0
    assert waiting.line() == "writing, 16 s"


def test_the_bar_shows_the_time():
    console = Console(file=StringIO(), force_terminal=True, width=100)
    with in_a_bar(3, console) as (working, finished):
        working("sinkhorn", "proving db1")
        finished("tanh")
        working("sinkhorn", "proving db2")
    shown = console.file.getvalue()
    assert "sinkhorn: proving db2" in shown and "1/3" in shown and "0:00:00" in shown


def test_what_is_over_soon_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(derive.running.progress, "FIRST", 0.3)
    with told() as tell:
        tell("thinking")
    time.sleep(0.4)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["", "report", "show", "check"])
def test_every_command_says_what_it_is_doing(verb, tmp_path, capsys, monkeypatch):
    """Also while it is in one step."""
    file = tmp_path / "slow.py"
    file.write_text(HEAD + SLOW)
    right = derive.gradient.closing.closed_form._spelled
    monkeypatch.setattr(derive.running.progress, "FIRST", 0.1)
    monkeypatch.setattr(
        derive.gradient.closing.closed_form,
        "_spelled",
        lambda *args: time.sleep(0.5) or right(*args),
    )
    rest = {"show": ["--chain"], "check": ["2*x*dy"]}.get(verb, ["--out", str(tmp_path / "out")])
    assert gradform([*[verb] * bool(verb), str(file), *rest]) == 0
    lines = capsys.readouterr().err.splitlines()
    doing = "checking dx" if verb == "check" else "simplifying"
    assert len([line for line in lines if re.fullmatch(rf".*slow.*: {doing}, \d+ s", line)]) >= 2
    assert all(re.fullmatch(r".*, \d+ s", line) for line in lines)
