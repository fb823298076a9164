"""The entries of a one-hot of unknown index, as symbols."""

from __future__ import annotations

from sympy import Add, Expr, S, Symbol, exp, log


class Indicator(Symbol):
    """0 or 1; of the indicators of one ``group``, each of its own ``place``, at most one is 1.

    The entries of a one-hot of unknown index, which may be that of the largest of some ``values``.
    """

    __slots__ = ("group", "place", "values")

    def __new__(cls, place: int, group: str, values: tuple[Expr, ...] = ()):
        self = Symbol.__xnew__(cls, f"{group}, {place}", integer=True, nonnegative=True)
        self.place, self.group, self.values = place, group, values
        return self

    def __getnewargs_ex__(self):
        return (self.place, self.group, self.values), {}


def is_one_hot(e: Expr) -> bool:
    """Whether ``e`` is an entry of a one-hot: an indicator, or 1 minus the others of its group."""
    others = Add.make_args(1 - e)
    alike = all(isinstance(one, Indicator) for one in others)
    return isinstance(e, Indicator) or (alike and len({one.group for one in others}) == 1)


def by_place(e: exp | log) -> Expr | None:
    """An exponential or a logarithm of an entry that indicators of one group pick, case by case:
    the indicator times the function where it is 1. None where there is no choice, or the logarithm
    of 0 in a case.
    """
    indicators = [s for s in e.free_symbols if isinstance(s, Indicator)]
    if not indicators:
        return None
    group = min(s.group for s in indicators)
    alike = [s for s in indicators if s.group == group]
    others = dict.fromkeys(alike, S.Zero)
    cases = [(s, e.args[0].xreplace({**others, s: S.One})) for s in alike]
    cases.append((1 - Add(*alike), e.args[0].xreplace(others)))
    if isinstance(e, log) and any(argument == 0 for _, argument in cases):
        return None
    return Add(*(share * e.func(argument) for share, argument in cases))
