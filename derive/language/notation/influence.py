"""Declarations and statements of a class body without any influence on its outputs.

That is no mistake, but hardly meant: it is a warning. Only sure cases count: a name that no
statement on the way to the output reads (an input that gives an axis its size is read), and one
that a line is written with but that SymPy took out of it at once. A gradient that is zero for
another reason, such as that of a bias in front of a batch norm, is a result.
"""

from __future__ import annotations

import warnings

from sympy import Expr, Mul

from derive.language.errors import NotationWarning, Place, said
from derive.language.formulas.text import formula
from derive.language.notation.class_body import ClassBody
from derive.language.notation.definition import Statement
from derive.language.notation.made_axes import met_in, with_sizes
from derive.language.symbols import Axis, axes_of, ordered, tensors_in


def warn_of(body: ClassBody) -> None:
    """Issue a `NotationWarning` for each suspicious part of a complete class body."""
    _warn_of_no_influence(body)
    _warn_of_wider_domains(body)
    _warn_of_missing_totals(body)


def _warn_of_no_influence(body: ClassBody) -> None:
    """Issue a `NotationWarning` for each name of a complete class body without influence."""
    told = set()
    for vanished in body.vanished:
        for name in vanished.of:
            told.add(name)
            problem = f"{name} stands in {vanished.name}, which does not depend on it"
            _warn(problem, "SymPy took it out, as from x*0 or x - x: fix the line", vanished.place)
    output, reached = " or ".join(_outputs(body)), _reached(body)
    kinds = {t.name: f"{t.name} = {ROLES[t.role]}(...)" for t in body.inputs if t.role in ROLES}
    kinds |= {scalar.name: f"{scalar.name} = Scalar(...)" for scalar, _ in body.scalars}
    kinds |= {s.name: f"the statement {s.name}" for s in body.statements if not s.block}
    met = _met(body)
    sized = {axis for _, axis in body.sizes}
    sized |= {axis for t in body.inputs if t.name in reached for axis in t.axes}
    giving_sizes = {t.name for t in body.inputs if (met & {*t.axes}) - sized}
    for name, what in kinds.items():
        if name not in reached | told | giving_sizes:
            problem = f"{what} has no influence on {output}"
            _warn(problem, "leave it out, or use it in a line below", body.places[name])
    for name, axis in body.sizes:
        if axis not in met:
            problem = f"{name} = Size({axis}) has no influence on {output}"
            _warn(problem, "leave it out", body.places[name])


def _warn_of_missing_totals(body: ClassBody) -> None:
    """A `NotationWarning` for an output that is divided by the size of an axis along which it still
    lies, as is a mean of which the sum was left out.
    """
    outputs = _outputs(body)
    for statement in (s for s in body.statements if s.name in outputs and not s.block):
        _warn_of_missing_total(statement)


def _warn_of_missing_total(statement: Statement) -> None:
    output = statement.tensor
    for product in statement.expression.atoms(Mul):
        sizes = {1 / p for p in product.args if p.is_Pow and 1 / p in output.axes}
        along = frozenset().union(*(axes_of(f) for f in product.args if tensors_in(f)))
        for axis in ordered(sizes & along):
            whole = formula(product * axis)
            _warn(
                f"{output} is divided by {axis}, and still lies along {axis}",
                f"for a mean write Sum({whole}, {axis}) / {axis}; for one number for each {axis} "
                f"leave the / {axis} out",
                statement.place,
            )


def _warn_of_wider_domains(body: ClassBody) -> None:
    """Issue a `NotationWarning` for each statement defined where its line, in torch, is not."""
    for wider in body.widened:
        where = " and ".join(wider.conditions)
        problem = (
            f"{wider.name} is {formula(wider.value)} to SymPy, also where the line as it is typed "
            f"has no number: that needs {where}"
        )
        chosen = " & ".join(f"({_typed(c)})" for c in wider.conditions)
        remedy = "if it may not hold, choose what the value is elsewhere, such as "
        remedy += f"Piecewise(({formula(wider.value)}, {chosen}), (0, True))"
        _warn(problem, remedy, wider.place)


def _typed(condition: str) -> str:
    """As it is typed in a class body, where ``!=`` compares expressions and not numbers."""
    left, unequal, right = condition.partition(" != ")
    return f"Ne({left}, {right})" if unequal else condition


ROLES = {"input": "Input", "given": "Given", "label": "Label"}


def _met(body: ClassBody) -> set[Axis]:
    """The axes that need a size."""
    numbers = [default for _, default in body.scalars if isinstance(default, Expr)]
    numbers += [bound.limit for demand in body.demands for bound in demand.domain.bounds]
    met = [met_in(s.tensor, s.expression) for s in body.statements]
    return set(with_sizes(set().union(*met, *(e.atoms(Axis) for e in numbers))))


def _reached(body: ClassBody) -> set[str]:
    """Names of the outputs, and of everything that they are computed from."""
    reached = {*_outputs(body)}
    for other in body.reductions.values():  # what any of them reads
        reached |= {t.name for t in tensors_in(other.expression)}
    _add_read(body, reached)
    before: set[str] = set()
    while before != reached:  # a recurrence reads what is stated below
        before = {*reached}
        for name, of in body.recurrences.following():
            reached |= of if name in reached else set()
        _add_read(body, reached)
    labels = {i.label.name for i in body.ignoring if i.kept.name in reached}
    return reached | labels


def _add_read(body: ClassBody, reached: set[str]) -> None:
    for statement in reversed(body.statements):
        if statement.name in reached:
            reached |= {t.name for t in tensors_in(statement.expression)}


def _outputs(body: ClassBody) -> list[str]:
    return body.returned or [body.statements[-1].name]


def _warn(problem: str, remedy: str, place: Place) -> None:
    warnings.warn_explicit(said(problem, remedy), NotationWarning, place.file, place.line)
