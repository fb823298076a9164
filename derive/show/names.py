"""Definitions of the names of parts, in front of the lines that use them.

The steps have names for parts of the forward that the user gave none: the exponential in a softmax,
and where it could overflow the same with the row's maximum taken out. A section begins with those
that it is the first to use, each with its definition and, where it is not plain, its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sympy import Add, Expr, exp

from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.values.naming import NamedValue
from derive.language.formulas.words import Side, Words, parts_of
from derive.language.nodes import Peak
from derive.language.symbols import tensors_in
from derive.show.document import (
    Block,
    Derivation,
    Equation,
    Equations,
    Foldable,
    Matrix,
    Prose,
    Section,
)

SAID = "Names for parts of the forward:"


def explained(sections: Iterable[Section], form: ClosedForm) -> Iterator[Section]:
    """The sections, each with the names of parts that it is the first to use: in front of its
    lines, but behind those of the first section, the result.
    """
    given = {t.name for t in form.definition.arguments} | form.definition.by_name.keys()
    parts = {p.tensor.name: p for p in form.relations.parts if p.tensor.name not in given}
    for place, section in enumerate(sections):
        for line in (e for b in section.blocks if isinstance(b, Equations) for e in b.lines):
            parts.pop(getattr(line.left, "name", ""), None)  # which the section defines itself
        met: dict[str, None] = {}
        for block in section.blocks:
            _meet(met, (t.name for e in _formulas(block) for t in tensors_in(e)), parts)
        first = tuple(_line(part, parts) for name, part in parts.items() if name in met)
        for name in met:
            del parts[name]
        names = (Prose(SAID), Equations(first)) if first else ()
        blocks = (*names, *section.blocks) if place else (*section.blocks, *names)
        yield replace(section, blocks=blocks)


def _meet(met: dict[str, None], names: Iterable[str], parts: dict[str, NamedValue]) -> None:
    """Add the parts called ``names``, and those in whose definitions they stand."""
    for name in names:
        if name in parts and name not in met:
            met[name] = None
            _meet(met, (t.name for t in tensors_in(parts[name].expression)), parts)


def _line(part: NamedValue, parts: dict[str, NamedValue]) -> Equation:
    return Equation(part.tensor, part.expression, _reason(part.expression, parts))


def _reason(e: Expr, parts: dict[str, NamedValue]) -> Words:
    """The reason for a part that nobody wrote: its exponential would overflow otherwise."""
    if isinstance(e, Peak):
        return ("the largest entry along ", *e.axes)
    if _less_a_peak(e, parts):
        return "at most 0, so that its exponential cannot overflow"
    if isinstance(e, exp):
        (inner,) = e.args
        whole = parts[inner.name].expression if getattr(inner, "name", "") in parts else inner
        peak = _less_a_peak(whole, parts)
        if peak is not None:
            same = (exp(whole + peak), " divided by ", exp(peak))
            return (*same, ", a number for each row: quotients of them stay the same")
    return ""


def _less_a_peak(e: Expr, parts: dict[str, NamedValue]) -> Expr | None:
    """The maximum that is subtracted in ``e``, if one is."""
    for term in Add.make_args(e):
        name = getattr(-term, "name", "")
        if name in parts and isinstance(parts[name].expression, Peak):
            return -term
    return None


def _formulas(block: Block) -> Iterator[Expr]:
    if isinstance(block, Prose):
        yield from _in_words(block.words)
    elif isinstance(block, Equations):
        for line in block.lines:
            yield from _in_line(line)
    elif isinstance(block, Derivation):
        yield from _in_words(block.title)
        for line in (block.start, *block.steps):
            yield from _in_line(line)
    elif isinstance(block, Matrix):
        yield from (entry for row in block.rows for entry in row)
    elif isinstance(block, Foldable):
        for inner in block.blocks:
            yield from _formulas(inner)


def _in_line(line: Equation) -> Iterator[Expr]:
    for side in (line.left, line.right, line.remark):
        yield from _in_words(side)


def _in_words(words: Side) -> Iterator[Expr]:
    yield from (part for part in parts_of(words) if not isinstance(part, str))
