"""The shapes of inputs that may have any number of dimensions.

In a forward an `Axes` is one axis. A formula in torch counts dimensions: it sums over (0,) for
rows, (0, 1) for sequences, (0, 2, 3) for images. The text is therefore read for each number of
dimensions, with that many axes in place of the `Axes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from sympy import Expr, Integer, Mul

from derive.claims.reading.values import shape_text
from derive.gradient.chain.chain import adjoint_of, derive_chain
from derive.language.errors import NotationError
from derive.language.nodes import Reduction
from derive.language.notation.composition import translated
from derive.language.notation.definition import Definition, Ignoring
from derive.language.notation.splicing import spliced
from derive.language.symbols import Axes, Axis, Tensor

COUNTS = (1, 2, 3, 0)  # numbers of dimensions, the likeliest first
MOST = 16  # combinations, if there are several `Axes`
LEADING = {2: ("B", "T"), 3: ("B", "T", "U")}
LATER = {2: ("H", "W"), 3: ("D", "H", "W")}


@dataclass(frozen=True)
class Shapes:
    """A forward with certain axes (``bound``) in place of each `Axes` ``declared``. ``sizes`` are
    names of sizes that no axis has.
    """

    definition: Definition
    declared: Definition
    bound: Mapping[Axis, tuple[Axis, ...]]

    @property
    def words(self) -> str:
        """``x is (B, T, C)``, for one input with each `Axes`; '' if there is none."""
        told, open_axes = [], set(self.bound)
        for mine, theirs in zip(self.definition.inputs, self.declared.inputs, strict=True):
            if open_axes & set(theirs.home):
                told.append(f"{mine.name} is {shape_text(mine.home)}")
                open_axes -= set(theirs.home)
        return ", ".join(told)

    @cached_property
    def is_degenerate(self) -> bool:
        """Whether an `Axes` without dimensions makes the reading meaningless: it is a leading
        dimension, so that all others are renumbered without it, or it is summed over alone. A
        formula right only there has forgotten it.
        """
        absent = [axis for axis, axes in self.bound.items() if not axes]
        return any(_leads(self.declared, axis) for axis in absent) or bool(
            absent and {(axis,) for axis in absent} & _reduced(self.declared)
        )

    @property
    def sizes(self) -> dict[str, Expr]:
        return {axis.name: Integer(1) for axis, axes in self.bound.items() if not axes}

    def same(self, claimed: Expr, other: Shapes, also: Expr) -> bool:
        """Whether the claim is the same in other shapes; False if that is undecided because the
        text created axes.
        """
        bound = _for_all(self.definition, other.bound)
        sizes = {_flat(axis): Mul(*axes) for axis, axes in other.bound.items()}
        try:
            mine = translated(claimed, _tensors(other.definition), bound)
        except (KeyError, NotationError):
            return False
        return mine == also.xreplace(sizes)


def shapes_of(definition: Definition) -> Iterator[Shapes]:
    """The forward as declared, then with other numbers of dimensions."""
    open_axes = [axis for axis in definition.axes if isinstance(axis, Axes)]
    choices = list(product(COUNTS, repeat=len(open_axes)))[:MOST]
    for counts in choices:
        bound = {
            axis: _axes(definition, axis, count)
            for axis, count in zip(open_axes, counts, strict=True)
        }
        if all(count == 1 for count in counts):
            yield Shapes(definition, definition, bound)
            continue
        try:
            yield Shapes(_spread(definition, bound), definition, bound)
        except NotationError:  # the forward needs exactly one axis there
            continue


def _axes(definition: Definition, axis: Axis, count: int) -> tuple[Axis, ...]:
    """Axes that replace ``axis``, with unused names."""
    if count < 2:
        return (axis,) * count
    taken = {other.name for other in definition.axes} | set(definition.position)
    names = (LEADING if _leads(definition, axis) else LATER)[count]
    if taken & {*names, *map(str.lower, names)}:
        names = [f"{axis}_{i + 1}" for i in range(count)]
    return tuple(map(Axis, names))


def _flat(axis: Axis) -> Axis:
    """Several dimensions as one, as a view flattens them."""
    return Axis(axis.name)


def _leads(definition: Definition, axis: Axis) -> bool:
    """Whether ``axis`` is the first dimension of an input."""
    return any(t.home[:1] == (axis,) for t in definition.inputs)


def _reduced(definition: Definition) -> set[tuple[Axis, ...]]:
    """The sets of axes reduced together, in the forward or in a gradient."""
    expressions = [s.expression for s in definition.statements]
    expressions += [adjoint.expression for adjoint in derive_chain(definition).adjoints]
    return {node.axes for e in expressions for node in e.atoms(Reduction)}


def _for_all(definition: Definition, bound) -> dict[Axis, tuple[Axis, ...]]:
    return {axis: (axis,) for axis in definition.axes} | dict(bound)


def _tensors(definition: Definition) -> dict[str, Tensor]:
    """Every tensor by name, adjoints included."""
    known = [*definition.inputs, *(t for t, _ in definition.scalars)]
    known += [s.tensor for s in definition.statements]
    return {t.name: t for t in (*map(adjoint_of, known), *known)}


def _spread(definition: Definition, bound: Mapping[Axis, tuple[Axis, ...]]) -> Definition:
    """The forward with other axes. Raises `NotationError` if that is impossible."""
    several = set(bound)
    if several & {axis for pair in definition.twins for axis in pair}:
        raise NotationError("an axis was renamed", "only one dimension has the other name")
    axes = _for_all(definition, bound)

    def tensor(t: Tensor) -> Tensor:
        return Tensor(t.name, spliced(t.home, axes), role=t.role, **t._assumptions_orig)

    flattened = {_flat(axis): parts for axis, parts in bound.items() if len(parts) > 1}
    tensors = {name: tensor(t) for name, t in _tensors(definition).items()}

    def written(e):
        return translated(e, tensors, axes) if isinstance(e, Expr) else e

    return replace(
        definition,
        inputs=tuple(map(tensor, definition.inputs)),
        scalars=tuple((tensor(t), written(default)) for t, default in definition.scalars),
        statements=tuple(
            replace(s, tensor=tensor(s.tensor), expression=written(s.expression))
            for s in definition.statements
        ),
        axes=(*spliced(definition.axes, axes), *flattened),
        flattened=(
            *((flat, spliced(parts, axes)) for flat, parts in definition.flattened),
            *flattened.items(),
        ),
        optional=tuple((tensor(t), default) for t, default in definition.optional),
        ignoring=tuple(
            Ignoring(tensor(i.label), tensor(i.kept), i.default) for i in definition.ignoring
        ),
    )
