"""Forward mathematics in, a proved backward pass out: everything that a user imports.

    from gradform import Axis, Forward, Input, Sum, check, derive, from_torch

``gradform.generated`` is the gallery: the functions that come with gradform, ready to be called.
What is public is imported when it is first asked for, as that of ``derive`` is.
"""

import sys as _sys
from importlib import import_module as _import_module

from derive import BESIDE as _BESIDE
from derive import PUBLIC as _PUBLIC
from derive import __all__ as _all
from derive.version import VERSION as __version__  # noqa: F401

__all__ = list(_all)

if f"{__name__}.derive" not in _sys.modules:  # a checkout
    from gradform._checkout import Folders as _Folders

    _sys.meta_path.insert(0, _Folders())

_derive = _sys.modules[f"{__name__}.derive"]
globals().pop("derive", None)  # the package: the name is that of its function


def __getattr__(name: str):
    if name == "generated":
        return _import_module("gradform.generated")
    if name not in _PUBLIC and name not in _BESIDE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_derive, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_BESIDE, "generated"})
