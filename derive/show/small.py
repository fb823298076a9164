"""The small batch: gradients on explicit scalars, entry by entry, for a person to compare.

In: a `Proved` and the size of the first axis. Out: matrices whose entries are `Entry` symbols,
``dy[1, 2]``, and `Chosen` for what a label or an arg max decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from sympy import Expr, Integer

from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.gradient.found.matrix_example import SIZE, AxisSum, recognised_products
from derive.language.divisors import size_divisors
from derive.language.errors import QuestionError
from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry
from derive.language.formulas.words import Words
from derive.language.nodes import ArgMax, OneHot, Sum
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor, axes_of, ordered, tensors_in
from derive.proof.proving.proved import Proved
from derive.proof.proving.small_batch import Entries, SmallBatch
from derive.proof.proving.written_out import computed_again, inlined, without_parts
from derive.show.document import Block, Foldable, Matrix, Prose


def small_batches(
    proved: Proved, wanted: set[str], of: str | None, entries: int, overview: bool
) -> Iterator[Block]:
    """The gradients of the closed form on explicit scalars; for a matrix product the example of
    two by two in which it is recognised.

    Raises `QuestionError` for a size at which the mathematics divides by zero.
    """
    form = proved.closed_form
    sizes = sizes_of(form.definition, entries)
    products = {p.gradient: p for p in recognised_products(form.definition)}
    statements = [s for s in form.statements if s.of is not None and of in (None, s.of.name)]
    matrices = [_small_batch(form, s, sizes) for s in statements if s.tensor not in products]
    shown = [p for p in products.values() if p.gradient.name in wanted]
    examples = [_example(p) for p in shown if of in (None, p.gradient.name[1:])]
    if matrices:
        yield Prose(_introduction(proved, sizes, matrices))
        yield from _folded(matrices, overview)
    if examples:
        yield Prose("The gradients of a product of matrices, written out for two by two entries:")
        yield from _folded(examples, overview)


def _folded(matrices: Iterable[Matrix], overview: bool) -> Iterator[Block]:
    for matrix in matrices:
        yield Foldable((matrix.name, ", entry by entry"), (matrix,)) if overview else matrix


def sizes_of(definition: Definition, entries: int) -> dict[Axis, int]:
    """``entries`` along the first axis, 2 along the others. Raises `QuestionError` for a size at
    which a statement divides by zero.
    """
    axes = definition.independent_axes
    sizes = definition.sizes_from({axis: entries if axis == axes[0] else 2 for axis in axes})
    whole = {axis: Integer(size) for axis, size in sizes.items()}
    for statement in definition.statements:
        for divisor in size_divisors(statement.expression):
            if divisor.xreplace(whole) == 0:
                raise QuestionError(
                    f"{statement.name} divides by {divisor}, which is 0 where "
                    f"{axes[0]} = {entries}",
                    "choose another size with --small-batch",
                )
    return sizes


def _introduction(proved: Proved, sizes, matrices: Iterable[Matrix]) -> Words:
    shown = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    same = (
        " SymPy's own derivative of the forward on the same scalars is equal to it in every entry."
    )
    where = f"Written out for {shown}." if shown else "Written out."
    words: Words = (where + same * proved.every_size,)
    chosen = [c for m in matrices for row in m.rows for e in row for c in e.atoms(Chosen)]
    if chosen:
        first = min(chosen, key=str)
        words += (" ", first, " is 1 where that holds, else 0; all is counted from 1.")
    return words


def _small_batch(form: ClosedForm, statement: ClosedStatement, sizes) -> Matrix:
    """A closed form on explicit scalars: one for each entry of every value of the forward."""
    kept = {s.of.name for s in form.statements if s.of is not None and s.of.role == "statement"}
    cuts = kept - {statement.of.name}
    expression = inlined(form, statement.expression, cuts, computed_again(form))
    expression = without_parts(expression, form.relations)
    batch = SmallBatch(form.definition, sizes, free=frozenset(form.definition.by_name))
    values = {t.name: _scalars(batch, t) for t in tensors_in(expression)}
    choices = {
        hot: Tensor(f"choice {k}", ordered(axes_of(hot)))
        for hot, k in zip(_one_hots(expression), count(), strict=False)
    }
    for hot, name in choices.items():
        values[name.name] = _choices(batch, hot, name, values)
    entries = batch.written_out(expression.xreplace(choices), statement.of.home, values)
    return matrix_of(statement.tensor, entries, [sizes[a] for a in statement.of.home])


def _scalars(batch: SmallBatch, tensor: Tensor) -> Entries:
    return {i: entry(tensor.name, i) for i in batch.indices(tensor.home)}


def _one_hots(e: Expr) -> list[OneHot]:
    met = (hot for hot in e.atoms(OneHot) if isinstance(hot.operand, (Tensor, ArgMax)))
    return sorted(met, key=str)


def _choices(
    batch: SmallBatch, hot: OneHot, name: Tensor, values: Mapping[str, Entries]
) -> Entries:
    """``[labels[1] = 2]`` for every entry of a one-hot."""
    found = {}
    for index in batch.indices(name.home):
        at = dict(zip(name.home, index, strict=True))
        found[index] = Chosen(_place(batch, hot, at, values), Integer(at[hot.axis] + 1))
    return found


def _place(batch: SmallBatch, hot: OneHot, at, values: Mapping[str, Entries]) -> Expr:
    """The label, or the argmax over explicit entries, that decides which entry is 1."""
    if not isinstance(hot.operand, ArgMax):
        return entry(hot.operand.name, (at[axis] for axis in hot.operand.axes))
    (axis,) = hot.operand.axes
    inside = hot.operand.operand
    along = ordered(axes_of(inside))
    return ArgMaxOfEntries(
        *(
            batch.written_out(inside, along, values)[
                tuple(k if a == axis else at[a] for a in along)
            ]
            for k in range(batch.sizes[axis])
        )
    )


def matrix_of(
    name: Tensor, entries: Mapping[tuple[int, ...], Expr], sizes: Iterable[int]
) -> Matrix:
    """The entries of a tensor whose axes have ``sizes``."""
    rows: dict[tuple[int, ...], list[Expr]] = {}
    for index, e in entries.items():
        rows.setdefault(index[:-1], []).append(e)
    return Matrix(name, tuple(map(tuple, rows.values())), tuple(sizes))


def _example(product) -> Matrix:
    """Two by two entries, and the product recognised in them."""
    tensors = (
        [product.of]
        if isinstance(product, AxisSum)
        else [product.left.tensor, product.right.tensor]
    )
    places = [(i, k) for i in range(SIZE) for k in range(SIZE)]
    names = {
        symbol: entry(tensor.name, place)
        for row in product.entries
        for e in row
        for symbol in e.free_symbols
        for tensor in tensors
        for place in places
        if symbol.name == f"{tensor.name}_{place[0] + 1}_{place[1] + 1}"
    }
    rows = tuple(tuple(e.xreplace(names) for e in row) for row in product.entries)
    if isinstance(product, AxisSum):
        return Matrix(
            product.gradient,
            rows,
            (SIZE,),
            ("a sum: ", product.gradient, " = ", Sum.over(product.of, [product.axis])),
        )
    return Matrix(product.gradient, rows, (SIZE, SIZE), f"a product of matrices: {product}")
