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
from codegen.program import Program
from codegen.targets.cpp.folding import called, folded
from codegen.targets.cpp.functions import Written
from codegen.targets.cpp.kernels import Kernel
from codegen.targets.cpp.reduced import functions_of_all
from codegen.targets.cpp.training import Training, call_of, training_of
from codegen.targets.torch.wrapping import wrapped
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from codegen.targets.cpp.check import Beside

TEMPLATES = Path(__file__).parent / "templates"
USED = {"math.": "import math", "torch.": "import torch"}  # by what a text holds
CALLED = re.compile(r"(?<![\w.])_[a-z_]+\b")
OWN = {"_run", "_done", "_given", "_found", "_of", "_usable"}  # names of a module of kernels
# What all kernels share, by the names of the files beside them.
RUNTIME = {
    "__init__.py": "choosing.py",
    "_running.py": "running.py",
    "_building.py": "building.py",
    "_training.py": "training.py",
    "functions.h": "functions.h",
    "loops.h": "loops.h",
    "products.h": "products.h",
}


@dataclass(frozen=True)
class Printed:
    """A kernel as its template prints it."""

    template: str
    signature: str
    lines: tuple[str, ...]
    exported: tuple[str, ...]


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
        written, step = functions_of_all(program), training_of(program)
        kernels, wrappers = written.kernels, written.wrappers
        if not kernels:
            return ()
        lines = header(program.source, program.source_hash)
        name = program.name
        kernels_text = self._printed(
            "kernels.cpp.jinja", header=lines, kernels=_all_printed(kernels)
        )
        body = "\n".join(line for w in wrappers for line in (w.signature, *w.lines, w.returned))
        body += "".join(each.takes_plain for each in (*written.at_once, *written.lean))
        borrowed = sorted({*CALLED.findall(body)} - OWN - {w.name for w in wrappers})
        classes = sorted({*re.findall(r"^ *return ([A-Z]\w*)\(", body, re.M)})
        text = self._printed(
            "wrapper.py.jinja",
            header=lines,
            name=name,
            title=program.title,
            imports=_imports(name, body, written, bool(step)),
            replaced=_tuple([f'"{name}"' for name in written.replaced]),
            tests=_tests(written),
            at_once=written.at_once,
            lean=written.lean,
            chosen=written.chosen,
            counts=[_counts(kernel) for kernel in kernels],
            digest=hashlib.sha256(module.encode()).hexdigest(),
            borrowed=[f"{name} = _module.{name}" for name in (*classes, *borrowed)],
            wrappers=wrappers,
            steps=[call_of(program, step)] if step else [],
        )
        return kernels_text, text, *self._step(step, lines)

    def _step(self, step: Training | None, lines: Sequence[str]) -> tuple[str, ...]:
        return (self._printed("step.cpp.jinja", header=lines, step=step),) if step else ()

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return {name: (TEMPLATES / file).read_text() for name, file in RUNTIME.items()}

    def beside(self, texts: tuple[str, ...]) -> Beside:
        from codegen.targets.cpp.check import Beside  # torch takes a second

        return Beside(texts, self.shared())

    def _printed(self, template: str, **values: object) -> str:
        return self.environment.get_template(template).render(**values)


def _tests(written: Written) -> list[str]:
    """The function that says whether nothing optional is passed, once for all that ask it."""
    found = (
        wrapped("def _takes_plain", [each.arguments], " -> bool:")
        + f"\n    return {each.takes_plain}"
        for each in (*written.at_once, *written.lean)
    )
    return list(dict.fromkeys(found))


def _imports(name: str, body: str, written: Written, step: bool) -> list[str]:
    """The lines of a module of kernels, with the text ``body``, that import what it names."""
    found = ["from pathlib import Path as _Path"] * step
    found += [line for part, line in USED.items() if part in body]
    found += [""] * bool(found) + [f"from .. import {name} as _module"]
    found += ["from . import AtOnce as _AtOnce"] * bool(written.at_once)
    found += ["from . import ByReduction as _ByReduction"] * bool(written.chosen)
    found += ["from . import KeepingLess as _KeepingLess"] * bool(written.lean)
    found += ["from . import Kernels, Original", "from . import usable as _usable"]
    if step:
        found += ["from ._building import NoCompiler as NoCompiler  # which a step raises"]
        found += ["from ._training import TrainingStep"]
    return found


def _all_printed(kernels: Sequence[Kernel]) -> list[Printed]:
    """Each with those before it that it calls."""
    found = []
    for kernel in sorted(kernels, key=lambda kernel: kernel.calls):
        found += [_as_printed(short, public=False) for _, short in kernel.special]
        found.append(_as_printed(kernel, public=True))
    return found


def _as_printed(kernel: Kernel, public: bool) -> Printed:
    """What Python calls is exported, in both formats."""
    parameters = [f"{kind} {name}" for kind, name in kernel.arguments]
    signature = called(f"static int {kernel.name}", parameters, " {")
    arguments = ", ".join(name for _, name in kernel.arguments)
    same = ", ".join(["Real", *kernel.flags])
    special = [
        f"    if ({size} == 1) return {short.name}<{same}>({arguments});"
        for size, short in kernel.special
    ]
    lines = tuple(part for line in (*special, *kernel.lines) for part in folded(line))
    template = f"<{', '.join(['class Real', *(f'bool {flag} = true' for flag in kernel.flags)])}>"
    return Printed(template, signature, lines, (kernel.name,) * public)


def _counts(kernel: Kernel) -> str:
    """How many arrays, sizes and numbers a kernel is called with."""
    arrays = len(kernel.reads) + len(kernel.writes)
    return f'"{kernel.name}": ({arrays}, {len(kernel.sizes)}, {len(kernel.scalars)})'


def _tuple(items: Sequence[str]) -> str:
    return wrapped("", [*items, ""] if len(items) == 1 else items).replace(", )", ",)")


__all__ = ["CppTarget", "QuestionError"]
