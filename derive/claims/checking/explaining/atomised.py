"""A forward in which every part is a statement.

A person who writes ``(x - mean) / sqrt(var + eps)`` on one line has values without names. A formula
for its gradient may be right or wrong in any of them, so here each has its name, as
``relations.py`` gives it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from sympy import Expr

from derive.gradient.values.relations import relations_of
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import tensors_in


def atomised(definition: Definition) -> Definition:
    """The same forward; statements keep their names, and what they are made of stands before. One
    that reads another name for a value stays as it is: that name has a gradient of its own.
    """
    own = definition.by_name
    relations = relations_of(definition)
    user = None
    statements = []
    for value in reversed(relations.values):  # a part belongs to the statement that it is met in
        user = own.get(value.tensor.name, user)
        e = value.expression
        if value.tensor.name in own and _reads_any(user.expression, relations.aliases):
            e = user.expression
        statements.append(Statement(value.tensor, e, user.place, user.block))
    return replace(definition, statements=tuple(reversed(statements)))


def _reads_any(e: Expr, names: Container[str]) -> bool:
    return any(t.name in names for t in tensors_in(e))
