"""What the indexed notation of the second route means at indices that are numbers: term by term,
from the definitions alone.
"""

from __future__ import annotations

from itertools import product

from sympy import Add, Expr, Indexed, Integer, KroneckerDelta, Mul, log

from derive.language.cofactors import OfScalars, determinant, factor, inverse
from derive.proof.proving.index_nodes import IndexOfLargest, LargestAlong, Zero
from derive.proof.proving.indexed_sum import IndexedSum
from derive.proof.proving.largest_up_to import IsNewLargest, LargestUpTo
from derive.proof.proving.matrix_entries import FactorEntry, InverseEntry, LogDetOf, OfMatrixEntries
from derive.proof.proving.products_between import ProductBetween

MADE = {InverseEntry: inverse, FactorEntry: factor}
BY = OfScalars()


def written_out(e: Expr, at: dict, sizes=lambda index: 1) -> Expr:
    """``e`` at the indices ``at``. Entries of tensors stay, at numbers; ``sizes`` says how far an
    index of a largest entry runs, which that does not say itself.
    """

    def of(e: Expr, more=()) -> Expr:
        return written_out(e, {**at, **dict(more)}, sizes)

    def row(entry: Expr, bound, ends) -> list[tuple[tuple[int, ...], Expr]]:
        places = product(*(range(1, end + 1) for end in ends))
        return [(p, of(entry, zip(bound, map(Integer, p), strict=True))) for p in places]

    if isinstance(e, IndexedSum):
        ends = [int(last.xreplace(at)) for _, _, last in e.limits]
        return Add(*(value for _, value in row(e.function, e.variables, ends)))
    if isinstance(e, ProductBetween):
        factor_of, index, _, last, first = e.args
        last, first = int(of(last)), int(of(first))
        values = [of(factor_of, {index: Integer(k)}) for k in range(first + 1, last)]
        return Mul(*values) if first < last else Integer(0)
    if isinstance(e, (LargestAlong, IndexOfLargest)):
        operand, *bound = e.args[-len(e.bound_symbols) - 1 :]
        found = row(operand, bound, [sizes(index) for index in bound])
        place, value = max(found, key=lambda pair: pair[1])  # the first of equals
        return value if isinstance(e, LargestAlong) else Integer(place[int(e.args[0])])
    if isinstance(e, (LargestUpTo, IsNewLargest)):
        last, _, entry, index = e.args[:4]
        found = [value for _, value in row(entry, [index], [int(of(last))])]
        whole = isinstance(e, LargestUpTo)
        return max(found) if whole else Integer(int(found[-1] == max(found)))
    if isinstance(e, OfMatrixEntries):
        entry, *own, size, row_at, column_at = (*e.args, *(Integer(1),) * (6 - len(e.args)))
        count = int(size.xreplace(at))
        values = [value for _, value in row(entry, own, [count, count])]
        rows = [values[count * k : count * (k + 1)] for k in range(count)]
        if isinstance(e, LogDetOf):
            return log(determinant(rows, BY) ** 2) / 2
        return MADE[type(e)](rows, BY)[int(of(row_at)) - 1][int(of(column_at)) - 1]
    if isinstance(e, (KroneckerDelta, Zero)):
        return Integer(int(of(e.args[0] - (e.args[1:] or (0,))[0]) == 0))
    if isinstance(e, Indexed):
        return at.get(of_indices := e.base[tuple(map(of, e.indices))], of_indices)
    return e.func(*map(of, e.args)) if e.args else at.get(e, e)
