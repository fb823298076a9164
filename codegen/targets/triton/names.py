"""Names of the variables of a Triton kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from codegen.schedule.merging import short
from codegen.schedule.shape import Shape
from codegen.targets.tables import names
from codegen.targets.triton.vocabulary import TRITON


class TritonNames(names.Names):
    """Names in a kernel: those of arrays are free for loads, as arguments have their own."""

    language = TRITON

    def __init__(self, arrays: Collection[str], numbers: Collection[str], codes: Mapping[str, str]):
        super().__init__(arrays, numbers, codes)
        self.plain = Counter(name.rstrip("_") for name in arrays)
        numbers = {TRITON.named(number) for number in numbers}
        self.taken = {*TRITON.words, *numbers, *self.of_codes.values(), *self.indices.values()}

    def of(self, name: str) -> str:
        """The name of an array or value, without the suffix that tells it from a name that is no
        array.
        """
        plain = name.rstrip("_")
        return TRITON.named(plain if self.plain[plain] < 2 else name)


def block_of(shape: Shape, axis: str) -> str:
    """The name of the block size along an inner axis."""
    one = shape.chunked or len(shape.inner) == 1
    return "BLOCK" if one else f"BLOCK_{short(axis)}"
