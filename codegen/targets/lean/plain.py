"""The plain functions of a lean module as text: the forward, and the backward in closed form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program import steps as of
from codegen.program.values import LengthOf, Load
from codegen.program.wanted import wanted_by
from codegen.targets.lean.kept import of_results
from codegen.targets.lean.outside import DONE_OUTSIDE, Outside
from codegen.targets.lean.pointwise import is_pointwise
from codegen.targets.lean.printer import LeanPrinter
from codegen.targets.torch.checks import condition
from codegen.targets.torch.functions import Functions
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.rows import Surroundings
from codegen.targets.torch.wrapping import KINDS, free, wrapped

FEW = 3  # tensors that are named twice on a line
OWN = (  # names that a module uses
    *("dtype", "wide", "run", "plain", "total", "name", "t", "atoms"),
    *("ctx", "inputs", "output"),
)
QUOTES = 3  # round a docstring


@dataclass(frozen=True)
class FunctionText:
    """A function in the form of its template: its ``def``, docstring and lines."""

    signature: str
    doc: tuple[str, ...]
    lines: tuple[str, ...]


class PlainFunctions(Functions):
    """The forward and the backward as plain functions, which train without autograd."""

    indices = ("label", "kept")  # roles with a dtype of their own

    def __init__(self, program: Program, outside: Outside):
        super().__init__(program)
        self.outside, self.name, self.outputs = outside, program.name, program.outputs
        forward = program.forward
        taken = {*self.sizes.values(), *self.outputs}
        for function in (forward, program.backward, program.atoms, program.chain):
            taken |= {p.name for p in function.parameters} | {s.name for s in function.steps}
        self.called = {name: free(name, taken) for name in OWN}
        self.both, self.wide = self.called["dtype"], self.called["wide"]
        self.masks = {s.name: s for s in forward.steps if isinstance(s, of.SplitLabel)}
        self.inner = [*self._inner(forward.parameters)]
        self.tensors = [p for p in self.inner if p.role not in NUMBERS]
        self.differentiable = [p.name for p in self.inner if p.role == "input"]
        self.floats = [p.name for p in self.tensors if p.role in ("input", "given")]
        axes = {p.name: {dim.axis for dim in p.layout} for p in self.tensors}
        self.ranked = [n for n in self.floats if axes[n]] or self.floats  # as torch promotes
        first = axes[self.differentiable[0]]  # broadcast inputs decide no dtype
        self.deciding = [n for n in self.differentiable if not axes[n] < first]
        own = {p.name for p in self.inner}
        read = [p.name for p in program.needs if p.role not in NUMBERS]
        numbers = [p.name for p in program.needs if p.role in NUMBERS]
        self.made = [n for n in read if n not in {*own, *self.outputs}]
        self.saved = [n for n in read if n not in self.made]
        if self.made:  # they are computed again, from all inputs
            every = [p.name for p in self.tensors]
            self.saved = [*every, *(n for n in self.saved if n not in every)]
        again = [p.name for p in self.inner if p.role in NUMBERS and self.made]
        self.read = [*read, *numbers]
        self.noted = list(dict.fromkeys([*again, *numbers]))  # the numbers that ctx holds
        steps = [s for s in forward.steps if isinstance(s, of.Assign)]
        renamed = {s.name: s.value.name for s in steps if isinstance(s.value, Load)}
        self.renamed = {n: of for n, of in renamed.items() if n in self.outputs and n not in read}
        self.is_pointwise = is_pointwise(program)
        self.passed = {n for n in self.outputs if _end(renamed, n) in own - {n}}

    def _inner(self, parameters: Sequence[Parameter]) -> Iterator[Parameter]:
        """Parameters of the plain forward; for a label that may be ignored, also its mask."""
        for p in parameters:
            if p.role != "index":
                yield replace(p, default=None)
            if p.name in self.masks:
                yield Parameter(self.masks[p.name].kept, self.masks[p.name].dims, "kept")

    def _typed(self, parameters: Sequence[Parameter]) -> list[str]:
        kinds = {**KINDS, "shape": "int"}  # an `Axes` is one dimension by then
        return [f"{p.name}: {kinds.get(p.role, 'Tensor')}" for p in parameters]

    # -- the plain functions -----------------------------------------------------------

    def printer(self, function: Function) -> LeanPrinter:
        roles = (("input", "adjoint", "statement"), ("kept", "given"))
        tensors = [p for role in roles for p in function.parameters if p.role in role]
        like = min(tensors, key=lambda p: p.default is not None).name
        around = Surroundings(self.name, self.dims, dict(self.program.fixed), self.dtype, True)
        numbers = [p.name for p in function.parameters if p.role in NUMBERS]
        printer = LeanPrinter(self.sizes, numbers, like, around)
        printer.in_place = function is self.program.backward
        return printer

    def is_left_out(self, step: of.Step, function: Function) -> bool:
        if isinstance(step, of.NotZero):  # a backward checks only what its forward does not
            asked = [s.divisor for s in self.program.forward.steps if isinstance(s, of.NotZero)]
            return function is self.program.backward and step.divisor in asked
        return isinstance(step, DONE_OUTSIDE) or step.name in self.renamed

    def asks_for(self, results: frozenset[str], function: Function) -> str:
        asked = [name for result, name in self.places(function).items() if result in results]
        return condition([f"need_{name}" for name in asked])

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        """The lines; sizes of one tensor stand on one line if they are its whole shape, and only if
        used.
        """
        body, of_tensor = super().lines(function, margin), {}
        code = re.sub(r'"[^"]*"', _held_in_words, "\n".join(body))
        used = {*re.findall(r"\w+", code)}
        for name, value in function.sizes:
            if isinstance(value, LengthOf) and name in used:
                of_tensor.setdefault(value.tensor, {})[value.along] = name
        return [*sizes_read(of_tensor, {p.name: len(p.layout) for p in function.parameters}), *body]

    def sizes_in(self, lines: Sequence[str]) -> list[str]:
        """The lines that read the sizes in other lines from the arguments."""
        named = {*re.findall(r"(?<![.\w])\w+", "\n".join(lines))}
        tensors = sorted(self.program.forward.tensors, key=lambda p: p.default is not None)
        read: dict[str, dict[int, str]] = {}
        for tensor, i, dim in ((t.name, i, d) for t in tensors for i, d in enumerate(t.layout)):
            size = self.sizes[dim.axis.name]
            if not dim.one and size in named:
                named.remove(size)  # of the first one that has it
                if self.is_pointwise:
                    return [f"{size} = {tensor}.numel()"]
                read.setdefault(tensor, {})[i] = size
        return sizes_read(read, {p.name: len(p.layout) for p in tensors})

    def at_hand(self, function: Function) -> set[str]:
        return {name for name, value in function.sizes if isinstance(value, LengthOf)}

    def forward(self) -> FunctionText:
        """The forward: returns the outputs, then the values that the backward reads."""
        said = f"The {listed('output', self.outputs)}"
        said += ", then what the backward reads of it." if self.made else "."
        return self._plain(self.program.forward, "forward", said, self.made)

    def statements(self) -> FunctionText | None:
        """The statements as they are written, if the lines of the forward decide otherwise."""
        function = lines_to_differentiate(self.program)
        if function is self.program.forward:
            return None
        said = "The forward as it is written: torch differentiates it to any order."
        return self._plain(of_results(function, self.outputs), "statements", said, ())

    def _plain(self, function: Function, kind: str, said: str, more: Sequence[str]) -> FunctionText:
        results = [*map(self.returned, self.outputs), *more]
        several = f"tuple[{', '.join(['Tensor'] * len(results))}]"
        if len(f") -> {several}:") > LONGEST:
            several = "tuple[Tensor, ...]"
        returned = several if len(results) > 1 else "Tensor"
        formats = self._formats(returned=not self.outside.reductions)
        lines = [*formats, *self._widened(self.tensors), *self.lines(function)]
        return FunctionText(
            wrapped(f"def {self.name}_{kind}", self._typed(self.inner), f" -> {returned}:"),
            doc(said),
            (*self._uncast(lines, self.floats[0], function), returning(results)),
        )

    def backward(self) -> FunctionText:
        """The gradients of the inputs."""
        function = self.program.backward
        kinds = dict(zip(self.names_of(function), self._typed(function.parameters), strict=True))
        upstreams = [p.name for p in self.program.upstreams]
        arguments = [kinds[name] for name in (*upstreams, *self.read)]
        arguments += [f"need_{name}: bool = True" for name in self.asked()]
        tensors = [p for p in function.parameters if p.role not in NUMBERS]
        given = [p for p in tensors if p.name not in self.made]
        lines = [
            f"{self.wide} = torch.promote_types({upstreams[0]}.dtype, torch.float32)",
            *self._widened(given),
            *self.lines(function),
        ]
        results = function.results
        several = len(results) > 1
        return FunctionText(
            wrapped(
                f"def {self.name}_backward", arguments, f" -> {'tuple' if several else 'Tensor'}:"
            ),
            doc(f"The {listed('gradient', self.differentiable, 'of ')}."),
            (*self._uncast(lines, upstreams[0], function), returning(results)),
        )

    def names_of(self, function: Function) -> list[str]:
        return [p.name for p in function.parameters]

    def _formats(self, returned: bool) -> list[str]:
        """The dtype of the lines, at least float32, and that of the ``returned`` results: of the
        inputs that decide it, as of an activation beside a gain of float32.
        """
        own, single = promoted(self.deciding), "torch.float32"
        if returned and self.deciding == self.ranked:
            wide = f"{self.wide} = torch.promote_types({self.both}, {single})"
            return [broken(f"{self.both} = {own}"), wide]
        wide = f"torch.promote_types({own}, {single})"
        if len(self.ranked) > 1:
            every = f"[t.dtype for t in ({', '.join(self.ranked)})]"
            wide = f"functools.reduce(torch.promote_types, {every}, {single})"
        lines = [broken(f"{self.wide} = {wide}")]
        if returned:
            lines.append(broken(f"{self.both} = {own} if {self.wide} == {single} else {self.wide}"))
        return lines

    def _widened(self, tensors: Sequence[Parameter]) -> list[str]:
        """Lines that convert 16 bits to 32, and several dtypes to one; indices stay."""
        names = [p.name for p in tensors if p.role not in self.indices]
        if not names:
            return []
        own = ", ".join(names)
        if len(names) <= FEW:
            return [broken(f"{own} = {', '.join(f'{n}.to({self.wide})' for n in names)}")]
        return [broken(f"{own} = (t.to({self.wide}) for t in ({own}))")]

    def returned(self, name: str) -> str:
        """An output in the dtype of the inputs; of a reduced loss in that of the lines. An argument
        is not returned as it is: torch saves none that is.
        """
        own = self.renamed.get(name, name)
        own = f"{own}.view_as({own})" if name in self.passed else own
        return own if self.outside.reductions else f"{own}.to({self.both})"

    def _uncast(self, lines: list[str], like: str, function: Function) -> list[str]:
        """The lines without autocast, which would change the dtype of matrix products."""
        if not self.multiplies_matrices(function):
            return lines
        inside = [STEP + line.replace("\n", "\n" + STEP) for line in lines]
        return [f"with _runtime.uncast({like}):", *inside]

    def asked(self) -> list[str]:
        """The inputs whose gradients the backward computes only if needed."""
        function = self.program.backward
        if not self.guards_in(function):
            return []
        everything = frozenset(function.results)
        some = set().union(*(by for by in wanted_by(function) if by != everything))
        return [name for name in self.differentiable if f"d{name}" in some]


def _end(names: Mapping[str, str], name: str) -> str:
    """The final name behind a chain of names."""
    while name in names:
        name = names[name]
    return name


def _held_in_words(words: re.Match) -> str:
    """The replacement fields of a format string."""
    return " ".join(re.findall(r"\{[^}]*\}", words[0]))


def sizes_read(of_tensor: Mapping[str, Mapping[int, str]], ranks: Mapping[str, int]) -> list[str]:
    """The lines that read sizes off shapes: all of a tensor's on one line."""
    read = []
    for tensor, names in of_tensor.items():
        if len(names) == ranks[tensor] > 1:
            read.append(f"{', '.join(names[i] for i in sorted(names))} = {tensor}.shape")
        else:
            read += [f"{name} = {tensor}.shape[{i}]" for i, name in names.items()]
    return read


def promoted(names: Sequence[str]) -> str:
    """The promoted dtype of several tensors."""
    first, *others = [f"{name}.dtype" for name in names]
    if len(others) > 1:
        every = f"[t.dtype for t in ({', '.join(names)})]"
        return f"functools.reduce(torch.promote_types, {every})"
    return f"torch.promote_types({first}, {others[0]})" if others else first


def returning(results: Sequence[str]) -> str:
    if len(results) > FEW and {*results} == {"None"}:
        return f"return (None,) * {len(results)}"
    line = broken(f"return {', '.join(results)}")
    if all(len(STEP + part) <= LONGEST for part in line.split("\n")):
        return line
    return wrapped("return ", results, indent=len(STEP))


def doc(text: str) -> tuple[str, ...]:
    first, *others = wrap(text, LONGEST - len(STEP) - QUOTES)
    return (f'"""{first}"""',) if not others else (f'"""{first}', *others, '"""')


def listed(word: str, names: Sequence[str], before: str = "") -> str:
    *first, last = names
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{word}{'s' * bool(first)} {before}{listed}"
