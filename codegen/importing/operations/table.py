"""The table of operations: what each of torch's is in the notation.

A rule receives the reader and the operation's arguments, by the names of torch's schema (the first
tensor, ``self`` or ``input``, is ``x``), as far as its signature names them; an argument that it
does not name must have its default. Tensors are `Value`s, sizes are expressions, numbers are
Python's. It returns a `Value`, or a list of them, and raises `Refused` for what has no meaning in
the notation. It may assume that shapes are right: torch has run it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
rules: dict[str, Rule] = {}
# those that go before the row of `derive.language.torch_ops`, and end in it
before: set[str] = set()

# Operations without a value: checks that torch adds.
checks = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}
checks |= {"_check_is_size", "sym_constrain_range", "_assert_async"}

# What a value is called that is met more than once, where the user has no name for it.
names: dict[str, str] = {}


def rule(*operations: str, called: str = "") -> Callable[[Rule], Rule]:
    """Put a function into the table; ``called`` is the name of its result where it has none."""

    def kept(function: Rule) -> Rule:
        for operation in operations:
            rules[operation] = function
            if called:
                names[operation] = called
        return function

    return kept


def operation(r) -> str:
    """Which operation is read."""
    return r.node.target._schema.name.rpartition("::")[2]
