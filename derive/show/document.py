"""A document before it has a format: titles, sentences, equations, steps and matrices.

Formulas are SymPy expressions until a renderer prints them; words are plain text, which a renderer
escapes. All records are frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest

from sympy import Add, Expr

from derive.gradient.chain.chain import Chain
from derive.language.formulas.words import Side, Words


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    words: Words


@dataclass(frozen=True)
class Equation:
    """``left = right``, and a remark beside it; ``shape`` is that of the left side.

    With "+" on the left, ``right`` is a term that is added to the line above.
    """

    left: Side
    right: Side
    remark: Words = ""
    shape: str = ""

    @property
    def is_term(self) -> bool:
        return self.left == "+"

    @property
    def relation(self) -> str:
        """``=``, or the sign of a term."""
        return ("-" if self._subtracted else "+") if self.is_term else "="

    @property
    def shown(self) -> Side:
        """The right side, as it is printed behind the relation."""
        return -self.right if self._subtracted else self.right

    @property
    def _subtracted(self) -> bool:
        e = self.right
        negative = isinstance(e, Expr) and not isinstance(e, Add) and e.could_extract_minus_sign()
        return self.is_term and negative


@dataclass(frozen=True)
class Equations:
    """Equations that are aligned with each other; ``steps`` are found one after the other, and a
    page can show them so.
    """

    lines: tuple[Equation, ...]
    steps: bool = False


@dataclass(frozen=True)
class Derivation:
    """A chain of equal expressions: each with the rules that led to it, and why they hold.

    ``title`` says what is derived, where the left side of ``start`` does not say it already.
    """

    title: Words
    start: Equation
    steps: tuple[Equation, ...]

    @property
    def reached(self) -> Side:
        """The right side of the last line."""
        return (self.start, *self.steps)[-1].right

    @property
    def count(self) -> str:
        """The number of steps in words; the first line is a step only where it has a reason."""
        steps = len(self.steps) + bool(self.start.remark)
        return f"{steps} step" if steps == 1 else f"{steps} steps"


@dataclass(frozen=True)
class Matrix:
    """Entries, row by row, of what ``name`` stands for: a tensor whose axes have ``sizes``, and
    which has a row for every place along all axes but the last.
    """

    name: Side
    rows: tuple[tuple[Expr, ...], ...]
    sizes: tuple[int, ...]
    remark: Words = ""

    @property
    def placed(self) -> Iterator[tuple[tuple[int, ...], Expr]]:
        """The entries under their indices, which count from 1."""
        places = product(*(range(1, size + 1) for size in self.sizes))
        return zip(places, chain.from_iterable(self.rows), strict=True)


@dataclass(frozen=True)
class Code:
    """Lines of a program, each beside the statement that it computes."""

    lines: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> Iterator[str]:
        """The lines with the statements before them, all in one column."""
        column = max((len(name) for name, _ in self.lines), default=0) + 2
        for name, text in self.lines:
            for start, line in zip_longest([f"{name}:"], text.split("\n"), fillvalue=""):
                yield f"{start:{column}}{line}"


@dataclass(frozen=True)
class ProgramLines:
    """Lines of a program by the names of a closed form's statements, and in ``words`` the checks it
    passed; if it did not pass there are no lines, and ``refused`` says why.
    """

    words: str
    by_name: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""


@dataclass(frozen=True)
class TensorNode:
    """A tensor in the graph of a forward; ``role`` is that of the tensor."""

    name: str
    role: str
    shape: str


@dataclass(frozen=True)
class Numbered:
    """The source of the numbers in a page's graph: a small batch with ``entries`` along the
    first axis.
    """

    chain: Chain
    entries: int


@dataclass(frozen=True)
class TensorGraph:
    """The graph of the computation: edges (from, to), in the order of the statements.

    Where ``passes`` holds an edge, a gradient flows back along it.
    """

    nodes: tuple[TensorNode, ...]
    edges: tuple[tuple[str, str], ...]
    passes: frozenset[tuple[str, str]]
    numbered: Numbered | None = None


@dataclass(frozen=True)
class Foldable:
    """Blocks that are folded in the overview, until the reader opens them."""

    title: Words
    blocks: tuple[Block, ...]


Block = Prose | Equations | Derivation | Matrix | Code | TensorGraph | Foldable


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Checkable:
    """Where a reader's own lines can be judged: the name that ``gradform check`` takes, the class
    and the text of its file, and the tensors whose gradients it knows.
    """

    asked: str
    name: str
    text: str
    tensors: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """``name`` is the forward's, ``summary`` the paragraphs of its docstring.

    Of an ``overview`` a terminal, where nothing can be opened, shows no steps. ``headline`` is the
    formula that an index has beside the name. ``certificate`` is the file that Coq accepted.
    """

    name: str
    summary: tuple[Words, ...]
    sections: tuple[Section, ...]
    overview: bool = False
    headline: Equation | None = None
    checkable: Checkable | None = None
    certificate: str = ""
