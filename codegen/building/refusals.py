"""What is refused: sizes at which the mathematics has no value, labels and numbers outside of what
they may be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from sympy import Expr, Mul

from codegen.building.sizes import Sizes
from codegen.lowering import Lowering
from codegen.program import Parameter
from codegen.program.steps import InRange, Refuse, SplitLabel, Within
from codegen.program.values import Load, Number, SizeOf, Value
from derive.formulas.text import formula
from derive.language.divisors import size_divisors
from derive.language.guarded import unguarded_divisors
from derive.language.nodes import Flatten, Max, OneHot, Peak, Reshaping
from derive.language.symbols import Axis, Tensor
from derive.notation.definition import IGNORE_INDEX

ZERO = Number(Fraction(0))


class Refusals(Sizes):
    """What is refused of sizes, labels and numbers."""

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
            flattens = isinstance(node, Flatten)
            parts = tuple(map(self.definition.size, node.axes if flattens else node.into))
            flat = self.definition.size(node.flat)
            whole = Lowering({}, self.definition.axes).value(Mul(*parts), ())
            names = " x ".join(a.name for a in parts)
            use = f"flattens {names} into {flat}" if flattens else f"splits {flat} into {names}"
            axes = self._named([flat, *parts])
            yield (flat, parts), Refuse(name, SizeOf(flat.name), whole, True, use, axes)

    def _named(self, axes: Iterable[Axis]) -> tuple[tuple[str, str], ...]:
        """The axes, each with the name of its size in the code."""
        return tuple((axis.name, self.sizes[axis]) for axis in axes)

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
        pairs: Mapping[tuple[str, str], None] = {
            (hot.operand.name, hot.axis.name): None
            for s in self.definition.statements
            for hot in s.expression.atoms(OneHot)
            if isinstance(hot.operand, Tensor)
        }
        return sorted(pairs)

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
