"""The order of the terms of a sum: terms that nearly cancel stand together, before terms that are
rounded off beside them.

SymPy keeps no order, so it is found again: of ``1 + top - low`` as of ``top - low + 1`` the
difference comes first, and numbers last, for ``top + 1`` is ``top`` where that is large. A single
``1 - p`` is a difference of like quantities too, and ``eps`` comes after it. Of ``s - 1e9*(1 - m)``
SymPy makes ``s + 1e9*m - 1e9``: what one factor was multiplied into stands together as well, for
nothing of ``s`` is left beside ``1e9``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, Mul

from derive.language.operations import operations_in
from derive.language.symbols import axes_of, is_constant, tensors_in


def ordered_terms(e: Add) -> list[Expr]:
    """The terms of a sum in the order in which they are written and added up."""
    pairs, rest = differences_and_rest(e.args)
    return [term for pair in pairs for term in pair] + rest


def differences_and_rest(terms: Sequence[Expr]) -> tuple[list[tuple[Expr, Expr]], list[Expr]]:
    """Differences, as pairs of an added and a subtracted term, and the remaining terms."""
    terms = sorted(terms, key=term_order)
    data = [t for t in terms if not is_constant(t)]
    constants = [t for t in terms if is_constant(t)]
    added = [t for t in data if not is_subtracted(t)]
    rest = [t for t in data if is_subtracted(t)]
    pairs = []
    while alike := _alike(added, rest, constants):
        pairs.append(max(alike, key=lambda pair: _likeness(*pair)))
        added, rest, constants = (
            [t for t in kind if t not in pairs[-1]] for kind in (added, rest, constants)
        )
    if not pairs and len({*map(is_subtracted, data)}) == 1:
        return [], _around_numbers(terms, bool(added))
    if len(pairs) == 1 and not added and {*pairs[0]} <= {*data}:
        return [], [*data, *constants]  # from one tensor all others are subtracted
    return pairs, [*added, *rest, *constants] if pairs else terms


def _alike(added: list[Expr], rest: list[Expr], constants: list[Expr]) -> list[tuple[Expr, Expr]]:
    """Pairs that may nearly cancel: tensors of like quantity, and a factor with its multiple."""
    tensors = [(a, b) for a in added for b in rest if _are_alike(a, b, bool(constants))]
    one_factor = [
        (c, t) if is_subtracted(t) else (t, c)
        for t in (*added, *rest)
        for c in constants
        if c not in (1, -1) and _constant_factor(t) == -c
    ]
    return tensors + one_factor


def _constant_factor(term: Expr) -> Expr:
    return Mul(*(f for f in Mul.make_args(term) if is_constant(f)))


def is_subtracted(term: Expr) -> bool:
    return term.could_extract_minus_sign() and not isinstance(term, Add)


def term_order(term: Expr) -> tuple:
    """Added before subtracted, plain before involved."""
    scalar = all(t.role == "scalar" for t in tensors_in(term))
    return (
        is_subtracted(term),
        len(Mul.make_args(term)) > 3,
        scalar,
        -len(axes_of(term)),
        operations_in(term),
        str(term),
    )


def _around_numbers(terms: list[Expr], added: bool) -> list[Expr]:
    """The terms where all tensors are ``added``, or all subtracted: constants of the other sign
    make a difference with them, after which come the other constants.
    """
    constants = [t for t in terms if is_constant(t)]
    numbers = sorted(constants, key=lambda t: bool(tensors_in(t)))  # eps is smaller than 1
    against = next((t for t in numbers if is_subtracted(t) == added), None)
    if against is None or len(constants) in (1, len(terms)):
        return terms
    data = [t for t in terms if t not in constants]
    others = [t for t in numbers if t != against]
    return [*data, against, *others] if added else [against, *data, *others]


def _are_alike(added: Expr, subtracted: Expr, beside_numbers: bool) -> bool:
    """Whether two terms may be the same quantity: both one factor beside constants, as ``x`` and
    ``Sum(x, N)/N`` are; products of as many only where numbers would stand between them.
    """
    one, other = (
        sum(not is_constant(factor) for factor in Mul.make_args(term))
        for term in (added, subtracted)
    )
    return one == other and (one == 1 or beside_numbers)


def _likeness(added: Expr, subtracted: Expr) -> tuple:
    """Sort key, larger for terms more alike: with the same constants, both of tensors, with the
    same factors, of the same tensors, along the same axes.
    """
    subtracted = -subtracted
    factors, others = ({*Mul.make_args(e)} for e in (added, subtracted))
    tensors, of_other = ({t.name for t in tensors_in(e)} for e in (added, subtracted))
    return (
        _constant_factor(added) == _constant_factor(subtracted),
        not is_constant(added) and not is_constant(-subtracted),
        len(factors & others),
        len(tensors & of_other),
        axes_of(added) == axes_of(subtracted),
        -abs(operations_in(added) - operations_in(subtracted)),
    )
