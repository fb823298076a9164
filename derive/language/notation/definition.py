"""The frozen record of a forward: named statements over named axes, complete and checked.

Everything after the class body works on it; ``forward.py`` makes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from sympy import Basic, Expr, Integer

from derive.language.at_numbers import larger_sizes, needs_of_sizes, sizes_allow
from derive.language.domain import Demand
from derive.language.errors import Place
from derive.language.float_range import exact_number
from derive.language.names import snake_case
from derive.language.notation.made_axes import derived_in, known_sizes
from derive.language.notation.slope import TotalGradient
from derive.language.symbols import Axis, Tensor, tensors_in

IGNORE_INDEX = "ignore_index"  # as torch calls the argument
REDUCTION, NONE, SUM = "reduction", "none", "sum"  # as torch calls it, and what is always there


@dataclass(frozen=True)
class Statement:
    """One line of the mathematics: ``tensor = expression``, and the block it belongs to ('' for
    none).
    """

    tensor: Tensor
    expression: Expr
    place: Place
    block: str = ""

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def renames(self) -> Tensor | None:
        """The tensor of which this is another name along the same axes, or None."""
        e = self.expression
        return e if isinstance(e, Tensor) and e.axes == e.home else None

    def __str__(self) -> str:
        return f"{self.name} = {self.expression}"


@dataclass(frozen=True)
class Ignoring:
    """A label that counts only where it is not a certain number, which is ``default`` if nobody
    says otherwise; ``kept`` is the tensor that says where that is.
    """

    label: Tensor
    kept: Tensor
    default: int


@dataclass(frozen=True)
class Carried:
    """A state that a recurrence carries along ``axis``. Cut open there, the forward has the state
    ``before`` each place for an input of its own, and the state ``after`` each, and the
    ``initial`` one unless that is a number, for outputs.
    """

    before: Tensor
    after: Tensor
    initial: Expr
    axis: Axis


@dataclass(frozen=True)
class Definition:
    """The mathematics of one forward, complete and checked.

    ``inputs`` are all tensors that come from outside, in the order of declaration, ``axes``
    all axes in the order in which they become dimensions, ``twins`` the axes that were renamed into
    being, with the axis whose size they share, ``flattened`` those that several axes became, or
    that became several, and ``size_arguments`` the sizes that are arguments, by name.
    The default of a scalar is a number, or an expression in sizes; ``optional`` are the inputs that
    may be left out, with the number that they then are everywhere. ``ignoring`` are the labels that
    may be ignored; what says where they are is an input that nobody passes. ``broadcast`` are the
    names of the inputs that are broadcast to their axes, ``demands`` what the scalars have to be.
    Where the caller chooses how the output is reduced, ``reductions`` has its statement for each of
    the words, the default first, and ``reduction`` is the word that this is the mathematics of.
    ``returned`` are the names of the outputs where there are several; no statement reads one of
    them (``outputs.py``), so that each has one gradient, which arrives. The statements named in
    ``ordered`` say the order of their dimensions; ``inner`` are gradients, ``carried`` states at
    which it is cut open (``recurrences.py``): inputs that nobody passes, outputs that nobody sees.
    ``chunked`` is the axis in chunks of which the module computes.
    """

    name: str
    doc: str
    place: Place
    inputs: tuple[Tensor, ...]
    scalars: tuple[tuple[Tensor, float | Expr], ...]
    statements: tuple[Statement, ...]
    axes: tuple[Axis, ...]
    twins: tuple[tuple[Axis, Axis], ...] = ()
    flattened: tuple[tuple[Axis, tuple[Axis, ...]], ...] = ()
    optional: tuple[tuple[Tensor, float], ...] = ()
    ignoring: tuple[Ignoring, ...] = ()
    size_arguments: tuple[tuple[str, Axis], ...] = ()
    broadcast: tuple[str, ...] = ()
    demands: tuple[Demand, ...] = ()
    kept: frozenset[str] | None = None
    reductions: tuple[tuple[str, Statement], ...] = ()
    reduction: str = ""
    returned: tuple[str, ...] = ()
    ordered: frozenset[str] = frozenset()
    inner: tuple[InnerGradient, ...] = ()
    carried: tuple[Carried, ...] = ()
    chunked: str = ""

    @property
    def snake(self) -> str:
        """The name in snake case, for the generated file and functions."""
        return snake_case(self.name)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Returned tensors, in order: by default the last statement."""
        last = self.statements[-1].name
        return tuple(self.by_name[name].tensor for name in self.returned or (last,))

    @property
    def output(self) -> Tensor:
        """The output, where there is one by construction."""
        (only,) = self.outputs
        return only

    @cached_property
    def at_hand(self) -> frozenset[str]:
        """Names of the values that a backward has without saving them: the inputs and the outputs,
        or those that ``kept`` says.
        """
        if self.kept is not None:
            return self.kept
        return frozenset({*(t.name for t in self.inputs), *(t.name for t in self.outputs)})

    @property
    def results(self) -> tuple[Tensor, ...]:
        """Outputs that a caller sees."""
        cut = {t for state in self.carried for t in (state.after, state.initial)}
        return tuple(t for t in self.outputs if t not in cut)

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """Inputs that are passed."""
        cut = {state.before for state in self.carried}
        return tuple(t for t in self.inputs if t.role != "kept" and t not in cut)

    @property
    def labels(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.inputs if t.role == "label")

    @property
    def differentiable(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.inputs if t.role == "input")

    @property
    def wanted(self) -> tuple[Tensor, ...]:
        """Inputs whose gradients a caller gets."""
        return tuple(t for t in self.arguments if t.role == "input")

    @cached_property
    def by_name(self) -> Mapping[str, Statement]:
        return {s.name: s for s in self.statements}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Index of a tensor in the order of definition: inputs and scalars before statements."""
        names = [t.name for t in self.inputs] + [t.name for t, _ in self.scalars]
        return {name: i for i, name in enumerate(names + [s.name for s in self.statements])}

    def depending_on(self, name: str) -> set[str]:
        """The tensor called ``name``, and every statement that is computed from it."""
        found = {name}
        for statement in self.statements:
            if found & {t.name for t in tensors_in(statement.expression)}:
                found.add(statement.name)
        return found

    def needed_for(self, name: str) -> set[str]:
        """The tensor called ``name``, and every tensor that it is computed from."""
        found, before = {name}, set[str]()
        while found != before:
            before = {*found}
            for statement in reversed(self.statements):
                if statement.name in found:
                    found |= {t.name for t in tensors_in(statement.expression)}
            for state in (c for c in self.carried if c.before.name in found):
                found |= {state.after.name, *(t.name for t in tensors_in(state.initial))}
        return found

    def size(self, axis: Axis) -> Axis:
        """The symbol of the size of ``axis``: a renamed axis has the size of the one it was made
        from.
        """
        return dict(self.twins).get(axis, axis)

    @cached_property
    def fixed(self) -> Mapping[Axis, int]:
        """Axes of constant length, with that length."""
        return {axis: axis.length for axis in self.axes if axis.length is not None}

    @cached_property
    def derived(self) -> Mapping[Axis, Expr]:
        """Axes with sizes computed from those of others, with the formulas, in an order of
        computation.
        """
        return derived_in(self.axes)

    @cached_property
    def independent_axes(self) -> tuple[Axis, ...]:
        """Axes whose sizes can be chosen: those of the others follow."""
        following = {*dict(self.twins), *dict(self.flattened), *self.fixed, *self.derived}
        return tuple(axis for axis in self.axes if axis not in following)

    def sizes_from(self, sizes: Mapping[Axis, int]) -> dict[Axis, int]:
        """The size of every axis, from those of enough others: of the independent ones, or of the
        inputs and the size arguments.
        """
        sizes, flattened = {**self.fixed, **sizes}, dict(self.flattened)
        self._derive(sizes)
        for axis, others in known_sizes(sizes, flattened).items():
            if axis in flattened and others == flattened[axis]:
                sizes[axis] = prod(sizes[part] for part in others)
            else:
                sizes[axis] = sizes[others[0]] // prod(sizes[part] for part in others[1:])
        self._derive(sizes)
        return sizes | {axis: sizes[self.size(axis)] for axis in self.axes}

    def _derive(self, sizes: dict[Axis, int]) -> None:
        """Add the sizes that follow by a formula. An invalid one is 0: `fit` says so."""
        for axis, formula in self.derived.items():
            if axis not in sizes and formula.atoms(Axis) <= sizes.keys():
                length = formula.xreplace({a: Integer(sizes[a]) for a in formula.atoms(Axis)})
                sizes[axis] = int(length) if length.is_Integer and length > 0 else 0

    @cached_property
    def needs(self) -> tuple[Basic, ...]:
        """Conditions on the sizes for every statement to have a value."""
        return tuple(n for s in self.statements for n in needs_of_sizes(s.expression))

    def fit(self, sizes: Mapping[Axis, int]) -> bool:
        """Whether all derived sizes are whole numbers above 0, and all `needs` hold."""
        whole = self.sizes_from(sizes) if self.derived or self.needs else {}
        return all(whole[axis] > 0 for axis in self.derived) and sizes_allow(self.needs, whole)

    def fitting(
        self, sizes: Mapping[Axis, int], least: int = 1, kept: Collection[Axis] = ()
    ) -> dict[Axis, int]:
        """Sizes that `fit`, at which all that follow by a formula are ``least``, or at least 1:
        those that are given, or else the nearest larger ones, but for those that are ``kept``.
        """
        named = (a for e in (*self.derived.values(), *self.needs) for a in e.atoms(Axis))
        read, found = {self.size(axis) for axis in named} & sizes.keys() - {*kept}, None
        for trial in larger_sizes(sizes, [axis for axis in self.axes if axis in read]):
            if self.fit(trial):
                found = found or trial
                whole = self.sizes_from(trial)
                if all(whole[axis] >= least for axis in self.derived):
                    return trial
        return found or dict(sizes)

    def default_at(self, default: float | Expr, sizes: Mapping[Axis, int]) -> Expr:
        """The default of a scalar as a number, for a batch of these sizes."""
        if not isinstance(default, Expr):
            return exact_number(default)
        whole = self.sizes_from(sizes)
        return default.xreplace({a: Integer(whole[a]) for a in default.atoms(Axis)})

    def permits(self, numbers: Mapping[str, Expr], sizes: Mapping[Axis, int]) -> bool:
        """Whether scalars, by their names, meet the demands in a batch of these sizes."""
        known = {a: Integer(n) for a, n in self.sizes_from(sizes).items()}
        known |= {t: numbers[t.name] for t, _ in self.scalars}
        return all(demand.holds(known) is not False for demand in self.demands)

    def defaults_at(self, sizes: Mapping[Axis, int]) -> dict[str, Expr]:
        """The defaults of all scalars, by name."""
        return {t.name: self.default_at(default, sizes) for t, default in self.scalars}

    def in_order(self, axes) -> tuple[Axis, ...]:
        """``axes`` in the order in which they become dimensions."""
        return tuple(sorted(axes, key=self.axes.index))


@dataclass(frozen=True)
class InnerGradient:
    """The differentiated lines, up to their total, with a slope for each from the last."""

    definition: Definition
    slopes: tuple[TotalGradient, ...]
