"""Finding forwards: by name among ``derive/math``, or in a person's own file.

NAME is a forward's name (``batch_norm`` or ``BatchNorm``), a file, or ``file.py:BatchNorm`` for one
of a file's several. Whatever is wrong with a file is said as a `QuestionError` with file, line and
remedy.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import linecache
import os
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from derive.language.distributions import NONE, distribution_of
from derive.language.errors import Place, QuestionError, is_internal
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward
from derive.language.notation.gallery import (
    IN_GALLERY,
    files_that_define,
    gallery_names,
    math_files,
    no_file,
    path_in,
    unknown_forward,
)
from derive.language.notation.python_file import checked_python
from derive.language.source.class_source import assigned_around, read_already
from derive.language.source.python_errors import is_ours, not_defined, remedy_of
from derive.language.source.unknown_names import unknown_name

MOST_NAMED = 3  # forwards of a file in a message
HASH = 12  # characters of a hash: enough that no two files meet

OUR_MODULES = "gradform_file_"
_read: set[Path] = set()
NOWHERE = os.path.join(os.devnull, "compiled")  # where no compilation can be, so none is stale


def forward_from(name: str | Path) -> type[Forward]:
    """The one forward that ``name`` means.

    Raises `QuestionError` where it means none or several.
    """
    found = forwards_from(name)
    if len(found) > 1:
        names = ", ".join(forward.__name__ for forward in found)
        raise QuestionError(
            f"{name} holds several forwards: {names}", f"name one: {name}:{found[0].__name__}"
        )
    return found[0]


def as_forward(asked: type[Forward] | str | Path) -> type[Forward]:
    """A forward, or the one that a NAME or a file means. Raises `QuestionError`."""
    if isinstance(asked, (str, Path)):
        return forward_from(asked)
    if isinstance(asked, type) and isinstance(getattr(asked, "definition", None), Definition):
        return asked
    kind = asked.__name__ if isinstance(asked, type) else type(asked).__name__
    raise QuestionError(
        f"{kind} is not a forward, nor the name of one",
        "pass a class that inherits from Forward, as in derive(MyNorm), its name or its file; for "
        "torch code there is derive.from_torch",
    )


def forwards_from(name: str | Path) -> list[type[Forward]]:
    """All forwards that ``name`` means: one for a forward's name, all of a file's for a file."""
    name = str(name)
    path = path_in(name)
    if path is not None:
        found = load(path)
        wanted = name.partition(".py:")[2]
        if wanted:
            there = f"{path} has {', '.join(f.__name__ for f in found[:MOST_NAMED])}"
            there += ", ..." * (len(found) > MOST_NAMED)
            matching = [f for f in found if _is(f, wanted)]
            names = [name for f in found for name in (f.__name__, f.definition.snake)]
            if not matching:
                raise unknown_forward(wanted, names, f"in {path}", there)
            return matching
        return found
    matching = [f for path in files_that_define(name) for f in _known(path) if _is(f, name)]
    if not matching:
        raise unknown_forward(name, gallery_names(), "in the gallery", IN_GALLERY)
    return matching


def list_forwards() -> list[type[Forward]]:
    """Every forward of ``derive/math``, by file and line."""
    return [forward for path in math_files() for forward in _known(path)]


def _is(forward: type[Forward], name: str) -> bool:
    return name in (forward.__name__, forward.definition.snake)


_forwards: dict[tuple[Path, bytes], list[type[Forward]]] = {}


def _known(path: Path) -> list[type[Forward]]:
    """The forwards of a file of ``derive/math``, which is run again where its text has changed.
    What it imports are modules of the package, which Python runs once.
    """
    text = path.read_bytes()
    if (path, text) not in _forwards:
        _forwards[path, text] = load(path)
    return _forwards[path, text]


def source_hash(forward: type[Forward]) -> str:
    """SHA-256 of the file or cell that defines ``forward``, as it was read."""
    file = Path(forward.definition.place.file)
    if file.exists():
        source = file.read_bytes()
    else:  # of a notebook
        source = "".join(linecache.getlines(str(file))).encode()
    return hashlib.sha256(source).hexdigest()


def files_read() -> frozenset[Path]:
    """Files that mathematics was read from so far, with their imports."""
    return frozenset(_read)


def load(path: Path) -> list[type[Forward]]:
    """The forwards that a file defines, in its order. The file is Python and is run as such."""
    module = run_file(path)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Forward)
        and value.__module__ == module.__name__
    ]
    found = sorted(dict.fromkeys(found), key=lambda forward: forward.definition.place.line)
    if not found:
        remedy = not_defined(checked_python(path)[0], path)
        raise QuestionError(f"{path} holds no forward", remedy)
    return found


def run_file(path: Path, remedies: Mapping[str, str] | None = None) -> ModuleType:
    """Run a user's file and return its module. ``remedies`` map a part of an error's text to its
    remedy; without them they are those of the notation.

    Raises `QuestionError`, with file and line, where it cannot be read or run.
    """
    if not os.path.isfile(path):
        raise no_file(path, "that holds a forward" if remedies is None else "that defines it")
    return _run(path, *checked_python(path), remedies)


class _FreshLoader(SourceFileLoader):
    """Loader that compiles the file now: a cached compilation may be of an older text."""

    def __init__(self, name: str, path: str, code: CodeType):
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname):
        return self.code


@contextmanager
def _importing_beside(path: Path):
    """Make modules beside the file importable: as they are now, and forgotten afterwards."""
    folder = path.parent
    known, compiled = set(sys.modules), (sys.pycache_prefix, sys.dont_write_bytecode)
    sys.pycache_prefix, sys.dont_write_bytecode = NOWHERE, True
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.pycache_prefix, sys.dont_write_bytecode = compiled
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None) or ""
            _read.add(Path(file))
            if not name.startswith(OUR_MODULES) and _is_beside(path, file):
                del sys.modules[name]


def _is_beside(path: Path, file: str) -> bool:
    """Whether a file is by the author of that at ``path``. An environment may stand in the folder,
    or around it, and gradform itself may.
    """
    if not Path(file).is_relative_to(path.parent) or is_internal(file):
        return False
    return distribution_of(file) in (NONE, distribution_of(path))


def _run(
    path: Path, tree: ast.Module, code: CodeType, remedies: Mapping[str, str] | None
) -> ModuleType:
    path = path.resolve()
    _read.add(path)
    name = OUR_MODULES + hashlib.sha256(str(path).encode()).hexdigest()[:HASH]
    loader = _FreshLoader(name, str(path), code)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    read_already[str(path)] = tree
    try:
        with _importing_beside(path):
            loader.exec_module(module)
    except QuestionError as error:
        raise error.at(_line_in(path, error)) from None
    except NameError as error:
        if is_ours(error):
            raise
        raise _unknown_in_file(path, error) from None
    except RecursionError:
        raise QuestionError(
            "an expression is nested too deeply", "give its parts names", _line_in(path, None)
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if is_ours(error):
            raise
        message = " ".join(str(error).split()) or "no message"
        problem = f"{type(error).__name__}: {message}"
        place = _line_in(path, error)
        known = (r for part, r in (remedies or {}).items() if part in str(error))
        remedy = next(known, "") or remedy_of(error, module, place)
        raise QuestionError(problem, remedy, place) from None
    finally:
        del read_already[str(path)]
    return module


def _line_in(path: Path, error: BaseException | None) -> Place:
    """The innermost line of the traceback in the file, or in one beside it."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if _is_beside(path, f.filename)]
    return Place(own[-1].filename, own[-1].lineno) if own else Place(str(path), 0)


def _unknown_in_file(path: Path, error: NameError) -> QuestionError:
    """An unknown name outside of a class body, or in a function that one calls."""
    place = _line_in(path, error)
    name = error.name or (re.findall(r"'(\w+)'", str(error)) or ["?"])[0]
    return unknown_name(name, place, assigned_around(checked_python(path)[0], place.line))
