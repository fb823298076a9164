"""What the variables of a kernel in Triton are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codegen.targets.tables import names
from codegen.targets.triton.vocabulary import TRITON


class Names(names.Names):
    """Those of arrays are free for what is loaded: arguments have names of their own."""

    language = TRITON

    def __init__(self, arrays: Iterable[str], numbers: Iterable[str], codes: Mapping[str, str]):
        super().__init__(arrays, numbers, codes)
        numbers = {TRITON.named(number) for number in numbers}
        self.taken = {*TRITON.words, *numbers, *self.of_codes.values(), *self.indices.values()}
