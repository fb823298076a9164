"""The module in which parts of one axis go round the ranks that have the parts of another: the
public function is that of chunks of ranks, and knows the lengths of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from codegen.chunking import Chunked
from codegen.program import Parameter
from codegen.program import steps as of
from codegen.targets.lean.chunked import PlainChunks
from codegen.targets.lean.chunked_ranks import ChunkedPageOfRanks
from codegen.targets.lean.loops_of_chunks import ChunkWriter
from codegen.targets.lean.loops_of_ring import RingWriter
from codegen.targets.lean.pair import Pair
from codegen.targets.torch.checks import expected, written
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.wrapping import wrapped
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout


class RingPage(ChunkedPageOfRanks):
    """The functions of one rank; what lies along both axes is whole along the one that goes round,
    which is known after the ranks have met.
    """

    def __init__(self, chunked: Chunked, pair: Pair, plain: PlainChunks | None = None):
        self.groups, forward = chunked.groups, pair.program.forward
        self.whole = {p.name for p in forward.tensors if self._is_whole(p.layout)}
        filled = [s.name for s in forward.steps if isinstance(s, of.Fill) and s.name in self.whole]
        spread = {s.name: s for s in forward.checks if isinstance(s, of.Spread)}
        self.spread = [spread[name] for name in spread if name in self.whole]
        optional = [s.name for s in self.spread if s.optional]
        if filled or optional:
            raise QuestionError(
                f"{pair.program.name} fills in {', '.join(filled or optional)}, which lies along"
                f" both {' and '.join(self.groups.of_ranks)}, where it is left out",
                "make it a required argument",
            )
        self.merged: list[of.MergeDims] = []  # behind the broadcast
        checks = tuple(self._of_part(forward.checks))
        program = replace(pair.program, forward=replace(forward, checks=checks))
        super().__init__(chunked, replace(pair, program=program), plain)
        self.way = f"parts of {chunked.axis} that go round"

    def writer(self, kind: str, *given) -> ChunkWriter:
        return RingWriter(*given)

    @property
    def over_round(self) -> str:
        return self.ranks[-1]

    # -- lengths ---------------------------------------------------------------------------

    def _is_whole(self, layout: Layout) -> bool:
        """True for what lies along both axes."""
        return {*self.groups.axes} <= {*self.groups.split(layout)}

    def _of_part(self, checks: Iterable[of.Step]) -> Iterator[of.Step]:
        """The checks, of which none reads or asks for the length of all parts together."""
        read, later = False, {step.name for step in self.spread}
        for step in checks:
            if isinstance(step, of.Spread | of.Fits) and step.name in later:
                continue
            if isinstance(step, of.MergeDims):
                apart = tuple(pair for pair in step.tensors if pair[0] in later)
                self.merged += [replace(step, tensors=apart)] * bool(apart)
                rest = tuple(pair for pair in step.tensors if pair not in apart)
                step = replace(step, tensors=rest)
            if not isinstance(step, of.Fits | of.ReadSizes):
                yield step
                continue
            along = [group == self.groups.chunked for group in self.groups.split(step.dims)]
            hidden = [own and (not read or step.name in self.whole) for own in along]
            if isinstance(step, of.Fits):
                pairs = zip(step.known, hidden, strict=True)
                yield replace(step, known=tuple(known and not own for known, own in pairs))
                pairs = zip(step.known, hidden, strict=True)
                new = [known and own for known, own in pairs]
                new = [own and step.name not in self.whole and not step.optional for own in new]
            else:
                pairs = zip(step.new, along, strict=True)
                new = [own and not (a and (read or step.name in self.whole)) for own, a in pairs]
            if any(new):
                yield of.ReadSizes(step.name, step.dims, tuple(new))
            read |= any(own and a for own, a in zip(new, along, strict=True))

    def _begun(self) -> list[str]:
        """The ranks tell each other the lengths of both parts; what is whole is as long."""
        tensors = [p for p in self.program.forward.tensors if p.default is None]
        own = next(p for p in tensors if self._goes_round(p))
        length = f"{own.name}.shape[{self._place(own.layout)}]"
        lines = [f"{self.over_round} = {self.over}.beside({length})"]
        for p in self.program.forward.tensors:
            if p.name in self.whole and p.name not in {s.name for s in self.spread}:
                lines += self._length_asked(p)
        printer, said = (
            self.printer(self.program.forward),
            f"{self.name}: {{}} must be broadcast to ",
        )
        axes = [axis for axis, of in self.groups.of.items() if of == self.groups.chunked]
        words = [f'"{said.format(s.name)}{written(printer, s.dims)}"' for s in self.spread]
        printer.sizes = printer.sizes | dict.fromkeys(axes, f"{self.over_round}.size")
        for step, text in zip(self.spread, words, strict=True):
            given = [text, step.name, expected(printer, step.dims, (True,) * len(step.dims))]
            lines.append(wrapped(f"{step.name} = _runtime.spread", given, indent=len(STEP)))
        return [*lines, *(line for step in self.merged for line in self._merged(step)[1:])]

    def _goes_round(self, p: Parameter) -> bool:
        return {*self.groups.split(p.layout)} - {""} == {self.groups.chunked}

    def _length_asked(self, p: Parameter) -> list[str]:
        place = self._place_of_whole(p.layout)
        there = f"{p.name} is not None and " * (p.default is not None)
        length, axis = f"{self.over_round}.size", self.groups.chunked
        said = f"{self.name}: {p.name} must be along {axis} of all ranks, {{{length}}}"
        said = f'f"{said}, got {{tuple({p.name}.shape)}}"'
        test = f"if {there}{p.name}.shape[{place}] != {length}:"
        return [broken(test), STEP + broken(f"raise ValueError({said})", STEP * 2)]

    def _place_of_whole(self, layout: Layout) -> int:
        return self.groups.split(layout).index(self.groups.chunked) - len(layout)

    def _flat(self, name: str, layout: Layout) -> str:
        if not self._is_whole(layout):
            return super()._flat(name, layout)
        whole = self._place_of_whole(layout) + len(layout)
        sizes = ["1" if d.one else self.sizes[d.axis.name] for d in layout]
        sizes[whole] = f"{name}.shape[{self._place_of_whole(layout)}]"
        return f"{name}.reshape({', '.join(sizes)})"

    def _restored_dim(self, name: str, place: int, layout: Layout) -> str:
        if self._is_whole(layout) and self.groups.split(layout)[place] == self.groups.chunked:
            return f"{name}.shape[{place}]"
        return super()._restored_dim(name, place, layout)

    # -- what ranks tell each other ----------------------------------------------------------

    def _ranges_asked(self) -> list[str]:
        """Behind all checks, of which one rank alone may raise."""
        return [*super()._ranges_asked(), f"{self.over}.meet()"]

    def _met(self, output: str) -> str:
        split = self.groups.at_home(layouts_in(self.program.forward)[output])
        return f"({self.over}.other,)" if self.groups.chunked in split else f"({self.over},)"
