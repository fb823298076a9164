"""Forwards in parallel: the same bytes, the same errors, and no process that is left behind."""

import multiprocessing
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
import warm
from forwards import HEAD

import codegen.driver.cache
import codegen.driver.emitting
from codegen.driver.cache import Cache
from codegen.driver.emitting import FEWEST, emit_all
from derive.language.notation.library import load

ROOT = Path(codegen.__file__).parents[1]
NOTHING_KEPT = Cache(None)
WAITING = re.compile(r"\d of 4 done, \d+ s")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

SMALL = "".join(
    f"\n\nclass Power{n}(Forward):\n    x = Input(N)\n    y = x**{n}\n"
    for n in range(2, 2 + FEWEST)
)
WITHOUT_A_PRINTER_LINE = """
from codegen.targets.torch.vocabulary import FUNCTIONS

FUNCTIONS.pop("erfinv", None)


class Quantile(Forward):
    x = Input(N)
    y = erfinv(x)
"""
NEVER_CLOSE_ENOUGH = "\nimport codegen.driver.gate\n\ncodegen.driver.gate.TOLERANCE = -1\n"
NEVER_DONE = """
import time
import codegen.driver.lean

right = codegen.driver.lean.derive_definition
codegen.driver.lean.derive_definition = lambda d, *rest: (
    time.sleep(600) if d.name == "Power2" else right(d, *rest)
)
"""


def on(cores: int) -> list[str]:
    """The command, where there are so many."""
    counted = f"import codegen.driver.emitting; codegen.driver.emitting._cores = lambda: {cores}"
    run = "from derive.running.starting import run; run('codegen.commands.cli', 'main')"
    return [sys.executable, "-c", f"{counted}; {run}"]


COMMAND = on(2)


def written(folder: Path, *parts: str) -> Path:
    file = folder / "several.py"
    file.write_text("".join(("from sympy import erfinv\n", HEAD, *parts)))
    return file


def text_of(results) -> list[tuple[str, str]]:
    return [(result.file, result.text) for result in results]


def test_the_same_files_in_the_same_order_as_one_process_alone(tmp_path):
    forwards = load(written(tmp_path, SMALL))
    done = []
    together = emit_all(forwards, NOTHING_KEPT, finished=done.append, processes=2)
    alone = emit_all(forwards, NOTHING_KEPT, processes=1)
    assert text_of(together) == text_of(alone)
    assert sorted(done) == sorted(result.quality.name for result in alone)
    assert multiprocessing.active_children() == []


def test_a_few_forwards_need_no_other_process(tmp_path, monkeypatch):
    monkeypatch.setattr(codegen.driver.emitting, "_pool", None)
    forwards = load(written(tmp_path, SMALL))
    assert len(emit_all(forwards[: FEWEST - 1], NOTHING_KEPT, processes=2)) == FEWEST - 1


def test_processes_are_handed_little(tmp_path, monkeypatch):
    """More than a pipe holds would keep a pool from ending after an error."""
    sizes = []

    class Here:
        def submit(self, function, *arguments):
            sizes.append(len(pickle.dumps(arguments)))
            future = Future()
            future.set_result(function(*arguments))
            return future

    @contextmanager
    def pool(processes):
        yield Here()

    monkeypatch.setattr(codegen.driver.emitting, "_pool", pool)
    monkeypatch.setattr(codegen.driver.cache, "STARTED", time.time() + 3600)
    forwards = load(written(tmp_path, SMALL))
    for target in ("torch", "cpp"):
        emit_all(forwards, Cache(tmp_path / "kept", target=target), processes=2)
    assert len(sizes) == 2 * len(forwards) and max(sizes) < select.PIPE_BUF


def test_what_is_unproved_in_another_process_is_not_written(tmp_path):
    result = warm.run(
        [*COMMAND, str(written(tmp_path, SMALL, NEVER_CLOSE_ENOUGH)), "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert result.returncode == 1 and "unproved: Power2: " in result.stderr
    assert all(WAITING.fullmatch(line) for line in result.stderr.splitlines()[:-1])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cores", [1, 2])
def test_a_question_that_was_not_understood_is_said_as_by_one_process(tmp_path, cores):
    result = warm.run(
        [
            *on(cores),
            str(written(tmp_path, SMALL, WITHOUT_A_PRINTER_LINE)),
            "--out",
            tmp_path / "out",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    error = result.stderr
    said = error[error.index("error: ") :]  # after the lines that say how far it is
    assert result.returncode == 2
    assert said.count("error: ") == 1 and "the torch target has no function for erfinv" in said
    assert "add its row" in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


@pytest.fixture
def process(tmp_path):
    """A run of which one process is at work and will not end, and the other has nothing to do."""
    process = warm.Popen(
        [*COMMAND, str(written(tmp_path, SMALL, NEVER_DONE)), "--out", tmp_path / "out"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    while len(in_session(process.pid)) < 5:  # itself, two helpers, two that derive
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    time.sleep(1.5)  # to begin, and to be done with the others
    yield process
    for left in in_session(process.pid):
        os.kill(left, signal.SIGKILL)
    process.communicate()


def in_session(leader: int) -> set[int]:
    """The processes of a session that are alive."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.add(int(folder.name))
    return found


def all_ended(leader: int) -> bool:
    until = time.monotonic() + 20
    while in_session(leader) and time.monotonic() < until:
        time.sleep(0.1)
    return not in_session(leader)


def test_an_interrupt_ends_all_processes_at_once(process, tmp_path):
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends Ctrl-C
    assert process.wait(20) == 130
    assert all_ended(process.pid) and not (tmp_path / "out").exists()
    *waiting, last = process.stderr.read().splitlines()
    assert last == "interrupted; nothing was written"
    assert all(WAITING.fullmatch(line) for line in waiting)


def test_no_process_outlives_a_parent_that_was_killed(process):
    process.kill()
    process.wait()
    assert all_ended(process.pid)
