"""Prints the values and steps of a function that is split over ranks, beside those of any other.

A collective is a method of `_ranks.Ranks`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import ClassVar

from codegen.program import arrays, shards, steps, values
from codegen.program.parts import values_in
from codegen.sharding.lengths import Lengths
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.rows import TORCH, Rows
from codegen.targets.torch.vocabulary import ATOM, PRODUCT, UNSHIFTED
from codegen.targets.torch.wrapping import wrapped

OVER = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_"}
SYMMETRIC = ("+", "*")

SHARDED = Rows(TORCH)


class ShardPrinter(Printer):
    """``over`` are the names of the objects for ranks, by their split axes; ``lengths`` has the
    length of an axis over all of them, and ``split`` the axes that are split.
    """

    rows: ClassVar[Rows] = SHARDED

    def __init__(
        self,
        printer: Printer,
        over: Mapping[str, str],
        lengths: Lengths,
        split: Collection[str],
    ):
        super().__init__(printer.sizes, printer.numbers, printer.like, printer.around)
        self.over, self.lengths, self.split = over, lengths, split

    def in_words(self, size: values.Value) -> str:
        text = self.text(size)
        for axis, over in self.over.items():
            text = text.replace(f"{over}.size", axis)
        return text


@SHARDED.of(shards.Exchange)
def _exchange(p: ShardPrinter, step: shards.Exchange) -> str:
    over = p.over[step.group]
    if step.kind == "agreed":
        return f"{over}.agree()"
    values = [p.text(sent.value) for sent in step.sent if sent.value is not None]
    values += map(p.text, step.more)
    if step.kind in ("first", "gathered"):
        values.append(str(step.sent[0].along))
    told, way = (step.handle, f"begin_{step.kind}") if step.handle else (_names(step), step.kind)
    call = f"{over}.{way}({', '.join(values)})"
    if len(f"{STEP}{told} = {over}.{way}(") > LONGEST:  # in brackets, on lines of their own
        names = wrapped("", told.split(", "), indent=len(STEP))
        return names + broken(f"_ = {call}").removeprefix("_")
    return broken(f"{told} = {call}")


@SHARDED.of(shards.Ended)
def _ended(p: ShardPrinter, step: shards.Ended) -> str:
    return broken(f"{_names(step)} = {step.name}()")


@SHARDED.of(shards.OwnAddAt)
def _own_add_at(p: ShardPrinter, step: shards.OwnAddAt) -> str:
    given = f"{step.name}, {step.along}, {p.text(step.index)}, {p.text(step.value)}"
    return broken(f"{step.name} = {p.over[step.group]}.added({given})")


@SHARDED.of(steps.Refuse)
def _refuse(p: ShardPrinter, step: steps.Refuse) -> str:
    if not any(isinstance(v, shards.WholeSize) for v in values_in(step)):
        return TORCH[steps.Refuse](p, step)
    named = tuple((axis, p.text(p.lengths.of_axis(axis))) for axis, _ in step.axes)
    return TORCH[steps.Refuse](p, replace(step, axes=named))


@SHARDED.of(shards.Overwritten)
def _overwritten(p: ShardPrinter, value: shards.Overwritten) -> tuple[str, int]:
    """An in-place method of the overwritten tensor, where torch has one for the operation."""
    name, operation = value.name, value.operation
    text, binding = p.printed(operation)
    if isinstance(operation, values.Apply):
        plain = text == f"torch.{operation.function}({name})"
        return (f"{name}.{operation.function}_()", ATOM) if plain else (text, binding)
    pairs = operation.terms if isinstance(operation, values.Plus) else operation.factors
    for other, _ in pairs:
        for spelled in (p.text(other, PRODUCT), p.tight(other)):
            for sign, method in OVER.items():
                either = [f"{name} {sign} {spelled}"]
                either += [f"{spelled} {sign} {name}"] * (sign in SYMMETRIC)
                if text in either:
                    return f"{name}.{method}({p.text(other)})", ATOM
    return text, binding


@SHARDED.of(shards.WholeSize)
def _whole_size(p: ShardPrinter, value: shards.WholeSize) -> tuple[str, int]:
    return f"{p.over[value.group]}.size", ATOM


@SHARDED.of(shards.OwnSize)
def _own_size(p: ShardPrinter, value: shards.OwnSize) -> tuple[str, int]:
    return f"{p.over[value.group]}.length", ATOM


@SHARDED.of(shards.Ratio)
def _ratio(p: ShardPrinter, value: shards.Ratio) -> tuple[str, int]:
    given = f"{p.text(value.whole)}, {p.text(value.part)}"
    return f"{p.over[value.group]}.ratio({given})", ATOM


@SHARDED.of(shards.OwnPart)
def _own_part(p: ShardPrinter, value: shards.OwnPart) -> tuple[str, int]:
    return f"{p.over[value.group]}.part({p.text(value.operand)}, {value.along})", ATOM


@SHARDED.of(shards.OwnLargest)
def _own_largest(p: ShardPrinter, value: shards.OwnLargest) -> tuple[str, int]:
    along = value.along[0] if len(value.along) == 1 else value.along
    return f"_ranks.largest_of({p.text(value.operand)}, {along}, {value.keep})", ATOM


@SHARDED.of(shards.OwnMean)
def _own_mean(p: ShardPrinter, value: shards.OwnMean) -> tuple[str, int]:
    along = value.along[0] if len(value.along) == 1 else value.along
    return f"_ranks.mean_of({p.text(value.operand)}, {along})", ATOM


@SHARDED.of(shards.Unshifted)
def _unshifted(p: ShardPrinter, value: shards.Unshifted) -> tuple[str, int]:
    return p.tight(value.operand) + UNSHIFTED[value.kind], ATOM


@SHARDED.of(shards.OwnPick)
def _own_pick(p: ShardPrinter, value: shards.OwnPick) -> tuple[str, int]:
    way = "picked" if value.rowwise else "rows"
    given = [p.text(value.operand), p.text(value.index)]
    given[1:1] = [str(value.along)] * value.rowwise
    return f"{p.over[value.group]}.{way}({', '.join(given)})", ATOM


@SHARDED.of(shards.OwnPositions)
def _own_positions(p: ShardPrinter, value: shards.OwnPositions) -> tuple[str, int]:
    return f"{p.over[value.group]}.positions()", ATOM


@SHARDED.of(shards.OwnOneHot)
def _own_one_hot(p: ShardPrinter, value: shards.OwnOneHot) -> tuple[str, int]:
    return (
        f"{p.over[value.group]}.one_hot({p.text(value.index)}).to({p.like}.dtype)",
        ATOM,
    )


@SHARDED.of(shards.OwnGathered)
def _own_gathered(p: ShardPrinter, value: shards.OwnGathered) -> tuple[str, int]:
    lengths = [p.sizes[dim.axis.name] for dim in value.dims]
    given = [p.text(value.index), p.text(value.source), *lengths]
    return f"{p.over[value.group]}.rows_added({', '.join(given)})", ATOM


@SHARDED.of(shards.WholeOneHot)
def _whole_one_hot(p: ShardPrinter, value: shards.WholeOneHot) -> tuple[str, int]:
    return _along_all(p, value.size, value.group, lambda: SHARDED[arrays.OneHotOf](p, value))


@SHARDED.of(shards.WholeGathered)
def _whole_gathered(p: ShardPrinter, value: shards.WholeGathered) -> tuple[str, int]:
    axis = value.dims[0].axis.name
    return _along_all(p, axis, value.group, lambda: SHARDED[arrays.Gathered](p, value))


def _along_all(p: ShardPrinter, axis: str, group: str, printed: Callable[[], tuple[str, int]]):
    """The text printed where the axis is whole."""
    part, p.sizes[axis] = p.sizes[axis], f"{p.over[group]}.size"
    text = printed()
    p.sizes[axis] = part
    return text


@SHARDED.of(arrays.Split)
def _split(p: ShardPrinter, value: arrays.Split) -> tuple[str, int]:
    """A split part may be whole here: it has any length."""
    open_part = next((axis for axis in value.into if axis in p.split), value.into[0])
    lengths = ["-1" if axis == open_part else p.sizes[axis] for axis in value.into]
    return f"{p.tight(value.operand)}.unflatten({value.along}, ({', '.join(lengths)}))", ATOM


def _names(step: shards.Exchange | shards.Ended) -> str:
    return ", ".join(sent.name for sent in step.sent)
