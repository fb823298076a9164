"""The operations that rows of `derive.language.torch_ops` need, implemented on expressions with
torch's dimensions; and conversion of the text's arguments to the kinds that a row asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sympy import Eq, Expr, I, Integer, Piecewise, S, cancel, ceiling, exp, floor, oo

from derive.claims.reading import broadcasting
from derive.claims.reading.composed import reversed_along, total
from derive.claims.reading.formulas import RELATIONS, extent_of, in_sympy
from derive.claims.reading.lengths import in_sizes
from derive.claims.reading.operations import (
    along,
    entries,
    joining,
    making,
    picking,
    products,
    reductions,
    reshaping,
    shaping,
)
from derive.claims.reading.operations.choosing import chosen, related
from derive.claims.reading.operations.choosing import where as read_where
from derive.claims.reading.operations.dtypes import asked, converted, floats, numbers, source_of
from derive.claims.reading.operations.entries import Extremes, Operation, position, truth
from derive.claims.reading.parts import (
    EntryIndex,
    WrittenSlice,
    put,
    read_along,
    reread,
    run_of,
    taken,
)
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import (
    BOOL,
    COUNT,
    FLOAT,
    IGNORED,
    INT,
    MASK,
    NUMBER,
    Extent,
    Space,
    TextValue,
    held_as,
    number,
    promoted,
)
from derive.language.diagonals import Identity
from derive.language.nodes import Flatten, LargestSoFar, Position, Unflatten
from derive.language.symbols import MINUS_INFINITY, Tensor, axes_of, is_number_or_size
from derive.language.torch_ops.formulas import equal, where
from derive.language.torch_ops.table import INTEGRAL, KEPT, SAME, TENSORS, Op, table
from derive.language.torch_ops.trees import as_tree, compared, tensor

STORAGE = ("dtype", "device", "layout", "requires_grad", "memory_format", "pin_memory", "inplace")
REDUCTIONS = ("none", "mean", "sum", "batchmean")
SCANS = {"CumSum": along.so_far, "CumProd": along.product_so_far}
SCANS["CumMax"] = lambda e, axis: LargestSoFar.over(e, [axis])


class Formulas:
    """`Arrays` over `TextValue`s of a `Space`, for one row."""

    def __init__(
        self, space: Space, row: Op, held: str | None = None, into: TextValue | None = None
    ):
        """``held`` is the dtype asked for, ``into`` the row's input."""
        self.space, self.row, self.held, self.into = space, row, held, into

    # Entries

    def value(self, x: Any) -> TextValue:
        if isinstance(x, TextValue):
            return x
        e = as_tree(x).args[0]
        return number(e, whole=isinstance(x, int))

    def each(self, formula: Callable, *values) -> TextValue:
        found = [self.value(x) for x in values]
        if self.row.gives == TENSORS:
            held = promoted([x for x in found if x.kind != NUMBER])
            found = [x if x.kind != NUMBER else converted(self.space, x, held) for x in found]
        names = [f"?{i}" for i in range(len(found))]
        tree = formula(*(tensor(name, ()) for name in names))
        extent = extent_of(tree, {n: x.extent for n, x in zip(names, found, strict=True)})

        def build(*parts: Expr) -> Expr:
            return in_sympy(tree, dict(zip(names, parts, strict=True)), self.space.as_written)

        given = [x for x in found if not isinstance(x.expression, Position)] or found
        dtype = promoted(given) if self.row.gives in (SAME, INT, INTEGRAL, TENSORS) else FLOAT
        dtype = INT if self.row.gives == INTEGRAL and dtype == BOOL else dtype
        dtype = self.into.dtype if self.row.gives == KEPT and self.into else dtype
        result = broadcasting.pointwise(self.space, build, found, extent, dtype)
        if result.expression.has(I):
            raise Refusal(f"{self.row.names[0]} of a negative number", "the result is not real")
        return result

    def exponentials(self, x: TextValue) -> TextValue:
        return broadcasting.pointwise(self.space, exp, [x], x.extent.inside(), FLOAT)

    def is_condition(self, x: TextValue) -> bool:
        return x.kind == MASK

    def chosen(self, condition: TextValue, yes, no) -> TextValue:
        if condition.kind == MASK:
            return read_where(self.space, condition, self.value(yes), self.value(no))
        if condition.dtype == INT:
            raise Refusal("a condition on integers: torch raises an error", "write x != 0")
        formula = lambda c, a, b: where(compared("!=", c, as_tree(0)), a, b)  # noqa: E731
        return self.each(formula, condition, yes, no)

    def is_zero(self, x) -> bool:
        return self.value(x).expression == 0

    def let(self, name: str, x: TextValue) -> TextValue:
        return x

    # Along dimensions

    def places(self, x: TextValue, dims) -> list[int]:
        if dims is None:
            return list(range(x.rank))
        return [dims] if isinstance(dims, int) else list(dims)

    def _reduced(self, x, dims, keepdim, build, dtype=None) -> TextValue:
        dims = tuple(map(number, self.places(x, dims)))
        return entries.reduced(self.space, x, dims, keepdim, build, dtype=dtype)

    def sum(self, x: TextValue, dims=None, keepdim: bool = False) -> TextValue:
        held = INT if x.dtype == BOOL else x.dtype
        build = lambda e, axes: total(e, axes, self.space.size)  # noqa: E731
        return self._reduced(x, dims, keepdim, build, held)

    def largest(self, x: TextValue, dims=None, keepdim: bool = False) -> TextValue:
        return self._reduced(x, dims, keepdim, reductions.largest_of)

    def index_of_largest(self, x: TextValue, dim: int, keepdim: bool = False) -> TextValue:
        return reductions.index_of(self.space, x, number(dim), keepdim)

    def count(self, x: TextValue, dims=None) -> Expr:
        axes = [x.dims[i] for i in self.places(x, dims)]
        if not any(axes):
            return Integer(1)
        return in_sizes(self.space.definition, reductions.count(self.space, axes))

    def contracted(
        self, inputs: Sequence[str], output: str, values: Sequence[TextValue]
    ) -> TextValue:
        self.space.by_position = True
        if any(len(spec) != x.rank for spec, x in zip(inputs, values, strict=True)):
            shapes = " and ".join(x.shape for x in values)
            problem = f"{self.row.names[0]} of the shapes {shapes}"
            raise Mismatch(
                problem, f"it takes {' and '.join(map(str, map(len, inputs)))} dimensions"
            )
        dtype, what = promoted(values), self.row.names[0]
        if {*"".join(inputs)} - {*output}:
            if len(values) > 1:
                products.check_dtypes(values, what)
            dtype = INT if dtype == BOOL else dtype
        pairs = list(zip(values, inputs, strict=True))
        return broadcasting.contracted(self.space, pairs, tuple(output), dtype)

    def scan(self, word: str, x: TextValue, dim: int) -> TextValue:
        return read_along(self.space, x, dim, SCANS[word])

    # Dimensions

    def permuted(self, x: TextValue, places: Sequence[int]) -> TextValue:
        if sorted(places) != list(range(x.rank)):
            raise Refusal("permute names every dimension once", "write permute(1, 0)")
        return shaping.permuted(self.space, x, places)

    def unsqueezed(self, x: TextValue, place: int) -> TextValue:
        return shaping.relaid(x, (*x.dims[:place], None, *x.dims[place:]))

    def apart(self, x: TextValue, dim: int, count: Expr) -> TextValue:
        space, axis = self.space, x.dims[dim]
        rest = space.whole(space.size(axis) / count)
        if rest is None:
            problem = f"{space.size(axis)} is not known to be a multiple of {count}"
            raise Refusal(problem, "give the axis a size that is a multiple of it")
        into = [space.axis_of(count, x.axes)]
        into.append(space.axis_of(rest, {*x.axes, *into} - {None}))
        e = x.expression
        if None not in into:
            e = Unflatten.over(e, [axis], into)
        elif axis in axes_of(e):
            e = broadcasting.placed(space, e, {axis: next(a for a in into if a is not None)})
        return replace(x, expression=e, dims=(*x.dims[:dim], *into, *x.dims[dim + 1 :]))

    def together(self, x: TextValue, dim: int) -> TextValue:
        space, parts = self.space, x.dims[dim : dim + 2]
        e, whole = x.expression, next((a for a in parts if a is not None), None)
        if None not in parts:
            length = space.size(parts[0]) * space.size(parts[1])
            whole = space.axis_of(length, {*x.axes} - {*parts})
            e = Flatten.over(e, parts, [whole])
        return replace(x, expression=e, dims=(*x.dims[:dim], whole, *x.dims[dim + 2 :]))

    def squeezed(self, x: TextValue, places: Sequence[int]) -> TextValue:
        return shaping.relaid(x, (a for i, a in enumerate(x.dims) if a or i not in places))

    def part(self, x: TextValue, dim: int, start, stop, step: int = 1) -> TextValue:
        space, axis, e = self.space, x.dims[dim], x.expression
        size = space.size(axis)
        ends = [size + n if n.is_negative else n for n in (start, size if stop is None else stop)]
        run = run_of(space, axis, (*ends, step), {*x.axes} - {axis})
        if axis in axes_of(e) and run.index != Position(axis):
            e = space.read_at(e, axis, run.index)
        return space.seen(x, e, (*x.dims[:dim], run.axis, *x.dims[dim + 1 :]))

    def entry(self, x: TextValue, dim: int, index: Expr) -> TextValue:
        behind = index - self.space.size(x.dims[dim])
        index = behind if behind.is_negative and not index.is_Integer else index
        return taken(self.space, x, [":"] * dim + [EntryIndex(index)])

    def windows(self, x: TextValue, dim: int, sizes: tuple, index: tuple, fill=0) -> TextValue:
        space, (length, inside), (step, hole, start) = self.space, sizes, index
        space.by_position = True
        rounded = [n for n in length.atoms(floor) if (length - n).is_Integer]
        length = floor(rounded[0].args[0] + length - rounded[0]) if rounded else length
        space.need(length, 1)
        old, within = x.dims[dim], space.axis_of(inside, x.axes)
        to = space.axis_of(length, {*x.axes, within} - {old, None})
        terms = (n * Position(a) for n, a in ((step, to), (hole, within)) if a is not None)
        at, fill = sum(terms, start), self.value(fill).expression
        storage, x = x.storage, reread(space, x, dim, to, at, fill)
        if old is None and at != 0:
            x = replace(x, expression=chosen((x.expression, Eq(at, 0)), (fill, True)))
        return replace(x, dims=(*x.dims, within), storage=storage)

    def flipped(self, x: TextValue, dim: int) -> TextValue:
        return read_along(self.space, x, dim, reversed_along)

    def joined(self, values: Sequence[TextValue], dim: int) -> TextValue:
        return joining.cat(self.space, values, dim)

    def stacked(self, values: Sequence[TextValue], dim: int) -> TextValue:
        return joining.stack(self.space, values, dim)

    def reshaped(self, x: TextValue, sizes: Sequence[Expr]) -> TextValue:
        return reshaping.reshaped(self.space, x, sizes, self.row.names[0])

    def expanded(self, x: TextValue, sizes: Sequence[Expr]) -> TextValue:
        return shaping.expanded_to(self.space, x, sizes, self.row.names[0])

    def copied(self, x: TextValue) -> TextValue:
        return replace(x, storage=None)

    def read(self, x: TextValue, dim: int, length: Expr, step, offset, fill=0) -> TextValue:
        axis, fill = x.dims[dim], self.value(fill).expression
        fill = MINUS_INFINITY if fill == -oo else fill
        if not (fill.is_number or fill == MINUS_INFINITY):
            raise Refusal("the padding value is not a number", "write F.pad(x, (1, 0))")
        self.space.need(length, 1)
        new = self.space.axis_of(length, {*x.axes} - {axis})
        index = offset + (S.Zero if new is None else step * Position(new))
        if axis is not None:
            return reread(self.space, x, dim, new, index, fill)
        e = x.expression
        if new is not None or index != 0:
            e = Piecewise((e, Eq(index, 0)), (fill, True))
        dims = (*x.dims[:dim], new, *x.dims[dim + 1 :])
        return self.space.made(e, dims, x.extent.inside(), **held_as(x.dtype))

    def written(self, x: TextValue, dim: int, part: tuple, values: TextValue) -> TextValue:
        low, high, step = part
        items = [":"] * dim + [WrittenSlice(low, high, Integer(step))]
        return put(self.space, x, items, values, False)

    def compared(self, relation: str, x, y) -> TextValue:
        def build(p: Expr, q: Expr) -> Expr:
            return chosen((1, related(RELATIONS[relation], p, q)), (0, True))

        return broadcasting.pointwise(self.space, build, [*map(self.value, (x, y))], dtype=BOOL)

    def extremes(self, values: TextValue, indices: TextValue | None) -> Extremes:
        return Extremes(values, indices)

    def on_diagonal(self, x: TextValue) -> TextValue:
        one = x.dims[-1]
        if one is None:
            return self.unsqueezed(x, x.rank)
        other = self.space.twin(one, x.axes)
        e = Identity.between(one, other) * x.expression
        return self.space.made(e, (*x.dims, other), x.extent.inside(), **held_as(x.dtype))

    # Sizes

    def shape(self, x: TextValue) -> list[Expr]:
        return [self.space.size(axis) for axis in x.dims]

    def same(self, one: Expr, other: Expr) -> bool:
        return self.space.same(one, other)

    def known(self, size: Expr) -> int | None:
        size = in_sizes(self.space.definition, size)
        return int(size) if size.is_Integer else None

    def divided(self, size: Expr, by: Expr) -> Expr:
        whole = self.space.whole(cancel(self.space.exactly(size) / self.space.exactly(by)))
        if whole is None:
            raise Refusal(
                f"{size} is not known to be a multiple of {by}",
                f"slice it: x[..., : {size} // {by}]",
            )
        return whole

    def divided_up(self, size: Expr, by: Expr) -> Expr:
        return self.space.rounded(ceiling(size / by).simplify())

    def need(self, length: Expr, least: int) -> None:
        self.space.need(length, least)

    # Entries by their index

    def hots(self, index: TextValue, x: TextValue, dim: int) -> TextValue:
        index = picking.indices(index, "the index")
        axis = self.space.twin(picking.axis_met(x.dims[dim], x), index.axes)
        e, whole = picking.hot(index.expression, axis), self.row.gives == INT
        whole = whole or (self.row.gives == KEPT and x.dtype != FLOAT)
        return self.space.made(e, (*index.dims, axis), index.extent.inside(), whole=whole)

    def source(self, x: TextValue, value) -> TextValue:
        if isinstance(value, TextValue) and value.kind != NUMBER and x.dims and not value.dims:
            raise Refusal("a tensor without dimensions is written into", "write a number: s.item()")
        return source_of(self.space, x, self.value(value))

    def identity(self, x: TextValue, one: int, other: int) -> TextValue:
        axes = x.dims[one], x.dims[other]
        dims = [axis if i in (one, other) else None for i, axis in enumerate(x.dims)]
        e: Expr = Integer(1)
        if None not in axes and self.space.size(axes[0]) == self.space.size(axes[1]):
            e = Identity.between(*axes)
        elif any(axes):
            places = [Integer(0) if axis is None else Position(axis) for axis in axes]
            e = Piecewise((1, Eq(*places)), (0, True))
        whole = self.held == INT or (self.into is not None and self.into.dtype != FLOAT)
        return self.space.made(e, tuple(dims), Extent(), whole=whole)

    def picked(self, x: TextValue, dim: int, index: TextValue) -> TextValue:
        if index.kind != COUNT:
            return picking.gathered(self.space, x, number(dim), index)
        (axis,) = index.axes
        there = TextValue(Position(axis), index.dims, whole=True)
        formula = lambda x, i, k: where(equal(i, k), x, 0)  # noqa: E731
        return self.sum(self.each(formula, x, self.position(x, dim), there), dim, True)

    def selected(self, x: TextValue, dim: int, index: TextValue) -> TextValue:
        """Move the dimension to the front, index it, and move the result back."""
        index = picking.indices(index, "the index")
        front = [dim, *(i for i in range(x.rank) if i != dim)]
        found = picking.picked(self.space, self.permuted(x, front), [index])
        n = index.rank
        back = [*range(n, n + dim), *range(n), *range(n + dim, found.rank)]
        return self.permuted(found, back)

    def counted(
        self, labels: TextValue, ignored, losses: TextValue
    ) -> tuple[TextValue | None, TextValue]:
        space = self.space
        read = {str(label) for label in labels.expression.atoms(Tensor)}
        own = [i.default for i in space.definition.ignoring if str(i.label) in read]
        is_own = isinstance(ignored, TextValue) and ignored.kind == IGNORED
        number = self.value(ignored).expression
        if not is_own and number not in own and (own or number.is_nonnegative is not False):
            problem = f"labels equal to {number} are ignored here, but not in the forward"
            raise Mismatch(problem, f"its own is {own[0]}" if own else "leave out ignore_index")
        if not own:
            return None, losses
        kept = space.made(picking.kept_of(space, labels), labels.dims, labels.extent.inside())
        return kept, self.each(lambda k, e: k * e, kept, losses)

    def position(self, x: TextValue, dim: int) -> TextValue:
        axis = x.dims[dim]
        if axis is None:
            return number(0)
        return TextValue(Position(axis), (axis, *(None,) * (x.rank - dim - 1)), whole=True)

    # Creation

    def counting(self, size: Expr) -> TextValue:
        self.space.need(size, 1)
        return TextValue(Integer(0), (self.space.axis_of(size),), COUNT)

    def filled(self, shape: Sequence[Expr], value: Any) -> TextValue:
        dims: tuple = ()
        for size in shape:
            dims += (self.space.axis_of(size, filter(None, dims)),)
        known = self.into or (value if isinstance(value, TextValue) else None)
        held = self.held or (known.dtype if known else FLOAT)
        return making.filled_with(self.space, dims, self.value(value), held)

    def like(self, x: TextValue, value: Any) -> TextValue:
        return making.filled_with(self.space, x.dims, self.value(value), self.held or x.dtype)

    def expect(self, x: TextValue, dims: Sequence[int], sizes: Sequence[Expr]) -> None:
        own = [self.space.size(x.dims[i]) for i in dims]
        if not all(map(self.space.same, own, sizes)):
            problem = f"{self.row.names[0]} of the shape {x.shape}: {shown_sizes(own)}"
            self.misfit(f"{problem} meets {shown_sizes(sizes)}", "write x.shape[-1:]")

    def changed(self, *values: TextValue | None) -> None:
        if any(x is not None for x in values):
            problem = f"{self.row.names[0]} writes into its running statistics"
            raise Refusal(problem, "pass None for them, and write their update as statements")

    def misfit(self, problem: str, remedy: str):
        raise Mismatch(problem, remedy)

    def refuse(self, problem: str, remedy: str):
        raise Refusal(problem, remedy)


def shown_sizes(sizes: Sequence[Expr]) -> str:
    return ", ".join(map(str, sizes))


# Arguments


def _dims(space: Space, x: TextValue, dims) -> tuple[int, ...] | None:
    if dims is None:
        return None
    named = dims if isinstance(dims, tuple) else (dims,)
    named = tuple(number(dim) if isinstance(dim, int) else dim for dim in named)
    return tuple(entries.positions(space, x, named))


def _order(p) -> int | float:
    if p is None or p == "fro":
        return 2
    e = p.expression if isinstance(p, TextValue) else None
    if e is None or not e.is_number:
        raise Refusal("the order of a norm is a number", "write 2, or leave it out")
    return int(e) if e.is_Integer else float(e)


def _whole(value, name: str):
    if isinstance(value, int):  # a default
        return Integer(value)
    return value if isinstance(value, Expr) else along.whole_number(value, name)


def _number(value, name: str) -> Expr:
    if isinstance(value, Expr):
        return value
    if (
        isinstance(value, TextValue)
        and value.kind == NUMBER
        and is_number_or_size(value.expression)
    ):
        return value.expression
    raise Refusal(f"{name} is not a number", "write a number, or x.shape[0]")


def given(space: Space, row: Op, bound: inspect.BoundArguments) -> tuple[list, dict]:
    """The arguments, converted to the kinds of the row."""
    found = [x[0] if isinstance(x, tuple) and x else x for x in bound.arguments.values()]
    first = next((x for x in found if isinstance(x, TextValue)), None)
    place, keywords = [], {}
    for parameter in row.arguments:
        if parameter.name not in bound.arguments:
            continue
        value = bound.arguments[parameter.name]
        kind, _, may_be_none = parameter.annotation.partition(" | ")
        found = _of_kind(space, first, kind, value, (row, parameter, bool(may_be_none)))
        if parameter.kind is parameter.VAR_POSITIONAL:
            place += found
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = found
        else:
            place.append(found)
    return place, keywords


ARRAYS, PLACES = ("Tensor", "Number", "AnyTensor"), ("Dim", "NewDim", "Dims")
SIZES = ("Size", "Sizes", "Parts", "Axes")


def _of_kind(space: Space, x: TextValue, kind: str, value, of) -> Any:
    row, parameter, may_be_none = of
    if value is None and may_be_none:
        return None
    if kind == "DimOrTensor":
        kind = "Tensor" if isinstance(value, TextValue) and value.kind != NUMBER else "Dim"
    if parameter.kind is parameter.VAR_POSITIONAL:
        value = shaping.flat(value)
    if kind in ARRAYS:
        return _array(row, parameter, kind, value)
    if kind in PLACES:
        return _places(space, x, kind, value)
    if kind in SIZES:
        return _sizes(row, parameter, kind, value)
    return _word(row, parameter, kind, value)


def _wrong(row: Op, what: str) -> Refusal:
    return Refusal(f"{row.names[0]}: {what}", f"supported is {usage(row)}")


def _array(row: Op, parameter: inspect.Parameter, kind: str, value) -> Any:
    if not isinstance(value, TextValue):
        if kind == "Number" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return value  # a default
        what = f"{parameter.name} is {entries.described(value)}, not a tensor or a number"
        raise _wrong(row, what)
    if row.of == "number" and kind == "Tensor":
        numbers(value, row.names[0])
    checked = row.of == FLOAT and value.kind != NUMBER
    return floats(value, row.names[0]) if checked and kind == "Tensor" else value


def _places(space: Space, x: TextValue, kind: str, value) -> Any:
    if isinstance(value, (bool, str)):
        raise Refusal(f"{value} is not a dimension", "dimensions are counted from 0, or from -1")
    if kind == "Dims":
        return _dims(
            space, x, value if value is None or isinstance(value, TextValue) else tuple(value)
        )
    value = number(value) if isinstance(value, int) else value
    return position(space, x, value, extra=int(kind == "NewDim"))


def _sizes(row: Op, parameter: inspect.Parameter, kind: str, value) -> Any:
    name = parameter.name
    if kind == "Axes" and isinstance(value, tuple):
        return tuple(_sizes(row, parameter, "Sizes", each) for each in value)
    if not isinstance(value, tuple):
        found = _whole(value, name)
        return (found,) if kind == "Sizes" else found
    several = parameter.kind is parameter.VAR_POSITIONAL
    nested = any(isinstance(size, tuple) for size in value)
    if kind in ("Size", "Axes") or nested or (several and None in value):
        raise _wrong(row, f"{name} is {entries.described(value)}")
    return tuple(size if size is None else _whole(size, name) for size in value)


def _word(row: Op, parameter: inspect.Parameter, kind: str, value) -> Any:
    name = parameter.name
    if kind == "Default":
        if value != parameter.default:
            problem = f"{row.names[0]}: {name} is not supported"
            raise Refusal(problem, f"leave it at {parameter.default}")
        return value
    if kind == "Tensors":
        if not isinstance(value, tuple) or not all(isinstance(x, TextValue) for x in value):
            raise _wrong(row, f"{name} are not tensors")
        return value
    if kind == "Numbers" and not isinstance(value, str):
        values = value if isinstance(value, tuple) else (value,)
        return tuple(_number(v, name) for v in values)
    if kind == "Numbers" and "Word" not in parameter.annotation:
        raise _wrong(row, f"{name} is text")
    if kind == "Flag":
        return truth(value, name)
    if kind == "Order":
        return value if isinstance(value, (int, float)) else _order(value)
    if not isinstance(value, str) or (kind == "Reduction" and value not in REDUCTIONS):
        raise _wrong(row, f"{name} is not text")
    return value


def usage(row: Op) -> str:
    return entries.usage(row.names[0], inspect.signature(row.meaning))


def operation_of(row: Op) -> Operation:
    """The row as an entry in the reader's vocabulary."""
    signature = inspect.signature(row.meaning)

    def compute(space: Space, *arguments, dtype=None, device=None, **keywords):
        keywords = {k: v for k, v in keywords.items() if k not in STORAGE}
        if "unbiased" in signature.parameters and arguments[1:] and isinstance(arguments[1], bool):
            arguments, keywords = arguments[:1], {**keywords, "unbiased": arguments[1]}
        several = next((p.name for p in row.arguments if p.kind is p.VAR_POSITIONAL), None)
        if several in keywords:
            arguments = (*arguments, keywords.pop(several))
        bound = signature.bind(None, *arguments, **keywords)
        bound.apply_defaults()
        held, first = None, next((x for x in arguments if isinstance(x, TextValue)), None)
        if dtype is not None or device is not None:
            default = FLOAT if first is None or first.kind == NUMBER else first.dtype
            held = asked(dtype, default, device)
            if not row.makes:
                if first is None:
                    raise Refusal(
                        f"{row.names[0]}: a dtype without a tensor", f"supported is {usage(row)}"
                    )
                bound.arguments["input"] = converted(space, first, held)
        place, named = given(space, row, bound)
        try:
            into = bound.arguments.get("input")
            into = into if isinstance(into, TextValue) and into.kind != NUMBER else None
            return row.meaning(Formulas(space, row, held, into), *place, **named)
        except (IndexError, ZeroDivisionError):  # of an unknown dimension
            shapes = " and ".join(
                x.shape for x in (*place, *named.values()) if isinstance(x, TextValue)
            )
            problem = f"{row.names[0]} of the shape {shapes}"
            raise Mismatch(problem, "it needs more dimensions") from None

    more = [inspect.Parameter(w, inspect.Parameter.KEYWORD_ONLY, default=None) for w in STORAGE]
    compute.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])
    compute.row = row
    return Operation(compute, row.forms)


PRIVATE = ("_", "special_", "linalg_", "F_", "Tensor_")  # prefixes of ATen-only names
OPERATIONS = {name: operation_of(row) for name, row in table.items()}
shared = {
    name: o
    for name, o in OPERATIONS.items()
    if not name.startswith(PRIVATE) and name not in o.compute.row.also
}


def within(module: str) -> dict[str, Operation]:
    """The functions of a torch module such as torch.special, by name."""
    start = f"{module}_"
    return {name.removeprefix(start): o for name, o in OPERATIONS.items() if name.startswith(start)}
