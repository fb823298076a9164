"""Runs the kernels of a module in Triton beside autograd, and beside the lines that they stand for:
on Triton's interpreter, which needs no GPU.
"""

from __future__ import annotations

import importlib.util
import os

from codegen.targets.tables import check
from derive.language.errors import QuestionError

VARIABLE = "TRITON_INTERPRET"
REMEDY = "leave --target triton out: kernels are compared before they are written"


class Beside(check.Beside):
    def largest_difference(self, text, definition, program) -> float:
        """As that of all kernels; Triton reads once, when it is imported, how it runs them."""
        if importlib.util.find_spec("triton") is None:
            raise QuestionError("Triton is not installed", "pip install gradform[triton]")
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = "1"
        try:
            import triton

            if not triton.knobs.runtime.interpret:
                raise QuestionError("Triton was imported for a GPU before", REMEDY)
            return super().largest_difference(text, definition, program)
        finally:
            if before is None:
                del os.environ[VARIABLE]
