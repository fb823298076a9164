"""The lines of one function of a pasted text, with its names as they are outside of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from derive.reading.refusals import Refusal

SILENT = (ast.Import, ast.ImportFrom, ast.Assert, ast.Delete, ast.Pass, ast.Global)
SAVED = {"saved_tensors", "saved_variables", "saved_values"}
SAVE, ASKED = "save_for_backward", "needs_input_grad"
ABOUT_CONTEXT = {"mark_dirty", "mark_non_differentiable", "set_materialize_grads"}
NO_GRAD = {"torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(False)"}


def spoken(lines: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The lines without those that compute nothing."""
    return [line for line in lines if not isinstance(line, SILENT) and not _is_silent(line)]


def _is_silent(line: ast.stmt) -> bool:
    """A docstring, ``print(...)``, ``raise``, or ``if __name__ == "__main__":``."""
    if isinstance(line, ast.If):
        return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(line.test))
    value = line.value if isinstance(line, ast.Expr) else None
    if isinstance(value, ast.Call):
        return name_of(value.func) == "print"
    return isinstance(value, ast.Constant) and (isinstance(value.value, str) or value.value is ...)


def name_of(node: ast.AST | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True)
class Result:
    """What a function returns, and where."""

    node: ast.expr
    statement: ast.Return

    @property
    def parts(self) -> list[ast.expr]:
        return self.node.elts if isinstance(self.node, ast.Tuple) else [self.node]


class Scope(ast.NodeTransformer):
    """The names of a function: ``name`` stands in front of what it assigns, ``forward.mean``, if
    another function is read beside it. ``context`` are the names of its ``ctx``, whose attributes
    are names; ``held`` is what the forward saved there, None where that is not known.
    """

    def __init__(
        self,
        name: str = "",
        context: Iterable[str] = (),
        *,
        saving: bool = False,
        held: Sequence[str] | None = None,
        caches: Iterable[str] = (),
        parameters: Iterable[str] = (),
    ):
        self.name, self.context, self.saving = name, {*context}, saving
        self.held, self.caches, self.parameters = held, {*caches}, {*parameters}
        self.saved: list[str] = []
        self.meant: dict[str, ast.expr] = {}  # what a name stands for in this function
        self.result: Result | None = None

    def take(self, result: Result | None, caches: Iterable[str]) -> None:
        """What a forward returned behind its output is the cache of this backward."""
        for cache in caches if result and len(result.parts) > 1 else ():
            self.meant[cache] = result.parts[-1]
            self.caches.discard(cache)

    def lines(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The lines up to the return, which is the `result`."""
        made: list[ast.stmt] = []
        body = spoken(body)
        for i, line in enumerate(body):
            if isinstance(line, ast.Return):
                if body[i + 1 :]:
                    raise Refusal("lines after a return are never reached", "leave them out", line)
                self._return(line)
                break
            new = self.visit(line)
            made += new if isinstance(new, list) else [new] if new is not None else []
        return made

    def _return(self, line: ast.Return) -> None:
        if line.value is not None:
            value = self.visit(line.value)
            self.result = Result(value, ast.copy_location(ast.Return(value), line))

    # Statements

    def visit_With(self, node: ast.With):
        written = [ast.unparse(item.context_expr) for item in node.items]
        if any(item.optional_vars for item in node.items) or not set(written) <= NO_GRAD:
            raise Refusal("this with is not supported", "leave it out", node)
        return self.lines(node.body)

    def visit_If(self, node: ast.If):
        """The branch for a gradient that is asked for, and for an argument that is given."""
        asked = any(isinstance(n, ast.Attribute) and n.attr == ASKED for n in ast.walk(node.test))
        test = node.test
        is_none = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        if asked or (is_none and isinstance(test.ops[0], ast.IsNot)):
            return self.lines(node.body)
        if is_none:
            return self.lines(node.orelse)
        for inner in ("body", "orelse"):
            lines: list[ast.stmt] = []
            for line in spoken(getattr(node, inner)):
                new = self.visit(line)
                lines += new if isinstance(new, list) else [new] if new is not None else []
            setattr(node, inner, lines)
        node.test = self.visit(node.test)
        return node

    def visit_Expr(self, node: ast.Expr):
        call = node.value if isinstance(node.value, ast.Call) else None
        func = call.func if call and isinstance(call.func, ast.Attribute) else None
        if func is None or name_of(func.value) not in self.context:
            return self.generic_visit(node)
        if func.attr in ABOUT_CONTEXT or (func.attr == SAVE and not self.saving):
            return None
        if func.attr != SAVE:
            return self.generic_visit(node)
        values = [self.visit(value) for value in call.args]
        self.saved = [f"saved.{i}" for i in range(len(values))]
        pairs = zip(self.saved, values, strict=True)
        return [
            placed_at(ast.Assign([ast.Name(name, ast.Store())], value), node)
            for name, value in pairs
        ]

    def visit_Assign(self, node: ast.Assign):
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            return None  # dx = dw = None: assigned where it is asked for
        if isinstance(node.value, ast.Tuple) and all(
            isinstance(part, ast.Constant) and part.value is None for part in node.value.elts
        ):
            return None
        if self._holds(node.value):  # x, w = ctx.saved_tensors: they hold what their names say
            return None
        value = self.visit(node.value)
        targets = [self.visit(target) for target in node.targets]
        if isinstance(value, ast.Tuple) and len(targets) == 1:
            return _without_itself(targets[0], value, node)
        same = name_of(value) and [name_of(value)] == [name_of(t) for t in targets]
        return None if same else ast.copy_location(ast.Assign(targets, value), node)

    def visit_AnnAssign(self, node: ast.AnnAssign):
        if node.value is None:
            return None
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign):
        value = self.visit(node.value)
        target = node.target
        target = self._own(target) if isinstance(target, ast.Name) else self.visit(target)
        return ast.copy_location(ast.AugAssign(target, node.op, value), node)

    def visit_For(self, node: ast.For):
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        body = []
        for line in spoken(node.body):
            new = self.visit(line)
            body += new if isinstance(new, list) else [new] if new is not None else []
        body = [_accumulating(line) for line in body]
        node.body = body or [ast.copy_location(ast.Pass(), node)]
        return node

    def _holds(self, node: ast.expr) -> bool:
        """Whether a value is all that was saved, and what that is is not known."""
        if isinstance(node, ast.Attribute) and name_of(node.value) in self.context:
            return node.attr in SAVED and self.held is None
        return name_of(node) in self.caches

    # Names

    def named(self, name: str) -> ast.expr:
        return self.meant.get(name) or ast.Name(name, ast.Load())

    def _own(self, node: ast.Name) -> ast.Name:
        meant = self.meant.get(node.id)
        name = meant.id if isinstance(meant, ast.Name) else node.id
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Name(self, node: ast.Name):
        if not isinstance(node.ctx, ast.Store):
            meant = self.meant.get(node.id)
            return placed_at(_copied(meant), node) if meant is not None else node
        own = self.name or ("backward" if node.id in self.parameters else "")
        name = f"{own}.{node.id}" if own else node.id
        self.caches.discard(node.id)
        if own:
            self.meant[node.id] = ast.Name(name, ast.Load())
        return ast.copy_location(ast.Name(name, ast.Store()), node)

    def visit_Attribute(self, node: ast.Attribute):
        if name_of(node.value) not in self.context:
            return self.generic_visit(node)
        if node.attr in SAVED and self.held is not None:
            names = [ast.Name(name, ast.Load()) for name in self.held]
            return placed_at(ast.Tuple(names, ast.Load()), node)
        known = self.saving or self.held is not None
        name = f"ctx.{node.attr}" if known else node.attr
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript):
        """``cache["mean"]`` is what its name says."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if name_of(node.value) in self.caches and isinstance(key, str) and key.isidentifier():
            return ast.copy_location(ast.Name(key, node.ctx), node)
        return self.generic_visit(node)


def _without_itself(target: ast.expr, value: ast.Tuple, node: ast.Assign) -> ast.Assign | None:
    """``a, b = a, c`` is ``b = c``: what stands alone for its name is left out."""
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(value.elts):
        return ast.copy_location(ast.Assign([target], value), node)
    pairs = zip(target.elts, value.elts, strict=True)
    left = [(t, v) for t, v in pairs if not name_of(t) or name_of(t) != name_of(v)]
    if not left:
        return None
    names = ast.copy_location(ast.Tuple([t for t, _ in left], ast.Store()), target)
    values = ast.copy_location(ast.Tuple([v for _, v in left], ast.Load()), value)
    return ast.copy_location(ast.Assign([names], values), node)


def _accumulating(line: ast.stmt) -> ast.stmt:
    """``total = total + x`` in a loop is ``total += x``."""
    for inner in ("body", "orelse"):
        if isinstance(line, (ast.If, ast.For)):
            setattr(line, inner, [_accumulating(one) for one in getattr(line, inner)])
    value = line.value if isinstance(line, ast.Assign) else None
    own = name_of(line.targets[0]) if value is not None else ""
    more = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))
    if own and more and name_of(value.left) == own:
        new = ast.AugAssign(ast.Name(own, ast.Store()), value.op, value.right)
        return placed_at(ast.copy_location(new, line), line)
    return line


def placed_at(node: ast.AST, at: ast.AST) -> ast.AST:
    """``node`` with all that is in it, at the place of ``at``."""
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, at)
    return node


def _copied(node: ast.expr) -> ast.expr:
    """The same names once more, to stand at another place."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_copied(part) for part in node.elts], ast.Load())
    return node
