"""The paths by which a tensor reaches the outputs: directly, and through each statistic.

A statistic is a statement that was summed along an axis of the tensor and is broadcast back along
it, such as a mean or a variance. Holding all statistics fixed leaves the direct path; what a single
one contributes is its own gradient times its derivative by the tensor. The contributions add up to
the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sympy import Expr

from derive.gradient.chain.chain import adjoint_of, derive_chain
from derive.gradient.closing.closed_form import ClosedForm, draft
from derive.gradient.values.naming import written_out
from derive.language.notation.definition import Definition
from derive.language.notation.layout import layouts_of
from derive.language.symbols import Tensor, tensors_in


@dataclass(frozen=True)
class Path:
    """The contribution to the gradient of ``of`` through ``via`` (None: directly)."""

    of: Tensor
    via: Tensor | None
    contribution: Expr


def branching(definition: Definition) -> Iterator[Tensor]:
    """The tensors at which paths part: several statements read them, and they have statistics that
    none before them has.
    """
    tensors = [*definition.differentiable, *(s.tensor for s in definition.statements)]
    met: set[Tensor] = set()
    for tensor in tensors:
        readers = [s for s in definition.statements if tensor in tensors_in(s.expression)]
        statistics = set(_statistics(definition, tensor))
        if len(readers) > 1 and not statistics <= met:
            met |= statistics
            yield tensor


def paths_to(definition: Definition, of: Tensor, whole: ClosedForm | None = None) -> list[Path]:
    """The contributions to the gradient of a tensor; empty where there is only one path.

    They are written in the upstream gradients, values of the forward, and the gradients that keep a
    name and are the same on every path. ``whole`` is the `draft` of the definition's chain, where
    that is at hand.
    """
    statistics = list(_statistics(definition, of))
    if not statistics:
        return []
    whole = whole or draft(derive_chain(definition))
    part = _draft(definition, definition.outputs, statistics, of)
    held = {t.name for t in statistics}
    own = {f"d{name}" for name in definition.by_name if definition.depending_on(name) & held}
    found = [Path(of, None, _inlined(part, of, own))]
    for statistic in statistics:
        part = _draft(definition, (statistic,), [t for t in statistics if t != statistic], of)
        own = {adjoint.name for adjoint in part.chain.adjoints}
        given = {adjoint_of(statistic): whole.closed[f"d{statistic.name}"]}
        found.append(Path(of, statistic, _inlined(part, of, own).xreplace(given)))
    return found


def _statistics(definition: Definition, of: Tensor) -> Iterator[Tensor]:
    """The first statements on the way from ``of`` that have size 1 along an axis of it."""
    layouts = layouts_of(definition)
    found = set()
    for axis in of.home:
        along_axis = {of.name}
        for statement in definition.statements:
            if statement.tensor in definition.outputs:
                continue
            if not along_axis & {t.name for t in tensors_in(statement.expression)}:
                continue
            if axis in statement.tensor.home:
                along_axis.add(statement.name)
            elif any(dim.one and dim.axis == axis for dim in layouts[statement.name]):
                found.add(statement.name)
    return (s.tensor for s in definition.statements if s.name in found)


def _draft(
    definition: Definition, outputs: tuple[Tensor, ...], held: list[Tensor], of: Tensor
) -> ClosedForm:
    """The gradients of the ``outputs``, with ``of`` and the tensors ``held`` taken as given."""
    given = Tensor(of.name, of.home, role="input")
    names = {t.name for t in (*held, of)}
    statements = []
    for statement in definition.statements:
        if statement.name not in names:
            e = _met_as(given, statement.expression)
            statements.append(replace(statement, expression=e))
        if outputs == (statement.tensor,):
            break
    others = [t for t in (*definition.inputs, *held) if t.name != of.name]
    inputs, returned = (*others, given), tuple(t.name for t in outputs)
    part = replace(definition, inputs=inputs, statements=tuple(statements), returned=returned)
    return draft(derive_chain(part))


def _met_as(tensor: Tensor, e: Expr) -> Expr:
    """``e`` with ``tensor`` in place of the one of the same name."""
    return e.xreplace({t: tensor.along(t.axes) for t in tensors_in(e) if t.name == tensor.name})


def _inlined(form: ClosedForm, of: Tensor, own: set[str]) -> Expr:
    """The gradient of ``of`` with the gradients in ``own``, and of parts, written out."""
    e, written = form.closed[f"d{of.name}"], own | (form.closed.keys() - form.chain.by_name.keys())
    known = {name: form.closed[name] for name in written & form.closed.keys()}
    return _met_as(of, written_out(e, known))
