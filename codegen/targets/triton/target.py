"""The Triton target: kernels for the functions of a Program, and their launches."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from codegen.files.digest import digest
from codegen.files.header import header
from codegen.program import Program
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.targets.languages import Compares
from codegen.targets.lean.chunked import ChunksOfModule
from codegen.targets.lean.loops_of_chunks import DEEP
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText
from codegen.targets.tables.chunks import functions_of, names_in
from codegen.targets.tables.kernel import environment, shared
from codegen.targets.tables.page import imports_of, names_taken
from codegen.targets.torch.wrapping import LONGEST, free, wrapped
from codegen.targets.triton.kernels import WORD, TritonKernel, kernels_of
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
        lines, reductions = pages[0].own["lines"], pages[0].reductions
        return (self._module(program, module, kernels, functions, lines, reductions),)

    def texts_in_chunks(self, chunks: ChunksOfModule, module: str) -> tuple[str, ...]:
        """The kernels of a module in chunks, and the functions that launch them between its matrix
        products; empty if there is no loop.
        """
        lines = free("lines", names_in(chunks.chunked, chunks.plain))
        functions, found = functions_of(*chunks.given, TritonChunks(), lines)
        kernels = [f.text(k.name) for k in found for f in k.functions]
        if not kernels:
            return ()
        return (self._module(chunks.chunked.program, module, kernels, functions, lines, []),)

    def _module(
        self,
        program: Program,
        module: str,
        kernels: Sequence[str],
        functions: Sequence[FunctionText],
        lines: str,
        reductions: Sequence,
    ) -> str:
        """The kernels and the functions that launch them; ``lines`` is the name of ``module``."""
        folder = _folder(kernels, functions)
        return (
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
                reductions=reductions,
            )
        )

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return shared(TEMPLATES, RUNTIME)

    def beside(self, texts: tuple[str, ...]) -> Compares:
        from codegen.targets.tables.check import KernelModule  # torch takes a second

        return KernelModule(texts, self.shared(), "triton", self.folder, self.ends)


class TritonChunks:
    """The kernels of one chunk."""

    def kernels(
        self, name: str, flat: Flat, codes: Mapping[str, str]
    ) -> Sequence[TritonKernel | LibraryNode]:
        return kernels_of(name, flat, codes)

    def may_overwrite(self, flat: Flat, made: str, read: str) -> bool:
        """False: threads of one program, and functions for long rows, keep no order of reads and
        writes.
        """
        return False

    def shape(
        self, kernel: TritonKernel, made: str, sizes: list[str], numbers: Mapping[str, str]
    ) -> list[str]:
        """Partial results have their number before their sizes."""
        if made not in kernel.left:
            return sizes
        given = ", ".join(f"{size}={numbers[size]}" for size in kernel.sizes)
        return [f"{kernel.name}.parts({given})", *sizes]

    def launch(
        self, kernel: TritonKernel, arrays: Sequence[str], numbers: Mapping[str, str]
    ) -> str:
        given = [*arrays, *(f"{name}={text}" for name, text in numbers.items())]
        for number in kernel.computed:
            known = {n: numbers.get(n, n) for n in number.takes}
            text = WORD.sub(lambda m, known=known: known.get(m[0], m[0]), number.text)
            given.append(f"{number.name}={text}")
        return wrapped(kernel.name, given, indent=len(DEEP))


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
