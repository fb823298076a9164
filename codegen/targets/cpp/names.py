"""What the variables of a kernel are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from codegen.targets.cpp.vocabulary import PREFIXES, SUFFIXES, TAKEN


def named(name: str) -> str:
    """A name of a forward as one that C++ and the writer have free; others stay others."""
    plain = name.rstrip("_")
    taken = plain in TAKEN or plain.startswith(PREFIXES) or plain.endswith(SUFFIXES)
    return f"{name}_" if taken else name


class Names:
    """Arrays and numbers keep theirs; the lengths of axes and the places along them have short
    ones, unless these are among them: N and n. ``codes`` are the lengths by the axes.
    """

    def __init__(self, arrays: Iterable[str], numbers: Iterable[str], codes: Mapping[str, str]):
        self.codes = codes
        others = {*numbers} - {*codes.values()}  # a number may be a length
        self.taken = {*TAKEN, *map(named, {*arrays} | others)}
        self.of_codes = {
            code: self._short(code, f"size_{code}") for code in sorted({*codes.values()})
        }
        self.indices = {axis: self._short(axis.lower(), f"i_{axis}") for axis in codes}

    def _short(self, name: str, other: str) -> str:
        found = other if name in self.taken else name
        self.taken.add(found)
        return found

    def size(self, axis: str) -> str:
        return self.of_codes[self.codes[axis]]

    def index(self, axis: str) -> str:
        return self.indices[axis]

    def free(self, name: str) -> str:
        """``name``, or that with a number behind it: what is called so nowhere else."""
        numbered = (f"{name}_{i}" for i in count(2))
        found = name if name not in self.taken else next(n for n in numbered if n not in self.taken)
        self.taken.add(found)
        return found

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is named inside of it is free again behind it."""
        taken = {*self.taken}
        yield
        self.taken = taken
