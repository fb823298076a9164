"""Generated modules, and kernels for them. Not edited by hand.

``use("cpp")`` or ``use("triton")`` runs them on kernels, ``use("torch")`` on torch again; so does
the variable GRADFORM_TARGET from the first import on.
"""

import os
import sys
from contextlib import ExitStack
from importlib import import_module, util

__all__ = ["use"]
FOLDERS = {"cpp": "kernels", "triton": "triton"}


class use(ExitStack):
    """Runs all functions of the package on a target: "torch", or a language in which kernels were
    written. As a context manager it restores the previous target. Raises ValueError for another.
    """

    def __init__(self, target: str):
        super().__init__()
        there = [own for own in FOLDERS if util.find_spec(f".{FOLDERS[own]}", __name__)]
        if target not in ("torch", *there):
            if target in FOLDERS:
                raise ValueError(f"no kernels here: gradform NAME --target {target} writes them")
            targets = ", ".join(("torch", *there))
            raise ValueError(f"unknown target {target!r}: choose one of {targets}")
        for own in sorted(there, key=target.__eq__):  # the others forward to it
            name = f"{__name__}.{FOLDERS[own]}"
            if own == target or name in sys.modules:
                self.enter_context(import_module(name).use(target if own == target else "torch"))


if os.environ.get("GRADFORM_TARGET"):
    use(os.environ["GRADFORM_TARGET"])
