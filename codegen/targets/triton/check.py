"""Runs the kernels of a module in Triton beside autograd, and beside the lines that they stand for:
on Triton's interpreter, which needs no GPU.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager

from codegen.targets.tables import check
from derive.language.errors import QuestionError

VARIABLE = "TRITON_INTERPRET"
REMEDY = "start a new process: kernels are compared on Triton's interpreter before they are written"


@contextmanager
def interpreted() -> Iterator[None]:
    """Triton interprets kernels. It reads once, when it is imported, how it runs them, and torch
    imports it on its own. Raises `QuestionError` where it was imported for a GPU before.
    """
    if importlib.util.find_spec("triton") is None:
        raise QuestionError("Triton is not installed", "pip install gradform[triton]")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1"
    try:
        import triton.language as tl
        from triton.runtime.interpreter import InterpretedFunction

        if not isinstance(tl.zeros_like, InterpretedFunction):
            raise QuestionError("Triton was imported for a GPU before", REMEDY)
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


class Beside(check.Beside):
    def largest_difference(self, text, definition, program) -> float:
        """As that of all kernels."""
        with interpreted():
            return super().largest_difference(text, definition, program)
