"""The torch target: what the template prints, put together from a Program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from codegen.header import header
from codegen.program import (
    NUMBERS,
    Assign,
    Contract,
    Function,
    Load,
    Numeric,
    Parameter,
    Pick,
    Program,
    Quotient,
    SplitLabel,
    Value,
    Within,
    values_in,
)
from codegen.quality import Counts, Rounding
from codegen.targets.torch.printer import PRODUCT, SIGN, Printer
from codegen.targets.torch.traffic import counts
from derive.definition import IGNORE_INDEX, Definition
from derive.layout import Layout
from derive.symbols import checked_name

LINE = 100
KINDS = {"scalar": "float", "index": "int", "size": "int", "shape": "tuple[int, ...]"}
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class PrintedFunction:
    """A function as the template prints it: every field is text."""

    name: str
    summary: str
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
            header=header(program.source, program.source_hash),
            doc=_safe(program.doc),
            formulas=program.formulas,
            edges=page.edges(),
            uses_math="math." in page.all_lines(),
            several=bool(program.several),
            found="converts, sizes, leads, merged" if program.several else "converts, sizes",
            takes_shapes=any(function.shapes for function in page.functions),
            flattened=program.flattened,
            fixed=program.fixed,
            requirements=page.requirements(),
            divides_by_sizes=bool(program.means),
            labels=page.labels(),
            ignored=program.ignored,
            broadcast=page.broadcast(),
            fixed_shapes=page.fixed_shapes(),
            given=page.given(),
            scalars=page.of_role("scalar"),
            indices=page.of_role("index"),
            multiplies_matrices=page.multiplies_matrices(),
            optional={p.name: p.default for p in program.forward.tensors if p.default is not None},
            without_format=_names_among(bool(page.labels()), "LABELS", page.given(), "GIVEN"),
            inputs=program.forward.parameters,
            forward=page.function(program.forward),
            backward=page.function(program.backward),
            atoms=page.function(program.atoms),
            chain=page.function(program.chain),
            **page.wrapper(),
        )

    def backward_lines(self, program: Program) -> dict[str, str]:
        printer, lines = _Page(program).printer(program.backward), {}
        for step in program.backward.steps:
            if isinstance(step, (Numeric, Within)):
                continue
            before = f"{lines[step.name]}\n" if step.name in lines else ""
            lines[step.name] = before + printer.step(step)
        return lines

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        from codegen.targets.torch.check import largest_difference  # torch takes a second

        return largest_difference(text, definition, program)

    def rounding(self, text: str, definition: Definition, program: Program) -> Rounding:
        from codegen.targets.torch.rounding import rounding

        return rounding(text, definition, program)

    def counts(self, program: Program) -> Counts:
        return counts(program)


class _Page:
    """The parts of a Program as text."""

    def __init__(self, program: Program):
        self.program = program
        self.sizes = dict(program.sizes)
        self.functions = (program.forward, program.backward, program.atoms, program.chain)
        for function in self.functions:
            for parameter in function.parameters:
                checked_name(parameter.name, "an argument")

    def printer(self, function: Function) -> Printer:
        numbers = [p.name for p in function.parameters if p.role in NUMBERS]
        like = next(p.name for p in function.parameters if p.role in ("input", "adjoint"))
        return Printer(self.sizes, numbers, like, self.program.name)

    def function(self, function: Function) -> PrintedFunction:
        printer = self.printer(function)
        sizes = [line for size in function.sizes for line in self.size_lines(printer, *size)]
        kinds = {p.name: KINDS.get(p.role, "Tensor") for p in function.parameters}
        kinds |= {name: self.kind_of_size(name) for name, _ in function.sizes}
        layouts = layouts_in(function)
        return PrintedFunction(
            function.name,
            function.summary,
            wrapped(
                f"def {function.name}", self.arguments(function), f" -> {function.result_class}:"
            ),
            tuple(
                f"{p.name} {self.shape_of(p.layout)}" for p in (*function.tensors, *function.shapes)
            ),
            self.checks(function),
            (*sizes, *map(printer.step, function.steps)),
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

    def size_lines(self, printer: Printer, name: str, length: Value) -> list[str]:
        """What finds a size out; what does not divide is refused first."""
        line = f"{name} = {printer.text(length)}"
        if not isinstance(length, Quotient):
            return [line]
        dividend, divisor = printer.text(length.dividend), printer.text(length.divisor, SIGN)
        found = f"{length.flat} = {{{dividend}}} is not a multiple of {length.by}"
        wrong = f"{self.program.name}: {found} = {{{divisor}}}"
        return [
            f"if {divisor} < 1 or {printer.text(length.dividend, PRODUCT)} % {divisor}:",
            f'    raise ValueError(f"{wrong}")',
            line,
        ]

    def broadcast(self) -> dict[str, str]:
        """The arguments that are broadcast, with their layouts."""
        return {
            p.name: self.written(p.layout)
            for p in self.program.forward.tensors
            if p.name in self.program.broadcast
        }

    def fixed_shapes(self) -> dict[str, str]:
        """The others, which say what the sizes are."""
        return {
            p.name: self.written(p.layout)
            for p in self.program.forward.tensors
            if p.name not in self.program.broadcast
        }

    def checks(self, function: Function) -> str:
        """The decorator: the layouts of the tensors, and how many results are rounded."""
        layouts = [f'"{p.name}": "{self.written(p.layout)}"' for p in function.tensors]
        program = self.program
        rounded = {program.forward: 1, program.backward: len(program.backward.results)}
        options = [f"rounds={rounded[function]}"] if function in rounded else []
        if function in (program.forward, program.atoms):
            labels = self.labels().items()
            unguarded = [name for name, axes in labels if axes and name not in program.ignored]
            unguarded = tuple(name for name in unguarded if not self.guarded(function, name))
            options += [f"unguarded={unguarded!r}"] if unguarded else []
        if program.several:
            options += [f"results={_tuple(self.results_written(function))}"]
        if function.shapes:
            options += [f"shapes={_tuple(p.name for p in function.shapes)}"]
        inside = f"{{{', '.join(layouts)}}}"
        line = f"@_checked({', '.join([inside, *options])})"
        if len(line) <= LINE:
            return line
        lines = ["@_checked(", "    {", *_packed(layouts, "        "), "    },"]
        lines += [line for option in options for line in _option(option)]
        return "\n".join([*lines, ")"])

    def results_written(self, function: Function) -> list[str]:
        """The layout of every result; that of a size is the axis, where it has dimensions."""
        layouts = layouts_in(function)
        return [
            f"*{name}"
            if name not in layouts and name in self.program.several
            else self.written(layouts.get(name, ()))
            for name in function.results
        ]

    def guarded(self, function: Function, label: str) -> bool:
        """Whether torch itself refuses a wrong index where the function picks with it: gather and
        embedding do, plain indexing counts negative ones from the end.
        """
        return len(self.labels()[label]) == 1 and any(
            isinstance(value, Pick)
            and (value.rowwise or len(value.operand.dims) == 2)
            and isinstance(index := value.index, Load)
            and index.name == label
            for step in function.steps
            for value in values_in(step)
        )

    def labels(self) -> dict[str, tuple[str, ...]]:
        """The axes that each label indexes."""
        return {
            p.name: tuple(
                self.sizes[axis] for label, axis in self.program.labels if label == p.name
            )
            for p in self.program.forward.parameters
            if p.role == "label"
        }

    def given(self) -> tuple[str, ...]:
        return self.of_role("given")

    def of_role(self, role: str) -> tuple[str, ...]:
        """The arguments of a role."""
        return tuple(p.name for p in self.program.forward.parameters if p.role == role)

    def multiplies_matrices(self) -> bool:
        """Whether torch's autocast would change the format of what is computed."""
        return any(
            isinstance(value, Contract)
            for function in self.functions
            for step in function.steps
            for value in values_in(step)
        )

    def shape_of(self, layout: Layout) -> str:
        return _shape(tuple(self.written(layout).split()))

    def written(self, layout: Layout) -> str:
        """The dimensions with a space between them: ``*N C``."""
        return " ".join(dim.written(self.sizes[dim.axis.name]) for dim in layout)

    def kind_of_size(self, name: str) -> str:
        return KINDS["shape" if name in self.program.several else "size"]

    def arguments(self, function: Function) -> list[str]:
        """What stands in the brackets of its ``def``. Python wants what may be left out last, so
        before a number that has to be passed nothing may be; the check fills it in.
        """
        may_lack = function is not self.program.chain and not _needed_number(function)

        def typed(p: Parameter) -> str:
            if p.role == "scalar" and isinstance(p.default, Value):
                return f"{p.name}: float | None = None"
            if p.role == "index":
                return f"{p.name}: int = {p.default}"
            if p.role not in NUMBERS and p.default is not None:
                return f"{p.name}: Tensor | None" + " = None" * may_lack
            if p.role == "scalar":
                return f"{p.name}: float" + (f" = {p.default!r}" if p.default is not None else "")
            return f"{p.name}: {KINDS.get(p.role, 'Tensor')}"

        return [typed(p) for p in function.parameters]

    def public_arguments(self) -> list[str]:
        """Those of the differentiable function: there a number that has to be passed is passed by
        name, where a tensor before it may be left out.
        """
        function = self.program.forward
        arguments, needed = self.arguments(function), _needed_number(function)
        optional = [i for i, p in enumerate(function.tensors) if p.default is not None]
        if not optional or needed is None:
            return arguments
        for i in optional:
            arguments[i] += " = None"
        place = function.parameters.index(needed)
        return [*arguments[:place], "*", *arguments[place:]]

    def all_lines(self) -> str:
        return "\n".join(self.printer(f).step(step) for f in self.functions for step in f.steps)

    def requirements(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(test, message, what is known) for every size that is refused.

        The message is the inside of an f-string. A size is tested where an argument shows it.
        """
        found = []
        for r in self.program.requirements:
            local = Printer({axis: f'sizes["{name}"]' for axis, name in self.program.sizes}, (), "")
            printer = Printer(self.sizes, (), "")
            test = f"{local.text(r.left)} {'!=' if r.equal else '=='} {local.text(r.right)}"
            wrong = f"{printer.text(r.left)} is {'not ' * r.equal}{printer.text(r.right)}"
            known = dict(r.axes)
            sizes = ", ".join(f"{axis} = {{sizes['{name}']}}" for axis, name in known.items())
            message = f"{self.program.name}: {r.user} {r.use}, but {wrong} where {sizes}"
            found.append((test, message, tuple(f'"{name}" in sizes' for _, name in r.axes)))
        return tuple(found)

    def edges(self) -> tuple[str, ...]:
        """What is decided at the edges, for the docstring."""
        printer = Printer({axis: axis for axis, _ in self.program.sizes}, (), "")
        found = [
            f"ValueError where {printer.text(r.left)} is "
            f"{'not ' * r.equal}{printer.text(r.right)}: {r.user} {r.use}."
            for r in self.program.requirements
        ]
        found += [
            f"NaN where {axis} is 0: {name} divides by it." for name, axis in self.program.means
        ]
        found += [f"{line}." for line in self.program.unsafe]
        given = self.given()
        for label, axis in self.program.labels:
            found += [
                f"TypeError where {label} is not of integers.",
                f"IndexError where {label} is outside of 0 .. {axis} - 1"
                + (f", and not {IGNORE_INDEX}." if label in self.program.ignored else "."),
            ]
        found += [
            f"Where {label} is {IGNORE_INDEX} it is ignored: it picks nothing."
            for label in self.program.ignored
        ]
        found += [
            f"{name} stands for any number of dimensions, none included, and counts as one axis: "
            "the arguments along it have the same ones there, and results get them back."
            for name in self.program.several
        ]
        found += [
            f"{p.name} is {p.default} everywhere where it is left out."
            for p in self.program.forward.tensors
            if p.default is not None
        ]
        found += [
            f"{name} is broadcast as torch broadcasts, by {self.program.name} alone."
            for name in self.broadcast()
        ]
        found += [
            f"ValueError where {step.name} is not {step.domain}."
            for step in self.program.forward.steps
            if isinstance(step, Within)
        ]
        numbers = self.of_role("scalar")
        found += [
            f"TypeError where {' or '.join(numbers)} is no number of Python's or numpy's, as a "
            "tensor."
        ] * bool(numbers)
        found += [f"RuntimeError where {name} requires a gradient: it has none." for name in given]
        found += [
            "TypeError for inputs that are not floating point, or not all of one format"
            + (
                f"; {' and '.join(given)} may be of booleans, integers, or any format that the one "
                "computed in holds."
                if given
                else "."
            ),
            "ValueError for shapes that do not fit.",
            "float16 and bfloat16 are computed in float32, and rounded once at the end; under "
            "torch.autocast nothing changes.",
            f"NotImplementedError where a gradient of {self.program.name} is differentiated again, "
            f"as second derivatives are not derived yet: {self.program.atoms.name} is plain torch, "
            "for autograd to any order, for torch.func and for forward mode.",
        ]
        return tuple(found)

    def wrapper(self) -> dict[str, object]:
        """What the differentiable function needs to know of the pair behind it."""
        program = self.program
        needs = program.backward.parameters[1:]
        result = {name: f"result.{name}" for name in program.forward.results}
        tensors = [result[p.name] for p in needs if p.role not in NUMBERS]
        numbers = [result[p.name] for p in needs if p.role in NUMBERS]
        gradients = [
            f"gradients.d{p.name}"
            + f" if ctx.needs_input_grad[{i}] else None" * (p.default is not None)
            if p.role == "input"
            else "None"
            for i, p in enumerate(program.forward.parameters)
        ]
        output, upstream = program.forward.results[0], program.backward.parameters[0]
        return {
            "output": output,
            "public": wrapped(f"def {program.name}", self.public_arguments(), " -> Tensor:"),
            "output_shape": self.shape_of(upstream.layout),
            "upstream": upstream.name,
            "saved_from": ", ".join(tensors),
            "numbers_from": ", ".join(numbers),
            "gradients": gradients,
        }


def _needed_number(function: Function) -> Parameter | None:
    """The first number that has to be passed."""
    numbers = (p for p in function.parameters if p.role in NUMBERS)
    return next((p for p in numbers if p.default is None), None)


def _names_among(*tables) -> str:
    """The names in those of the module's tables that there are, as an expression."""
    there = [name for held, name in zip(tables[::2], tables[1::2], strict=True) if held]
    return there[0] if len(there) == 1 else f"({', '.join(f'*{name}' for name in there)})"


def _packed(items: Sequence[str], margin: str) -> list[str]:
    """``items`` with commas, as many on a line as it holds."""
    lines = [margin + items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 3 <= LINE:
            lines[-1] += f", {item}"
        else:
            lines[-1] += ","
            lines.append(margin + item)
    return [*lines[:-1], f"{lines[-1]},"]


def wrapped(head: str, items: Sequence[str], tail: str = "", indent: int = 0) -> str:
    """``head(items)tail`` on one line, or with one item a line where that would be too long."""
    line = f"{head}({', '.join(items)}){tail}"
    if indent + len(line) <= LINE:
        return line
    margin = " " * (indent + 4)
    return "\n".join(
        [f"{head}(", *(f"{margin}{item}," for item in items), f"{' ' * indent}){tail}"]
    )


def layouts_in(function: Function) -> dict[str, Layout]:
    """The layout of every tensor that a function is given or computes."""
    layouts = {p.name: p.layout for p in function.tensors}
    layouts |= {s.kept: s.dims for s in function.steps if isinstance(s, SplitLabel)}
    return layouts | {s.name: s.value.dims for s in function.steps if isinstance(s, Assign)}


def _tuple(texts: Iterable[str]) -> str:
    texts = [f'"{text}"' for text in texts]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _option(option: str) -> list[str]:
    """A keyword argument on a line of its own, or a tuple on several where it is too long."""
    if len(option) + 5 <= LINE:
        return [f"    {option},"]
    name, items = option.split("=(")
    return [f"    {name}=(", *_packed(items.rstrip(",)").split(", "), "        "), "    ),"]


def _shape(axes: tuple[str, ...]) -> str:
    return f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})"


def _safe(text: str) -> str:
    """A user's text inside of a docstring or a comment: nothing in it may end either."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.replace("\\", "\\\\").replace('"""', "'''")
