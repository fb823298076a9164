"""Code for proved closed forms: a Program, and targets that print it.

Public names are imported at first use, as those of ``derive`` are.
"""

import derive as derive  # before SymPy, to which it says how much to remember

__all__ = ["Generated", "generate"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import codegen.driver.lean

    return getattr(codegen.driver.lean, name)
