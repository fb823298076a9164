"""The paths by which an input reaches the output: directly, and through each statistic.

A statistic is a statement that was summed along an axis of the input and is broadcast back along
it, such as a mean or a variance. Holding all statistics fixed leaves the direct path; what a single
one contributes is its own gradient times its derivative by the input. The contributions add up to
the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sympy import Expr

from derive.chain import adjoint_of, derive_chain
from derive.closed_form import draft
from derive.definition import Definition
from derive.layout import layouts_of
from derive.nodes import Max, Sum
from derive.symbols import Tensor


@dataclass(frozen=True)
class Path:
    """What reaches ``of`` through ``via`` (None: directly)."""

    of: Tensor
    via: Tensor | None
    contribution: Expr


def paths_to(definition: Definition, of: Tensor) -> list[Path]:
    """The contributions to the gradient of an input; empty where there is only one path."""
    statistics = list(_statistics(definition, of))
    if not statistics:
        return []
    whole = draft(derive_chain(definition))
    found = [Path(of, None, _gradient(definition, definition.output, statistics, of, {}))]
    for statistic in statistics:
        others = [t for t in statistics if t != statistic]
        given = {adjoint_of(statistic): whole.closed[f"d{statistic.name}"]}
        contribution = _gradient(definition, statistic, others, of, given)
        found.append(Path(of, statistic, contribution))
    return found


def _statistics(definition: Definition, of: Tensor) -> Iterator[Tensor]:
    layouts = layouts_of(definition)
    depending = definition.depending_on(of.name)
    for statement in definition.statements[:-1]:
        kept = {dim.axis for dim in layouts[statement.name] if dim.one}
        reduces = statement.expression.has(Sum, Max)
        if reduces and kept & set(of.home) and statement.name in depending:
            yield statement.tensor


def _gradient(
    definition: Definition, output: Tensor, held: list[Tensor], of: Tensor, given
) -> Expr:
    """The derivative of ``output`` by ``of``, with the tensors ``held`` taken as given."""
    names = {t.name for t in held}
    statements = []
    for statement in definition.statements:
        if statement.name not in names:
            statements.append(statement)
        if statement.tensor == output:
            break
    part = replace(definition, inputs=(*definition.inputs, *held), statements=tuple(statements))
    closed = draft(derive_chain(part)).closed[f"d{of.name}"]
    return closed.xreplace(given)
