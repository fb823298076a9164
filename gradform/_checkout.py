"""``gradform.generated`` in a checkout, where the gallery is the folder ``generated/`` beside this
package; in a wheel it is inside.

Run from the root of the checkout, the same files are ``generated`` too. Then both names mean the
same modules, or `use` would choose a target for one of two copies alone.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import ModuleType

NAME, BESIDE = "gradform.generated", "generated"
FILE = Path(__file__).resolve().parents[1] / BESIDE / "__init__.py"


class Gallery:
    """Finds ``gradform.generated`` and the modules in it, as a finder of ``sys.meta_path``."""

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        if name == NAME and FILE.is_file():
            if _is_the_gallery(find_spec(BESIDE)):
                return spec_from_loader(name, self)
            return spec_from_file_location(name, FILE)
        same = name.startswith(f"{NAME}.") and sys.modules[NAME].__name__ == BESIDE
        return spec_from_loader(name, self) if same else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(BESIDE + spec.name.removeprefix(NAME))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has already run under its other name, which it keeps."""
        module.__spec__ = module.__spec__.loader_state


def _is_the_gallery(spec: ModuleSpec | None) -> bool:
    """Whether a module is that of the checkout, and not a folder of the user's own."""
    return bool(spec and spec.origin) and Path(spec.origin).resolve() == FILE
