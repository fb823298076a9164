"""The table of torch's text: a row for each class of values and of steps.

The row of a value receives the printer and the value; it returns its text, and how strongly that
binds (``vocabulary.py``). The row of a step returns its lines, all but the first with their margin.
A row decides nothing about mathematics, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from codegen.program.values import Value
from codegen.targets.torch.vocabulary import SUM


@dataclass(frozen=True)
class Surroundings:
    """Settings around the lines of a function. Errors name the ``program``. ``dims`` maps every
    `Axes`, by the name of its size, to the name for the sizes of all its dimensions, ``lengths``
    the axes to lengths that the mathematics fixes; ``dtype`` is the name of the arguments' dtype.
    ``hurried``: valid arguments are to pass at once.
    """

    program: str = ""
    dims: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    dtype: str = "dtype"
    hurried: bool = False


ALONE = Surroundings()  # lines that stand in no module


class Prints(Protocol):
    """The part of the printer that a row may use."""

    sizes: dict[str, str]  # the name of the length of each axis
    like: str  # a tensor whose dtype and device new tensors take
    around: Surroundings
    in_place: bool  # additions change the tensor
    einsum: str  # the function

    def text(self, value: Value, at_least: int = SUM) -> str: ...

    def tight(self, value: Value) -> str: ...

    def printed(self, value: Value) -> tuple[str, int]: ...

    def argument(self, value: Value) -> str: ...

    def as_tensor(self, number: Value) -> str: ...

    def is_number(self, value: Value) -> bool: ...

    def loaded(self, name: str) -> str: ...

    def shape(self, dims) -> str: ...

    def flattened(self, text: str, first: int, last: int) -> str: ...

    def in_words(self, size: Value) -> str: ...


class Rows(dict[type, Callable[..., Any]]):
    """Rows by the classes that they print; those of another printer begin as a copy of its own."""

    def of(self, *kinds: type) -> Callable[[Callable], Callable]:
        """Put a function into the table."""

        def kept(function: Callable) -> Callable:
            self.update(dict.fromkeys(kinds, function))
            return function

        return kept


TORCH = Rows()
