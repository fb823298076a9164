"""An error in gradform itself leaves one file that a person can attach to an issue."""

import os
import sys
from pathlib import Path

import pytest

from derive.running import failure
from derive.running.command import WRONG, guarded

SOURCE = "from derive import Axis  # mine\n"


def failing() -> int:
    raise RuntimeError("lost count")


@pytest.fixture
def command(tmp_path, monkeypatch) -> Path:
    """The working directory of a command that names a file of the user's."""
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gradform", "show", "mine.py:Mine", "--of", "x y"])
    monkeypatch.delenv("GRADFORM_TRACEBACK", raising=False)
    monkeypatch.setenv("GRADFORM_TARGET", "cpp")
    monkeypatch.setenv("SECRET_TOKEN", "hush-hush")
    return tmp_path


def test_an_error_of_ours_is_kept_with_all_that_a_report_needs(command, capsys):
    assert guarded(failing) == WRONG
    said = capsys.readouterr().err
    (file,) = command.glob("gradform-error-*.txt")
    assert said.startswith("error in gradform itself: RuntimeError: lost count\n")
    assert f"attach {file}" in said and "nothing was written" in said
    text = file.read_text("utf-8")
    import sympy
    import torch

    for words in (
        f"sympy {sympy.__version__}",
        f"torch {torch.__version__}",
        f"Python {sys.version.split()[0]}",
        "gradform show mine.py:Mine --of 'x y'",
        SOURCE.strip(),
        'raise RuntimeError("lost count")',
        "GRADFORM_TARGET=cpp",
    ):
        assert words in text
    assert "hush-hush" not in text
    assert {path.name for path in command.iterdir()} == {"mine.py", file.name}


def test_the_same_error_again_is_one_file_and_another_one_is_two(command):
    guarded(failing)
    guarded(failing)
    assert len([*command.glob("gradform-error-*")]) == 1
    guarded(lambda: 1 // 0)
    assert len([*command.glob("gradform-error-*")]) == 2


def test_where_the_folder_cannot_be_written_it_is_kept_among_temporary_files(
    command, monkeypatch, tmp_path_factory, capsys
):
    elsewhere = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(failure.tempfile, "gettempdir", lambda: str(elsewhere))
    replace = os.replace

    def refusing(source, target):
        if Path(target).parent == command:
            raise PermissionError("read-only")
        replace(source, target)

    monkeypatch.setattr(failure.os, "replace", refusing)
    guarded(failing)
    (file,) = elsewhere.glob("gradform-error-*.txt")
    assert f"attach {file}" in capsys.readouterr().err
    assert {path.name for path in command.iterdir()} == {"mine.py"}  # no half of a file


def test_where_nothing_can_be_written_the_traceback_is_one_setting_away(
    command, monkeypatch, capsys
):
    monkeypatch.setattr(failure, "_written", lambda *_: (_ for _ in ()).throw(OSError()))
    assert guarded(failing) == WRONG
    assert "GRADFORM_TRACEBACK=1" in capsys.readouterr().err
    monkeypatch.setenv("GRADFORM_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        guarded(failing)
