"""The record of a module's quality, behind the table and the report.

Plain data, without mathematics or code in it: it crosses from one process to another, and it is
kept in the cache as JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from math import isfinite
from typing import get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Rounding:
    """The largest error of any gradient in float32, relative to the largest entry of the
    same gradient in float64: of the generated module, and of autograd on the statements.
    """

    ours: float
    autograd: float


@dataclass(frozen=True)
class Moves:
    """Reads and writes of tensors of full size."""

    reads: int
    writes: int

    def __add__(self, other: Moves) -> Moves:
        return Moves(self.reads + other.reads, self.writes + other.writes)


@dataclass(frozen=True)
class Traffic:
    """Memory traffic of one function. ``kernel`` is the minimum: the arguments that it reads and
    the results that it writes, each once. ``lines`` is the traffic of its lines, one operation at a
    time, ``loops`` that of its kernels (one or none: where it is not made of loops). ``larger`` are
    the shapes of intermediate values larger than full size.
    """

    kernel: Moves
    loops: tuple[Moves, ...]
    lines: Moves
    larger: tuple[str, ...]


@dataclass(frozen=True)
class Counts:
    """Counts over a Program: see `Quality` for the fields."""

    full: str
    reductions: tuple[str, ...]
    forward: Traffic
    backward: Traffic


@dataclass(frozen=True)
class Collectives:
    """Collectives between ranks where an ``axis`` is split over them and nothing optional is
    passed, each in words. ``refused`` is the reason if it cannot be split.
    """

    axis: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]
    refused: str


@dataclass(frozen=True)
class Quality:
    """Quality of one module.

    ``outputs`` are its results, with shapes. ``unsafe`` lists in words values that may be infinite
    or NaN. ``saved`` are the saved tensors, with shapes; ``reductions`` the sums, maxima
    and matrix products of the backward, ``operations`` how many its formulas have; ``full`` the
    shape of a tensor of full size. ``difference`` is the largest one to autograd in float64,
    ``split`` the cost of splitting an axis over ranks, and ``seconds`` is the time to derive,
    prove and emit.
    """

    name: str
    outputs: tuple[str, ...]
    closed_form: tuple[str, ...]
    unsafe: tuple[str, ...]
    saved: tuple[str, ...]
    reductions: tuple[str, ...]
    operations: int
    full: str
    forward: Traffic
    backward: Traffic
    proved: str
    split: tuple[Collectives, ...]
    difference: float
    rounding: Rounding
    seconds: float


@dataclass(frozen=True)
class Emitted:
    """A module that is ready to be written: its file name, its text, and its quality.

    ``kernels`` are the texts of a language for loops, empty where there is no loop, and None where
    they were not asked for; ``slow`` is the reason why there are none. ``program`` is the program
    that all languages are printed from, as data (``program/packed.py``), if that is possible.
    ``chain`` is the file of statements beside it.
    """

    file: str
    text: str
    quality: Quality
    unchanged: bool = False  # taken from the cache
    cut_short: str = ""  # left undone by a time limit: another run may find more
    kernels: tuple[str, ...] | None = None
    slow: str = ""
    program: object = None
    chain: str | None = None


def as_data(emitted: Emitted) -> dict[str, object]:
    """Data for JSON, without kernels and chain. The path of the output is no part of it."""
    quality, text, program = asdict(emitted.quality), emitted.text, emitted.program
    return {"text": text, "quality": quality, "program": program}


def from_data(data: object, file: str) -> Emitted:
    """The record from `as_data`, for ``file``.

    Raises ValueError where ``data`` is something else.
    """
    if not isinstance(data, dict) or data.keys() != {"text", "quality", "program"}:
        raise ValueError("no text, quality and program")
    quality, text = _value(Quality, data["quality"]), _value(str, data["text"])
    return Emitted(file, text, quality, True, program=data["program"])


def kernels_from(data: object) -> tuple[str, ...]:
    """The texts of kernels. Raises ValueError if ``data`` is no list of texts."""
    return _value(tuple[str, ...], data)


def _value(kind: type, data: object):
    """``data`` as a field of this kind: a record, several strings, a string or a number."""
    if is_dataclass(kind):
        kinds = get_type_hints(kind)
        if not isinstance(data, dict) or data.keys() != kinds.keys():
            raise ValueError(f"no {kind.__name__}")
        return kind(**{name: _value(kinds[name], data[name]) for name in kinds})
    if get_origin(kind) is tuple:
        if not isinstance(data, list):
            raise ValueError("no list")
        return tuple(_value(get_args(kind)[0], each) for each in data)
    if type(data) is not kind or (kind is float and not isfinite(data)):
        raise ValueError(f"no {kind.__name__}")
    return data
