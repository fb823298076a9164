"""The C++ target: kernels for the functions of a Program, and the code that calls them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.files.digest import digest
from codegen.files.header import header
from codegen.schedule.costs import CPU
from codegen.schedule.moments import in_one_pass
from codegen.schedule.nodes import Flat, LibraryNode
from codegen.schedule.overwriting import may_overwrite
from codegen.schedule.planning import planned
from codegen.targets.cpp.folding import called, folded
from codegen.targets.cpp.kernels import CppKernel, kernels_of
from codegen.targets.cpp.node import nodes_of
from codegen.targets.cpp.training import Training, call_of, training_of
from codegen.targets.languages import Compares
from codegen.targets.lean.chunked import ChunksOfModule
from codegen.targets.lean.loops_of_chunks import DEEP
from codegen.targets.lean.pair import Pair
from codegen.targets.tables.chunks import functions_of, names_in
from codegen.targets.tables.kernel import Kernel, environment, shared
from codegen.targets.tables.page import KernelPage, imports_of, names_taken
from codegen.targets.torch.wrapping import free, wrapped
from derive.language.errors import QuestionError

TEMPLATES = Path(__file__).parent / "templates"
# Imports of a step from the folder.
STEP = (
    "from ._building import NoCompiler as NoCompiler  # which a step raises",
    "from ._training import TrainingStep",
)
# Files that C++ kernels share, by the names of the files beside them.
RUNTIME = {
    "_running.py": "running.py",
    "_building.py": "building.py",
    "_node.py": "node.py",
    "_training.py": "training.py",
    "functions.h": "functions.h",
    "loops.h": "loops.h",
    "_node.cpp": "node.cpp",
    "products.h": "products.h",
}
STORED = {"Out<Real>": "Stored<Real>"}  # the entries of an argument, beside Real


@dataclass(frozen=True)
class Printed:
    """A kernel in the form of its template."""

    template: str
    signature: str
    lines: tuple[str, ...]
    exported: tuple[str, ...]


class CppTarget:
    """Writes the kernels of a forward, and a module of Python that calls them."""

    folder, ends = "kernels", (".cpp", ".py", "_step.cpp")  # only networks have the last one

    def ready(self) -> None:
        """Nothing to check: the comparison reports a missing compiler."""

    def texts(self, pairs: Sequence[Pair], module: str) -> tuple[str, ...]:
        """The kernels of a forward, and the module that launches them instead of lines of
        ``module``, the lean module of ``pairs``; empty if there is no loop in it.

        Raises `QuestionError` for operations that no loop computes.
        """
        program, taken = pairs[0].program, names_taken(pairs)
        own = [pair.under_own_name() for pair in pairs]
        pages = [KernelPage(pair, taken, kernels_of) for pair in own]
        pages[0].plain = next(iter(pages[1:]), None)
        step = training_of(program)
        launched = [kernel for page in pages for kernel in page.kernels]
        if not launched:
            return ()
        lines = header(program.source, program.source_hash)
        kernels = [each for kernel in launched for each in _as_printed(kernel)]
        pairs = zip(own, pages, strict=True)
        kernels_text = self._printed(
            "kernels.cpp.jinja",
            header=lines,
            kernels=kernels,
            nodes=[node for pair, page in pairs for node in nodes_of(pair, page)],
        )
        functions = [function for page in pages for function in page.written()]
        building, training = STEP if step else ("", "")
        lines_of = "\n".join(line for function in functions for line in function.lines)
        unscaled = ", unscaled" if "unscaled(" in lines_of else ""
        own = (building, f"from ._running import Kernels{unscaled}", training)
        folder = [*filter(None, own)]
        text = self._printed(
            "calls.py.jinja",
            header=lines,
            name=program.name,
            title=program.title,
            kernels=pages[0].own["kernels"],
            lines=pages[0].own["lines"],
            digest=digest(module),
            reductions=pages[0].reductions,
            functions=functions,
            imports=imports_of(program.name, pages[0].own["lines"], functions, folder),
            steps=[call_of(program, step, pages[0].own["lines"])] if step else [],
        )
        return kernels_text, text, *self._step(step, lines)

    def texts_in_chunks(self, chunks: ChunksOfModule, module: str) -> tuple[str, ...]:
        """The kernels of a module in chunks, and the functions that launch them between its matrix
        products; empty if there is no loop.
        """
        taken = names_in(chunks.chunked, chunks.plain)
        kernels, lines = free("kernels", taken), free("lines", taken)
        language = CppChunks(kernels)
        functions, found = functions_of(*chunks.given, language, lines)
        if not found:
            return ()
        program = chunks.chunked.program
        head = header(program.source, program.source_hash)
        printed = [each for kernel in found for each in _as_printed(kernel)]
        kernels_text = self._printed("kernels.cpp.jinja", header=head, kernels=printed, nodes=[])
        folder = ["from ._running import Kernels"]
        text = self._printed(
            "calls.py.jinja",
            header=head,
            name=program.name,
            title=program.title,
            kernels=kernels,
            lines=lines,
            digest=digest(module),
            reductions=[],
            functions=functions,
            imports=imports_of(program.name, lines, functions, folder),
            steps=[],
        )
        return kernels_text, text

    def _step(self, step: Training | None, lines: Sequence[str]) -> tuple[str, ...]:
        return (self._printed("step.cpp.jinja", header=lines, step=step),) if step else ()

    def shared(self) -> dict[str, str]:
        """The texts of the files that all kernels of a folder share."""
        return shared(TEMPLATES, RUNTIME)

    def beside(self, texts: tuple[str, ...]) -> Compares:
        from codegen.targets.cpp.check import CppModule  # torch takes a second

        return CppModule(texts, self.shared(), "cpp", self.folder, self.ends)

    def _printed(self, template: str, **values: object) -> str:
        return environment(TEMPLATES).get_template(template).render(**values)


@dataclass(frozen=True)
class CppChunks:
    """The kernels of one chunk; ``kernels`` is the name under which a module has them."""

    own: str

    def kernels(
        self, name: str, flat: Flat, codes: Mapping[str, str]
    ) -> Sequence[CppKernel | LibraryNode]:
        return kernels_of(name, flat, codes)

    def may_overwrite(self, flat: Flat, made: str, read: str) -> bool:
        return may_overwrite(planned(in_one_pass(flat, CPU)), made, read)

    def shape(
        self, kernel: Kernel, made: str, sizes: list[str], numbers: Mapping[str, str]
    ) -> list[str]:
        return sizes

    def launch(self, kernel: Kernel, arrays: Sequence[str], numbers: Mapping[str, str]) -> str:
        margin = len(DEEP)
        return wrapped(f"{self.own}.{kernel.name}", [*arrays, *numbers.values()], indent=margin)


def _as_printed(kernel: CppKernel) -> list[Printed]:
    """The kernel, with its special cases before it; behind it the dispatch to variants that leave
    out gradients. Python calls it in both dtypes.
    """
    found = [replace(each, exported=()) for _, k in kernel.special for each in _as_printed(k)]
    parameters = [f"{kind} {name}" for kind, name in kernel.arguments]
    arguments = ", ".join(name for _, name in kernel.arguments)
    same = ", ".join(["Real", *kernel.flags])
    special = [
        line
        for condition, short in kernel.special
        for line in (f"    if ({condition})", f"        return {short.name}<{same}>({arguments});")
    ]
    template = f"<{', '.join(['class Real', *(f'bool {flag} = true' for flag in kernel.flags)])}>"
    signature = called(f"static int {kernel.name}", parameters, " {")
    own = Printed(template, signature, _folded((*special, *kernel.lines)), ())
    if not kernel.variants:
        return [*found, replace(own, exported=(f"EXPORTED({kernel.name}, {kernel.name})",))]
    name = f"{kernel.name}_wanted"
    lines = [_variant(kernel, wanted, arguments) for wanted in kernel.variants]
    lines += ["    Scratch scratch;"] * bool(kernel.counts)
    kinds = {name: STORED.get(kind, "Real") for kind, name in kernel.arguments}
    lines += [f"    if (!{n}) {n} = scratch.of<{kinds[n]}>({c});" for n, c in kernel.counts]
    lines.append(f"    return {kernel.name}<Real>({arguments});")
    signature = called(f"static int {name}", parameters, " {")
    exported = (f"EXPORTED({kernel.name}, {name})",)
    return [*found, own, Printed("<class Real>", signature, _folded(lines), exported)]


def _variant(kernel: CppKernel, wanted: Sequence[bool], arguments: str) -> str:
    """The call of the kernel variant that computes only ``wanted`` gradients."""
    pairs = zip(kernel.counts, wanted, strict=True)
    asked = " && ".join(name if want else f"!{name}" for (name, _), want in pairs)
    flags = ", ".join(["Real", *(str(want).lower() for want in wanted)])
    return f"    if ({asked}) return {kernel.name}<{flags}>({arguments});"


def _folded(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for line in lines for part in folded(line))


__all__ = ["CppTarget", "QuestionError"]
