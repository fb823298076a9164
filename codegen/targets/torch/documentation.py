"""Parts of the docstring of a generated module."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from codegen.program import Program
from codegen.targets.torch.lines import STEP, broken

WIDTH = 96  # of a line in the module, 100, without the indentation that lists have


def formula_lines(formulas: Iterable[str]) -> list[str]:
    """Formulas for a docstring: indented, and broken where they are long."""
    return [line for f in formulas for line in (STEP + broken(f)).split("\n")]


def part(lines) -> list[str]:
    """Lines after an empty one; empty if there are none."""
    return ["", *lines] if lines else []


def item(text: str) -> list[str]:
    """The lines of a list item."""
    return wrap(text, WIDTH + 2, initial_indent="- ", subsequent_indent="  ")


def equal_largest(program: Program) -> list[str]:
    """State which of equal entries gets the gradient."""
    return [
        f"The first of equal largest entries of {e} has the gradient, as with torch.max; "
        "torch.amax divides it. In bfloat16 many entries are equal."
        for e in program.first
    ]


def safe(text: str) -> str:
    """A user's text made safe inside a docstring or comment: it cannot end either."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.replace("\\", "\\\\").replace('"""', "'''")
