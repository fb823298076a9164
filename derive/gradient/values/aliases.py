"""Other names for a value of the forward: a multiple of it, one over it, or a choice between
numbers by what is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, Mul, Piecewise, Pow, S

from derive.language.choices import written_in
from derive.language.nodes import OneHot, Reduction, along
from derive.language.notation.definition import Statement
from derive.language.reading_at import At
from derive.language.symbols import Tensor, is_constant, tensors_in

LARGEST_DIVISOR = 64  # of a sum of fractions that is written as a fraction of whole terms


def number_apart(e: Expr) -> tuple[Expr, Expr]:
    """``e`` as a positive number times what is more than a tensor, or as 1 times itself."""
    number, rest = e.primitive() if isinstance(e, Add) else e.as_coeff_Mul(rational=True)
    whole = e / abs(number) if isinstance(e, Mul) else rest
    if isinstance(e, Add) and number.q > LARGEST_DIVISOR:
        return S.One, e  # 10**16 times what was typed as decimals
    plain = isinstance(whole, Tensor) or isinstance(-whole, Tensor) or is_constant(whole)
    return (S.One, e) if plain else (abs(number), whole)


def resolved(e: Expr, aliases: Mapping[str, Expr]) -> Expr:
    """Replace other names in ``e`` by the multiple of a value that they stand for."""
    met = [t for t in tensors_in(e) if t.name in aliases]
    return written_in(e, {t: along(aliases[t.name], t) for t in met}) if met else e


def is_other_name(statement: Statement, e: Expr, spelled: Mapping[str, Expr]) -> bool:
    """Whether ``statement``, which is ``e``, is a multiple of a value as a whole, one over such a
    root or reduction, read of one, a one-hot, or chosen by what is given; ``spelled`` has the
    statements before.
    """
    factor, rest = e.as_independent(Tensor, as_Add=False)
    rest = rest.base if _is_reciprocal_of_a_whole(rest, spelled) else rest
    value = isinstance(rest, Tensor) and rest.role in ("input", "statement")
    whole = value and set(rest.axes) == set(statement.tensor.home)
    multiple = whole and factor.is_nonzero and factor != -1
    return multiple or isinstance(e, OneHot) or _is_indicator(e) or _is_read(e)


def _is_read(e: Expr) -> bool:
    """Whether ``e`` is a tensor read at other indices: a view, or one with more entries."""
    return isinstance(e, At) and (isinstance(e.operand, Tensor) or _is_read(e.operand))


def _is_reciprocal_of_a_whole(e: Expr, spelled: Mapping[str, Expr]) -> bool:
    """Whether ``e`` is one over a root or a reduction: such a value is named as it is."""
    if not (isinstance(e, Pow) and e.exp == -1 and isinstance(e.base, Tensor)):
        return False
    return isinstance(spelled.get(e.base.name), (Pow, Reduction))


def _is_indicator(e: Expr) -> bool:
    """Whether ``e`` is a choice between numbers by what is given: nothing is computed for it."""
    numbers = isinstance(e, Piecewise) and all(value.is_number for value, _ in e.args)
    return numbers and all(t.role in ("given", "kept", "label", "scalar") for t in tensors_in(e))
