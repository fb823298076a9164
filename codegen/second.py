"""The functions behind a backward: what a second derivative needs, as a record of the Program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codegen.lowering.idioms import with_logarithms_joined
from codegen.program import (
    NUMBERS,
    Function,
    Parameter,
    Second,
)
from derive.formulas.text import formula
from derive.language.symbols import Tensor, tensors_in
from derive.notation.layout import layouts
from derive.orders.second import Behind, SecondOrder
from derive.proving.forward_plan import forward_plan

if TYPE_CHECKING:
    from codegen.build import Builder

ZERO = 0.0  # what a cotangent is that is left out


def second_of(builder: Builder, order: SecondOrder) -> Second:
    """The functions that ``order`` says, for the pair that ``builder`` builds."""
    definition, needs = builder.definition, builder.needs()
    snake, output = definition.snake, definition.output
    upstream = Parameter(order.upstream.name, builder.layouts[output.name], "adjoint")
    vectors = [
        Parameter(v.name, builder.layouts[of], "adjoint", ZERO) for of, v in order.vectors.items()
    ]
    cotangents = [
        Parameter(c.name, builder.layouts[of], "adjoint", ZERO)
        for of, c in order.cotangents.items()
    ]
    gradients = tuple(f"d{t.name}" for t in definition.differentiable)
    behind = _Lines(builder, order.second, [upstream, *vectors, *needs])
    pulled = _Lines(builder, order.pullback, [*cotangents, *needs])
    tangent = order.second.results[order.upstream.name].name
    given = tuple(
        (of, c.name)
        for of, c in order.second.results.items()
        if of != order.upstream.name and not behind.is_zero(c.name)
    )
    results = (tangent, *(c for _, c in given))
    title = f"{definition.name}Second"
    public = [_required(p) for p in (*vectors, upstream, *needs)]
    linear = [_required(p) for p in (*vectors, *needs)]
    return Second(
        builder.function(
            f"{snake}_pullback",
            "The gradients of the inputs where what is saved has a gradient too.",
            [*cotangents, *needs],
            pulled.lines(gradients),
            gradients,
            f"{definition.name}Gradients",
            next(p.name for p in needs if p.role not in NUMBERS),
        )
        if len(cotangents) > 1
        else None,
        builder.function(
            f"{snake}_behind",
            "What comes back behind the backward.",
            [*vectors, upstream, *needs],
            behind.lines(results),
            results,
            title,
            upstream.name,
        ),
        builder.function(
            f"{snake}_jvp",
            f"The tangent of {output}, from those of the inputs and what the forward saved.",
            linear,
            behind.lines((tangent,)),
            (tangent,),
            "Tensor",
            vectors[0].name,
            checks=builder.asked_of_saved(linear),
        ),
        Function(
            f"{snake}_double_backward",
            f"The gradients by g, which is d{output}, and by the inputs, of what the gradients"
            " times v come to.",
            tuple(public),
            builder.asked_of_saved(public),
            (),
            (),
            (tangent, *gradients),
            title,
        ),
        given,
        (behind.written(), pulled.written()),
        order.summary,
    )


def _required(p: Parameter) -> Parameter:
    return Parameter(p.name, p.layout, p.role)


class _Lines:
    """The lines of one of the two programs."""

    def __init__(self, builder: Builder, behind: Behind, parameters: list[Parameter]):
        self.builder, self.behind, self.form = builder, behind, behind.form
        self.fixed = {p.name: p.layout for p in parameters}
        for of, result in behind.results.items():
            self.fixed[result.name] = self.fixed.get(of, builder.layouts.get(of))
        for s in self.form.statements:
            if s.of is not None and s.of.name in self.fixed:
                self.fixed.setdefault(s.tensor.name, self.fixed[s.of.name])

    def is_zero(self, name: str) -> bool:
        return self.form.by_name[name].expression == 0

    def lines(self, results: tuple[str, ...]):
        """The lines that the ``results`` need."""
        total = self.form.definition.output.name
        pairs = [
            *((v.tensor, v.expression) for v in forward_plan(self.form) if v.tensor.name != total),
            *((s.tensor, s.expression) for s in self.form.statements),
        ]
        kept: list[tuple[Tensor, object]] = []
        needed = set(results)
        for tensor, e in reversed(pairs):
            if tensor.name in needed and not (
                tensor.role == "statement" and tensor.name in self.fixed
            ):
                kept.append((tensor, e))
                needed |= {t.name for t in tensors_in(e)}
        pairs = with_logarithms_joined(kept[::-1], set(results))
        known = layouts(pairs, self.builder.definition.axes, self.fixed)
        return [self.builder.line(t, e, known[t.name]) for t, e in pairs]

    def written(self) -> tuple[str, ...]:
        return tuple(f"{s.tensor} = {formula(s.expression)}" for s in self.form.statements)
