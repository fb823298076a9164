"""Functions that check their arguments in lines of their own: of modules of ranks and chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from codegen.program import Function
from codegen.program.steps import NameSize
from codegen.targets.torch.checks import restored
from codegen.targets.torch.functions import Functions, layouts_in
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.wrapping import KINDS, in_tuple, typed, used, wrapped


@dataclass(frozen=True)
class Core:
    """A function as its lines alone: its ``def`` with the lines above it, its body, its results."""

    signature: str
    lines: tuple[str, ...]
    returned: str


@dataclass(frozen=True)
class AskingFunction:
    """A function that checks its arguments in its own ``lines``, and the lines that it calls."""

    summary: str
    signature: str
    shapes: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str
    core: tuple[Core, ...] = ()


class Asking(Functions):
    """The functions of a Program, each with the lines that check its arguments."""

    def function(
        self, function: Function, lines: Sequence[str], results: Sequence[str], *core: Core
    ) -> AskingFunction:
        lines = used(lines, ", ".join(results))
        kinds = {p.name: KINDS.get(p.role, "Tensor") for p in function.parameters}
        kinds |= {name: self.kind_of_size(name) for name, _ in function.sizes}
        layouts = layouts_in(function)
        returned = f" -> {function.result_class}:"
        uncast = "@_runtime.uncast\n" * (not core and self.multiplies_matrices(function))
        return AskingFunction(
            function.summary,
            uncast + wrapped(f"def {function.name}", self.arguments(function), returned),
            self.shapes(function),
            tuple(lines),
            function.result_class,
            tuple(
                (
                    name,
                    kinds.get(name, "Tensor"),
                    f"  # {self.shape_of(layouts[name])}" if name in layouts else "",
                )
                for name in function.results
            ),
            wrapped(f"return {function.result_class}", results, indent=4),
            core,
        )

    def core(
        self,
        function: Function,
        name: str,
        more: Sequence[str] = (),
        returned: Sequence[str] = (),
    ) -> Core:
        """The lines of a function, without checks of its arguments; ``returned`` as a plain tuple,
        if given.
        """
        arguments = [*(p.name for p in function.parameters), *more]
        uncast = "@_runtime.uncast\n" * self.multiplies_matrices(function)
        kind = "tuple" if returned else function.result_class
        last = wrapped(f"return {function.result_class}", function.results, indent=4)
        if returned:
            last = broken(f"return {in_tuple(returned)}")
        return Core(
            uncast + wrapped(f"def {name}", arguments, f" -> {kind}:"),
            tuple(self.lines(function)),
            last,
        )

    def restored(self, function: Function, of: str = "", rounded: int = 0) -> list[str]:
        """The results as they are returned: with all dimensions, the first ones ``rounded``."""
        printer, layouts = self.printer(function), layouts_in(function)
        found = []
        for i, name in enumerate(function.results):
            if name in self.dims:
                found.append(f"tuple({self.dims[name]})")
                continue
            text = restored(printer, of + name, layouts.get(name, ()))
            found.append(f"{text}.to({self.dtype})" if i < rounded else text)
        return found

    def shapes(self, function: Function) -> str:
        """The shapes of the arguments, in lines."""
        texts = [
            f"{p.name} {self.shape_of(p.layout)}" for p in (*function.tensors, *function.shapes)
        ]
        return "\n    ".join(wrap(f"Shapes: {', '.join(texts)}.", LONGEST - 4))

    def kind_of_size(self, name: str) -> str:
        return KINDS["shape" if name in self.program.several else "size"]

    def arguments(self, function: Function) -> list[str]:
        """The parameters of a ``def``. Python requires a default after the first one; a required
        argument among those is checked in the lines.
        """
        found, optional = [], False
        for p in function.parameters:
            text = typed(p)
            found.append(f"{text} | None = None" if optional and "=" not in text else text)
            optional |= "=" in text
        return found

    @property
    def inputs(self) -> str:
        return ", ".join(p.name for p in self.program.forward.parameters)

    def of_role(self, role: str) -> tuple[str, ...]:
        """The arguments of a role."""
        return tuple(p.name for p in self.program.forward.parameters if p.role == role)

    @property
    def prepared_names(self) -> str:
        return ", ".join([self.dtype, *self.dims.values(), self.inputs])

    @property
    def prepared(self) -> str:
        names = (p.name for p in self.program.forward.parameters)
        return wrapped(f"{self.prepared_names} = _arguments", [*names], indent=4)

    def arguments_asked(self) -> list[str]:
        """The lines of the function that checks the inputs."""
        return used(self.asked(self.program.forward), self.prepared_names)

    def asked(self, function: Function, margin: str = STEP) -> list[str]:
        """The checks of a function, without those that torch itself makes in time."""
        printer = self.printer(function)
        lines = [printer.step(step, margin) for step in function.checks]
        if function is self.program.forward:
            ranges = (step for step in self.program.ranges if not self.guarded(function, step.name))
            lines += (printer.step(step, margin) for step in ranges)
        return lines

    def at_hand(self, function: Function) -> set[str]:
        """Sizes known in the chain from the checks of its arguments."""
        if function is not self.program.chain:
            return set()
        return {step.name for step in function.checks if isinstance(step, NameSize)}
