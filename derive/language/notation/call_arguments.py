"""The arguments of a call of a forward: bound by position and by name, with the axes that its own
become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sympy import Expr, Integer

from derive.language.declarations import Declaration, Given, Input, Label, is_array
from derive.language.errors import NotationError, shortened
from derive.language.float_range import exact_number
from derive.language.source.typed_numbers import as_typed
from derive.language.symbols import Axes, Axis, Tensor, axes_of, tensors_in


@dataclass(frozen=True)
class Signature:
    """The parameters of a forward: tensors, sizes and scalars, in this order; scalars and optional
    tensors have defaults.
    """

    definition: object
    tensors: tuple[str, ...]
    sizes: tuple[str, ...]
    scalars: Mapping[str, Expr]
    optional: Mapping[str, Expr]

    @classmethod
    def of(cls, definition) -> Signature:
        scalars = {
            t.name: default if isinstance(default, Expr) else exact_number(default)
            for t, default in definition.scalars
        }
        optional = {t.name: exact_number(default) for t, default in definition.optional}
        tensors = tuple(t.name for t in definition.arguments)
        sizes = tuple(name for name, _ in definition.size_arguments)
        return cls(definition, tensors, sizes, scalars, optional)

    @property
    def required(self) -> list[str]:
        """Tensors and sizes that have to be passed."""
        return [name for name in (*self.tensors, *self.sizes) if name not in self.optional]

    @property
    def order(self) -> list[str]:
        return [*self.tensors, *self.sizes, *self.scalars]

    def __str__(self) -> str:
        return f"{self.definition.name}({', '.join(self.order)})"

    def given(self, args: Sequence, kwargs: Mapping) -> dict:
        """The values that were passed, by the names of their arguments."""
        order = self.order
        if len(args) > len(order):
            raise NotationError(
                f"{self} takes {len(order)} arguments, got {len(args)}", "leave some out"
            )
        given = dict(zip(order, args, strict=False))
        for name, value in kwargs.items():
            if name not in order or name in given:
                known = "twice" if name in given else "but has no such argument"
                raise NotationError(
                    f"{self} was given {name} {known}",
                    f"write {self.definition.name}({', '.join(self.required)}); its arguments: "
                    f"{', '.join(order)}",
                )
            given[name] = value
        return given

    def check_complete(self, given: Mapping) -> None:
        """Raise `NotationError` for missing arguments, and sizes that no axis has."""
        missing = [name for name in self.required if name not in given]
        if missing:
            declared = [_declared(t) for t in self.definition.arguments if t.name in missing]
            made = [f'{name} = Axis("{name}")' for name in self.sizes if name in missing]
            whole = "" if given else f"to mean the forward itself, write {self.definition.name}; "
            inside = "" if given else "inside another forward "
            raise NotationError(
                f"{self} lacks {', '.join(missing)}",
                f"{whole}{inside}write {self.definition.name}({', '.join(self.required)}), with "
                f"{', '.join([*declared, *made])}",
            )
        for name in self.sizes:
            if not isinstance(given[name], Axis):
                raise NotationError(
                    f"{self}: {name} is the size of an axis, got {given[name]}",
                    'pass an axis: G = Axis("G"), with groups = Size(G), or Axis("G", 4)',
                )

    def expression(self, name: str, value) -> Expr:
        """The value of an argument as an expression: a tensor, or an exact number."""
        if isinstance(value, Declaration):
            value._operator()
        e = value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            e = as_typed(value) if isinstance(value, float) else Integer(value)
        elif not isinstance(value, Expr):
            raise NotationError(
                f"{self}: {' '.join(shortened(value).split())} is not a tensor of the mathematics",
                "a forward is called inside another one; to compute with numbers, call the "
                f"function that gradform writes: {self.definition.snake}"
                if is_array(value)
                else f"pass an Input or a statement as {name}",
            )
        if name in self.scalars and axes_of(e):
            raise NotationError(f"{self}: {name} is a number, {value} is a tensor", "pass a number")
        return e

    def check_labels(self, given: Mapping[str, Expr]) -> None:
        """Check that labels are passed where they are declared, and nowhere else."""
        for t in (t for t in self.definition.arguments if t.name in given):
            if (t.role == "label") != (getattr(given[t.name], "role", "") == "label"):
                what = "a label" if t.role == "label" else "a tensor, not a label"
                raise NotationError(
                    f"{self}: {t.name} is {what}, got {given[t.name]}", "swap the arguments?"
                )


def _declared(tensor: Tensor) -> str:
    """The declaration of a tensor like one of a callee's."""
    axes = ", ".join(axis.name for axis in tensor.axes)
    return f"{tensor.name} = {KINDS[tensor.role]}({axes})"


KINDS = {kind.role: kind.__name__ for kind in (Input, Given, Label)}


def bound(definition, args: Sequence, kwargs: Mapping) -> dict[str, Expr]:
    """Every argument with its value, or its default. Raises `NotationError`."""
    signature = Signature.of(definition)
    given = signature.given(args, kwargs)
    signature.check_complete(given)
    given = {name: signature.expression(name, value) for name, value in given.items()}
    signature.check_labels(given)
    defaults = {**signature.optional, **signature.scalars}
    return {name: given[name] if name in given else defaults[name] for name in signature.order}


def bound_axes(definition, arguments, sizes: dict[Axis, Axis]) -> dict[Axis, tuple[Axis, ...]]:
    """Every axis of the inputs and the sizes, with those of the arguments in its place: one, or
    for an `Axes` any number.
    """
    axes: dict[Axis, tuple[Axis, ...]] = {axis: (given,) for axis, given in sizes.items()}
    left_out = {t for t, _ in definition.optional if not tensors_in(arguments[t.name])}
    for t in (t for t in definition.arguments if t not in left_out):
        value = arguments[t.name]
        actual, several = _axes_of_argument(value), _several(t)
        _check_count(definition, t, value)
        more = len(actual) - len(t.axes)
        rest = iter(actual)
        for formal in t.axes:
            taken = tuple(islice(rest, 1 + more if formal == several else 1))
            before = axes.setdefault(formal, taken)
            _check_axis(definition, t, value, formal, taken, before)
    taken = [axis for bound in axes.values() for axis in bound]
    if len(set(taken)) != len(taken):
        raise NotationError(
            f"{definition.name}: two of its axes would become the same axis",
            "rename one with Rename",
        )
    return axes


def _axes_of_argument(value: Expr) -> tuple[Axis, ...]:
    """In the order of its dimensions, where it has one."""
    if isinstance(value, Tensor):
        return value.axes
    return tuple(sorted(axes_of(value), key=lambda a: a.name))


def _several(t: Tensor) -> Axes | None:
    """The axis of an input that may be any number of them."""
    return next((axis for axis in t.axes if isinstance(axis, Axes)), None)


def _shapes(t: Tensor, value: Expr) -> tuple[str, str]:
    """The axes of an input, and those of the value passed for it, in words."""
    shape = ", ".join(axis.dims for axis in t.axes)
    return shape, ", ".join(axis.name for axis in _axes_of_argument(value))


def _check_count(definition, t: Tensor, value: Expr) -> None:
    """Check that as many axes are passed as are declared, in an order."""
    actual, (shape, got) = _axes_of_argument(value), _shapes(t, value)
    more = len(actual) - len(t.axes)
    if more < -1 or (more and _several(t) is None):
        raise NotationError(
            f"{definition.name}: {t.name} has the axes ({shape}), {value} has ({got})",
            "pass a tensor with as many axes, in the same order",
        )
    if len(actual) > 1 and not isinstance(value, Tensor):
        raise NotationError(
            f"{definition.name}: {value} has several axes in no particular order",
            "give the expression a name on a line before, and pass that",
        )


def _check_axis(definition, t: Tensor, value: Expr, formal: Axis, taken, known) -> None:
    """Check that an axis becomes the same one everywhere, of its declared length."""
    if known != taken:
        shape, got = _shapes(t, value)
        before = ", ".join(map(str, known)) or "no axis"
        raise NotationError(
            f"{definition.name}: {t.name} has the axes ({shape}), and {formal} is "
            f"{before} already, but {value} has ({got})",
            f"pass a tensor along {before}, or rename the axis with Rename",
        )
    if formal.length is not None and [axis.length for axis in taken] != [formal.length]:
        raise NotationError(
            f"{definition.name}: {t.name} has {formal.declaration}, {value} has "
            f"{', '.join(axis.declaration for axis in taken)}",
            f"pass a tensor along an axis of {formal.length} entries",
        )
