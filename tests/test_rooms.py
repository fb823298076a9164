"""Who imports whom. The rooms of each package stand in an order, and no arrow goes against it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import derive

ROOT = Path(__file__).resolve().parents[1]

# Each may import those before it: the mathematics, then what is shown and asked of it.
DERIVE = (
    *("version", "language", "gradient", "proof", "claims", "running"),
    *("language.formulas", "proof.zero", "gradient.range"),
    *("language.torch_ops", "language.source", "language.notation.made_axes"),
    *("language.notation.slope", "language.notation.definition", "gradient.chain"),
    *("language.notation", "gradient.values", "gradient.closing", "proof.proving"),
    *("gradient.found", "certificate", "claims.reading", "claims.checking.words"),
    *("claims.checking.numbers", "show", "claims.checking.explaining", "claims.checking"),
    *("derivation", "gradient.orders", "commands"),
)
# A program is made, printed, run beside autograd and written; then what is asked of it.
CODEGEN = (
    *("program", "targets.functions", "files", "lowering", "building", "sharding", "chunking"),
    *("schedule", "tiles"),
    *("targets.torch", "targets.lean", "targets.languages", "targets", "targets.tables"),
    *("targets.cpp", "targets.triton", "as_written", "driver", "importing", "backwards"),
    *("report", "playground", "called", "commands"),
)
ROOMS = tuple(f"derive.{room}" for room in DERIVE) + tuple(f"codegen.{room}" for room in CODEGEN)
NAMED = re.compile(r"(derive|codegen)(\.\w+)+")  # a module of ours in a string
# What is public, by name, and the commands: these may know every room.
DOOR = ("derive", "derive.__main__", "codegen", "codegen.__main__")
# Libraries of which only some rooms know.
TORCH = {"torch", "codegen", "generated", "gradform"}
SHOWN = {
    "derive.show": {"jinja2", "markdown_it", "rich"},
    "derive.commands": {"rich"},
}
# What makes closed forms, of which neither route of the proof may know.
MAKES = ("derive.gradient.chain", "derive.gradient.values", "derive.gradient.closing")


class Arrow(NamedTuple):
    """An import, wherever it stands in ``file``: ``of`` is the module or the name in it."""

    file: Path
    line: int
    of: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.of}"


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def arrows(file: Path) -> tuple[Arrow, ...]:
    return tuple(_arrows(file))


def _arrows(file: Path) -> Iterator[Arrow]:
    """Every import of a file, those in functions and for annotations too; and every module of ours
    that is named in a string, as by who would import it later.
    """
    package = module_of(file).split(".")[: None if file.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Arrow(file, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (Arrow(file, node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and NAMED.fullmatch(str(node.value)):
            yield Arrow(file, node.lineno, node.value)


def room_of(name: str) -> str:
    """The room of a module or of a name in it; of the door, and of the forwards, none."""
    known = (room for room in ROOMS if f"{name}.".startswith(f"{room}."))
    return max(known, key=len, default="")


MODULES = {
    module_of(file): file
    for file in [*files("derive"), *files("codegen")]
    if not {"math", "templates"} & {*file.parts}
}


def module_in(name: str) -> str:
    return name if name in MODULES else name.rpartition(".")[0]


def test_every_arrow_goes_to_a_room_before():
    """Names the file and the line of those that do not."""
    homeless = [module for module in sorted(MODULES.keys() - {*DOOR}) if not room_of(module)]
    assert not homeless, f"{homeless} stand in no room: give them one in ROOMS"
    found = []
    for module in sorted(MODULES.keys() - {*DOOR}):
        own = room_of(module)
        package, allowed = own.partition(".")[0], ROOMS[: ROOMS.index(own) + 1]
        ours = [a for a in arrows(MODULES[module]) if a.of.split(".")[0] == package]
        found += [str(arrow) for arrow in ours if room_of(arrow.of) not in allowed]
    assert not found, "\n".join(found)


def test_no_module_imports_itself_through_others():
    """Raises `CycleError`, which names them."""
    rooms = {m: f for m, f in MODULES.items() if m not in DOOR}
    own = {m: {module_in(a.of) for a in arrows(f)} & rooms.keys() - {m} for m, f in rooms.items()}
    TopologicalSorter(own).prepare()


def test_a_room_says_what_comes_in_and_what_goes_out():
    rooms = [m for m in sorted(MODULES) if MODULES[m].name == "__init__.py" and m not in DOOR]
    words = {m: ast.get_docstring(ast.parse(MODULES[m].read_text())) or "" for m in rooms}
    assert not [m for m, said in words.items() if "\nIn: " not in said or "Out: " not in said]


def _imported_with(module: str) -> set[str]:
    """Packages that a fresh Python has imported after it imported a module."""
    code = f"import sys, derive, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*found.stdout.split()}


def _packages(file: Path) -> set[str]:
    return {arrow.of.split(".")[0] for arrow in arrows(file)}


def test_derive_imports_neither_codegen_nor_torch():
    """The door hands out what codegen makes of torch code, which it looks up when it is asked."""
    assert not {"torch", "codegen"} & {*_imported_with("derive.language.nodes")}
    for file in files("derive"):
        found = _packages(file)
        if module_of(file) == "derive":
            found -= {of.split(".")[0] for of in derive.BESIDE.values()}
        shown = SHOWN.get(room_of(module_of(file)), set())
        assert not found & ({*TORCH, "jinja2", "rich"} - shown), file


def test_a_forward_imports_what_is_public():
    public = re.compile(r"derive\.(\w+|math(\.\w+){1,2})")
    for file in files("derive/math"):
        ours = {arrow.of for arrow in arrows(file) if arrow.of.split(".")[0] == "derive"}
        assert all(map(public.fullmatch, ours)), (file, ours)


def test_the_public_face_hands_out_what_the_two_packages_have():
    """It is above both: neither imports it."""
    for file in files("gradform"):
        known = {"gradform", "derive", "codegen", *sys.stdlib_module_names}
        assert _packages(file) <= known, file
    for file in files("codegen"):
        assert not _packages(file) & {"gradform", "generated"}, file


def test_generated_imports_torch_alone():
    for file in files("generated"):
        found = _packages(file)
        if file.name == "__init__.py" or file.parent.name in ("kernels", "triton"):
            found -= {"generated"}
        of_triton = {"triton", "numpy"} if file.parent.name == "triton" else {*()}  # it interprets
        assert found <= {"torch", *of_triton, *sys.stdlib_module_names}, file


def test_the_two_routes_of_the_proof_share_no_code_with_the_chain():
    for name in ("small_batch", "every_size", "contraction", "indexed_sum"):
        found = arrows(MODULES[f"derive.proof.proving.{name}"])
        assert not [str(arrow) for arrow in found if room_of(arrow.of) in MAKES]
