"""Matrix products and index-adds as lines of C++, where all sizes are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from codegen.program.arrays import Contract, Gathered
from codegen.program.values import Load, Value
from codegen.schedule.elements import Axes
from codegen.schedule.nodes import LibraryNode
from codegen.targets.cpp.names import named
from codegen.targets.cpp.vocabulary import I64
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout


@dataclass(frozen=True)
class ProductOperand:
    """An array with its axes, none of them flattened."""

    name: str
    axes: Axes

    def stride(self, axis: str, size) -> str:
        """The stride along an axis; 0 where it has none."""
        if axis not in self.axes:
            return "0"
        return " * ".join(["1", *map(size, self.axes[self.axes.index(axis) + 1 :])])


def has_lines(value: Value) -> bool:
    """True if `Products` prints it: its operands lie in memory."""
    if isinstance(value, Contract):
        made_of = (value.left, value.right)
    else:
        made_of = (value.index, value.source) if isinstance(value, Gathered) else (None,)
    return all(isinstance(part, Load) for part in made_of)


class Products:
    """Writes library operations between the sweeps. ``size`` prints the length of an axis,
    ``parts`` are those of flattened axes.
    """

    def __init__(self, size, parts: Mapping[str, Axes]):
        self.size, self.parts = size, parts

    def lines(self, whole: LibraryNode) -> list[str]:
        """The lines of a product or index-add. Raises `QuestionError` for others."""
        if isinstance(whole.value, Contract):
            return [*self.product(whole, whole.value)]
        if isinstance(whole.value, Gathered):
            return self.added(whole, whole.value)
        raise QuestionError(
            f"{whole.name}: the C++ target has no loop for {type(whole.value).__name__}",
            "to add it, extend codegen/targets/cpp/products.py",
        )

    def operand(self, value) -> ProductOperand:
        return ProductOperand(value.name, self.axes(value.dims))

    def axes(self, layout: Layout) -> Axes:
        names = [dim.axis.name for dim in layout]
        return tuple(part for name in names for part in self.parts.get(name, (name,)))

    def count(self, axes: Sequence[str]) -> str:
        return " * ".join(["1", *map(self.size, axes)])

    # -- a product of matrices ------------------------------------------------

    def product(self, whole: LibraryNode, value: Contract) -> Iterator[str]:
        """Rows are axes of ``left``, columns those of ``right``, which the result has last; other
        axes get a loop around the product.
        """
        left, right = self.operand(value.left), self.operand(value.right)
        result = ProductOperand(whole.name, whole.axes)
        if result.axes and result.axes[-1] not in right.axes:
            left, right = right, left
        operands = (left, right, result)
        batch = [a for a in result.axes if a in left.axes and a in right.axes]
        rows = [a for a in result.axes if a in left.axes and a not in batch]
        columns = [a for a in result.axes if a in right.axes and a not in batch]
        summed = [a for a in left.axes if a not in result.axes]
        yield f"    // {whole.name}"
        outer = list(batch)
        inner = []
        for group in (rows, columns, summed):
            together = self.together(group, operands)
            outer += group[: len(group) - len(together)]
            inner.append(together)
        added = any(axis in summed for axis in outer)
        if added:
            yield f"    clear({named(result.name)}, {self.count(result.axes)});"
        for axis in outer:
            yield f"    for ({I64} i_{axis} = 0; i_{axis} < {self.size(axis)}; ++i_{axis})"
        counts = [self.count(group) for group in inner]
        row, column, along = (group[-1] if group else "" for group in inner)
        strides = [
            left.stride(row, self.size),
            left.stride(along, self.size),
            right.stride(along, self.size),
            right.stride(column, self.size),
            result.stride(row, self.size),
        ]
        places = [self.place(operand, outer) for operand in operands]
        numbers = ", ".join([*counts, *strides, str(added).lower()])
        yield f"    product<{numbers}>({', '.join(places)});"

    def together(self, group: Sequence[str], operands: Sequence[ProductOperand]) -> list[str]:
        """The last axes of a group that are adjacent in all operands: one loop runs over all of
        them.
        """
        found = list(group[-1:])
        for axis in reversed(group[:-1]):
            follows = [o.axes[o.axes.index(axis) + 1 :][:1] for o in operands if axis in o.axes]
            alike = {axis in o.axes for o in operands if found[0] in o.axes}
            if alike != {True} or any(after != (found[0],) for after in follows):
                break
            found.insert(0, axis)
        return found

    def place(self, operand: ProductOperand, outer: Sequence[str]) -> str:
        steps = [f"i_{a} * ({operand.stride(a, self.size)})" for a in outer if a in operand.axes]
        return " + ".join([named(operand.name), *steps])

    # -- additions by index ---------------------------------------------------

    def added(self, whole: LibraryNode, value: Gathered) -> list[str]:
        index, source = self.operand(value.index), self.operand(value.source)
        rows, width = self.count(index.axes), self.count(whole.axes[1:])
        result = named(whole.name)
        return [
            f"    // {whole.name}",
            f"    clear({result}, {self.count(whole.axes)});",
            f"    add_rows<{rows}, {width}>({named(index.name)}, {named(source.name)}, {result});",
        ]
