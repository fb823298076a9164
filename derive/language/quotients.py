"""Quotients without common factors."""

from __future__ import annotations

from sympy import Dummy, Expr, Piecewise, cancel, default_sort_key


def cancelled(e: Expr) -> Expr:
    """``e`` as one quotient without common factors, each choice treated as one unknown: SymPy would
    search inside choices for factors, for some of them endlessly.
    """
    met = sorted(e.atoms(Piecewise), key=default_sort_key)
    choices = {choice: Dummy("choice", real=choice.is_real) for choice in met}
    names = {dummy: choice for choice, dummy in choices.items()}
    return cancel(e.xreplace(choices)).xreplace(names)
