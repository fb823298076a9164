"""A node of the graph as a call: its operation and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx.node import map_aggregate

from codegen.importing.values import Refused

# Arguments about storage or shape, which the trace already knows.
STORAGE = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "copy"}
STORAGE |= {"generator", "sparse_grad", "implicit", "requires_grad", "size", "cudnn_enable"}
STORAGE |= {"cudnn_enabled", "half_to_float", "path"}
OPERAND = ("self", "input")  # names of the first tensor in torch's schemas; rules call it x
OTHER_WAY = "use supported operations (listed in docs/torch-code.md)"


def operation_of(node: torch.fx.Node) -> str:
    """The operation's name: add for ``aten.add.Tensor``; Python functions keep theirs."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.target.__name__
    space, _, name = schema.name.partition("::")
    return name if space == "aten" else schema.name


def given_to(node: torch.fx.Node, rule: Callable, value: Callable) -> Mapping[str, Any]:
    """The arguments by name, with defaults filled in, as far as the rule takes them. Raises
    `Refused` for a non-default argument that the rule does not take.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {
            "x": map_aggregate(node.args[0], value),
            "index": map_aggregate(node.args[1], value),
        }
    parameters = inspect.signature(rule).parameters
    known = set(parameters)
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return {}  # a rule that always refuses
    found = {}
    for i, argument in enumerate(schema.arguments):
        name = "x" if argument.name in OPERAND else argument.name
        default = argument.default_value if argument.has_default_value() else None
        given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, default)
        if name in known:
            found[name] = map_aggregate(given, value)
        elif given != default and name not in STORAGE:
            what = operation_of(node)
            raise Refused(f"{name}={given} of {what} is not supported", OTHER_WAY)
    return found
