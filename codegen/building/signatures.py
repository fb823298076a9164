"""The arguments of the functions, what is asked of them, and the lines of the gradients, which say
what the backward needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from sympy import Abs, Expr
from sympy.core.function import Function as SymbolicFunction

from codegen.building.arguments import (
    needed,
    number_steps,
    refused,
    shape_steps,
    sizes_read,
    with_sizes,
)
from codegen.building.outlines import Line
from codegen.building.refusals import Refusals
from codegen.lowering import Lowering, sizes_used
from codegen.lowering.idioms import with_logarithms_joined
from codegen.lowering.powers import with_powers_at_zero
from codegen.program import Parameter
from codegen.program.parts import values_in
from codegen.program.steps import Step
from codegen.program.values import LengthOf, Load, SizeOf
from derive.language.nodes import Cholesky, Peak
from derive.language.symbols import Axes, Tensor, tensors_in
from derive.notation.definition import IGNORE_INDEX
from derive.notation.layout import Layout, layouts, plain


def computed(t: Tensor) -> str:
    """The role of a saved tensor that is no argument."""
    return "statement" if t.role == "input" else t.role


class Signatures(Refusals):
    """What the functions are given, and what they ask of it."""

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
        """What the backward takes besides the upstream gradients: saved tensors, and sizes that
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
        """The axes whose sizes the inputs show that the size of an ``axis`` follows from, itself
        where they show it.
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
        """The axes whose sizes the lines of the gradients read."""
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
        """The gradients that arrive, one for each output."""
        names = [f"d{t.name}" for t in self.definition.results]
        return [Parameter(name, self._arriving[name], "adjoint") for name in names]

    @cached_property
    def _arriving(self) -> dict[str, Layout]:
        """The layouts of the gradients of all outputs."""
        return {f"d{t.name}": self.layouts[t.name] for t in self.definition.outputs}

    def origins_of_saved(self) -> dict[str, frozenset[str]]:
        """Of every saved value the names of the inputs that it is made of."""
        found: dict[str, frozenset[str]] = {}
        for v in self.plan:
            names = [t.name for t in tensors_in(v.expression) if t.role not in ("label", "kept")]
            found[v.tensor.name] = frozenset().union(*(found.get(n, {n}) for n in names))
        return {p.name: found[p.name] for p in self.needs() if p.name in found}

    def _shapes_needed(self, used, parameters: Sequence[Parameter]) -> list[Parameter]:
        """An argument for every `Axes` that the backward speaks of and whose dimensions none of
        its tensors has.
        """
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
        """What the backward knows by name."""
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
        """The forward as it is written, and as it is computed."""
        written = [(s.tensor, s.expression) for s in self.definition.statements]
        return [*written, *((v.tensor, v.expression) for v in self.plan)]

    def statements(self) -> list[tuple[Tensor, Expr]]:
        """The closed form, as it is read without the forward."""
        return self.form.shown

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
    def _factors(self) -> dict[str, bool]:
        """The values that are triangular, and whether their rows lie before their columns."""
        values = self.form.relations.values
        nodes = {v.tensor: v.expression for v in values if isinstance(v.expression, Cholesky)}
        return {t.name: t.home.index(e.axes[0]) < t.home.index(e.axes[1]) for t, e in nodes.items()}

    @cached_property
    def _magnitudes(self) -> dict[str, Expr]:
        """What a value that is an absolute value is that of."""
        values = {v.tensor.name: v.expression for v in self.form.relations.values}
        return {name: e.args[0] for name, e in values.items() if isinstance(e, Abs)}

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
