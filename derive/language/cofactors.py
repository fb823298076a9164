"""Entries of the inverse, the determinant and the factor of a small matrix, written out.

In: the rows of a matrix, and an arithmetic that adds, multiplies and raises its entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sympy import Add, Expr, Integer, Mul, Pow, Rational

Rows = Sequence[Sequence]


class Calculates(Protocol):
    """The arithmetic used here (``claims/checking/numbers/arithmetic.py`` has others)."""

    def number(self, e: Expr):
        """The value of a SymPy number."""

    def add(self, values: Sequence): ...

    def multiply(self, values: Sequence): ...

    def power(self, base, exponent): ...

    def apply(self, function: type, values: Sequence): ...


class OfScalars:
    """Arithmetic on SymPy scalars."""

    def number(self, e: Expr) -> Expr:
        return e

    def add(self, values: Sequence[Expr]) -> Expr:
        return Add(*values)

    def multiply(self, values: Sequence[Expr]) -> Expr:
        return Mul(*values)

    def power(self, base: Expr, exponent: Expr) -> Expr:
        return Pow(base, exponent)

    def apply(self, function: type, values: Sequence[Expr]) -> Expr:
        return function(*values)


def determinant(rows: Rows, by: Calculates):
    """Expanded along the first row."""
    if not rows:
        return by.number(Integer(1))
    first, places = rows[0], range(len(rows))
    return by.add([by.multiply([first[k], _cofactor(rows, 0, k, by)]) for k in places])


def inverse(rows: Rows, by: Calculates) -> list[list]:
    """The transposed cofactors over the determinant."""
    places = range(len(rows))
    over = by.power(determinant(rows, by), by.number(Integer(-1)))
    return [[by.multiply([_cofactor(rows, j, i, by), over]) for j in places] for i in places]


def factor(rows: Rows, by: Calculates) -> list[list]:
    """The lower triangular L with L*L^T = (A + A^T)/2, row by row."""
    half, minus = by.number(Rational(1, 2)), by.number(Integer(-1))
    found: list[list] = []

    def left(i: int, j: int):
        entry = by.multiply([half, by.add([rows[i][j], rows[j][i]])])
        earlier = [by.multiply([minus, found[i][k], found[j][k]]) for k in range(j)]
        return by.add([entry, *earlier])

    for i in range(len(rows)):
        found.append([])
        for j in range(i):
            over = by.power(found[j][j], minus)
            found[i].append(by.multiply([left(i, j), over]))
        found[i].append(by.power(left(i, i), half))
    zero = by.number(Integer(0))
    return [[*row, *[zero for _ in rows[len(row) :]]] for row in found]


def _cofactor(rows: Rows, i: int, j: int, by: Calculates):
    minor = [[*row[:j], *row[j + 1 :]] for k, row in enumerate(rows) if k != i]
    sign = by.number(Integer((-1) ** (i + j)))
    return by.multiply([sign, determinant(minor, by)])
