"""README.md and docs/: what a reader is told to do, done; what is said to be printed, printed.

    python tests/test_docs.py

writes the outputs of today into the pages.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from documentation import (
    FENCED,
    LANGUAGES,
    PAGES,
    ROOT,
    anchors,
    answered,
    conversed,
    examples,
    links,
    program_of,
    ran,
    refreshed,
    without_measurements,
)

from codegen.commands.verbs import GENERATE, VERBS
from codegen.driver.lean import generate
from codegen.driver.qualities import emitted
from codegen.files.quality import Moves
from codegen.targets.languages import kernels
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.pair import pairs_of
from codegen.targets.lean.target import lean_program
from derive import forward_from
from derive.derivation import derive_definition
from derive.language.notation.library import as_forward

TEXTS = {name: file.read_text() for name, file in PAGES.items()}
KERNEL = "generated/kernels/softmax_nll.cpp"
LAUNCHING = "generated/kernels/layer_norm.py"
MOST = 150  # lines of README.md: a start, and no reference
LARGEST = 150_000  # bytes of a picture
ARCHITECTURE = TEXTS["docs/architecture.md"]


LONG = ("docs/many-ranks.md",)  # it starts torchrun, whose ranks import torch


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=[pytest.mark.slow] * (p in LONG)) for p in TEXTS]
)
def test_what_is_shown_is_what_is_printed_today(page, tmp_path):
    for example, today in answered(TEXTS[page], tmp_path):
        shown, printed = map(without_measurements, (example.text, today))
        assert shown == printed, "run python tests/test_docs.py"
    program = program_of(TEXTS[page])
    assert not program or ran(program, tmp_path) == ""
    assert conversed(TEXTS[page], tmp_path) == ""


def test_the_kernel_and_what_launches_it_are_those_that_are_written():
    shown = {e.language: e.text.strip() for e in examples(TEXTS["docs/kernels.md"])}
    assert shown["cpp"] in (ROOT / KERNEL).read_text()
    assert shown["text"] in (ROOT / LAUNCHING).read_text()


def test_the_kernel_in_triton_that_is_shown_is_the_one_that_is_written():
    forward = as_forward("softmax")
    outside = outside_of(forward.definition)
    program = lean_program(forward, derive_definition(outside.inside))
    (written,) = kernels["triton"].texts(pairs_of(program, outside), "")
    shown = [e.text for e in examples(TEXTS["docs/gpu-kernels.md"]) if "@triton.jit" in e.text]
    assert len(shown) == 1 and shown[0] in written


@pytest.mark.parametrize("page", TEXTS)
def test_every_example_says_what_it_is(page):
    text = TEXTS[page]
    assert {example.language for example in examples(text)} <= LANGUAGES
    assert not re.search(r"\n\n    \S", FENCED.sub("", text))  # which would be an example too


@pytest.mark.parametrize("page", TEXTS)
def test_a_part_of_a_file_of_the_projects_is_one(page):
    for example in examples(TEXTS[page]):
        if example.file and (ROOT / example.file).exists():
            text = (ROOT / example.file).read_text()
            assert all(part in text for part in example.parts)


@pytest.mark.parametrize("page", TEXTS)
def test_what_a_link_names_is_there(page):
    for target in links(TEXTS[page]):
        name, _, anchor = target.partition("#")
        file = (PAGES[page].parent / name).resolve() if name else PAGES[page]
        assert file.exists() and file.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(file.read_text()), target


@pytest.mark.parametrize("page", TEXTS)
def test_what_a_reader_is_to_type_is_there(page):
    """Where it takes too long to be run here."""
    makefile = (ROOT / "Makefile").read_text()
    typed = "\n".join(example.text for example in examples(TEXTS[page]) if example.language == "sh")
    for goal in re.findall(r"\bmake ([a-z][\w-]*)", typed):
        assert re.search(rf"^{goal}:", makefile, re.M), goal
    for file in re.findall(r"\bpython ([\w/]+\.py)", typed):
        assert (ROOT / file).exists(), file


def test_every_page_is_in_the_list_of_pages():
    pages = {name.removeprefix("docs/") for name in TEXTS} - {"README.md"}
    assert pages <= set(links(TEXTS["docs/README.md"]))
    assert "docs/README.md" in links(TEXTS["README.md"])


def test_pictures_are_small():
    pictures = [*(ROOT / "docs" / "images").iterdir()]
    assert pictures and all(file.stat().st_size <= LARGEST for file in pictures)


def test_the_readme_is_a_start():
    assert len(TEXTS["README.md"].splitlines()) <= MOST


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_of_commands_has_every_option_of_every_verb(verb):
    title = "gradform [" if verb == GENERATE else f"gradform {verb}"
    sections = TEXTS["docs/commands.md"].split("\n## ")
    (section,) = (s for s in sections if re.match(rf"{re.escape(title)}( |$|N)", s, re.M))
    rows = re.findall(r"^\| `(--[\w-]+)[ `]", section, re.M)
    assert set(rows) == {o for o in VERBS[verb].options(verb) if o.startswith("--")} - {"--help"}


def test_a_forward_costs_what_the_page_says(tmp_path):
    (mathematics,) = (
        e for e in examples(TEXTS["docs/your-own-function.md"]) if e.file == "my_loss.py"
    )
    (tmp_path / "my_loss.py").write_text(mathematics.body)
    quality = emitted(generate(forward_from(tmp_path / "my_loss.py"))).quality
    assert quality.saved == ("prediction (N, C)", "target (N, C)")
    assert quality.backward.kernel == Moves(2, 2)


def test_the_table_of_costs_is_the_reports():
    report = (ROOT / "generated" / "REPORT.md").read_text()
    rows = re.findall(r"^\| (\w+) \|.*\| ([^|]+) \| (\d \+ \d) \|$", TEXTS["docs/report.md"], re.M)
    assert len(rows) > 4
    for name, kept, moved in rows:
        titles = re.search(r"^\| function \| full size \| .*$", report, re.M).group()
        row = re.search(rf"^\| {name} \| .*$", report, re.M).group()
        cells = dict(zip(cells_of(titles), cells_of(row), strict=True))
        saved = re.findall(r"(\w+) \(([^)]*)\)", cells["saved"])
        assert {*kept.split(", ")} <= {name for name, _ in saved}
        assert moved == cells["backward, kernel"]


def cells_of(row):
    return [cell.strip() for cell in row.split("|")[1:-1]]


def test_every_folder_that_the_page_of_contributors_names_is_there():
    for folder in re.findall(r"`((?:derive|codegen|generated|tests)(?:/\w+)*)/`", ARCHITECTURE):
        assert (ROOT / folder).is_dir(), folder


def test_the_page_of_contributors_names_every_room():
    found = [*ROOT.glob("derive/*/__init__.py"), *ROOT.glob("derive/*/*/__init__.py")]
    found += ROOT.glob("codegen/*/__init__.py")
    rooms = {file.parent.relative_to(ROOT).as_posix() for file in found}
    own = {room for room in rooms if "math/" not in room}
    assert own <= set(re.findall(r"`((?:derive|codegen)(?:/\w+)+)/`", ARCHITECTURE))


def test_an_answer_that_has_changed_is_seen(tmp_path):
    page = "```console\n$ gradform list | head -1\nnothing\n```\n"
    today = refreshed(page, tmp_path)
    assert "add_rms_norm" in today and "nothing" not in today


if __name__ == "__main__":
    os.environ["GRADFORM_CACHE"] = ""
    for name in sys.argv[1:] or TEXTS:
        with TemporaryDirectory() as folder:
            PAGES[name].write_text(refreshed(TEXTS[name], Path(folder)))
