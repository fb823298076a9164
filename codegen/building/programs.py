"""From a proved closed form to a Program: the functions, each from an outline.

Names sizes, and finds where a function reads them off; rejects sizes at which the mathematics has
no value, and labels and numbers out of range; decides arguments, and the lines of the gradients,
which determine what the backward needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sympy import Abs, Expr, Mul, Symbol
from sympy.core.function import Function as SymbolicFunction

from codegen.building.arguments import (
    divisors,
    fillings,
    needed,
    number_steps,
    refused,
    shape_steps,
    sizes_read,
    with_sizes,
)
from codegen.building.looping import Looping
from codegen.building.outlines import Line, Outline, listed
from codegen.building.recurrences import Loop, links_backward, links_forward, with_loops
from codegen.lowering import Lowering, sizes_used
from codegen.lowering.differentiated import with_lines_to_differentiate
from codegen.lowering.idioms import with_logarithms_joined
from codegen.lowering.matrices import with_triangles
from codegen.lowering.powers import with_powers_at_zero
from codegen.lowering.repeated import better
from codegen.lowering.vanishing import with_zeros_kept
from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.parts import values_in
from codegen.program.steps import InRange, NotZero, Refuse, SplitLabel, Step, Within
from codegen.program.values import Derived, LengthOf, Load, Number, Quotient, SizeOf, Times, Value
from derive.gradient.chain.ties import ties_backward, ties_forward
from derive.gradient.closing.risks import first_of_equals, unsafe
from derive.language.divisors import size_divisors
from derive.language.formulas.text import formula
from derive.language.guarded import unguarded_divisors
from derive.language.nodes import Cholesky, Max, OneHot, Peak, Reshaping
from derive.language.notation.definition import IGNORE_INDEX, Definition
from derive.language.notation.layout import Layout, layouts, layouts_of, plain
from derive.language.notation.made_axes import known_sizes
from derive.language.symbols import Axes, Axis, Tensor, tensors_in
from derive.proof.proving.forward_plan import forward_plan
from derive.proof.proving.proved import Proved

ZERO = Number(Fraction(0))


def computed(t: Tensor) -> str:
    """The role of a saved tensor that is not an argument."""
    return "statement" if t.role == "input" else t.role


def program_of(proved: Proved, source: Path, source_hash: str) -> Program:
    """Everything that a target prints, decided; the mathematics is in the file ``source``."""
    return Builder(proved).program(source, source_hash)


class Builder:
    """Builds the functions of the Program from a proof, with the layouts of its values and the
    names of its sizes.
    """

    def __init__(self, proved: Proved):
        self.proved, self.form = proved, proved.closed_form
        self.definition: Definition = self.form.definition
        self.layouts: dict[str, Layout] = layouts_of(self.definition)
        self.plan = forward_plan(self.form)
        pairs = [(v.tensor, v.expression) for v in self.form.relations.values]
        pairs += [(v.tensor, v.expression) for v in self.plan if v.tensor.name not in self.layouts]
        self.layouts = layouts(pairs, self.definition.axes, self.layouts)
        self.sizes = self._size_names()

    @cached_property
    def _names(self) -> dict[str, str]:
        """The name in the code of every axis's size."""
        return {axis.name: self.sizes[axis] for axis in self.definition.axes}

    def _fixed_sizes(self) -> tuple[str, ...]:
        return tuple(self.sizes[axis] for axis in self.definition.fixed)

    @cached_property
    def _original(self) -> dict[str, str]:
        """The original of every renamed axis; others map to themselves."""
        return {axis.name: self.definition.size(axis).name for axis in self.definition.axes}

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
        """(name, value) for every size in the steps or results."""
        by_axis = {axis.name: self.sizes[axis] for axis in self.definition.axes}
        same = self._original
        wanted = {same[axis] for axis in sizes_used(steps)}
        wanted |= {axis for axis, name in by_axis.items() if name in results and axis == same[axis]}
        lengths = self._lengths(parameters)
        for axis, e in reversed(self.definition.derived.items()):
            derived = isinstance(lengths.get(axis.name), Derived)
            if derived and axis.name in wanted:  # its operands have names too
                wanted |= {same[other.name] for other in e.atoms(Axis)}
        given = {p.name for p in parameters if p.role in ("size", "shape")}
        found = {}
        for axis in [a.name for a in self.definition.axes if a.name in wanted]:
            if by_axis[axis] in given:
                continue
            name = by_axis[axis]  # read as it is where nothing shows it
            found[name] = lengths.get(axis, Load(name))
        return tuple(self._in_order(found).items())

    def _in_order(self, lengths: dict[str, Value]) -> dict[str, Value]:
        """Lengths sorted so that each follows those it is computed from."""
        read = {
            name: {self._names[v.name] for v in (value, *values_in(value)) if isinstance(v, SizeOf)}
            for name, value in lengths.items()
        }
        ordered: dict[str, Value] = {}
        while len(ordered) < len(lengths):
            left = [name for name in lengths if name not in ordered]
            ready = next((n for n in left if not (read[n] - {n}) & {*left}), left[0])
            ordered[ready] = lengths[ready]
        return ordered

    def _lengths(self, parameters: Sequence[Parameter]) -> dict[str, Value]:
        """The length of every axis that is known: that of a dimension of the first argument that
        has it, a number, an argument itself, or one derived from other axes. Optional arguments
        come last.
        """
        definition = self.definition
        found: dict[Axis, Value] = {}
        for passed in (True, False):
            self._dimensions([p for p in parameters if (p.default is None) == passed], found)
            for axis, length in definition.fixed.items():
                found[axis] = Number(Fraction(length))
            given = {p.name for p in parameters if p.role == "size"}
            for axis in definition.axes:
                if self.sizes[axis] in given:
                    found.setdefault(definition.size(axis), Load(self.sizes[axis]))
            self._derive(found)
            self._follow(found)
            self._derive(found)
        return {axis.name: length for axis, length in found.items()}

    def _dimensions(self, parameters: Iterable[Parameter], found: dict[Axis, Value]) -> None:
        """Add the lengths of the dimensions to ``found``."""
        for p in parameters:
            for i, dim in enumerate(p.layout):
                if not dim.one:
                    axis = self.definition.size(dim.axis)
                    shown = p.role == "shape"
                    length = SizeOf(axis.name) if shown else LengthOf(p.name, i)
                    found.setdefault(axis, length)

    def _follow(self, found: dict[Axis, Value]) -> None:
        """Add the lengths of flattened axes and of their parts to ``found``."""
        flattened = dict(self.definition.flattened)
        for axis, others in known_sizes(found, flattened).items():
            if others == flattened.get(axis):
                found[axis] = _product(found[part] for part in others)
            else:
                flat, *parts = others
                by = " * ".join(self.sizes[part] for part in parts)
                divisor = _product(found[part] for part in parts)
                found[axis] = Quotient(found[flat], divisor, self.sizes[flat], by)

    def _derive(self, found: dict[Axis, Value]) -> None:
        """Add the lengths that follow from others by a formula to ``found``."""
        lowering = Lowering({}, self.definition.axes)
        for axis, e in self.definition.derived.items():
            if axis not in found and e.atoms(Axis) <= found.keys():
                parts = (lowering.value(part, ()) for part in e.together().as_numer_denom())
                found[axis] = Derived(*parts, formula(self._in_code(e.together())))

    def _derived(self) -> tuple[tuple[str, str], ...]:
        """The sizes that follow from others, as lines of Python."""
        found = []
        for axis, e in self.definition.derived.items():
            above, below = self._in_code(e.together()).as_numer_denom()
            text = formula(above)
            found.append((self.sizes[axis], text if below == 1 else f"({text})//{formula(below)}"))
        return tuple(found)

    def _in_code(self, e: Expr) -> Expr:
        """A formula of sizes, with their names in the code."""
        return e.xreplace({a: Symbol(self.sizes[a], positive=True) for a in e.atoms(Axis)})

    def _requirements(self) -> Iterable[Refuse]:
        """Sizes at which the mathematics divides by zero, or takes the maximum of nothing.

        A size itself may be divided by: the mean of nothing is NaN. A maximum that is written and
        only shifts what is computed is any number, that of nothing too.
        """
        found: dict[object, Refuse] = {}
        for name, e in self._formulas():
            for requirements in (self._divisors, self._reshapings):
                found |= {w: r for w, r in requirements(name, e) if w not in found}
        for line in self.plan:
            for axis, refuse in self._maxima(line.tensor.name, line.expression):
                found.setdefault(axis, refuse)
        for state in self.definition.carried:
            axis = self.definition.size(state.axis)
            use, named = "goes along it, from place to place", self._named([axis])
            refuse = Refuse(state.after.name, SizeOf(axis.name), ZERO, False, use, named)
            found.setdefault(axis, refuse)
        return found.values()

    def _divisors(self, name: str, e: Expr) -> Iterator[tuple[Expr, Refuse]]:
        for divisor in unguarded_divisors(e):
            if not isinstance(divisor, Axis):
                size = Lowering({}, self.definition.axes).value(divisor, ())
                axes = self._named(sorted(divisor.atoms(Axis), key=str))
                yield divisor, Refuse(name, size, ZERO, False, "divides by it", axes)

    def _maxima(self, name: str, e: Expr) -> Iterator[tuple[Axis, Refuse]]:
        for largest in sorted(e.atoms(Max) - e.atoms(Peak), key=str):
            axis = self.definition.size(largest.axes[0])
            size, use = SizeOf(axis.name), "takes a maximum along it"
            yield axis, Refuse(name, size, ZERO, False, use, self._named([axis]))

    def _reshapings(self, name: str, e: Expr) -> Iterator[tuple[tuple, Refuse]]:
        for node in sorted(e.atoms(Reshaping), key=str):
            parts = tuple(map(self.definition.size, node.parts))
            flat = self.definition.size(node.flat)
            whole = Lowering({}, self.definition.axes).value(Mul(*parts), ())
            names = " x ".join(a.name for a in parts)
            use = f"splits {flat} into {names}"
            if node.parts == node.axes:
                use = f"flattens {names} into {flat}"
            axes = self._named([flat, *parts])
            yield (flat, parts), Refuse(name, SizeOf(flat.name), whole, True, use, axes)

    def _named(self, axes: Iterable[Axis]) -> tuple[tuple[str, str], ...]:
        """The axes, each with the name of its size in the code."""
        return tuple((axis.name, self.sizes[axis]) for axis in axes)

    def _formulas(self) -> list[tuple[str, Expr]]:
        """Named expressions that the functions compute before anything is differentiated."""
        return [
            *((t.name, e) for t, e in self.definition.scalars if isinstance(e, Expr)),
            *((s.name, s.expression) for s in self.definition.statements),
            *((v.tensor.name, v.expression) for v in self.plan),
        ]

    def _sizes_divided_by(self) -> dict[Axis, str]:
        """Sizes that are divided by, each with the first statement that does so."""
        found: dict[Axis, str] = {}
        for name, e in self._formulas():
            for divisor in size_divisors(e):
                if isinstance(divisor, Axis):
                    found.setdefault(divisor, name)
        return found

    def _label_ranges(self) -> Iterable[tuple[str, str]]:
        """(label, axis) for every axis that a label indexes."""
        pairs: Mapping[tuple[str, str], None] = {
            (hot.operand.name, hot.axis.name): None
            for s in self.definition.statements
            for hot in s.expression.atoms(OneHot)
            if isinstance(hot.operand, Tensor)
        }
        return sorted(pairs)

    def _counting(self) -> set[str]:
        """Labels that are never ignored; others are checked where they are split."""
        ignorable = {ignoring.label.name for ignoring in self.definition.ignoring}
        return {t.name for t in self.definition.labels} - ignorable

    def _ranges(
        self, parameters: Sequence[Parameter], labels: Collection[str]
    ) -> tuple[InRange, ...]:
        """Range checks of the ``labels`` among the parameters, with the lengths of the axes that
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
    def _never_zero(self) -> set[Value]:
        """Scalars that are rejected if they are 0, whatever reads them."""
        demands = self.definition.demands
        signed = (
            d.expression for d in demands if {"positive", "negative"} & d.domain.signs().keys()
        )
        return {Load(e.name) for e in signed if isinstance(e, Tensor)}

    def _demanded(self, parameters: Sequence[Parameter]) -> Iterable[Within]:
        """Demands that a function can check: it has their numbers and sizes."""
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
        """Every label that may be ignored, split into an index and a mask."""
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
        """Parameters of the backward besides the upstream gradients: saved tensors, and sizes that
        none of them has. One of several upstream gradients may be None, and shows no size.
        """
        passed = {*self.definition.arguments}
        saved = [
            Parameter(t.name, self.layouts[t.name], t.role if t in passed else computed(t))
            for t in self.form.saved
        ]
        saved.sort(key=lambda p: p.role == "scalar")  # numbers come last, as in every signature
        upstreams, used = self.upstreams(), self._sizes_of_gradients()
        shown = [*upstreams, *saved]
        if len(upstreams) > 1:
            shown = saved
            used |= {self._original[dim.axis.name] for p in upstreams for dim in p.layout}
        shapes = self._shapes_needed(used, shown)
        missing = used - set(self._lengths([*shown, *shapes]))
        sizes: list[Parameter] = []
        for axis in sorted({of for a in missing for of in self._shown_by_inputs(a)}):
            if axis not in self._lengths([*shown, *shapes, *sizes]):
                sizes.append(Parameter(self._names[axis], (), "size"))
        tensors = [p for p in saved if p.role != "scalar"]
        return [*tensors, *shapes, *saved[len(tensors) :], *sizes]

    def _shown_by_inputs(self, axis: str) -> set[str]:
        """Axes that the size of an ``axis`` follows from and whose sizes the inputs show; itself if
        they show it.
        """
        inputs = self._inputs()
        lengths, layouts = self._lengths(inputs), {p.name: p.layout for p in inputs}
        given = {p.name for p in inputs if p.role == "size"}
        found: set[str] = set()
        for value in (lengths[axis], *values_in(lengths[axis])):
            match value:
                case LengthOf(tensor=tensor, along=along):
                    found.add(self._original[layouts[tensor][along].axis.name])
                case Load(name=name) if name in given:
                    found |= {a for a in self._original.values() if self._names[a] == name}
                case SizeOf(name=other):
                    found |= {axis} if other == axis else self._shown_by_inputs(other)
        return found

    def _sizes_of_gradients(self) -> set[str]:
        """Axes whose sizes the lines of the gradients read."""
        upstreams = self.upstreams()
        lowering = Lowering(
            {
                **self.layouts,
                **{line.tensor.name: line.layout for line in self._gradient_lines()},
                **self._arriving,
            },
            self.definition.axes,
            self.definition.by_name,
            self._at_hand(),
        )
        steps: list[Step] = []
        for line in self._gradient_lines():
            like = upstreams[0].name
            steps += lowering.accumulated(line.tensor.name, line.terms, line.layout, like)
        return {self._original[axis] for axis in sizes_used(steps)}

    def upstreams(self) -> list[Parameter]:
        """The upstream gradients, one for each output."""
        names = [f"d{t.name}" for t in self.definition.results]
        return [Parameter(name, self._arriving[name], "adjoint") for name in names]

    @cached_property
    def _arriving(self) -> dict[str, Layout]:
        """The layouts of the upstream gradients."""
        return {f"d{t.name}": self.layouts[t.name] for t in self.definition.outputs}

    def origins_of_saved(self) -> dict[str, frozenset[str]]:
        """For every saved value, the names of the inputs that it depends on."""
        found: dict[str, frozenset[str]] = {}
        for v in self.plan:
            names = [t.name for t in tensors_in(v.expression) if t.role not in ("label", "kept")]
            found[v.tensor.name] = frozenset().union(*(found.get(n, {n}) for n in names))
        return {p.name: found[p.name] for p in self.needs() if p.name in found}

    def _shapes_needed(self, used, parameters: Sequence[Parameter]) -> list[Parameter]:
        """An argument for every `Axes` in the backward whose dimensions none of its tensors has."""
        shown = {dim.axis for p in parameters for dim in p.layout if not dim.one}
        spoken_of = {axis for t in self.definition.wanted for axis in t.axes}
        return [
            Parameter(self.sizes[axis], plain([axis]), "shape")
            for axis in self.definition.axes
            if isinstance(axis, Axes)
            and axis not in shown
            and (axis in spoken_of or axis.name in used)
        ]

    def _at_hand(self) -> frozenset[str]:
        """Names of all values available in the backward."""
        saved = {t.name for t in self.form.saved} | {tensor.name for tensor, _ in self.statements()}
        return frozenset(saved | self.form.chain.arriving)

    def _gradient_lines(self) -> list[Line]:
        fixed = {
            s.tensor.name: self.layouts[s.of.name] for s in self.form.statements if s.of is not None
        }
        fixed |= self.layouts
        fixed |= self._arriving
        gradients = {f"d{t.name}" for t in self.definition.differentiable}
        pairs = with_logarithms_joined(self.statements(), gradients)
        known = layouts(pairs, self.definition.axes, fixed)
        finite = dict(with_powers_at_zero(pairs, self.forward_lines(), self.statements()))
        return [
            Line(t, self._terms(t, e) if finite[t] == e else (finite[t],), known[t.name])
            for t, e in pairs
        ]

    def forward_lines(self) -> list[tuple[Tensor, Expr]]:
        """The lines of the forward: its statements, and the values of the plan."""
        written = [(s.tensor, s.expression) for s in self.definition.statements]
        return [*written, *((v.tensor, v.expression) for v in self.plan)]

    def statements(self) -> list[tuple[Tensor, Expr]]:
        """The lines of the closed form, as it is read without the forward."""
        return self.form.shown

    def _terms(self, tensor: Tensor, e: Expr) -> tuple[Expr, ...]:
        """The terms of a closed form ``e``; with derivatives of functions by name if it is the step
        of the chain and nothing else.
        """
        adjoint = self.form.chain.by_name.get(tensor.name)
        if adjoint is None or adjoint.expression != e:
            return (e,)
        vias = (self.definition.by_name[c.via].expression for c in adjoint.contributions)
        if not all(isinstance(via, SymbolicFunction) for via in vias):
            return (e,)
        return tuple(c.through_outer for c in adjoint.contributions)

    @cached_property
    def _peaks(self) -> dict[str, tuple[Expr, ...]]:
        """Operands of values that are the largest of a row, with the expressions behind them."""
        values = {v.tensor.name: v.expression for v in self.form.relations.values}
        peaks = {name: e.operand for name, e in values.items() if isinstance(e, Peak)}
        return {
            name: (e, values[e.name]) if isinstance(e, Tensor) and e.name in values else (e,)
            for name, e in peaks.items()
        }

    @cached_property
    def _factors(self) -> dict[str, bool]:
        """Triangular values, and whether their rows lie before their columns."""
        values = self.form.relations.values
        nodes = {v.tensor: v.expression for v in values if isinstance(v.expression, Cholesky)}
        return {t.name: t.home.index(e.axes[0]) < t.home.index(e.axes[1]) for t, e in nodes.items()}

    @cached_property
    def _magnitudes(self) -> dict[str, Expr]:
        """Operands of values that are absolute values."""
        values = {v.tensor.name: v.expression for v in self.form.relations.values}
        return {name: e.args[0] for name, e in values.items() if isinstance(e, Abs)}

    def _asked_of_inputs(self) -> tuple[Step, ...]:
        """Checks made by all functions that take the inputs."""
        inputs = self._inputs()
        return (*needed(inputs), *self._asked(inputs, self.definition.broadcast))

    def asked_of_saved(self, parameters: Sequence[Parameter]) -> tuple[Step, ...]:
        """Checks by the backward of an upstream gradient and of the saved tensors."""
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
        """Checks by the chain of the upstream gradient and the statements, once the inputs are
        valid.
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

    def program(self, source: Path, source_hash: str) -> Program:
        definition, snake = self.definition, self.definition.snake
        lines = [(v.tensor, v.expression) for v in self.plan]
        risks, more = unsafe(lines, self.statements(), self.form.relations)
        program = Program(
            name=snake,
            title=definition.name,
            doc=definition.doc,
            source=source.name,
            source_hash=source_hash,
            formulas=self._formulas_written(),
            proved=self.proved.summary,
            unsafe=(*map(str, risks), *more),
            risks=risks,
            first=first_of_equals(self.statements()),
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
        )
        return with_lines_to_differentiate(program)

    def _formulas_written(self) -> tuple[str, ...]:
        ties = *ties_forward(self.definition), *ties_backward(self.definition)
        return tuple(f"{tensor} = {formula(e)}" for tensor, e in (*ties, *self.statements()))

    # -- the four functions ---------------------------------------------------

    def _forward(self) -> Function:
        outputs = [t.name for t in self.definition.results]
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
                self.definition.wanted[0].name,
                checks=self._asked_of_inputs(),
                links=links_forward(self.definition),
            )
        )

    def _backward(self) -> Function:
        upstreams = self.upstreams()
        parameters, names = [*upstreams, *self.needs()], [p.name for p in upstreams]
        return self.function(
            Outline(
                f"{self.definition.snake}_backward",
                f"The gradients of the inputs, from {listed('', names)} and what the forward"
                " saved.",
                parameters,
                self._gradient_lines(),
                self._gradients(),
                f"{self.definition.name}Gradients",
                names[0],
                self.definition.by_name,
                self._at_hand(),
                self.asked_of_saved(parameters),
                links_backward(self.definition),
            )
        )

    def _gradients(self) -> tuple[str, ...]:
        return tuple(f"d{t.name}" for t in self.definition.wanted)

    def _atoms(self) -> Function:
        statements = self.definition.statements
        lines = [Line(s.tensor, (s.expression,), self.layouts[s.name]) for s in statements]
        return self.function(
            Outline(
                f"{self.definition.snake}_atoms",
                "Every statement of the forward, as written.",
                self._inputs(),
                lines,
                tuple(t.name for t in self._valued()),
                f"{self.definition.name}Atoms",
                self.definition.wanted[0].name,
                self.definition.by_name,
                links=links_forward(self.definition),
            )
        )

    def _valued(self) -> list[Tensor]:
        """The statements, and the states before each place."""
        definition = self.definition
        return [*(s.tensor for s in definition.statements), *(c.before for c in definition.carried)]

    def _chain(self) -> Function:
        chain = self.form.chain
        parameters = self.upstreams()
        like = parameters[0].name
        numbers = [p for p in self._inputs() if p.role in NUMBERS]
        parameters += [p for p in self._inputs() if p not in numbers]
        parameters += [Parameter(t.name, self.layouts[t.name], "statement") for t in self._valued()]
        parameters += numbers
        lines = [
            Line(a.tensor, tuple(c.through_outer for c in a.contributions), self.layouts[a.of.name])
            for a in chain.adjoints
        ]
        found = chain.arriving | chain.by_name.keys()  # indices have no gradient
        results = [name for s in self.definition.statements if (name := f"d{s.name}") in found]
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
                links=links_backward(self.definition),
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
        numbers = {p.name for p in parameters if p.role in NUMBERS}
        steps: list[Step] = [*fillings(parameters)]
        if any(p.role == "index" for p in parameters):
            steps += self._labels_split()
        steps += self._lowered(outline, lowering, numbers)
        if not lowering.rounds_as_autograd:
            own = {*parameters, *self.definition.arguments, *(line.tensor for line in lines)}
            taken = {t.name for t in own} | self.definition.by_name.keys()
            steps = better(steps, numbers, {*taken, *self.sizes.values()})
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

    def _lowered(self, outline: Outline, lowering: Lowering, numbers: set[str]) -> Iterator[Step]:
        """The steps of the lines of a function; recurrences become loops."""
        items = with_loops([*outline.lines], outline.links)
        looping = Looping(self.definition, self.form.chain, outline, lowering, numbers)
        looping.taken |= {*self.sizes.values()}
        for item in items:
            if isinstance(item, Loop):
                yield from looping.steps(item, [other for other in items if other is not item])
            else:
                named = item.tensor.name, item.terms, item.layout
                yield from lowering.accumulated(*named, outline.like)

    def _zeros(self, outline: Outline, steps: list[Step], numbers: set[str]) -> list[NotZero]:
        """Divisors in the steps that may be 0 and that no earlier check rejects."""
        refusals = refused(self._requirements(), self._lengths(outline.parameters))
        never = {r.left for r in refusals if not r.equal} | self._never_zero
        found = divisors(steps, numbers, outline.name)
        return [zero for zero in found if zero.divisor not in never]


def _product(lengths: Iterable[Value]) -> Value:
    lengths = tuple(lengths)
    return lengths[0] if len(lengths) == 1 else Times(tuple((v, False) for v in lengths))
