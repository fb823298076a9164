"""The plain functions of a lean module on kernels, as text: what is allocated and launched.

They have the arguments and results of those that they stand for; what libraries do between loops
stays a line of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from codegen.program import Function, Parameter
from codegen.program.arrays import Contract
from codegen.program.parts import values_in
from codegen.program.reads import Convolve
from codegen.program.steps import Assign
from codegen.schedule.asked import Asked
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.lean.helpers import CALLED
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, PlainFunctions
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.lines import KernelLines, Loops, speaks_of
from codegen.targets.torch.lines import STEP
from codegen.targets.torch.wrapping import free, wrapped

# Prints the kernels of a function: of its name, its nodes, the names of sizes by their axes, and
# what is asked of them.
Prints = Callable[[str, Flat, Mapping[str, str], Asked], Sequence[Kernel | Whole]]


def names_taken(pairs: Sequence[Pair]) -> frozenset[str]:
    """What the functions of a module call something."""
    taken: set[str] = set()
    for program in (pair.program for pair in pairs):
        taken |= {name for _, name in program.sizes} | {*program.outputs}
        for function in (program.forward, program.backward):
            taken |= {p.name for p in function.parameters} | {s.name for s in function.steps}
    return frozenset(taken)


class KernelPage(PlainFunctions):
    """The functions that have kernels. Raises `QuestionError` for what no loop computes."""

    indices = ("label",)  # a mask is multiplied with, in the dtype of the others

    def __init__(self, pair: Pair, taken: frozenset[str], prints: Prints):
        program = pair.program
        super().__init__(program, pair.outside)
        self.prints, self.codes = prints, dict(program.sizes)
        self.renamed = {}  # what is made is called as the results are
        self.own = {name: free(name, taken) for name in ("kernels", "lines")}
        for name in ("forward", "backward"):
            part = "plain_" * bool(pair.is_plain)
            self.own[name] = free(f"{part}{name}", taken)
        self.loops = [
            found
            for found in (
                self._loops(self.own["forward"], program.forward, ()),
                self._loops(
                    self.own["backward"],
                    program.backward,
                    program.backward.results if self.asked() else (),
                ),
            )
            if found.kernels
        ]

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for loops in self.loops for kernel in loops.kernels]

    def written(self) -> Iterator[FunctionText]:
        """The functions, without formats that no line names."""
        for loops in self.loops:
            self.current = loops
            text = self.forward() if self._is_forward(loops) else self.backward()
            helper = rf"{self.own['lines']}._\1"
            lines = tuple(CALLED.sub(helper, line) for line in text.lines)
            for name in (self.wide, self.both):
                own = [line for line in lines if line.startswith(f"{name} = ")]
                if not any(speaks_of(line, name) for line in lines if line not in own):
                    lines = tuple(line for line in lines if line not in own)
            yield replace(text, lines=lines)

    def _is_forward(self, loops: Loops) -> bool:
        return loops.function is self.program.forward

    def _loops(self, name: str, function: Function, left_out: Sequence[str]) -> Loops:
        program = self.program
        found = flat(program, function)
        upstreams = [p.name for p in program.upstreams if p.layout and self.outside.reductions]
        asked = Asked(
            tuple(dict.fromkeys(node for result, node in found.results if result in left_out)),
            tuple(upstreams),
            tuple(p.name for p in program.forward.tensors if p.default is not None),
            tuple(p.name for p in program.forward.parameters if _is_zero(p)),
            program.several,
        )
        return Loops(function, found, tuple(self.prints(name, found, self.codes, asked)))

    # -- lines ------------------------------------------------------------------------

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        loops = next(own for own in self.loops if own.function is function)
        return KernelLines(self, loops, margin).lines()

    def memory_for(self, loops: Loops, piece: Kernel, name: str, shape: Sequence[str]) -> str:
        """The memory for what a kernel makes."""
        return f"{self.printer(loops.function).like}.new_empty({', '.join(shape) or '()'})"

    def launched(self, piece: Kernel, named: Callable[[str], str], margin: int) -> Iterator[str]:
        """The lines that call a kernel; ``named`` says what arrays are called."""
        for name in piece.repeated:
            yield f"{name}, {name}_repeated = one_number({name})"
        arrays = [*map(named, (*piece.reads, *piece.writes))]
        others = [*piece.sizes, *(f"{name}_repeated" for name in piece.repeated)]
        others += [*(f"is_one_number({name})" for name in piece.filled), *piece.scalars]
        yield wrapped(f"{self.own['kernels']}.{piece.name}", [*arrays, *others], indent=margin)

    def multiplies_matrices(self, function: Function) -> bool:
        """Whether a line of torch does."""
        loops = next(own for own in self.loops if own.function is function)
        lines = [Assign(p.name, p.value) for p in loops.pieces if isinstance(p, Whole)]
        return any(isinstance(v, (Contract, Convolve)) for line in lines for v in values_in(line))


def _is_zero(p: Parameter) -> bool:
    """Whether it is a number that is 0 unless it is passed."""
    return p.role == "scalar" and p.default == 0


def imports_of(
    name: str,
    lines: str,
    functions: Sequence[FunctionText],
    folder: Sequence[str],
    libraries: Sequence[str] = (),
) -> list[str]:
    """The lines that import what the functions name, the module ``name`` as ``lines`` among it;
    with those for ``libraries`` and of the ``folder``.
    """
    code = "\n".join(line for f in functions for line in (f.signature, *f.lines))
    found = [f"import {module}" for module in ("functools", "math") if f"{module}." in code]
    found += [""] * bool(found)
    found += [*["import torch"] * ("torch." in code), *libraries, "from torch import Tensor", ""]
    return [*found, f"from .. import {name} as {lines}", *folder]


def of_running(functions: Sequence[FunctionText]) -> str:
    """The line that imports what kernels in C++ need."""
    code = "\n".join(line for f in functions for line in f.lines)
    running = ["Kernels", *(n for n in ("is_one_number", "one_number") if f" {n}(" in code)]
    return f"from ._running import {', '.join(running)}"
