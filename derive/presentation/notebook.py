"""How the records of a derivation show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from derive.formulas.latex import latex_formula
from derive.language.symbols import Tensor
from derive.presentation.html import fragment
from derive.presentation.sections import document_of


def html_of(proved) -> str:
    """The whole derivation of a `Proved`, without a page around it."""
    return fragment(document_of(proved))


def latex_of(equations: Iterable[tuple[Tensor, Expr]]) -> str:
    """Statements as one aligned display."""
    lines = [f"{latex_formula(left)} &= {latex_formula(right)}" for left, right in equations]
    inside = " \\\\\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{inside}\n\\end{{aligned}}\n$$"
