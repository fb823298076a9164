"""The operations that rows are written in. `derive.claims.reading.arrays` implements them on SymPy
expressions with dimensions by position, `codegen.importing.reader` on trees with named axes that
keep the user's spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from sympy import Expr

from derive.language.torch_ops.trees import Tree

Array = Any  # the front end's; a row passes it on and reads only .rank


class Arrays(Protocol):
    def each(self, formula: Callable[..., Tree], *values: Array) -> Array:
        """A formula of the broadcast entries; boolean arrays are passed as conditions."""

    def is_condition(self, x: Array) -> bool: ...

    def chosen(self, condition: Array, yes: Array, no: Array) -> Array:
        """``torch.where``: ``yes`` where the condition holds, else ``no``."""

    def is_zero(self, x: Array) -> bool:
        """Whether a number is 0."""

    def let(self, name: str, x: Array) -> Array:
        """The same array; a front end that writes statements gives it this name."""

    def sum(self, x: Array, dims=None, keepdim: bool = False) -> Array: ...

    def largest(self, x: Array, dims=None, keepdim: bool = False) -> Array: ...

    def index_of_largest(self, x: Array, dim: int, keepdim: bool = False) -> Array: ...

    def count(self, x: Array, dims=None) -> Expr:
        """The number of entries along these dimensions."""

    def contracted(self, inputs: Sequence[str], output: str, values: Sequence[Array]) -> Array:
        """An einsum."""

    def scan(self, word: str, x: Array, dim: int) -> Array:
        """CumSum, CumProd or CumMax."""

    def compared(self, relation: str, x: Array, y: Array) -> Array:
        """The entrywise condition ``relation(x, y)``."""

    def extremes(self, values: Array, indices: Array | None) -> Any:
        """A pair (values, indices); with None, any use of the indices is refused."""

    def permuted(self, x: Array, places: Sequence[int]) -> Array: ...

    def unsqueezed(self, x: Array, place: int) -> Array: ...

    def apart(self, x: Array, dim: int, count: Expr) -> Array:
        """Split a dimension in two, the first of size ``count``."""

    def together(self, x: Array, dim: int) -> Array:
        """Merge a dimension with the next one."""

    def squeezed(self, x: Array, places: Sequence[int]) -> Array: ...

    def reshaped(self, x: Array, sizes: Sequence[Expr]) -> Array:
        """``reshape``; -1 is inferred."""

    def expanded(self, x: Array, sizes: Sequence[Expr]) -> Array:
        """``expand``, also along new leading dimensions; -1 keeps a size."""

    def copied(self, x: Array) -> Array:
        """A copy in memory of its own."""

    def read(self, x: Array, dim: int, length: Expr, step, offset, fill=0) -> Array:
        """Replace a dimension by one of ``length`` whose k-th entry is that of x at ``step*k +
        offset``, and ``fill`` where the index is out of range.
        """

    def part(self, x: Array, dim: int, start: Expr, stop: Expr | None, step: int = 1) -> Array: ...

    def entry(self, x: Array, dim: int, index: Expr) -> Array: ...

    def windows(self, x: Array, dim: int, sizes: tuple, index: tuple, fill=0) -> Array:
        """Windows of a dimension. With sizes = (places, inside), the dimension becomes ``places``
        long and a new last one ``inside``; with index = (step, hole, start), entry k of window i is
        that of x at ``step*i + hole*k + start``, and ``fill`` where the index is out of range.
        """

    def flipped(self, x: Array, dim: int) -> Array: ...

    def joined(self, values: Sequence[Array], dim: int) -> Array:
        """``cat``"""

    def stacked(self, values: Sequence[Array], dim: int) -> Array: ...

    def picked(self, x: Array, dim: int, index: Array) -> Array:
        """``gather`` along one dimension, by an index with the other dimensions of x."""

    def selected(self, x: Array, dim: int, index: Array) -> Array:
        """``x[:, index]``: an index of any shape replaces a dimension."""

    def counted(self, labels: Array, ignored: Any, losses: Array) -> tuple[Array | None, Array]:
        """1 for labels that count and 0 for ignored ones (None if all count), and the losses, set
        to 0 for ignored labels.
        """

    def position(self, x: Array, dim: int) -> Array:
        """0, 1, 2, ... along a dimension of x, broadcastable with x."""

    def counting(self, size: Expr) -> Array:
        """``arange``: 0, 1, 2, ... along a new dimension."""

    def written(self, x: Array, dim: int, part: tuple, values: Array) -> Array:
        """x with ``values`` in a slice (from, to, step) of a dimension."""

    def hots(self, index: Array, x: Array, dim: int) -> Array:
        """The one-hot of an index along a dimension of x, which becomes the last dimension."""

    def on_diagonal(self, x: Array) -> Array:
        """``diag_embed``: the last dimension twice, and 0 off the diagonal."""

    def identity(self, x: Array, one: int, other: int) -> Array:
        """``eye``: 1 where the positions along two dimensions of x are equal, else 0."""

    # Sizes

    def shape(self, x: Array) -> list[Expr]: ...

    def same(self, one: Expr, other: Expr) -> bool:
        """Whether two sizes are equal."""

    def known(self, size: Expr) -> int | None:
        """The integer value of a size, if it has one."""

    def divided(self, size: Expr, by: Expr) -> Expr:
        """``size / by``, where that is known to be an integer."""

    def divided_up(self, size: Expr, by: Expr) -> Expr:
        """ceil(size / by): the last step may be shorter."""

    def need(self, length: Expr, least: int) -> None:
        """Require ``length >= least``."""

    def filled(self, shape: Sequence[Expr], value: Any) -> Array: ...

    def like(self, x: Array, value: Any) -> Array: ...

    def expect(self, x: Array, dims: Sequence[int], sizes: Sequence[Expr]) -> None:
        """Require these dimensions to have these sizes, as torch does."""

    def changed(self, *values: Array | None) -> None:
        """Note the arguments that torch writes into."""

    def misfit(self, problem: str, remedy: str) -> NoReturn:
        """Raise for shapes that torch would reject."""

    def source(self, x: Array, value: Array) -> Array:
        """The value to write into x, converted to its dtype."""

    def refuse(self, problem: str, remedy: str) -> NoReturn: ...
