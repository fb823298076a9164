"""The sizes of a forward: under which names the code knows them, and where a function reads them
off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property

from sympy import Expr, Symbol

from codegen.lowering import Lowering, sizes_used
from codegen.program import Parameter
from codegen.program.parts import values_in
from codegen.program.values import Derived, LengthOf, Load, Number, Quotient, SizeOf, Times, Value
from derive.formulas.text import formula
from derive.language.symbols import Axis
from derive.notation.definition import Definition
from derive.notation.layout import Layout, layouts, layouts_of
from derive.notation.made_axes import known_sizes
from derive.proving.forward_plan import forward_plan
from derive.proving.proved import Proved


class Sizes:
    """What is ``proved``, with the layouts of its values and the names of its sizes; ``numbers``
    are the scalars and sizes that are kept for what comes behind the backward alone.
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
        """The name of the size of every axis, in the code."""
        return {axis.name: self.sizes[axis] for axis in self.definition.axes}

    def _fixed_sizes(self) -> tuple[str, ...]:
        return tuple(self.sizes[axis] for axis in self.definition.fixed)

    @cached_property
    def _original(self) -> dict[str, str]:
        """Every axis with the one that it is a renaming of, or itself."""
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
        """(name, value) for every size that the steps or results speak of."""
        by_axis = {axis.name: self.sizes[axis] for axis in self.definition.axes}
        same = self._original
        wanted = {same[axis] for axis in sizes_used(steps)}
        wanted |= {axis for axis, name in by_axis.items() if name in results and axis == same[axis]}
        lengths = self._lengths(parameters)
        for axis, e in reversed(self.definition.derived.items()):
            derived = isinstance(lengths.get(axis.name), Derived)
            if derived and axis.name in wanted:  # what it is computed from has a name too
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
        """Every length after those that it is computed from."""
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
        has it, a number, an argument itself, or what follows from those of other axes. An argument
        that may be left out is looked at last.
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
        """Add the lengths of the dimensions to what is ``found``."""
        for p in parameters:
            for i, dim in enumerate(p.layout):
                if not dim.one:
                    axis = self.definition.size(dim.axis)
                    shown = p.role == "shape"
                    length = SizeOf(axis.name) if shown else LengthOf(p.name, i)
                    found.setdefault(axis, length)

    def _follow(self, found: dict[Axis, Value]) -> None:
        """Add the lengths of flattened axes and of their parts to what is ``found``."""
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
        """Add the lengths that follow from others by a formula to what is ``found``."""
        lowering = Lowering({}, self.definition.axes)
        for axis, e in self.definition.derived.items():
            if axis not in found and e.atoms(Axis) <= found.keys():
                parts = (lowering.value(part, ()) for part in e.together().as_numer_denom())
                found[axis] = Derived(*parts, formula(self._in_code(e.together())))

    def _derived(self) -> tuple[tuple[str, str], ...]:
        """The sizes that follow from others, as lines of Python have them."""
        found = []
        for axis, e in self.definition.derived.items():
            above, below = self._in_code(e.together()).as_numer_denom()
            text = formula(above)
            found.append((self.sizes[axis], text if below == 1 else f"({text})//{formula(below)}"))
        return tuple(found)

    def _in_code(self, e: Expr) -> Expr:
        """A formula of sizes under their names in the code."""
        return e.xreplace({a: Symbol(self.sizes[a], positive=True) for a in e.atoms(Axis)})


def _product(lengths: Iterable[Value]) -> Value:
    lengths = tuple(lengths)
    return lengths[0] if len(lengths) == 1 else Times(tuple((v, False) for v in lengths))
