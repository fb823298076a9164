"""Texts are in the field's plain words: phrases that a reader would stumble over are not used.

Checked are the pages, the examples, and docstrings, comments and messages of the code.
"""

from __future__ import annotations

import ast
import json
import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "examples", "derive", "codegen", "generated", "playground")
TEXTS = (".md", ".jinja", ".html", ".js", ".css", ".h", ".cpp")  # checked as they are

# A phrase, and what to write instead. A space stands for any white space, a line break too.
PHRASES = {
    "to be written down": "may overflow, or may underflow",
    r"on the wall(?! clock)\b": "wall-clock",
    "(?:the|a) limit of time": "time limit",
    "none included": "even none",
    "the arguments along it have": "flattened into one axis",
    "everywhere where": "defaults to",
    "what holds for all": "what all share",
    "the code that was written": "the generated code",
    "but for rounding": "up to rounding",
    "difference to (?:autograd|SymPy)": "difference from",
    "neighbouring mathematics": "a similar forward",
    "in the place of": "instead of, or replaces",
    "in the terms of": "in terms of",
    "in the format of": "in the dtype of",
    "(?:single|double) precision": "float32, or float64",
    "somebody else": "another user",
    r"anew\b": "again",
    r"likewise\b": "the same, or also",
    r"mended\b": "fixed",
    r"spelt\b": "written",
    r"trifle\b": "rounding error",
    r"looked after\b": "handled",
    r"handed on\b": "passed on",
    r"of (?:theirs|yours)\b": "their, or your",
    "of one's own": "your own",
    r"the own\b": "its own",
    r"knows? (?:no|nothing)\b": "does not know",
    r"that there is not\b": "an unknown one",
    r"is due\b": "is needed",
    "since it is held": "because it is",
    "numbers? as (?:they are|it is) typed": "exact numbers",
    "to the letter": "exactly",
    "in one word": "the thing's name",
    "whichever one": "which",
    r"(?:is|are|was) had\b": "has",
    "for as long as one": "until",
    "the one (?:of|with) the other": "each other",
    "so to (?:say|speak)": "nothing",
    "the machine does": "gradform does",
    "as one likes": "any",
    r"what goes in\b": "the input",
    r"is let\b": "is left",
}


def _pattern(phrase: str) -> re.Pattern:
    return re.compile(rf"\b(?:{phrase})".replace(" ", r"\s+"), re.IGNORECASE)


OTHERS = {"__pycache__", "node_modules"}  # folders of what others wrote, after `make test-browser`
PATTERNS = {phrase: _pattern(phrase) for phrase in PHRASES}


def _files() -> Iterator[Path]:
    yield ROOT / "README.md"
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".ipynb", *TEXTS) and not OTHERS.intersection(path.parts):
                yield path


def _pieces(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with the line where it begins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _strings(text)
        yield from _comments(text)
    elif path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "markdown":
                yield 1, "".join(cell["source"])
    else:
        yield 1, text


def _strings(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments on successive lines are one text."""
    lines: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1:
            yield first, "\n".join(lines)
            first, lines = token.start[0], []
        last = token.start[0]
        lines.append(token.string.lstrip("# "))
    yield first, "\n".join(lines)


def said(path: Path) -> list[str]:
    """A line for every phrase in a file: where, which, and what to write instead."""
    return [
        f"{line + text[: found.start()].count(chr(10))}: {' '.join(found[0].split())!r}: "
        f"write {PHRASES[phrase]!r}"
        for line, text in _pieces(path)
        for phrase, pattern in PATTERNS.items()
        for found in pattern.finditer(text)
    ]


def test_no_phrase_makes_a_reader_stumble():
    found = [f"{path.relative_to(ROOT)}:{line}" for path in _files() for line in said(path)]
    assert not found, f"{len(found)} phrases:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "a message": 'raise ValueError(f"{n} is\tlikewise too large")',
        "a docstring": '"""A number too large to be\nwritten down."""',
        "a comment": "x = 1\n# It is one, but\n# for rounding.",
    }.items(),
)
def test_a_phrase_is_found_wherever_it_stands(name, text, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(text, encoding="utf-8")
    (found,) = said(file)
    assert ": write " in found and found.startswith({"a comment": "2: "}.get(name, "1: "))
