"""Code for proved closed forms: a Program, and targets that print it.

Public names are imported at first use, as those of ``derive`` are.
"""

from derive import version as version  # derive before SymPy, to which it says how much to keep

__all__ = ["Generated", "generate"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from codegen.driver import lean

    return getattr(lean, name)
