"""The rows of a table of kernels: which kernels and which lines of torch compute a function, from
what, and what they make.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from codegen.program import NUMBERS, Function
from codegen.program.parts import is_number, is_wide, values_in
from codegen.program.steps import AddAt, Assign, Fill, NotZero, Step
from codegen.program.values import Load, Number
from codegen.schedule.at_once import is_refused
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.row import Axes, Called, Line, Row, Same, names_of, renamed, takes
from codegen.targets.tables.sizes import Sizes
from codegen.targets.torch.page import Page
from derive.language.errors import QuestionError
from derive.notation.layout import Layout


@dataclass(frozen=True)
class Loops:
    """A function with what computes it. ``divisor`` are the axes whose sizes, multiplied, are the
    number that is the last one of the ``flat``, if it has one more than the function.
    """

    function: Function
    flat: Flat
    pieces: Sequence[Kernel | Whole]
    divisor: tuple[str, ...] | None = None


class Rows:
    """Writes the rows of one pair of forward and backward."""

    def __init__(self, page: Page):
        self.page, self.program = page, page.program

    def row(self, loops: Loops, word: str, function: str, saved: Sequence[str] = ()) -> Row:
        return _Writing(self, loops).row(word, function, saved)


class _Writing:
    def __init__(self, rows: Rows, loops: Loops):
        self.function, self.flat, self.pieces = loops.function, loops.flat, loops.pieces
        self.divisor = loops.divisor
        self.codes, self.fixed = dict(rows.program.sizes), dict(rows.program.fixed)
        self.derived = rows.program.derived
        self.printer = rows.page.printer(self.function)
        self.layouts = {**self.flat.layouts}
        for name, node in self.flat.results:
            if name in self.flat.layouts:
                self.layouts.setdefault(node, self.flat.layouts[name])
        for piece in self.pieces:
            if isinstance(piece, Whole):
                loads = values_in(Assign(piece.name, piece.value))
                for value in (value for value in loads if isinstance(value, Load)):
                    self.layouts.setdefault(value.name, value.dims)
        self.tensors = {p.name: self.axes(p.layout) for p in self.function.tensors}
        for array in self.flat.arrays:  # such as a sum that has no statement of its own
            if self.tensors.get(array.name) == ():
                self.tensors[array.name] = self.sizes_of(array.axes)
        self.shapes = {**self.tensors}
        self.filled: dict[str, str] = {}
        numbers = {p.name for p in self.function.parameters if p.role in NUMBERS}
        self.known: dict[str, Assign] = {}  # numbers, which lines of libraries may take
        for step in self.function.steps:
            if isinstance(step, Assign) and is_number(step.value, numbers | self.known.keys()):
                self.known[step.name] = step

    def row(self, word: str, function: str, saved: Sequence[str]) -> Row:
        before = [s for s in map(self.before, self.function.steps) if s is not None]
        steps = [*before, *(step for piece in self.pieces for step in self.piece(piece))]
        steps = self.renamed([*self.numbers(steps), *steps])
        whole = {p.name for p in self.function.tensors if p.role == "label"}
        whole |= {a.name for a in self.flat.arrays if a.entries == "whole"} & {*self.tensors}
        steps = [*self.sizes(steps), *steps]
        row = Row([word], function, steps, self.shapes, self.filled, whole, tuple(saved))
        row.of_library = any(isinstance(piece, Whole) for piece in self.pieces)
        if self.divisor is not None:
            row.divisor = self.flat.scalars[-1]
            row.divisors = [" * ".join(self.codes[axis] for axis in self.divisor) or "1"]
        return row

    # -- steps ------------------------------------------------------------------

    def before(self, step: Step) -> Line | None:
        """What is asked, and filled in, before anything is computed."""
        if isinstance(step, Assign | AddAt) or (isinstance(step, NotZero) and not is_refused(step)):
            return None
        number = step.value.operand if isinstance(step, Fill) else None
        if isinstance(number, Number) and not is_wide(number):
            self.filled[step.name] = self.printer.text(number)
            return None
        return self.line(self.printer.step(step))

    def numbers(self, steps: Sequence[Line | Called]) -> list[Line]:
        """Those of the function that lines take."""
        lines = [step for step in steps if isinstance(step, Line)]
        taken = {name for line in lines for name in line.takes}
        made = {name for line in lines for name in line.makes}
        found: list[Line] = []
        for name, step in reversed(self.known.items()):
            if name in taken & made:
                raise QuestionError(f"kernels have another number called {name}", "rename it")
            if name in taken:
                found.insert(0, self.line(self.printer.step(step)))
                taken |= {*found[0].takes}
        return found

    def piece(self, piece: Kernel | Whole) -> Iterator[Line | Called]:
        if isinstance(piece, Whole):
            line = self.line(self.printer.step(Assign(piece.name, piece.value)))
            yield replace(line, makes=(piece.name,))
            return
        yield from piece.before
        self.shapes |= {name: self.shape(name) for name in piece.writes}
        yield Called(piece.name, piece.reads, piece.sizes, piece.scalars, piece.writes)

    def line(self, text: str) -> Line:
        """Every name in it that is not made by itself is taken, if it is one of the function's."""
        made: dict[str, None] = {}
        takes: dict[str, None] = {}
        for tree in _in_order(ast.parse(textwrap.dedent(f"    {text}")).body):
            names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
            loaded = (n.id for n in names if isinstance(n.ctx, ast.Load))
            takes |= dict.fromkeys(name for name in loaded if name not in made)
            made |= dict.fromkeys(n.id for n in names if isinstance(n.ctx, ast.Store))
        return Line(tuple(made), tuple(n for n in takes if n in self.names), text)

    @property
    def names(self) -> set[str]:
        names = {p.name for p in self.function.parameters} | {*self.codes.values(), *self.known}
        for piece in self.pieces:
            names |= {piece.name} if isinstance(piece, Whole) else {*piece.writes, *piece.reads}
        return names | {name for name, _ in self.function.sizes}

    def shape(self, name: str) -> Axes:
        if name in self.layouts:
            return self.axes(self.layouts[name])
        return self.sizes_of(next(node for node in self.flat.nodes if node.name == name).axes)

    def sizes_of(self, axes: Axes) -> Axes:
        return tuple(self.codes[axis] for axis in axes)

    def axes(self, layout: Layout) -> Axes:
        return tuple("1" if dim.one else self.codes[dim.axis.name] for dim in layout)

    def renamed(self, steps: list[Line | Called]) -> list[Line | Called | Same]:
        """What is a result is called as that."""
        made = {name for step in steps if isinstance(step, Called) for name in step.makes}
        taken = {name for step in steps for name in names_of(step)}
        fixed = taken | {result for result, _ in self.flat.results}
        new, same = {}, []
        for result, name in self.flat.results:
            if result == name:
                continue
            if name in made - fixed - new.keys() and result not in self.names | taken:
                new[name] = result
            elif name in self.names:
                same.append(Same(result, new.get(name, name)))
        self.shapes = {new.get(name, name): axes for name, axes in self.shapes.items()}
        return [*(renamed(step, new) for step in steps), *same]

    # -- sizes --------------------------------------------------------------------

    def sizes(self, steps: Sequence[Line | Called | Same]) -> list[Line | Same]:
        """What finds out the sizes that stand in no shape of what the steps take anyway."""
        needed = self.needed(steps)
        given = {n: axes for n, axes in self.tensors.items() if not self._optional(n)}
        numbers = {p.name for p in self.function.parameters if p.role in NUMBERS}
        known = {axis for axes in given.values() for axis in axes} | numbers | {*self.fixed}
        lines: list[Line] = []
        for name, value in reversed(self.function.sizes):
            if name in needed - known:
                lines.insert(0, self.line("\n    ".join(self.printer.size_lines(name, value))))
                needed |= {*lines[0].takes}
                known |= {name}
        for text in self.others(sorted(needed - {*self.tensors}), known):
            lines.append(self.line(text))
            needed |= {*lines[-1].takes}
        taken = {name for step in (*lines, *steps) for name in takes(step)}
        there = {a for n, axes in given.items() if n in taken for a in axes} | numbers
        missing = needed - there - {*self.fixed} - {n for line in lines for n in line.makes}
        named = []
        for name, axes in given.items():
            if missing & {*axes}:
                named.append(Same("", name))
                missing -= {*axes}
        return [*named, *lines]

    def needed(self, steps: Sequence[Line | Called | Same]) -> set[str]:
        codes, made = {*self.codes.values()}, {n for s in steps for n in names_of(s)}
        shapes = [self.shapes[n] for s in steps if isinstance(s, Called) for n in s.makes]
        shapes += [self.shapes[n] for n in self.filled]
        found = {axis for axes in shapes for axis in axes} | made
        found |= {n for s in steps if isinstance(s, Called) for n in s.sizes}
        found |= {self.codes[axis] for axis in self.divisor or ()}
        return found.union(dict(self.flat.results).values()) & codes

    def others(self, needed: Iterable[str], known: set[str]) -> list[str]:
        parts = {
            self.codes[whole]: [self.codes[axis] for axis in axes]
            for whole, axes in self.flat.parts.items()
            if whole in self.codes
        }
        try:
            return Sizes(dict(self.derived), known, parts).lines(needed)
        except KeyError as error:
            raise QuestionError(
                f"{self.function.name}: kernels need the size {error.args[0]} of an argument",
                "leave --target out",
            ) from None

    def _optional(self, name: str) -> bool:
        return any(p.name == name and p.default is not None for p in self.function.parameters)


def _in_order(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """What is computed, one after the other: also in a loop."""
    for statement in statements:
        if isinstance(statement, ast.For):
            yield from (statement.iter, statement.target)
            yield from _in_order(statement.body)
        else:
            yield statement
