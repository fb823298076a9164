"""The C++ target: kernels for the functions of a Program, and what calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.digest import digest
from codegen.header import header
from codegen.program import Program
from codegen.targets.cpp.folding import called, folded
from codegen.targets.cpp.kernels import Kernel, kernels_of
from codegen.targets.cpp.training import Training, call_of, training_of
from codegen.targets.tables.functions import functions_of
from codegen.targets.tables.kernel import environment, shared
from codegen.targets.tables.text import imports_of, table_of
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from codegen.targets.cpp.check import Beside

TEMPLATES = Path(__file__).parent / "templates"
# What is imported without and with a step: from libraries, and from the folder.
STEP = (
    ((), ("from ._table import Table",)),
    (
        ("from pathlib import Path as _Path",),
        (
            "from ._building import NoCompiler as NoCompiler  # which a step raises",
            "from ._table import Table",
            "from ._training import TrainingStep",
        ),
    ),
)
# What kernels in C++ share, by the names of the files beside them.
RUNTIME = {
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

    folder, ends = "kernels", (".cpp", ".py", "_step.cpp")  # only networks have the last one

    def ready(self) -> None:
        """What compares them says so where there is no compiler."""

    def texts(self, program: Program, module: str) -> tuple[str, ...]:
        """The kernels of a forward, and what calls them instead of lines of ``module``, which
        is the text of the torch target; nothing where there is no loop in it.

        Raises `QuestionError` for what no loop computes.
        """
        written, step = functions_of(program, kernels_of), training_of(program)
        if not written.kernels:
            return ()
        lines = header(program.source, program.source_hash)
        kernels = [_as_printed(kernel) for kernel in written.kernels]
        kernels_text = self._printed(
            "kernels.cpp.jinja", header=lines, kernels=[each for one in kernels for each in one]
        )
        table = table_of(written.rows, dict(program.fixed))
        text = self._printed(
            "calls.py.jinja",
            header=lines,
            name=program.name,
            title=program.title,
            imports=imports_of(program.name, table, *STEP[bool(step)]),
            digest=digest(module),
            table=table,
            narrow="",
            steps=[call_of(program, step)] if step else [],
        )
        return kernels_text, text, *self._step(step, lines)

    def _step(self, step: Training | None, lines: Sequence[str]) -> tuple[str, ...]:
        return (self._printed("step.cpp.jinja", header=lines, step=step),) if step else ()

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return shared(TEMPLATES, RUNTIME)

    def beside(self, texts: tuple[str, ...]) -> Beside:
        from codegen.targets.cpp.check import Beside  # torch takes a second

        return Beside(texts, self.shared(), "cpp", self.folder, self.ends)

    def _printed(self, template: str, **values: object) -> str:
        return environment(TEMPLATES).get_template(template).render(**values)


def _as_printed(kernel: Kernel) -> list[Printed]:
    """It, and before it those that do the same for some sizes; Python calls it in both formats."""
    found = [replace(*_as_printed(short), exported=()) for _, short in kernel.special]
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
    exported = [f"EXPORTED({kernel.name})"]
    exported += [f"PART({name}, {kernel.name}, {', '.join(w)})" for name, w in kernel.parts]
    return [*found, Printed(template, signature, lines, tuple(exported))]


__all__ = ["CppTarget", "QuestionError"]
