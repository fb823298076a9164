"""A class stands in one file: none is cut into pieces by inheritance.

A piece is a base class that uses what only its one subclass, in another file, defines; a base of
several subclasses may ask them for something. And what a method assigns to ``self`` later than the
constructor is neither read nor assigned by a class of the same line in another file.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import derive

ROOT = Path(derive.__file__).parents[1]
Key = tuple[str, str]  # a module and a class in it
CONSTRUCTORS = ("__init__", "__post_init__")

# Attributes that two files share, with why.
SHARED = {
    "place": "an error is raised where nothing is known of lines, and gets one on its way up",
    "current": "the loops whose function a page is writing: the target asks for them",
}


@dataclass
class Own:
    """The bases of a class of ours, and what it does with ``self``."""

    bases: list[Key] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    assigned_later: set[str] = field(default_factory=set)


def is_stub(function: ast.FunctionDef) -> bool:
    last = function.body[-1]
    return isinstance(last, ast.Raise) and "NotImplementedError" in ast.unparse(last)


def own_of(node: ast.ClassDef, imported: dict[str, Key], module: str) -> Own:
    own = Own()
    for base in node.bases:
        if isinstance(base, ast.Name):
            own.bases.append(imported.get(base.id, (module, base.id)))
        elif isinstance(base, ast.Attribute):  # of a module
            own.bases.append((".".join(imported.get(ast.unparse(base.value), ())), base.attr))
    for part in node.body:
        if isinstance(part, ast.Assign):
            own.defined |= {t.id for t in part.targets if isinstance(t, ast.Name)}
        if isinstance(part, ast.AnnAssign) and (part.value or node.decorator_list):
            own.defined.add(ast.unparse(part.target))
        if not isinstance(part, ast.FunctionDef):
            continue
        own.defined |= set() if is_stub(part) else {part.name}
        for e in ast.walk(part):
            if isinstance(e, ast.AugAssign) and ast.unparse(e.target).startswith("self."):
                own.read.add(ast.unparse(e.target).removeprefix("self."))
            if isinstance(e, ast.Attribute) and ast.unparse(e.value) == "self":
                stored = isinstance(e.ctx, ast.Store)
                (own.defined if stored else own.read).add(e.attr)
                if stored and part.name not in CONSTRUCTORS:
                    own.assigned_later.add(e.attr)
    return own


def classes(*texts: tuple[str, str]) -> dict[Key, Own]:
    """Those of modules, given by name and text."""
    found: dict[Key, Own] = {}
    for module, text in texts:
        nodes = list(ast.walk(ast.parse(text)))
        imported = {
            a.asname or a.name: (n.module, a.name)
            for n in nodes
            if isinstance(n, ast.ImportFrom) and n.module
            for a in n.names
        }
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                found[module, node.name] = own_of(node, imported, module)
    return found


def above(key: Key, known: dict[Key, Own]) -> Iterator[Key]:
    for base in known[key].bases:
        if base in known:
            yield base
            yield from above(base, known)


def spread(known: dict[Key, Own]) -> set[tuple[str, str]]:
    """(class, attribute) of pieces, and of what is assigned in one file and used in another."""
    found: set[tuple[str, str]] = set()
    for key, own in known.items():
        for base in set(above(key, known)):
            if base[0] == key[0]:
                continue
            other = known[base]
            shared = own.assigned_later & (other.read | other.assigned_later)
            shared |= other.assigned_later & own.read
            found |= {(key[1], attribute) for attribute in shared}
            if sum(base in each.bases for each in known.values()) == 1:
                lines = (base, *above(base, known))
                defined = set().union(*(known[each].defined for each in lines))
                holes = (other.read - defined) & own.defined
                found |= {(base[1], attribute) for attribute in holes}
    return found


def test_no_class_is_spread_over_files():
    files = [f for room in ("derive", "codegen") for f in sorted((ROOT / room).rglob("*.py"))]
    names = (".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files)
    names = (name.removesuffix(".__init__") for name in names)
    known = classes(*zip(names, (f.read_text("utf-8") for f in files), strict=True))
    found = spread(known)
    assert {of for _, of in found} == {*SHARED}, found


PIECE = "class Piece:\n    def run(self):\n        return self.step()\n"
STUB = PIECE + "    def step(self):\n        raise NotImplementedError\n"
WHOLE = "from piece import Piece\nclass Whole(Piece):\n    def step(self):\n        self.n = 1\n"


def test_pieces_are_seen():
    assert spread(classes(("piece", PIECE), ("whole", WHOLE))) == {("Piece", "step")}
    assert spread(classes(("piece", STUB), ("whole", WHOLE))) == {("Piece", "step")}
    several = WHOLE + "class Other(Piece):\n    def step(self):\n        pass\n"
    assert not spread(classes(("piece", PIECE), ("whole", several)))
    reads = PIECE + "    def step(self):\n        return self.n\n"
    assert spread(classes(("piece", reads), ("whole", WHOLE))) == {("Whole", "n"), ("Piece", "n")}
