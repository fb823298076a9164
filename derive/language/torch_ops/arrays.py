"""What rows are made of. `derive.claims.reading.arrays` has it over SymPy's expressions with
dimensions by position, `codegen.importing.reader` over trees with named axes that keep the user's
spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from sympy import Expr

from derive.language.torch_ops.trees import Tree

Array = Any  # of the front end: a row hands it on, and asks for .rank alone


class Arrays(Protocol):
    def each(self, formula: Callable[..., Tree], *values: Array) -> Array:
        """A formula of the entries of values that broadcast; conditions come as conditions."""

    def is_condition(self, x: Array) -> bool: ...

    def chosen(self, condition: Array, yes: Array, no: Array) -> Array:
        """``yes`` where the condition holds, else ``no``."""

    def is_zero(self, x: Array) -> bool:
        """Of a number."""

    def let(self, name: str, x: Array) -> Array:
        """The same, with a name of its own where the front end writes statements."""

    def sum(self, x: Array, dims=None, keepdim: bool = False) -> Array: ...

    def largest(self, x: Array, dims=None, keepdim: bool = False) -> Array: ...

    def index_of_largest(self, x: Array, dim: int, keepdim: bool = False) -> Array: ...

    def count(self, x: Array, dims=None) -> Expr:
        """How many entries there are along these dimensions."""

    def contracted(self, inputs: Sequence[str], output: str, values: Sequence[Array]) -> Array:
        """An einsum."""

    def scan(self, word: str, x: Array, dim: int) -> Array:
        """CumSum, CumProd or CumMax."""

    def compared(self, relation: str, x: Array, y: Array) -> Array:
        """A condition."""

    def extremes(self, values: Array, indices: Array | None) -> Any:
        """A pair of values and where they are; None: whatever is asked of that is refused."""

    def permuted(self, x: Array, places: Sequence[int]) -> Array: ...

    def unsqueezed(self, x: Array, place: int) -> Array: ...

    def apart(self, x: Array, dim: int, count: Expr) -> Array:
        """A dimension as two, the first of which has this size."""

    def together(self, x: Array, dim: int) -> Array:
        """A dimension and the next as one."""

    def squeezed(self, x: Array, places: Sequence[int]) -> Array: ...

    def reshaped(self, x: Array, sizes: Sequence[Expr]) -> Array:
        """The entries in their order; a size of -1 follows from the others."""

    def expanded(self, x: Array, sizes: Sequence[Expr]) -> Array:
        """Repeated where it has size 1, and along new dimensions in front; -1 is as it is."""

    def copied(self, x: Array) -> Array:
        """The same entries, in memory of their own."""

    def read(self, x: Array, dim: int, length: Expr, step, offset, fill=0) -> Array:
        """In place of a dimension one of this length, whose k-th entry is the one of x at
        ``step*k + offset``, and ``fill`` where x has none there.
        """

    def part(self, x: Array, dim: int, start: Expr, stop: Expr | None, step: int = 1) -> Array: ...

    def entry(self, x: Array, dim: int, index: Expr) -> Array: ...

    def windows(self, x: Array, dim: int, sizes: tuple, index: tuple, fill=0) -> Array:
        """With sizes = (places, inside), so many places in a dimension, and so many entries of each
        in a new one behind all; with index = (step, hole, start), entry k of place i is that of x
        at ``step*i + hole*k + start``, and ``fill`` where there is none.
        """

    def flipped(self, x: Array, dim: int) -> Array: ...

    def joined(self, values: Sequence[Array], dim: int) -> Array:
        """cat"""

    def stacked(self, values: Sequence[Array], dim: int) -> Array: ...

    def picked(self, x: Array, dim: int, index: Array) -> Array:
        """gather: along one dimension by an index with the other dimensions of x."""

    def selected(self, x: Array, dim: int, index: Array) -> Array:
        """x[:, index]: an index of any shape takes the place of a dimension."""

    def counted(self, labels: Array, ignored: Any, losses: Array) -> tuple[Array | None, Array]:
        """1 for the labels that count and 0 for those that are ignored (None where all count), and
        the losses of labels, which are 0 for those.
        """

    def position(self, x: Array, dim: int) -> Array:
        """0, 1, 2, ... along a dimension of x, which broadcasts against it."""

    def counting(self, size: Expr) -> Array:
        """0, 1, 2, ... along a dimension of its own."""

    def written(self, x: Array, dim: int, part: tuple, values: Array) -> Array:
        """x with these values in a part (from, to, step) of a dimension."""

    def hots(self, index: Array, x: Array, dim: int) -> Array:
        """1 where the place along a dimension of x is the index, else 0: a dimension more, behind
        those of the index.
        """

    def on_diagonal(self, x: Array) -> Array:
        """The last dimension twice: its entries where the two places are the same, else 0."""

    def identity(self, x: Array, one: int, other: int) -> Array:
        """1 where the places along two dimensions of x are the same, else 0."""

    # Sizes

    def shape(self, x: Array) -> list[Expr]: ...

    def same(self, one: Expr, other: Expr) -> bool:
        """Whether two sizes are one."""

    def known(self, size: Expr) -> int | None:
        """A size that is a number."""

    def divided(self, size: Expr, by: Expr) -> Expr:
        """Of sizes, one of which is known to be a multiple of the other."""

    def divided_up(self, size: Expr, by: Expr) -> Expr:
        """How many steps go into a size, the last of which may be shorter."""

    def need(self, length: Expr, least: int) -> None:
        """The row has a meaning where a length is at least so large."""

    def filled(self, shape: Sequence[Expr], value: Any) -> Array: ...

    def like(self, x: Array, value: Any) -> Array: ...

    def expect(self, x: Array, dims: Sequence[int], sizes: Sequence[Expr]) -> None:
        """Torch raises unless these dimensions have these sizes."""

    def changed(self, *values: Array | None) -> None:
        """Torch writes into these, beside what it returns."""

    def misfit(self, problem: str, remedy: str) -> NoReturn:
        """Shapes that do not fit, so that torch would raise."""

    def source(self, x: Array, value: Array) -> Array:
        """What is written into x: of its dtype."""

    def refuse(self, problem: str, remedy: str) -> NoReturn: ...
