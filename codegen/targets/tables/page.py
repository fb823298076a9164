"""The plain functions of a lean module on kernels, as text: what is allocated and launched.

They have the arguments and results of those that they stand for; what libraries do between loops
stays a line of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from codegen.program import Function, Parameter
from codegen.program.arrays import Contract
from codegen.program.parts import values_in
from codegen.program.reads import Convolve
from codegen.program.steps import Assign, Fill, SplitLabel
from codegen.schedule.at_once import Around, with_gradients
from codegen.schedule.elements import number
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat, Whole
from codegen.targets.lean.helpers import CALLED
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, PlainFunctions, doc, returning
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.lines import KernelLines, Loops, speaks_of
from codegen.targets.torch.checks import condition
from codegen.targets.torch.lines import STEP
from codegen.targets.torch.wrapping import KINDS, free, wrapped
from derive.notation.definition import IGNORE_INDEX, REDUCTION, SUM

# Prints the kernels of a function: of its name, its nodes, the names of sizes by their axes, the
# results that may be left out, and the sizes of axes that stand for any number of dimensions.
Prints = Callable[
    [str, Flat, Mapping[str, str], Sequence[str], Sequence[str]], Sequence[Kernel | Whole]
]


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
        self.pair, self.at_once = pair, None
        self.plain: KernelPage | None = None  # of the calls that pass nothing optional
        self.own = {name: free(name, taken) for name in ("kernels", "lines")}
        for name in ("forward", "backward", "at_once"):
            part = "plain_" * bool(pair.is_plain)
            self.own[name] = free(f"{part}{name}", taken)
        gradients = program.backward.results
        own = [self._loops("forward", program.forward, ())]
        self.at_once = self._at_once(pair)
        if not self.at_once or self.outside.reductions:  # where entries are asked for
            left_out = gradients if self.asked() else ()
            own.append(self._loops("backward", program.backward, left_out))
        self.loops = [found for found in (*own, self.at_once) if found and found.kernels]

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for loops in self.loops for kernel in loops.kernels]

    def written(self) -> Iterator[FunctionText]:
        """The functions, without formats that no line names."""
        for loops in self.loops:
            self.current = loops
            if loops is self.at_once:
                text = self._with_gradients()
            else:
                text = self.forward() if self._is_forward(loops) else self.backward()
            helper = rf"{self.own['lines']}._\1"
            lines = tuple(CALLED.sub(helper, line) for line in text.lines)
            for name in (self.wide, self.both):
                own = [line for line in lines if line.lstrip().startswith(f"{name} = ")]
                if not any(speaks_of(line, name) for line in lines if line not in own):
                    lines = tuple(line for line in lines if line not in own)
            yield replace(text, lines=lines)

    def _is_forward(self, loops: Loops) -> bool:
        return loops.function is self.program.forward

    def _loops(self, name: str, function: Function, left_out: Sequence[str]) -> Loops:
        found = flat(self.program, function)
        if self.outside.reductions:  # the entries of a loss are not rounded before they are added
            own = {p.name for p in self.program.upstreams}
            arrays = [replace(a, entries="exact") if a.name in own else a for a in found.arrays]
            rounded = found.rounded - {*self.outputs}
            found = replace(found, arrays=tuple(arrays), rounded=rounded)
        return self._printed(name, function, found, left_out)

    def _printed(self, name: str, function: Function, flat: Flat, left_out: Sequence[str]) -> Loops:
        nodes = dict.fromkeys(node for result, node in flat.results if result in left_out)
        given = self.own[name], flat, self.codes, tuple(nodes), self.program.several
        return Loops(function, flat, tuple(self.prints(*given)))

    def _at_once(self, pair: Pair) -> Loops | None:
        """A loss with its gradients, and what stands around it; None where the output is no number,
        or a library has a part in it.
        """
        gradients = self.program.backward.results
        found = with_gradients(self.program, gradients, around_of(pair))
        if found is None or any(isinstance(node, Whole) for node in found[1].nodes):
            return None
        function, nodes = found
        return self._printed("at_once", function, nodes, gradients if gradients[1:] else ())

    def _with_gradients(self) -> FunctionText:
        """The function that computes a loss with its gradients."""
        function, forward = self.at_once.function, self.program.forward
        optional = {p.name for p in forward.tensors if p.default is not None}
        given = [p for p in function.parameters if p.name != REDUCTION]
        kinds = [
            f"{p.name}: {KINDS.get(p.role, 'Tensor')}{' | None' * (p.name in optional)}"
            for p in given
        ]
        kinds += [f"{REDUCTION}: str"] * bool(self.outside.reductions)
        kinds += [f"need_{name}: bool = True" for name in self.asked_of(function)]
        fills = [s for s in forward.steps if isinstance(s, Fill)]
        filled = [self.printer(forward).step(step) for step in fills]
        lines = [*self.sizes_in(filled), *filled, *self._formats(returned=True)]
        if self.outside.reductions:
            lines.append(f"{REDUCTION} = REDUCTIONS.index({REDUCTION})")
        lines += [*self._widened(function.tensors), *self.lines(function)]
        if self.plain is not None and self.plain.at_once:
            lines[:0] = self._left_to(self.plain)
        gradients = [f"d{p.name}" if p.role == "input" else "None" for p in given]
        gradients += ["None"] * bool(self.outside.reductions)
        if self.pair.is_plain:
            gradients = [each for each in gradients if each != "None"]
        loss = self.loss_at_once()
        return FunctionText(
            wrapped(f"def {self.name}_at_once", kinds, " -> tuple[Tensor | None, ...]:"),
            doc("The loss, and the gradient of every argument where it arrives as 1."),
            (*lines, returning([loss, *gradients])),
        )

    @property
    def reductions(self) -> list[str]:
        """The line with the reductions whose numbers a kernel is passed, where it reduces."""
        words = [f'"{word}"' for word in (SUM, *(word for word, _ in self.outside.divisors))]
        line = f"REDUCTIONS = [{', '.join(words)}]"
        return [line] if self.at_once and self.outside.reductions else []

    def _left_to(self, plain: KernelPage) -> list[str]:
        """What hands the calls on that pass nothing optional."""
        own = [p.name for p in plain.at_once.function.parameters]
        needs = [f"need_{name}" for name in plain.asked_of(plain.at_once.function)]
        margin = len(STEP) * 2
        there = [f"d{name}" for name in plain.differentiable]
        made = ", ".join([self.outputs[0], *there])
        call = wrapped(f"{made} = {plain.name}_at_once", [*own, *needs], indent=margin)
        given = [p.name for p in self.at_once.function.parameters]
        places = [f"d{name}" if f"d{name}" in there else "None" for name in given]
        returned = returning([self.outputs[0], *places])
        return [condition(plain.pair.tests, "and"), STEP + call, STEP + returned]

    def loss_at_once(self) -> str:
        """The loss as it is returned with its gradients."""
        loss = self.outputs[0]
        is_made = self.is_narrow and not self.is_exact(loss, self.current)
        return loss if is_made else f"{loss}.to({self.both})"

    def asked_of(self, function: Function) -> list[str]:
        """The inputs whose gradients a function computes only where they are needed."""
        if self.at_once and function is self.at_once.function:
            return self.differentiable if self.differentiable[1:] else []
        return self.asked() if function is self.program.backward else []

    def places(self, function: Function) -> dict[str, str]:
        with_gradients = self.at_once and function is self.at_once.function
        return super().places(self.program.backward if with_gradients else function)

    # -- lines ------------------------------------------------------------------------

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        loops = next(own for own in self.loops if own.function is function)
        return KernelLines(self, loops, margin).lines()

    def memory_for(self, loops: Loops, piece: Kernel, name: str, shape: Sequence[str]) -> str:
        """The memory for what a kernel makes."""
        like, dtype = self.format_of(loops, piece, name)
        given = ", ".join(shape) or "()"
        return f"{like}.new_empty({given}{f', dtype={dtype}' if dtype else ''})"

    def format_of(self, loops: Loops, piece: Kernel, name: str) -> tuple[str, str]:
        """A tensor of the format that memory for a value has, or any and the format: that of the
        inputs, or of the argument that a gradient is of. What is passed on, or is a part of a loss,
        is not rounded.
        """
        if not self.is_narrow:
            return self.like, ""
        return self._format(loops, name, name in (*piece.exact, *piece.left))

    def _format(self, loops: Loops, name: str, exact: bool) -> tuple[str, str]:
        function, result = loops.function, self._result(loops, name)
        like = self.printer(function).like
        if loops is self.at_once and not exact:
            own = result.removeprefix("d")
            return (like, self.both) if result in self.outputs else (own, f"unscaled({own})")
        if exact or (self.outside.reductions and result in self.outputs):
            return like, self.wide
        if self._is_forward(loops):
            return (like, "") if len(self.floats) == 1 else (like, self.both)
        own = {p.name for p in function.parameters}
        if result.removeprefix("d") in own:
            return result.removeprefix("d"), ""
        upstream = self.program.upstreams[0]
        is_long = len(self._layout(result)) >= len(upstream.layout)
        return (upstream.name, "") if is_long else (like, self.wide)

    def _result(self, loops: Loops, name: str) -> str:
        return next((result for result, node in loops.flat.results if node == name), name)

    def _layout(self, result: str) -> Sequence[object]:
        inputs = {f"d{p.name}": p.layout for p in self.program.forward.parameters}
        return inputs.get(result, ())

    def launched(self, piece: Kernel, named: Callable[[str], str], margin: int) -> Iterator[str]:
        """The lines that call a kernel; ``named`` says what arrays are called."""
        given = [*map(named, (*piece.reads, *piece.writes)), *piece.sizes, *piece.scalars]
        yield wrapped(f"{self.own['kernels']}.{piece.name}", given, indent=margin)

    @property
    def is_narrow(self) -> bool:
        """Whether kernels alone compute the function that is being written."""
        return len(self.current.kernels) == len(self.current.pieces)

    @property
    def like(self) -> str:
        return self.printer(self.current.function).like

    def _widened(self, tensors: Sequence[Parameter]) -> list[str]:
        return [] if self.is_narrow else super()._widened(tensors)

    def returned(self, name: str) -> str:
        """A kernel has made it in its format, unless it was not rounded."""
        is_made = self.is_narrow and not self.is_exact(name, self.current)
        return name if is_made else super().returned(name)

    def is_exact(self, result: str, loops: Loops) -> bool:
        """Whether a kernel that computes it has not rounded it."""
        exact = {made for kernel in loops.kernels for made in kernel.exact}
        return dict(loops.flat.results)[result] in exact

    def multiplies_matrices(self, function: Function) -> bool:
        """Whether a line of torch does."""
        loops = next(own for own in self.loops if own.function is function)
        lines = [Assign(p.name, p.value) for p in loops.pieces if isinstance(p, Whole)]
        return any(isinstance(v, (Contract, Convolve)) for line in lines for v in values_in(line))


def around_of(pair: Pair) -> Around:
    """What torch computes around the entries of a loss."""
    outside, forward = pair.outside, pair.program.forward
    labels = [step.ignored for step in forward.steps if isinstance(step, SplitLabel)]
    return Around(
        reduces=bool(outside.reductions),
        divisors=tuple(steps for _, steps in outside.divisors),
        ignored=tuple((i.label.name, i.kept.name) for i in outside.ignoring),
        index=IGNORE_INDEX if outside.ignoring else "".join(labels[:1]),
        absent={name: number(Fraction(default)) for name, default in pair.absent},
    )


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
