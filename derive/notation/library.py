"""Finding forwards: by name among ``derive/math``, or in a person's own file.

NAME is a forward's name (``batch_norm`` or ``BatchNorm``), a file, or ``file.py:BatchNorm`` for one
of a file's several. Whatever is wrong with a file is said as a `QuestionError` with file, line and
remedy.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import sympy
import sympy.tensor.tensor  # by SymPy's first sum: not where `_importing_beside` compiles anew

from derive.language.distributions import NONE, distribution_of
from derive.language.errors import Place, QuestionError, is_internal
from derive.notation.forward import Forward
from derive.notation.gallery import (
    IN_GALLERY,
    files_that_define,
    gallery_names,
    math_files,
    no_file,
    path_in,
    unknown_forward,
)
from derive.notation.python_file import checked_python
from derive.source.class_source import read_already
from derive.source.unknown_names import unknown_name

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
    """SHA-256 of the file that defines ``forward``: what was read is what was derived."""
    return hashlib.sha256(Path(forward.definition.place.file).read_bytes()).hexdigest()


def files_read() -> frozenset[Path]:
    """The files that mathematics was read from so far, with what they import."""
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
        raise QuestionError(
            f"{path} holds no forward",
            "write a class that inherits from Forward: class MyNorm(Forward): ...",
        )
    return found


def run_file(path: Path, remedies: Mapping[str, str] | None = None) -> ModuleType:
    """The module of a user's file, which is run. ``remedies`` are for what is raised there: a part
    of the error, and what to do; without them they are those of the notation.

    Raises `QuestionError`, with file and line, where it cannot be read or run.
    """
    if not os.path.isfile(path):
        raise no_file(path, "that holds a forward" if remedies is None else "that defines it")
    return _run(path, *checked_python(path), remedies)


class _FreshLoader(SourceFileLoader):
    """Runs what was compiled now: a cached compilation may be of the text before."""

    def __init__(self, name: str, path: str, code: CodeType):
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname):
        return self.code


@contextmanager
def _importing_beside(path: Path):
    """Modules beside the file can be imported: as they are now, and forgotten afterwards."""
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
    """Whether a file is of who wrote that at ``path``. An environment may stand in the folder, or
    around it, and gradform itself may.
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
        raise _unknown_in_file(path, error) from None
    except RecursionError:
        raise QuestionError(
            "an expression is nested too deeply", "give its parts names", _line_in(path, None)
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = " ".join(str(error).split()) or "no message"
        problem = f"{type(error).__name__}: {message}"
        remedy = _remedy(error, module, remedies)
        raise QuestionError(problem, remedy, _line_in(path, error)) from None
    finally:
        del read_already[str(path)]
    return module


# What people type who know torch, numpy or Python better than the notation: a part of the error
# that Python raises, and what to write.
SYMPYS = "that works on numbers; use SymPy's: from sympy import exp"
REMEDIES = {
    "object has no attribute": "tensors have no methods: write Sum(x, axis); an axis is its size",
    "must be Tensor": SYMPYS,
    "Cannot convert expression to float": SYMPYS,
    "loop of ufunc": SYMPYS,
    "for @": "a matrix product is Sum(a * b, K)",
    "for ^": "a power is x**2",
    "comparison of non-real": "numbers are real: leave out the root or logarithm of a negative one",
    "truth value of Relational": "a choice between tensors is Piecewise((a, condition), (b, True))",
    "is not subscriptable": "tensors are not indexed: pick with OneHot, rename an axis with Rename",
    "is not iterable": "nothing goes through the entries of a tensor: write Sum(x, axis)",
    "Scalar.__init__() missing": "a number has a default: eps = Scalar(1e-5)",
    "No module named": "install it, or put the file beside this one",
    "expected at most 1 argument": "did you mean Input?",
    "cannot sympify": "a declaration has a line and a name of its own: x = Input(N, C)",
}


def _remedy(error: BaseException, module, remedies: Mapping[str, str] | None) -> str:
    sympys = remedies is None and getattr(module, "Sum", None) is sympy.Sum
    if sympys and isinstance(error, (TypeError, ValueError)):
        return "Sum is SymPy's here: import Sum from derive, after SymPy"
    known = REMEDIES if remedies is None else remedies
    return next((r for part, r in known.items() if part in str(error)), "mend that line")


def _line_in(path: Path, error: BaseException | None) -> Place:
    """The innermost line on the way to the error that is of the file, or of one beside it."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if _is_beside(path, f.filename)]
    return Place(own[-1].filename, own[-1].lineno) if own else Place(str(path), 0)


def _unknown_in_file(path: Path, error: NameError) -> QuestionError:
    """An unknown name outside of a class body, or in a function that one calls."""
    place = _line_in(path, error)
    name = error.name or (re.findall(r"'(\w+)'", str(error)) or ["?"])[0]
    return unknown_name(name, place, {})
