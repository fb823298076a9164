"""A module of ranks or chunks from its text, as the checks use it before anything is written."""

from __future__ import annotations

from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType


class _OfText(InspectLoader):
    """Imports a module from its text: nothing is written for it that could be left behind."""

    def __init__(self, text: str):
        self.text = text

    def get_source(self, fullname: str) -> str:
        return self.text


def load(text: str, name: str) -> ModuleType:
    """The module with this text, under a name of its own, beside the files that it imports."""
    loader = _OfText(text)
    module = module_from_spec(spec_from_loader(f"{__package__}.checked_{name}", loader))
    loader.exec_module(module)
    return module
