"""The gradients of a matrix product, found by writing out two by two entries.

In: a statement that holds a matrix product. Out: its gradients, recognised entry by entry as matrix
products or as sums along an axis: ``dA = dD @ B.T``, ``dB = A.T @ dD``, ``dc`` = the column sums of
``dD``. The entries are SymPy's derivatives of explicit scalars; nothing of the chain is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from sympy import Add, Expr, expand

from derive.gradient.chain.chain import adjoint_of
from derive.language.nodes import Sum
from derive.language.notation.definition import Definition, Statement
from derive.language.operations import is_contraction
from derive.language.symbols import Axis, Tensor, tensors_in
from derive.proof.proving.small_batch import SmallBatch, TotalDerivative

SIZE = 2  # of every axis: the smallest at which a product is seen to be one

Matrix = tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class Factor:
    """A matrix, or its transpose."""

    tensor: Tensor
    transposed: bool

    def __str__(self) -> str:
        return f"{self.tensor}.T" if self.transposed else str(self.tensor)


@dataclass(frozen=True)
class MatrixProduct:
    """``gradient = left @ right``; ``entries`` are those of the two by two example."""

    gradient: Tensor
    left: Factor
    right: Factor
    entries: Matrix

    def __str__(self) -> str:
        return f"{self.gradient} = {self.left} @ {self.right}"


@dataclass(frozen=True)
class AxisSum:
    """``gradient`` is ``of`` summed along ``axis``."""

    gradient: Tensor
    of: Tensor
    axis: Axis
    entries: Matrix

    def __str__(self) -> str:
        return f"{self.gradient} = {Sum.over(self.of, [self.axis])}"


def recognised_products(definition: Definition) -> Iterator[MatrixProduct | AxisSum]:
    """The gradients of every matrix product in ``definition``."""
    for statement in definition.statements:
        products = [node for node in statement.expression.atoms(Sum) if is_contraction(node)]
        matrices = {t for node in products for t in tensors_in(node)}
        if products and all(len(t.home) == 2 and t.axes == t.home for t in matrices):
            yield from _recognised(_alone(statement, definition))


def _alone(statement: Statement, definition: Definition) -> Definition:
    """The statement as a forward of its own: what it reads is given."""
    read = tuple(t for t in tensors_in(statement.expression) if t.role in ("input", "statement"))
    return replace(definition, inputs=read, statements=(statement,), flattened=(), returned=())


def _recognised(example: Definition) -> Iterator[MatrixProduct | AxisSum]:
    batch = SmallBatch(example, dict.fromkeys(example.independent_axes, SIZE))
    output = example.output
    upstream = batch.symbols(adjoint_of(output))
    objective = Add(*(upstream[i] * value for i, value in batch.computed(output.name).items()))
    known = {adjoint_of(output): upstream} | {t: batch.entries(t) for t in example.inputs}
    factors = {
        Factor(tensor, transposed): _matrix(entries, transposed)
        for tensor, entries in known.items()
        if len(tensor.home) == 2
        for transposed in (False, True)
    }
    for tensor in example.inputs:
        gradient = adjoint_of(tensor)
        entries = {i: TotalDerivative(x).of(objective) for i, x in known[tensor].items()}
        if len(tensor.home) == 2:
            wanted = _matrix(entries, False)
            for (left, a), (right, b) in product(factors.items(), repeat=2):
                if _product(a, b) == wanted:
                    yield MatrixProduct(gradient, left, right, wanted)
                    break
        if len(tensor.home) == 1:
            yield from _axis_sums(gradient, entries, adjoint_of(output), upstream)


def _axis_sums(gradient, entries, of, summands) -> Iterator[AxisSum]:
    rows = tuple((expand(entries[(k,)]),) for k in range(SIZE))
    for place, axis in enumerate(of.home):
        totals = tuple(
            (Add(*(s for i, s in summands.items() if i[:place] + i[place + 1 :] == (k,))),)
            for k in range(SIZE)
        )
        if len(of.home) == 2 and totals == rows:
            yield AxisSum(gradient, of, axis, rows)


def _matrix(entries, transposed: bool) -> Matrix:
    places = [[(i, k) for k in range(SIZE)] for i in range(SIZE)]
    return tuple(
        tuple(expand(entries[place[::-1] if transposed else place]) for place in row)
        for row in places
    )


def _product(a: Matrix, b: Matrix) -> Matrix:
    return tuple(
        tuple(expand(Add(*(a[i][j] * b[j][k] for j in range(SIZE)))) for k in range(SIZE))
        for i in range(SIZE)
    )
