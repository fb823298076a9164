"""The statements of a lean module and the chain rule through them, as the text of a file beside it.

The forward as it is written, and the gradient of every line of it: to be read, and compared with
the closed form. The arguments are those of the module's plain forward.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from codegen.files.header import header
from codegen.program import Function, Program
from codegen.program import steps as of
from codegen.targets.lean.outside import DONE_OUTSIDE, Outside
from codegen.targets.lean.plain import FunctionText, PlainFunctions, doc
from codegen.targets.lean.target import WIDTH, rendered
from codegen.targets.torch.documentation import part, safe
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import broken
from codegen.targets.torch.wrapping import unpacked, wrapped
from derive.language.notation.layout import Layout

# The name of a field, and its shape.
Field = tuple[str, str]


def chain_text(program: Program, outside: Outside) -> str:
    """The text of the chain file."""
    page = ChainPage(program, outside)
    functions = [(program.atoms, page.atoms()), (program.chain, page.chain())]
    return rendered(
        "chain.py.jinja",
        header=header(program.source, program.source_hash),
        title=program.title,
        documentation=page.documentation(),
        functions=[(f.result_class, page.fields(f), text) for f, text in functions],
    )


class ChainPage(PlainFunctions):
    """The page of the two functions, and their results."""

    def is_left_out(self, step: of.Step, function: Function) -> bool:
        return isinstance(step, (*DONE_OUTSIDE, of.NotZero))

    def documentation(self) -> tuple[str, ...]:
        """The lines of the docstring after the first one."""
        names = [p.name for p in self.inner]
        upstreams = [p.name for p in self.program.upstreams]
        atoms = self.called["atoms"]
        said = (
            f"The chain rule one line at a time, to read and to compare {self.name}_backward with."
            f" The arguments are those of {self.name}_forward."
        )
        if self.outside.reductions:
            said += " The sum or mean of the entries is none of it."
        lines = (
            wrapped(f"{atoms} = {self.name}_atoms", names),
            wrapped(f"gradients = {self.name}_chain", [*upstreams, *names, atoms]),
        )
        return (
            *part(safe(self.program.doc).split("\n") if self.program.doc else ()),
            *part(wrap(said, WIDTH)),
            *part([f"    {line}" for text in lines for line in text.split("\n")]),
            *part(wrap(f"Proved: {self.program.proved}.", WIDTH)),
        )

    def fields(self, function: Function) -> tuple[Field, ...]:
        """Names and shapes of a function's results."""
        layouts = layouts_in(function)
        return tuple((name, self._shape(layouts.get(name))) for name in function.results)

    def _shape(self, layout: Layout | None) -> str:
        """The dimensions as a comment; an `Axes` is one dimension by then."""
        if layout is None:
            return ""
        dims = ["1" if dim.one else self.sizes[dim.axis.name] for dim in layout]
        return f"  # ({dims[0]},)" if len(dims) == 1 else f"  # ({', '.join(dims)})"

    def atoms(self) -> FunctionText:
        """The function of all statements."""
        function = self.program.atoms
        lines = [
            *self._formats(returned=False),
            *self._widened(self.tensors),
            *self.lines(function),
        ]
        return FunctionText(
            self._signature("atoms", self._typed(self.inner), function),
            doc("Every statement of the forward, as it is written."),
            (*self._uncast(lines, self.floats[0], function), self._returning(function)),
        )

    def chain(self) -> FunctionText:
        """The function of the gradients of all statements and inputs."""
        function, atoms = self.program.chain, self.program.atoms
        upstreams = self.program.upstreams
        own = self.called["atoms"]
        arguments = [*self._typed([*upstreams, *self.inner]), f"{own}: {atoms.result_class}"]
        lines = self.lines(function)
        read = "\n".join([*lines, self._returning(function)])
        names = [name if _is_read(name, read) else "_" for name in atoms.results]
        float_ = next(name for name in atoms.results if f"d{name}" in function.results)
        tensors = [p for p in (*upstreams, *self.tensors) if _is_read(p.name, read)]
        lines = [
            f"{self.wide} = {own}.{float_}.dtype",
            *self._widened(tensors),
            *([broken(f"{unpacked(names)} = {own}")] if {*names} != {"_"} else []),
            *lines,
        ]
        return FunctionText(
            self._signature("chain", arguments, function),
            doc("The gradient of every statement and input, one step of the chain rule at a time."),
            (*self._uncast(lines, upstreams[0].name, function), self._returning(function)),
        )

    def _signature(self, kind: str, arguments: Sequence[str], function: Function) -> str:
        return wrapped(f"def {self.name}_{kind}", arguments, f" -> {function.result_class}:")

    def _returning(self, function: Function) -> str:
        return wrapped(f"return {function.result_class}", function.results, indent=4)


def _is_read(name: str, text: str) -> bool:
    return re.search(rf"(?<![.\w]){name}\b(?!=)", text) is not None
