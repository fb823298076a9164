"""The forwards of ``derive/math`` as their files say, which are read and not run: a list of them,
and the completion of a name, need no SymPy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import isdir, isfile  # False for what is too long, or has a null byte
from pathlib import Path

from derive.language.errors import MATH, QuestionError, shortened
from derive.language.names import snake_case
from derive.language.nearest import did_you_mean
from derive.language.notation.python_file import checked_python

ARGUMENTS, SIZE, SCALAR, LABEL = ("Input", "Label", "Given"), "Size", "Scalar", "Label"
IGNORED, IGNORE_INDEX = "ignored", "ignore_index"
REDUCED, REDUCTION, OUTPUTS = "Reduced", "reduction", "Outputs"
IN_GALLERY = "gradform list names them all; a file of your own is named by its path"


@dataclass(frozen=True)
class Listed:
    """A forward in a list: its class, its public function, its arguments and results."""

    name: str
    function: str
    takes: tuple[str, ...]
    returns: str
    about: str


def math_files() -> list[Path]:
    """The files of ``derive/math``, in the order of their names."""
    return [path for path in sorted(MATH.glob("*.py")) if path.stem != "__init__"]


def gallery() -> list[Listed]:
    """Every forward of ``derive/math``, by file and line. Raises `QuestionError` for a file that is
    not Python.
    """
    return [listed for path in math_files() for listed in _listed_in(path)]


def gallery_names() -> list[str]:
    """Names of the gallery's public functions, then of their classes."""
    found = gallery()
    return [each.function for each in found] + [each.name for each in found]


def files_that_define(name: str) -> list[Path]:
    """The files of ``derive/math`` with a forward of that name: the others need not be run."""
    return [
        path
        for path in math_files()
        if any(name in (each.name, each.function) for each in _listed_in(path))
    ]


def files_named(names: Sequence[str]) -> list[Path]:
    """Files that ``names`` mean, without running them; those of the gallery for no name. Unknown
    names are left out.
    """
    if not names:
        return math_files()
    found: list[Path] = []
    for name in names:
        path = path_in(name)
        found += [path.resolve()] if path is not None else files_that_define(name)
    return list(dict.fromkeys(found))


def path_in(name: str) -> Path | None:
    """The file that NAME names, there or not; None where it is the name of a forward."""
    path, _, wanted = name.partition(".py:")
    if wanted or name.endswith(".py") or "/" in name or isfile(name):
        return Path(f"{path}.py" if wanted else name)
    return None


def file_of(name: str) -> tuple[Path, str]:
    """The file that NAME means, and the class in it; '' where it means the whole file.

    Raises `QuestionError` where there is no such file or forward.
    """
    path = path_in(name)
    if path is not None:
        if not isfile(path):
            raise no_file(path, "that holds a forward")
        return path, name.partition(".py:")[2]
    for each in gallery():
        if name in (each.name, each.function):
            return files_that_define(name)[0], each.name
    raise unknown_forward(name, gallery_names(), "in the gallery", IN_GALLERY)


def no_file(path: Path, wanted: str) -> QuestionError:
    """The error for a path that is no file; ``wanted`` says what it had to be."""
    what = "is a folder" if isdir(path) else "does not exist"
    return QuestionError(f"{path} {what}", f"name a Python file {wanted}")


def unknown_forward(name: str, known: Sequence[str], where: str, otherwise: str) -> QuestionError:
    """The error for a name that none of the ``known`` forwards has."""
    problem = f"no forward is called {shortened(name)} {where}"
    return QuestionError(problem, did_you_mean(name, known, otherwise))


def _listed_in(path: Path) -> Iterator[Listed]:
    for node in checked_python(path)[0].body:
        if isinstance(node, ast.ClassDef) and any(_name(b) == "Forward" for b in node.bases):
            yield _listed(node)


def _listed(node: ast.ClassDef) -> Listed:
    """Arguments as the public function takes them: tensors, then sizes, then numbers."""
    lines = [line for line in node.body if isinstance(line, ast.Assign)]
    named = [line for line in lines if isinstance(line.targets[0], ast.Name)]
    calls = [(line.targets[0].id, line.value) for line in named]
    takes = [name for name, call in calls if _called(call) in ARGUMENTS]
    takes += [name for kind in (SIZE, SCALAR) for name, call in calls if _called(call) == kind]
    ignoring = any(_called(c) == LABEL and _has(c, IGNORED) for _, c in calls)
    takes += [IGNORE_INDEX] * ignoring
    returns, last = calls[-1] if calls else ("", None)
    takes += [REDUCTION] * (_called(last) == REDUCED)
    if _called(last) == OUTPUTS:
        returns = ", ".join(map(_name, last.args))
    return Listed(node.name, snake_case(node.name), tuple(takes), returns, _about(node))


def _about(node: ast.ClassDef) -> str:
    """The first sentence of the class's docstring."""
    paragraph = (ast.get_docstring(node) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".")


def _called(call: ast.expr | None) -> str:
    return _name(call.func) if isinstance(call, ast.Call) else ""


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _has(call: ast.Call, keyword: str) -> bool:
    return any(each.arg == keyword for each in call.keywords)
