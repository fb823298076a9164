"""The torch target: what the template prints, put together from a Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import jinja2

from codegen.program import Assign, Function, Parameter, Program
from codegen.targets.torch.check import largest_difference
from codegen.targets.torch.printer import Printer
from derive.forward import Definition
from derive.notation import checked_name

LINE = 100
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class PrintedFunction:
    """A function as the template prints it: every field is text."""

    name: str
    summary: str
    first: str
    signature: str
    shapes: tuple[str, ...]
    checks: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str


class TorchTarget:
    """Writes a module with the five functions of a forward; see ``targets/__init__.py`` for the
    contract.
    """

    suffix = ".py"

    def __init__(self):
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )

    def render(self, program: Program) -> str:
        page = _Page(program)
        template = self.environment.get_template("module.py.jinja")
        return template.render(
            program=program,
            versions=f"gradform {version('gradform')}, sympy {version('sympy')}",
            doc=_safe(program.doc),
            source=_safe(program.source).replace("\n", "?"),
            formulas=program.formulas,
            edges=page.edges(),
            uses_math="math." in page.all_lines(),
            requirements=page.requirements(),
            labels=[p.name for p in program.forward.parameters if p.role == "label"],
            inputs=program.forward.parameters,
            forward=page.function(program.forward),
            backward=page.function(program.backward),
            atoms=page.function(program.atoms),
            chain=page.function(program.chain),
            **page.wrapper(),
        )

    def largest_difference(self, file: Path, definition: Definition, program: Program) -> float:
        return largest_difference(file, definition, program)


class _Page:
    """The parts of a Program as text."""

    def __init__(self, program: Program):
        self.program = program
        self.sizes = dict(program.sizes)
        for function in (program.forward, program.backward, program.atoms, program.chain):
            for parameter in function.parameters:
                checked_name(parameter.name, "an argument")

    def printer(self, function: Function) -> Printer:
        numbers = [p.name for p in function.parameters if p.role in ("scalar", "size")]
        like = next(p.name for p in function.parameters if p.role in ("input", "adjoint"))
        return Printer(self.sizes, numbers, like)

    def function(self, function: Function) -> PrintedFunction:
        printer = self.printer(function)
        sizes = [f"{name} = {tensor}.shape[{dim}]" for name, tensor, dim in function.sizes]
        index = [
            f'{p.name} = _as_index("{p.name}", {p.name})'
            for p in function.tensors
            if p.role == "label"
        ]
        if function.tensors == self.program.forward.tensors:
            index += [
                f'_check_range("{label}", {label}, {self.size_of_axis(function, axis)})'
                for label, axis in self.program.labels
            ]
        kinds = {p.name: "int" for p in function.parameters if p.role == "size"}
        kinds |= {p.name: "float" for p in function.parameters if p.role == "scalar"}
        kinds |= {name: "int" for name, _, _ in function.sizes}
        layouts = {
            p.name: p.layout for p in function.parameters if p.role not in ("size", "scalar")
        }
        layouts |= {
            step.name: step.value.dims for step in function.steps if isinstance(step, Assign)
        }
        return PrintedFunction(
            function.name,
            function.summary,
            function.parameters[0].name,
            wrapped(
                f"def {function.name}", self.arguments(function), f" -> {function.result_class}:"
            ),
            tuple(f"{p.name} {_shape(self.axes(p))}" for p in function.tensors),
            wrapped(
                "_check_shapes",
                [f'{p.name}=({p.name}, "{" ".join(self.axes(p))}")' for p in function.tensors],
                indent=4,
            ),
            (*sizes, *index, *map(printer.step, function.steps)),
            function.result_class,
            tuple(
                (
                    name,
                    kinds.get(name, "Tensor"),
                    self.shape_of(layouts[name]) if name in layouts else "",
                )
                for name in function.results
            ),
            wrapped(f"return {function.result_class}", function.results, indent=4),
        )

    def shape_of(self, layout) -> str:
        return _shape(tuple("1" if dim.one else self.sizes[dim.axis.name] for dim in layout))

    def axes(self, parameter: Parameter) -> tuple[str, ...]:
        return tuple(self.sizes.get(axis, axis) for axis in parameter.axes)

    def arguments(self, function: Function) -> list[str]:
        def typed(p: Parameter) -> str:
            if p.role == "scalar":
                return f"{p.name}: float" + (f" = {p.default!r}" if p.default is not None else "")
            return f"{p.name}: {'int' if p.role == 'size' else 'Tensor'}"

        return [typed(p) for p in function.parameters]

    def all_lines(self) -> str:
        program = self.program
        functions = (program.forward, program.backward, program.atoms, program.chain)
        return "\n".join(self.printer(f).step(step) for f in functions for step in f.steps)

    def size_of_axis(self, function: Function, axis: str) -> str:
        """The size of an axis, read off the first argument that has it."""
        name = self.sizes[axis]
        if any(known == name for known, _, _ in function.sizes):
            return name
        tensor = next(p for p in function.tensors if name in self.axes(p))
        return f"{tensor.name}.shape[{self.axes(tensor).index(name)}]"

    def requirements(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(test, message, what is known) for every size that is refused.

        The message is the inside of an f-string. A size is tested where an argument shows it.
        """
        found = []
        for r in self.program.requirements:
            local = {axis: f'sizes["{name}"]' for axis, name in self.program.sizes}
            test = Printer(local, (), "").text(r.expression)
            shown = Printer(self.sizes, (), "").text(r.expression)
            sizes = ", ".join(f"{axis} = {{sizes['{name}']}}" for axis, name in r.axes)
            message = f"{self.program.name}: {r.user} {r.use}, but {shown} is 0 where {sizes}"
            found.append((test, message, tuple(f'"{name}" in sizes' for _, name in r.axes)))
        return tuple(found)

    def edges(self) -> tuple[str, ...]:
        """What is decided at the edges, for the docstring."""
        printer = Printer({axis: axis for axis, _ in self.program.sizes}, (), "")
        found = [
            f"ValueError where {printer.text(r.expression)} is 0: {r.user} {r.use}."
            for r in self.program.requirements
        ]
        for label, axis in self.program.labels:
            found += [
                f"TypeError where {label} is not of integers.",
                f"IndexError where {label} is outside of 0 .. {axis} - 1.",
            ]
        found += [
            "TypeError for inputs that are not floating point.",
            "ValueError for shapes that do not fit.",
            "float16 and bfloat16 are computed in float32, and rounded once at the end.",
        ]
        return tuple(found)

    def wrapper(self) -> dict[str, object]:
        """What the differentiable function needs to know of the pair behind it."""
        program = self.program
        needs = program.backward.parameters[1:]
        result = {name: f"result.{name}" for name in program.forward.results}
        tensors = [result[p.name] for p in needs if p.role not in ("size", "scalar")]
        numbers = [result[p.name] for p in needs if p.role in ("size", "scalar")]
        gradients = [
            f"gradients.d{p.name}" if p.role == "input" else "None"
            for p in program.forward.parameters
        ]
        output, upstream = program.forward.results[0], program.backward.parameters[0]
        return {
            "output": output,
            "public": wrapped(
                f"def {program.name}", self.arguments(program.forward), " -> Tensor:"
            ),
            "output_shape": _shape(self.axes(upstream)),
            "upstream": upstream.name,
            "saved_from": ", ".join(tensors),
            "numbers_from": ", ".join(numbers),
            "gradients": gradients,
        }


def wrapped(head: str, items: Sequence[str], tail: str = "", indent: int = 0) -> str:
    """``head(items)tail`` on one line, or with one item a line where that would be too long."""
    line = f"{head}({', '.join(items)}){tail}"
    if indent + len(line) <= LINE:
        return line
    margin = " " * (indent + 4)
    return "\n".join(
        [f"{head}(", *(f"{margin}{item}," for item in items), f"{' ' * indent}){tail}"]
    )


def _shape(axes: tuple[str, ...]) -> str:
    return f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})"


def _safe(text: str) -> str:
    """A user's text inside of a docstring or a comment: nothing in it may end either."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.replace("\\", "\\\\").replace('"""', "'''")
