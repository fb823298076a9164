"""The Triton target: kernels for the functions of a Program, and the table of them."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codegen.digest import digest
from codegen.header import header
from codegen.program import Program
from codegen.targets.tables.functions import functions_of
from codegen.targets.tables.kernel import environment, shared
from codegen.targets.tables.text import imports_of, table_of
from codegen.targets.torch.wrapping import LONGEST
from codegen.targets.triton.kernels import kernels_of
from codegen.targets.triton.vocabulary import SHARED
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from codegen.targets.tables.check import Beside

TEMPLATES = Path(__file__).parent / "templates"
# What kernels in Triton share, by the names of the files beside them.
RUNTIME = {
    "_running.py": "running.py",
    "_launching.py": "launching.py",
    "_rules.py": "rules.py",
    "_functions.py": "functions.py",
    "_interpreting.py": "interpreting.py",
}
CALLED = re.compile(r"(?<![\w.])(\w+)\(")
REMEDY = "leave --target triton out: kernels are compared before they are written"
NARROW = ", narrow=True"  # of a table whose kernels take 16 bits as they are
LIBRARIES = ("import triton", "import triton.language as tl")


class TritonTarget:
    """Writes the kernels of a forward, and the table that says what they compute."""

    folder, ends = "triton", (".py",)

    def ready(self) -> None:
        """Triton reads once, when it is imported, whether its interpreter runs the kernels."""
        if importlib.util.find_spec("triton") is None:
            raise QuestionError("Triton is not installed", "pip install triton")
        if "triton" not in sys.modules:
            os.environ["TRITON_INTERPRET"] = "1"
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise QuestionError("Triton was imported for a GPU before", REMEDY)

    def texts(self, program: Program, module: str) -> tuple[str, ...]:
        """The kernels of a forward, with their table, instead of lines of ``module``, which is the
        text of the torch target; nothing where there is no loop in it.

        Raises `QuestionError` for what no loop computes.
        """
        written = functions_of(program, kernels_of)
        if not written.kernels:
            return ()
        table = table_of(written.rows, dict(program.fixed))
        kernels = [f.text(k.name) for k in written.kernels for f in k.functions]
        text = (
            environment(TEMPLATES)
            .get_template("kernels.py.jinja")
            .render(
                header=header(program.source, program.source_hash),
                title=program.title,
                imports=imports_of(program.name, table, LIBRARIES, _folder(kernels)),
                kernels=kernels,
                table=table,
                narrow="" if any(row.of_library for row in written.rows) else NARROW,
                digest=digest(module),
            )
        )
        return (text,)

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return shared(TEMPLATES, RUNTIME)

    def beside(self, texts: tuple[str, ...]) -> Beside:
        from codegen.targets.tables.check import Beside  # torch takes a second

        return Beside(texts, self.shared(), "triton", self.folder, self.ends)


def _folder(kernels: Sequence[str]) -> list[str]:
    """What kernels import from their folder."""
    called = {name for text in kernels for name in CALLED.findall(text)}
    functions = sorted(called.intersection(SHARED.split()))
    found = [f"from ._functions import {', '.join(functions)}"] if functions else []
    if found and len(found[0]) > LONGEST:
        found = ["from ._functions import (", *(f"    {name}," for name in functions), ")"]
    return [*found, "from ._launching import kernel", "from ._table import Table"]
