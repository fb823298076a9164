"""Undefined names of a text, reported all at once; and the lines behind one claim."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from derive.claims.reading.containers import name_of
from derive.claims.reading.lines import root_of, written_by
from derive.claims.reading.names import TextNames
from derive.claims.reading.operations.vocabulary import BUILTINS, MODULES
from derive.claims.reading.pasted import Pasted
from derive.claims.reading.refusals import Refusal, printable

WORDS = {*BUILTINS, *MODULES, "nn"}  # known without being called


class UnknownNames(Refusal):
    """``names`` are undefined; ``gradients`` are those whose gradients the text assigns; ``read``
    are all names it reads. ``claims`` maps each gradient it ends with (None for a bare formula) to
    the undefined names it depends on; ``without_forward`` does so with the forward's lines left
    out.
    """

    gradients: tuple[str, ...] = ()
    read: frozenset[str] = frozenset()
    claims: Mapping[str | None, tuple[str, ...]] = {}
    without_forward: UnknownNames | None = None

    def __init__(self, names: Sequence[str], all_names: TextNames, node: ast.AST):
        self.names = tuple(names)
        first = printable(names[0])
        if len(names) == 1:
            super().__init__(f"there is no {first}", all_names.remedy(names[0]), node)
            return
        listed = ", ".join(map(printable, names))
        said = " ".join(f"--let {printable(name)}=..." for name in names)
        super().__init__(
            f"there is no {listed}",
            f"say what they are: {said}\n{all_names.remedy(names[0])}",
            node,
        )


def check_known(pasted: Pasted, names: TextNames) -> None:
    """Raises `UnknownNames`."""
    stored = {node.id for node in _names_in(pasted.lines, ast.Store)}
    stored |= {own for name in stored if (own := names.ours(name))}
    found: dict[str, ast.AST] = {}
    read = sorted(_names_in(pasted.lines, ast.Load), key=lambda n: (n.lineno, n.col_offset))
    for node in read:
        if node.id not in stored | WORDS and not names.knows(node.id):
            found.setdefault(node.id, node)
    gradients = [name[1:] for name in pasted.returned if names.adjoint(name) is None]
    for name in gradients:
        found.setdefault(name, pasted.lines[-1])
    if found:
        error = UnknownNames([*found], names, next(iter(found.values())))
        error.gradients = tuple(gradients)
        error.read = frozenset(names.ours(n.id) for n in _names_in(pasted.lines, ast.Load))
        error.claims = {
            name: tuple(n for n in found if n in needed) for name, needed in _claimed(pasted, names)
        }
        raise error


def _claimed(pasted: Pasted, names: TextNames) -> Iterator[tuple[str | None, set[str]]]:
    """The gradients a text ends with, each with the names it is computed from."""
    stored = dict.fromkeys(n.id for n in _names_in(pasted.lines, ast.Store))
    claims = pasted.returned or [n for n in stored if names.adjoint(n) is not None]
    for name in claims:
        lines = lines_for(pasted, name)
        yield name, {n.id for n in _names_in(lines, ast.Load)} | {name[1:]}
    if not claims:
        yield None, {n.id for n in _names_in(pasted.lines, ast.Load)}


def _names_in(lines: Sequence[ast.stmt], context: type) -> Iterator[ast.Name]:
    for line in lines:
        called = {id(n.func) for n in ast.walk(line) if isinstance(n, ast.Call)}
        for node in ast.walk(line):
            is_name = isinstance(node, ast.Name) and isinstance(node.ctx, context)
            if is_name and id(node) not in called:
                yield node


def lines_for(pasted: Pasted, name: str) -> list[ast.stmt]:
    """The lines that compute the final value of ``name``."""
    needed, kept = {name}, []
    for line in reversed(pasted.lines):
        if needed & _written(line):
            kept.append(line)
            needed |= {node.id for node in _names_in([line], ast.Load)}
            if isinstance(line, (ast.For, ast.If)):
                needed |= _written(line)
    return kept[::-1]


def _written(line: ast.stmt) -> set[str]:
    """The names that a line assigns or writes into."""
    found = {node.id for node in _names_in([line], ast.Store)}
    for node in ast.walk(line):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.add(name_of(root_of(node)))
        if (into := written_by(node)) is not None:
            found.add(name_of(root_of(into)))
    return found
