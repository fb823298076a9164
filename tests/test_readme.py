"""What the README tells a reader to do, done."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import codegen
from codegen.driver import emitted, generate
from codegen.quality import Moves
from derive import forward_from

ROOT = Path(codegen.__file__).parents[1]
SECTION = re.search(
    r"^## Adding a forward is one file$(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S
).group(1)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.M | re.S)
MATHEMATICS, USE = (text for language, text in BLOCKS if language == "python")
(PRINTED,) = (text for language, text in BLOCKS if not language)
(COMMAND,) = re.findall(r"^    (gradform .*)$", SECTION, re.M)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_loss.py").write_text(MATHEMATICS)
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )


def without_measurements(text: str) -> str:
    return re.sub(r"\d\.\de-\d\d|\d\.\d\d s", "measured", text)


def test_a_forward_of_the_readers_own_from_the_beginning_to_the_end(folder):
    program, *arguments = COMMAND.split()
    assert program == "gradform"
    start = "import sys; from codegen.cli import gradform; sys.exit(gradform())"
    run = python(folder, "-c", start, *arguments)
    assert run.returncode == 0, run.stderr
    _, _, below_the_top = run.stdout.partition("\n")
    assert without_measurements(below_the_top) == without_measurements(PRINTED)
    used = python(folder, "-c", USE)
    assert used.returncode == 0, used.stderr


def test_it_costs_what_the_readme_says(folder):
    quality = emitted(generate(forward_from(folder / "my_loss.py"))).quality
    assert quality.saved == ("prediction (N, C)", "target (N, C)")
    assert quality.backward.kernel == Moves(2, 2)
