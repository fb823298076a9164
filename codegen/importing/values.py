"""Values of graph nodes: an expression, and the axes of each dimension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sympy import Expr

from derive.language.errors import QuestionError
from derive.language.torch_ops.trees import Tree, tensors_in

# () has size 1; ("N",) is an axis; ("B", "T") are two that are still to be flattened.
Dim = tuple[str, ...]
Dims = tuple[Dim, ...]

NUMBER, CONDITION, LABEL, ARGMAX = "number", "condition", "label", "arg max"


class Refused(QuestionError):
    """An operation that the notation cannot express or that is not supported."""


class OutsideAxis:
    """A captured tensor; any use of it is refused."""

    def __getattr__(self, name: str):
        raise Refused(
            "a tensor created outside the function is used",
            "pass it as an argument, with its axes",
        )


OUTSIDE = OutsideAxis()


@dataclass(frozen=True)
class WrittenPart:
    """The entries of dimension ``i`` from ``low`` up to ``high`` in steps."""

    i: int
    low: Expr
    high: Expr
    step: int = 1


@dataclass(frozen=True)
class TreeValue:
    """``kind``: a number, a condition, a label (integers that index an axis), or the index of the
    largest entry ``over`` an axis, whose tree is the one-hot. ``parts``: the written parts of a
    tensor that began empty, None if complete.
    """

    tree: Tree
    dims: Dims = ()
    kind: str = NUMBER
    over: str = ""
    parts: tuple[WrittenPart, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def axes(self) -> list[str]:
        return [axis for dim in self.dims for axis in dim]

    def along(self, dims: Iterable[Dim]) -> TreeValue:
        return replace(self, dims=tuple(dims))

    def of(self, tree: Tree) -> TreeValue:
        return replace(self, tree=tree)

    def with_dim(self, i: int, dim: Dim) -> TreeValue:
        return self.along(dim if j == i else d for j, d in enumerate(self.dims))

    def without(self, i: int) -> TreeValue:
        return self.along(d for j, d in enumerate(self.dims) if j != i)


@dataclass(frozen=True)
class TracedStatement:
    """A line of the forward, and the user's line it came from."""

    name: str
    tree: Tree
    dims: Dims
    line: int = 0


@dataclass(frozen=True)
class Declared:
    """An input of the forward; ``ignored`` is its ignore_index, if any."""

    name: str
    dims: Dims
    kind: str
    ignored: int | None = None


def needed_of(statements: list[TracedStatement], names: Iterable[str]) -> list[TracedStatement]:
    """The statements that these names depend on."""
    wanted, found = {*names}, []
    for statement in reversed(statements):
        if statement.name in wanted:
            found.append(statement)
            wanted |= tensors_in(statement.tree)
    return found[::-1]
