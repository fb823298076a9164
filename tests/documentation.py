"""The pages that a reader opens, README.md and docs/, and what their examples come to.

What stands between fences says by its language what it is:

- ``python``: a program; those of a page are run together, in their order, after all commands. Where
  the first line is the name of a file, ``# my_loss.py``, it is that file; of a file that the
  project has, it is a part, or several with ``# ...`` between them;
- ``console``: commands after ``$``, each with all that it prints. They are run in their order, in a
  folder in which the files of the page lie beside ``examples``;
- ``pycon``: what Python answers;
- ``diff``: formulas that ``gradform diff`` shows after an edit that is described before it;
- ``sh``: what takes long or is installed; only its names are looked at;
- ``text``: what is no example.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import warm

from codegen.commands.cli import gradform

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    file.relative_to(ROOT).as_posix(): file
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
LANGUAGES = {"python", "console", "pycon", "diff", "sh", "text", "cpp"}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
TABLE = re.compile(r"^[┏┃┡│├└].*$", re.M)
WIDE = re.compile(r"([ ━─])\1+")  # a time of ten seconds widens its column
MEASURED = re.compile(r"\d\.\de[-+]\d\d|\d+\.\d\d s")  # a difference to autograd, a time
FILE = re.compile(r"# ([\w/]+\.py)\n")


@dataclass(frozen=True)
class Example:
    """The text between two fences, and its span in the page."""

    language: str
    text: str
    span: tuple[int, int]

    @property
    def file(self) -> str | None:
        """The file that it is, if it is one."""
        found = FILE.match(self.text) if self.language == "python" else None
        return found and found.group(1)

    @property
    def body(self) -> str:
        """Without the name of the file."""
        return self.text[len(FILE.match(self.text).group()) :].lstrip("\n")

    @property
    def parts(self) -> list[str]:
        """The pieces between ``# ...``."""
        return re.split(r"^ *# \.\.\.\n", self.body, flags=re.M)

    @property
    def commands(self) -> list[str]:
        return re.findall(r"^\$ (.*)$", self.text, re.M)


def examples(page: str) -> list[Example]:
    """Those of a page, in their order."""
    return [Example(m.group(1), m.group(2), m.span(2)) for m in FENCED.finditer(page)]


def without_measurements(text: str) -> str:
    return TABLE.sub(lambda line: WIDE.sub(r"\1", line[0]), MEASURED.sub("measured", text))


def answered(page: str, folder: Path) -> Iterator[tuple[Example, str]]:
    """The examples that show an answer, each with its text as it is today; ``folder`` is empty."""
    (folder / "examples").symlink_to(ROOT / "examples")
    for example in examples(page):
        if example.file and not (ROOT / example.file).exists():
            (folder / example.file).write_text(example.body)
        elif example.language == "console":
            answers = (f"$ {command}\n{printed(command, folder)}" for command in example.commands)
            yield example, "".join(answers)
        elif example.language == "diff":
            yield example, changed(page[: example.span[0]], folder)


def printed(command: str, folder: Path) -> str:
    """The output of a command: ``gradform`` runs in this process, a pipe in a shell."""
    first, _, rest = command.partition(" | ")
    program, *arguments = shlex.split(first)
    if program != "gradform":
        rest, text = command, ""
    else:
        out, said = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(said),
        ):
            status = gradform(arguments)
        text = out.getvalue() + (said.getvalue() if status == 2 else "")
    if not rest:
        return text
    return _run(["bash", "-c", rest], folder, text).stdout


def _run(
    command: list[str], folder: Path, given: str = "", run: Callable = subprocess.run
) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    programs = str(Path(sys.executable).parent)  # python, torchrun
    environment["PATH"] = os.pathsep.join([programs, environment["PATH"]])
    return run(command, input=given, capture_output=True, text=True, cwd=folder, env=environment)


def program_of(page: str) -> str:
    """The program that the examples of a page are together, without its files."""
    return "\n".join(e.text for e in examples(page) if e.language == "python" and not e.file)


def ran(program: str, folder: Path) -> str:
    """The error output if it failed, else nothing."""
    (folder / "program_of_the_page.py").write_text(program)
    program = [sys.executable, "program_of_the_page.py"]
    run = _run(program, folder, run=warm.run)
    return run.stderr if run.returncode else ""


def conversed(page: str, folder: Path) -> str:
    """Differences from the answers of Python that a page shows."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(
        "\n".join(e.text for e in examples(page) if e.language == "pycon"), {}, "page", None, 0
    )
    with contextlib.chdir(folder), importing_from(folder):
        doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    return "".join(said)


@contextlib.contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Import the files of a page as modules; forget them afterwards."""
    sys.path.insert(0, str(folder))
    known = set(sys.modules)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def changed(before: str, folder: Path) -> str:
    """The formulas that change, by ``gradform diff``, where a line of the copy that the last
    ``gradform new`` wrote becomes the one that is told: ``to `var = Sum(diff2, N) / N```.
    """
    copied = re.findall(r"^\$ gradform new (\w+)$", before, re.M)[-1]
    file = folder / f"{copied}.py"
    line = re.findall(r"to `(\w+ = [^`]+)`", before)[-1]
    name = line.partition(" ")[0]
    edited, count = re.subn(rf"^    {name} = .*$", f"    {line}", file.read_text(), flags=re.M)
    assert count == 1
    file.write_text(edited)
    formulas = printed(f"gradform diff {file.name}", folder).partition("\n Proved: ")[0]
    lines = formulas.splitlines(keepends=True)
    return "".join(line for line in lines if line[0] in "+-" and line[1:5] == "    ")


def refreshed(page: str, folder: Path) -> str:
    """The page with the answers of today, except where only a measurement differs."""
    for example, today in reversed([*answered(page, folder)]):
        if without_measurements(today) != without_measurements(example.text):
            start, end = example.span
            page = page[:start] + today + page[end:]
    return page


def links(page: str) -> list[str]:
    """The targets of its links and pictures that lie in the project."""
    plain = FENCED.sub("", page)
    found = re.findall(r"\]\(([^)\s]+)\)", plain)
    return [target for target in found if not target.startswith(("http:", "https:"))]


def anchors(page: str) -> set[str]:
    """Anchors of a page: its headings as an address has them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}
