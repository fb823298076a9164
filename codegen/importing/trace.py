"""Trace a function into a flat graph of ATen operations with symbolic sizes.

Uses ``torch.export``, and with in-place operations its *empty* table of decompositions: the graph
becomes functional, and composite operations stay whole, so that the user's own words are read.
Works for functions, modules and both halves of an autograd Function; each is wrapped as a module.
"""

from __future__ import annotations

import ast
import io
import linecache
import logging
import math
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import sympy
import torch
import torch._dynamo.config
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.export import Dim, ExportedProgram

from codegen.importing.asked import Argument
from codegen.importing.double import in_double
from codegen.importing.made import attributes_set
from derive.language.errors import Place, QuestionError, shortened_text

UNKNOWN_VALUE = ("data-dependent", "data dependent", "unbacked")
FREE_VALUES = (
    "computation may depend on sizes but not on tensor values: use torch.where instead of if, and "
    "no .item()"
)


@dataclass(frozen=True)
class Traced:
    """A graph and its arguments; ``sizes`` are those of the example."""

    program: ExportedProgram
    arguments: tuple[Argument, ...]
    sizes: Mapping[str, int]
    file: str  # the user's file

    @property
    def nodes(self) -> list[torch.fx.Node]:
        return list(self.program.graph.nodes)

    @property
    def placeholders(self) -> list[torch.fx.Node]:
        """The placeholders of the arguments, in order."""
        given = {s.arg.name for s in self.program.graph_signature.input_specs if _is_user(s)}
        return [n for n in self.nodes if n.op == "placeholder" and n.name in given]

    @property
    def outputs(self) -> list[Any]:
        """The returned values: nodes, numbers, None."""
        specs = self.program.graph_signature.output_specs
        found = self.nodes[-1].args[0]
        return [
            value for value, s in zip(found, specs, strict=True) if s.kind.name == "USER_OUTPUT"
        ]

    @property
    def needed(self) -> set[torch.fx.Node]:
        """The nodes that the outputs depend on."""
        found: set[torch.fx.Node] = set()
        todo = [out for out in self.outputs if isinstance(out, torch.fx.Node)]
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo += node.all_input_nodes
        return found

    @property
    def changed(self) -> list[str]:
        """The placeholders that are written into in place."""
        specs = self.program.graph_signature.output_specs
        return [s.target for s in specs if s.kind.name == "USER_INPUT_MUTATION"]

    @property
    def constants(self) -> dict[str, torch.Tensor | None]:
        """Captured tensors, by placeholder; None if unavailable."""
        specs = self.program.graph_signature.input_specs
        known = {**self.program.constants, **self.program.state_dict}
        return {s.arg.name: known.get(s.target) for s in specs if not _is_user(s)}

    @property
    def guards(self) -> list[tuple[sympy.Basic, Place | None]]:
        """The trace's assumptions about sizes, each with the user's line that made it."""
        shapes = (n.meta["val"].shape for n in self.placeholders)
        symbolic = next((d for s in shapes for d in s if isinstance(d, torch.SymInt)), None)
        if symbolic is None:
            return []
        found = ((g.expr, g.sloc.framework_loc) for g in symbolic.node.shape_env.guards)
        return [(e, self._line(where)) for e, where in found if e.free_symbols]

    def _line(self, where: object) -> Place | None:
        own = getattr(where, "filename", "") == self.file
        return Place(self.file, where.lineno or 0) if own else None

    def place(self, node: torch.fx.Node) -> Place | None:
        """The user's line that a node came from."""
        lines = lines_of(node, self.file)
        return Place(self.file, lines[-1]) if lines else None

    def typed(self, node: torch.fx.Node, operation: str) -> str:
        """The call of the operation that a node came from, as typed; its line where no call has the
        operation's name.
        """
        place = self.place(node)
        if place is None:
            return operation
        for call in calls_at(place):
            called = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if operation in (called, f"linalg_{called}", f"fft_{called}", f"{called}_"):
                return shortened_text(ast.unparse(call))
        return shortened_text(place.text)


def calls_at(place: Place) -> list[ast.Call]:
    """The calls that begin on a line of a user's file, or around it."""
    tree = ast.parse("".join(linecache.getlines(place.file)))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = [c for c in calls if c.lineno <= place.line <= (c.end_lineno or c.lineno)]
    return sorted(found, key=lambda c: (c.end_lineno or 0) - c.lineno)


def _is_user(spec) -> bool:
    return spec.kind.name == "USER_INPUT"


def lines_of(node: torch.fx.Node, file: str) -> list[int]:
    """The lines of ``file`` in the stack of a node, innermost last."""
    found = []
    for line in (node.meta.get("stack_trace") or "").splitlines():
        head, _, rest = line.strip().partition('", line ')
        if head == f'File "{file}' and rest:
            found.append(int(rest.split(",")[0]))
    return found


def trace(
    module: torch.nn.Module,
    arguments: Sequence[Argument],
    examples: Sequence[torch.Tensor],
    sizes: Mapping[str, int],
    file: str,
) -> Traced:
    """Trace ``module`` on ``examples``: one for each argument, followed by those whose dimensions
    are all dynamic.

    Raises `QuestionError`, with the user's line, if tracing fails.
    """
    open_dims = [
        {i: Dim.AUTO for i, axis in enumerate(a.axes) if not axis.isdigit()} for a in arguments
    ]
    more = examples[len(arguments) :]
    open_dims += [{i: Dim.AUTO for i, n in enumerate(e.shape) if n > 1} for e in more]
    try:
        with quiet(), in_double(), sizes_stay_symbols(), uncached(), data_refused(file):
            program = torch.export.export(
                module, tuple(examples), dynamic_shapes=(tuple(open_dims),), strict=False
            )
            if any(map(_writes, program.graph.nodes)):
                program = program.run_decompositions({})
    except QuestionError:
        raise
    except Exception as error:
        raise untraceable(error, file) from None
    return Traced(program, tuple(arguments), sizes, file)


def _writes(node: torch.fx.Node) -> bool:
    """Whether an operation works in place; any table of decompositions makes it functional."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema and schema.is_mutable)


@contextmanager
def uncached() -> Iterator[None]:
    """Disable torch's cache of operations, which costs more time here than it saves."""
    with torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
        yield


@contextmanager
def data_refused(file: str) -> Iterator[None]:
    """Refuse ``x.data`` where it is read: it leaves the graph, and torch reports that late and
    without the line.
    """
    own = torch._C.TensorBase.data

    def data(tensor):
        caller = sys._getframe(1)
        if caller.f_code.co_filename == file and type(tensor) is not torch.Tensor:
            place = Place(file, caller.f_lineno)
            raise QuestionError(".data cannot be traced", "use .detach()", place)
        return own.__get__(tensor)

    torch.Tensor.data = property(data, own.__set__)
    try:
        yield
    finally:
        del torch.Tensor.data


def untraceable(error: Exception, file: str) -> QuestionError:
    """The error for an exception raised while running or tracing, with the user's line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    place = Place(file, frames[-1].lineno or 0) if frames else None
    words = str(error)
    unknown = isinstance(error, (DataDependentOutputException, DynamicOutputShapeException))
    if unknown or any(word in words for word in UNKNOWN_VALUE):
        return QuestionError("this depends on the values of a tensor", FREE_VALUES, place)
    first = next((line.strip() for line in words.splitlines() if line.strip()), "no message")
    remedy = "check the axes, and --sizes if the function needs special sizes"
    return QuestionError(f"{type(error).__name__}: {first}", remedy, place)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence torch.export's output and the function's prints."""
    log = logging.getLogger("torch")
    before = log.level
    nowhere = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(before)


@contextmanager
def sizes_stay_symbols() -> Iterator[None]:
    """Keep sizes symbolic in functions such as ``math.sqrt(x.size(-1))``, which would silently
    specialize them.
    """
    root, product = math.sqrt, math.prod

    def sqrt(x):
        return torch._sym_sqrt(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else root(x)

    def prod(numbers, *, start=1):
        for n in numbers:
            start = start * n
        return start

    def hot(labels, num_classes=-1):
        if not isinstance(num_classes, torch.SymInt):
            return one_hot(labels, num_classes)
        zeros = labels.new_zeros((*labels.shape, num_classes))
        return zeros.scatter(-1, labels.unsqueeze(-1), 1)

    one_hot = torch.nn.functional.one_hot
    math.sqrt, math.prod, torch.nn.functional.one_hot = sqrt, prod, hot
    try:
        yield
    finally:
        math.sqrt, math.prod, torch.nn.functional.one_hot = root, product, one_hot


def seen(function: Callable) -> Callable:
    """The function renamed to forward: torch records stack lines of no other frame."""
    if not isinstance(function, types.FunctionType):
        return function
    named = types.FunctionType(
        function.__code__.replace(co_name="forward"),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    named.__kwdefaults__ = function.__kwdefaults__
    return named


class TracedCall(torch.nn.Module):
    """A function wrapped as a module to be traced; tensors are passed by these names, or
    in order.
    """

    def __init__(self, function: Callable, names: Sequence[str], options: Mapping[str, Any]):
        super().__init__()
        self.function, self.names = seen(function), tuple(names)
        self.options = (dict(options),)  # torch.export would take them for tensors

    def forward(self, *tensors):
        if not self.names:
            return self.function(*tensors)
        return self.function(**dict(zip(self.names, tensors, strict=True)), **self.options[0])


class WithParameters(torch.nn.Module):
    """A module as a function of its arguments, followed by its parameters and buffers."""

    def __init__(
        self,
        module: torch.nn.Module,
        names: Sequence[str],
        of_module: Sequence[str],
        options: Mapping[str, Any],
        floats: Mapping[str, float],
    ):
        super().__init__()
        self.options, self.floats = (dict(options),), (dict(floats),)
        self.inner = (module,)  # kept in a tuple: not a submodule, as its parameters are arguments
        self.names, self.of_module = tuple(names), tuple(of_module)

    def forward(self, *tensors):
        given = dict(zip(self.names, tensors, strict=False))
        own = dict(zip(self.of_module, tensors[len(self.names) :], strict=True))
        for name, buffer in self.inner[0].named_buffers():  # a forward may change them
            again = buffer.clone()
            own.setdefault(name, again.double() if again.is_floating_point() else again)
        with attributes_set(self.inner[0], self.floats[0]):
            return torch.func.functional_call(self.inner[0], own, (), {**given, **self.options[0]})
