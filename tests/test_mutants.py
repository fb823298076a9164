"""Every rule is watched: ``make mutants`` breaks whatever is written in a room of mathematics, and
no room, table or entry is left out.
"""

import ast
import importlib
from pathlib import Path

import pytest
from mutants.breaking import exchange, functions_of, rewrite
from mutants.by_hand import BY_HAND
from mutants.registry import ELSEWHERE, ROOMS, SLOW, TABLES, mutants, names_of_mutants
from mutants.unnoticed import UNNOTICED
from test_nodes import SAMPLES

import derive
from codegen.lowering.idioms import idioms
from derive.gradient.closing.identities import elimination, identities, inversion
from derive.gradient.range import scale_rules

TESTS = Path(__file__).parent
ROOT = Path(derive.__file__).parents[1]


def modules(folder: str) -> set[str]:
    files = (f.relative_to(ROOT).with_suffix("") for f in (ROOT / folder).rglob("*.py"))
    return {".".join(f.parts) for f in files if not f.stem.startswith("__")}


def test_every_module_of_mathematics_is_a_room():
    """A new one belongs to `ROOMS`, or where it holds no rules, to `ELSEWHERE`."""
    other = {m for m in modules("derive") if any(f"{m}.".startswith(f"{e}.") for e in ELSEWHERE)}
    assert modules("derive") | modules("codegen/lowering") == ROOMS.keys() | other
    assert not ROOMS.keys() & other


def entries():
    """The function of every entry of every table."""
    yield from ((i.name, i.rewrite) for i in (*identities, elimination, inversion))
    yield from ((node.__name__, node.adjoint) for node in SAMPLES)
    yield from ((node.__name__, node.entry) for node in SAMPLES)
    yield from ((kind.__name__, i.rewrite) for kind, i in scale_rules.identities.items())
    yield from ((i.statement, i.rewrite) for i in idioms)


def test_every_entry_is_broken_at_least_once():
    names = [mutant.name for mutant in mutants()]
    for entry, function in entries():
        place = f"{function.__module__}: {function.__qualname__}: "
        assert any(name.startswith(place) for name in names), entry
    for module, table in TABLES:
        for key in getattr(importlib.import_module(module), table):
            assert any(name.startswith(f"{module}: {table}: {key!r}: ") for name in names), key


def test_what_nobody_notices_is_listed_with_its_reason():
    assert UNNOTICED.keys() <= set(names_of_mutants()) and all(UNNOTICED.values())


@pytest.mark.parametrize("place", BY_HAND, ids=": ".join)
def test_what_is_broken_by_hand_is_there_to_be_broken(place):
    room, name = place
    function = functions_of(room)[name]
    code = function.__code__
    for old, new in BY_HAND[place]:
        rewrite(function, old, new)
        assert function.__code__ != code
        function.__code__ = code


def test_the_watchers_are_there():
    watchers = {w for tests in (*ROOMS.values(), *TABLES.values(), SLOW) for w in tests}
    for watcher in watchers:
        file, _, name = watcher.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert (name in defined) if name else any(d.startswith("test_") for d in defined), watcher


def test_a_broken_function_is_broken_for_everybody():
    def right(a, b=1, *, c=2):
        return a + b + c

    other = right
    exchange(right, lambda right, *args, **kwargs: -right(*args, **kwargs))
    assert other(1) == -4 and other(1, 2, c=3) == -6
