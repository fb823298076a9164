"""Forward mathematics in, a proved backward pass out.

What is public is imported when it is first asked for: that takes SymPy and half a second, in which
a program that has only begun can be stopped already (``starting.py``).
"""

import os
from importlib import import_module

# SymPy looks up what it computed before, and reads this when it is imported. Of its usual 1000 the
# expressions of one gradient push out those of another: a fifth of the time.
os.environ.setdefault("SYMPY_CACHE_SIZE", "20000")

# The module of every public name.
PUBLIC = {
    "derive": "derivation",
    "findings": "gradient.found.findings",
    "forward_from": "language.notation.library",
    "Forward": "language.notation.forward",
    "Axis": "language.symbols",
    "Axes": "language.symbols",
    "Given": "language.declarations",
    "Input": "language.declarations",
    "Label": "language.declarations",
    "Scalar": "language.declarations",
    "Size": "language.declarations",
    "Broadcast": "language.sums",
    "CumMax": "language.maxima_so_far",
    "CumProd": "language.scans",
    "CumSum": "language.scans",
    "Detach": "language.detached",
    "Diagonal": "language.diagonals",
    "Flatten": "language.reshaping",
    "Identity": "language.diagonals",
    "Max": "language.extremes",
    "Min": "language.extremes",
    "Next": "language.scans",
    "OneHot": "language.one_hots",
    "Position": "language.one_hots",
    "Previous": "language.scans",
    "Rename": "language.renaming",
    "Round": "language.functions",
    "Scan": "language.scans",
    "Sum": "language.sums",
    "Unflatten": "language.reshaping",
    "At": "language.reading_at",
    **dict.fromkeys(("Concat", "Flip", "Pad", "Shift", "Slice", "Window"), "language.windows"),
    **dict.fromkeys(("Cholesky", "Inverse", "LogDet", "Solve"), "language.matrices"),
    "Kept": "language.kept_labels",
    "Gradient": "language.gradient",
    "Gather": "language.segments",
    "SegmentSum": "language.segments",
    "SegmentMean": "language.segments",
    "SegmentMax": "language.segments",
    "Outputs": "language.notation.outputs",
    "Ordered": "language.notation.ordered",
    "Reduced": "language.notation.reduced",
    "Proved": "proof.proving.proved",
    "NotationError": "language.errors",
    "QuestionError": "language.errors",
    "UndecidedError": "language.errors",
    "UnprovedError": "language.errors",
}
# What needs torch, and so stands in codegen: a door alone, which no room of derive goes through.
BESIDE = {
    "assert_gradient": "codegen.backwards",
    "check": "codegen.called.checking",
    "from_torch": "codegen.importing",
    "function": "codegen.called.functions",
}
_AROUND = __name__.removesuffix("derive")  # installed, they are all in the package gradform
__all__ = ["check", *PUBLIC]  # a star brings no torch: check does when it needs it


def __getattr__(name: str):
    if name not in PUBLIC and name not in BESIDE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{PUBLIC[name]}" if name in PUBLIC else f"{_AROUND}{BESIDE[name]}"
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC, *BESIDE])
