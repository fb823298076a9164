"""The C++ target: kernels for the functions of a Program, and what calls them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from codegen.header import header
from codegen.program import Function, Program
from codegen.schedule.flattening import flat
from codegen.targets.cpp.kernels import Kernel, kernels_of
from codegen.targets.cpp.wrappers import Wrapper, Wrappers
from codegen.targets.torch.page import Page
from codegen.targets.torch.target import CALLED, IMPORTS
from codegen.targets.torch.wrapping import wrapped
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from codegen.targets.cpp.check import Beside

TEMPLATES = Path(__file__).parent / "templates"
USED = {part: line for part, line in IMPORTS.items() if part} | {"torch.": "import torch"}
OWN = {"_run", "_done", "_given", "_of", "_usable"}  # names of a module of kernels
FORMATS = (("float", "float"), ("double", "double"))  # (name, type)
RUNTIME = {"__init__.py": "runtime.py", "loops.h": "loops.h"}  # what all kernels share


@dataclass(frozen=True)
class Printed:
    """A kernel as its template prints it."""

    name: str
    parameters: str
    arguments: str
    special: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    formats: tuple[dict[str, str], ...]


class CppTarget:
    """Writes the kernels of a forward, and a module of Python that calls them."""

    def __init__(self):
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )

    def texts(self, program: Program, module: str) -> tuple[str, ...]:
        """The kernels of a forward, and what calls them in the place of lines of ``module``, which
        is the text of the torch target; nothing where there is no loop in it.

        Raises `QuestionError` for what no loop computes.
        """
        kernels, wrappers = self._functions(program)
        if not kernels:
            return ()
        lines = header(program.source, program.source_hash)
        name = program.name
        kernels_text = self._printed(
            "kernels.cpp.jinja", header=lines, kernels=_all_printed(kernels)
        )
        body = "\n".join(line for w in wrappers for line in (w.signature, *w.lines, w.returned))
        borrowed = sorted({*CALLED.findall(body)} - OWN - {w.name for w in wrappers})
        classes = sorted({*re.findall(r"^return (\w+)\(", body, re.M)})
        text = self._printed(
            "wrapper.py.jinja",
            header=lines,
            name=name,
            title=program.title,
            imports=[line for part, line in USED.items() if part in body],
            replaced=_tuple([f'"{w.name}"' for w in wrappers]),
            counts=[_counts(kernel) for kernel in kernels],
            digest=hashlib.sha256(module.encode()).hexdigest(),
            borrowed=[f"{name} = _module.{name}" for name in (*classes, *borrowed)],
            wrappers=wrappers,
        )
        return kernels_text, text

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return {name: (TEMPLATES / file).read_text() for name, file in RUNTIME.items()}

    def beside(self, texts: tuple[str, ...]) -> Beside:
        from codegen.targets.cpp.check import Beside  # torch takes a second

        return Beside(texts, self.shared())

    def _printed(self, template: str, **values: object) -> str:
        return self.environment.get_template(template).render(**values)

    def _functions(self, program: Program) -> tuple[list[Kernel], list[Wrapper]]:
        kernels, wrappers = [], []
        page = Page(program)
        pairs = [(page, program, "")]
        if program.plain is not None:
            pairs.append((page.plain, page.plain.program, "_plain"))
        for own, pair, prefix in pairs:
            writer = Wrappers(own, pair)
            for function, kind in ((pair.forward, "_forward"), (pair.backward, "_backward")):
                found = flat(pair, function)
                name = f"{prefix}{kind}"
                pieces = kernels_of(name[1:], found, dict(pair.sizes), pair.several)
                own_kernels = [piece for piece in pieces if isinstance(piece, Kernel)]
                if own_kernels:
                    kernels += own_kernels
                    returned = _returned(program, function, kind) if prefix else ()
                    wrappers.append(writer.wrapper(function, name, found, pieces, returned))
        return kernels, wrappers


def _returned(program: Program, function: Function, kind: str) -> tuple[str, ...]:
    """What the shorter pair returns: of the gradients all, None where there is none."""
    if kind == "_forward":
        return function.results
    return tuple(name if name in function.results else "None" for name in program.backward.results)


def _all_printed(kernels: Sequence[Kernel]) -> list[Printed]:
    """Each with those before it that it calls."""
    found = []
    for kernel in kernels:
        found += [_as_printed(short, public=False) for _, short in kernel.special]
        found.append(_as_printed(kernel, public=True))
    return found


def _as_printed(kernel: Kernel, public: bool) -> Printed:
    def parameters(real: str) -> str:
        return ",\n    ".join(
            f"{kind} {name}".replace("Real", real) for kind, name in kernel.arguments
        )

    formats = tuple(
        {"name": name, "type": kind, "parameters": parameters(kind)} for name, kind in FORMATS
    )
    arguments = ", ".join(name for _, name in kernel.arguments)
    special = tuple((size, short.name) for size, short in kernel.special)
    text = parameters("Real")
    return Printed(kernel.name, text, arguments, special, kernel.lines, formats if public else ())


def _counts(kernel: Kernel) -> str:
    """How many arrays, sizes and numbers a kernel is called with."""
    arrays = len(kernel.reads) + len(kernel.writes)
    return f'"{kernel.name}": ({arrays}, {len(kernel.sizes)}, {len(kernel.scalars)})'


def _tuple(items: Sequence[str]) -> str:
    return wrapped("", [*items, ""] if len(items) == 1 else items).replace(", )", ",)")


__all__ = ["CppTarget", "QuestionError"]
