"""Prints the values and steps of a function that is split over ranks, beside those of any other.

A collective is a method of `_ranks.Ranks`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from codegen.program import arrays, shards, steps, values
from codegen.program.parts import values_in
from codegen.sharding.lengths import Lengths
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.printer import PRODUCT, Printer
from codegen.targets.torch.vocabulary import ATOM, UNSHIFTED
from codegen.targets.torch.wrapping import wrapped

OVER = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_"}
SYMMETRIC = ("+", "*")


class ShardPrinter(Printer):
    """``over`` are the names of the objects for ranks, by their split axes; ``lengths`` has the
    length of an axis over all of them, and ``split`` the axes that are split.
    """

    def __init__(
        self,
        printer: Printer,
        over: Mapping[str, str],
        lengths: Lengths,
        split: Collection[str],
    ):
        super().__init__(printer.sizes, printer.numbers, printer.like, printer.around)
        self.over, self.lengths, self.split = over, lengths, split

    def _Exchange(self, step: shards.Exchange) -> str:
        over = self.over[step.group]
        if step.kind == "agreed":
            return f"{over}.agree()"
        values = [self.text(sent.value) for sent in step.sent if sent.value is not None]
        values += map(self.text, step.more)
        if step.kind in ("first", "gathered"):
            values.append(str(step.sent[0].along))
        told, way = (
            (step.handle, f"begin_{step.kind}") if step.handle else (_names(step), step.kind)
        )
        call = f"{over}.{way}({', '.join(values)})"
        if len(f"{STEP}{told} = {over}.{way}(") > LONGEST:  # in brackets, on lines of their own
            names = wrapped("", told.split(", "), indent=len(STEP))
            return names + broken(f"_ = {call}").removeprefix("_")
        return broken(f"{told} = {call}")

    def _Ended(self, step: shards.Ended) -> str:
        return broken(f"{_names(step)} = {step.name}()")

    def _OwnAddAt(self, step: shards.OwnAddAt) -> str:
        given = f"{step.name}, {step.along}, {self.text(step.index)}, {self.text(step.value)}"
        return broken(f"{step.name} = {self.over[step.group]}.added({given})")

    def _Refuse(self, step: steps.Refuse) -> str:
        if not any(isinstance(v, shards.WholeSize) for v in values_in(step)):
            return super()._Refuse(step)
        named = tuple((axis, self.text(self.lengths.of_axis(axis))) for axis, _ in step.axes)
        return super()._Refuse(replace(step, axes=named))

    def in_words(self, size: values.Value) -> str:
        text = self.text(size)
        for axis, over in self.over.items():
            text = text.replace(f"{over}.size", axis)
        return text

    def _Overwritten(self, value: shards.Overwritten):
        """An in-place method of the overwritten tensor, where torch has one for the operation."""
        name, operation = value.name, value.operation
        text, binding = getattr(self, f"_{type(operation).__name__}")(operation)
        if isinstance(operation, values.Apply):
            plain = text == f"torch.{operation.function}({name})"
            return (f"{name}.{operation.function}_()", ATOM) if plain else (text, binding)
        pairs = operation.terms if isinstance(operation, values.Plus) else operation.factors
        for other, _ in pairs:
            for spelled in (self.text(other, PRODUCT), self.tight(other)):
                for sign, method in OVER.items():
                    either = [f"{name} {sign} {spelled}"]
                    either += [f"{spelled} {sign} {name}"] * (sign in SYMMETRIC)
                    if text in either:
                        return f"{name}.{method}({self.text(other)})", ATOM
        return text, binding

    def _WholeSize(self, value: shards.WholeSize):
        return f"{self.over[value.group]}.size", ATOM

    def _OwnSize(self, value: shards.OwnSize):
        return f"{self.over[value.group]}.length", ATOM

    def _Ratio(self, value: shards.Ratio):
        given = f"{self.text(value.whole)}, {self.text(value.part)}"
        return f"{self.over[value.group]}.ratio({given})", ATOM

    def _OwnPart(self, value: shards.OwnPart):
        return f"{self.over[value.group]}.part({self.text(value.operand)}, {value.along})", ATOM

    def _OwnLargest(self, value: shards.OwnLargest):
        along = value.along[0] if len(value.along) == 1 else value.along
        return f"_ranks.largest_of({self.text(value.operand)}, {along}, {value.keep})", ATOM

    def _OwnMean(self, value: shards.OwnMean):
        along = value.along[0] if len(value.along) == 1 else value.along
        return f"_ranks.mean_of({self.text(value.operand)}, {along})", ATOM

    def _Unshifted(self, value: shards.Unshifted):
        return self.tight(value.operand) + UNSHIFTED[value.kind], ATOM

    def _OwnPick(self, value: shards.OwnPick):
        way = "picked" if value.rowwise else "rows"
        given = [self.text(value.operand), self.text(value.index)]
        given[1:1] = [str(value.along)] * value.rowwise
        return f"{self.over[value.group]}.{way}({', '.join(given)})", ATOM

    def _OwnPositions(self, value: shards.OwnPositions):
        return f"{self.over[value.group]}.positions()", ATOM

    def _OwnOneHot(self, value: shards.OwnOneHot):
        return (
            f"{self.over[value.group]}.one_hot({self.text(value.index)}).to({self.like}.dtype)",
            ATOM,
        )

    def _OwnGathered(self, value: shards.OwnGathered):
        lengths = [self.sizes[dim.axis.name] for dim in value.dims]
        given = [self.text(value.index), self.text(value.source), *lengths]
        return f"{self.over[value.group]}.rows_added({', '.join(given)})", ATOM

    def _WholeOneHot(self, value: shards.WholeOneHot):
        return self._along_all(value.size, value.group, lambda: self._OneHotOf(value))

    def _WholeGathered(self, value: shards.WholeGathered):
        axis = value.dims[0].axis.name
        return self._along_all(axis, value.group, lambda: self._Gathered(value))

    def _along_all(self, axis: str, group: str, printed: Callable[[], tuple[str, int]]):
        """The text printed where the axis is whole."""
        part, self.sizes[axis] = self.sizes[axis], f"{self.over[group]}.size"
        text = printed()
        self.sizes[axis] = part
        return text

    def _Split(self, value: arrays.Split):
        """A split part may be whole here: it has any length."""
        open_part = next((axis for axis in value.into if axis in self.split), value.into[0])
        lengths = ["-1" if axis == open_part else self.sizes[axis] for axis in value.into]
        return f"{self.tight(value.operand)}.unflatten({value.along}, ({', '.join(lengths)}))", ATOM


def _names(step: shards.Exchange | shards.Ended) -> str:
    return ", ".join(sent.name for sent in step.sent)
