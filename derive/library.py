"""Finding forwards: by name among ``derive/math``, or in a person's own file.

NAME is a forward's name (``batch_norm`` or ``BatchNorm``), a file, or ``file.py:BatchNorm`` for one
of a file's several. Whatever is wrong with a file is said as a `QuestionError` with file, line and
remedy.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import re
import sys
import traceback
from importlib.machinery import SourceFileLoader
from pathlib import Path

import sympy

import derive.notation
from derive.errors import NotationError, Place, QuestionError
from derive.forward import Forward

MATH = Path(__file__).parent / "math"


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
    path, _, wanted = name.partition(".py:")
    if wanted or name.endswith(".py") or "/" in name or Path(name).is_file():
        path = Path(f"{path}.py" if wanted else name)
        found = load(path)
        if wanted:
            found = [f for f in found if wanted in (f.__name__, f.definition.snake)] or _unknown(
                wanted, found, f"in {path}"
            )
        return found
    known = list_forwards()
    matching = [f for f in known if name in (f.__name__, f.definition.snake)]
    return matching or _unknown(name, known, "among the forwards of derive/math")


def list_forwards() -> list[type[Forward]]:
    """Every forward of ``derive/math``, by file and line."""
    return [
        forward
        for path in sorted(MATH.glob("*.py"))
        if path.stem != "__init__"
        for forward in load(path)
    ]


def source_hash(forward: type[Forward]) -> str:
    """SHA-256 of the file that defines ``forward``: what was read is what was derived."""
    return hashlib.sha256(Path(forward.definition.place.file).read_bytes()).hexdigest()


def load(path: Path) -> list[type[Forward]]:
    """The forwards that a file defines, in its order. The file is Python and is run as such."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise QuestionError(f"{path} {what}", "name a Python file that holds a forward")
    _check_python(path)
    module = _run(path)
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


def _unknown(name: str, known, where: str):
    names = [f.definition.snake for f in known] + [f.__name__ for f in known]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    remedy = f"did you mean {close[0]}? " if close else ""
    raise QuestionError(
        f"no forward is called {name!r} {where}",
        f"{remedy}There are: {', '.join(f.definition.snake for f in known)}. "
        "A file of your own is named by its path",
    )


def _check_python(path: Path) -> None:
    place = Place(str(path), 0)
    try:
        text = path.read_bytes().decode("utf-8")
        ast.parse(text, filename=str(path))
    except UnicodeDecodeError:
        raise QuestionError(
            "this is not a text file", "name a Python file (.py, UTF-8)", place
        ) from None
    except SyntaxError as error:
        place = Place(str(path), error.lineno or 0)
        raise QuestionError(
            f"this is not Python: {error.msg}", "mend the syntax of that line", place
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise QuestionError(f"this is not Python: {error}", "name a Python file", place) from None
    except OSError as error:
        raise QuestionError(
            f"cannot be read: {error.strerror}", "check its permissions", place
        ) from None


class _FreshLoader(SourceFileLoader):
    """Always compiles the file as it is now: a cached compilation may be that of the text before
    an edit.
    """

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


def _run(path: Path):
    path = path.resolve()
    name = f"gradform_file_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    loader = _FreshLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        loader.exec_module(module)
    except QuestionError as error:
        raise error.at(_line_in(path, error)) from None
    except NameError as error:
        raise _unknown_in_file(path, error) from None
    except RecursionError:
        raise QuestionError(
            "the file recurses without end", "check it", Place(str(path), 0)
        ) from None
    except (Exception, SystemExit) as error:
        shadowed = getattr(module, "Sum", None) is sympy.Sum
        remedy = (
            "Sum is SymPy's here: import Sum from derive, after SymPy"
            if shadowed
            else "mend that line"
        )
        message = " ".join(str(error).split()) or "no message"
        raise QuestionError(
            f"{type(error).__name__}: {message}", remedy, _line_in(path, error)
        ) from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def _line_in(path: Path, error: BaseException) -> Place:
    """The innermost line of the file itself on the way to the error."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return Place(str(path), lines[-1] if lines else 0)


def _unknown_in_file(path: Path, error: NameError) -> QuestionError:
    """An unknown name: one that is defined further down, a misspelt one, or one that was not
    imported.
    """
    place = _line_in(path, error)
    name = error.name or (re.findall(r"'(\w+)'", str(error)) or ["?"])[0]
    text = path.read_text(encoding="utf-8")
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    body = next((c for c in classes if c.lineno <= place.line <= (c.end_lineno or c.lineno)), None)
    assigned = {
        target.id: line.lineno
        for line in (body.body if body else [])
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name)
    }
    if assigned.get(name, 0) > place.line:
        return NotationError(
            f"{name} is used here, but defined only on line {assigned[name]}",
            "a statement sees what stands above it: move one of the two lines",
            place,
        )
    if assigned.get(name, 0) == place.line:
        return NotationError(
            f"{name} is used in its own definition", "use the tensors above it", place
        )
    if hasattr(derive, name) or hasattr(sympy, name):
        package = "derive" if hasattr(derive, name) else "sympy"
        return NotationError(
            f"{name} is unknown here", f"import it: from {package} import {name}", place
        )
    close = difflib.get_close_matches(name, list(assigned), n=1)
    remedy = (
        f"did you mean {close[0]}?"
        if close
        else "define it on a line above, as an Input or a statement"
    )
    return NotationError(f"{name} is unknown", remedy, place)
