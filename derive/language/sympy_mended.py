"""Two places in which SymPy's `Piecewise` does not end, or solves what nobody asked it to solve.

It is built by the user's lines and by SymPy itself, so that it is fixed where it stands, for as
long as SymPy (1.14) has them; what it answers elsewhere stays as it is.
"""

from __future__ import annotations

from functools import lru_cache, wraps

from sympy import ITE, Piecewise
from sympy.core.relational import Relational
from sympy.functions.elementary import piecewise
from sympy.logic.boolalg import Boolean

MOST_FORMS = 8  # of one comparison; those that numbers round off differently have no end


def mend() -> None:
    """Once in a process."""
    if not hasattr(piecewise._canonical_coeff, "__wrapped__"):
        piecewise._canonical_coeff = _settling(piecewise._canonical_coeff)
        Piecewise._eval_rewrite_as_ITE = _unsolved(Piecewise._eval_rewrite_as_ITE)


def _settling(canonical):
    """`Piecewise` brings its comparisons into a canonical form until none changes any more; of
    ``x - t > -4*x + 4*t`` the form has the other side in front, and the form of that is the first
    again. Of such a circle one is canonical.
    """

    @lru_cache(maxsize=65536)
    @wraps(canonical)
    def settled(relation):
        forms = [relation]
        while len(forms) <= MOST_FORMS:
            form = canonical(forms[-1])
            if form in forms:
                circle = forms[forms.index(form) :]
                return min(circle, key=lambda r: r.sort_key()) if len(circle) > 1 else form
            forms.append(form)
            if not isinstance(form, Relational):
                return form
        return relation

    return settled


def _unsolved(rewritten):
    """A condition on a choice, ``Eq(Piecewise((1, c), (0, True)), 0)``, becomes one on its
    conditions. To know whether these leave something out SymPy solves them, although the last one
    holds anyway: it stops where none has a symbol, as those on positions have not, and may find
    complex numbers on the way.
    """

    @wraps(rewritten)
    def rewritten_unsolved(self, *args, **hints):
        if args[-1][1] != True or not all(isinstance(v, Boolean) for v, _ in args):  # noqa: E712
            return rewritten(self, *args, **hints)
        result = args[-1][0]
        for value, condition in reversed(args[:-1]):
            result = ITE(condition, value, result)
        return piecewise._canonical(result)

    return rewritten_unsolved
