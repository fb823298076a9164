"""From a proved closed form to a Program: the four functions, their arguments, sizes, lines and
checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sympy import Abs, Expr, Mul
from sympy.core.function import Function as SymbolicFunction

from codegen.arguments import (
    divisors,
    fillings,
    needed,
    number_steps,
    refused,
    shape_steps,
    sizes_read,
    with_sizes,
)
from codegen.lowering import Lowering, sizes_used
from codegen.lowering.fused import fused
from codegen.lowering.idioms import with_logarithms_joined
from codegen.lowering.repeated import named_once
from codegen.program import (
    NUMBERS,
    Function,
    Parameter,
    Plain,
    Program,
)
from codegen.program.steps import (
    InRange,
    Refuse,
    SplitLabel,
    Step,
    Within,
)
from codegen.program.values import (
    LengthOf,
    Load,
    Number,
    Quotient,
    SizeOf,
    Times,
    Value,
)
from codegen.second import second_of
from derive.closing.risks import unsafe
from derive.formulas.text import formula
from derive.language.nodes import Flatten, Max, Peak, Reshaping
from derive.language.symbols import Axes, Axis, Tensor, size_divisors
from derive.notation.definition import IGNORE_INDEX, Definition, Statement
from derive.notation.layout import Layout, layouts, layouts_of, plain
from derive.notation.made_axes import known_sizes
from derive.orders.second import SecondOrder
from derive.proving.forward_plan import forward_plan
from derive.proving.proved import Proved

ZERO = Number(Fraction(0))


def program_of(
    proved: Proved, source: Path, source_hash: str, beside: Beside | None = None
) -> Program:
    """Everything that a target prints, decided; the mathematics is in the file ``source``."""
    builder = Builder(proved)
    program, beside = builder.program(source, source_hash), beside or Beside()
    if beside.second is not None:
        program = replace(program, second=second_of(builder, beside.second))
    if beside.without_options is not None:
        left = Builder(beside.without_options)
        second = beside.second_without_options
        plain = builder.plain(left)
        if second is not None:
            plain = replace(plain, second=second_of(left, second))
        program = replace(program, plain=plain)
    return program


def _product(lengths: Iterable[Value]) -> Value:
    lengths = tuple(lengths)
    return lengths[0] if len(lengths) == 1 else Times(tuple((v, False) for v in lengths))


@dataclass(frozen=True)
class Beside:
    """What is derived and proved beside a closed form: its ``second`` derivatives, the mathematics
    ``without_options``, and the second derivatives of that; None for what was not.
    """

    second: SecondOrder | None = None
    without_options: Proved | None = None
    second_without_options: SecondOrder | None = None


@dataclass(frozen=True)
class _Line:
    """A statement to lower: its tensor, the terms of its expression in the order in which they
    are added, and its layout.
    """

    tensor: Tensor
    terms: tuple[Expr, ...]
    layout: Layout


class Builder:
    def __init__(self, proved: Proved):
        self.proved, self.form = proved, proved.closed_form
        self.definition: Definition = self.form.definition
        self.layouts: dict[str, Layout] = layouts_of(self.definition)
        self.plan = forward_plan(self.form)
        pairs = [(v.tensor, v.expression) for v in self.form.relations.values]
        pairs += [(v.tensor, v.expression) for v in self.plan if v.tensor.name not in self.layouts]
        self.layouts = layouts(pairs, self.definition.axes, self.layouts)
        self.sizes = self._size_names()

    def program(self, source: Path, source_hash: str) -> Program:
        definition, snake = self.definition, self.definition.snake
        return Program(
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
            fixed=tuple((self.sizes[axis], n) for axis, n in definition.fixed.items()),
            requirements=tuple(self._requirements()),
            means=tuple((name, axis.name) for axis, name in self._sizes_divided_by().items()),
            labels=tuple(self._label_ranges()),
            ranges=self._ranges(self._inputs(), self._counting()),
            ignored=tuple(ignoring.label.name for ignoring in definition.ignoring),
            broadcast=definition.broadcast,
            forward=self._forward(),
            backward=self._backward(),
            atoms=self._atoms(),
            chain=self._chain(),
        )

    @cached_property
    def _peaks(self) -> dict[str, tuple[Expr, ...]]:
        """What a value that is the largest of a row is the largest of, and what that is made of."""
        values = {v.tensor.name: v.expression for v in self.form.relations.values}
        peaks = {name: e.operand for name, e in values.items() if isinstance(e, Peak)}
        return {
            name: (e, values[e.name]) if isinstance(e, Tensor) and e.name in values else (e,)
            for name, e in peaks.items()
        }

    @cached_property
    def _magnitudes(self) -> dict[str, Expr]:
        """What a value that is an absolute value is that of."""
        values = {v.tensor.name: v.expression for v in self.form.relations.values}
        return {name: e.args[0] for name, e in values.items() if isinstance(e, Abs)}

    def _unsafe(self) -> tuple[str, ...]:
        lines = [(v.tensor, v.expression) for v in self.plan]
        statements = [(s.tensor, s.expression) for s in self.form.statements]
        return unsafe(lines, statements, self.form.relations)

    def line(self, tensor: Tensor, e: Expr, layout: Layout) -> _Line:
        return _Line(tensor, (e,), layout)

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
            left._backward(),
        )

    def _formulas_written(self) -> tuple[str, ...]:
        return tuple(f"{s.tensor} = {formula(s.expression)}" for s in self.form.statements)

    # -- the four functions ---------------------------------------------------

    def _forward(self) -> Function:
        needs = [p.name for p in self.needs() if p.name != self.definition.output.name]
        results = (self.definition.output.name, *needs)
        values = with_logarithms_joined(((v.tensor, v.expression) for v in self.plan), results)
        lines = [_Line(tensor, (e,), self.layouts[tensor.name]) for tensor, e in values]
        return self.function(
            f"{self.definition.snake}_forward",
            f"The output {self.definition.output}, then what the backward needs.",
            self._inputs(),
            lines,
            results,
            f"{self.definition.name}Forward",
            self.definition.differentiable[0].name,
            checks=self._asked_of_inputs(),
        )

    def _backward(self) -> Function:
        output = self.definition.output
        parameters = [
            Parameter(f"d{output.name}", self.layouts[output.name], "adjoint"),
            *self.needs(),
        ]
        lines = self._gradient_lines()
        return self.function(
            f"{self.definition.snake}_backward",
            f"The gradients of the inputs, from d{output} and what the forward saved.",
            parameters,
            lines,
            tuple(f"d{t.name}" for t in self.definition.differentiable),
            f"{self.definition.name}Gradients",
            f"d{output.name}",
            self.definition.by_name,
            self._at_hand(),
            self.asked_of_saved(parameters),
        )

    def _atoms(self) -> Function:
        statements = self.definition.statements
        lines = [_Line(s.tensor, (s.expression,), self.layouts[s.name]) for s in statements]
        return self.function(
            f"{self.definition.snake}_atoms",
            "Every statement of the mathematics, as it is written.",
            self._inputs(),
            lines,
            tuple(s.name for s in statements),
            f"{self.definition.name}Atoms",
            self.definition.differentiable[0].name,
            self.definition.by_name,
        )

    def _chain(self) -> Function:
        output = self.definition.output
        chain = self.form.chain
        parameters = [Parameter(f"d{output.name}", self.layouts[output.name], "adjoint")]
        numbers = [p for p in self._inputs() if p.role in NUMBERS]
        parameters += [p for p in self._inputs() if p not in numbers]
        parameters += [
            Parameter(s.name, self.layouts[s.name], "statement") for s in self.definition.statements
        ]
        parameters += numbers
        lines = [
            _Line(
                a.tensor, tuple(c.through_outer for c in a.contributions), self.layouts[a.of.name]
            )
            for a in chain.adjoints
        ]
        results = [f"d{s.name}" for s in self.definition.statements]
        results += [f"d{t.name}" for t in self.definition.differentiable]
        return self.function(
            f"{self.definition.snake}_chain",
            "The gradient of every statement and input, one step of the chain rule at a time.",
            parameters,
            lines,
            tuple(results),
            f"{self.definition.name}Chain",
            f"d{output.name}",
            self.definition.by_name,
            checks=self._asked_beside_inputs(parameters),
        )

    def function(
        self,
        name: str,
        summary: str,
        parameters: Sequence[Parameter],
        lines: Iterable[_Line],
        results: tuple[str, ...],
        result_class: str,
        like: str,
        statements: Mapping[str, Statement] | None = None,
        saved: frozenset[str] | None = None,
        checks: tuple[Step, ...] = (),
    ) -> Function:
        lines = list(lines)
        known: dict[str, Layout] = dict(self.layouts)
        known |= {p.name: p.layout for p in parameters} | {
            line.tensor.name: line.layout for line in lines
        }
        lowering = Lowering(
            known, self.definition.axes, statements, saved, self._peaks, self._magnitudes
        )
        steps: list[Step] = [*fillings(parameters)]
        if any(p.role == "index" for p in parameters):
            steps += self._labels_split()
        for line in lines:
            steps += lowering.accumulated(line.tensor.name, line.terms, line.layout, like)
        numbers = {p.name for p in parameters if p.role in NUMBERS}
        if not lowering.rounds_as_autograd:
            steps = [fused(step, numbers) for step in steps]
            steps = named_once(steps, numbers, {*known, *self.sizes.values()})
        refusals = refused(self._requirements(), self._lengths(parameters))
        never = {r.left for r in refusals if not r.equal} | self._never_zero
        zeros = [zero for zero in divisors(steps, numbers, name) if zero.divisor not in never]
        steps = [*zeros, *steps]
        return Function(
            name,
            summary,
            tuple(parameters),
            checks,
            self._read_sizes(steps, parameters, results),
            tuple(steps),
            results,
            result_class,
        )

    # -- what is asked of the arguments ---------------------------------------

    @cached_property
    def _names(self) -> dict[str, str]:
        """The name of the size of every axis, in the code."""
        return {axis.name: self.sizes[axis] for axis in self.definition.axes}

    def _asked_of_inputs(self) -> tuple[Step, ...]:
        """What all functions that take the inputs ask of them."""
        inputs = self._inputs()
        return (*needed(inputs), *self._asked(inputs, self.definition.broadcast))

    def asked_of_saved(self, parameters: Sequence[Parameter]) -> tuple[Step, ...]:
        """What the backward asks of an upstream gradient and of what the forward saved."""
        asked = self._asked(parameters, upstream=True)
        return (*asked, *self._ranges(parameters, self._counting()))

    def _asked(
        self, parameters: Sequence[Parameter], broadcast: Sequence[str] = (), upstream: bool = False
    ) -> list[Step]:
        lengths, fixed = self._lengths(parameters), dict.fromkeys(self._fixed_sizes(), "")
        shapes = shape_steps(parameters, broadcast, self._names, fixed, upstream)
        rest = [
            *refused(self._requirements(), lengths),
            *number_steps(parameters, self._demanded(parameters), self.definition.snake),
        ]
        return [*shapes, *with_sizes(rest, lengths, self._names, sizes_read(shapes, self._names))]

    def _asked_beside_inputs(self, parameters: Sequence[Parameter]) -> tuple[Step, ...]:
        """What the chain asks of the upstream gradient and the statements, when the inputs are what
        they have to be.
        """
        inputs = self._inputs()
        rest = [p for p in parameters if p not in inputs]
        lengths = self._lengths(inputs)
        known = {
            self._names[axis]: length.tensor if isinstance(length, LengthOf) else ""
            for axis, length in lengths.items()
        }
        steps = shape_steps(rest, (), self._names, known, upstream=True, after=True)
        return tuple(with_sizes(steps, lengths, self._names, self._fixed_sizes()))

    def _fixed_sizes(self) -> tuple[str, ...]:
        return tuple(self.sizes[axis] for axis in self.definition.fixed)

    def _counting(self) -> set[str]:
        """The labels that always count; what may be ignored is looked through when it is split."""
        ignorable = {ignoring.label.name for ignoring in self.definition.ignoring}
        return {t.name for t in self.definition.labels} - ignorable

    def _ranges(
        self, parameters: Sequence[Parameter], labels: Collection[str]
    ) -> tuple[InRange, ...]:
        """Those of the ``labels`` that are among the parameters, with the lengths of the axes that
        each indexes, as far as the parameters show them.
        """
        lengths = self._lengths(parameters)
        found: dict[str, list[Value]] = {p.name: [] for p in parameters if p.name in labels}
        for label, axis in self._label_ranges():
            own = self._original[axis]
            if label in found and own in lengths:
                found[label].append(lengths[own])
        return tuple(InRange(label, tuple(values)) for label, values in found.items())

    @cached_property
    def _original(self) -> dict[str, str]:
        """Every axis with the one that it is a renaming of, or itself."""
        return {axis.name: self.definition.size(axis).name for axis in self.definition.axes}

    @cached_property
    def _never_zero(self) -> set[Value]:
        """The scalars that are refused where they are 0, whatever reads them."""
        demands = self.definition.demands
        signed = (
            d.expression for d in demands if {"positive", "negative"} & d.domain.signs().keys()
        )
        return {Load(e.name) for e in signed if isinstance(e, Tensor)}

    def _demanded(self, parameters: Sequence[Parameter]) -> Iterable[Within]:
        """What a function can demand of its numbers: what it is given them and the sizes for."""
        names, lengths = {p.name for p in parameters}, self._lengths(parameters)
        lowering = Lowering({t.name: () for t, _ in self.definition.scalars}, self.definition.axes)
        for demand in self.definition.demands:
            bounds = demand.domain.bounds
            parts = [demand.expression, *(bound.limit for bound in bounds)]
            sizes = {self.definition.size(axis).name for e in parts for axis in e.atoms(Axis)}
            scalars = {t.name for e in parts for t in e.atoms(Tensor)}
            if scalars <= names and sizes <= lengths.keys():
                yield Within(
                    formula(demand.expression),
                    lowering.value(demand.expression, ()),
                    tuple((bound.relation, lowering.value(bound.limit, ())) for bound in bounds),
                    str(demand.domain),
                )

    def _labels_split(self) -> list[SplitLabel]:
        """Every label that may be ignored, as an index and as what says where it counts."""
        ranges = self._label_ranges()
        return [
            SplitLabel(
                ignoring.label.name,
                ignoring.kept.name,
                IGNORE_INDEX,
                tuple(SizeOf(axis) for label, axis in ranges if label == ignoring.label.name),
                self.layouts[ignoring.label.name],
            )
            for ignoring in self.definition.ignoring
        ]

    # -- arguments, sizes, layouts --------------------------------------------

    def _inputs(self) -> list[Parameter]:
        optional = dict(self.definition.optional)
        tensors = [
            Parameter(t.name, self.layouts[t.name], t.role, optional.get(t))
            for t in self.definition.arguments
        ]
        sizes = [Parameter(name, (), "size") for name, _ in self.definition.size_arguments]
        lowering = Lowering({}, self.definition.axes)
        scalars = [
            Parameter(
                t.name,
                (),
                "scalar",
                lowering.value(default, ()) if isinstance(default, Expr) else default,
            )
            for t, default in self.definition.scalars
        ]
        ignored = dict.fromkeys(ignoring.default for ignoring in self.definition.ignoring)
        indices = [Parameter(IGNORE_INDEX, (), "index", default) for default in ignored]
        return tensors + sizes + scalars + indices

    def needs(self) -> list[Parameter]:
        """What the backward takes besides the upstream gradient: saved tensors, and sizes that
        none of them has.
        """
        saved = [Parameter(t.name, self.layouts[t.name], t.role) for t in self.form.saved]
        saved.sort(key=lambda p: p.role == "scalar")  # numbers come last, as in every signature
        output = self.definition.output
        upstream = Parameter(f"d{output.name}", self.layouts[output.name], "adjoint")
        lowering = Lowering(
            {
                **self.layouts,
                **{line.tensor.name: line.layout for line in self._gradient_lines()},
                upstream.name: upstream.layout,
            },
            self.definition.axes,
            self.definition.by_name,
            self._at_hand(),
        )
        steps: list[Step] = []
        for line in self._gradient_lines():
            steps += lowering.accumulated(line.tensor.name, line.terms, line.layout, upstream.name)
        used = {self._original[axis] for axis in sizes_used(steps)}
        shapes = self._shapes_needed(used, [upstream, *saved])
        missing = sorted(used - set(self._lengths([upstream, *saved, *shapes])))
        tensors = [p for p in saved if p.role != "scalar"]
        return [
            *tensors,
            *shapes,
            *saved[len(tensors) :],
            *(Parameter(self._names[axis], (), "size") for axis in missing),
        ]

    def _shapes_needed(self, used, parameters: Sequence[Parameter]) -> list[Parameter]:
        """An argument for every `Axes` that the backward speaks of and whose dimensions none of
        its tensors has.
        """
        shown = {dim.axis for p in parameters for dim in p.layout if not dim.one}
        spoken_of = {axis for t in self.definition.differentiable for axis in t.axes}
        return [
            Parameter(self.sizes[axis], plain([axis]), "shape")
            for axis in self.definition.axes
            if isinstance(axis, Axes)
            and axis not in shown
            and (axis in spoken_of or axis.name in used)
        ]

    def _at_hand(self) -> frozenset[str]:
        """What the backward knows by name."""
        saved = {t.name for t in self.form.saved} | {s.tensor.name for s in self.form.statements}
        return frozenset(saved | {self.form.chain.upstream.name})

    def _gradient_lines(self) -> list[_Line]:
        fixed = {
            s.tensor.name: self.layouts[s.of.name] for s in self.form.statements if s.of is not None
        }
        fixed |= self.layouts
        fixed[self.form.chain.upstream.name] = self.layouts[self.definition.output.name]
        gradients = {f"d{t.name}" for t in self.definition.differentiable}
        written = ((s.tensor, s.expression) for s in self.form.statements)
        pairs = with_logarithms_joined(written, gradients)
        known = layouts(pairs, self.definition.axes, fixed)
        return [_Line(t, self._terms(t, e), known[t.name]) for t, e in pairs]

    def _terms(self, tensor: Tensor, e: Expr) -> tuple[Expr, ...]:
        """The terms of a closed form ``e``; the derivative of a function by its name where the
        closed form is the step of the chain and nothing else.
        """
        adjoint = self.form.chain.by_name.get(tensor.name)
        if adjoint is None or adjoint.expression != e:
            return (e,)
        vias = (self.definition.by_name[c.via].expression for c in adjoint.contributions)
        if not all(isinstance(via, SymbolicFunction) for via in vias):
            return (e,)
        return tuple(c.through_outer for c in adjoint.contributions)

    def _size_names(self) -> dict[Axis, str]:
        """The name of every size in the code: the axis's own, unless a tensor has it."""
        taken = {t.name for t in self.definition.inputs} | {
            t.name for t, _ in self.definition.scalars
        }
        taken |= {v.tensor.name for v in self.form.relations.values}
        taken |= {f"d{name}" for name in taken}
        arguments = {axis: name for name, axis in self.definition.size_arguments}
        taken |= set(arguments.values())
        names = {}
        for axis in self.definition.axes:
            original = self.definition.size(axis)
            own = f"{original.name}_size" if original.name in taken else original.name
            names[axis] = arguments.get(original, own)
        return names

    def _read_sizes(self, steps, parameters, results) -> tuple[tuple[str, Value], ...]:
        """(name, value) for every size that the steps or results speak of."""
        by_axis = {axis.name: self.sizes[axis] for axis in self.definition.axes}
        same = self._original
        wanted = {same[axis] for axis in sizes_used(steps)}
        wanted |= {axis for axis, name in by_axis.items() if name in results and axis == same[axis]}
        given = {p.name for p in parameters if p.role in ("size", "shape")}
        found = []
        for axis in [a.name for a in self.definition.axes if a.name in wanted]:
            if by_axis[axis] in given:
                continue
            found.append((by_axis[axis], self._lengths(parameters)[axis]))
        return tuple(found)

    def _lengths(self, parameters: Sequence[Parameter]) -> dict[str, Value]:
        """The length of every axis that is known: that of a dimension of the first argument that
        has it, a number, an argument itself, or what follows from those of other axes.
        """
        definition, found = self.definition, {}
        for p in sorted(parameters, key=lambda p: p.default is not None):
            for i, dim in enumerate(p.layout):
                if not dim.one:
                    axis = definition.size(dim.axis)
                    shown = p.role == "shape"
                    length = SizeOf(axis.name) if shown else LengthOf(p.name, i)
                    found.setdefault(axis, length)
        for axis, length in definition.fixed.items():
            found[axis] = Number(Fraction(length))
        given = {p.name for p in parameters if p.role == "size"}
        for axis in definition.axes:
            if self.sizes[axis] in given:
                found.setdefault(definition.size(axis), Load(self.sizes[axis]))
        flattened = dict(definition.flattened)
        for axis, others in known_sizes(found, flattened).items():
            if others == flattened.get(axis):
                found[axis] = _product(found[part] for part in others)
            else:
                flat, *parts = others
                by = " * ".join(self.sizes[part] for part in parts)
                divisor = _product(found[part] for part in parts)
                found[axis] = Quotient(found[flat], divisor, self.sizes[flat], by)
        return {axis.name: length for axis, length in found.items()}

    # -- what is refused ------------------------------------------------------

    def _requirements(self) -> Iterable[Refuse]:
        """Sizes at which the mathematics divides by zero, or takes the maximum of nothing.

        A size itself may be divided by: the mean of nothing is NaN.
        """
        seen: set[Expr] = set()
        lowering = Lowering({}, self.definition.axes)
        for name, e in self._formulas():
            for divisor in size_divisors(e):
                if divisor not in seen and not isinstance(divisor, Axis):
                    seen.add(divisor)
                    yield Refuse(
                        name,
                        lowering.value(divisor, ()),
                        ZERO,
                        False,
                        "divides by it",
                        tuple(
                            (a.name, self.sizes[a]) for a in sorted(divisor.atoms(Axis), key=str)
                        ),
                    )
            for largest in sorted(e.atoms(Max), key=str):
                size = self.definition.size(largest.axes[0])
                if size not in seen:
                    seen.add(size)
                    yield Refuse(
                        name,
                        lowering.value(size, ()),
                        ZERO,
                        False,
                        "takes a maximum along it",
                        ((size.name, self.sizes[size]),),
                    )

            for node in sorted(e.atoms(Reshaping), key=str):
                flattens = isinstance(node, Flatten)
                parts = tuple(map(self.definition.size, node.axes if flattens else node.into))
                flat = self.definition.size(node.flat)
                if (flat, parts) not in seen:
                    seen.add((flat, parts))
                    yield Refuse(
                        name,
                        SizeOf(flat.name),
                        lowering.value(Mul(*parts), ()),
                        True,
                        f"flattens {' x '.join(a.name for a in parts)} into {flat}"
                        if flattens
                        else f"splits {flat} into {' x '.join(a.name for a in parts)}",
                        tuple((a.name, self.sizes[a]) for a in (flat, *parts)),
                    )

    def _formulas(self) -> list[tuple[str, Expr]]:
        """What the functions compute before anything is differentiated, with its name."""
        return [
            *((t.name, e) for t, e in self.definition.scalars if isinstance(e, Expr)),
            *((s.name, s.expression) for s in self.definition.statements),
            *((v.tensor.name, v.expression) for v in self.plan),
        ]

    def _sizes_divided_by(self) -> dict[Axis, str]:
        """The sizes that are divided by as they are, each with the first statement that does so."""
        found: dict[Axis, str] = {}
        for name, e in self._formulas():
            for divisor in size_divisors(e):
                if isinstance(divisor, Axis):
                    found.setdefault(divisor, name)
        return found

    def _label_ranges(self) -> Iterable[tuple[str, str]]:
        """(label, axis) for every axis that a label indexes."""
        from derive.language.nodes import OneHot

        pairs: Mapping[tuple[str, str], None] = {
            (hot.operand.name, hot.axis.name): None
            for s in self.definition.statements
            for hot in s.expression.atoms(OneHot)
            if isinstance(hot.operand, Tensor)
        }
        return sorted(pairs)
