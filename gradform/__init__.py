"""Forward mathematics in, a proved backward pass out: everything that a user imports.

    from gradform import Axis, Forward, Input, Sum, check, derive, from_torch

``gradform.generated`` is the gallery: the functions that come with gradform, ready to be called.
What is public is imported when it is first asked for, as that of ``derive`` is.
"""

import sys as _sys
from importlib import import_module as _import_module
from pathlib import Path as _Path

import derive as _derive
from derive.version import VERSION as __version__  # noqa: F401

__all__ = list(_derive.__all__)

if not (_Path(__file__).parent / "generated").is_dir():  # a checkout
    from gradform._checkout import Gallery as _Gallery

    _sys.meta_path.insert(0, _Gallery())


def __getattr__(name: str):
    if name == "generated":
        return _import_module("gradform.generated")
    if name not in _derive.PUBLIC and name not in _derive.BESIDE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_derive, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_derive.PUBLIC, *_derive.BESIDE, "generated"})
