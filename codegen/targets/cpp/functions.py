"""Which functions of a module run on kernels, and what computes each of them: a pair, parts of its
backward, a loss at once with its gradients, a pair that keeps less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from codegen.program import Function, Program
from codegen.reduced import in_order, merged
from codegen.schedule.at_once import at_once
from codegen.schedule.flattening import flat
from codegen.schedule.lean import Lean, lean
from codegen.schedule.nodes import Flat
from codegen.targets.cpp.kernels import Kernel, kernels_of
from codegen.targets.cpp.rows import Loops, Row, Rows, Same, with_names
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
        self.rows.append(row)


def functions_of(program: Program) -> Written:
    """The functions of a module, those of each reduction where there is a choice. Raises
    `QuestionError` for what no loop computes.
    """
    written = Written()
    whole = merged(program)
    every = dict(whole.reductions) or {"": program}
    for word in in_order(whole) or ("",):
        one = every[word]
        ways = [("", one, Page(one))]
        if one.plain is not None:
            plain = ways[0][2].plain
            ways.append(("plain", plain.program, plain))
        for plain, pair, page in ways:
            _PairWritten(written, Rows(page, pair), whole, (word, plain)).write()
    return written


class _PairWritten:
    """Writes the functions of one pair of the ``whole`` program; ``words`` say which."""

    def __init__(self, written: Written, rows: Rows, whole: Program, words: Sequence[str]):
        self.written, self.rows, self.pair = written, rows, rows.program
        self.words = [word for word in words if word]
        self.inputs = whole.forward.parameters
        self.is_plain = bool(words[1])
        self.gradients = self.pair.backward.results
        self.guarded = rows.page.guards_in(self.pair.backward)

    def write(self) -> None:
        """With a pair that keeps less there are no parts of the other backward, and nothing else
        calls the plain one.
        """
        losses = self.losses()
        kept = None if losses else self.keeping_less()
        pair = self.pair
        forward = self.loops(pair.forward, self.kernel("forward"), flat(pair, pair.forward))
        if forward is not None and not (kept and self.is_plain):
            self.add(forward, "forward")
        if not (kept and self.is_plain):
            self.backward(self.guarded and not kept)
        for loops, row in (*losses, *(kept or ())):
            self.written.add(loops, row)

    def add(self, loops: Loops, function: str, of: Sequence[tuple[str, ...]] = ()) -> None:
        self.written.add(loops, self.row(loops, function, of))

    def row(self, loops: Loops, function: str, of=(), saved: Sequence[str] = ()) -> Row:
        row = self.rows.row(loops, " ".join([*self.words, function]), saved)
        row.of += of
        return row

    def kernel(self, function: str) -> str:
        return "_".join([*self.words, *function.split()])

    def backward(self, some: bool) -> None:
        pair, name = self.pair, self.kernel("backward")
        parts = subsets(self.gradients) if some else []
        left_out = self.gradients if parts else ()
        whole = self.loops(pair.backward, name, flat(pair, pair.backward), left_out)
        if whole is None:
            return
        found = {part: (f := replace(pair.backward, results=part), flat(pair, f)) for part in parts}
        for loops, row in self.with_parts(whole, "backward", found):
            self.written.add(loops, row)

    def with_parts(
        self,
        whole: Loops,
        function: str,
        parts: Mapping[tuple[str, ...], tuple[Function, Flat]],
        saved: Sequence[str] = (),
    ) -> list[tuple[Loops, Row]]:
        """What computes all gradients, and ``parts`` of them: by the kernel of the whole if that
        can leave something out.
        """
        kernel, of, others = whole.pieces[0], [], []
        for part, (own, found) in parts.items():
            if isinstance(kernel, Kernel) and kernel.flags:
                made = {node for _, node in found.results}
                if made.intersection(kernel.writes):
                    of.append(part)
                    kernel = kernel.with_part(part, made)
                continue
            name = f"{self.kernel(function)}_of_{'_'.join(part)}"
            loops = self.loops(own, name, found)
            if loops is not None:
                others.append((loops, self.row(loops, f"{function} of {' '.join(part)}")))
        if of:
            whole = replace(whole, pieces=[kernel])
        return [(whole, self.row(whole, function, of, saved)), *others]

    def losses(self) -> list[tuple[Loops, Row]]:
        """What computes the loss and its gradients at once."""
        pair, every = self.pair, self.gradients
        found = {some: at_once(pair, some) for some in (every, *subsets(every))}
        if found[every] is None:
            return []
        function, loops_of_all = found.pop(every)
        left_out = every if found else ()
        whole = self.loops(function, self.kernel("loss"), loops_of_all, left_out)
        if whole is None:
            return []
        return self.with_parts(whole, "loss", {s: f for s, f in found.items() if f is not None})

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
        forward = self.loops(found.forward, self.kernel("lean forward"), found.flat_forward)
        parts = subsets(self.gradients) if self.guarded else []
        flat_backward, name = found.flat_backward, self.kernel("lean backward")
        backward = self.loops(found.backward, name, flat_backward, self.gradients if parts else ())
        if forward is None or backward is None:
            return None
        own = {}
        for part in parts:
            results = tuple(pair for pair in flat_backward.results if pair[0] in part)
            function = replace(found.backward, results=part)
            own[part] = function, replace(flat_backward, results=results)
        saved = tuple(p.name for p in found.backward.parameters[1:])
        rows = self.with_parts(backward, "lean backward", own, saved)
        first = self.row(forward, "lean forward")
        for name, handed in zip(found.forward.results[1:], saved, strict=True):
            if name != handed and not with_names([row for _, row in rows], {handed: name}):
                first.steps.append(Same(handed, name))
        return [(forward, first), *rows]

    def loops(
        self, function: Function, name: str, found: Flat, left_out: Sequence[str] = ()
    ) -> Loops | None:
        """What computes a function, and some of the results ``left_out`` if they are wanted; None
        where there is no kernel in it.
        """
        pair = self.pair
        made = [node for name, node in found.results if name in left_out]
        pieces = kernels_of(name, found, dict(pair.sizes), pair.several, made)
        if not any(isinstance(piece, Kernel) for piece in pieces):
            return None
        return Loops(function, found, pieces)


def subsets(results: Sequence[str]) -> list[tuple[str, ...]]:
    """Some of the gradients: what people ask for where they do not ask for all."""
    if len(results) < 2:
        return []
    alone = [(result,) for result in results] if len(results) <= MOST else []
    return list(dict.fromkeys([*alone, tuple(results[1:])]))
