"""Names of a kernel's variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from codegen.schedule.merging import short
from codegen.schedule.nodes import Flat


@dataclass(frozen=True)
class Taken:
    """The ``words`` reserved by a language and its writer; and prefixes and suffixes of derived
    names.
    """

    words: frozenset[str]
    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]

    def named(self, name: str) -> str:
        """A forward's name, free in the language; distinct names stay distinct."""
        plain = name.rstrip("_")
        taken = plain in self.words or plain.startswith(self.prefixes)
        return f"{name}_" if taken or plain.endswith(self.suffixes) else name


def with_joined(codes: Mapping[str, str], flat: Flat) -> dict[str, str]:
    """The names of sizes by their axes, including merged axes."""
    return {**codes, **{axis: short(axis) for axis in flat.joined}}


class Names:
    """Names of a kernel: arrays and numbers keep theirs; the lengths and indices of axes get short
    ones, unless these are taken: N and n. ``codes`` are the lengths by the axes.
    """

    language: Taken

    def __init__(self, arrays: Iterable[str], numbers: Iterable[str], codes: Mapping[str, str]):
        self.codes, named = codes, self.language.named
        others = {*numbers} - {*codes.values()}  # a number may be a length
        self.taken = {*self.language.words, *map(named, {*arrays} | others)}
        self.of_codes = {
            code: self._short(code, f"size_{code}") for code in sorted({*codes.values()})
        }
        self.indices = {
            axis: self._short(short(axis).lower(), f"i_{short(axis)}") for axis in codes
        }

    def _short(self, name: str, other: str) -> str:
        found = other if name in self.taken else name
        self.taken.add(found)
        return found

    def size(self, axis: str) -> str:
        return self.of_codes[self.codes[axis]]

    def product(self, axes: Iterable[str]) -> str:
        return " * ".join(map(self.size, axes))

    def index(self, axis: str) -> str:
        return self.indices[axis]

    def free(self, name: str) -> str:
        """``name``, or with a number appended if it is taken."""
        numbered = (f"{name}_{i}" for i in count(2))
        found = name if name not in self.taken else next(n for n in numbered if n not in self.taken)
        self.taken.add(found)
        return found

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block: names taken inside it are free again after it."""
        taken = {*self.taken}
        yield
        self.taken = taken
