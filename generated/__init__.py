"""Generated modules, and kernels for them. Not edited by hand.

``use("cpp")`` runs them on kernels, ``use("torch")`` on torch again; so does the variable
GRADFORM_TARGET from the first import on.
"""

import os

from .kernels import use

__all__ = ["use"]

if os.environ.get("GRADFORM_TARGET"):
    use(os.environ["GRADFORM_TARGET"])
