"""A program of gradform that is stopped says so in one line, at any time; and it needs nothing
that is installed beside it to begin.
"""

import gc
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forwards import HEAD

import codegen.files.dependencies
import derive
from codegen.files.dependencies import machinery_hash
from codegen.files.header import header
from derive.running.garbage import SELDOM, collected_seldom

ROOT = Path(derive.__file__).parents[1]
BY_MODULE = {
    "codegen": ["-m", "codegen"],
    "derive": ["-m", "derive", "show", "tanh"],
    "gradform": ["-c", "from codegen.__main__ import gradform; gradform()", "show", "tanh"],
}
# In the place of a package that takes seconds to be imported: somebody presses Ctrl-C meanwhile.
STOP = "import os, signal, time\nos.kill(os.getpid(), signal.{name})\ntime.sleep(20)\n"
STOP_TWICE = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
finally:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
"""
SQUARE = "\n\nclass Square(Forward):\n    x = Input(N)\n    y = x**2\n"


def run(folder: Path, package: str, text: str, *arguments) -> subprocess.CompletedProcess:
    """Run with another package in the place of an installed one."""
    (folder / "instead").mkdir()
    (folder / "instead" / f"{package}.py").write_text(text)
    (folder / "square.py").write_text(HEAD + SQUARE)
    path = os.pathsep.join([str(folder / "instead"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("program", BY_MODULE)
@pytest.mark.parametrize(
    ("name", "status", "says"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_a_program_is_stopped_while_sympy_is_imported(tmp_path, program, name, status, says):
    done = run(tmp_path, "sympy", STOP.format(name=name), *BY_MODULE[program])
    assert (done.returncode, done.stderr, done.stdout) == (
        status,
        f"{says}; nothing was written\n",
        "",
    )


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        (STOP.format(name="SIGINT"), 130, "interrupted; nothing was written\n"),
        (STOP.format(name="SIGTERM"), 143, "terminated; nothing was written\n"),
        (STOP_TWICE, 130, "interrupted\n"),
    ],
    ids=["once", "terminated", "twice"],
)
def test_a_run_is_stopped_while_torch_is_imported(tmp_path, text, status, says):
    done = run(tmp_path, "torch", text, "-m", "codegen", "square.py", "--out", "out")
    assert (done.returncode, done.stderr, done.stdout) == (status, says, "")
    assert not (tmp_path / "out").exists()


def test_what_is_to_be_ignored_is_ignored(tmp_path):
    """A program that was begun with nohup goes on when its terminal is closed."""
    text = "import os, signal\nos.kill(os.getpid(), signal.SIGHUP)\nprint('went on')\nos._exit(7)\n"
    ignoring = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "from derive.running.starting import run; run('derive.commands.main', 'main')"
    )
    done = run(tmp_path, "sympy", text, "-c", ignoring, "show", "tanh")
    assert done.returncode == 7 and done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_whoever_reads_the_help_may_stop_reading(unbuffered):
    reader = subprocess.Popen(
        [sys.executable, "-m", "derive", "--help"],
        cwd=ROOT,
        stdout=-1,
        stderr=-1,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    reader.stdout.close()
    assert reader.stderr.read() == b"" and reader.wait() == 0


def test_the_first_import_is_light():
    """Or Ctrl-C in the first half second would be answered with a traceback."""
    program = (
        "import sys, derive, codegen, codegen.__main__, derive.running.writing;"
        "heavy = {'sympy', 'torch', 'numpy', 'rich', 'jinja2'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", derive.PUBLIC)
def test_what_is_public_is_there_when_it_is_asked_for(name):
    value = getattr(derive, name)
    assert value.__module__ == f"derive.{derive.PUBLIC[name]}" and name in dir(derive)


def test_what_is_not_public_is_said_to_be_missing():
    with pytest.raises(AttributeError, match="'derive' has no attribute 'Nothing'"):
        _ = derive.Nothing
    with pytest.raises(ImportError):
        from derive import Nothing  # noqa: F401


def test_a_source_tree_needs_no_installation(monkeypatch):
    """The same header, and a machinery whose versions are known all the same."""
    expected = header("mine.py", "0" * 64)

    def nowhere(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", nowhere)
    monkeypatch.setattr(codegen.files.dependencies, "_version", lambda package: "")
    assert header("mine.py", "0" * 64) == expected
    assert expected[2] == f"made by: gradform {derive.version.VERSION}, sympy 1.14.0"
    assert machinery_hash() != "" and codegen.files.dependencies._own_version("sympy") == "1.14.0"


def test_garbage_is_looked_for_as_before_once_all_are_done():
    before = gc.get_threshold()
    try:
        for often, inside in ((700, SELDOM), (2 * SELDOM, 2 * SELDOM), (0, 0)):
            gc.set_threshold(often, 10, 10)
            first, second = collected_seldom(), collected_seldom()
            with first:
                second.__enter__()  # as another thread would, which is done later
                assert gc.get_threshold() == (inside, 10, 10)
            assert gc.get_threshold() == (inside, 10, 10)
            second.__exit__(None, None, None)
            assert gc.get_threshold() == (often, 10, 10)
    finally:
        gc.set_threshold(*before)
