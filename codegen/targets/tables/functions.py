"""Which functions of a module run on kernels, and what computes each of them: a pair, parts of its
backward, a loss at once with its gradients, a pair that keeps less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from codegen.program import Function, Program
from codegen.reduced import in_order, merged
from codegen.schedule.at_once import at_once
from codegen.schedule.divided import divided
from codegen.schedule.flattening import flat
from codegen.schedule.lean import Lean, lean
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.row import Row, Same, with_names
from codegen.targets.tables.rows import Loops, Rows
from codegen.targets.torch.page import Page
from derive.language.errors import QuestionError

MOST = 3  # gradients of which each alone has a kernel too: with more there is one for all but x


@dataclass
class Written:
    """All that is written of a forward."""

    kernels: list[Kernel] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(self, loops: Loops, row: Row) -> None:
        """Two kernels that do the same, such as for gradients of which one is a product of matrices
        behind it, are one.
        """
        names = {}
        for kernel in (piece for piece in loops.pieces if isinstance(piece, Kernel)):
            same = next((k for k in self.kernels if k.does_the_same_as(kernel)), kernel)
            names[kernel.name] = same.name
            self.kernels += [kernel] * (same is kernel)
        row.call(names)
        if not any(known.takes_in(row) for known in self.rows):
            self.rows.append(row)


# Prints the kernels of a function: of its name, its nodes, the names of sizes by their axes, those
# of axes that stand for any number of dimensions, and results that a part of it may lack.
Prints = Callable[
    [str, Flat, Mapping[str, str], Sequence[str], Sequence[str]], Sequence[Kernel | Whole]
]


def functions_of(program: Program, prints: Prints) -> Written:
    """The functions of a module, those of each reduction where there is a choice. Raises
    `QuestionError` for what no loop computes.
    """
    written, whole = Written(), merged(program)
    every = dict(whole.reductions) or {"": program}
    pages = {word: Page(own) for word, own in every.items()}
    shorter = {word: page.plain for word, page in pages.items() if page.plain is not None}
    for word in in_order(whole) or ("",):
        for plain, own in (("", pages), ("plain", shorter)):
            if word in own:
                _PairWritten(written, prints, own, word, plain).write()
    return written


# A function of a pair, and its nodes; None where it has none of the kind.
Make = Callable[[Program], tuple[Function, Flat] | None]
Of = Callable[[Program], Function]  # a backward of it


class _PairWritten:
    """Writes the functions of one pair, that of the ``word`` among the ``pages`` of all reductions;
    ``plain``, if it is, for calls that pass nothing optional.
    """

    def __init__(
        self, written: Written, prints: Prints, pages: Mapping[str, Page], word: str, plain: str
    ):
        self.written, self.prints, self.rows = written, prints, Rows(pages[word])
        self.pairs = {word: page.program for word, page in pages.items()}
        self.pair, self.word, self.plain = self.pairs[word], word, plain
        self.gradients = self.pair.backward.results
        self.page = pages[word]
        self.guarded = self.page.guards_in(self.pair.backward)

    def write(self) -> None:
        """With a pair that keeps less there are no parts of the other backward, and nothing else
        calls the plain one.
        """
        losses = self.losses()
        kept = None if losses else self.keeping_less()
        if not (kept and self.plain):
            forward = self.loops("forward", lambda p: (p.forward, flat(p, p.forward)))
            if forward is not None:
                self.written.add(forward, self.row(forward, "forward"))
            self.backward("backward", lambda p: p.backward, self.guarded and not kept)
            for i, alone in enumerate(self.pair.alone):
                function = f"backward from {alone.parameters[0].name}"
                guarded = self.page.guards_in(alone)
                self.backward(function, lambda p, i=i: p.alone[i], guarded)
        for loops, row in (*losses, *(kept or ())):
            self.written.add(loops, row)

    def row(self, loops: Loops, function: str, of=(), saved: Sequence[str] = ()) -> Row:
        row = self.rows.row(loops, self.word, f"{self.plain} {function}".lstrip(), saved)
        row.of += of
        return row

    def backward(self, function: str, of: Of, some: bool) -> None:
        """All gradients, from all outputs or from one alone; and ``some`` of them, if they are."""
        gradients = of(self.pair).results
        parts = subsets(gradients) if some else []
        whole = self.loops(function, _backward(of), gradients if parts else ())
        if whole is not None:
            every = {part: _backward(of, part) for part in parts}
            for loops, row in self.with_parts(whole, function, every):
                self.written.add(loops, row)

    def with_parts(
        self,
        whole: Loops,
        function: str,
        parts: Mapping[tuple[str, ...], Make],
        saved: Sequence[str] = (),
    ) -> list[tuple[Loops, Row]]:
        """What computes all gradients, and ``parts`` of them: by the kernel of the whole if that
        can leave something out.
        """
        of, others = [], []
        kernels = [piece for piece in whole.pieces if isinstance(piece, Kernel)]
        for part, make in parts.items():
            if all(kernel.flags for kernel in kernels):
                made = {node for _, node in make(self.pair)[1].results}
                if any(made.intersection(kernel.writes) for kernel in kernels):
                    of.append(part)
                    whole = replace(whole, pieces=_with_part(whole.pieces, part, made))
                continue
            loops = self.loops(f"{function} of {' '.join(part)}", make)
            if loops is not None:
                others.append((loops, self.row(loops, f"{function} of {' '.join(part)}")))
        return [(whole, self.row(whole, function, of, saved)), *others]

    def losses(self) -> list[tuple[Loops, Row]]:
        """What computes the loss and its gradients at once."""
        every = self.gradients
        parts = {some: _at_once(some) for some in subsets(every) if at_once(self.pair, some)}
        whole = self.loops("loss", _at_once(every), every if parts else ())
        return [] if whole is None else self.with_parts(whole, "loss", parts)

    def keeping_less(self) -> list[tuple[Loops, Row]] | None:
        """The functions of a pair that keeps less; None where there is none, or where a kernel of
        it would lack a size.
        """
        found = lean(self.pair)
        if found is None:
            return None
        try:
            return self.lean(found)
        except QuestionError:
            return None

    def lean(self, found: Lean) -> list[tuple[Loops, Row]] | None:
        """The forward, the parts of the backward, and all of it."""
        forward = self.loops("lean forward", lambda p: (found.forward, found.flat_forward))
        parts = subsets(self.gradients) if self.guarded else []
        back = found.backward, found.flat_backward
        backward = self.loops("lean backward", lambda p: back, self.gradients if parts else ())
        if forward is None or backward is None:
            return None
        own: dict[tuple[str, ...], Make] = {}
        for part in parts:
            results = tuple(pair for pair in found.flat_backward.results if pair[0] in part)
            some = (
                replace(found.backward, results=part),
                replace(found.flat_backward, results=results),
            )
            own[part] = lambda p, some=some: some
        saved = tuple(p.name for p in found.backward.parameters[1:])
        rows = self.with_parts(backward, "lean backward", own, saved)
        first = self.row(forward, "lean forward")
        for name, handed in zip(found.forward.results[1:], saved, strict=True):
            if name != handed and not with_names([row for _, row in rows], {handed: name}):
                first.steps.append(Same(handed, name))
        return [(forward, first), *rows]

    def loops(self, function: str, make: Make, left_out: Sequence[str] = ()) -> Loops | None:
        """What computes a function, and some of the results ``left_out`` if they are wanted; None
        where there is no kernel in it.
        """
        made = make(self.pair)
        if made is None:
            return None
        own, found = made
        words, divisor = [self.word, self.plain, *function.split()], None
        alike = self.alike(found, make) if not function.startswith("lean") else None
        if alike is not None:
            found, divisor, words[0] = *alike, ""
        name = "_".join(word for word in words if word)
        open = dict.fromkeys(node for result, node in found.results if result in left_out)
        pair = self.pair
        pieces = self.prints(name, found, dict(pair.sizes), pair.several, [*open])
        if not any(isinstance(piece, Kernel) for piece in pieces):
            return None
        return Loops(own, found, pieces, divisor)

    def alike(self, own: Flat, make: Make) -> tuple[Flat, tuple[str, ...]] | None:
        """The nodes of all reductions that differ in a divisor alone, and the axes whose sizes it
        is for this one; None where this is not one of them.
        """
        flats = {word: made[1] for word, p in self.pairs.items() if (made := make(p)) is not None}
        taken = {name for f in flats.values() for name in (*f.scalars, *f.layouts)}
        taken |= {node.name for f in flats.values() for node in f.nodes}
        name = next(n for i in count() if (n := "divisor" + "_" * i) not in taken)
        for word, whole in flats.items():
            pairs = {w: divided(whole, f, name) for w, f in flats.items() if w != word}
            found = [one for one in pairs.values() if one is not None]
            if not found:
                continue
            first = found[0][0]
            if word == self.word:
                return replace(first, results=own.results, layouts=own.layouts), ()
            mine = pairs[self.word]
            return mine if mine is not None and mine[0].nodes == first.nodes else None
        return None


def _backward(of: Of, part: tuple[str, ...] = ()) -> Make:
    """A backward, or for a part of its results."""

    def make(pair: Program) -> tuple[Function, Flat]:
        function = replace(of(pair), results=part or of(pair).results)
        return function, flat(pair, function)

    return make


def _at_once(gradients: tuple[str, ...]) -> Make:
    return lambda pair: at_once(pair, gradients)


def _with_part(
    pieces: Sequence[Kernel | Whole], part: Sequence[str], made: set[str]
) -> list[Kernel | Whole]:
    return [p.with_part(part, made) if isinstance(p, Kernel) else p for p in pieces]


def subsets(results: Sequence[str]) -> list[tuple[str, ...]]:
    """Some of the gradients: what people ask for where they do not ask for all."""
    if len(results) < 2:
        return []
    alone = [(result,) for result in results] if len(results) <= MOST else []
    return list(dict.fromkeys([*alone, tuple(results[1:])]))
