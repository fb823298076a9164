"""From a proved closed form to a Program: the functions, each from an outline: arguments, lines,
checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sympy import Expr

from codegen.alone import listed, with_zeros
from codegen.arguments import divisors, fillings, refused
from codegen.lowering import Lowering
from codegen.lowering.differentiated import with_lines_to_differentiate
from codegen.lowering.fused import fused
from codegen.lowering.idioms import with_logarithms_joined
from codegen.lowering.matrices import with_triangles
from codegen.lowering.repeated import named_once
from codegen.lowering.vanishing import with_zeros_kept
from codegen.program import NUMBERS, Function, Parameter, Plain, Program, Second
from codegen.program.steps import NotZero, Step
from codegen.second import numbers_missing, second_of
from codegen.signatures import Line, Outline, Signatures
from derive.closing.risks import unsafe
from derive.formulas.text import formula
from derive.language.symbols import Axes, Tensor
from derive.notation.layout import Layout
from derive.orders import FIRST, SECOND
from derive.orders.second import SecondOrder
from derive.orders.third import ThirdOrder
from derive.proving.proved import Proved


def program_of(
    proved: Proved, source: Path, source_hash: str, beside: Beside | None = None
) -> Program:
    """Everything that a target prints, decided; the mathematics is in the file ``source``."""
    beside = beside or Beside()
    builder, second = _with_second(proved, beside.second, beside.third)
    program = replace(builder.program(source, source_hash), second=second)
    if beside.second is None:
        program = replace(program, without_second=beside.refused)
    if beside.without_options is not None:
        of_left = beside.second_without_options, beside.third_without_options
        left, second = _with_second(beside.without_options, *of_left)
        program = replace(program, plain=replace(builder.plain(left), second=second))
    return program


def _with_second(
    proved: Proved, order: SecondOrder | None, third: ThirdOrder | None
) -> tuple[Builder, Second | None]:
    """The functions behind a backward, and who builds the pair: one that keeps the numbers which
    these read, too.
    """
    builder = Builder(proved)
    if order is None:
        return builder, None
    second = second_of(builder, order, third)
    if numbers := numbers_missing(second):
        builder = Builder(proved, numbers)
        second = second_of(builder, order, third)
        if numbers := numbers_missing(second):
            names = ", ".join(sorted(numbers))
            raise AssertionError(f"{builder.definition.name}: {names} is read and not kept")
    return builder, second


@dataclass(frozen=True)
class Beside:
    """What is derived and proved beside a closed form: its ``second`` derivatives, the mathematics
    ``without_options``, the second derivatives of that, and the third ones of both; None for what
    was not. ``refused`` says why derivatives are missing that were asked for.
    """

    second: SecondOrder | None = None
    without_options: Proved | None = None
    second_without_options: SecondOrder | None = None
    third: ThirdOrder | None = None
    third_without_options: ThirdOrder | None = None
    refused: str = ""

    def without(self, order: int, why: str) -> Beside | None:
        """Less the derivatives from this ``order`` on; None where there are none."""
        if order > SECOND and self.third is not None:
            left = replace(self, third=None, third_without_options=None)
        elif order > FIRST and self.second is not None:
            left = Beside(without_options=self.without_options)
        else:
            return None
        return replace(left, refused=why)


class Builder(Signatures):
    """The functions of a Program."""

    def program(self, source: Path, source_hash: str) -> Program:
        definition, snake = self.definition, self.definition.snake
        program = Program(
            name=snake,
            title=definition.name,
            doc=definition.doc,
            source=source.name,
            source_hash=source_hash,
            formulas=self._formulas_written(),
            proved=self.proved.summary,
            unsafe=self._unsafe(),
            sizes=tuple((axis.name, self.sizes[axis]) for axis in definition.axes),
            several=tuple(self.sizes[a] for a in definition.axes if isinstance(a, Axes)),
            flattened=tuple(
                (self.sizes[flat], tuple(self.sizes[part] for part in parts))
                for flat, parts in definition.flattened
            ),
            derived=self._derived(),
            fixed=tuple((self.sizes[axis], n) for axis, n in definition.fixed.items()),
            requirements=tuple(self._requirements()),
            means=tuple((name, axis.name) for axis, name in self._sizes_divided_by().items()),
            labels=tuple(self._label_ranges()),
            ranges=self._ranges(self._inputs(), self._counting()),
            ignored=tuple(ignoring.label.name for ignoring in definition.ignoring),
            broadcast=definition.broadcast,
            forward=self._forward(),
            backward=with_zeros_kept(self._backward(), self.origins_of_saved()),
            atoms=self._atoms(),
            chain=self._chain(),
            reduction=definition.reduction,
            alone=self._alone(),
        )
        return with_lines_to_differentiate(program)

    def _unsafe(self) -> tuple[str, ...]:
        lines = [(v.tensor, v.expression) for v in self.plan]
        return unsafe(lines, self.statements(), self.form.relations)

    def line(self, tensor: Tensor, e: Expr, layout: Layout) -> Line:
        return Line(tensor, (e,), layout)

    def plain(self, left: Builder) -> Plain:
        """What ``left`` makes of the mathematics without options, and when that is called."""
        definition = self.definition
        passed = {t.name for t in left.definition.arguments}
        numbers = {t.name for t, _ in left.definition.scalars}
        ignorable = {ignoring.label.name for ignoring in definition.ignoring}
        return Plain(
            tuple(t.name for t, _ in definition.optional if t.name not in passed),
            tuple(t.name for t, _ in definition.scalars if t.name not in numbers),
            self._ranges(self._inputs(), ignorable),
            left._formulas_written(),
            left._forward(),
            with_zeros_kept(left._backward(), left.origins_of_saved()),
            alone=left._alone(),
        )

    def _formulas_written(self) -> tuple[str, ...]:
        return tuple(f"{tensor} = {formula(e)}" for tensor, e in self.statements())

    # -- the four functions ---------------------------------------------------

    def _forward(self) -> Function:
        outputs = [t.name for t in self.definition.outputs]
        results = (*outputs, *(p.name for p in self.needs() if p.name not in outputs))
        values = with_logarithms_joined(((v.tensor, v.expression) for v in self.plan), results)
        lines = [Line(tensor, (e,), self.layouts[tensor.name]) for tensor, e in values]
        return self.function(
            Outline(
                f"{self.definition.snake}_forward",
                f"The {listed('output', outputs)}, then what the backward needs.",
                self._inputs(),
                lines,
                results,
                f"{self.definition.name}Forward",
                self.definition.differentiable[0].name,
                checks=self._asked_of_inputs(),
            )
        )

    def _backward(self) -> Function:
        lines = self._gradient_lines()
        return self._backward_from(self.upstreams(), lines, self._gradients())

    def _gradients(self) -> tuple[str, ...]:
        return tuple(f"d{t.name}" for t in self.definition.differentiable)

    def _backward_from(
        self, upstreams: Sequence[Parameter], lines: Sequence[Line], results: tuple[str, ...]
    ) -> Function:
        varies = bool(self.definition.reduction)
        parameters = [*(replace(p, varies=varies) for p in upstreams), *self.needs()]
        names = [p.name for p in upstreams]
        return self.function(
            Outline(
                f"{self.definition.snake}_backward",
                f"The gradients of the inputs, from {listed('', names)} and what the forward"
                " saved.",
                parameters,
                lines,
                results,
                f"{self.definition.name}Gradients",
                names[0],
                self.definition.by_name,
                self._at_hand(),
                self.asked_of_saved(parameters),
            )
        )

    def _alone(self) -> tuple[Function, ...]:
        """The backward of each output where no other one has a gradient: those are 0 in it."""
        upstreams, found = self.upstreams(), []
        for p in upstreams * (len(upstreams) > 1):
            others = {other.name for other in upstreams if other != p}
            lines = with_zeros(self._gradient_lines(), others, self._gradients())
            found.append(with_zeros_kept(self._backward_from([p], *lines), self.origins_of_saved()))
        return tuple(found)

    def _atoms(self) -> Function:
        statements = self.definition.statements
        lines = [Line(s.tensor, (s.expression,), self.layouts[s.name]) for s in statements]
        return self.function(
            Outline(
                f"{self.definition.snake}_atoms",
                "Every statement of the forward, as written.",
                self._inputs(),
                lines,
                tuple(s.name for s in statements),
                f"{self.definition.name}Atoms",
                self.definition.differentiable[0].name,
                self.definition.by_name,
            )
        )

    def _chain(self) -> Function:
        chain = self.form.chain
        parameters = self.upstreams()
        like = parameters[0].name
        numbers = [p for p in self._inputs() if p.role in NUMBERS]
        parameters += [p for p in self._inputs() if p not in numbers]
        parameters += [
            Parameter(s.name, self.layouts[s.name], "statement") for s in self.definition.statements
        ]
        parameters += numbers
        lines = [
            Line(a.tensor, tuple(c.through_outer for c in a.contributions), self.layouts[a.of.name])
            for a in chain.adjoints
        ]
        results = [f"d{s.name}" for s in self.definition.statements]
        results += self._gradients()
        return self.function(
            Outline(
                f"{self.definition.snake}_chain",
                "The gradient of every statement and input, one step of the chain rule at a time.",
                parameters,
                lines,
                tuple(results),
                f"{self.definition.name}Chain",
                like,
                self.definition.by_name,
                checks=self._asked_beside_inputs(parameters),
            )
        )

    def function(self, outline: Outline) -> Function:
        parameters, lines = outline.parameters, list(outline.lines)
        known: dict[str, Layout] = dict(self.layouts)
        known |= {p.name: p.layout for p in parameters} | {
            line.tensor.name: line.layout for line in lines
        }
        of = self.definition.axes, outline.statements, outline.saved
        lowering = Lowering(known, *of, self._peaks, self._magnitudes)
        steps: list[Step] = [*fillings(parameters)]
        if any(p.role == "index" for p in parameters):
            steps += self._labels_split()
        for line in lines:
            named = line.tensor.name, line.terms, line.layout
            steps += lowering.accumulated(*named, outline.like)
        numbers = {p.name for p in parameters if p.role in NUMBERS}
        if not lowering.rounds_as_autograd:
            steps = [fused(step, numbers) for step in steps]
            steps = named_once(steps, numbers, {*known, *self.sizes.values()})
        steps = [with_triangles(step, self._factors) for step in steps]
        steps = [*self._zeros(outline, steps, numbers), *steps]
        return Function(
            outline.name,
            outline.summary,
            tuple(parameters),
            outline.checks,
            self._read_sizes(steps, parameters, outline.results),
            tuple(steps),
            outline.results,
            outline.result_class,
        )

    def _zeros(self, outline: Outline, steps: list[Step], numbers: set[str]) -> list[NotZero]:
        """What the steps divide by and nothing refuses before."""
        refusals = refused(self._requirements(), self._lengths(outline.parameters))
        never = {r.left for r in refusals if not r.equal} | self._never_zero
        found = divisors(steps, numbers, outline.name)
        return [zero for zero in found if zero.divisor not in never]
