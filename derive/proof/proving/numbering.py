"""Sums with their bound indices numbered in one order, so that equal sums are written alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, permutations, product

import sympy
from sympy import Expr, Mul, Symbol

from derive.proof.proving.indexed_sum import IndexedSum


def numbered(inside: Expr, carried: list[Symbol], bounds) -> Expr:
    """The sum with its bound indices numbered in the order that sorts first; parts that share no
    index apart.
    """
    groups = _connected(inside, carried)
    if len(groups) > 1:
        return Mul(*(numbered(part, own, bounds) for part, own in groups))
    best = None
    first = _first_free_number(inside)  # a bound index inside of this sum keeps its own
    for order in _orders(inside, carried, bounds):
        names = {v: Symbol(f"k{i}_{bounds[v]}", integer=True) for i, v in enumerate(order, first)}
        candidate = IndexedSum(
            inside.xreplace(names), *sorted(((names[v], 1, bounds[v]) for v in order), key=str)
        )
        if best is None or str(candidate) < str(best):
            best = candidate
    return best


def _orders(inside: Expr, carried: list[Symbol], bounds) -> Iterator[tuple[Symbol, ...]]:
    """The orders of the indices that are tried: sorted by where each stands, whatever the others
    are called, and those that stand alike in every order.
    """
    if len(carried) == 2:
        return permutations(carried)
    alike: dict[str, list[Symbol]] = {}
    for own in carried:
        others = {v: Symbol(f"other_{bounds[v]}", integer=True) for v in carried}
        place = str(inside.xreplace(others | {own: Symbol(f"own_{bounds[own]}", integer=True)}))
        alike.setdefault(place, []).append(own)
    groups = (permutations(alike[place]) for place in sorted(alike))
    return (tuple(chain.from_iterable(order)) for order in product(*groups))


def _first_free_number(e: Expr) -> int:
    """The number after the highest of the bound indices in ``e``."""
    names = [v.name for total in e.atoms(sympy.Sum) for v in total.variables]
    return max((int(n[1:].split("_")[0]) + 1 for n in names if re.match(r"k\d+_", n)), default=0)


def _connected(inside: Expr, carried: list[Symbol]) -> list[tuple[Expr, list[Symbol]]]:
    """Factors grouped by the bound indices that they share: sum(a_i*b_j) = sum(a_i)*sum(b_j)."""
    groups: list[tuple[list[Expr], set[Symbol]]] = []
    for factor in Mul.make_args(inside):
        own = factor.free_symbols & set(carried)
        factors = [factor]
        for group in [g for g in groups if g[1] & own]:
            groups.remove(group)
            factors, own = group[0] + factors, own | group[1]
        groups.append((factors, own))
    return [(Mul(*factors), [v for v in carried if v in own]) for factors, own in groups]
