"""Refuse two-dimensional recurrences in loops: soft-DTW, edit distance, transducer lattices.

A trace unrolls one step per pair of positions, and so is valid for the example's sizes only.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

import sympy

from codegen.importing.examples import Example, axes_in, drawn
from codegen.importing.subjects import Subject
from codegen.importing.trace import trace
from derive.claims.reading.loops import ANTI_DIAGONALS
from derive.language.errors import Place, QuestionError

UNHASHABLE = "unhashable type: non-nested SymInt"  # torch's message
FEW = 3  # entries along the first axis; one more along each further one


def refuse_lattice(subject: Subject, example: Example) -> None:
    """Raise `QuestionError` if a size is the trip count of such a loop; traced at small sizes,
    because unrolling is slow.
    """
    loops = [*_loops(subject.file)]
    if not loops:
        return
    arguments = example.arguments
    sizes = example.at({axis: FEW + i for i, axis in enumerate(axes_in(arguments))})
    keys: list[Place] = []
    try:
        module, tensors = subject.module(arguments), drawn(arguments, sizes)
        traced = trace(module, arguments, tensors, sizes, subject.file)
        asked = [place for e, place in traced.guards if place and isinstance(e, sympy.Eq)]
    except QuestionError as error:  # used as a trip count, not merely as a dictionary key
        asked = keys = [error.place] if error.place and UNHASHABLE in error.problem else []
    except ValueError:
        return
    for loop, read in loops:
        places = keys or [p for p in asked if loop.lineno <= p.line <= (loop.end_lineno or 0)]
        if places:
            raise QuestionError(
                f"a recurrence along two axes: {ast.unparse(read)} was computed in another "
                "iteration",
                ANTI_DIAGONALS,
                min(places, key=lambda place: place.line),
            )


def _loops(file: str) -> Iterator[tuple[ast.For, ast.Subscript]]:
    """Nested loops over two axes, each with an entry it reads from another round."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook
        return
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        read = next(_neighbours(loop), None)
        if read is not None:
            yield loop, read


def _neighbours(outer: ast.For) -> Iterator[ast.Subscript]:
    """Subscripts that read what another round of two nested loops writes."""
    for inner in (n for n in ast.walk(outer) if isinstance(n, ast.For) and n is not outer):
        counts = {ast.unparse(loop.target) for loop in (outer, inner)}
        found = [n for n in ast.walk(inner) if isinstance(n, ast.Subscript)]
        wrote = {ast.unparse(n.value) for n in found if isinstance(n.ctx, ast.Store)}
        for n in found:
            reads = isinstance(n.ctx, ast.Load) and ast.unparse(n.value) in wrote
            if reads and counts <= _names(n.slice) and _moved(n.slice):
                yield n


def _names(e: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


def _moved(e: ast.AST) -> bool:
    return any(isinstance(n, ast.BinOp) for n in ast.walk(e))
