"""Axes that no input has: those that a renaming, a flattening or a splitting makes, and those whose
size is given; and where they stand.

A renamed axis has the size of the one that it was made from, a flattened one the product of its
parts. Which sizes follow from which is decided here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from sympy import Add, Expr, postorder_traversal

from derive.language.diagonals import Identity
from derive.language.errors import NotationError
from derive.language.matrices import spare_axes
from derive.language.nodes import ArrayNode, MatrixNode, Position, Reshaping
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor, ordered, tensors_in


def twins_in(expressions) -> dict[Axis, Axis]:
    """The axes that a renaming brought in, and those of the columns of a square matrix, each with
    the axis whose size it has.
    """
    expressions = list(expressions)
    twins = _renamed_in(expressions)
    matrices = [n for e in expressions for n in postorder_traversal(e) if isinstance(n, MatrixNode)]
    for node in matrices:
        rows, columns = (twins.get(axis, axis) for axis in node.axes)
        if rows != columns:
            twins = {twin: rows if of == columns else of for twin, of in twins.items()}
            twins[columns] = rows
        twins |= dict.fromkeys(spare_axes(node.axes), rows)
    return twins


def check_spare(expressions, inputs: Iterable[Tensor]) -> None:
    """Refuse an input along an axis that a product of matrices may need. Raises `NotationError`."""
    nodes = [n for e in expressions for n in postorder_traversal(e) if isinstance(n, MatrixNode)]
    spare = {axis: node for node in nodes for axis in spare_axes(node.axes)}
    for tensor in inputs:
        for axis in spare.keys() & {*tensor.axes}:
            raise NotationError(
                f"{tensor} lies along {axis}, which gradients of {spare[axis]} lie along",
                "give the axis another name",
            )


def _renamed_in(expressions) -> dict[Axis, Axis]:
    twins: dict[Axis, Axis] = {}
    expressions = list(expressions)
    tensors = [t for e in expressions for t in tensors_in(e)]
    for tensor in tensors:
        for home, met in zip(tensor.home, tensor.axes, strict=True):
            _made_equal(twins, twins.get(home, home), twins.get(met, met))
    homes = list(dict.fromkeys(axis for tensor in tensors for axis in tensor.home))
    axes = with_sizes({*homes, *(axis for e in expressions for axis in e.atoms(Axis))})
    declared = [(axis, axis.formula) for axis in axes if isinstance(axis.formula, Axis)]
    pairs = sorted({node.pair for e in expressions for node in e.atoms(Identity)}, key=str)
    for pair in [*declared, *pairs]:
        known = (twins.get(axis, axis) for axis in pair)
        _made_equal(
            twins, *sorted(known, key=lambda a: homes.index(a) if a in homes else len(homes))
        )
    return twins


def _renamed_from(expressions, inputs: Iterable[Tensor]) -> dict[Axis, Axis]:
    """The axes that no input has, each with that of an input that was first renamed into it."""
    theirs, found = {axis for tensor in inputs for axis in tensor.axes}, {}
    for tensor in (t for e in expressions for t in tensors_in(e)):
        for home, met in zip(tensor.home, tensor.axes, strict=True):
            if home in theirs and met not in theirs:
                found.setdefault(met, home)
    return found


def _made_equal(twins: dict[Axis, Axis], first: Axis, later: Axis) -> None:
    """The ``later`` of two axes that are no twins becomes one of the ``first``, with its own."""
    if first != later:
        twins.update({axis: first for axis in (later, *twins) if twins.get(axis, axis) == later})


def flattened_in(expressions, twins: Mapping[Axis, Axis]) -> dict[Axis, tuple[Axis, ...]]:
    """The axes that others were flattened into, or that were split, each with its parts. Raises
    `NotationError` for two meanings.
    """
    found: dict[Axis, tuple[Axis, ...]] = {}
    nodes = [n for e in expressions for n in postorder_traversal(e) if isinstance(n, Reshaping)]
    for node in nodes:
        flat = twins.get(node.flat, node.flat)
        parts = tuple(twins.get(axis, axis) for axis in node.parts)
        own = next(
            (a for a in parts if a.formula is not None and flat in a.formula.atoms(Axis)), None
        )
        if own is not None:
            raise NotationError(
                f"{node}: {own} has its size from {flat}, of which it is a part",
                f'leave the size out: {own} = Axis("{own}")',
            )
        if flat in _made_of(parts, found):
            raise NotationError(
                f"{node}: {flat} would be a part of itself", "give the new axis a name of its own"
            )
        if sorted(map(str, found.setdefault(flat, parts))) != sorted(map(str, parts)):
            before, now = (" x ".join(map(str, axes)) for axes in (found[flat], parts))
            raise NotationError(
                f"{node}: the axis {flat} is {before} already, and not {now}",
                "give the second one another name",
            )
    return found


def _made_of(axes, flattened: Mapping[Axis, tuple[Axis, ...]]) -> set[Axis]:
    """``axes``, and all that they were flattened from."""
    return set(axes).union(*(_made_of(flattened.get(axis, ()), flattened) for axis in axes))


def fixed_in(expressions) -> list[Axis]:
    """Axes of constant length, in the order in which they are met."""
    nodes = [n for e in expressions for n in postorder_traversal(e) if isinstance(n, ArrayNode)]
    met = [axis for node in nodes for axis in (*node.binds, *node.brings)]
    return list(dict.fromkeys(axis for axis in met if axis.length is not None))


def derived_in(axes: Iterable[Axis]) -> dict[Axis, Expr]:
    """The axes that have their sizes by a formula from those of others, in an order in which they
    can be computed, each with it. Raises `NotationError` where one would need its own size.
    """
    pending = [a for a in axes if a.formula is not None and not isinstance(a.formula, Axis)]
    found = {}
    while pending:
        ready = [a for a in pending if not a.formula.atoms(Axis) & set(pending)]
        if not ready:
            raise NotationError(
                f"{pending[0].declaration}: its length depends on itself", "name another axis in it"
            )
        found |= {axis: axis.formula for axis in ready}
        pending = [axis for axis in pending if axis not in found]
    return found


def read_in(expressions) -> dict[Axis, Axis]:
    """The axes that entries are read along, each with the one in whose place it comes; and those
    whose size or places alone are met, where the size has a formula.
    """
    nodes = [n for e in expressions for n in postorder_traversal(e)]
    reads = [n for n in nodes if isinstance(n, At)]
    found = {axis: node.axis for node in reads for axis in node.brings if axis != node.axis}
    sizes = {n for n in nodes if isinstance(n, Axis)} | set(found)
    sizes |= {n.axis for n in nodes if isinstance(n, Position)}
    for axis in derived_in(with_sizes(sizes)):
        found.setdefault(axis, axis)
    return found


def met_in(tensor: Tensor, e: Expr) -> set[Axis]:
    """The axes that need a size for the statement ``tensor = e`` to be computed."""
    inside = (axis for node in e.atoms(ArrayNode) for axis in (*node.binds, *node.brings))
    return {*tensor.axes, *e.atoms(Axis), *inside}


def with_sizes(axes: Iterable[Axis]) -> list[Axis]:
    """``axes``, and the axes in their length formulas."""
    found, pending = set(), set(axes)
    while pending:
        found |= pending
        of = (axis.formula.atoms(Axis) for axis in pending if axis.formula is not None)
        pending = set().union(*of) - found
    return ordered(found)


def known_sizes(
    known: Iterable[Axis], flattened: Mapping[Axis, tuple[Axis, ...]]
) -> dict[Axis, tuple[Axis, ...]]:
    """The axes whose sizes follow from those of ``known``, in an order in which they can be
    computed: a flattened one from its parts, a part from what it is part of and the other parts.
    Each comes with the axes that its size is the product of (its own parts) or, where it is a
    part, with the flattened axis and then the others, which that is divided by.
    """
    known, found = set(known), {}
    while True:
        for flat, parts in flattened.items():
            open_axes = [axis for axis in (flat, *parts) if axis not in known]
            if len(open_axes) == 1:
                (axis,) = open_axes
                others = tuple(part for part in parts if part != axis)
                found[axis] = others if axis == flat else (flat, *others)
                known.add(axis)
                break
        else:
            return found


def axis_order(
    inputs,
    twins: dict[Axis, Axis],
    flattened: Mapping[Axis, tuple[Axis, ...]],
    given: Iterable[Axis] = (),
    said: Iterable[tuple[Axis, ...]] = (),
    expressions: Iterable[Expr] = (),
) -> list[Axis]:
    """Axes become dimensions in the order of first appearance among the inputs; a twin follows
    its original, or the input's axis that it was renamed from, what was flattened the last of
    its parts, and a part stands before the next one, or after what was split. Of the ``given``
    axes, those that nothing is split into come first: results side by side; or where an order
    of dimensions that is ``said`` has them. An axis that entries are ``read`` along follows the
    one that is read, and the last of those that its length is made of; one as long as others
    together, the first.
    """
    read = read_in(expressions)
    twins = twins | _renamed_from(expressions, inputs)
    order = list(dict.fromkeys(axis for tensor in inputs for axis in tensor.axes))
    parts = {part for flat, own in flattened.items() if flat in order for part in own}
    of_read = {flat for flat, own in flattened.items() if read.keys() & {*own}}
    apart = {*order, *parts, *read, *of_read}
    first = [axis for axis in given if axis not in apart]
    order = first + order
    for before, axis in (pair for axes in said for pair in pairwise(axes)):
        if axis in first and before in order:
            order.remove(axis)
            order.insert(order.index(before) + 1, axis)
    for flat, own in flattened.items():
        if flat in order:
            _place_parts(order, flat, own)
    made = {twin: (original,) for twin, original in twins.items()} | dict(flattened)
    _put_made(order, made, flattened)
    _put_read(order, read)
    _put_made(order, made, flattened)
    return order


def _put_made(
    order: list[Axis],
    made: Mapping[Axis, tuple[Axis, ...]],
    flattened: Mapping[Axis, tuple[Axis, ...]],
) -> None:
    """Put those axes whose parts are in ``order`` into their places."""
    pending = [axis for axis in made if axis not in order]
    while ready := [axis for axis in pending if all(part in order for part in made[axis])]:
        axis = ready[0]
        place = max(map(order.index, made[axis])) + 1
        while place < len(order) and order[place] in made and axis in flattened:
            place += 1  # after those that were made before it
        order.insert(place, axis)
        pending.remove(axis)


def _put_read(order: list[Axis], read: Mapping[Axis, Axis]) -> None:
    pending = [axis for axis in read if axis not in order]
    pending.sort(key=lambda axis: axis.formula is None)
    for axis in pending:
        formula = axis.formula
        beside = [other for other in order if read.get(other) == read[axis]]
        after = [read[axis], *beside] if formula is None else sorted(formula.atoms(Axis), key=str)
        places = [order.index(other) for other in after if other in order]
        together = isinstance(formula, Add) and all(isinstance(n, Axis) for n in formula.args)
        place = (min if together else max)(places, default=len(order) - 1)
        order.insert(place + 1, axis)


def _place_parts(order: list[Axis], flat: Axis, parts: tuple[Axis, ...]) -> None:
    """Put the parts of a split axis that are not in ``order`` yet into their places."""
    place = order.index(flat) + 1
    for part in reversed(parts):
        if part not in order:
            order.insert(place, part)
        place = order.index(part)
