"""Who imports whom. The rooms of each package stand in an order, and no arrow goes against it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import derive

ROOT = Path(__file__).resolve().parents[1]

# Each may import those before it: the mathematics, then what is shown and asked of it.
DERIVE = (
    *("version", "language", "gradient", "proof", "claims", "running"),
    *("language.formulas", "proof.zero", "gradient.range"),
    *("language.torch_ops", "language.source", "language.notation.made_axes"),
    *("language.notation.slope", "language.notation.definition", "gradient.chain"),
    *("language.notation", "gradient.values", "gradient.closing", "proof.proving"),
    *("gradient.found", "show", "certificate", "claims.reading", "claims.checking.words"),
    *("claims.checking.numbers", "claims.checking.explaining", "claims.checking", "derivation"),
    *("gradient.orders", "commands"),
)
# A program is made, printed, run beside autograd and written; then what is asked of it.
CODEGEN = (
    *("program", "files", "lowering", "building", "sharding", "schedule"),
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


def arrows(file: Path) -> Iterator[Arrow]:
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


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {*DOOR}))
def test_every_arrow_goes_to_a_room_before(module):
    """Names the file and the line of those that do not."""
    own = room_of(module)
    assert own, f"{module} stands in no room: give it one in ROOMS"
    package = own.partition(".")[0]
    ours = [a for a in arrows(MODULES[module]) if a.of.split(".")[0] == package]
    allowed = ROOMS[: ROOMS.index(own) + 1]
    assert not [str(arrow) for arrow in ours if room_of(arrow.of) not in allowed]


def test_no_module_imports_itself_through_others():
    """Raises `CycleError`, which names them."""
    rooms = {m: f for m, f in MODULES.items() if m not in DOOR}
    own = {m: {module_in(a.of) for a in arrows(f)} & rooms.keys() - {m} for m, f in rooms.items()}
    TopologicalSorter(own).prepare()


@pytest.mark.parametrize(
    "room", sorted(p for p in MODULES if MODULES[p].name == "__init__.py" and p not in DOOR)
)
def test_a_room_says_what_comes_in_and_what_goes_out(room):
    words = ast.get_docstring(ast.parse(MODULES[room].read_text()))
    assert "\nIn: " in words and "Out: " in words


def _imported_with(module: str) -> set[str]:
    """What a fresh Python has imported after it imported a module."""
    code = f"import sys, derive, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*found.stdout.split()}


@pytest.mark.parametrize("file", files("derive"), ids=module_of)
def test_derive_imports_neither_codegen_nor_torch(file):
    """The door hands out what codegen makes of torch code, which it looks up when it is asked."""
    found = {arrow.of.split(".")[0] for arrow in arrows(file)}
    if module_of(file) == "derive":
        found -= {of.split(".")[0] for of in derive.BESIDE.values()}
        assert not {"torch", "codegen"} & {*_imported_with("derive.language.nodes")}
    shown = SHOWN.get(room_of(module_of(file)), set())
    assert not found & ({*TORCH, "jinja2", "rich"} - shown)


@pytest.mark.parametrize("file", files("derive/math"), ids=module_of)
def test_a_forward_imports_what_is_public(file):
    ours = {arrow.of for arrow in arrows(file) if arrow.of.split(".")[0] == "derive"}
    public = re.compile(r"derive\.(\w+|math(\.\w+){1,2})")
    assert all(map(public.fullmatch, ours)), ours


@pytest.mark.parametrize("file", [*files("codegen"), *files("gradform")], ids=module_of)
def test_the_public_face_hands_out_what_the_two_packages_have(file):
    """It is above both: neither knows it."""
    found = {arrow.of.split(".")[0] for arrow in arrows(file)}
    if file.is_relative_to(ROOT / "gradform"):
        assert found <= {"gradform", "derive", "codegen", *sys.stdlib_module_names}
    else:
        assert not found & {"gradform", "generated"}


@pytest.mark.parametrize("file", files("generated"), ids=module_of)
def test_generated_imports_torch_alone(file):
    found = {arrow.of for arrow in arrows(file)}
    if file.name == "__init__.py" or file.parent.name in ("kernels", "triton"):
        found = {of for of in found if of.split(".")[0] != "generated"}
    of_triton = {"triton", "numpy"} if file.parent.name == "triton" else {*()}  # it interprets
    libraries = {"torch"} | of_triton
    assert {of.split(".")[0] for of in found} <= {*libraries, *sys.stdlib_module_names}


def test_the_two_routes_of_the_proof_share_no_code_with_the_chain():
    for name in ("small_batch", "every_size", "contraction", "indexed_sum"):
        found = arrows(MODULES[f"derive.proof.proving.{name}"])
        assert not [str(arrow) for arrow in found if room_of(arrow.of) in MAKES]
