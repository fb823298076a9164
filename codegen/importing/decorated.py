"""Check a decorated torch function early, as far as possible without tracing it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from codegen.importing.asked import arguments_of, in_python
from derive.language.errors import Place, QuestionError

DECORATED = '@gradform.function("x: N C, gain: C")'


def request_of(
    written: Callable, axes: Any, sizes: Any, options: Any
) -> tuple[Callable, Any, Any, Any]:
    """The parts of an import request. Mistakes are reported at the decorator, not at a call."""
    name = getattr(written, "__name__", type(written).__name__)
    if not callable(written) or isinstance(written, (classmethod, staticmethod, property, type)):
        raise QuestionError(f"function: {name} is not a function", f"decorate one: {DECORATED}")
    if inspect.ismethod(written):
        raise QuestionError(
            f"function: {name} is a method of an object", "pass the object, or a plain function"
        )
    try:
        named = {a.name for a in arguments_of(axes)}
    except QuestionError as error:
        raise in_python(error) from None
    if not inspect.isfunction(written):
        return written, axes, sizes, options
    place = Place(written.__code__.co_filename, written.__code__.co_firstlineno)
    parameters = inspect.signature(written).parameters
    first = next(iter(parameters), "")
    if first == "self" and "self" not in named:
        raise QuestionError(
            f"function: {name} is a method",
            "decorate a function, and let the method call it",
            place,
        )
    for p in parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**"
            raise QuestionError(
                f"function: {name} takes {stars}{p.name}", "name every argument", place
            )
    unknown = [n for n in named if n not in parameters]
    if unknown:
        takes = ", ".join(parameters) or "nothing"
        raise QuestionError(
            f"{name} has no argument {', '.join(sorted(unknown))}", f"it takes {takes}", place
        )
    return written, axes, sizes, options
