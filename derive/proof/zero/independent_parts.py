"""Parts of a sum of which each has to vanish by itself, or may be asked for by itself.

The cases of one part, and its denominators, need not be crossed with those of another.
"""

from __future__ import annotations

from itertools import product
from math import prod

from sympy import Add, Dummy, Expr, Indexed, Mul, Pow, Symbol
from sympy import Sum as SymbolicSum


def under_one_sum(e: Expr) -> list[Expr]:
    """Split ``e`` into parts that must each vanish: the terms of sums along the same indices, as in
    Sum(f, N) + Sum(g, N) = Sum(f + g, N), and terms outside of sums.

    The entries of a tensor are taken as independent of each other.
    """
    groups: dict[tuple, list[Expr]] = {}
    for term in _terms(e):
        factors = Mul.make_args(term)
        sums = [f for f in factors if isinstance(f, SymbolicSum)]
        indices: tuple = ()
        if len(sums) == 1:
            rest = Mul(*(f for f in factors if f is not sums[0]))
            inside, indices = _by_sizes(sums[0])
            if not rest.free_symbols & set(sums[0].variables):
                term = rest * inside
            else:
                indices = ()
        groups.setdefault(indices, []).append(term)
    return [_with_symbols(Add(*group)) for group in groups.values()]


def _by_sizes(total: SymbolicSum) -> tuple[Expr, tuple]:
    """The term of a sum, its indices called by their limits where no two have the same, and the
    limits.
    """
    limits = sorted((limit[1:] for limit in total.limits), key=str)
    if len({*limits}) < len(limits):
        return total.function, total.limits
    names = {v: Symbol(f"at_{high}", integer=True) for v, _, high in total.limits}
    return total.function.xreplace(names), tuple(limits)


def _with_symbols(e: Expr) -> Expr:
    """``e`` with a symbol for every entry of a tensor that lies under no sum."""
    bound = {v for total in e.atoms(SymbolicSum) for v in total.variables}
    entries = [entry for entry in e.atoms(Indexed) if not entry.free_symbols & bound]
    return e.xreplace({entry: Dummy(str(entry), real=True) for entry in entries})


def independent(e: Expr) -> list[Expr]:
    """Parts whose sum is ``e``, each with its own powers of the symbols that are factors alone.

    a*f(x) + b*f(y) vanishes where both do: the cases of x and those of y need not be crossed.
    """
    terms = [Mul.make_args(term) for term in _terms(e)]
    plain = [[f for f in factors if _is_plain(f)] for factors in terms]
    inside = [f for factors in terms for f in factors if not _is_plain(f)]
    bound = set().union(*(f.free_symbols for f in inside))
    parts: dict[Expr, list[Expr]] = {}
    for factors, powers in zip(terms, plain, strict=True):
        outside = Mul(*(f for f in powers if not f.free_symbols & bound))
        parts.setdefault(outside, []).append(Mul(*factors))
    return [Add(*part) for part in parts.values()]


def apart(e: Expr) -> list[Expr]:
    """Parts whose sum is ``e`` and that have no symbol in common but those that are in all of
    them. ``e`` vanishes where they do: the cases of one entry need not be crossed with those of
    another.
    """
    terms = _terms(e)
    common = set.intersection(*(term.free_symbols for term in terms))
    parts: list[tuple[Expr, set]] = []
    for term in terms:
        own = term.free_symbols - common
        near = [part for part in parts if part[1] & own or not (part[1] or own)]
        parts = [part for part in parts if part not in near]
        joined = own.union(*(symbols for _, symbols in near))
        parts.append((Add(term, *(other for other, _ in near)), joined))
    if len(parts) == 1:
        return [e]
    return [smaller for part, _ in parts for smaller in apart(part)]


def count_of_terms(e: Expr) -> int:
    """Upper bound on the number of terms of ``e`` with its outer products multiplied out."""
    if isinstance(e, Add):
        return sum(map(count_of_terms, e.args))
    return prod(map(count_of_terms, e.args)) if isinstance(e, Mul) else 1


def _terms(e: Expr) -> list[Expr]:
    """The terms of ``e``, its outer products multiplied out; divisors stay as they are."""
    return list(Add.make_args(Add(*_multiplied_out(e))))


def _multiplied_out(e: Expr) -> list[Expr]:
    if isinstance(e, Add):
        return [term for arg in e.args for term in _multiplied_out(arg)]
    if not isinstance(e, Mul):
        return [e]
    return [Mul(*chosen) for chosen in product(*map(_multiplied_out, e.args))]


def _is_plain(factor: Expr) -> bool:
    """A symbol, or a whole power of one."""
    return factor.is_Symbol or (
        isinstance(factor, Pow) and factor.base.is_Symbol and factor.exp.is_Integer
    )
