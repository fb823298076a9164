"""Specialise a forward to calls without optional arguments, as most are.

A tensor with a default is that number, a scalar whose default is 0 is 0, and no label is ignored.
The result is a forward like any other, with fewer inputs and shorter statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr, Integer, Mul

from derive.language.float_range import exact_number
from derive.language.nodes import OneHot, Sum
from derive.language.notation.composition import translated
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.statements import known_signs
from derive.language.symbols import Tensor, axes_of, is_constant


def without_options(definition: Definition, every_label: bool = True) -> Definition | None:
    """The definition with every option at its default, and ``every_label`` counting; None where
    there is none, or where an output is then a number, or the same along an axis.
    """
    left_out: dict[str, Expr] = {t.name: exact_number(n) for t, n in definition.optional}
    ignoring = () if every_label else definition.ignoring
    if every_label:
        left_out |= {each.kept.name: Integer(1) for each in definition.ignoring}
    if not left_out:
        return None
    left_out |= {t.name: Integer(0) for t, default in definition.scalars if default == 0}
    values, statements = _with_known(definition, left_out)
    for output in definition.outputs:
        left = values[output.name]
        if not isinstance(left, Tensor) or left.axes != output.axes:
            return None
    scalars = tuple((t, n) for t, n in definition.scalars if t.name not in left_out)
    numbers = {t for t, _ in scalars}
    demands = tuple(d for d in definition.demands if d.expression.atoms(Tensor) <= numbers)
    return replace(
        definition,
        inputs=tuple(t for t in definition.inputs if t.name not in left_out),
        scalars=scalars,
        statements=statements,
        optional=(),
        ignoring=ignoring,
        broadcast=tuple(name for name in definition.broadcast if name not in left_out),
        demands=demands,
        reductions=(),
    )


def with_every_label(definition: Definition) -> Definition | None:
    """The definition in which every label counts; None where it is not the same as that with 0 in
    the entries of a label that is ignored.
    """
    masks = [ignoring.kept.name for ignoring in definition.ignoring]
    if not masks or len(definition.outputs) != 1:
        return None
    (output,) = definition.outputs
    if any(ignoring.kept.axes != output.axes for ignoring in definition.ignoring):
        return None
    for mask in masks:
        values, _ = _with_known(definition, {mask: Integer(0)})
        if values[output.name] != 0:
            return None
    values, statements = _with_known(definition, dict.fromkeys(masks, Integer(1)))
    left = values[output.name]
    if not isinstance(left, Tensor) or left.axes != output.axes:
        return None
    inputs = tuple(t for t in definition.inputs if t.name not in masks)
    return replace(definition, inputs=inputs, statements=statements, ignoring=())


def _with_known(
    definition: Definition, known: Mapping[str, Expr]
) -> tuple[dict[str, Expr], tuple[Statement, ...]]:
    """Expressions by name where ``known`` are numbers, and the statements that are left."""
    tensors: dict[str, Expr] = {t.name: t for t in definition.inputs if t.name not in known}
    tensors |= {t.name: t for t, _ in definition.scalars} | {**known}
    every_label = all(known.get(i.kept.name) == 1 for i in definition.ignoring)
    statements = []
    for s in definition.statements:
        value = translated(s.expression, tensors, {axis: (axis,) for axis in definition.axes})
        if every_label:
            value = value.replace(_is_total_of_one_hot, lambda e: _total(e, definition))
        if is_constant(value):
            tensors[s.name] = value
            continue
        there = axes_of(value)
        axes = [axis for axis in s.tensor.axes if axis in there]
        tensors[s.name] = Tensor(s.name, axes, role="statement", **known_signs(value))
        statements.append(Statement(tensors[s.name], value, s.place, s.block))
    return tensors, tuple(statements)


def _is_total_of_one_hot(e: Expr) -> bool:
    return isinstance(e, Sum) and isinstance(e.operand, OneHot) and e.operand.towards(e.axes)


def _total(e: Sum, definition: Definition) -> Expr:
    """The sum of a one-hot, 1 where no label is ignored."""
    axis = e.operand.towards(e.axes).axis
    return Mul(*(definition.size(other) for other in e.axes if other != axis))
