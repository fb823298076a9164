"""Prints a Program's values and steps as torch expressions: no decision about mathematics.

How each class is written is a row of the table `TORCH`, which the modules imported here fill.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from codegen.program import parts, steps, values
from codegen.program.loops import Looped, LoopInput
from codegen.targets.torch import arrays as arrays
from codegen.targets.torch import checks as checks
from codegen.targets.torch import convolutions as convolutions
from codegen.targets.torch import pointwise as pointwise
from codegen.targets.torch import reads as reads
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.rows import ALONE, TORCH, Rows, Surroundings
from codegen.targets.torch.vocabulary import ATOM, SUM


class Printer:
    """Prints the lines of one function.

    ``sizes`` maps every axis to the name of its length, ``numbers`` are the arguments that are
    Python numbers, and ``like`` is a tensor whose dtype and device new tensors take; ``around`` is
    for checks. If ``in_place``, additions change the tensor.
    """

    rows: ClassVar[Rows] = TORCH
    in_place = True
    einsum = "torch.einsum"

    def __init__(
        self,
        sizes: Mapping[str, str],
        numbers: Iterable[str],
        like: str,
        around: Surroundings = ALONE,
    ):
        self.sizes, self.numbers, self.like = dict(sizes), set(numbers), like
        self.around = around
        self.slices: dict[str, str] = {}  # in a loop, the text of what it reads at its place

    # -- steps ----------------------------------------------------------------

    def step(self, step: steps.Step, margin: str = STEP) -> str:
        """The lines of a step; all but the first have their ``margin``."""
        if isinstance(step, steps.Assign) and isinstance(step.value, Looped):
            return self._looped(step.name, step.value, margin)
        text = self.rows[type(step)](self, step)
        if isinstance(step, (steps.Assign, steps.AddAt)):
            return broken(text, margin)
        return text.replace("\n", "\n" + margin.removeprefix(STEP))

    def _looped(self, name: str, value: Looped, margin: str) -> str:
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

    # -- values ---------------------------------------------------------------

    def text(self, value: values.Value, at_least: int = SUM) -> str:
        """``value`` as code, in brackets if its precedence is below ``at_least``."""
        text, binding = self.printed(value)
        return text if binding >= at_least else f"({text})"

    def printed(self, value: values.Value) -> tuple[str, int]:
        """``value`` as code, and its precedence."""
        return self.rows[type(value)](self, value)

    def tight(self, value: values.Value) -> str:
        return self.text(value, ATOM)

    def argument(self, value: values.Value) -> str:
        """``value`` as an argument of a torch function."""
        wide = self.is_number(value) and parts.is_wide(value)
        return self.as_tensor(value) if wide else self.text(value)

    def as_tensor(self, number: values.Value) -> str:
        """A number in the dtype of the tensors, infinite where it overflows."""
        return f"{self.like}.new_tensor({self.text(number)})"

    def is_number(self, value: values.Value) -> bool:
        """True if the value is a Python number when the code runs."""
        return parts.is_number(value, self.numbers)

    def loaded(self, name: str) -> str:
        return self.slice_of(name) or name

    def slice_of(self, name: str) -> str:
        """The entry of ``name`` that the body of a loop reads; empty outside of a loop."""
        return self.slices.get(name, "")

    def shape(self, dims) -> str:
        return ", ".join("1" if dim.one else self.sizes[dim.axis.name] for dim in dims)

    def flattened(self, text: str, first: int, last: int) -> str:
        return f"{text}.flatten({first}, {last})"

    def in_words(self, size: values.Value) -> str:
        """The name of a size in an error message."""
        return self.text(size)
