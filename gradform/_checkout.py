"""The packages inside of ``gradform`` in a checkout, where they are folders beside this one;
in a wheel they are inside.

``gradform.derive`` is the package ``derive`` by another name, and so is every module in it. Run
from the root of the checkout, the gallery is ``generated`` too: then both names mean the same
modules, or `use` would choose a target for one of two copies alone.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

BESIDE = ("derive", "codegen", "generated")
GALLERY = Path(__file__).resolve().parents[1] / "generated" / "__init__.py"
sys.modules["gradform.derive"] = sys.modules["derive"]  # as the attribute, there is its function


class Folders:
    """Finds the packages inside of ``gradform`` and their modules, on ``sys.meta_path``."""

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        around, _, own = name.partition(".")
        top = own.partition(".")[0]
        if around != "gradform" or top not in BESIDE:
            return None
        if own == "generated" and not _is_the_gallery(find_spec(own)):
            return spec_from_file_location(name, GALLERY) if GALLERY.is_file() else None
        known = sys.modules.get(f"{around}.{top}")
        return spec_from_loader(name, self) if known is None or known.__name__ == top else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(spec.name.partition(".")[2])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has already run under its other name, which it keeps."""
        module.__spec__ = module.__spec__.loader_state


def _is_the_gallery(spec: ModuleSpec | None) -> bool:
    """Whether a module is that of the checkout, and not a folder of the user's own."""
    return bool(spec and spec.origin) and Path(spec.origin).resolve() == GALLERY
