"""Import torch code as a forward in the notation.

In: a function or a module, and the axes of its tensors. Out: a forward, and the text of its file.
"""

from importlib import import_module

# The module of every public name.
PUBLIC = {
    "from_torch": "driver",
    "imported": "driver",
}
__all__ = list(PUBLIC)


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PUBLIC[name]}"), name)
