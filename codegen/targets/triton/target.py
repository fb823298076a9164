"""The Triton target: kernels for the functions of a Program, and their launches."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from codegen.files.digest import digest
from codegen.files.header import header
from codegen.targets.languages import Compares
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText
from codegen.targets.tables.kernel import environment, shared
from codegen.targets.tables.page import imports_of, names_taken
from codegen.targets.torch.wrapping import LONGEST
from codegen.targets.triton.page import TritonPage
from codegen.targets.triton.vocabulary import SHARED
from derive.language.errors import QuestionError

TEMPLATES = Path(__file__).parent / "templates"
# Files that Triton kernels share, by the names of the files beside them.
RUNTIME = {
    "_running.py": "running.py",
    "_launching.py": "launching.py",
    "_rules.py": "rules.py",
    "_functions.py": "functions.py",
    "_interpreting.py": "interpreting.py",
}
CALLED = re.compile(r"(?<![\w.])(\w+)\(")
REMEDY = "leave --target triton out: kernels are compared before they are written"
LIBRARIES = ("import triton", "import triton.language as tl")


class TritonTarget:
    """Writes the kernels of a forward, and the table that describes them."""

    folder, ends = "triton", (".py",)

    def ready(self) -> None:
        """Prepare Triton's interpreter: the setting is read once, when Triton is imported."""
        if importlib.util.find_spec("triton") is None:
            raise QuestionError(
                "Triton is not installed; its interpreter runs kernels before they are written",
                "pip install triton: no GPU is needed",
            )
        if "triton" not in sys.modules:
            os.environ["TRITON_INTERPRET"] = "1"
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise QuestionError("Triton was imported for a GPU before", REMEDY)

    def texts(self, pairs: Sequence[Pair], module: str) -> tuple[str, ...]:
        """The kernels of a forward, and the module that launches them instead of lines of
        ``module``, the lean module of ``pairs``; empty if there is no loop in it.

        Raises `QuestionError` for operations that no loop computes.
        """
        program, taken = pairs[0].program, names_taken(pairs)
        pages = [TritonPage(pair.under_own_name(), taken) for pair in pairs]
        pages[0].plain = next(iter(pages[1:]), None)
        kernels = [f.text(k.name) for page in pages for k in page.kernels for f in k.functions]
        if not kernels:
            return ()
        functions = [function for page in pages for function in page.written()]
        lines, folder = pages[0].own["lines"], _folder(kernels, functions)
        text = (
            environment(TEMPLATES)
            .get_template("kernels.py.jinja")
            .render(
                header=header(program.source, program.source_hash),
                name=program.name,
                title=program.title,
                imports=imports_of(program.name, lines, functions, folder, LIBRARIES),
                kernels=kernels,
                functions=functions,
                lines=lines,
                digest=digest(module),
                reductions=pages[0].reductions,
            )
        )
        return (text,)

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return shared(TEMPLATES, RUNTIME)

    def beside(self, texts: tuple[str, ...]) -> Compares:
        from codegen.targets.tables.check import KernelModule  # torch takes a second

        return KernelModule(texts, self.shared(), "triton", self.folder, self.ends)


def _folder(kernels: Sequence[str], functions: Sequence[FunctionText]) -> list[str]:
    """Imports of kernels, and of the functions that launch them, from their folder."""
    called = {name for text in kernels for name in CALLED.findall(text)}
    shared = sorted(called & SHARED)
    found = [f"from ._functions import {', '.join(shared)}"] if shared else []
    if found and len(found[0]) > LONGEST:
        found = ["from ._functions import (", *(f"    {name}," for name in shared), ")"]
    lines = "\n".join(line for function in functions for line in function.lines)
    others = [name for name in ("floating", "unscaled") if re.search(rf"\b{name}\b", lines)]
    return [*found, f"from ._launching import {', '.join(sorted([*others, 'kernel']))}"]
