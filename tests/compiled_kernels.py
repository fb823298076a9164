"""The functions in Triton of the gallery, compiled for GPUs that are not there: how many registers
and bytes each takes. It needs Triton, which interprets nothing in the same process.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import torch
from gallery import EVERYTHING, Emitted

import generated

FOLDER = Path(generated.__file__).parent / "triton"
NAMES = sorted({f.stem for f in FOLDER.glob("[a-z]*.py")} & {e.snake for e in EVERYTHING})
ROWS = 4096  # more than there are programs
FEW, MOST = 8, 16384  # entries along the other axes of a row, and along the last one
LONG = 131072  # entries of a row that is read in chunks
LABEL = 8  # its bytes
PARTS = 16  # of a sum that a kernel reads so
LENGTHS = (7, 11, 23, 29, 5, 3, 13)  # no two axes of a kernel have the same
INPUTS = torch.bfloat16
KINDS = {torch.float32: "fp32", torch.int64: "i64", torch.bool: "i1"}
COUNTED = "3.9.0"  # the Triton whose compiler made what was counted; others use other registers
ACCESS = re.compile(r"\b(ld|st)\.global((?:\.[a-z0-9_:]+)*)")


def is_counted() -> bool:
    """Whether the Triton that is here is that which was counted with."""
    return importlib.util.find_spec("triton") is not None and version("triton") == COUNTED


@dataclass
class Least:
    """For each entry of a row: the ``bytes`` that are read and written at least, and those where
    ``each`` thread does so with what has not all axes of a row; how many ``others`` there are that
    have not all of them.
    """

    bytes: dict[str, float] = field(default_factory=lambda: {"ld": 0, "st": 0})
    each: dict[str, float] = field(default_factory=lambda: {"ld": 0, "st": 0})
    others: int = 0


@dataclass(frozen=True)
class Call:
    """What a kernel is called with: its arrays by their names, without entries, and its sizes, with
    those that are ``fixed``.
    """

    arrays: dict[str, torch.Tensor]
    sizes: dict[str, int]
    fixed: dict[str, int]

    def axes_of(self, name: str, in_parts: bool) -> list[str]:
        """The sizes along which an array has entries; several where one dimension is made of
        them. The first one of what is ``in_parts`` counts these.
        """
        lengths = self.arrays[name].shape[in_parts:]
        return [size for length in lengths for size in self._made_of(length)]

    def _made_of(self, length: int) -> tuple[str, ...]:
        for count in range(len(self.sizes) + 1):
            for found in combinations(self.sizes, count):
                if math.prod(self.sizes[size] for size in found) == length:
                    return found
        return ("",)


class Own:
    """A function in Triton of a module: that of a ``record``, or one for long rows."""

    def __init__(self, module: str, record, function, call: Call):
        self.record, self.function, self.name = record, function, function.function.__name__
        self.module, self.call = module, call
        self.kept = {name: axes for f in record.functions for name, axes in f.keeps.items()}

    def sizes(self, inner: int) -> dict[str, int]:
        """``inner`` entries in a row, and many rows."""
        of = self.function.sizes
        *before, last = [of[axis] for axis in self.function.inner] or [""]
        found = dict.fromkeys([*self.call.sizes, *of.values()], ROWS)
        *of_one, last = last.split("*")  # several axes that are one
        few = 1 if inner % FEW ** len(of_one) else FEW
        found |= dict.fromkeys(before, FEW) | dict.fromkeys(of_one, few)
        return found | {last: inner // few ** len(of_one)} | self.call.fixed

    def longest(self, odd: int = 0) -> int:
        """Entries of the longest row that it computes, if that is less than `MOST`: 16 divides the
        number, or if it is to be ``odd`` the one above or below.
        """
        from generated.triton._rules import TooLong

        if self.function.chunked:
            return LONG + odd
        found = MOST
        while found > 1:
            try:
                self.function.launch(self.sizes(found - odd))
            except TooLong:
                found //= 2
            else:
                break
        return found - odd

    def kind(self, pointer: str, dtype: str) -> str:
        """What an array holds beside inputs of a ``dtype``."""
        return (
            "fp32"
            if pointer in self.function.parts
            else {INPUTS: dtype, **KINDS}[self.format_of(pointer)]
        )

    def format_of(self, name: str) -> torch.dtype:
        return torch.float32 if name in self.kept else self.call.arrays[name].dtype

    def axes_of(self, name: str) -> Sequence[str]:
        in_parts = name in (*self.record.left, *self.function.in_parts)
        return self.kept[name] if name in self.kept else self.call.axes_of(name, in_parts)

    @property
    def passes(self) -> int:
        """Over a row that is read in chunks."""
        return self.function.function.src.count("for start in")

    @property
    def row(self) -> set[str]:
        of = self.function.sizes
        return {size for axis in self.function.inner for size in of[axis].split("*")}

    def least(self) -> Least:
        """What it reads and writes if it does so once for every array that has entries of a row. A
        label picks an entry of each array that has fewer.
        """
        fixed, rows = self.call.fixed, {*self.function.rows}
        lengths = self.sizes(self.longest())
        found, labels = Least(), 0
        for name in self.function.arrays:
            kind = "st" if name in {*self.function.makes, *self.function.keeps} else "ld"
            axes, dtype = self.axes_of(name), self.format_of(name)
            along = self.row.intersection(axes)
            found.others += along < self.row
            if not along:
                continue
            several = math.prod(fixed[a] for a in axes if a in fixed and a not in rows)
            size = several * (4 if dtype.is_floating_point else dtype.itemsize)
            share = 1 / math.prod(lengths[a] for a in self.row - along)
            found.each[kind] += size
            found.bytes[kind] += size * share
            labels += share * (dtype is torch.int64)
        found.bytes["ld"] += 4 * labels * found.others
        return found


class Compiled:
    """A function as it is launched for some sizes: compiled for ``arch``."""

    def __init__(self, own: Own, sizes: dict[str, int], arch: int, dtype: str):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        self.launch, function = own.function.launch(sizes), own.function
        signature, constants, aligned = {}, {}, {}
        real = {"REAL": triton.language.float32, **self.launch.constants}
        numbers = {**sizes, **self.launch.lengths, "rows": self.launch.rows}
        numbers |= {f"{name}_count": PARTS for name in function.in_parts}
        for i, name in enumerate(function.function.arg_names):
            if name in function.constants:
                signature[name], constants[name] = "constexpr", real[name]
            elif name.endswith("_ptr"):
                signature[name] = f"*{own.kind(name.removesuffix('_ptr'), dtype)}"
                aligned[i,] = [["tt.divisibility", 16]]
            elif numbers.get(name) == 1:
                signature[name], constants[name] = "constexpr", 1
            elif name in numbers:
                signature[name] = "i32"
                aligned |= {} if numbers[name] % 16 else {(i,): [["tt.divisibility", 16]]}
            else:
                is_test = re.search(rf"tl\.where\(\s*{name},", function.function.src)
                signature[name] = "i1" if is_test else "fp32"
        source = ASTSource(function.function, signature, constants, aligned)
        target, options = GPUTarget("cuda", arch, 32), {"num_warps": self.launch.warps}
        self.reader = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        self.made = triton.compile(source, target=target, options=options)

    def used(self) -> tuple[int, int]:
        """Registers, and bytes of what did not fit into them, as the binary says."""
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(self.made.asm["cubin"])
            file.flush()
            command = [self.reader, "-res-usage", file.name]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", said).groups()
        return int(registers), int(stack)

    def moved(self) -> dict[str, float]:
        """Bytes that instructions read and write, for each entry of what a program computes."""
        bytes_of = {"ld": 0, "st": 0}
        for kind, how in ACCESS.findall(self.made.asm["ptx"]):
            several, width = re.search(r"\.v(\d)", how), re.search(r"\.[bfus](\d+)", how)
            bytes_of[kind] += (int(several[1]) if several else 1) * int(width[1]) // 8
        threads = 32 * self.launch.warps
        return {kind: count * threads / self.entries for kind, count in bytes_of.items()}

    @property
    def entries(self) -> int:
        """Those that a program computes at once."""
        sizes = self.launch.constants
        return math.prod(sizes[name] for name in sizes if name == "ROWS" or "BLOCK" in name)


def functions_of(name: str) -> list[Own]:
    """Those of all kernels of a module."""
    emitted = next(e for e in EVERYTHING if e.snake == name)
    kernels = import_module(f"generated.triton.{name}")
    calls = calls_of(emitted, kernels)
    every = import_module("generated.triton._running").every(kernels)
    assert every == calls.keys(), "a kernel that nothing calls"
    records = [getattr(kernels, kernel) for kernel in calls]
    return [Own(name, r, f, calls[r.name]) for r in records for f in r.functions]


def calls_of(emitted: Emitted, kernels: ModuleType) -> dict[str, Call]:
    """What each kernel is called with, with and without what is optional: the functions are run on
    what lines are given, without its entries.
    """
    found: dict[str, Call] = {}
    fixed = {axis.name: length for axis, length in emitted.definition.fixed.items()}

    def called(record, *given, **known):
        arrays = dict(zip(record.first.arrays, given, strict=True))
        own = {n for f in record.functions for size in f.sizes.values() for n in size.split("*")}
        whole = {name: number for name, number in known.items() if type(number) is int}
        sizes = {name: whole[name] for name in own & whole.keys()} | fixed
        sizes |= {n: number for n, number in whole.items() if number not in sizes.values()}
        assert len({1, *sizes.values()}) == len(sizes) + 1, "lengths that tell no axes apart"
        found.setdefault(record.name, Call(arrays, sizes, fixed))

    passed = given_to_lines(emitted)
    behind = any(name.endswith("_unchecked") for name, _ in passed)
    with patch.object(import_module("generated.triton._launching").Record, "__call__", called):
        for name, given in passed:
            getattr(kernels, name, lambda *_: None)(*given)
            if name.endswith("_unchecked") or not behind:  # with the gradients of a loss
                getattr(kernels, at_once_of(name), lambda *_: None)(*given)
    return found


def at_once_of(name: str) -> str:
    return import_module("generated.triton._losses").at_once_of(name)


def given_to_lines(emitted: Emitted) -> list[tuple[str, list]]:
    """The plain functions that a call and its backward run, with what they are given."""
    found: list[tuple[str, list]] = []

    def noted(lines):
        typed = inspect.signature(lines).parameters.values()
        numbers = [p.annotation in (float, "float") for p in typed]

        def function(*given):
            meta = (t.to("meta") if isinstance(t, torch.Tensor) else t for t in given)
            as_typed = (float(t) if f else t for t, f in zip(meta, numbers, strict=False))
            found.append((lines.__name__, [*as_typed]))
            return lines(*given)

        return function

    module = emitted.module
    with ExitStack() as stack:
        for called, value in [*vars(module).items()]:
            if isinstance(value, type) and issubclass(value, torch.autograd.Function):
                stack.enter_context(patch.object(value, "forward", noted(value.forward)))
            elif called.endswith(("_backward", "_unchecked")):
                stack.enter_context(patch.object(module, called, noted(value)))
        leaves = emitted.leaves(dtype=INPUTS, lengths=LENGTHS)
        optional = {t.name for t, _ in emitted.definition.optional}
        for left_out in ((), optional):
            given = {n: t for n, t in leaves.items() if n not in left_out}
            emitted.function(**given).sum().backward()
    return found
