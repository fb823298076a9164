"""What is unchanged is not derived again, and what is derived anew is whatever anything changed."""

import os
from pathlib import Path

import pytest

import codegen.cache
import codegen.driver
from codegen.cache import FOLDER, VARIABLE, Cache, cache_folder
from codegen.cli import main
from codegen.dependencies import files_behind, machinery_files
from codegen.emitting import emit_all
from derive.errors import UnprovedError
from derive.library import MATH, forward_from

LONG_AGO = 10**9

SCALE = """
from derive import Axis, Forward, Input

N = Axis("N")


class Scale(Forward):
    x = Input(N)
    y = 2 * x
"""
CUBE = """
from sympy import tanh
from derive import Axis, Forward, Input
from powers.cubes import three
from scale import Scale

N = Axis("N")


class Cube(Forward):
    x = Input(N)
    scaled = Scale(x)
    y = tanh(scaled)**three
"""


def write(file: Path, text: str) -> None:
    """As a file that stood there before this process began."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    os.utime(file, (LONG_AGO, LONG_AGO))


@pytest.fixture
def cube(tmp_path):
    """A forward that imports another one, and a number through a package."""
    write(tmp_path / "scale.py", SCALE)
    write(tmp_path / "powers" / "__init__.py", "")
    write(tmp_path / "powers" / "numbers.py", "THREE = 3\n")
    write(tmp_path / "powers" / "cubes.py", "from .numbers import THREE as three\n")
    write(tmp_path / "cube.py", CUBE)
    return tmp_path / "cube.py"


@pytest.fixture
def machinery(tmp_path, monkeypatch):
    """In place of gradform's own files: one that can be edited."""
    file = tmp_path / "machinery" / "rules.py"
    write(file, "")
    monkeypatch.setattr(codegen.dependencies, "MACHINERY", (file.parent,))
    return file


@pytest.fixture
def kept(tmp_path, machinery):
    return tmp_path / "kept"


def emit(file: Path, folder: Path):
    (result,) = emit_all([forward_from(file)], Cache(folder))
    return result


def test_a_second_run_derives_nothing(cube, kept, monkeypatch):
    first = emit(cube, kept)
    monkeypatch.setattr(codegen.driver, "derive", None)
    second = emit(cube, kept)
    assert (second.text, second.quality) == (first.text, first.quality)
    assert second.unchanged and not first.unchanged


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cube.py", "**three", "**(three + 1)"),
        ("scale.py", "2 * x", "5 * x"),
        ("powers/numbers.py", "3", "4"),
    ],
)
def test_an_edit_of_what_a_forward_is_made_of_is_derived(cube, kept, name, old, new):
    first = emit(cube, kept)
    file = cube.parent / name
    write(file, file.read_text().replace(old, new))
    second = emit(cube, kept)
    assert second.text != first.text and not second.unchanged
    assert emit(cube, kept).unchanged


def test_an_edit_of_the_machinery_derives_everything(cube, kept, machinery):
    emit(cube, kept)
    write(machinery, "rules = {}\n")
    assert not emit(cube, kept).unchanged


def test_another_version_of_what_it_runs_on_derives_everything(cube, kept, monkeypatch):
    emit(cube, kept)
    known = codegen.dependencies._version
    monkeypatch.setattr(
        codegen.dependencies, "_version", lambda p: "2.0" if p == "torch" else known(p)
    )
    assert not emit(cube, kept).unchanged


def test_the_machinery_is_all_of_gradform_but_the_mathematics():
    names = {"/".join(file.parts[-2:]) for file in machinery_files()}
    assert {"derive/rules.py", "codegen/driver.py", "torch/printer.py"} <= names
    assert {"templates/module.py.jinja", "templates/report.md.jinja"} <= names
    assert not any(file.is_relative_to(MATH) for file in machinery_files())


def test_a_forward_of_ours_counts_with_the_forwards_that_it_calls():
    names = {file.name for file in files_behind(MATH / "mlp.py")}
    assert {"mlp.py", "batch_norm.py", "softmax_nll.py"} <= names
    assert {file.name for file in files_behind(MATH / "tanh.py")} <= {"tanh.py", "__init__.py"}


def test_a_file_that_was_edited_since_the_process_began_is_not_kept(cube, kept):
    cube.write_text(cube.read_text() + "\n")
    emit(cube, kept)
    assert not kept.exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", None])
def test_a_damaged_entry_is_derived_and_written_anew(cube, kept, damage):
    emit(cube, kept)
    (entry,) = kept.glob("*.json")
    whole = entry.read_bytes()
    entry.write_bytes(whole.replace(b"tanh", b"sinh") if damage is None else damage)
    assert not emit(cube, kept).unchanged
    assert emit(cube, kept).unchanged


def test_what_fails_is_not_kept(cube, kept, monkeypatch):
    monkeypatch.setattr(codegen.driver, "TOLERANCE", -1)
    for _ in range(2):
        with pytest.raises(UnprovedError):
            emit(cube, kept)
    assert not kept.exists()


def test_the_oldest_entries_go(cube, kept, monkeypatch):
    monkeypatch.setattr(codegen.cache, "MOST", 2)
    kept.mkdir()
    for age in (1, 2, 3):
        write(kept / f"{age}.json", "")
        os.utime(kept / f"{age}.json", (LONG_AGO - age, LONG_AGO - age))
    emit(cube, kept)
    left = {entry.name for entry in kept.glob("*.json")}
    assert len(left) == 2 and "1.json" in left


def test_a_folder_that_cannot_be_written_is_as_if_there_were_none(cube, kept):
    kept.write_text("a file")
    assert not emit(cube, kept).unchanged
    assert kept.read_text() == "a file"


def test_the_commands_keep_beside_what_is_worked_on(cube, machinery, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.chdir(tmp_path)
    assert main(["cube.py", "--no-cache"]) == 0
    assert not (tmp_path / FOLDER).exists()
    assert main(["cube.py"]) == 0
    assert (tmp_path / FOLDER / ".gitignore").read_text().endswith("\n*\n")
    assert "unchanged" not in capsys.readouterr().out
    assert main(["cube.py", "--check"]) == 0
    assert "unchanged" in capsys.readouterr().out
    assert main(["report", "cube.py"]) == 0 and main(["report", "cube.py", "--check"]) == 0


def test_the_folder_is_named_by_a_variable():
    assert cache_folder({}) == Path(".gradform_cache")
    assert cache_folder({VARIABLE: "elsewhere"}) == Path("elsewhere")
    assert cache_folder({VARIABLE: ""}) is None
