"""One function of a pasted text: its lines, with local names made unique."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from derive.claims.reading.calling import Callee, arguments_of, called
from derive.claims.reading.containers import (
    GRADIENT,
    copied,
    entry_of,
    is_cache,
    is_none,
    key_of,
    name_of,
    name_of_entry,
    placed_at,
    shown_as_dictionary,
    with_entry,
)
from derive.claims.reading.refusals import MARK, Refusal

SILENT = (ast.Import, ast.ImportFrom, ast.Assert, ast.Delete, ast.Pass, ast.Global)
SAVED = {"saved_tensors", "saved_variables", "saved_values"}
SAVE, ASKED = "save_for_backward", "needs_input_grad"
ABOUT_CONTEXT = {"mark_dirty", "mark_non_differentiable", "set_materialize_grads"}
# Contexts that do not change the formula; autocast only changes the dtype.
AUTOCASTS = [f"{module}autocast" for module in ("torch.", "torch.amp.", "torch.cuda.amp.", "amp.")]
WITHOUT_MEANING = {
    *("torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled"),
    *("autocast", *AUTOCASTS, "torch.profiler.record_function", "np.errstate", "numpy.errstate"),
}

ADDED_AT = {f"{np}.add.at": ast.UAdd() for np in ("np", "numpy")}
ADDED_AT |= {f"{np}.subtract.at": ast.USub() for np in ("np", "numpy")}
ADDED_AT_USAGE = "write np.add.at(x, index, value)"


def spoken(lines: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The lines that compute something."""
    return [line for line in lines if not isinstance(line, SILENT) and not _is_silent(line)]


def _is_silent(line: ast.stmt) -> bool:
    """Whether it is a docstring, ``print(...)``, ``raise`` or ``if __name__ == "__main__":``."""
    if isinstance(line, ast.If):
        return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(line.test))
    value = line.value if isinstance(line, ast.Expr) else None
    if isinstance(value, ast.Call):
        is_super = ast.unparse(value.func).startswith("super(")
        return is_super or name_of(value.func) == "print"
    return isinstance(value, ast.Constant) and (isinstance(value.value, str) or value.value is ...)


@dataclass(frozen=True)
class Result:
    """The returned expression and its position."""

    node: ast.expr
    statement: ast.Return

    @property
    def parts(self) -> list[ast.expr]:
        return self.node.elts if isinstance(self.node, ast.Tuple) else [self.node]

    @property
    def entries(self) -> list[tuple[str, ast.expr]]:
        """The entries of returned dictionaries, each with the gradient that it is."""
        held = (part for part in self.parts if isinstance(part, ast.Dict))
        pairs = (pair for own in held for pair in zip(own.keys, own.values, strict=True))
        return [(name_of_entry("grads", key.value), value) for key, value in pairs]


class FunctionScope(ast.NodeTransformer):
    """The scope of a function. ``name`` prefixes its local names (``forward§mean``) if another
    function is read beside it. ``context``: names of its ``ctx`` or ``self``, whose attributes are
    read as names; ``held``: what the forward saved there, None if unknown; ``attributes``: those
    the forward assigned. ``parameters``: arguments of a backward; tuples and dictionaries among
    them are unpacked by names and keys. ``functions``: functions of the text, by name.
    """

    def __init__(
        self,
        name: str = "",
        context: Iterable[str] = (),
        *,
        saving: bool = False,
        held: Sequence[str] | None = None,
        parameters: Iterable[str] = (),
        functions: Mapping[str, Callee] | None = None,
    ):
        self.name, self.context, self.saving = name, {*context}, saving
        self.held, self.parameters = held, {*parameters}
        self.caches = {name for name in parameters if is_cache(name)}
        self.functions = dict(functions or {})
        self.calling: tuple[str, ...] = ()
        self.attributes: set[str] = set()
        self.saved: list[str] = []
        self.gradients: list[str] = []  # assigned to attributes: self.dW
        self.meant: dict[str, ast.expr] = {}  # local names and what they refer to
        self.assumed: dict[str, None] = {}  # remarks on arguments with a default
        self.before: list[ast.stmt] = []  # lines that must precede the current one
        self.result: Result | None = None

    def take(self, result: Result | None, caches: Iterable[str]) -> None:
        """Take what a forward returned after its output as the cache of this backward."""
        for cache in caches if result and len(result.parts) > 1 else ():
            self.meant[cache] = result.parts[-1]
            self.caches.discard(cache)
            self.parameters.discard(cache)

    def beside(self, callee: str, name: str) -> FunctionScope:
        """The scope of a function called from here."""
        inner = FunctionScope(name, self.context, functions=self.functions)
        inner.calling = (*self.calling, callee)
        inner.attributes, inner.held = self.attributes, self.held
        return inner

    def after(self, forward: FunctionScope) -> None:
        """Take over the attributes that a forward assigned."""
        self.held, self.attributes = forward.saved, forward.attributes
        own = [name for name in forward.meant if name.partition(".")[0] in forward.context]
        for name in own:
            for context in self.context:
                self.meant[f"{context}.{name.partition('.')[2]}"] = forward.meant[name]

    def options(self, function: ast.FunctionDef) -> None:
        """Take arguments that select a branch at their defaults."""
        for name, default in arguments_of(function).items():
            if isinstance(default, ast.Constant) and isinstance(default.value, (str, bool)):
                self.meant[name] = default

    def lines(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The lines up to the return statement, which becomes `result`."""
        made: list[ast.stmt] = []
        body = spoken(body)
        for i, line in enumerate(body):
            if isinstance(line, ast.Return):
                if body[i + 1 :]:
                    raise Refusal("lines after a return are never reached", "leave them out", line)
                return made + self._return(line)
            made += self._visited([line])
            if self.result is not None:  # in a taken branch
                break
        return made

    def _visited(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Visit lines of a loop, a branch or the function, each after the lines it needs."""
        made: list[ast.stmt] = []
        for line in spoken(body):
            outer, self.before = self.before, []
            new = self.visit(line)
            new = new if isinstance(new, list) else [new] if new is not None else []
            made += [*self.before, *new]
            self.before = outer
        return made

    def _return(self, line: ast.Return) -> list[ast.stmt]:
        outer, self.before = self.before, []
        if line.value is not None:
            value = self.visit(line.value)
            self.result = Result(value, ast.copy_location(ast.Return(value), line))
        made, self.before = self.before, outer
        return made

    # Statements

    def visit_With(self, node: ast.With):
        for item in node.items:
            call = item.context_expr if isinstance(item.context_expr, ast.Call) else None
            known = call is not None and ast.unparse(call.func) in WITHOUT_MEANING
            if not known or item.optional_vars:
                raise Refusal("this with is not supported", "leave it out", node)
        return self.lines(node.body)

    def visit_If(self, node: ast.If):
        """Take the branch for a gradient that is asked for, an argument that is given, or the
        default of an option.
        """
        asked = any(isinstance(n, ast.Attribute) and n.attr == ASKED for n in ast.walk(node.test))
        test = node.test
        is_none = isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        if asked or (is_none and isinstance(test.ops[0], ast.IsNot)):
            return self.lines(node.body)
        if is_none:
            return self.lines(node.orelse)
        decided = self._decided(test)
        if decided is not None:
            return self.lines(node.body if decided else node.orelse)
        node.body, node.orelse = self._visited(node.body), self._visited(node.orelse)
        node.test = self.visit(node.test)
        return node

    def _decided(self, test: ast.expr) -> bool | None:
        """Whether a condition on options holds; None for a condition on tensors."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._decided(test.operand)
            return None if inner is None else not inner
        sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
        values = [self.meant.get(name_of(side), side) for side in sides]
        constants = [v for v in values if isinstance(v, ast.Constant)]
        if len(constants) < len(values):
            texts = [v for v in constants if isinstance(v.value, str)]
            if texts:
                asked = ast.unparse(next(s for s in sides if not isinstance(s, ast.Constant)))
                raise Refusal(
                    f"the value of {asked} is not known",
                    f'set it in the first line of the function: {asked} = "{texts[0].value}"',
                    test,
                )
            return None
        for side in sides:
            if name_of(side) and name_of(side) in self.parameters:
                self.assumed[f"{ast.unparse(side)} = {self.meant[side.id].value!r}"] = None
        if len(values) == 1:
            return bool(values[0].value)
        same = values[0].value == values[1].value
        return {ast.Eq: same, ast.NotEq: not same}.get(type(test.ops[0]))

    def visit_FunctionDef(self, node: ast.FunctionDef):
        """Inline a nested function where it is called."""
        self.functions[node.name] = Callee(node, self)

    def visit_Expr(self, node: ast.Expr):
        call = node.value if isinstance(node.value, ast.Call) else None
        func = call.func if call and isinstance(call.func, ast.Attribute) else None
        if func is not None and ast.unparse(func) in ADDED_AT:
            return self.visit_Expr(_index_put(call, ADDED_AT[ast.unparse(func)], node))
        if func is not None and func.attr == "update" and self._place(func.value):
            shown = shown_as_dictionary(call.args[0]) if len(call.args) == 1 else None
            if shown is not None:
                return self._filled(self._place(func.value), shown, node)
        if func is None or name_of(func.value) not in self.context:
            return self.generic_visit(node)
        if func.attr in ABOUT_CONTEXT or (func.attr == SAVE and not self.saving):
            return None
        if func.attr != SAVE:
            return self.generic_visit(node)
        values = [self.visit(value) for value in call.args]
        self.saved = [f"saved{MARK}{i}" for i in range(len(values))]
        pairs = zip(self.saved, values, strict=True)
        return [
            placed_at(ast.Assign([ast.Name(name, ast.Store())], value), node)
            for name, value in pairs
        ]

    def visit_Assign(self, node: ast.Assign):
        target, value = node.targets[0], node.value
        if len(node.targets) == 1 and isinstance(target, ast.Tuple):
            meant = self.meant.get(self._place(value))
            if isinstance(meant, ast.Tuple) and len(meant.elts) == len(target.elts):
                return self._unpacked(target, meant, node)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
                left = [p for p in pairs if not is_none(p[1]) and not self._holds(*p)]
                if len(left) < len(pairs):
                    return self._visited([_tuple_assigned(left, node)] if left else [])
        if is_none(value):
            return None  # dx = dw = None: assigned later if asked for
        if all(self._holds(target, value) for target in node.targets):
            return None  # x, w = ctx.saved_tensors: known by name
        if isinstance(value, ast.Lambda) and name_of(target):
            self.functions[target.id] = Callee(value, self)
            return None
        shown = shown_as_dictionary(value)
        if shown is not None and self._place(target):
            self._keep(target, ast.Dict([], []))
            return self._filled(self._place(target), shown, node)
        value = self.visit(value)
        if self._is_kept(value) and all(map(self._place, node.targets)):
            for target in node.targets:
                self._keep(target, value)
            return None
        if len(node.targets) == 1 and (entry := self._entry(target)):
            return self._filled(entry[0], {entry[1]: value}, node, visited=True)
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
        body = [_accumulating(line) for line in self._visited(node.body)]
        node.body = body or [ast.copy_location(ast.Pass(), node)]
        return node

    # Dictionaries and tuples

    def _place(self, node: ast.expr) -> str:
        """The name or context attribute that holds a dictionary or tuple."""
        if isinstance(node, ast.Attribute) and name_of(node.value) in self.context:
            return f"{node.value.id}.{node.attr}"
        return name_of(node)

    def _holds(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether a value holds everything saved while its content is unknown: names unpacked from
        it, and parts of caches, are then known by name.
        """
        if isinstance(value, ast.Attribute) and name_of(value.value) in self.context:
            unknown = value.attr in SAVED and self.held is None
            place = f"{value.value.id}.{value.attr}"
            cache = is_cache(value.attr) and place not in self.meant
            holds = unknown or (cache and value.attr not in self.attributes)
        else:
            name = name_of(value)
            unpacked = isinstance(target, ast.Tuple) and name in self.parameters
            holds = name in self.caches or (unpacked and name not in self.meant)
        if holds:
            inner = {name_of(n) for n in ast.walk(target)}
            self.caches |= {name for name in inner if is_cache(name)}
        return holds

    def _unpacked(self, target: ast.Tuple, meant: ast.Tuple, node: ast.stmt) -> list[ast.stmt]:
        """Assign a known tuple part by part, under the outer names."""
        lines: list[ast.stmt] = []
        for own, part in zip(target.elts, meant.elts, strict=True):
            if isinstance(own, ast.Tuple) and isinstance(part, ast.Tuple):
                lines += self._unpacked(own, part, node)
            elif self._is_kept(part) and self._place(own):
                self._keep(own, part)
            elif name_of(own) != part.id or self.name:
                stored = self.visit(own)
                lines.append(placed_at(ast.Assign([stored], ast.Name(part.id, ast.Load())), node))
        return lines

    def _is_kept(self, value: ast.expr) -> bool:
        """Whether a value is a dictionary, an option, or a tuple of names."""
        if isinstance(value, ast.Constant):
            return isinstance(value.value, (str, bool))
        if isinstance(value, ast.Tuple):
            return all(name_of(v) or self._is_kept(v) for v in value.elts)
        return isinstance(value, ast.Dict)

    def _keep(self, target: ast.expr, value: ast.expr) -> None:
        self.meant[self._place(target)] = value
        if isinstance(target, ast.Attribute) and self.saving:
            self.attributes.add(target.attr)

    def _entry(self, node: ast.expr) -> tuple[str, str] | None:
        """The place and the key of ``cache["A"]``."""
        key = key_of(node.slice) if isinstance(node, ast.Subscript) else None
        place = self._place(node.value) if key is not None else ""
        return (place, key) if place else None

    def _filled(
        self, place: str, shown: Mapping[str, ast.expr], node: ast.stmt, visited: bool = False
    ) -> list[ast.stmt]:
        """Store entries in a dictionary: an entry that has a name keeps it, any other gets one."""
        lines: list[ast.stmt] = []
        held = self.meant.get(place)
        for key, value in shown.items():
            value = value if visited else self.visit(value)
            if not name_of(value) and not self._is_kept(value):
                own = name_of_entry(place, key)
                own = self._stored(own) if held is not None else own
                lines.append(placed_at(ast.Assign([ast.Name(own, ast.Store())], value), node))
                value = ast.Name(own, ast.Load())
            elif held is None and name_of_entry(place, key) != name_of(value):
                target = ast.Name(name_of_entry(place, key), ast.Store())
                lines.append(placed_at(ast.Assign([target], value), node))
            if isinstance(held, ast.Dict):
                with_entry(held, key, value)
            elif place.partition(".")[0] in self.context:
                self.gradients.append(name_of_entry(place, key))
        return lines

    # Names

    def named(self, name: str) -> ast.expr:
        return self.meant.get(name) or ast.Name(name, ast.Load())

    def _own(self, node: ast.Name) -> ast.Name:
        meant = self.meant.get(node.id)
        name = meant.id if isinstance(meant, ast.Name) else node.id
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def _stored(self, name: str) -> str:
        """A fresh local name for an assignment, so that dictionaries and tuples keep the
        old value.
        """
        own = self.name or ("backward" if name in self.parameters else "")
        stored = f"{own}{MARK}{name}" if own else name
        for held in [h for h in self.meant.values() if isinstance(h, (ast.Dict, ast.Tuple))]:
            for part in ast.walk(held):
                if isinstance(part, ast.Name) and part.id == stored:
                    kept = f"kept{len(self.before)}{MARK}{name}"
                    before = ast.Assign([ast.Name(kept, ast.Store())], ast.Name(stored, ast.Load()))
                    self.before.append(placed_at(before, self.line))
                    part.id = kept
        if own:
            self.meant[name] = ast.Name(stored, ast.Load())
        else:
            self.meant.pop(name, None)
        self.caches.discard(name)
        return stored

    def visit(self, node: ast.AST):
        if isinstance(node, ast.stmt):
            self.line = node
        return super().visit(node)

    def visit_Name(self, node: ast.Name):
        if not isinstance(node.ctx, ast.Store):
            meant = self.meant.get(node.id)
            return placed_at(copied(meant), node) if meant is not None else node
        return ast.copy_location(ast.Name(self._stored(node.id), ast.Store()), node)

    def visit_Attribute(self, node: ast.Attribute):
        context = name_of(node.value)
        if context not in self.context:
            return self.generic_visit(node)
        if node.attr in SAVED and self.held is not None:
            names = [ast.Name(name, ast.Load()) for name in self.held]
            return placed_at(ast.Tuple(names, ast.Load()), node)
        place = f"{context}.{node.attr}"
        if isinstance(node.ctx, ast.Store):
            if self.saving:
                self.attributes.add(node.attr)
            elif GRADIENT.fullmatch(node.attr):
                self.gradients.append(node.attr)
        elif place in self.meant:
            return placed_at(copied(self.meant[place]), node)
        known = self.saving or self.held is not None
        own = node.attr in self.attributes or (known and context != "self")
        name = place if own else node.attr
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Subscript(self, node: ast.Subscript):
        """``cache["mean"]`` becomes the stored value, or else the name its key says."""
        entry = self._entry(node)
        if entry is None:
            return self.generic_visit(node)
        place, key = entry
        held = self.meant.get(place)
        if isinstance(held, ast.Dict):
            found = entry_of(held, key)
            if found is None:
                raise Refusal(f"{place} has no {key!r} here", "assign it first", node)
            return placed_at(copied(found), node)
        if held is not None or not key.isidentifier():
            return self.generic_visit(node)
        name = name_of_entry(place, key) if isinstance(node.ctx, ast.Store) else key
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Call(self, node: ast.Call):
        """Inline a call of one of the text's functions; ``cache.get("x")`` is an entry."""
        func = node.func
        callee = self.functions.get(self._place(func))
        if callee is not None:
            return called(self, self._place(func), callee, node)
        if isinstance(func, ast.Attribute) and func.attr == "get" and node.args:
            entry = ast.Subscript(func.value, node.args[0], ast.Load())
            if self._entry(entry):
                return self.visit(placed_at(entry, node))
        return self.generic_visit(node)


def _index_put(call: ast.Call, sign: ast.unaryop, node: ast.stmt) -> ast.Expr:
    """``np.add.at(x, index, value)`` as torch's index_put_ with accumulate."""
    if len(call.args) != 3 or call.keywords:
        raise Refusal("add.at takes a tensor, an index and a value", ADDED_AT_USAGE, node)
    x, index, value = call.args
    index = index if isinstance(index, ast.Tuple) else ast.Tuple([index], ast.Load())
    method = ast.Attribute(x, "index_put_", ast.Load())
    more = [ast.keyword("accumulate", ast.Constant(True))]
    made = ast.Call(method, [index, ast.UnaryOp(sign, value)], more)
    return placed_at(ast.copy_location(ast.Expr(made), node), call)


def _tuple_assigned(pairs: Sequence[tuple[ast.expr, ast.expr]], node: ast.Assign) -> ast.Assign:
    """``a, b = c, d`` from the pairs of a longer line."""
    targets, values = map(list, zip(*pairs, strict=True))
    if len(pairs) == 1:
        return placed_at(ast.Assign(targets, *values), node)
    made = ast.Assign([ast.Tuple(targets, ast.Store())], ast.Tuple(values, ast.Load()))
    return placed_at(made, node)


def _without_itself(target: ast.expr, value: ast.Tuple, node: ast.Assign) -> ast.Assign | None:
    """``a, b = a, c`` as ``b = c``: drop self-assignments."""
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
