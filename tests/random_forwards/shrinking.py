"""A forward that goes wrong made smaller, as long as it goes wrong in the same way.

The text is cut as Python's syntax tree: lines left out, expressions replaced by a part of
themselves or by a number, declarations without options. What is cut too far is refused by the
notation, which is another outcome, and so not taken.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

from random_forwards.trial import Outcome

Trial = Callable[[str], Outcome]


def shrunk(text: str, outcome: Outcome, trial: Trial, seconds: float = 120.0) -> str:
    """The smallest text that was found in so many seconds whose outcome has the same cause."""
    end, tried = time.monotonic() + seconds, {text}
    text = tidied(text)
    while True:
        for candidate in candidates(text):
            if time.monotonic() > end:
                return text
            if candidate in tried:
                continue
            tried.add(candidate)
            again = trial(candidate)
            if (again.kind, again.cause) == (outcome.kind, outcome.cause):
                text = candidate
                break
        else:
            return text


def candidates(text: str) -> Iterator[str]:
    """Smaller texts, those with large cuts first."""
    tree = ast.parse(text)
    for cut in (_last_line_left_out, _line_left_out, _expression_cut, _option_left_out):
        for smaller in cut(tree):
            for line in _classes(smaller):
                line.body = line.body or [ast.Pass()]
            yield tidied(ast.unparse(ast.fix_missing_locations(smaller)))


def tidied(text: str) -> str:
    """Without declarations, axes, imports and classes that nothing uses."""
    while True:
        tree = ast.parse(text)
        used = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        last = [line for line in tree.body if isinstance(line, ast.ClassDef)][-1]
        for line in tree.body:
            if isinstance(line, ast.ImportFrom):
                line.names = [n for n in line.names if (n.asname or n.name) in used] or line.names[
                    :1
                ]
            if isinstance(line, ast.ClassDef):
                line.body = [
                    s for s in line.body if not _is_declaration(s) or s.targets[0].id in used
                ]
        tree.body = [
            line
            for line in tree.body
            if line is last
            or (isinstance(line, ast.ImportFrom) and line.names)
            or (isinstance(line, ast.ClassDef) and line.name in used)
            or (isinstance(line, ast.Assign) and _names(line.targets[0]) & used)
        ]
        for line in tree.body:
            if isinstance(line, ast.ClassDef) and not line.body:
                line.body = [ast.Pass()]
        again = ast.unparse(tree)
        if again == text:
            return text
        text = again


def _names(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_declaration(line: ast.stmt) -> bool:
    if isinstance(line, ast.Pass):
        return False
    call = line.value if isinstance(line, ast.Assign) else None
    kinds = ("Input", "Given", "Label", "Scalar", "Size")
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") in kinds


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [line for line in tree.body if isinstance(line, ast.ClassDef)]


def _last_line_left_out(tree: ast.Module) -> Iterator[ast.Module]:
    for i, written in enumerate(_classes(tree)):
        if sum(not _is_declaration(line) for line in written.body) > 1:
            smaller = copy.deepcopy(tree)
            _classes(smaller)[i].body.pop()
            yield smaller


def _line_left_out(tree: ast.Module) -> Iterator[ast.Module]:
    """A statement left out; a name of what it was made of, or a number, stands for it."""
    for i, written in enumerate(_classes(tree)):
        for j, line in enumerate(written.body):
            if isinstance(line, ast.Pass) or (
                _is_declaration(line) and line.value.func.id != "Input"
            ):
                continue
            name = line.targets[0].id
            inside = [n for n in ast.walk(line.value) if isinstance(n, ast.Name)]
            own = {s.targets[0].id for s in written.body}
            names = dict.fromkeys(n.id for n in inside if n.id in own)
            for stand_in in [*map(_name, names), ast.Constant(1)]:
                smaller = copy.deepcopy(tree)
                body = _classes(smaller)[i].body
                del body[j]
                _classes(smaller)[i].body = [_Replaced(name, stand_in).visit(s) for s in body]
                yield smaller


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


class _Replaced(ast.NodeTransformer):
    def __init__(self, name: str, by: ast.expr):
        self.name, self.by = name, by

    def visit_Name(self, node):
        loaded = isinstance(node.ctx, ast.Load)
        return copy.deepcopy(self.by) if loaded and node.id == self.name else node


def _expression_cut(tree: ast.Module) -> Iterator[ast.Module]:
    """An expression replaced by a part of it, by 1, or by its first argument."""
    for i, written in enumerate(_classes(tree)):
        for j, line in enumerate(written.body):
            if _is_declaration(line) or isinstance(line, ast.Pass):
                continue
            count = sum(1 for _ in ast.walk(line.value))
            for k in range(count):
                node = _nth(line.value, k)
                if not isinstance(node, (ast.BinOp, ast.Call, ast.UnaryOp, ast.Compare)):
                    continue
                for part in _parts(node):
                    smaller = copy.deepcopy(tree)
                    place = _classes(smaller)[i].body[j]
                    place.value = _with_nth(place.value, k, copy.deepcopy(part))
                    yield smaller


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Call):
        for argument in node.args:
            if isinstance(argument, ast.Tuple):
                yield argument.elts[0]
            elif not isinstance(argument, ast.Name) or argument.id.islower():
                yield argument
        if len(node.args) > 2:
            for i in range(1, len(node.args)):
                yield ast.Call(node.func, [*node.args[:i], *node.args[i + 1 :]], node.keywords)
    if not isinstance(node, ast.Compare):
        yield ast.Constant(1)


def _nth(e: ast.expr, k: int) -> ast.AST:
    return list(ast.walk(e))[k]


def _with_nth(e: ast.expr, k: int, new: ast.expr) -> ast.expr:
    old = _nth(e, k)

    class Put(ast.NodeTransformer):
        def visit(self, node):
            return new if node is old else self.generic_visit(node)

    return Put().visit(e)


def _option_left_out(tree: ast.Module) -> Iterator[ast.Module]:
    """A declaration without an option or without an axis; an `Axes` as an `Axis`."""
    for i, written in enumerate(_classes(tree)):
        for j, line in enumerate(written.body):
            if not _is_declaration(line):
                continue
            for k in range(len(line.value.keywords)):
                smaller = copy.deepcopy(tree)
                del _classes(smaller)[i].body[j].value.keywords[k]
                yield smaller
            for k in range(len(line.value.args) if line.value.func.id != "Scalar" else 0):
                smaller = copy.deepcopy(tree)
                del _classes(smaller)[i].body[j].value.args[k]
                yield smaller
    smaller = copy.deepcopy(tree)
    several = [n for n in ast.walk(smaller) if isinstance(n, ast.Name) and n.id == "Axes"]
    for name in several:
        name.id = "Axis"
    if several:
        yield smaller
