"""A document in other names: what is derived under one name and read under another.

In: a `Document`, and what replaces some of its tensors: another tensor, or a number.
Out: a `Document`. Formulas are rewritten; in words, names are replaced as whole words. A step that
says the same as the line before it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sympy import Basic, Expr, Symbol

from derive.language.choices import written_in
from derive.language.formulas.entries import entry_of
from derive.language.formulas.words import Side, parts_of
from derive.language.nodes import along
from derive.language.symbols import Tensor
from derive.show.document import (
    Block,
    Code,
    Derivation,
    Equation,
    Equations,
    Foldable,
    Matrix,
    Prose,
    Section,
    TensorGraph,
)

WORD = re.compile(r"[^\W\d]\w*")


class Renaming:
    """Replace tensors by name; those in ``later`` only behind the first line of a derivation,
    which is the line of the chain.
    """

    def __init__(self, known: Mapping[str, Expr], later: Mapping[str, Expr] = {}):
        self.known = known
        self.steps = Renaming({**known, **later}) if later else self

    def section(self, section: Section) -> Section:
        return replace(section, blocks=tuple(map(self.block, section.blocks)))

    def block(self, block: Block) -> Block:
        if isinstance(block, Prose):
            return Prose(self.side(block.words))
        if isinstance(block, Equations):
            return replace(block, lines=tuple(map(self.equation, block.lines)))
        if isinstance(block, Derivation):
            start = self.equation(block.start)
            steps = _without_repetition(start, map(self.steps.equation, block.steps))
            return Derivation(self.side(block.title), start, tuple(steps))
        if isinstance(block, Matrix):
            rows = tuple(tuple(map(self.formula, row)) for row in block.rows)
            return Matrix(self.side(block.name), rows, block.sizes, self.side(block.remark))
        if isinstance(block, Foldable):
            return Foldable(self.side(block.title), tuple(map(self.block, block.blocks)))
        if isinstance(block, (Code, TensorGraph)):  # neither names a gradient of what is shown
            return block
        raise TypeError(f"nothing renames {type(block).__name__}")

    def equation(self, line: Equation) -> Equation:
        left, right, remark = map(self.side, (line.left, line.right, line.remark))
        return replace(line, left=left, right=right, remark=remark)

    def side(self, side: Side) -> Side:
        if isinstance(side, Basic):
            return self.formula(side)
        parts = tuple(
            self._words(p) if isinstance(p, str) else self.formula(p) for p in parts_of(side)
        )
        return "".join(parts) if isinstance(side, str) else parts

    def formula(self, e: Basic) -> Basic:
        met = [t for t in e.atoms(Tensor) if t.name in self.known]
        e = written_in(e, {t: along(self.known[t.name], t) for t in met})
        return e.xreplace({s: own for s in e.atoms(Symbol) if (own := self._entry(s)) != s})

    def _entry(self, entry: Symbol) -> Symbol:
        """An entry of a tensor in a small batch."""
        name, index = entry_of(entry)
        own = self.known.get(name) if index else None
        if not isinstance(own, Tensor):
            return entry
        return Symbol(entry.name.replace(name, own.name, 1), real=True)

    def _words(self, text: str) -> str:
        return WORD.sub(lambda found: str(self.known.get(found[0], found[0])), text)


def _without_repetition(start: Equation, steps: Iterable[Equation]) -> Iterator[Equation]:
    before = start.right
    for step in steps:
        if step.right != before:
            yield step
        before = step.right
