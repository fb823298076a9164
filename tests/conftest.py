"""What all tests share."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import forwards
import pytest
import torch

import derive
from derive.presentation import document_of


@pytest.fixture(autouse=True)
def _one_thread():
    """Two test processes share two cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    """A test derives what it tests; those of the cache ask for one."""
    monkeypatch.setenv("GRADFORM_CACHE", "")


def pytest_collection_modifyitems(config, items):
    """All tests of one forward in one process (pytest -n 2 --dist loadgroup), which derives it
    once.
    """
    for item in items if config.pluginmanager.hasplugin("xdist") else ():
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if "derived" in item.fixturenames and isinstance(parameters.get("name"), str):
            item.add_marker(pytest.mark.xdist_group(parameters["name"]))


@pytest.fixture(scope="session")
def derived(tmp_path_factory):
    """A forward of the project's, or of ``forwards.OWN``, by its name: derived and proved when a
    test first asks for it, once for each test process.
    """
    folder = tmp_path_factory.mktemp("own")

    @cache
    def proved_of(name):
        source = forwards.write(folder, name) if name in forwards.OWN else name
        return derive.derive(source)

    return proved_of


@pytest.fixture(scope="session")
def shown(derived):
    """The same as a document."""
    return cache(lambda name: document_of(derived(name)))


@pytest.fixture(scope="session")
def proved(derived):
    """The project's own two."""
    return {name: derived(name) for name in ("batch_norm", "softmax_nll")}


@pytest.fixture(scope="session")
def lessons():
    """``examples/lessons/write.py`` as a module."""
    file = Path(derive.__file__).parents[1] / "examples" / "lessons" / "write.py"
    spec = importlib.util.spec_from_file_location("lessons_write", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
