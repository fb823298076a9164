"""Read one expression of a syntax tree through a whitelist of node types.

Names are looked up in `TextNames` and the operation tables only, never in Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from sympy import Eq, Expr, Ge, Gt, Le, Lt, Ne, oo, pi

from derive.claims.reading.blocks import Pieces, joined
from derive.claims.reading.broadcasting import multiplied, negated, pointwise
from derive.claims.reading.indexing import indexed
from derive.claims.reading.loops import same_place
from derive.claims.reading.names import TextNames, exact
from derive.claims.reading.notation import CALLS, Notation
from derive.claims.reading.operations import functions as arithmetic
from derive.claims.reading.operations.choosing import chosen, related
from derive.claims.reading.operations.entries import Extremes, Operation
from derive.claims.reading.operations.functions import SYMPYS
from derive.claims.reading.operations.numpys import numpys
from derive.claims.reading.operations.picking import compared_to_ignored, equal_to_count
from derive.claims.reading.operations.products import matmul
from derive.claims.reading.operations.shaping import floor_divided
from derive.claims.reading.operations.vocabulary import (
    BUILTINS,
    DTYPES,
    FILLS,
    MODULES,
    NUMPY,
    OF_TENSORS,
    OPERATIONS,
    RELATIONS,
    allowed,
    attribute,
    filled_with,
    meant,
    operation,
)
from derive.claims.reading.refusals import Refusal, Unplaced, printable
from derive.claims.reading.source import Source
from derive.claims.reading.unsupported import FOREIGN, NO_OPERATORS
from derive.claims.reading.values import (
    BOOL,
    COUNT,
    IGNORED,
    INDEX,
    MASK,
    NUMBER,
    PLACE,
    Space,
    TextValue,
    infinity,
)
from derive.language.torch_ops.refused import refused

COMPARISONS = {"eq": Eq, "ne": Ne, "lt": Lt, "le": Le, "gt": Gt, "ge": Ge}  # methods
ENDS = ("min", "max")  # fields of torch.aminmax's result


class ExpressionReader:
    """Reads expressions. ``local`` returns the text's own value of a name, or None; ``write``
    performs in-place operations.
    """

    def __init__(
        self,
        source: Source,
        space: Space,
        names: TextNames,
        local: Callable[[str], Any],
        write: Callable[[ast.expr, TextValue, TextValue], TextValue],
    ):
        self.source, self.space, self.names = source, space, names
        self.local, self.write = local, write
        self.notation = Notation(space, names, self.read, local)

    def read(self, node: ast.AST):
        """The value of a node: a `TextValue`, or the Python argument it denotes."""
        try:
            reader = READERS.get(type(node))
            if reader is None:
                problem, remedy = FOREIGN.get(type(node), ("this is not supported", ""))
                raise Refusal(problem, remedy or "write one expression in tensors")
            return reader(self, node)
        except Unplaced as error:
            error.node = error.node or node
            raise

    def value(self, node: ast.AST) -> TextValue:
        """The value of a node that must be a tensor or a number."""
        value = self.read(node)
        if isinstance(value, TextValue):
            return value
        if isinstance(value, Extremes):
            raise Refusal("this is a pair", "append .values or .indices", node)
        raise Refusal("this is neither a tensor nor a number", "write one expression", node)

    # Leaves

    def _constant(self, node: ast.Constant):
        if node.value is None or node.value is Ellipsis or isinstance(node.value, (bool, str)):
            return node.value
        if isinstance(node.value, (int, float)):
            return exact(self.source.written(node))
        raise Refusal("this is not a supported number", "numbers are real: 2, 0.5, 1e-5")

    def _name(self, node: ast.Name):
        found = self.local(node.id)
        if found is None:
            found = self.names.value(node.id, self.space)
        if found is not None:
            return found
        if node.id in MODULES or node.id == "nn":
            raise Refusal(f"{node.id} is a module", "write torch.exp(x)")
        if node.id in OPERATIONS or node.id in CALLS:
            raise Refusal(f"{node.id} is a function", f"call it, or say --let {node.id}=ours")
        raise Refusal(f"there is no {printable(node.id)}", self.names.remedy(node.id))

    def _tuple(self, node: ast.Tuple | ast.List) -> tuple:
        return tuple(self._all(node.elts))

    def _all(self, nodes: list[ast.expr]) -> list:
        """The values of a sequence, with starred tuples unpacked."""
        found: list = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.read(node))
                continue
            items = self.read(node.value)
            if not isinstance(items, tuple):
                raise Refusal("* must be followed by a tuple", "write the values out", node)
            found += items
        return found

    # Arithmetic

    def _binary(self, node: ast.BinOp) -> TextValue:
        operate = BINARY.get(type(node.op))
        if operate is None:
            problem, remedy = NO_OPERATORS[type(node.op)]
            raise Refusal(problem, remedy)
        return operate(self.space, self.value(node.left), self.value(node.right))

    def _unary(self, node: ast.UnaryOp) -> TextValue:
        x = self.value(node.operand)
        if isinstance(node.op, ast.UAdd) and x.kind != MASK:
            return x
        if isinstance(node.op, ast.USub) and x.expression is oo:
            return infinity(-1)
        if isinstance(node.op, ast.USub) and x.kind != MASK:
            return negated(self.space, x)
        if isinstance(node.op, ast.Invert) and x.kind == MASK:
            return pointwise(self.space, lambda e: 1 - e, [x], dtype=BOOL)
        raise Refusal("this sign is not supported here", "-x of numbers, ~(x > 0) of comparisons")

    def _compare(self, node: ast.Compare) -> TextValue:
        if len(node.ops) != 1 or type(node.ops[0]) not in RELATIONS:
            raise Refusal("only one comparison at a time is supported", "write (x > 0) * (x < 1)")
        relation = RELATIONS[type(node.ops[0])]
        return self._compared(relation, self.value(node.left), self.value(node.comparators[0]))

    def _compared(self, relation: Callable, a: TextValue, b: TextValue) -> TextValue:
        if {a.kind, b.kind} == {INDEX, COUNT} and relation is Eq:
            return equal_to_count(self.space, *((a, b) if a.kind == INDEX else (b, a)))
        if INDEX in (a.kind, b.kind) and relation in (Eq, Ne):
            index, other = (a, b) if a.kind == INDEX else (b, a)
            if other.kind == IGNORED or other.kind == NUMBER:
                return compared_to_ignored(self.space, index, other, relation is Eq)
        if {a.kind, b.kind} == {INDEX, PLACE} and relation in (Eq, Ne):
            same = same_place(*((a, b) if a.kind == INDEX else (b, a)))
            e = same if relation is Eq else 1 - same
            return self.space.made(e, max(a.dims, b.dims), a.extent, kind=MASK)

        def build(x: Expr, y: Expr) -> Expr:
            return chosen((1, related(relation, x, y)), (0, True))

        return pointwise(self.space, build, [a, b], dtype=BOOL)

    # Attributes

    def module(self, node: ast.AST) -> str | None:
        """The module that a dotted name stands for."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or self.local(node.id) is not None:
            return None
        if self.names.value(node.id, self.space) is not None:
            return None
        path = ".".join([node.id, *reversed(parts)])
        return MODULES.get(path)

    def _attribute(self, node: ast.Attribute):
        module = self.module(node.value)
        if module in ("torch", "math", NUMPY) and node.attr == "pi":
            return TextValue(pi, kind=NUMBER)
        if module in ("torch", "math", NUMPY) and node.attr == "inf":
            self.space.infinite = True
            return infinity()
        if module == NUMPY and node.attr == "newaxis":
            return None
        if module in ("torch", NUMPY) and node.attr in DTYPES:
            return DTYPES[node.attr]
        if module is not None:
            operation(module, node.attr)
            raise Refusal(f"{printable(node.attr)} is a function", "call it with its argument")
        x = self.read(node.value)
        if isinstance(x, Extremes) and node.attr in ("values", "indices"):
            return x.values if node.attr == "values" else x.indices
        if isinstance(x, tuple) and len(x) == len(ENDS) and node.attr in ENDS:
            return x[ENDS.index(node.attr)]
        found = attribute(self.space, node.attr)
        if not found or not isinstance(x, TextValue) or x.kind == NUMBER:
            raise self._no_attribute(node, x)
        return found(self.space, x)

    def _no_attribute(self, node: ast.Attribute, x) -> Refusal:
        name = printable(node.attr)
        if node.attr.startswith("_"):
            problem, remedy = f"{name} is not supported", "names that begin with _ are private"
        elif node.attr == "grad":
            problem, remedy = f"{name} is not supported", "the gradient of x is called dx"
        elif isinstance(x, TextValue) and x.kind == NUMBER:
            problem, remedy = f"a number has no {name}", "write it on a tensor"
        elif isinstance(x, Extremes):
            problem, remedy = f"a pair has no {name}", "write .values or .indices first"
        elif node.attr in OPERATIONS and "method" in OPERATIONS[node.attr].forms:
            problem, remedy = f"{name} is a function", f"call it: .{name}(...)"
        else:
            problem, remedy = f"there is no .{name}", allowed(node.attr, "method")
            if node.attr in refused:
                why, remedy = refused[node.attr]
                problem = f".{name}: {why}"
        return Refusal(problem, remedy, node)

    # Calls

    def _call(self, node: ast.Call):
        func = node.func
        if isinstance(func, ast.Name):
            return self._bare_call(node, func.id)
        if not isinstance(func, ast.Attribute):
            if isinstance(func, (ast.BinOp, ast.Call, ast.Constant)):
                raise Refusal("two values are next to each other", "is a * missing?")
            raise Refusal("this cannot be called", "call torch's functions: torch.exp(x), x.sum(0)")
        module = self.module(func.value)
        if module is not None:
            return self._written_out(operation(module, func.attr, func), func.attr, node)
        x = self.read(func.value)
        if not isinstance(x, TextValue) or x.kind == NUMBER:
            raise self._no_attribute(func, x)
        return self.method(node, x)

    def method(self, node: ast.Call, x: TextValue):
        """The result of a method called on ``x``."""
        func = node.func
        name = func.attr
        written = name.endswith("_") and name not in OPERATIONS
        if written and name in FILLS:
            if len(node.args) != FILLS[name] or node.keywords:
                raise Refusal(f"{name} takes other arguments", "write .zero_(), .fill_(2)")
            new = filled_with(self.space, x, *map(self.value, node.args))
            return self.write(func.value, x, new)
        if name in COMPARISONS and len(node.args) == 1 and not node.keywords:
            return self._compared(COMPARISONS[name], x, self.value(node.args[0]))
        found = numpys.get(name) if self.space.numpy else None
        own = name.removesuffix("_") if written else name
        found = found or OF_TENSORS.get(own) or OPERATIONS.get(own)
        if found is None or "method" not in found.forms:
            raise self._no_attribute(func, x)
        result = self._applied(found, name, [x], node)
        return self.write(func.value, x, result) if written else result

    def _written_out(self, found: Operation, name: str, node: ast.Call):
        """``torch.add(x, y, out=z)``"""
        out = next((keyword for keyword in node.keywords if keyword.arg == "out"), None)
        if out is None:
            return self._applied(found, name, [], node)
        rest = [keyword for keyword in node.keywords if keyword is not out]
        call = ast.copy_location(ast.Call(node.func, node.args, rest), node)
        return self.write(out.value, self.value(out.value), self._applied(found, name, [], call))

    def _applied(self, found: Operation, name: str, first: list, node: ast.Call):
        if any(keyword.arg is None for keyword in node.keywords):
            raise Refusal("** in front of an argument is not supported", "write the arguments out")
        arguments = [*first, *self._all(node.args)]
        keywords = {keyword.arg: self.read(keyword.value) for keyword in node.keywords}
        if arguments and isinstance(arguments[0], Pieces):
            (pieces, *dim), axis = arguments, keywords.get("dim", keywords.get("axis"))
            return joined(self.space, name, pieces, *dim, *([axis] * (axis is not None)))
        if found.lacks_dim(arguments, keywords):
            call = ", ".join([*map(ast.unparse, node.args), "1"])
            raise Refusal("the dimension is missing", f"name it: {ast.unparse(node.func)}({call})")
        return found.apply(name, self.space, arguments, keywords)

    def _bare_call(self, node: ast.Call, name: str):
        if self.local(name) is not None or self.names.value(name, self.space) is not None:
            raise Refusal(f"{printable(name)} is not a function", "is a * missing?")
        if name in CALLS:
            return self.notation.call(node)
        if name.lower() in COMPARISONS and len(node.args) == 2 and not node.keywords:  # SymPy's
            return self._compared(COMPARISONS[name.lower()], *map(self.value, node.args))
        if name in BUILTINS:
            return self._builtin(node, name)
        found = OPERATIONS.get(SYMPYS.get(name, name))
        if found is not None and "F" in found.forms:
            return self._applied(found, name, [], node)
        if found is not None:
            raise Refusal(f"{name} is a Python built-in here", f"write torch.{name}(...)")
        known = sorted([*CALLS, *BUILTINS, *(n for n in OPERATIONS if "F" in OPERATIONS[n].forms)])
        raise Refusal(f"there is no function {printable(name)}", meant(name, known))

    def _builtin(self, node: ast.Call, name: str) -> TextValue:
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise Refusal(f"{name} takes one argument here", f"write {BUILTINS[name].usage}")
        return BUILTINS[name].apply(self.space, self.read(node.args[0]))

    def _subscript(self, node: ast.Subscript):
        return indexed(self, node)


def _both(space: Space, a: TextValue, b: TextValue) -> TextValue:
    return pointwise(space, lambda x, y: x * y, masks(a, b), dtype=BOOL)


def _either(space: Space, a: TextValue, b: TextValue) -> TextValue:
    return pointwise(space, lambda x, y: x + y - x * y, masks(a, b), dtype=BOOL)


def masks(*values: TextValue) -> list[TextValue]:
    if any(value.kind != MASK for value in values):
        raise Refusal("& and | take comparisons", "write (x > 0) & (x < 1)")
    return list(values)


BINARY: Mapping[type, Callable] = {
    ast.Add: arithmetic.plus,
    ast.Sub: arithmetic.subtracted,
    ast.Mult: multiplied,
    ast.Div: arithmetic.divided,
    ast.Pow: arithmetic.power,
    ast.FloorDiv: floor_divided,
    ast.MatMult: matmul,
    ast.BitAnd: _both,
    ast.BitOr: _either,
}
READERS: Mapping[type, Callable] = {
    ast.Constant: ExpressionReader._constant,
    ast.Name: ExpressionReader._name,
    ast.Tuple: ExpressionReader._tuple,
    ast.List: ExpressionReader._tuple,
    ast.BinOp: ExpressionReader._binary,
    ast.UnaryOp: ExpressionReader._unary,
    ast.Compare: ExpressionReader._compare,
    ast.Attribute: ExpressionReader._attribute,
    ast.Call: ExpressionReader._call,
    ast.Subscript: ExpressionReader._subscript,
}
