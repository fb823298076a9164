"""Prints recurrences: a loop over the places, and its collected values."""

from __future__ import annotations

from codegen.program.loops import Collected, Looped, LoopInput
from codegen.program.values import Load
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.vocabulary import ATOM


class LoopPrinter:
    """The printing methods of the values of ``program/loops.py``; `Printer` has the rest."""

    sizes: dict[str, str]
    slices: dict[str, str]  # the text of a loop's slices

    def _Load(self, value: Load):
        return self.slices.get(value.name, value.name), ATOM

    def looped(self, name: str, value: Looped, margin: str) -> str:
        """The lines of a loop; all but the first have their ``margin``."""
        places = f"range({self.sizes[value.axis]})"
        places = f"reversed({places})" if value.reverse else places
        lines = [f"{h.before} = {self.text(h.initial)}" for h in value.passed]
        lines += [f"{name} = []", f"for {value.place} in {places}:"]
        found = [broken(line, margin) for line in lines]
        inner = margin + STEP
        self.slices = {g.name: self._given(g, value.place) for g in value.given}
        inside = [self.step(step, inner) for step in value.body.steps]
        self.slices = {}
        kept = ", ".join(value.collected) + "," * (len(value.collected) == 1)
        inside.append(broken(f"{name}.append(({kept}))", inner))
        ends = (", ".join(getattr(p, end) for p in value.passed) for end in ("before", "after"))
        inside.append(broken(" = ".join(ends), inner))  # at once: one may read another
        return f"\n{margin}".join([*found, *(STEP + line for line in inside)])

    def _given(self, given: LoopInput, place: str) -> str:
        whole = self.tight(given.whole)
        return whole if given.along is None else f"{whole}[{':, ' * given.along}{place}]"

    def _Collected(self, value: Collected):
        record = self.text(value.record)
        if value.along is None:
            return f"{record}[-1][{value.number}]", ATOM
        record += "[::-1]" if value.reverse else ""
        return f"torch.stack([step[{value.number}] for step in {record}], {value.along})", ATOM
