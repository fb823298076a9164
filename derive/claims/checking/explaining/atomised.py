"""A forward in which every part is a named statement.

``(x - mean) / sqrt(var + eps)`` on one line contains unnamed values. A formula for its gradient may
be wrong in any of them, so each gets a name from ``relations.py``.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from sympy import Expr

from derive.gradient.values.relations import relations_of
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import tensors_in


def atomised(definition: Definition) -> Definition:
    """The same forward with a statement for every part; existing statements keep their names and
    follow their parts. A statement that only renames a value stays, because that name has a
    gradient of its own.
    """
    own = definition.by_name
    relations = relations_of(definition)
    user = None
    statements = []
    for value in reversed(relations.values):  # to the first statement with it
        user = own.get(value.tensor.name, user)
        e = value.expression
        if value.tensor.name in own and _reads_any(user.expression, relations.aliases):
            e = user.expression
        statements.append(Statement(value.tensor, e, user.place, user.block))
    return replace(definition, statements=tuple(reversed(statements)))


def _reads_any(e: Expr, names: Container[str]) -> bool:
    return any(t.name in names for t in tensors_in(e))
