"""Inlining: the values of a function to keep, and those to recompute where they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from codegen.schedule.elements import Element, cost, index, with_indices
from codegen.schedule.nodes import LibraryNode, Node

CHEAP = 8  # operations that are recomputed from memory or a row instead of kept


def needed(nodes: Sequence[Node | LibraryNode], results: set[str]) -> list[Node | LibraryNode]:
    """The nodes that a result depends on."""
    needed, found = set(results), []
    for node in reversed(nodes):
        if node.name in needed:
            needed |= node.reads
            found.append(node)
    return found[::-1]


def without_copies(
    nodes: Sequence[Node | LibraryNode], results: set[str]
) -> list[Node | LibraryNode]:
    """Nodes without copies: a reduction takes the name of its copy, if nothing else reads it."""
    users = _users(nodes)
    of = {node.name: node for node in nodes if isinstance(node, Node) and node.kind}
    names: dict[str, str] = {}
    for node in nodes:
        value = getattr(node, "value", None)
        if isinstance(node, Node) and not node.kind and value.kind == "entry":
            made = of.get(value.name)
            own = made and made.axes == node.axes and value.args == tuple(map(index, node.axes))
            if own and made.name not in results and users[made.name] == [node]:
                names[made.name] = node.name
    found = [node for node in nodes if node.name not in names.values()]
    return [replace(node, name=names.get(node.name, node.name)) for node in found]


def inlined(nodes: Sequence[Node | LibraryNode], results: set[str]) -> list[Node | LibraryNode]:
    """Inline the nodes that are cheaper to recompute where they are read than to keep, or that are
    read at one place in the loops that would compute them.
    """
    inlined: dict[str, Node] = {}
    users = _users(nodes)
    whole = {name for node in nodes if isinstance(node, LibraryNode) for name in node.reads}
    kept = []
    for node in nodes:
        if isinstance(node, LibraryNode):
            kept.append(node)
            continue
        node = replace(node, value=node.value.replaced(lambda e: _again(e, inlined)))
        once = len(users[node.name]) == 1 and _same_loops(node, users[node.name][0])
        cheap = cost(node.value, frozenset(node.axes)) <= CHEAP
        if not node.kind and node.name not in results | whole and (cheap or once):
            inlined[node.name] = node
        else:
            kept.append(node)
    return kept


def _again(e: Element, inlined: Mapping[str, Node]) -> Element | None:
    if e.kind != "entry" or e.name not in inlined:
        return None
    node = inlined[e.name]
    args = [arg.replaced(lambda part: _again(part, inlined)) for arg in e.args]
    return with_indices(node.value, dict(zip(node.axes, args, strict=True)))


def _users(nodes: Iterable[Node | LibraryNode]) -> dict[str, list[Node | LibraryNode]]:
    """Readers of each node, one for every read."""
    nodes = list(nodes)
    users: dict[str, list[Node | LibraryNode]] = {node.name: [] for node in nodes}
    for node in nodes:
        names = (
            node.reads if isinstance(node, LibraryNode) else [e.name for e in node.value.entries]
        )
        for name in names:
            if name in users:
                users[name].append(node)
    return users


def _same_loops(node: Node, user: Node | LibraryNode) -> bool:
    if isinstance(user, LibraryNode) or {*node.axes} != {*user.space}:
        return False
    entry = next(e for e in user.value.entries if e.name == node.name)
    return entry.args == tuple(map(index, node.axes))
