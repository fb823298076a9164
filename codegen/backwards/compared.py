"""Values that code compares its options with: read from its text, and from that of the functions
that it passes them to.

An option is an argument that is not a tensor. It is followed through assignments, attributes of
``ctx``, tuples and calls; values that it is compared with, looked up in, or matched against are
values that it may have. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

DEEPEST = 5  # functions that call each other
UNKNOWN = object()
MADE = ("frozenset", "set", "tuple", "list", "dict")  # of a literal
SAME = ("lower", "upper", "strip", "casefold", "str", "bool", "int", "float")  # of an option


@dataclass(frozen=True)
class Option:
    """Placeholder for the argument of that name."""

    name: str


@dataclass
class ComparedOptions:
    """For each option its values, its bounds in comparisons, and whether it is a truth value;
    ``torchs`` are values that only torch's own functions compare it with.
    """

    values: dict[str, list[Any]] = field(default_factory=dict)
    torchs: dict[str, list[Any]] = field(default_factory=dict)
    bounds: dict[str, list[Any]] = field(default_factory=dict)
    truths: set[str] = field(default_factory=set)

    def add(self, option: str, value: Any, to: dict[str, list[Any]] | None = None) -> None:
        known = (self.values if to is None else to).setdefault(option, [])
        plain = value is None or isinstance(value, (str, bool, int, float)) or is_member(value)
        if plain and not any(type(v) is type(value) and v == value for v in known):
            known.append(value)


def is_member(value: Any) -> bool:
    """True if a value is a member of an Enum."""
    return hasattr(type(value), "__members__")


def compared_in(function: type, names: Sequence[str], has_setup: bool) -> ComparedOptions:
    """Values compared with the arguments of a Function's forward, which are called ``names``."""
    found: ComparedOptions = ComparedOptions()
    kept: dict[str, Any] = {}
    arguments = tuple(Option(name) for name in names)
    before = () if has_setup else (UNKNOWN,)
    _walk(inspect.unwrap(function.forward), (*before, *arguments), {}, found, kept)
    if has_setup:
        _walk(inspect.unwrap(function.setup_context), (UNKNOWN, arguments), {}, found, kept)
    kept = {**{name: Option(name) for name in names}, **kept}
    _walk(inspect.unwrap(function.backward), (), {}, found, kept)
    return found


def _walk(
    function: Callable,
    args: Sequence,
    keywords: Mapping[str, Any],
    found: ComparedOptions,
    kept: dict[str, Any],
    depth: int = 0,
) -> None:
    """Read one Python function that is called with options."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        parameters = [*inspect.signature(function).parameters]
    except (OSError, TypeError, ValueError, SyntaxError, IndexError):
        return
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names = dict(zip(parameters, args, strict=False)) | dict(keywords)
        around = inspect.getclosurevars(function)
        known = {**vars(builtins), **function.__globals__, **around.nonlocals}
        if (function.__module__ or "").split(".")[0] == "torch":
            found = replace(found, values=found.torchs)
        reading = _Reading(found, kept, names, known, depth)
        for statement in tree.body:
            reading.visit(statement)


class _Reading(ast.NodeVisitor):
    """Reads one function: ``names`` maps its variables to options, or tuples or keys of them."""

    def __init__(self, found, kept, names, known, depth):
        self.found, self.kept, self.names = found, kept, names
        self.known, self.depth = known, depth

    # Values of expressions

    def of(self, e: ast.AST | None) -> Any:
        """An `Option`, a tuple of options, the keys of a dictionary as a list, or UNKNOWN."""
        if isinstance(e, ast.Name):
            return self.names.get(e.id, UNKNOWN)
        if isinstance(e, ast.Attribute):
            inner = self.of(e.value)
            return inner if isinstance(inner, Option) else self.kept.get(e.attr, UNKNOWN)
        if isinstance(e, (ast.Tuple, ast.List)):
            return tuple(self.of(part) for part in e.elts)
        if isinstance(e, ast.Dict):
            return [v for k in e.keys if (v := self.constant(k)) is not UNKNOWN]
        if isinstance(e, ast.NamedExpr):
            return self.of(e.value)
        if isinstance(e, (ast.BoolOp, ast.IfExp)):
            parts = e.values if isinstance(e, ast.BoolOp) else (e.body, e.orelse)
            return next((o for p in parts if isinstance(o := self.of(p), Option)), UNKNOWN)
        if isinstance(e, ast.Subscript):
            inner, at = self.of(e.value), self.constant(e.slice)
            is_place = isinstance(inner, tuple) and isinstance(at, int)
            return inner[at] if is_place and -len(inner) <= at < len(inner) else UNKNOWN
        return self._of_call(e) if isinstance(e, ast.Call) else UNKNOWN

    def _of_call(self, e: ast.Call) -> Any:
        """``option.lower()``, ``str(option)``."""
        name = getattr(e.func, "attr", getattr(e.func, "id", ""))
        if name not in SAME:
            return UNKNOWN
        inner = self.of(e.func.value if isinstance(e.func, ast.Attribute) else (*e.args, None)[0])
        return inner if isinstance(inner, Option) else UNKNOWN

    def constant(self, e: ast.AST | None) -> Any:
        """The value of a literal, or of a name that the file knows; nothing is called."""
        if isinstance(e, ast.Name):
            return UNKNOWN if e.id in self.names else self.known.get(e.id, UNKNOWN)
        if isinstance(e, ast.Attribute):
            of = self.constant(e.value)
            if hasattr(of, "__members__"):
                return of.__members__.get(e.attr, UNKNOWN)
            return UNKNOWN if of is UNKNOWN else inspect.getattr_static(of, e.attr, UNKNOWN)
        if isinstance(e, (ast.Tuple, ast.List, ast.Set)):
            return [v for part in e.elts if (v := self.constant(part)) is not UNKNOWN]
        if isinstance(e, ast.Call) and getattr(e.func, "id", "") in MADE and len(e.args) == 1:
            return self.constant(e.args[0])
        try:
            return ast.literal_eval(e) if e is not None else UNKNOWN
        except (ValueError, TypeError, SyntaxError):
            return UNKNOWN

    def values_in(self, e: ast.AST) -> Iterable[Any]:
        """The items of a tuple, the keys of a dictionary, the members of an Enum."""
        found = self.of(e)
        found = found if isinstance(found, list) else self.constant(e)
        if isinstance(found, (list, tuple, set, frozenset, Mapping)):
            return [*found]
        return [*found.__members__.values()] if hasattr(found, "__members__") else []

    # Uses of options

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.of(node.value)
        for target in node.targets:
            self._assign(target, value)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self.of(node.value))
            self.visit(node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign(node.target, self.of(node.value))
        self.visit(node.value)

    def _assign(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, tuple) and len(value) == len(target.elts):
                for part, own in zip(target.elts, value, strict=True):
                    self._assign(part, own)
        elif isinstance(target, ast.Attribute):
            self.kept[target.attr] = value
        elif isinstance(target, ast.Name):
            before = self.names.get(target.id)
            if value is not UNKNOWN or not isinstance(before, Option):  # it may be one on a branch
                self.names[target.id] = value

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for one, how, other in zip(sides, node.ops, sides[1:], strict=False):
            for a, b in ((one, other), (other, one)):
                self._compared(self.of(a), how, b)
        self.generic_visit(node)

    def _compared(self, option: Any, how: ast.cmpop, other: ast.AST) -> None:
        if isinstance(option, tuple):
            parts = other.elts if isinstance(other, ast.Tuple) else ()
            for own, part in zip(option, parts, strict=False):
                self._compared(own, how, part)
        if not isinstance(option, Option):
            return
        if isinstance(how, (ast.In, ast.NotIn)):
            for value in self.values_in(other):
                self.found.add(option.name, value)
        value = self.constant(other)
        if value is not UNKNOWN:
            is_bound = isinstance(how, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
            self.found.add(option.name, value, self.found.bounds if is_bound else None)

    def _truth(self, e: ast.AST) -> None:
        option = self.of(e)
        if isinstance(option, Option):
            self.found.truths.add(option.name)

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> None:
        self._truth(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While = visit_If

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._truth(node.operand)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for part in node.values:
            self._truth(part)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        option = self.of(node.slice)
        if isinstance(option, Option):
            found = self.values_in(node.value)
            is_table = isinstance(self.of(node.value), list) or isinstance(
                self.constant(node.value), Mapping
            )
            for value in found if is_table else range(len(found)):
                self.found.add(option.name, value)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        subject = self.of(node.subject)
        for case in node.cases:
            self._matched(subject, case.pattern)
        self.generic_visit(node)

    def _matched(self, subject: Any, pattern: ast.pattern) -> None:
        if isinstance(pattern, ast.MatchOr):
            for one in pattern.patterns:
                self._matched(subject, one)
        elif isinstance(pattern, ast.MatchSequence) and isinstance(subject, tuple):
            for own, one in zip(subject, pattern.patterns, strict=False):
                self._matched(own, one)
        elif isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
            self._matched(subject, pattern.pattern)
        elif isinstance(subject, Option) and isinstance(pattern, ast.MatchSingleton):
            self.found.add(subject.name, pattern.value)
        elif isinstance(subject, Option) and isinstance(pattern, ast.MatchValue):
            value = self.constant(pattern.value)
            if value is not UNKNOWN:
                self.found.add(subject.name, value)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            option = self.of(node.args[0])
            if isinstance(option, Option):
                for value in self.values_in(node.func.value):
                    self.found.add(option.name, value)
        args = [self.of(a) for a in node.args]
        keywords = {k.arg: self.of(k.value) for k in node.keywords if k.arg}
        if self.depth >= DEEPEST or all(a is UNKNOWN for a in (*args, *keywords.values())):
            return
        callee = self.constant(node.func)
        callee = getattr(callee, "__func__", callee)
        callee = inspect.unwrap(callee) if callable(callee) else callee
        if inspect.isfunction(callee):
            _walk(callee, args, keywords, self.found, dict(self.kept), self.depth + 1)
