"""A forward in which every part is a statement.

A person who writes ``(x - mean) / sqrt(var + eps)`` on one line has values without names. A formula
for its gradient may be right or wrong in any of them, so here each has its name, as
``relations.py`` gives it.
"""

from __future__ import annotations

from dataclasses import replace

from derive.definition import Definition, Statement
from derive.relations import relations_of


def atomised(definition: Definition) -> Definition:
    """The same forward; statements keep their names, and what they are made of stands before."""
    own = definition.by_name
    values = relations_of(definition).values
    user = None
    statements = []
    for value in reversed(values):  # a part belongs to the statement that it is met in
        user = own.get(value.tensor.name, user)
        statements.append(Statement(value.tensor, value.expression, user.place, user.block))
    return replace(definition, statements=tuple(reversed(statements)))
