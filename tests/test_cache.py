"""What is unchanged is not derived again, and what is derived anew is whatever anything changed."""

import json
import os
import time
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import codegen.driver.cache
import codegen.driver.emitting
import codegen.driver.gate
import codegen.driver.lean
from codegen.commands import generating
from codegen.commands.cli import main
from codegen.driver.cache import FOLDER, VARIABLE, Cache, cache_folder
from codegen.driver.emitting import emit_all
from codegen.driver.lean import generate
from codegen.driver.qualities import emitted
from codegen.files.dependencies import files_behind, machinery_files
from codegen.program.packed import MODULES
from derive.language.errors import MATH, UnprovedError
from derive.language.notation.library import forward_from

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
    monkeypatch.setattr(codegen.files.dependencies, "MACHINERY", (file.parent,))
    return file


@pytest.fixture
def kept(tmp_path, machinery):
    return tmp_path / "kept"


def emit(file: Path, folder: Path):
    (result,) = emit_all([forward_from(file)], Cache(folder))
    return result


def test_a_second_run_derives_nothing(cube, kept, monkeypatch):
    first = emit(cube, kept)
    monkeypatch.setattr(codegen.driver.lean, "derive_definition", None)
    second = emit(cube, kept)
    assert (second.text, second.quality) == (first.text, first.quality)
    assert second.unchanged and not first.unchanged


def test_a_chain_is_kept_beside_its_module(cube, kept, monkeypatch):
    def emit_both():
        (result,) = emit_all([forward_from(cube)], Cache(kept), chained={"cube"})
        return result

    assert emit(cube, kept).chain is None
    first = emit_both()  # derived again, for the chain alone
    assert "def cube_chain(" in first.chain
    monkeypatch.setattr(codegen.driver.lean, "derive_definition", None)
    assert emit_both().chain == first.chain


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
    known = codegen.files.dependencies._version
    monkeypatch.setattr(
        codegen.files.dependencies, "_version", lambda p: "2.0" if p == "torch" else known(p)
    )
    assert not emit(cube, kept).unchanged


def test_the_machinery_is_all_of_gradform_but_the_mathematics():
    names = {"/".join(file.parts[-2:]) for file in machinery_files()}
    assert {"chain/chain.py", "driver/gate.py", "torch/printer.py"} <= names
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
    monkeypatch.setattr(codegen.driver.gate, "TOLERANCE", -1)
    for _ in range(2):
        with pytest.raises(UnprovedError):
            emit(cube, kept)
    assert not kept.exists()


def test_the_oldest_entries_go(cube, kept, monkeypatch):
    monkeypatch.setattr(codegen.driver.cache, "MOST", 2)
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
    assert "cached" not in capsys.readouterr().out
    assert main(["cube.py", "--check"]) == 0
    assert "cached" in capsys.readouterr().out
    assert main(["report", "cube.py"]) == 0 and main(["report", "cube.py", "--check"]) == 0
    (tmp_path / "generated" / "REPORT.md").open("a").write("edited")
    assert main(["report", "cube.py"]) == 0  # its own report is replaced


def test_of_all_forwards_those_are_named_that_were_written(
    cube, machinery, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generating, "list_forwards", lambda: [forward_from(cube)])
    assert main([]) == 0
    first = capsys.readouterr().out
    assert "closed form" in first and first.endswith("written to generated: cube.py\n")
    assert main([]) == 0
    assert capsys.readouterr().out == "generated is up to date\n"
    (tmp_path / "generated" / "cube.py").unlink()
    assert main([]) == 0
    assert capsys.readouterr().out == "written to generated: cube.py\n"


def test_the_folder_is_named_by_a_variable():
    assert cache_folder({}) == Path(".gradform_cache")
    assert cache_folder({VARIABLE: "elsewhere"}) == Path("elsewhere")
    assert cache_folder({VARIABLE: ""}) is None


def test_an_entry_names_no_file(cube, kept):
    """What is written follows from the forward: a name in an entry is one more thing that does not
    fit.
    """
    first = emit(cube, kept)
    assert first.file == "cube.py"
    (entry,) = kept.glob("*.json")
    data = json.loads(entry.read_text().partition("\n")[2])
    data.pop("program")  # whose source has to be that of the forward
    assert "cube.py" not in json.dumps(data).replace("from cube.py", "")
    rewrite(entry, lambda data: data | {"file": "../../victim.py"})
    assert not emit(cube, kept).unchanged
    assert emit(cube, kept).file == "cube.py"


def rewrite(entry: Path, change) -> None:
    """As somebody would who knows how the digest is made."""
    data = change(json.loads(entry.read_text().partition("\n")[2]))
    keep(entry, data if isinstance(data, str) else json.dumps(data))


def keep(entry: Path, text: str) -> None:
    entry.write_text(f"{codegen.driver.cache.digest(text)}\n{text}")


def quality_with(**fields):
    return lambda data: data | {"quality": data["quality"] | fields}


def without_seconds(data):
    return data | {"quality": {k: v for k, v in data["quality"].items() if k != "seconds"}}


DOES_NOT_FIT = {
    "nested too deeply": lambda data: "[" * 200_000,
    "a list": lambda data: [],
    "another text": lambda data: data | {"text": "import os\n"},
    "the text of another source": lambda data: (
        data | {"text": data["text"].replace("source sha256: ", "source sha256: 0")}
    ),
    "made by others": lambda data: (
        data | {"text": data["text"].replace("gradform 0", "gradform 9")}
    ),
    "a number as text": lambda data: data | {"text": 7},
    "a field is missing": without_seconds,
    "a field too many": quality_with(more=1),
    "another forward": quality_with(name="cube"),
    "text as a number": quality_with(difference="0"),
    "a whole number as time": quality_with(seconds=True),
    "no number": quality_with(seconds=float("nan")),
    "infinite": quality_with(difference=float("inf")),
    "what never passed": quality_with(difference=0.5),
    "words that are numbers": quality_with(saved=[1, 2]),
    "a list as record": quality_with(rounding=[0.0, 0.0]),
}


@pytest.mark.parametrize("change", DOES_NOT_FIT.values(), ids=DOES_NOT_FIT)
def test_an_entry_that_does_not_fit_is_derived_anew(once, change):
    forward, kept, entry, whole = once
    entry.write_text(whole)
    assert Cache(kept).get(forward).unchanged
    rewrite(entry, change)
    assert Cache(kept).get(forward) is None


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A forward, and the entry of it."""
    folder = tmp_path_factory.mktemp("once")
    write(folder / "scale.py", SCALE)
    forward, kept = forward_from(folder / "scale.py"), folder / "kept"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codegen.driver.cache, "STARTED", time.time() + 3600)
        emit_all([forward], Cache(kept))
    (entry,) = kept.glob("*.json")
    return forward, kept, entry, entry.read_text()


def test_an_entry_that_is_no_ordinary_file_is_as_if_there_were_none(once, tmp_path):
    forward, kept, entry, whole = once
    (tmp_path / "elsewhere").write_text(whole)
    for make in (
        entry.mkdir,
        lambda: os.mkfifo(entry),
        lambda: entry.symlink_to(tmp_path / "elsewhere"),
        lambda: entry.write_bytes(b" " * (codegen.driver.cache.LARGEST + 1)),
    ):
        entry.unlink()
        make()
        assert Cache(kept).get(forward) is None
        entry.rmdir() if entry.is_dir() else entry.unlink()
        entry.write_text(whole)


def test_a_folder_that_others_may_write_to_is_not_used(once, monkeypatch):
    forward, kept, entry, whole = once
    entry.write_text(whole)
    for mode in (0o770, 0o707):
        kept.chmod(mode)
        cache = Cache(kept)
        assert cache.get(forward) is None and "other users can write to it" in cache.distrusted
    kept.chmod(0o700)
    assert Cache(kept).get(forward).unchanged and not Cache(kept).distrusted
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    cache = Cache(kept)
    assert cache.get(forward) is None and "belongs to another user" in cache.distrusted


def test_a_cache_that_is_not_used_is_said_in_one_line(once, monkeypatch, capsys):
    forward, kept, _, _ = once
    kept.chmod(0o777)
    monkeypatch.setenv(VARIABLE, str(kept))
    before = sorted(path.name for path in kept.iterdir())
    assert main([forward.definition.place.file, "--check", "--out", str(kept / "none")]) == 1
    assert capsys.readouterr().err.count("other users can write to it") == 1
    assert sorted(path.name for path in kept.iterdir()) == before
    kept.chmod(0o700)


def test_only_its_owner_may_read_a_new_cache(cube, kept):
    emit(cube, kept)
    assert kept.stat().st_mode & 0o077 == 0


def test_a_file_that_vanishes_meanwhile_is_no_error(cube, kept):
    forward = forward_from(cube)
    result = emit(cube, kept)
    cube.unlink()
    cache = Cache(kept)
    assert cache.get(forward) is None
    cache.put(forward, result)


def with_kernels(file: Path, folder: Path, target: str):
    (result,) = emit_all([forward_from(file)], Cache(folder, target=target))
    return result


class Loops:
    """A language for loops, whose kernels say what they are printed from."""

    texts = staticmethod(lambda pairs, module: tuple(f"{p.program.forward.results}" for p in pairs))
    beside = staticmethod(lambda texts: Close())


class Close:
    largest_difference = staticmethod(lambda text, definition, program: 0.0)


@pytest.fixture
def languages(monkeypatch):
    for name in ("one", "two"):
        loops = {**codegen.driver.emitting.kernels, name: Loops()}
        monkeypatch.setattr(codegen.driver.emitting, "kernels", loops)


def test_what_was_derived_once_is_printed_for_every_target(cube, kept, languages, monkeypatch):
    first = with_kernels(cube, kept, "one")
    monkeypatch.setattr(codegen.driver.lean, "derive_definition", None)
    second = with_kernels(cube, kept, "two")
    assert second.kernels == first.kernels and "'y'" in first.kernels[0]
    assert (second.text, second.quality) == (first.text, first.quality)
    monkeypatch.setattr(codegen.driver.lean, "with_kernels", None)
    assert with_kernels(cube, kept, "two").kernels == first.kernels
    assert emit(cube, kept).kernels is None


@pytest.mark.parametrize("name", ["cox", "focal_tversky"])  # steps along an axis; risks
def test_programs_of_all_kinds_are_kept(name):
    forward = forward_from(name)
    made = generate(forward)
    program = codegen.driver.emitting._program(emitted(made), forward)
    assert program is not None and program.backward == made.whole.backward


def test_no_two_records_of_a_program_have_one_name():
    every = {c for m in MODULES for c in vars(m).values() if is_dataclass(c)}
    assert len({c.__name__ for c in every}) == len(every)


def test_an_edit_is_derived_for_every_target(cube, kept, languages):
    first = with_kernels(cube, kept, "one")
    write(cube, cube.read_text().replace("**three", "**(three + 1)"))
    second = with_kernels(cube, kept, "two")
    assert second.text != first.text and not second.unchanged


def test_a_damaged_entry_of_kernels_is_printed_anew(cube, kept, languages, monkeypatch):
    first = with_kernels(cube, kept, "one")
    monkeypatch.setattr(codegen.driver.lean, "derive_definition", None)
    for damage in ("", "[]", '["x"', '{"a": 1}', "[1]"):
        entry = min(kept.glob("*.json"), key=lambda entry: entry.stat().st_size)
        keep(entry, damage)
        if damage != "[]":  # which is a function without loops
            assert with_kernels(cube, kept, "one").kernels == first.kernels


def test_of_an_edited_forward_no_kept_program_is_printed(once, tmp_path):
    """Such as one that was edited between the look into the cache and the process that prints."""
    forward, kept, entry, whole = once
    entry.write_text(whole)
    found = Cache(kept).get(forward)
    write(tmp_path / "scale.py", SCALE.replace("2 * x", "5 * x"))
    assert codegen.driver.emitting._program(found, forward) is not None
    assert codegen.driver.emitting._program(found, forward_from(tmp_path / "scale.py")) is None
    write(tmp_path / "other.py", SCALE)
    assert codegen.driver.emitting._program(found, forward_from(tmp_path / "other.py")) is None


NO_PROGRAM = {
    "nothing": lambda rows: None,
    "no rows": lambda rows: [],
    "a record that there is not": lambda rows: [["Popen", "x"], *rows[1:]],
    "a function of Python": lambda rows: [["eval", "1"], *rows[1:]],
    "a row behind it": lambda rows: [["Dim", {"row": len(rows)}, False], *rows[1:]],
    "too few fields": lambda rows: [*rows[:-1], rows[-1][:-1]],
    "a word for a record": lambda rows: [*rows[:-1], ["Program", *["x"] * (len(rows[-1]) - 1)]],
    "another record": lambda rows: rows[:-1],
    "an axis that it has not": lambda rows: [["Axis", 'Axis("M", N + 1)'], *rows[1:]],
    "no name of an axis": lambda rows: [["Axis", "", None], *rows[1:]],
    "nested too deeply": lambda rows: [["Dim", *json.loads("[" * 900 + "]" * 900)], *rows],
}


@pytest.mark.parametrize("change", NO_PROGRAM.values(), ids=NO_PROGRAM)
def test_what_is_no_program_is_derived_anew(once, change):
    forward, kept, entry, whole = once
    entry.write_text(whole)
    assert codegen.driver.emitting._program(Cache(kept).get(forward), forward) is not None
    rewrite(entry, lambda data: data | {"program": change(data["program"])})
    assert codegen.driver.emitting._program(Cache(kept).get(forward), forward) is None
