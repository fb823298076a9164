"""What all tests share."""

import gc
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

import forwards
import pytest
import slow
import torch

import derive
from derive.show import document_of

os.environ.setdefault("GRADFORM_NODE", "0")  # no test depends on when something is built


@pytest.fixture(autouse=True)
def _one_thread():
    """Two test processes share two cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    """A test derives what it tests; those of the cache ask for one."""
    monkeypatch.setenv("GRADFORM_CACHE", "")


def pytest_collection_finish():
    """The modules and the tests stay until the end: they are not searched for garbage again and
    again, which is a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)  # before items are chosen by their marks
def pytest_collection_modifyitems(config, items):
    _mark_slow(config, items)
    _group(config, items)


def _mark_slow(config, items):
    """Those of ``slow.txt``, each of which is a test."""
    listed = slow.listed()
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    if config.args_source is config.ArgsSource.TESTPATHS:
        unknown = listed - {item.nodeid for item in items}
        if unknown:
            raise pytest.UsageError(f"tests/slow.txt names no test: {', '.join(sorted(unknown))}")


def _group(config, items):
    """What is made once for several tests is made in one process (pytest -n 2 --dist loadgroup):
    a forward that is derived by its name, and what a fixture makes for a whole module, by its name
    too where it makes several.
    """
    for item in items if config.pluginmanager.hasplugin("xdist") else ():
        name = item.callspec.params.get("name") if hasattr(item, "callspec") else None
        name = name if isinstance(name, str) else ""
        if name and "derived" in item.fixturenames:
            _grouped(item, name)
        elif _shares_with_its_module(item):
            _grouped(item, f"{item.module.__name__} {name}".rstrip())


def _grouped(item, group: str) -> None:
    """In one process with the others of its group. What xdist 3.8 writes for that, `_nodeid`, no
    pytest reads any more since 9.2, which keeps the name in `_id`: it is written here.
    """
    item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(item, "_id") and getattr(item.config.option, "loadgroup", False):
        item._id = item._id.parse(f"{item.nodeid}@{group}")


def _shares_with_its_module(item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs.values() if hasattr(item, "_fixtureinfo") else ()
    return any(definitions[-1].scope == "module" for definitions in fixtures)


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
