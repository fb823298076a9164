"""The backward of one of several outputs, where no other one has a gradient.

In a proved closed form every upstream gradient may be any tensor, so also 0: what it multiplies
falls away, and what only that needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sympy import Expr, S

from codegen.outlines import Line
from derive.language.choices import with_args
from derive.language.nodes import ArrayNode
from derive.language.symbols import Tensor, tensors_in


def with_zeros(
    lines: Iterable[Line], zero: Collection[str], results: Sequence[str]
) -> tuple[list[Line], tuple[str, ...]]:
    """The lines where the tensors called ``zero`` are 0, as far as the ``results`` need them; and
    those of these that are not 0 then.
    """
    zero, found = {*zero}, []
    for line in lines:
        terms = tuple(e for term in line.terms if (e := _without(term, zero)) != 0)
        if terms:
            found.append(replace(line, terms=terms))
        else:
            zero.add(line.tensor.name)
    left = tuple(name for name in results if name not in zero)
    needed, kept = {*left}, []
    for line in reversed(found):
        if line.tensor.name in needed:
            kept.append(line)
            needed |= {t.name for e in line.terms for t in tensors_in(e)}
    return kept[::-1], left


def _without(e: Expr, zero: Collection[str]) -> Expr:
    if isinstance(e, Tensor):
        return S.Zero if e.name in zero else e
    if not any(t.name in zero for t in tensors_in(e)):
        return e
    if isinstance(e, ArrayNode):
        operand = _without(e.operand, zero)
        return S.Zero if operand == 0 else e.on(operand)
    return with_args(e, [_without(arg, zero) for arg in e.args])


def listed(kind: str, names: Sequence[str]) -> str:
    """``output y``, ``outputs y and h``; the names alone for no kind."""
    *others, last = names
    words = f"{', '.join(others)} and {last}" if others else last
    return f"{kind}{'s' * bool(others)} {words}" if kind else words
