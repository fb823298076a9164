"""The text of a kernel of tiles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.program import Function
from codegen.program.arrays import Arrange, Contract, Pick, Reduce
from codegen.program.steps import Step
from codegen.program.values import Load
from codegen.schedule.elements import (
    ZERO,
    Element,
    axes_in,
    choose,
    compare,
    index,
    is_number,
    is_whole,
)
from codegen.targets.tables.expressions import ALONE
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.wrapping import wrapped
from codegen.targets.triton.expressions import TritonExpressions, is_known_before
from codegen.targets.triton.names import TritonNames
from codegen.targets.triton.vocabulary import TRITON
from codegen.tiles.entries import TileEntries, indices, simple, where_it_holds
from codegen.tiles.records import Stored, TileBound, TileKernel, TileSum
from codegen.tiles.rows import reads_of
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout

CONDITIONS = ("compare", "and", "or", "not")
LOWEST = 'float("-inf")'
WORDS = ("begin", "end", "whole", "place", "begin_whole", "end_whole", "begin_all", "end_all")


class TileExpressions(TritonExpressions):
    """Entries of a tile, with its two axes in the order of the kernel; ``axes`` are those of each
    name, apart from the grid's.
    """

    def __init__(self, names: TritonNames, grid: Collection[str]):
        super().__init__(names)
        self.grid, self.wanted = grid, ()
        self.axes: dict[str, tuple[str, ...]] = {}
        self.computed: dict[Element, str] = {}  # the names of numbers
        self.raw: set[str] = set()  # are loaded in a dtype of their own

    def text(self, e: Element, level: int = 0) -> str:
        """Numbers made of others are computed before, in float64."""
        if e.kind != "scalar" and is_known_before(e):
            return self.computed.setdefault(e, self.names.free(f"number_{len(self.computed) + 1}"))
        return super().text(e, level)

    def of(self, e: Element, wanted: tuple[str, ...]) -> str:
        """The text of an entry of a value along these axes."""
        self.wanted = wanted
        return self.text(e)

    def placed(self, text: str, axes: tuple[str, ...]) -> str:
        if axes == self.wanted or not axes:
            return text
        if len(axes) == 1 and len(self.wanted) == 2:
            return f"{text}[{':, None' if axes[0] == self.wanted[0] else 'None, :'}]"
        raise QuestionError(f"tiles have no value along {axes} in {self.wanted}", "")

    def _entry(self, e: Element) -> str:
        places = [arg.name if arg.kind == "index" else "" for arg in e.args]
        axes = self.axes[e.name]
        if "" in places or {*places} - {*self.grid} != {*axes}:
            raise QuestionError(
                f"tiles have no read of {e.name} at another place", "leave --target triton out"
            )
        name = self.names.of(e.name)
        text = f"{name}.to(REAL)" if e.kind == "entry" and e.name in self.raw else name
        return self.placed(text, axes)

    _label = _entry

    def _index(self, e: Element) -> str:
        own = () if e.name in self.grid else (e.name,)
        return self.placed(self.names.index(e.name), own)

    def _divide(self, e: Element) -> str:
        """One division for each row, where rows have one divisor."""
        left, right = e.args
        there = axes_in(right) - {*self.grid}
        if len(self.wanted) == 2 and there < axes_in(left) and not is_number(right):
            own = self.LEVELS["multiply"]
            return f"{self.real(left, own)} * (1 / {self.real(right, own + 1)})"
        return self._joined(e)

    def _scalar(self, e: Element) -> str:
        return TRITON.named(e.name)

    def _real(self, e: Element) -> str:
        inner = e.args[0]
        if is_whole(inner) and axes_in(inner):
            return f"{self.text(inner, ALONE)}.to(REAL)"
        return super()._real(e)


class TileText:
    """The lines of one kernel. ``layouts`` are those of arrays and values; ``strided`` are the
    arrays that may lie in memory in any way.
    """

    def __init__(
        self,
        kernel: TileKernel,
        function: Function,
        layouts: Mapping[str, Layout],
        codes: Mapping[str, str],
        contiguous: Collection[str],
    ):
        self.kernel, self.layouts, self.codes = kernel, dict(layouts), codes
        self.loop, self.own = kernel.loop, kernel.own
        self.parameters = {p.name: p for p in function.parameters}
        self.made = {each.of: each for each in (*kernel.stored, *kernel.written)}
        self.reads = self._reads()
        numbers = [n for n, p in self.parameters.items() if p.role == "scalar"]
        own = {s.name for s in self._steps()}
        names = dict.fromkeys([*self.reads, *own, *(s.name for s in self.made.values())])
        self.names = TritonNames(names, numbers, codes)
        self.labels = {n for n, p in self.parameters.items() if p.role == "label"}
        self.entries = TileEntries(numbers, self.labels)
        self.print = TileExpressions(self.names, kernel.grid)
        self.print.raw = self._factors() & {*self.reads}
        self.print.axes = {n: self.axes(layouts[n]) for n in (*self.reads, *own) if n in layouts}
        self.scalars = numbers
        self.strided = [n for n in self.reads if n not in contiguous]
        self.contiguous = [n for n in self.reads if n in contiguous]
        self.inner = self._inner()
        self.apart = [n for n in self.reads if {*self.print.axes[n]} & {*kernel.long}]
        self.held = {s.name: self.names.free(f"{self.names.of(s.name)}_sum") for s in kernel.held}
        self.word = {word: self.names.free(word) for word in WORDS}
        self.first_program = self.names.free("first_program")
        self.strides = {
            (name, i): self.names.free(self._stride(name, i, dim))
            for name in self.strided
            for i, dim in enumerate(layouts[name])
        }
        self.in_sums = reads_of(replace(kernel, before=(), body=kernel.sums, after=()))
        self.conditions = [
            simple(self.entries.entry(b.condition, indices(b.condition.dims)))
            for b in kernel.bounds
        ]

    # -- names ---------------------------------------------------------------------------

    def _steps(self) -> Iterator[Step | TileSum]:
        yield from (*self.kernel.before, *self.kernel.body, *self.kernel.after)

    def _reads(self) -> list[str]:
        made = {step.name for step in self._steps()}
        numbers = {n for n, p in self.parameters.items() if p.role in ("scalar", "size", "index")}
        order = [*self.layouts]
        return sorted(reads_of(self.kernel) - made - numbers, key=order.index)

    def _factors(self) -> set[str]:
        """The operands of products, which stay in their dtype."""
        values = [getattr(step, "value", None) for step in self.kernel.body]
        products = [value for value in values if isinstance(value, Contract)]
        return {side.name for value in products for side in (value.left, value.right)}

    def axes(self, dims: Sequence[Dim]) -> tuple[str, ...]:
        """The axes of a value inside the kernel, in its order."""
        rank = {self.own: 0, self.loop: 1}
        names = [d.axis.name for d in dims if not d.one and d.axis.name not in self.kernel.grid]
        return tuple(sorted(names, key=lambda name: rank.get(name, 2)))

    def _inner(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for axes in self.print.axes.values():
            found |= dict.fromkeys(a for a in axes if a not in (self.own, self.loop))
            if len(axes) > 2:
                raise QuestionError(
                    f"tiles have no value along {axes}", "leave --target triton out"
                )
        return tuple(found)

    def size(self, axis: str) -> str:
        return self.names.size(axis)

    def block(self, axis: str) -> str:
        return f"BLOCK_{axis}"

    def place(self, axis: str) -> str:
        return self.names.index(axis)

    def _stride(self, name: str, i: int, dim: Dim) -> str:
        return f"{self.names.of(name)}_{i if dim.one else self.place(dim.axis.name)}"

    # -- arrays ----------------------------------------------------------------------------

    def step_along(self, name: str, axis: str) -> str:
        """The distance of two entries along an axis."""
        if name in self.strided:
            places = [d.axis.name for d in self.layouts[name]]
            return self.strides[name, places.index(axis)]
        stored = next((s for s in self.made.values() if s.name == name), None)
        dims = [d.axis.name for d in self.layouts[name] if not d.one]
        if stored is not None:
            dims = [*stored.more, *(d.axis.name for d in stored.dims if not d.one)]
        after = dims[dims.index(axis) + 1 :]
        return " * ".join(map(self.size, after)) or "1"

    def at_grid(self, name: str, dims: Sequence[str]) -> list[str]:
        """The line that moves a pointer to the program's place along the grid."""
        places = []
        for axis in self.kernel.grid:
            if axis in dims:
                step = self.step_along(name, axis)
                places.append(self.place(axis) if step == "1" else f"{self.place(axis)} * {step}")
        return [f"{self.names.of(name)}_ptr += {' + '.join(places)}"] if places else []

    def loaded(self, name: str) -> str:
        axes, pointer = self.print.axes[name], f"{self.names.of(name)}_ptr"
        own = self.names.of(name)
        real = "" if name in self.labels or name in self.print.raw else ".to(REAL)"
        if not axes:
            return f"{own} = tl.load({pointer}){real}"
        places = [self.place(a) for a in axes]
        steps = [self.step_along(name, a) for a in axes]
        sizes = [self.size(a) for a in axes]
        cuts = [
            "EDGE" if a == self.loop else "True" if a == self.own else self.is_cut(a) for a in axes
        ]
        called = "_tile" if len(axes) == 2 else "_row"
        return _call(f"{own} = {called}", [pointer, *places, *steps, *sizes, *cuts]) + real

    def is_cut(self, axis: str) -> str:
        return f"{self.size(axis)} != {self.block(axis)}"

    def rows_of(self, value: Load, axis: str, along: str) -> list[str]:
        """Rows of an array, of which the blocks along an axis are read one by one: where it lies,
        their places and number, both distances, and whether some are beyond its end.
        """
        name = value.name
        if name not in self.apart or {*self.print.axes[name]} != {axis, along}:
            raise QuestionError(
                f"tiles have no product of {name} along {along} in blocks",
                "leave --target triton out",
            )
        steps = [self.step_along(name, a) for a in (axis, along)]
        cut = "EDGE" if axis == self.loop else "True"
        return [f"{self.names.of(name)}_ptr", self.place(axis), *steps, self.size(axis), cut]

    def in_blocks(self, axis: str) -> list[str]:
        return [self.size(axis), self.block(axis), "NARROW", "PRECISION"]

    def stored_sum(self, each: Stored) -> list[str]:
        """The lines that store a sum that lies in memory of the program's own."""
        dims = [d.axis.name for d in each.dims if not d.one]
        (along,) = (a for a in dims if a in self.kernel.long)
        name, own = self.names.of(each.name), self.own
        steps = [self.step_along(each.name, a) for a in (own, along)]
        given = [f"{self.held[each.of]}_ptr", f"{name}_ptr", self.place(own), *steps]
        given += [self.size(own), self.size(along), self.block(along), self.block(own)]
        return [f"if {name}_ptr is not None:", *_inside([_call("_store_sum", given)])]

    def stored(self, each: Stored) -> list[str]:
        if each.of in self.held:
            return self.stored_sum(each)
        name, value = self.names.of(each.name), self.names.of(each.of)
        dims = [*each.more, *(d.axis.name for d in each.dims if not d.one)]
        axes = [a for a in (self.own, self.loop, *self.inner) if a in dims]
        places = [self.place(a) for a in axes]
        steps = [self.step_along(each.name, a) for a in axes]
        sizes = [self.size(a) for a in axes]
        called = "_store_tile" if len(axes) == 2 else "_store_row"
        line = _call(called, [f"{name}_ptr", value, *places, *steps, *sizes])
        return [f"if {name}_ptr is not None:", *_inside([line])]

    # -- lines -----------------------------------------------------------------------------

    def computed(self, step: Step) -> list[str]:
        """The lines of a value that is no sum."""
        value = getattr(step, "value", None)
        name, dims = step.name, self.layouts[step.name]
        target = self.names.of(name)
        wanted = self.print.axes[name]
        if isinstance(value, Contract):
            return [f"{target} = {self.product(value)}"]
        while isinstance(value, Arrange):
            value = value.operand
        if isinstance(value, Reduce):
            return [f"{target} = {self.row_sum(value)}"]
        element = self.entries.of_step(step, dims)
        if self.is_condition(element) and name not in (*self.in_sums, *self.made):
            self.entries.inlined[name] = step.value
            return []
        texts = [self.full(element, wanted)]
        if self.conditions and (free := where_it_holds(element, self.conditions)) != element:
            texts.append(self.full(free, wanted))
        if len(texts) == 1:
            return [f"{target} = {texts[0]}"]
        lines = [f"{target} = {text}" for text in texts]
        return ["if EDGE:", *_inside(lines[:1]), "else:", *_inside(lines[1:])]

    def is_condition(self, e: Element) -> bool:
        """True for what is true or false, or 1 or 0: it stands where it is read."""
        return e.kind in CONDITIONS or (
            e.kind == "choose" and all(arg.kind == "number" for arg in e.args[1:])
        )

    def full(self, e: Element, wanted: tuple[str, ...]) -> str:
        text = self.print.of(e, wanted)
        if is_number(e) and wanted:
            return f"tl.full([{', '.join(map(self.block, wanted))}], {text}, REAL)"
        return text

    def row_sum(self, value: Reduce) -> str:
        axes = self.axes(value.operand.dims)
        text = self.print.of(self.entries.of(value.operand, indices(value.operand.dims)), axes)
        inside = f"({self.place(axes[1])} < {self.size(axes[1])})[None, :]"
        return f"tl.sum(tl.where({inside}, {text}, 0.0), 1)"

    def product(self, value: Contract, addend: str = "") -> str:
        first, last = self.axes(value.dims)
        (summed,) = (a for a in value.summed if a not in self.kernel.grid)
        left, right = value.left, value.right
        if first not in self.print.axes[left.name]:
            left, right = right, left
        if summed in self.kernel.long:
            start = f"tl.zeros([{self.block(first)}, {self.block(last)}], REAL)"
            rows = [*self.rows_of(left, first, summed), *self.rows_of(right, last, summed)]
            return _call("_product", [start, *rows, *self.in_blocks(summed)])
        pair = self.factor(left, (first, summed)), self.factor(right, (summed, last))
        more = f", {addend}" if addend else ""
        return f"tl.dot({pair[0]}, {pair[1]}{more}, input_precision=PRECISION)"

    def factor(self, value: Load, wanted: tuple[str, str]) -> str:
        name, axes = self.names.of(value.name), self.print.axes[value.name]
        text = f"{name}.to(NARROW)"
        return text if axes == wanted else f"tl.trans({text})"

    def terms(self, each: TileSum) -> str:
        """The value of which a sum is taken, along both axes."""
        value = each.value
        operand = value.operand
        element = self.entries.of(operand, indices(operand.dims))
        if isinstance(value, Pick):
            at = indices(value.dims)
            along = operand.dims[value.along].axis.name
            place = self.entries.of(value.index, at)
            element = choose(compare(index(along), "==", place), element, ZERO)
        return self.full(element, self.axes(operand.dims))

    def summed(self, each: TileSum) -> list[str]:
        """The lines that add a tile to a sum, or to a maximum."""
        name = self.names.of(each.name)
        if each.kind == "largest":
            found = f"{name} = tl.maximum({name}, tl.max({self.terms(each)}, 1))"
            if not any(other.online == each.name for other in self.kernel.sums):
                return [found]
            moved = f"{name}_moved = rescaled({name}_before, {name})"
            return [f"{name}_before = {name}", found, moved]
        before, moved = name, "1.0"
        if each.online:
            power = -each.degree
            if power.denominator != 1 or power < 1:
                raise QuestionError(f"{each.name} has the degree {each.degree} of its maximum", "")
            moved = f"{self.names.of(each.online)}_moved"
            moved += "[:, None]" if len(each.axes) == 2 else ""
            moved = " * ".join([moved] * int(power))
            before = f"{name} * {moved}"
        if each.name in self.held:
            return self.added_product(each, moved)
        if isinstance(each.value, Contract):
            return [f"{name} = {self.product(each.value, before)}"]
        return [f"{name} = {before} + tl.sum({self.terms(each)}, 1)"]

    def added_product(self, each: TileSum, moved: str) -> list[str]:
        """The lines that add the product of a tile to a sum in memory."""
        value, along = each.value, each.axes[1]
        tile, rows = value.left, value.right
        if along in self.print.axes[tile.name]:
            tile, rows = rows, tile
        given = [f"{self.held[each.name]}_ptr", moved, self.factor(tile, (self.own, self.loop))]
        given += [*self.rows_of(rows, self.loop, along), *self.in_blocks(along), "REAL"]
        return self.where_wanted(each, [_call("_add_product", given)])

    def where_wanted(self, each: TileSum, lines: Sequence[str]) -> list[str]:
        name = self.names.of(self.made[each.name].name)
        return [f"if {name}_ptr is not None:", *_inside(lines)]

    def masked(self, each: TileSum, done: set[tuple[str, str]]) -> list[str]:
        """Lines that take the entries beyond the end out of what is summed."""
        value = each.value
        sides = (value.left, value.right) if isinstance(value, Contract) else (value.operand,)
        lines = []
        for side in sides:
            name = side.name
            if {*self.print.axes[name]} != {self.own, self.loop}:
                continue  # is loaded: 0 beyond the end
            other = LOWEST if each.kind == "largest" else "0.0"
            if (name, other) in done:
                continue
            done.add((name, other))
            own = self.names.of(name)
            inside = f"({self.place(self.loop)} < {self.size(self.loop)})[None, :]"
            lines.append(f"{own} = tl.where({inside}, {own}, {other})")
        return ["if EDGE:", *_inside(lines)] if lines else []

    # -- the kernel ------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """The whole kernel, from its arguments to what it stores."""
        kernel = self.kernel
        body = self._body()
        behind = [line for step in kernel.after for line in self._plain(step)]
        behind += [line for each in kernel.stored for line in self.stored(each)]
        before = [line for step in kernel.before for line in self._plain(step)]
        loaded = [n for n in self.reads if n not in self.apart]
        of_rows = [n for n in loaded if self.loop not in self.print.axes[n]]
        loads = [self.loaded(n).replace("EDGE", "True") for n in of_rows]
        starts = [line for each in kernel.sums for line in self._start(each)]
        arrays = [*self.strided, *self.contiguous]
        pointers = []
        for each in arrays:
            dims = [d.axis.name for d in self.layouts[each] if not d.one]
            pointers += self.at_grid(each, dims)
        for each in self.made.values():
            dims = [*each.more, *(d.axis.name for d in each.dims if not d.one)]
            line = self.at_grid(each.name, dims)
            pointers += [f"if {self.names.of(each.name)}_ptr is not None:", *_inside(line)] * bool(
                line
            )
        lines = [
            *self._program(),
            *pointers,
            *loads,
            *before,
            *starts,
            *self._loop(body),
            *behind,
        ]
        lines[:0] = self._found("\n".join(lines))
        signature = wrapped(f"def {name}", self._arguments(), ":")
        how = f'(do_not_specialize=("{self.first_program}",))' * bool(self.held)
        return "\n".join([f"@triton.jit{how}", signature, *(_fit(STEP + line) for line in lines)])

    def _plain(self, step: Step) -> list[str]:
        conditions, self.conditions = self.conditions, []
        lines = self.computed(step)
        self.conditions = conditions
        return lines

    def _program(self) -> list[str]:
        own, first = self.own, f"{self.place(self.own)}_first"
        tiles = f"tl.cdiv({self.size(own)}, {self.block(own)})"
        lines = [
            f"program = {f'{self.first_program} + ' * bool(self.held)}tl.program_id(0)",
            f"{first} = program % {tiles} * {self.block(own)}",
            f"{self.place(own)} = {first} + tl.arange(0, {self.block(own)})",
        ]
        grid = self.kernel.grid
        rest = f"(program // {tiles}).to(tl.int64)"
        if len(grid) == 1:
            lines.append(f"{self.place(grid[0])} = {rest}")
        elif grid:
            place = self.word["place"]
            lines.append(f"{place} = {rest}")
            for axis in grid[:0:-1]:
                lines.append(f"{self.place(axis)} = {place} % {self.size(axis)}")
                lines.append(f"{place} = {place} // {self.size(axis)}")
            lines.append(f"{self.place(grid[0])} = {place}")
        inner = [a for a in self.inner if a not in self.kernel.long]
        return [*lines, *(f"{self.place(a)} = tl.arange(0, {self.block(a)})" for a in inner)]

    def _start(self, each: TileSum) -> list[str]:
        shape = ", ".join(map(self.block, each.axes))
        name = self.names.of(each.name)
        if each.name in self.held:
            own, along = each.axes
            at = f"{self.held[each.name]}_ptr"
            return self.where_wanted(each, [
                f"{at} += tl.program_id(0) * ({self.block(own)} * {self.size(along)})",
                _call("_clear", [at, self.block(own), self.size(along), self.block(along)]),
            ])  # fmt: skip
        if each.kind == "largest":
            return [f"{name} = tl.full([{shape}], {LOWEST}, REAL)"]
        return [f"{name} = tl.zeros([{shape}], REAL)"]

    def _body(self) -> list[str]:
        lines, done = [], set()
        for name in self.reads:
            if self.loop in self.print.axes[name] and name not in self.apart:
                lines.append(self.loaded(name))
        for step in self.kernel.body:
            if isinstance(step, TileSum):
                lines += [*self.masked(step, done), *self.summed(step)]
            else:
                lines += self.computed(step)
                for each in self.kernel.written:
                    lines += self.stored(each) if each.of == step.name else []
        return lines

    def _loop(self, body: Sequence[str]) -> list[str]:
        loop = self.loop
        block, size, place = self.block(loop), self.size(loop), self.place(loop)
        first = f"{place}_first"
        inside = [f"{place} = {first} + tl.arange(0, {block})", *body]
        w = self.word
        begin, end, whole = w["begin"], w["end"], w["whole"]
        walk = [
            f"{STEP}for {first} in tl.range({begin}, {end}, {block}):",
            *_inside(_inside(inside)),
        ]
        if not self.kernel.bounds:
            return [
                f"{whole} = {size} // {block} * {block}",
                "for EDGE in tl.static_range(2):",
                f"{STEP}{begin} = {whole} if EDGE else 0",
                f"{STEP}{end} = {size} if EDGE else {whole}",
                *walk,
            ]
        parts = [w["begin_all"], w["begin_whole"], w["end_whole"], w["end_all"]]
        return [
            *self._limits(),
            "for PART in tl.static_range(3):  # at an edge, within, at the other edge",
            f"{STEP}{begin} = {_by_part(parts[:3])}",
            f"{STEP}{end} = {_by_part(parts[1:])}",
            *(re.sub(r"\bEDGE\b", "PART != 1", line) for line in walk),
        ]

    def _limits(self) -> list[str]:
        """Lines that find the tiles that add something, and those that lie within all bounds."""
        w, block, size = self.word, self.block(self.loop), self.size(self.loop)
        own, rows = f"{self.place(self.own)}_first", self.block(self.own)
        bounds = [self._bound(b) for b in self.kernel.bounds]
        upper = [text for is_upper, text in bounds if is_upper]
        lower = [text for is_upper, text in bounds if not is_upper]
        lines = [f"{w['begin_all']} = 0", f"{w['begin_whole']} = 0"]
        for text in lower:  # a position is at least that of the row, and this
            lines += [
                f"{w['begin_all']} = tl.maximum({w['begin_all']}, {own}{text})",
                f"{w['begin_whole']} = tl.maximum({w['begin_whole']}, {own} + {rows} - 1{text})",
            ]
        lines += [f"{w['end_all']} = {size}", f"{w['end_whole']} = {size}"]
        for text in upper:
            lines += [
                f"{w['end_all']} = tl.minimum({w['end_all']}, {own} + {rows}{text})",
                f"{w['end_whole']} = tl.minimum({w['end_whole']}, {own} + 1{text})",
            ]
        return [
            *lines,
            f"{w['begin_all']} = {w['begin_all']} // {block} * {block}",
            f"{w['begin_whole']} = tl.cdiv({w['begin_whole']}, {block}) * {block}",
            f"{w['begin_whole']} = tl.minimum({w['begin_whole']}, tl.maximum({w['end_all']}, 0))",
            f"{w['end_whole']} = tl.maximum({w['end_whole']}, 0) // {block} * {block}",
            f"{w['end_whole']} = tl.maximum({w['end_whole']}, {w['begin_whole']})",
        ]

    def _bound(self, bound: TileBound) -> tuple[bool, str]:
        """Whether it is an upper one, and the whole number that is the bound."""
        is_upper = bound.relation in ("<", "<=")
        text = ""
        parts = [self.entries.of(value, {}) for value, _ in bound.rest]
        for part, (_, minus) in zip(parts, bound.rest, strict=True):
            text += f" {'+' if minus else '-'} {self.print.of(part, ())}"
        text = text.strip().removeprefix("+ ") or "0"
        if any(e.kind not in ("number", "size") or not is_whole(e) for e in parts):
            rounded = "tl.floor" if is_upper else "tl.ceil"
            if bound.relation in ("<", ">"):
                rounded = "tl.ceil" if is_upper else "tl.floor"
            text = f"tl.minimum(tl.maximum({rounded}({text}), -1e9), 1e9).to(tl.int32)"
        strict = {"<": " - 1", ">": " + 1"}.get(bound.relation, "")
        return is_upper, f"{f' + ({text})' if text != '0' else ''}{strict}"

    def _arguments(self) -> list[str]:
        pointers = [f"{self.names.of(n)}_ptr" for n in (*self.strided, *self.contiguous)]
        pointers += [f"{self.names.of(each.name)}_ptr" for each in self.made.values()]
        pointers += [f"{name}_ptr" for name in self.held.values()]
        pointers += [self.first_program] * bool(self.held)
        strides = [*self.strides.values()]
        numbers = [f"{name}: tl.float64" for _, name in self.numbers]
        inner = [f"{self.size(a)}: tl.constexpr" for a in self.inner]
        blocks = [f"{self.block(a)}: tl.constexpr" for a in (self.own, self.loop, *self.inner)]
        others = [f"{name}: tl.constexpr" for name in ("REAL", "NARROW", "PRECISION")]
        return [
            *pointers,
            *strides,
            *(name for _, name in self.sizes),
            *numbers,
            *inner,
            *blocks,
            *others,
        ]

    def _found(self, text: str) -> list[str]:
        """Sets the ``sizes`` and ``numbers`` that the lines read, as (in Python, in the kernel),
        apart from the sizes that are known when it is compiled. The lines that convert the numbers.
        """
        inner = {self.codes[a] for a in self.inner}
        words = {*re.findall(r"\w+", text)}
        of_codes = {code: axis for axis, code in reversed(self.codes.items())}
        pairs = [(code, self.names.size(axis)) for code, axis in sorted(of_codes.items())]
        self.sizes = [(c, name) for c, name in pairs if name in words and c not in inner]
        pairs = [(name, TRITON.named(name)) for name in self.scalars]
        pairs += [(self.print.in_python(e), name) for e, name in self.print.computed.items()]
        self.numbers = [(code, name) for code, name in pairs if name in words]
        return [f"{name} = tl.full([], {name}, REAL)" for _, name in self.numbers]


def _by_part(names: Sequence[str]) -> str:
    return f"{names[0]} if PART == 0 else {names[1]} if PART == 1 else {names[2]}"


def _call(head: str, arguments: Sequence[str]) -> str:
    return f"{head}({', '.join(arguments)})"


def _inside(lines: Sequence[str]) -> list[str]:
    return [STEP + line for line in lines]


def _fit(line: str) -> str:
    own = line.lstrip()
    margin = line[: len(line) - len(own)]
    if own.startswith(("for ", "if ")):
        return line
    return margin + broken(own, margin)
