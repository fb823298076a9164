"""``gradform watch`` and ``gradform diff``: what a change of a file means for the mathematics."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import warm
from forwards import HEAD

import codegen.commands.deriving
import derive
from codegen.commands.cli import gradform
from codegen.commands.comparison import DerivationFact, ForwardFacts, changes, described
from codegen.commands.deriving import Deriver
from codegen.commands.facts import derivation_facts
from codegen.commands.watch import watch_parser
from codegen.driver.lean import generate
from codegen.driver.qualities import emitted
from derive.language.notation.library import load

ROOT = Path(derive.__file__).parents[1]
LONGEST = 240  # seconds for a derivation, on a machine that has much else to do
SQUARE = HEAD + "\n\nclass Square(Forward):\n    x = Input(N)\n    a = x**2\n    y = a + x\n"
CUBE = SQUARE.replace("x**2", "x**3")
RENAMED = SQUARE.replace("a =", "squared =").replace("a + x", "squared + x")
pytestmark = pytest.mark.xdist_group("watch")


def facts(tmp_path: Path, text: str) -> ForwardFacts:
    file = tmp_path / f"square_{abs(hash(text))}.py"
    file.write_text(text)
    (forward,) = load(file)
    return derivation_facts(forward, emitted(generate(forward)))


# -- the comparison --------------------------------------------------------------------


def test_facts_name_what_a_reviewer_asks_for(tmp_path):
    found = {fact.about: fact.lines for fact in facts(tmp_path, SQUARE).facts}
    assert found["takes"] == ("x (N,)",)
    assert found["dx"] == ("dx = dy*(1 + 2*x)",) or "dx = " in found["dx"][0]
    assert found["saved for backward"] == ("x (N,)",)
    assert "every size" in found["proved"][0]
    assert {"backward, tensors of full size", "may be infinite, NaN or far off"} <= found.keys()


def test_another_function_differs_in_its_gradient(tmp_path):
    before, after = facts(tmp_path, SQUARE), facts(tmp_path, CUBE)
    found = {change.about: change for change in changes(before, after)}
    assert {"forward", "dx"} <= found.keys() and "takes" not in found
    lines = described("square", before, after)
    assert lines[0] == "square: changed"
    assert "    - a = x**2" in lines and "    + a = x**3" in lines
    assert "    - y = a + x" not in lines  # it is on both sides


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SQUARE, "nothing changed in the mathematics"),
        (SQUARE.replace("y = a", "\n    # a comment\n    y = a"), "nothing changed"),
        (RENAMED, "nothing changed in the mathematics; a is called squared"),
    ],
    ids=["the same", "a comment", "renamed"],
)
def test_another_spelling_is_no_change(tmp_path, text, says):
    (line,) = described("square", facts(tmp_path, SQUARE), facts(tmp_path, text))
    assert line.startswith(f"square: {says}")


def test_the_same_function_in_fewer_lines_differs_in_its_cost_alone(tmp_path):
    inlined = SQUARE.replace("    a = x**2\n    y = a + x", "    y = x**2 + x")
    first, *lines = described("square", facts(tmp_path, SQUARE), facts(tmp_path, inlined))
    assert first == "square: the same function as before; only this differs:"
    said = {line for line in lines if line[2] != " "}
    assert said == {"  forward, tensors of full size"}


def test_a_constant_in_the_forward_is_a_change_though_no_gradient_has_it(tmp_path):
    before, after = facts(tmp_path, SQUARE), facts(tmp_path, SQUARE.replace("a + x", "a + x + 1"))
    assert next(change.about for change in changes(before, after)) == "forward"


def test_a_default_is_a_change(tmp_path):
    text = SQUARE.replace("    a =", "    eps = Scalar(2)\n    a =").replace("a + x", "a + eps*x")
    before, after = facts(tmp_path, text), facts(tmp_path, text.replace("Scalar(2)", "Scalar(3)"))
    (change,) = changes(before, after)
    assert (change.about, change.before[-1], change.after[-1]) == ("takes", "eps = 2", "eps = 3")


def test_what_is_new_or_gone_is_said():
    one = ForwardFacts("f", (DerivationFact("dx", ("dx = dy",)),))
    assert described("f", None, one) == ["f: new", "  dx", "    + dx = dy"]
    assert described("f", one, None) == ["f: removed", "  dx", "    - dx = dy"]
    risky = ForwardFacts("f", (*one.facts, DerivationFact("risk", ("may overflow",))))
    assert described("f", one, risky)[0].startswith("f: the same function")


# -- diff ------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def warmed(monkeypatch):
    """Processes that derive start warm; those of `test_diff_takes_the_gallery_as_it_was` do not."""
    monkeypatch.setattr(codegen.commands.deriving, "subprocess", warm)


@pytest.fixture
def repository(tmp_path, monkeypatch, warmed):
    """With a forward, and a module beside it that says the power."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "math").mkdir()
    (tmp_path / "math" / "power.py").write_text("POWER = 2\n")
    text = SQUARE.replace("x**2", "x**POWER")
    text = text.replace("\n\nclass", "from power import POWER\n\nclass")
    (tmp_path / "math" / "square.py").write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "math")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def diff(capfd, *arguments: str) -> tuple[int, str, str]:
    status = gradform(["diff", *arguments])
    return status, *capfd.readouterr()


def test_diff_compares_a_file_and_what_it_imports_with_a_revision(repository, capfd):
    staged = (repository / ".git" / "index").read_bytes()
    status, out, _ = diff(capfd, "math/square.py")
    assert (status, out) == (0, "square: nothing changed in the mathematics\n")
    (repository / "math" / "power.py").write_text("POWER = 3\n")
    status, out, _ = diff(capfd, "math/square.py:Square", "--json")
    found = json.loads(out)
    assert status == 1 and found["against"] == "HEAD"
    (forward,) = found["forwards"]
    (dx,) = (change for change in forward["changes"] if change["about"] == "dx")
    assert (
        forward["name"] == "square" and "x**2" in dx["after"][0] and "x**2" not in dx["before"][0]
    )
    assert (repository / ".git" / "index").read_bytes() == staged
    assert {each.name for each in repository.iterdir()} == {".git", "math", "cache"}


def test_diff_says_what_is_wrong_in_the_revision(repository, capfd):
    good = (repository / "math" / "square.py").read_text()
    (repository / "math" / "square.py").write_text(good.replace("a + x", "a + q"))
    git(repository, "commit", "-qam", "two")
    (repository / "math" / "square.py").write_text(good)
    status, out, error = diff(capfd, "math/square.py")
    assert (status, out) == (2, "")
    assert "error: HEAD:math/square.py:" in error and "q is unknown" in error
    assert "/tmp" not in error.replace(str(repository), "")
    assert diff(capfd, "math/square.py", "--against", "HEAD~1")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["math/square.py", "--against", "mian"], "git has no revision 'mian'"),
        (["math/square.py", "--against", "--all"], "expected one argument"),
        (["math/new.py"], "math/new.py is not in HEAD"),
        (["math/square.py", "--against", "HEAD:old.py"], "old.py is not in HEAD"),
        (["math"], "no forward is called 'math'"),
        (["math/"], "is a folder"),
        (["nosuch.py"], "does not exist"),
    ],
    ids=lambda each: " ".join(each)[:40],
)
def test_diff_refuses_what_there_is_not(repository, capfd, arguments, says):
    (repository / "math" / "new.py").write_text(SQUARE)
    try:
        status, out, error = diff(capfd, *arguments)
    except SystemExit as end:
        status, (out, error) = end.code, capfd.readouterr()
    assert (status, out) == (2, "") and says in error and "\n    " in error


def test_diff_outside_of_git_says_so(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "square.py").write_text(SQUARE)
    status, _, error = diff(capfd, "square.py")
    assert status == 2 and "is not in a git repository" in error
    assert "gradform square.py writes it" in error
    status, _, error = diff(capfd, "square.py", "--against", "HEAD")
    assert status == 2 and "diff compares a file with what git knows of it" in error
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, error = diff(capfd, "square.py", "--against", "main")
    assert status == 2 and "install git" in error


def test_diff_outside_of_git_compares_with_what_was_written(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "square.py").write_text(SQUARE)
    assert gradform(["square.py"]) == 0
    capfd.readouterr()
    status, out, _ = diff(capfd, "square.py")
    assert (status, out) == (0, "square: nothing changed since generated/square.py was written\n")
    (tmp_path / "square.py").write_text(SQUARE.replace("x**2", "x**3"))
    status, out, _ = diff(capfd, "square.py")
    assert status == 1 and "\n-    a = x**2\n+    a = x**3\n" in out


def test_diff_takes_the_gallery_as_it_was(capfd, tmp_path, monkeypatch):
    """Its parts too: the whole gallery of the revision, in the gradform that runs."""
    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path))
    status, out, error = diff(capfd, "relu")
    assert (status, out) == (0, "relu: nothing changed in the mathematics\n"), error


# -- watch -----------------------------------------------------------------------------


class Watcher:
    """The command in a process of its own, and what it has said so far."""

    def __init__(self, folder: Path, *arguments: str):
        program = (
            "import warm, codegen.commands.deriving as deriving; deriving.subprocess = warm;"
            "from codegen.__main__ import gradform; gradform()"
        )
        path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
        self.process = warm.Popen(
            [sys.executable, "-c", program, "watch", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "GRADFORM_CACHE": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def until(self, words: str) -> list[str]:
        """Return and forget its output up to a line with ``words``."""
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            for i, line in enumerate(self.lines):
                if words in line:
                    said, self.lines = self.lines[: i + 1], self.lines[i + 1 :]
                    return said
            assert self.process.poll() is None or words in "".join(self.lines), self.lines
            time.sleep(0.05)
        raise AssertionError(f"{words!r} was not said: {self.lines}")


def test_who_derives_ends_with_who_asked_and_writes_nothing(tmp_path, warmed):
    """A watcher that is killed, or whose terminal is closed, leaves nobody behind who writes."""
    (tmp_path / "square.py").write_text(SQUARE)
    out = tmp_path / "out"
    arguments = [str(tmp_path / "square.py"), "--out", str(out)]
    options = watch_parser("gradform watch").parse_args(arguments)
    deriver = Deriver()
    try:
        deriver.ask(options, writes=True)
        deriver.process.stdin.close()  # as its end does
        assert deriver.process.wait(LONGEST) == 1 and not out.exists()
    finally:
        deriver.end()


def test_watch_says_what_a_save_changes_and_outlives_mistakes(tmp_path):
    file = tmp_path / "square.py"
    file.write_text(SQUARE)
    watcher = Watcher(tmp_path, "square.py", "--out", "out")
    try:
        watcher.until("written to out/square.py")
        module = tmp_path / "out" / "square.py"
        before = module.read_text()
        file.write_text(RENAMED)
        said = watcher.until("written to")
        assert "square: nothing changed in the mathematics; a is called squared" in said
        file.write_text(SQUARE.replace("a + x", "a + q"))
        said = "\n".join(watcher.until("waiting for the next save"))
        assert "q is unknown" in said and "Traceback" not in said
        file.unlink()
        assert "does not exist" in "\n".join(watcher.until("waiting for the next save"))
        file.write_text(CUBE)
        said = watcher.until("written to")
        assert "square: changed" in said and "    + a = x**3" in said
        assert module.read_text() != before
        watcher.process.send_signal(signal.SIGINT)
        assert watcher.process.wait(LONGEST) == 0
        assert watcher.until("stopped watching") and "Traceback" not in "".join(watcher.lines)
    finally:
        watcher.process.kill()
