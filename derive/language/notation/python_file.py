"""A file that is Python, read and not run; whatever is wrong with it is a `QuestionError`."""

from __future__ import annotations

import ast
from pathlib import Path
from types import CodeType

from derive.language.errors import Place, QuestionError, shortened_text


def checked_python(path: Path) -> tuple[ast.Module, CodeType]:
    """The syntax tree and the compiled code of a Python file.

    Raises `QuestionError`, with file and line, where it is not.
    """
    place = Place(str(path), 0)
    not_text = QuestionError("this is not a text file", "name a Python file (.py, UTF-8)", place)
    try:
        content = path.read_bytes()
        if b"\0" in content:
            raise not_text
        tree = ast.parse(content, str(path))
        return tree, compile(tree, str(path.resolve()), "exec", dont_inherit=True)
    except SyntaxError as error:
        if "utf-8" in str(error):
            raise not_text from None
        place = Place(str(path), error.lineno or 0)
        from derive.language.source.python_errors import syntax_remedy  # imports SymPy

        line = f"{shortened_text(error.text.strip())}: " if error.text else ""
        problem = f"{line}this is not Python: {error.msg}"
        raise QuestionError(problem, syntax_remedy(error), place) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise QuestionError(f"this is not Python: {error}", "name a Python file", place) from None
    except OSError as error:
        raise QuestionError(
            f"cannot be read: {error.strerror}", "check its permissions", place
        ) from None
