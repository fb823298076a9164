"""Checks of a whole class body, at its end: every size is known, and no name is given twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sympy import Expr

from derive.language.declarations import exact
from derive.language.errors import NotationError
from derive.language.names import snake_case
from derive.language.nodes import Reshaping
from derive.language.notation.class_body import ClassBody
from derive.language.notation.definition import Statement
from derive.language.notation.made_axes import check_spare, derived_in, known_sizes, met_in
from derive.language.reading_at import At
from derive.language.symbols import Axis

FUNCTIONS = ("forward", "backward", "atoms", "chain", "jvp", "double_backward")
CLASSES = ("Forward", "Gradients", "Atoms", "Chain", "Second", "Function", "Gradient", "Compiled")


def check_complete(
    body: ClassBody,
    name: str,
    order: Sequence[Axis],
    twins: Mapping[Axis, Axis],
    flattened: Mapping[Axis, tuple[Axis, ...]],
) -> None:
    """Refuse a forward of that ``name`` with axes in that ``order`` if parts are missing or defined
    twice. Raises `NotationError`.
    """
    _check_sizes_of_optional(body)
    _check_demands(body)
    _check_size_arguments(body, twins)
    check_spare([s.expression for s in body.statements], body.inputs)
    for statement in body.statements:
        _check_sizes_known(statement, order)
    _check_parts_known(body, order, twins, flattened)
    aside = {s.name for s in body.statements[:-1]}  # these get another name
    for taken in body.places:
        if f"d{taken}" in body.places.keys() - aside:
            raise NotationError(
                f"d{taken} is the name of the gradient of {taken}",
                f"rename d{taken}: a caller meets both",
                body.places[f"d{taken}"],
            )
    _check_names(body, name)


def _check_sizes_of_optional(body: ClassBody) -> None:
    """Check that every axis of an optional input is one of a required input."""
    passed = {a for t in body.inputs if t.name not in body.optional for a in t.axes}
    for t in body.inputs:
        for axis in t.axes:
            if axis not in passed:
                raise NotationError(
                    f"{t} may be left out, but no other input has the axis {axis}: its size "
                    "would be unknown",
                    f"leave out the default of {t}, or declare it along other axes",
                    body.places[t.name],
                )
    for scalar, default in body.scalars:
        unknown = default.atoms(Axis) - passed if isinstance(default, Expr) else ()
        for axis in sorted(unknown, key=str):
            raise NotationError(
                f"the default of {scalar} needs the size of {axis}, which no input has",
                f"declare an input along {axis}",
                body.places[scalar.name],
            )


def _check_demands(body: ClassBody) -> None:
    """Check that the default values of the scalars satisfy the demands on them."""
    defaults = {t: exact(default) for t, default in body.scalars}
    known = {axis for t in body.inputs for axis in t.axes} | {axis for _, axis in body.sizes}
    for demand, place in body.demands.items():
        limits = {axis for bound in demand.domain.bounds for axis in bound.limit.atoms(Axis)}
        for axis in sorted(limits - known, key=str):
            raise NotationError(
                f"{demand.expression} is to be {demand.domain}, but no input has the axis "
                f"{axis}: its size is unknown",
                f"declare an input along {axis}",
                place,
            )
        if demand.holds(defaults) is False:
            raise NotationError(
                f"{demand.expression} has to be {demand.domain}, and is not with the defaults",
                "choose defaults with which it is",
                place,
            )


def generated_names(name: str) -> set[str]:
    """Names of functions and classes in the generated module of the forward ``name``."""
    functions = {f"{snake_case(name)}_{kind}" for kind in FUNCTIONS}
    return {snake_case(name)} | functions | {f"{name}{kind}" for kind in CLASSES}


def _check_names(body: ClassBody, name: str) -> None:
    """Refuse tensors with a name that the generated module uses otherwise."""
    taken = generated_names(name)
    for tensor, place in body.places.items():
        if tensor in taken:
            raise NotationError(
                f"{tensor} is a name of the generated module", "choose another one", place
            )


def _check_size_arguments(body: ClassBody, twins) -> None:
    """Refuse a size given twice: by a shape and by an argument, or by two arguments."""
    known = {twins.get(axis, axis) for tensor in body.inputs for axis in tensor.axes}
    for name, axis in body.sizes:
        if axis in known:
            raise NotationError(
                f"{name} = Size({axis}): the size of {axis} is known already",
                f"leave {name} out, and write {axis} where the size is meant",
                body.places[name],
            )
        known.add(axis)


def _check_parts_known(body: ClassBody, order, twins, flattened) -> None:
    """Check that of the axes that a split makes, all sizes but one are known."""
    known = {twins.get(axis, axis) for tensor in body.inputs for axis in tensor.axes}
    known |= {axis for _, axis in body.sizes} | {a for a in order if a.length is not None}
    known |= set(derived_in(order))
    known |= set(known_sizes(known, flattened))
    for statement in body.statements:
        _check_read_along(statement, known, twins)
        for node in sorted(statement.expression.atoms(Reshaping), key=str):
            axes = [*node.binds, *node.brings]
            unknown = [axis.name for axis in axes if twins.get(axis, axis) not in known]
            if unknown:
                raise NotationError(
                    f"{node}: the size of {unknown[0]} is unknown",
                    f"make it an argument: count = Size({unknown[0]})",
                    statement.place,
                )


def _check_read_along(statement: Statement, known: set[Axis], twins) -> None:
    """Check that the size of every axis that entries are read along is known."""
    for node in sorted(statement.expression.atoms(At), key=str):
        unknown = [axis.name for axis in node.brings if twins.get(axis, axis) not in known]
        if unknown:
            raise NotationError(
                f"{node}: the size of {unknown[0]} is unknown",
                f'write {unknown[0]} = Axis("{unknown[0]}", {node.axis} - 1), or whatever its '
                f"length is; or make it an argument: count = Size({unknown[0]})",
                statement.place,
            )


def _check_sizes_known(statement: Statement, order) -> None:
    met = met_in(statement.tensor, statement.expression)
    unknown = sorted(axis.name for axis in met if axis not in order)
    if unknown:
        raise NotationError(
            f"{statement.name} uses the axis {unknown[0]}, which no input has: its size is unknown",
            f"declare an input along it, Input({unknown[0]}), or rename an axis into it",
            statement.place,
        )
