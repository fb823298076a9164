"""The mathematics where nothing that may be left out is passed: what most calls compute.

A tensor with a default is that number, a scalar whose default is 0 is 0, and no label is ignored.
What is left is a forward like any other, with fewer inputs and shorter statements.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr, Integer, Mul

from derive.language.float_range import exact_number
from derive.language.nodes import OneHot, Sum
from derive.language.symbols import Tensor, axes_of, is_constant
from derive.notation.composition import translated
from derive.notation.definition import Definition, Statement
from derive.notation.statements import known_signs


def without_options(definition: Definition) -> Definition | None:
    """The definition with every option at its default; None where there is none, or where the
    an output is then a number, or the same along an axis.
    """
    left_out: dict[str, Expr] = {t.name: exact_number(n) for t, n in definition.optional}
    left_out |= {ignoring.kept.name: Integer(1) for ignoring in definition.ignoring}
    if not left_out:
        return None
    left_out |= {t.name: Integer(0) for t, default in definition.scalars if default == 0}
    inputs = tuple(t for t in definition.inputs if t.name not in left_out)
    tensors: dict[str, Expr] = {t.name: t for t in inputs}
    tensors |= {t.name: t for t, _ in definition.scalars} | left_out
    statements = []
    for s in definition.statements:
        value = translated(s.expression, tensors, {axis: (axis,) for axis in definition.axes})
        value = value.replace(_is_total_of_one_hot, lambda e: _total(e, definition))
        if is_constant(value):
            tensors[s.name] = value
            continue
        there = axes_of(value)
        axes = [axis for axis in s.tensor.axes if axis in there]
        tensors[s.name] = Tensor(s.name, axes, role="statement", **known_signs(value))
        statements.append(Statement(tensors[s.name], value, s.place, s.block))
    for output in definition.outputs:
        left = tensors[output.name]
        if not isinstance(left, Tensor) or left.axes != output.axes:
            return None
    scalars = tuple((t, n) for t, n in definition.scalars if t.name not in left_out)
    numbers = {t for t, _ in scalars}
    demands = tuple(d for d in definition.demands if d.expression.atoms(Tensor) <= numbers)
    return replace(
        definition,
        inputs=inputs,
        scalars=scalars,
        statements=tuple(statements),
        optional=(),
        ignoring=(),
        broadcast=tuple(name for name in definition.broadcast if name not in left_out),
        demands=demands,
        reductions=(),
    )


def _is_total_of_one_hot(e: Expr) -> bool:
    return isinstance(e, Sum) and isinstance(e.operand, OneHot) and e.operand.towards(e.axes)


def _total(e: Sum, definition: Definition) -> Expr:
    """Exactly one entry of a one-hot is 1, since no label is ignored here."""
    axis = e.operand.towards(e.axes).axis
    return Mul(*(definition.size(other) for other in e.axes if other != axis))
