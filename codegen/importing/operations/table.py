"""The table of rules: the notation for each ATen operation.

A rule receives the reader and the operation's arguments under the names of torch's schema (the
first tensor, ``self`` or ``input``, is ``x``), as far as its signature lists them; an argument it
does not list must have its default. Tensors are `Value`s, sizes are expressions, numbers are
Python's. A rule returns a `Value`, or a list of them, and raises `Refused` for what the notation
cannot express. It may assume valid shapes: torch has run the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
rules: dict[str, Rule] = {}
# rules that run before the row of `derive.language.torch_ops`, and end by calling it
before: set[str] = set()

# Operations without a result: checks inserted by torch.
checks = {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}
checks |= {"_check_is_size", "sym_constrain_range", "_assert_async"}

# Names for values used more than once that the user did not name.
names: dict[str, str] = {}


def rule(*operations: str, called: str = "") -> Callable[[Rule], Rule]:
    """Register a rule; ``called`` names its result if the user did not."""

    def kept(function: Rule) -> Rule:
        for operation in operations:
            rules[operation] = function
            if called:
                names[operation] = called
        return function

    return kept


def operation(r) -> str:
    """The name of the operation being read."""
    return r.node.target._schema.name.rpartition("::")[2]
