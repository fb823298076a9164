"""The packages; all else is in pyproject.toml. A wheel holds one, ``gradform``: the folders of the
repository are inside, as ``gradform.derive``, and what imports them does so by that name. In a
checkout, and in an editable install of one, nothing is moved.
"""

import ast
import shutil
import sys
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

MOVED = ("derive", "codegen")  # the gallery, which moves too, imports torch alone


def found(name: str) -> list[str]:
    """The package of that name, and every folder in it: what is copied from one is no package."""
    return find_namespace_packages(include=[name, f"{name}.*"], exclude=["*.__pycache__"])


def moved(text: str, file: str) -> str:
    """A file in which ``from derive.show import html`` reads ``from gradform.derive.show ...``;
    the mathematics, which users copy, imports what is public as they do: ``from gradform import``.
    """
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        names = [a.name for a in getattr(node, "names", ()) if isinstance(node, ast.Import)]
        if any(name.partition(".")[0] in MOVED for name in names):
            sys.exit(f"{file}:{node.lineno}: write from PACKAGE import MODULE, which can be moved")
        module = node.module or "" if isinstance(node, ast.ImportFrom) and not node.level else ""
        if module.partition(".")[0] in MOVED:
            public = module == "derive" and "/math/" in file
            there = "gradform" if public else f"gradform.{module}"
            line, at = lines[node.lineno - 1], node.col_offset
            lines[node.lineno - 1] = line[:at] + line[at:].replace(module, there, 1)
    return "".join(lines)


class Moved(build_py):
    """Copies the packages, and writes their imports anew."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # of another day: it would be packed
        super().run()
        if not self.editable_mode:
            for file in map(Path, self.get_outputs(include_bytecode=False)):
                if file.suffix in (".py", ".pyi") and "generated" not in file.parts:
                    file.write_text(moved(file.read_text("utf-8"), str(file)), "utf-8")


EDITABLE = "editable_wheel" in sys.argv
inside = {
    f"gradform.{name}": name.replace(".", "/")
    for folder in (("generated",) if EDITABLE else ("generated", *MOVED))
    for name in found(folder)
}
if not EDITABLE:
    inside["gradform.certificates"] = "certificates"  # a module says whether Coq accepted it
setup(
    packages=[*found("gradform"), *(n for f in MOVED if EDITABLE for n in found(f)), *inside],
    package_dir=inside,
    cmdclass={"build_py": Moved},
)
