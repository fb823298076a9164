"""What is shown, before it has a format: titles, sentences, equations, steps and matrices.

Formulas are SymPy expressions until a renderer prints them; words are plain text, which a renderer
escapes. All records are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr

Side = Expr | str


@dataclass(frozen=True)
class Prose:
    """A paragraph. What stands between backquotes is a name from the forward."""

    text: str


@dataclass(frozen=True)
class Equation:
    """``left = right``, and a remark beside it; ``shape`` is that of the left side."""

    left: Side
    right: Side
    remark: str = ""
    shape: str = ""


@dataclass(frozen=True)
class Equations:
    """Equations that are aligned with each other."""

    lines: tuple[Equation, ...]


@dataclass(frozen=True)
class Derivation:
    """A chain of equal expressions: each with the rules that led to it, and why they hold.

    ``title`` names what is derived, ``claim`` is what was reached.
    """

    title: str
    start: Equation
    steps: tuple[Equation, ...]


@dataclass(frozen=True)
class Matrix:
    """Entries, row by row, of what ``name`` stands for."""

    name: Side
    rows: tuple[tuple[Expr, ...], ...]
    remark: str = ""


@dataclass(frozen=True)
class Code:
    """Lines of a program, each beside the statement that it computes."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Node:
    """A tensor in the graph of a forward; ``role`` is 'input', 'label', 'scalar' or 'statement'."""

    name: str
    role: str
    shape: str


@dataclass(frozen=True)
class Graph:
    """Which tensor is computed from which: edges (from, to), in the order of the statements.

    Where ``passes`` holds an edge, a gradient flows back along it.
    """

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    passes: frozenset[tuple[str, str]]


Block = Prose | Equations | Derivation | Matrix | Code | Graph


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """``name`` is the forward's, ``summary`` its first paragraph."""

    name: str
    summary: str
    sections: tuple[Section, ...]
