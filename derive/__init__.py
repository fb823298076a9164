"""Forward mathematics in, a proved backward pass out.

What is public is imported when it is first asked for: that takes SymPy and half a second, in which
a program that has only begun can be stopped already (``starting.py``).
"""

from importlib import import_module

# The module of every public name.
PUBLIC = {
    "check": "checking.check",
    "derive": "derivation",
    "findings": "found",
    "forward_from": "library",
    "Forward": "forward",
    "Axis": "symbols",
    "Axes": "symbols",
    "Given": "declarations",
    "Input": "declarations",
    "Label": "declarations",
    "Scalar": "declarations",
    "Size": "declarations",
    "Broadcast": "nodes",
    "Flatten": "reshaping",
    "Max": "nodes",
    "OneHot": "nodes",
    "Position": "nodes",
    "Rename": "nodes",
    "Sum": "nodes",
    "Unflatten": "reshaping",
    "Kept": "choices",
    "Proved": "proof",
    "NotationError": "errors",
    "QuestionError": "errors",
    "UndecidedError": "errors",
    "UnprovedError": "errors",
}
__all__ = list(PUBLIC)


def __getattr__(name: str):
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"derive.{PUBLIC[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *PUBLIC])
