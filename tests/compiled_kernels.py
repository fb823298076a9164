"""The functions in Triton of the gallery, compiled for GPUs that are not there: how many registers
and bytes each takes. It needs Triton, which interprets nothing in the same process.
"""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import torch

import generated

FOLDER = Path(generated.__file__).parent / "triton"
NAMES = sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))
ROWS = 4096  # more than there are programs
FEW, MOST = 8, 16384  # entries along the other axes of a row, and along the last one
LONG = 131072  # entries of a row that is read in chunks
LABEL = 8  # its bytes
COUNTED = "3.9.0"  # the Triton whose compiler made what was counted; others use other registers
ACCESS = re.compile(r"\b(ld|st)\.global((?:\.[a-z0-9_:]+)*)")
# Axes that are several, which a table does not say.
MADE_OF = {
    "group_norm": {"C": "groups K"},
    "gru_cell": {"P": "Gate H"},
    "lstm_cell": {"P": "Gate H"},
    "mlp": {"K": "T E"},
}


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


class Own:
    """A function in Triton of the module ``name``: that of a ``record``, or one for long rows."""

    def __init__(self, name: str, record, function):
        from generated.triton._reading import read

        self.table = import_module(f"generated.triton.{name}").table
        self.record, self.function, self.name = record, function, function.function.__name__
        self.module, self.made_of = name, MADE_OF.get(name, {})
        rows = ([*map(read, row.steps)] for row in self.table.rows)
        row = next(row for row in rows if any(step.kernel == record.name for step in row))
        self.step = next(step for step in row if step.kernel == record.name)
        self.axes = {**self.table.shapes.axes}
        for step in row[: row.index(self.step) + 1]:
            self.axes |= step.shapes if step.kernel else self.made_by(step)

    def made_by(self, line) -> dict[str, tuple[str, ...]]:
        """The axes of what a line of torch makes of arrays: those of the same length."""
        if line.function is None or not {*line.takes} <= self.axes.keys():
            return {}
        lengths = {axis: 101 + 2 * i for i, axis in enumerate(sorted(sum(self.axes.values(), ())))}
        lengths["1"] = 1
        shapes = ([lengths[axis] for axis in self.axes[name]] for name in line.takes)
        try:
            made = line.function(*(torch.empty(shape, device="meta") for shape in shapes))
        except (RuntimeError, ValueError):  # there are no such lengths, as in a convolution
            return {}
        if not isinstance(made, torch.Tensor):
            return {}
        of = {length: axis for axis, length in lengths.items()}
        return {line.makes[0]: tuple(of.get(length, "") for length in made.shape)}

    def sizes(self, inner: int) -> dict[str, int]:
        """``inner`` entries in a row, and many rows."""
        of, fixed = self.function.sizes, self.table.shapes.fixed
        *before, last = [of[axis] for axis in self.function.inner] or [""]
        found = dict.fromkeys([*self.step.numbers[: self.step.sizes], *of.values()], ROWS)
        *of_one, last = last.split("*")  # several axes that are one
        few = 1 if inner % FEW ** len(of_one) else FEW
        found |= dict.fromkeys(before, FEW) | dict.fromkeys(of_one, few)
        return found | {last: inner // few ** len(of_one)} | fixed

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

    def kind(self, pointer: str, exact: set[str], dtype: str) -> str:
        aside = exact | self.function.parts.keys() | self.function.keeps.keys()
        return "fp32" if pointer in aside else "i64" if pointer in self.whole else dtype

    @property
    def passes(self) -> int:
        """Over a row that is read in chunks."""
        return self.function.function.src.count("for start in")

    @property
    def whole(self) -> set[str]:
        return self.table.shapes.whole | self.places

    @property
    def places(self) -> set[str]:
        """Of the largest entries, which torch finds: one for each row."""
        lines = (step for row in self.table.rows for step in row.steps if isinstance(step, tuple))
        return {name for name, line in lines if "argmax" in line.__code__.co_names}

    def axes_of(self, name: str) -> list[str]:
        """Those of an array; all of them where that is not known."""
        of = self.function.sizes
        known = self.axes.get(name, self.row)
        found = [part for axis in known for part in self.made_of.get(axis, axis).split()]
        return [a for axis in found for a in (of[axis].split("*") if axis in of else [axis])]

    @property
    def row(self) -> set[str]:
        of = self.function.sizes
        return {size for axis in self.function.inner for size in of[axis].split("*")}

    def least(self) -> Least:
        """What it reads and writes if it does so once for every array that has entries of a row. A
        label picks an entry of each array that has fewer.
        """
        fixed, rows = self.table.shapes.fixed, {*self.function.rows}
        lengths = self.sizes(self.longest())
        called = zip(self.record.first.arrays, (*self.step.takes, *self.step.makes), strict=True)
        own = {name for argument, name in called if argument in self.function.arrays}
        found, labels = Least(), 0
        for kind, names in (("ld", self.step.takes), ("st", self.step.makes)):
            for name in own.intersection(names):
                axes = self.axes_of(name)
                along = self.row.intersection(axes)
                found.others += along < self.row
                if name in self.places or not along:
                    continue
                several = math.prod(fixed[a] for a in axes if a in fixed and a not in rows)
                size = several * (LABEL if name in self.whole else 4)
                share = 1 / math.prod(lengths[a] for a in self.row - along)
                found.each[kind] += size
                found.bytes[kind] += size * share
                labels += share * (name in self.whole)
        found.bytes["ld"] += 4 * labels * found.others
        return found


class Compiled:
    """A function as it is launched for some sizes: compiled for ``arch``."""

    def __init__(self, own: Own, exact: set[str], sizes: dict[str, int], arch: int, dtype: str):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        self.launch, function = own.function.launch(sizes), own.function
        signature, constants, aligned = {}, {}, {}
        real = {"REAL": triton.language.float32, **self.launch.constants}
        numbers = {**sizes, **self.launch.lengths, "rows": self.launch.rows}
        for i, name in enumerate(function.function.arg_names):
            if name in function.constants:
                signature[name], constants[name] = "constexpr", real[name]
            elif name.endswith("_ptr"):
                signature[name] = f"*{own.kind(name.removesuffix('_ptr'), exact, dtype)}"
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


def functions_of(name: str) -> tuple[list[Own], set[str]]:
    """Those of all kernels of a module, and what is exact in it."""
    import_module(f"generated.triton.{name}")
    records = import_module("generated.triton._launching").records
    own = [record for (file, _), record in records.items() if Path(file).stem == name]
    every = [Own(name, r, function) for r in own for function in (r.first, *r.longer)]
    return every, set().union(*(record.exact for record in own))
