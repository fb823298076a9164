"""The functions behind a backward: what a second derivative needs, as a record of the Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sympy import Abs, Expr

from codegen.alone import listed
from codegen.lowering.bounded import with_bounded_arguments
from codegen.lowering.idioms import with_logarithms_joined, with_softplus
from codegen.lowering.powers import with_powers_at_zero
from codegen.lowering.vanishing import with_zeros_kept
from codegen.outlines import Outline
from codegen.program import NUMBERS, Again, Function, Parameter, Second
from codegen.program.parts import values_in
from codegen.program.steps import Step
from codegen.program.values import LengthOf, Load, Value
from codegen.wanted import wanted_by
from derive.closing.recomputation import under_their_names
from derive.formulas.text import formula
from derive.language.symbols import Tensor, tensors_in
from derive.notation.layout import layouts
from derive.orders.kinks import by_one_choice
from derive.orders.second import Behind, SecondOrder
from derive.orders.third import BehindAgain, ThirdOrder
from derive.proving.forward_plan import forward_plan

if TYPE_CHECKING:
    from codegen.build import Builder

ZERO = 0.0  # what a cotangent is that is left out


def second_of(builder: Builder, order: SecondOrder, third: ThirdOrder | None = None) -> Second:
    """The functions that ``order`` says, for the pair that ``builder`` builds; those behind them
    where there is a ``third`` order.
    """
    functions = _Functions(builder, order)
    second = functions.second()
    return second if third is None else replace(second, third=functions.third(second, third))


def numbers_missing(second: Second) -> frozenset[str]:
    """The scalars and the sizes that the functions read and that nothing which is always there
    gives them: a vector or a cotangent may be None.
    """
    again = (a.function for a in second.third)
    functions = (second.behind, second.jvp, second.pullback, *again)
    return frozenset().union(*(_missing(f) for f in functions if f is not None))


def _missing(function: Function) -> set[str]:
    optional = {p.name for p in function.tensors if p.default is not None}
    lengths = dict(function.sizes)
    shown_late = {name for name, length in lengths.items() if _shown_by(length) & optional}
    known = {p.name for p in function.parameters} | {step.name for step in function.steps}
    read = {v.name for part in (*function.steps, *lengths.values()) for v in _loads(part)}
    return shown_late | (read - known)


def _shown_by(length: Value) -> set[str]:
    return {v.tensor for v in (length, *values_in(length)) if isinstance(v, LengthOf)}


def _loads(part: Step | Value) -> list[Load]:
    values = [*values_in(part), *([part] if isinstance(part, Value) else [])]
    return [v for v in values if isinstance(v, Load)]


class _Functions:
    """What comes behind the backward of one pair."""

    def __init__(self, builder: Builder, order: SecondOrder):
        self.builder, self.order, definition = builder, order, builder.definition
        self.snake, self.outputs = definition.snake, [t.name for t in definition.outputs]
        layouts, self.needs = builder.layouts, builder.needs()
        self.saved = builder.origins_of_saved()
        default = ZERO if len(self.outputs) > 1 else None
        self.upstreams = [
            Parameter(g.name, layouts[of], "adjoint", default) for of, g in order.upstreams.items()
        ]
        self.vectors, self.cotangents = (
            [Parameter(v.name, layouts[of], "adjoint", ZERO) for of, v in found.items()]
            for found in (order.vectors, order.cotangents)
        )
        self.gradients = tuple(f"d{t.name}" for t in definition.differentiable)
        self.behind = _Lines(builder, order.second, [*self.upstreams, *self.vectors, *self.needs])
        self.pulled = _Lines(builder, order.pullback, [*self.cotangents, *self.needs])
        self.tangents = tuple(t.name for t in order.tangents)
        self.title = f"{definition.name}Second"
        self.chosen = bool(definition.reduction)  # another reduction may need what this does not

    def second(self) -> Second:
        arriving = {p.name for p in self.upstreams}
        given = tuple(
            (of, c.name)
            for of, c in self.order.second.results.items()
            if of not in arriving and not self.behind.is_zero(c.name)
        )
        return Second(
            self._pullback() if len(self.cotangents) > 1 or self.chosen else None,
            self._behind((*self.tangents, *(c for _, c in given))),
            self._jvp(),
            self._double(),
            given,
            (self.behind.written(), self.pulled.written()),
            self.order.summary,
        )

    def third(self, second: Second, order: ThirdOrder) -> tuple[Again, ...]:
        """What comes behind the functions of ``second``."""
        found = [self._again(second.behind, order.of_second, self.behind)]
        if second.pullback is not None:
            found.append(self._again(second.pullback, order.of_pullback, self.pulled))
        return tuple(found)

    def _again(self, function: Function, order: BehindAgain, lines: _Lines) -> Again:
        vectors = [
            Parameter(v.name, lines.fixed[of], "adjoint", ZERO)
            for of, v in order.vectors.items()
            if of in function.results
        ]
        again = _Lines(self.builder, order.program, [*vectors, *function.parameters])
        own = [p.name for p in function.tensors]
        results = {of: t.name for of, t in order.program.results.items() if of in own}
        given = tuple((of, name) for of, name in results.items() if not again.is_zero(name))
        computed = tuple(name for _, name in given)
        outline = Outline(
            f"{function.name}_again",
            f"What comes back behind {function.name}.",
            [*vectors, *function.parameters],
            again.lines(computed),
            computed,
            self.title,
            next(p.name for p in function.tensors if p.default is None),
        )
        names = tuple((of, v.name) for of, v in order.vectors.items() if of in function.results)
        return Again(
            self._needed(outline), names, given, again.written(), order.program.proved.summary
        )

    def _pullback(self) -> Function:
        return self._needed(
            Outline(
                f"{self.snake}_pullback",
                "The gradients of the inputs where what is saved has a gradient too.",
                [*self.cotangents, *self.needs],
                self.pulled.lines(self.gradients),
                self.gradients,
                f"{self.builder.definition.name}Gradients",
                next(p.name for p in (*self.needs, *self.cotangents) if p.role not in NUMBERS),
            )
        )

    def _behind(self, results: tuple[str, ...]) -> Function:
        return self._needed(
            Outline(
                f"{self.snake}_behind",
                "What comes back behind the backward.",
                [*self.vectors, *self.upstreams, *self.needs],
                self.behind.lines(results),
                results,
                self.title,
                self.upstreams[0].name,
            )
        )

    def _needed(self, outline: Outline) -> Function:
        """The function without steps that no result needs: a vector that meets only zeros is not
        filled in.
        """
        function = self.builder.function(outline)
        steps = zip(function.steps, wanted_by(function), strict=True)
        function = replace(function, steps=tuple(step for step, by in steps if by))
        function = with_zeros_kept(function, self.saved)
        return with_bounded_arguments(function, self.saved)  # a third order is autograd's

    def _jvp(self) -> Function:
        linear = [_required(p) for p in (*self.vectors, *self.needs)]
        function = self.builder.function(
            Outline(
                f"{self.snake}_jvp",
                f"The {listed('tangent', self.tangents)}, from those of the inputs and what the"
                " forward saved.",
                linear,
                self.behind.lines(self.tangents),
                self.tangents,
                "Tensor",
                self.vectors[0].name,
                checks=self.builder.asked_of_saved(linear),
            )
        )
        return with_zeros_kept(function, self.saved)

    def _double(self) -> Function:
        public = [_required(p) for p in (*self.vectors, *self.upstreams, *self.needs)]
        return Function(
            f"{self.snake}_double_backward",
            "The gradients by the upstream gradients and by the inputs, of the gradients times v.",
            tuple(public),
            self.builder.asked_of_saved(public),
            (),
            (),
            (*self.tangents, *self.gradients),
            self.title,
        )


def _by_one_choice(pairs: list[tuple[Tensor, Expr]]) -> list[tuple[Tensor, Expr]]:
    """The lines as autograd may differentiate them where two values are equal."""
    magnitudes = {tensor: e for tensor, e in pairs if isinstance(e, Abs)}
    found = by_one_choice([e.xreplace(magnitudes) for _, e in pairs])
    changed = any(e.xreplace(magnitudes) != new for (_, e), new in zip(pairs, found, strict=True))
    return [(t, new) for (t, _), new in zip(pairs, found, strict=True)] if changed else pairs


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
        pairs = with_logarithms_joined(self._needed_for(results, self._pairs()), set(results))
        smooth = [(t, with_softplus(e)) for t, e in pairs]  # autograd needs no choice there
        known = self.builder.forward_lines(), self.builder.statements()
        finite = with_powers_at_zero(_by_one_choice(smooth), *known)
        pairs = self._needed_for(results, finite)
        known = layouts(pairs, self.builder.definition.axes, self.fixed)
        return [self.builder.line(t, e, known[t.name]) for t, e in pairs]

    def written(self) -> tuple[str, ...]:
        """All lines as formulas."""
        results = tuple(t.name for t in self.behind.results.values())
        pairs = self._needed_for(results, self._pairs())
        return tuple(f"{tensor} = {formula(e)}" for tensor, e in pairs)

    def _pairs(self) -> list[tuple[Tensor, Expr]]:
        """The values of the program's own forward, and its statements."""
        total = self.form.definition.output.name
        return [
            *((v.tensor, v.expression) for v in forward_plan(self.form) if v.tensor.name != total),
            *((s.tensor, s.expression) for s in self.form.statements),
        ]

    def _needed_for(self, results: tuple[str, ...], pairs: Sequence[tuple[Tensor, Expr]]):
        """Of ``pairs`` those that the ``results`` need and that are not at hand."""
        kept: list[tuple[Tensor, Expr]] = []
        needed = set(results)
        for tensor, e in reversed(pairs):
            at_hand = tensor.role == "statement" and tensor.name in self.fixed
            if tensor.name in needed and not at_hand:
                kept.append((tensor, e))
                needed |= {t.name for t in tensors_in(e)}
        form = self.form
        return under_their_names(kept[::-1], form.again, self.fixed, form.parts_shown)
