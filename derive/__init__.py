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
    "check": "orders.check",
    "derive": "derivation",
    "findings": "found.findings",
    "forward_from": "notation.library",
    "Forward": "notation.forward",
    "Axis": "language.symbols",
    "Axes": "language.symbols",
    "Given": "language.declarations",
    "Input": "language.declarations",
    "Label": "language.declarations",
    "Scalar": "language.declarations",
    "Size": "language.declarations",
    "Broadcast": "language.nodes",
    "Flatten": "language.reshaping",
    "Max": "language.nodes",
    "OneHot": "language.nodes",
    "Position": "language.nodes",
    "Rename": "language.nodes",
    "Sum": "language.nodes",
    "Unflatten": "language.reshaping",
    "Kept": "language.kept_labels",
    "Reduced": "notation.reduced",
    "Proved": "proving.proved",
    "NotationError": "language.errors",
    "QuestionError": "language.errors",
    "UndecidedError": "language.errors",
    "UnprovedError": "language.errors",
}
# What is about torch code stands in codegen, which derive never imports: by name, when asked for.
OF_TORCH = {"assert_gradient": "codegen.importing.checking"}
__all__ = [*PUBLIC, *OF_TORCH]


def __getattr__(name: str):
    if name in OF_TORCH:
        return getattr(import_module(OF_TORCH[name]), name)
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"derive.{PUBLIC[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC, *OF_TORCH])
