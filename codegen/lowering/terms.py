"""The terms of a sum: those that nearly cancel stay together, before the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Add, Expr

from codegen.lowering.context import Context
from codegen.lowering.frames import broadcast
from codegen.program.values import Plus, Value
from derive.language.formulas.order import differences_and_rest, is_subtracted, ordered_terms
from derive.language.nodes import Peak, SubtractedPeak, along
from derive.language.symbols import Tensor, axes_of


@dataclass(frozen=True)
class SignedTerms:
    """A sum of terms that stay together, subtracted if ``negative``."""

    e: Expr
    negative: bool


def lowered_terms(lowering: Context, terms: Sequence[Expr | SignedTerms], frame, picked) -> Value:
    values = [
        (lowered_terms(lowering, ordered_terms(term.e), frame, picked), term.negative)
        if isinstance(term, SignedTerms)
        else lowered_term(lowering, term, frame, picked)
        for term in terms
    ]
    return Plus(tuple(values), dims=broadcast(value.dims for value, _ in values))


def differences_first(lowering: Context, e: Add) -> list[Expr | SignedTerms]:
    """The terms of a sum, with differences first, each by itself: terms that nearly cancel are
    large, and anything added before is rounded. An entry and the largest of its row come first of
    all.
    """
    terms = ordered_terms(e)
    rest, differences = list(terms), []
    for term in terms:
        largest = next((t for t in (term, -term) if isinstance(t, Tensor)), None)
        for entry in () if largest is None else _entries(lowering, largest):
            negative, entry = largest == term, along(entry, largest)  # largest - entry
            own = [term, *Add.make_args(-entry if negative else entry)]
            if len(terms) > len(own) and all(t in rest for t in own):
                rest = [t for t in rest if t not in own]
                differences.append(SignedTerms(entry - largest, negative))
    if differences:
        return sorted(differences, key=lambda d: d.negative) + rest
    pairs, rest = differences_and_rest(terms)
    first = [term for pair in pairs[:1] for term in pair]
    return [*first, *(SignedTerms(Add(*pair), False) for pair in pairs[1:]), *rest]


def _entries(lowering: Context, largest: Tensor) -> list[Expr]:
    """Operands of the maximum ``largest``. Where it is met along the very axis along which it was
    taken, as in a sum over all rows, no entry of its own is beside it.
    """
    moved = set(largest.axes) - set(largest.home)
    return [e for e in lowering.peaks.get(largest.name, ()) if not moved & axes_of(e)]


def lowered_term(lowering: Context, term: Expr, frame, picked) -> tuple[Value, bool]:
    negative = is_subtracted(term)
    term = -term if negative else term
    if negative and isinstance(term, Peak):
        term = SubtractedPeak.over(term.operand, term.axes)
    return lowering.value(term, frame, picked), negative
