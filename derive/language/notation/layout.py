"""Layout of tensors: their dimensions, in order, and which of them have size 1.

Axes become dimensions in the order in which they first appear among the inputs. Inputs and outputs
have exactly their axes, and so has a statement that says their order. Inside, a statement that was
reduced along an axis keeps a dimension of size 1 there if a later statement broadcasts it back
along that axis, so that shapes align by position as torch aligns them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sympy import Expr

from derive.language.nodes import ArgMax, Max, OneHot, Reduction, Reindexing, Sum
from derive.language.notation.definition import Definition
from derive.language.operations import is_contraction
from derive.language.symbols import Axes, Axis, Tensor, axes_of, tensors_in


@dataclass(frozen=True)
class Dim:
    """One dimension of a stored tensor: along ``axis``, or of size 1 in its place."""

    axis: Axis
    one: bool = False

    def __str__(self) -> str:
        return "1" if self.one else self.axis.name

    def written(self, size: str = "") -> str:
        """As it stands in a shape, its size under the name ``size``: ``N``, or ``1``; for an
        `Axes` ``*N``, or ``*N=1`` where as many dimensions all have size 1.
        """
        name = size or self.axis.name
        if isinstance(self.axis, Axes):
            return f"*{name}=1" if self.one else f"*{name}"
        return "1" if self.one else name


Layout = tuple[Dim, ...]


def plain(axes) -> Layout:
    """The layout that has exactly these axes."""
    return tuple(Dim(axis) for axis in axes)


def shape(layout: Layout) -> str:
    """``(N, 1)``, as Python writes the shape."""
    inside = ", ".join(dim.written() for dim in layout)
    return f"({inside},)" if len(layout) == 1 else f"({inside})"


def layouts_of(definition: Definition) -> dict[str, Layout]:
    """The layout of every input, scalar and statement."""
    pairs = [(s.tensor, s.expression) for s in definition.statements]
    fixed = {t.name: plain(t.home) for t in definition.inputs}
    fixed |= {t.name: () for t, _ in definition.scalars}
    said = [s.tensor for s in definition.statements if s.name in definition.ordered]
    fixed |= {t.name: plain(t.home) for t in (*said, *definition.outputs)}
    return layouts(pairs, definition.axes, fixed)


def layouts(
    statements: Sequence[tuple[Tensor, Expr]], order: Sequence[Axis], fixed: Mapping[str, Layout]
) -> dict[str, Layout]:
    """Layouts for ``statements`` in the order of computation; those in ``fixed`` are given."""
    reduced = {name: {dim.axis for dim in layout if dim.one} for name, layout in fixed.items()}
    for tensor, e in statements:
        if tensor.name not in fixed:
            reduced[tensor.name] = _reduced_axes(e, reduced) - set(tensor.home)
    kept: dict[str, set[Axis]] = {}
    reads = [{t.name for t in tensors_in(e)} for _, e in statements]
    for i in range(len(statements) - 1, -1, -1):
        tensor, _ = statements[i]
        if tensor.name not in fixed:
            back: set[Axis] = set()
            for (user, e), read in zip(statements[i + 1 :], reads[i + 1 :], strict=True):
                if tensor.name not in read:
                    continue
                back |= _broadcast_back(e, tensor.name, set(user.home))
                if tensor.name in {t.name for t in _pointwise(e)}:
                    back |= kept.get(user.name, set())
            kept[tensor.name] = reduced[tensor.name] & back
    result = dict(fixed)
    for tensor, _ in statements:
        if tensor.name not in fixed:
            axes = sorted({*tensor.home, *kept[tensor.name]}, key=list(order).index)
            result[tensor.name] = tuple(Dim(axis, axis in kept[tensor.name]) for axis in axes)
    return result


def _reduced_axes(e: Expr, reduced: Mapping[str, set[Axis]]) -> set[Axis]:
    """Axes along which operands of ``e`` were summed."""
    if isinstance(e, Tensor):
        return set(reduced.get(e.name, ())) if e.axes == e.home else set()
    if isinstance(e, (OneHot, ArgMax)):
        return set()
    own = set(e.axes) if isinstance(e, Reduction) else set()
    return own.union(*(_reduced_axes(arg, reduced) for arg in e.args)) - set(axes_of(e))


def _broadcast_back(e: Expr, name: str, context: set[Axis]) -> set[Axis]:
    """The axes along which the tensor called ``name`` is broadcast where ``e`` reads it."""
    if isinstance(e, Tensor):
        return context - set(e.axes) if e.name == name and e.axes == e.home else set()
    if isinstance(e, (OneHot, ArgMax)) or is_contraction(e):
        return set()
    if isinstance(e, (Sum, Max)):
        context = set(axes_of(e.operand)) | context
    if isinstance(e, Reindexing):
        context = set(axes_of(e.operand)) | (context - set(e.brings))
    return (
        set().union(*(_broadcast_back(arg, name, context) for arg in e.args)) if e.args else set()
    )


def _pointwise(e: Expr) -> list[Tensor]:
    """The tensors met outside of reductions."""
    if isinstance(e, (Reduction, OneHot)):
        return []
    if isinstance(e, Tensor):
        return [e]
    return [t for arg in e.args for t in _pointwise(arg)] if tensors_in(e) else []
