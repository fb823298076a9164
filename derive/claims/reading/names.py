"""The names a formula may use: tensors, their gradients, sizes, and the user's own names."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from sympy import Expr, Integer, Rational

from derive.claims.reading.refusals import SHOWN_NAME, SIMILAR, NotUnderstood, Refusal, printable
from derive.claims.reading.values import (
    IGNORED,
    INDEX,
    NUMBER,
    TENSOR,
    Dims,
    Space,
    TextValue,
    number,
)
from derive.gradient.chain.chain import adjoint_of
from derive.language.float_range import unheld_number
from derive.language.kept_labels import nonzero
from derive.language.notation.definition import IGNORE_INDEX, Definition
from derive.language.notation.layout import Layout, layouts_of
from derive.language.symbols import Axis, Tensor

FORWARD = "forward"  # storage of the forward's values
MOST_DIGITS = 40  # of a number; float64 has 17
LARGEST_EXPONENT = 400  # decimal; float64 ends at 308, and has its own message
DIGITS_OF_EXPONENT = 6  # parsed; an exponent with more digits is too large anyway
SHOWN = 30  # characters of a number in a message
DECIMAL = re.compile(r"[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?", re.IGNORECASE)
KINDS = {"label": INDEX, "scalar": NUMBER}


def exact(text: str) -> TextValue:
    """The exact value of a literal: 0.5 is 1/2, and 1e-5 is 1/100000."""
    found = DECIMAL.fullmatch(text)
    if not found:
        raise Refusal(
            f"{printable(text, SHOWN)} is not supported", "numbers are decimal: 2, 0.5, 1e-5"
        )
    digits, exponent = found[1], found[2] or "e0"
    if len(digits) > MOST_DIGITS or abs(int(exponent[1:][:DIGITS_OF_EXPONENT])) > LARGEST_EXPONENT:
        raise Refusal("this number is too long", f"at most {MOST_DIGITS} digits are supported")
    value = Rational(Fraction(text))
    if problem := unheld_number(value):
        raise Refusal(f"{printable(text, SHOWN)} is {problem}", "torch reads it as inf, or as 0")
    return number(value, text.lstrip("+-").replace("_", "").isdigit())


class TextNames:
    """The meaning of names before the text assigns them.

    ``let`` maps the user's names to those of the forward, or to numbers; ``sizes`` are names of
    sizes that no axis has. A block's values may be written with the block's name as prefix.
    ``turned``: layouts that differ from the forward's; ``scales``: constant factors of gradients.
    Raises `NotUnderstood` if a name is mapped to an unknown one.
    """

    def __init__(
        self,
        definition: Definition,
        let: Mapping[str, str | TextValue],
        sizes: Mapping[str, Expr] = {},
    ):
        self.definition, self.sizes = definition, sizes
        statements = [s.tensor for s in definition.statements]
        scalars = [t for t, _ in definition.scalars]
        self.tensors = {t.name: t for t in (*definition.inputs, *scalars, *statements)}
        self.adjoints = {f"d{t.name}": t for t in (*definition.differentiable, *statements)}
        self.axes = {axis.name: axis for axis in definition.axes}
        self.upstreams = tuple(adjoint_of(t).name for t in definition.outputs)
        self.layouts = layouts_of(definition)
        self.turned: Mapping[str, Layout] = {}
        self.scales: Mapping[str, Expr] = {}
        self.of_function = False  # its upstream gradient is the caller's array
        self.in_blocks = dict(self._in_blocks())
        self.let: dict[str, str | TextValue] = {**self.in_blocks}
        for theirs, ours in let.items():
            if isinstance(ours, TextValue):
                self.let[theirs] = ours
            else:
                self._map(str(theirs).strip(), str(ours).strip())

    def _in_blocks(self) -> Iterator[tuple[str, str]]:
        for s in self.definition.statements:
            name = f"{s.block}_{s.name}"
            if s.block and name not in self.tensors and name not in self.adjoints:
                yield name, s.name
                yield f"d{name}", f"d{s.name}"

    def _map(self, theirs: str, ours: str) -> None:
        if not theirs.isidentifier():
            raise NotUnderstood(
                f"--let {printable(theirs)}: this is not a name", "write --let mine=yours"
            )
        if DECIMAL.fullmatch(ours):
            try:
                self.let[theirs] = exact(ours)
            except Refusal as error:
                raise NotUnderstood(f"--let {theirs}: {error.problem}", error.remedy) from None
            return
        ours = self.in_blocks.get(ours, ours)
        if ours not in self.tensors and ours not in self.adjoints and self.axis(ours) is None:
            raise NotUnderstood(
                f"--let {theirs}={printable(ours)}: there is no {printable(ours)}",
                self.remedy(ours),
            )
        self.let[theirs] = ours
        if f"d{ours}" in self.adjoints and ours in self.tensors:
            self.let.setdefault(f"d{theirs}", f"d{ours}")

    def ours(self, name: str) -> str:
        """The forward's own name for ``name``."""
        mapped = self.let.get(name, name)
        return mapped if isinstance(mapped, str) else name

    def adjoint(self, name: str) -> Tensor | None:
        """The tensor of which ``name`` is the gradient."""
        return self.adjoints.get(self.ours(name))

    def axis(self, name: str) -> Axis | None:
        """The axis of that name; case is ignored if that is unambiguous."""
        if name in self.axes:
            return self.axes[name]
        found = [axis for own, axis in self.axes.items() if own.lower() == name.lower()]
        return found[0] if len(found) == 1 else None

    def knows(self, name: str) -> bool:
        """Whether ``name`` is defined."""
        own = self.ours(name)
        if isinstance(self.let.get(name), TextValue) or own in self.tensors or own in self.adjoints:
            return True
        ignored = own == IGNORE_INDEX and bool(self.definition.ignoring)
        return ignored or own in self.sizes or self.axis(own) is not None

    def value(self, name: str, space: Space) -> TextValue | None:
        """The value of ``name``, or None."""
        mapped = self.let.get(name, name)
        if isinstance(mapped, TextValue):
            return mapped
        if mapped in self.tensors:
            tensor = self.tensors[mapped]
            kind = KINDS.get(tensor.role, TENSOR)
            by_name = space.by_name and kind == TENSOR
            e = nonzero(tensor) if tensor.role == "kept" else tensor
            return TextValue(e, self.dims(tensor), kind, by_name, storage=FORWARD)
        if mapped in self.adjoints:
            return self.gradient(self.adjoints[mapped], space)
        if mapped == IGNORE_INDEX and self.definition.ignoring:
            default = Integer(self.definition.ignoring[0].default)
            return TextValue(default, (), IGNORED, storage=FORWARD)
        axis = self.axis(mapped)
        if axis is None and mapped in self.sizes:
            return number(self.sizes[mapped])
        return None if axis is None else number(space.size(axis))

    def gradient(self, of: Tensor, space: Space) -> TextValue:
        """The true gradient of a tensor in its layout, times its scale."""
        e = adjoint_of(of) * self.scales.get(f"d{of.name}", 1)
        return TextValue(e, self.dims(of), by_name=space.by_name, storage=FORWARD)

    def dims(self, tensor: Tensor) -> Dims:
        return tuple(None if dim.one else dim.axis for dim in self.layouts[tensor.name])

    def in_columns(self) -> TextNames | None:
        """The same names with examples as columns; None if that layout is no different."""
        turned = _in_columns(self.definition)
        if not turned:
            return None
        other = copy.copy(self)
        other.layouts, other.turned = {**self.layouts, **turned}, turned
        return other

    def remedy(self, name: str, local=()) -> str:
        """Suggestions for a misspelled name, and all known names."""
        known = [*self.tensors, *self.adjoints, *self.axes, *self.let, *local]
        close = difflib.get_close_matches(name[:SHOWN_NAME], known, n=1, cutoff=SIMILAR)
        close = close or [one for one in known if one.lower() == name.lower()][:1]
        lines = [f"did you mean {close[0]}?"] if close else []
        return "\n".join([*lines, *self._listed()])

    def _listed(self) -> list[str]:
        shapes = []
        for name, tensor in self.tensors.items():
            dims = ["1" if dim.one else dim.axis.name for dim in self.layouts[name]]
            inside = ", ".join(dims)
            shapes.append(name if tensor.role == "scalar" else f"{name} ({inside})")
        return [
            f"the names are {', '.join(shapes)}",
            f"their gradients are called d{self.definition.outputs[0].name}, and so on, "
            f"the sizes {', '.join(self.axes)}",
            "for names of your own: --let mine=yours",
        ]


def _in_columns(definition: Definition) -> dict[str, Layout]:
    """The computed tensors whose layout changes if examples are columns: an axis that is last in
    every input matrix, such as M of X (D, M), is last in them too.
    """
    homes = [t.home for t in definition.inputs if len(t.home) > 1]
    last = {home[-1] for home in homes} - {axis for home in homes for axis in home[:-1]}
    found = {}
    layouts = layouts_of(definition)
    for tensor in (s.tensor for s in definition.statements):
        dims = layouts[tensor.name]
        moved = [dim for dim in dims if dim.axis in last]
        if len(moved) == 1 and dims[-1] is not moved[0]:
            found[tensor.name] = (*(dim for dim in dims if dim is not moved[0]), *moved)
    return found
