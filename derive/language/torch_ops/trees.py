"""Expressions of the notation as typed: small trees that know their axes.

SymPy would reorder sums and expand brackets. These trees keep the structure of the user's code, so
that the imported file reads like it (``text.py``); as mathematics they become the nodes of
``derive.language`` (``nodes.py``). Axes are strings here.

    >>> x = tensor("x", ["N", "C"])
    >>> mean = quotient(total(x, ["C"]), number("C"))
    >>> sorted(difference(x, mean).free)
    ['C', 'N']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy
from sympy import Expr

from derive.language.torch_ops.numbers import exact

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
REDUCTIONS = ("sum", "max")  # kinds that remove axes
RESHAPINGS = ("flatten", "unflatten")  # (operand, axes, resulting axes)


@dataclass(frozen=True)
class Tree:
    """``kind`` determines ``args``: trees, names, axes; ``free`` are the axes along which it
    varies.
    """

    kind: str
    args: tuple
    free: frozenset[str] = frozenset()

    def __add__(self, other):
        return sum_of(self, as_tree(other))

    def __radd__(self, other):
        return sum_of(as_tree(other), self)

    def __sub__(self, other):
        return difference(self, as_tree(other))

    def __rsub__(self, other):
        return difference(as_tree(other), self)

    def __mul__(self, other):
        return product(self, as_tree(other))

    def __rmul__(self, other):
        return product(as_tree(other), self)

    def __truediv__(self, other):
        return quotient(self, as_tree(other))

    def __rtruediv__(self, other):
        return quotient(as_tree(other), self)

    def __pow__(self, other):
        return power(self, as_tree(other))

    def __rpow__(self, other):
        return power(as_tree(other), self)

    def __neg__(self):
        return minus(self)

    def __lt__(self, other):
        return compared("<", self, as_tree(other))

    def __le__(self, other):
        return compared("<=", self, as_tree(other))

    def __gt__(self, other):
        return compared(">", self, as_tree(other))

    def __ge__(self, other):
        return compared(">=", self, as_tree(other))


def as_tree(value) -> Tree:
    return value if isinstance(value, Tree) else number(value)


def node(kind: str, *args) -> Tree:
    return Tree(kind, args, frozenset().union(*(a.free for a in args if isinstance(a, Tree))))


def number(value: float | Expr | str) -> Tree:
    """A number or a size: a SymPy expression over axis names."""
    if isinstance(value, str):
        return Tree("number", (sympy.Symbol(value),))
    made = getattr(value, "tree", None)  # a float kept as a named scalar
    if made is not None:
        return made
    return Tree("number", (value if isinstance(value, Expr) else exact(value),))


ZERO, ONE, TWO = number(0), number(1), number(2)
MINUS_INFINITY = Tree("number", (sympy.S.NegativeInfinity,))
TRUE, FALSE = Tree("truth", (True,)), Tree("truth", (False,))


def tensor(name: str, axes: Iterable[str]) -> Tree:
    return Tree("tensor", (name,), frozenset(axes))


def value_of(e: Tree) -> Expr | None:
    """The value of a number tree; None for any other."""
    return e.args[0] if e.kind == "number" else None


def is_number(e: Tree, value: int) -> bool:
    return value_of(e) == value


def sum_of(a: Tree, b: Tree) -> Tree:
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if a.kind == b.kind == "number":
        return number(a.args[0] + b.args[0])
    if b.kind == "minus" or _is_negative(b):
        return difference(a, minus(b))
    return node("sum_of", a, b)


def difference(a: Tree, b: Tree) -> Tree:
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return minus(b)
    if a.kind == b.kind == "number":
        return number(a.args[0] - b.args[0])
    if b.kind == "minus" or _is_negative(b):
        return sum_of(a, minus(b))
    return minus(sum_of(a.args[0], b)) if a.kind == "minus" else node("difference", a, b)


def _is_negative(e: Tree) -> bool:
    return e.kind == "number" and e.args[0].could_extract_minus_sign()


def minus(a: Tree) -> Tree:
    if a.kind == "number":
        return number(-a.args[0])
    return a.args[0] if a.kind == "minus" else node("minus", a)


def product(a: Tree, b: Tree) -> Tree:
    if is_number(a, 0) or is_number(b, 0):
        return ZERO
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    if a.kind == b.kind == "number":
        return number(a.args[0] * b.args[0])
    if is_number(a, -1) or is_number(b, -1):
        return minus(b if is_number(a, -1) else a)
    if a.kind == "minus":
        return minus(product(a.args[0], b))
    if b.kind == "minus":
        return minus(product(a, b.args[0]))
    if b.kind == "quotient" and b.args[0] == ONE:
        return quotient(a, b.args[1])
    for factor, rest in ((a, b), (b, a)):
        condition = condition_of(factor) if factor.kind == "choice" else None
        if condition is not None:
            return choice((rest, condition), otherwise=ZERO)
    named = b.kind == "tensor" and not b.free and bool(a.free)  # a scalar goes first, like a number
    return node("product", b, a) if named or b.kind == "number" else node("product", a, b)


def quotient(a: Tree, b: Tree) -> Tree:
    if is_number(b, 1):
        return a
    if is_number(a, 0):
        return ZERO
    if a.kind == b.kind == "number" and not is_number(b, 0):
        return number(a.args[0] / b.args[0])
    if a.kind == "minus":
        return minus(quotient(a.args[0], b))
    return node("quotient", a, b)


def power(a: Tree, b: Tree) -> Tree:
    if is_number(b, 1):
        return a
    if b.kind == "number" and b.args[0] == sympy.Rational(1, 2):
        return call("sqrt", a)
    return node("power", a, b)


def square(a: Tree) -> Tree:
    return power(a, TWO)


def call(function: str, *args: Tree) -> Tree:
    """A call of a SymPy function."""
    return node("call", function, *args)


def compared(relation: str, a: Tree, b: Tree) -> Tree:
    return node("compared", relation, a, b)


def opposite(condition: Tree) -> Tree:
    if condition.kind == "truth":
        return FALSE if condition.args[0] else TRUE
    if condition.kind == "compared":
        return compared(OPPOSITE[condition.args[0]], *condition.args[1:])
    return condition.args[0] if condition.kind == "not" else node("not", condition)


def joined(kind: str, a: Tree, b: Tree) -> Tree:
    """``kind`` is "and" or "or"."""
    decides = FALSE if kind == "and" else TRUE
    if decides in (a, b):
        return decides
    if a.kind == "truth":
        return b
    return a if b.kind == "truth" else node(kind, a, b)


def choice(*pairs: tuple[Tree, Tree], otherwise: Tree) -> Tree:
    """The first value whose condition holds: (value, condition), ..."""
    kept = [(v, c) for v, c in pairs if c != FALSE]
    for i, (value, condition) in enumerate(kept):
        if condition == TRUE:
            kept, otherwise = kept[:i], value
            break
    return node("choice", *(x for pair in kept for x in pair), otherwise) if kept else otherwise


def pairs_of(e: Tree) -> tuple[list[tuple[Tree, Tree]], Tree]:
    """The (value, condition) pairs of a choice, and its last value."""
    return list(zip(e.args[:-1:2], e.args[1::2], strict=True)), e.args[-1]


def indicator(condition: Tree) -> Tree:
    """1 where the condition holds, else 0."""
    if condition.kind == "compared" and condition.args[1].kind == "kept":
        counts = condition.args[1]
        return counts if condition.args[0] == "!=" else difference(ONE, counts)
    return choice((ONE, condition), otherwise=ZERO)


def condition_of(e: Tree) -> Tree | None:
    """The condition of which ``e`` is the indicator, or None."""
    if e in (ZERO, ONE):
        return TRUE if e == ONE else FALSE
    if e.kind == "kept":
        return compared("!=", e, ZERO)
    if e.kind != "choice" or len(e.args) != 3:
        return None
    yes, condition, no = e.args
    if (yes, no) == (ONE, ZERO):
        return condition
    return opposite(condition) if (yes, no) == (ZERO, ONE) else None


def total(e: Tree, axes: Iterable[str]) -> Tree:
    """The sum along those axes that ``e`` has."""
    axes = tuple(axes)
    if not axes:
        return e
    if e.kind == "minus":
        return minus(total(e.args[0], axes))
    operand, before = e.args if e.kind == "sum" else (e, ())
    return Tree("sum", (operand, before + axes), e.free - set(axes))


def largest(e: Tree, axis: str) -> Tree:
    return Tree("max", (e, (axis,)), e.free - {axis})


def one_hot(label: Tree, axis: str) -> Tree:
    return Tree("one hot", (label, axis), label.free | {axis})


def kept(label: Tree) -> Tree:
    return Tree("kept", (label,), label.free)


def position(axis: str) -> Tree:
    return Tree("position", (axis,), frozenset([axis]))


def flatten(e: Tree, axes: Iterable[str], into: str) -> Tree:
    axes = tuple(axes)
    return Tree("flatten", (e, axes, (into,)), (e.free - set(axes)) | {into})


def unflatten(e: Tree, axis: str, into: Iterable[str]) -> Tree:
    into = tuple(into)
    return Tree("unflatten", (e, (axis,), into), (e.free - {axis}) | set(into))


def broadcast(e: Tree, axes: Iterable[str]) -> Tree:
    axes = tuple(a for a in axes if a not in e.free)
    return Tree("broadcast", (e, axes), e.free | set(axes)) if axes else e


def renamed(e: Tree, to: Mapping[str, str]) -> Tree:
    """Rename free axes simultaneously, down to the tensors."""
    to = {old: new for old, new in to.items() if old in e.free and old != new}
    if not to:
        return e
    if e.kind == "tensor":
        return _rename_node(e, to)
    if e.kind == "rename":
        inner, before = e.args[0], dict(e.args[1])
        whole = {a: to.get(before.get(a, a), before.get(a, a)) for a in inner.free}
        whole = {a: b for a, b in whole.items() if a != b}
        return _rename_node(inner, whole) if whole else inner
    if e.kind == "position":
        return position(to.get(e.args[0], e.args[0]))
    if e.kind == "one hot":
        return one_hot(renamed(e.args[0], to), to.get(e.args[1], e.args[1]))
    if e.kind in (*REDUCTIONS, *RESHAPINGS, "broadcast", "at", "scan"):
        return _renamed_inside(e, to)
    return node(e.kind, *(renamed(a, to) if isinstance(a, Tree) else a for a in e.args))


def counts_of(e: Tree) -> Counter[str]:
    """How often each tensor occurs."""
    if e.kind == "tensor":
        return Counter([e.args[0]])
    return sum((counts_of(a) for a in e.args if isinstance(a, Tree)), Counter())


def depth_of(e: Tree) -> int:
    """The depth of the tree."""
    return 1 + max((depth_of(a) for a in e.args if isinstance(a, Tree)), default=0)


def calls_in(e: Tree) -> set[str]:
    """The SymPy functions and constants named in it."""
    if e.kind == "number":  # sqrt(2*pi)
        named = {*e.args[0].atoms(sympy.NumberSymbol), *e.args[0].atoms(sympy.Function)}
        roots = {"sqrt"} if e.args[0].atoms(sympy.Pow) else set()
        return roots | {str(getattr(n, "func", n) if n.args else n) for n in named}
    own = {e.args[0]} if e.kind == "call" else set()
    return own.union(*(calls_in(a) for a in e.args if isinstance(a, Tree)))


def with_names(e: Tree, names: Mapping[str, str]) -> Tree:
    """The same tree with tensors renamed."""
    if e.kind == "tensor":
        return replace(e, args=(names.get(e.args[0], e.args[0]),))
    args = tuple(with_names(a, names) if isinstance(a, Tree) else a for a in e.args)
    return replace(e, args=args)


def tensors_in(e: Tree) -> set[str]:
    """The names of the tensors in it."""
    return set(counts_of(e))


def _renamed_inside(e: Tree, to: Mapping[str, str]) -> Tree:
    """Rename inside a node that binds axes; if a new name would be captured, leave the rename
    outside.
    """
    if e.kind == "scan":
        word, operand, (axis,), options = e.args
        own = (word, renamed(operand, to), (to.get(axis, axis),), options)
        return Tree("scan", own, frozenset(to.get(a, a) for a in e.free))
    operand, *own = e.args
    bound = set() if e.kind == "broadcast" else set(own[0])
    if bound & set(to.values()):
        return _rename_node(e, to)
    inner = renamed(operand, {a: b for a, b in to.items() if a not in bound})
    if e.kind == "at":
        own[1] = tuple((to.get(a, a), c) for a, c in own[1])
    elif e.kind != "broadcast":
        own[1:] = [tuple(to.get(a, a) for a in axes) for axes in own[1:]]
    else:
        own = [tuple(to.get(a, a) for a in own[0])]
    return Tree(e.kind, (inner, *own), frozenset(to.get(a, a) for a in e.free))


def _rename_node(e: Tree, to: Mapping[str, str]) -> Tree:
    return Tree("rename", (e, tuple(sorted(to.items()))), frozenset(to.get(a, a) for a in e.free))


def met_in(tree: Tree, name: str, inside: bool = False) -> tuple[bool, bool]:
    """Whether a tensor occurs in conditions, and elsewhere."""
    if tree.kind == "tensor":
        return tree.args[0] == name and inside, tree.args[0] == name and not inside
    inside = inside or tree.kind == "compared"
    found = [met_in(a, name, inside) for a in tree.args if isinstance(a, Tree)]
    return any(c for c, _ in found), any(v for _, v in found)
