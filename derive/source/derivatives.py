"""The derivative of a statement, where SymPy or torch is asked for it: as the line to write."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from sympy import Derivative, Dummy, Expr, Integer, Subs

from derive.language.array_node import ArrayNode
from derive.language.choices import almost_everywhere
from derive.language.symbols import Tensor, tensors_in
from derive.source.line_reader import Reader

OPERANDS = 2  # what is differentiated, and by what


def derivative_written(operands: Sequence[ast.AST], reader: Reader) -> str:
    """``1 - h**2`` for h and x where h = tanh(x): the derivative of each entry by that of the other
    tensor; '' where an entry depends on more than one of those, or it is not known which are meant.
    """
    tensors = [reader.value(operand) for operand in operands]
    if len(tensors) != OPERANDS or not all(isinstance(t, Tensor) for t in tensors):
        return ""
    of, by = tensors
    found = _slope(of, by, {s.name: s.expression for s in reader.body.statements}, {})
    return "" if found is None or found.has(Derivative, Subs) else str(found)


def _slope(
    of: Tensor, by: Tensor, statements: Mapping[str, Expr], known: dict[str, Expr | None]
) -> Expr | None:
    """The derivative of an entry of ``of`` by the entry of ``by`` at its place, in statements; None
    where it depends on others.
    """
    if of.name == by.name:
        return Integer(1)
    if of.name not in statements:
        return Integer(0)
    if of.name not in known:
        known[of.name] = _through(of, by, statements, known)
    return known[of.name]


def _through(of, by, statements, known) -> Expr | None:
    e, total = statements[of.name], Integer(0)
    nodes = {node: Dummy(real=True) for node in e.atoms(ArrayNode)}
    outside = e.xreplace(nodes)
    for t in tensors_in(e):
        inner = _slope(t.at_home, by, statements, known)
        if inner == 0:
            continue
        if inner is None or t.axes != t.home or any(t in n.atoms(Tensor) for n in nodes):
            return None
        partial = almost_everywhere(outside.diff(t)).xreplace({d: n for n, d in nodes.items()})
        total += partial.xreplace({e: of}) * inner
    return total
