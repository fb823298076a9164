"""A module from its text, with no file: tracebacks show its lines all the same."""

from __future__ import annotations

import linecache
import sys
from importlib.abc import ExecutionLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType


class _OfText(ExecutionLoader):
    """Imports a module from its text, under a name that is no file's."""

    def __init__(self, text: str, file: str):
        self.text, self.file = text, file

    def get_filename(self, fullname: str) -> str:
        return self.file

    def get_source(self, fullname: str) -> str:
        return self.text


def loaded(text: str, name: str, digest: str = "checked", package: str = "") -> ModuleType:
    """The module with this text; ``digest`` tells it from others of the name in a traceback. Its
    relative imports come from ``package``.
    """
    file = f"<gradform {name} {digest}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    loader = _OfText(text, file)
    full = ".".join([*filter(None, [package]), f"gradform_{name}_{digest}"])
    module = module_from_spec(spec_from_loader(full, loader))
    sys.modules[module.__name__] = module  # where torch.compile looks for it
    loader.exec_module(module)
    return module
