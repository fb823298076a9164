"""Entries of functions of a square matrix, in indexed notation: of its inverse, of its factor, and
the logarithm of its determinant.

Their derivatives are the theorems d(A**-1) = -A**-1*dA*A**-1, d log|det A| = tr(A**-1*dA) and
dL = L*P, P the lower triangle of L**-1*dS*L**-T with half of its diagonal, S = (A + A^T)/2. On
explicit scalars they are not used: there the entries are written out.
"""

from __future__ import annotations

from sympy import Dummy, Expr, Piecewise, Symbol

from derive.language.nodes import Cholesky, Inverse, LogDet, MatrixNode
from derive.proof.proving.indexed_sum import IndexedSum, OverIndices
from derive.proof.proving.total_derivative import TotalDerivative

ROW, COLUMN = "row", "column"  # names of the indices of a matrix of its own


class OfMatrixEntries(OverIndices, Expr):
    """Its args are the entry of the matrix, the two indices in it, how long each axis is, and then
    the place in what is made of it. The indices are named by how deep such entries are nested, so
    that equal ones are written alike.
    """

    is_real = True
    is_commutative = True

    def __new__(cls, entry: Expr, row: Expr, column: Expr, *more: Expr) -> Expr:
        inner = [int(node.args[1].name.removeprefix(ROW)) for node in entry.atoms(OfMatrixEntries)]
        depth = max(inner, default=0) + 1
        own = [Symbol(f"{kind}{depth}", integer=True) for kind in (ROW, COLUMN)]
        entry = entry.xreplace(dict(zip((row, column), own, strict=True)))
        return Expr.__new__(cls, *cls.turned(entry, *own, *more))

    @staticmethod
    def turned(*args: Expr) -> tuple[Expr, ...]:
        """The same of the transposed matrix, where that is the rule."""
        return args

    @property
    def bound_symbols(self):
        return list(self.args[1:3])

    def _xreplace(self, rule):
        """The indices are bound in the entry: the same names outside mean others."""
        if self in rule:
            return rule[self], True
        entry, *own, size = self.args[:4]
        inside = {old: new for old, new in rule.items() if not old.free_symbols & {*own}}
        apart = _indices()
        entry = entry.xreplace(dict(zip(own, apart, strict=True))).xreplace(inside)
        replaced = self.func(entry, *apart, size, *(e.xreplace(rule) for e in self.args[4:]))
        return replaced, replaced != self

    def inverse(self, row: Expr, column: Expr) -> Expr:
        return InverseEntry(*self.args[:4], row, column)

    def total(self, e: Expr, *indices: Dummy) -> Expr:
        return IndexedSum(e, *((index, 1, self.args[3]) for index in indices))

    def change(self, variable: Symbol, row: Expr, column: Expr) -> Expr:
        """The derivative of an entry of the matrix."""
        entry, *own = self.args[:3]
        derivative = TotalDerivative(variable).of(entry)
        return derivative.xreplace(dict(zip(own, (row, column), strict=True)))


class InverseEntry(OfMatrixEntries):
    """An entry of the inverse. The inverses of a matrix and its transpose share entries: of both
    the matrix that sorts first is taken.
    """

    @staticmethod
    def turned(*args: Expr) -> tuple[Expr, ...]:
        entry, r, c, size, row, column = args
        swapped = entry.xreplace({r: c, c: r})
        first = str(swapped) < str(entry)
        return (swapped, r, c, size, column, row) if first else args

    def _eval_derivative(self, variable):
        row, column = self.args[4:]
        i, j = indices = _indices()
        left, right = self.inverse(row, i), self.inverse(j, column)
        return -self.total(left * self.change(variable, i, j) * right, *indices)


class LogDetOf(OfMatrixEntries):
    """log|det A|."""

    def _eval_derivative(self, variable):
        i, j = indices = _indices()
        return self.total(self.inverse(j, i) * self.change(variable, i, j), *indices)


class FactorEntry(OfMatrixEntries):
    """An entry of the lower triangular factor of (A + A^T)/2."""

    def _eval_derivative(self, variable):
        # dL[a, b] = sum_c L[a, c]*([b <= c]*N[c, b] + [b < c]*N[b, c])/2, N = L**-1*dA*L**-T
        *own, row, column = self.args
        i, j = indices = _indices()
        place, inner = Dummy(ROW, integer=True), _indices()
        changed = self.change(variable, i, j)

        def inverted(first: Expr, second: Expr) -> Expr:
            return InverseEntry(FactorEntry(*own, *inner), *inner, own[3], first, second)

        def moved(first: Expr, second: Expr) -> Expr:
            return self.total(inverted(first, i) * changed * inverted(second, j), *indices)

        lower = _is_at_most(column, place) * moved(place, column)
        mirrored = (1 - _is_at_most(place, column)) * moved(column, place)
        return self.total(self.func(*own, row, place) * (lower + mirrored) / 2, place)


def _is_at_most(first: Expr, second: Expr) -> Expr:
    return Piecewise((1, first - 1 <= second - 1), (0, True))


def _indices() -> tuple[Dummy, Dummy]:
    return Dummy(ROW, integer=True), Dummy(COLUMN, integer=True)


ENTRIES: dict[type[MatrixNode], type[OfMatrixEntries]] = {
    Inverse: InverseEntry,
    LogDet: LogDetOf,
    Cholesky: FactorEntry,
}
