"""The lines of a kernel, and the scopes of its variables: before its loops, or inside of one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from codegen.targets.tables.names import Names

WIDTH = 100  # columns
INDENT = " " * 4  # inside a function, or a loop


@dataclass
class Scope:
    """Lines in which the places along ``axes`` are known, with those of the enclosing scopes; and
    the variables that are defined in it.
    """

    axes: frozenset[str]
    lines: list[str] = field(default_factory=list)
    known: set[Hashable] = field(default_factory=set)


@dataclass(frozen=True)
class KernelSoFar:
    """The scopes around the current line, with copies of their lines; the variables' names, and all
    that are taken. ``beyond`` is the number of characters beyond the last column.
    """

    scopes: tuple[Scope, ...]
    called: Mapping[Hashable, str]
    taken: frozenset[str]
    beyond: int


class Scopes:
    """``scopes`` are those around the current line, the outermost first. A variable is defined in
    the outermost scope in which all its operands are known.
    """

    def __init__(self, names: Names):
        self.names, self.scopes = names, [Scope(frozenset())]
        self.called: dict[Hashable, str] = {}

    def line(self, text: str) -> None:
        self.scopes[-1].lines += [INDENT + line for line in text.split("\n")]

    @contextmanager
    def loop(self, head: str, axes: Iterable[str]) -> Iterator[None]:
        """A loop, inside of which the places along ``axes`` are known."""
        self.scopes.append(Scope(frozenset(axes)))
        yield
        inside = self.scopes.pop()
        if inside.lines:
            self.line("\n".join([head, *inside.lines]))

    def variable(
        self, key: Hashable, name: str, axes: Iterable[str], text: Callable[[], str]
    ) -> str:
        """The variable for the expression ``text()``, defined where it is first needed."""
        if self.has(key):
            return self.called[key]
        with self.outside(self.depth(axes)):
            made = text()
            self.named(key, name)
            self.line(f"{self.called[key]} = {made}")
            self.scopes[-1].known.add(key)
        return self.called[key]

    def named(self, key: Hashable, name: str) -> str:
        """The name that a variable keeps; for a place, its key."""
        if key not in self.called:
            self.called[key] = name if key == name else self.names.free(name)
        return self.called[key]

    def has(self, key: Hashable) -> bool:
        return any(key in scope.known for scope in self.scopes)

    def depth(self, axes: Iterable[str]) -> int:
        """The number of scopes around the place where a value along ``axes`` is known."""
        missing, depth = {*axes} - self.scopes[0].axes, 1
        while missing and depth < len(self.scopes):
            missing -= self.scopes[depth].axes
            depth += 1
        return depth

    def state(self) -> KernelSoFar:
        """All that is written so far."""
        lines = [INDENT * i + line for i, scope in enumerate(self.scopes) for line in scope.lines]
        copies = tuple(replace(s, lines=[*s.lines], known={*s.known}) for s in self.scopes)
        beyond = sum(max(0, len(line) - WIDTH) for line in lines)
        return KernelSoFar(copies, dict(self.called), frozenset(self.names.taken), beyond)

    def restore(self, written: KernelSoFar) -> None:
        """Go back to a state; the scopes around the current line are the same."""
        for scope, then in zip(self.scopes, written.scopes, strict=True):
            scope.lines, scope.known = [*then.lines], {*then.known}
        self.called, self.names.taken = dict(written.called), {*written.taken}

    @contextmanager
    def outside(self, depth: int) -> Iterator[None]:
        """Lines that stand before the loops inside of the first scopes."""
        every, self.scopes = self.scopes, self.scopes[:depth]
        yield
        self.scopes = every
