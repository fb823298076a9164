"""Calls a Function as torch does, and records its in-place writes.

The context is torch's own here, and so are the graph, the memory and its versions: running it shows
which writes torch notices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from codegen.backwards.functions import FunctionSubject
from codegen.importing.asked import GIVEN, LABELS, MASK, Argument
from codegen.importing.double import run_in_double
from codegen.importing.trace import quiet

NOT_THE_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
WITHIN = 1e-9  # between two runs: the order of a sum may differ
Tensors = Sequence[torch.Tensor]
Gradients = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True)
class Write:
    """An operation that wrote into memory, at a line of the user's; ``names`` are the user's names
    of it there, from the outermost function in.
    """

    memory: int
    file: str
    line: int
    names: tuple[str, ...]


class Watch(TorchDispatchMode):
    """Records every write into memory that exists when it begins."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Write] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for t in _written(function, args, kwargs):
            frames = _users_frames()
            if frames:
                memory = memory_of(t)
                names = [n for f in reversed(frames) for n in _names_in(f, memory)]
                code = frames[0]
                self.writes.append(
                    Write(memory, code.f_code.co_filename, code.f_lineno, tuple(names))
                )
        return function(*args, **kwargs)


def _written(function: Any, args: tuple, kwargs: Mapping) -> Iterator[torch.Tensor]:
    """The tensors that an operation writes into."""
    if function is torch.ops.aten.detach_.default:
        return
    for i, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            yield from (t for t in tree_leaves(value) if isinstance(t, torch.Tensor))


def memory_of(t: torch.Tensor) -> int:
    """An identifier of the memory of a tensor, valid while the tensor lives."""
    return t.untyped_storage()._cdata


def _users_frames() -> list[FrameType]:
    """The running frames of the user's code, the innermost first."""
    found, frame = [], sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != __file__:
        if not frame.f_code.co_filename.startswith((*NOT_THE_USERS, "<")):
            found.append(frame)
        frame = frame.f_back
    return found


def _names_in(frame: FrameType, memory: int) -> Iterator[str]:
    for name, value in frame.f_locals.items():
        if isinstance(value, torch.Tensor) and memory_of(value) == memory:
            yield name


@dataclass
class Called:
    """One call of a Function: its arguments, results, and writes."""

    subject: FunctionSubject
    arguments: Sequence[Argument]
    leaves: Tensors  # that gradients are asked of
    given: Tensors  # the arguments themselves, which a Function may write into
    outputs: Tensors = ()
    writes: list[Write] = field(default_factory=list)

    @property
    def differentiable(self) -> list[torch.Tensor]:
        return [y for y in self.outputs if isinstance(y, torch.Tensor) and y.requires_grad]

    @property
    def asked(self) -> list[int]:
        """The places of the arguments that need a gradient."""
        return [i for i, t in enumerate(self.leaves) if t.requires_grad]

    def backward(self, ups: Tensors, watch: Watch | None = None) -> Gradients:
        """The gradients of the arguments; the graph is kept, so that it can be called again."""
        leaves = [self.leaves[i] for i in self.asked]
        with _as_torch_does(watch):
            return torch.autograd.grad(
                self.differentiable, leaves, ups, retain_graph=True, allow_unused=True
            )

    def kept(self) -> dict[int, str]:
        """The memory saved for the backward, with the name of its attribute, if any."""
        found: dict[int, str] = {}
        for y in self.differentiable:
            node: Any = y.grad_fn
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                saved = {"": node.saved_tensors, **vars(node)}
                for name, value in saved.items():
                    for t in tree_leaves(value):
                        if isinstance(t, torch.Tensor):
                            found.setdefault(memory_of(t), f"ctx.{name}" if name else "")
        return found


def called(
    subject: FunctionSubject,
    arguments: Sequence[Argument],
    tensors: Tensors,
    lay: Callable[[torch.Tensor], torch.Tensor] = torch.clone,
) -> Called:
    """``Function.apply`` on tensors that a caller made, each laid out in memory by ``lay``."""
    leaves = [
        t.clone().requires_grad_(_differs(a)) for a, t in zip(arguments, tensors, strict=True)
    ]
    watch = Watch()
    with _as_torch_does(None):
        given = [lay(t) for t in leaves]
    with _as_torch_does(watch):
        result = subject.of_class.apply(*subject.values(arguments, given))
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return Called(subject, arguments, leaves, given, outputs, watch.writes)


def _differs(argument: Argument) -> bool:
    return argument.kind not in (LABELS, MASK, GIVEN)


@contextmanager
def _as_torch_does(watch: Watch | None) -> Iterator[None]:
    """Fix the random seed, so that only writes make a difference."""
    with quiet(), torch.random.fork_rng(devices=[]), torch.enable_grad(), run_in_double():
        torch.manual_seed(0)
        if watch is None:
            yield
        else:
            with watch:
                yield


def changed(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[Write]:
    """Tensors whose values changed: NumPy and kernels write where no operation shows."""
    return [Write(memory_of(t), "", 0, ()) for t, before in pairs if not same((t,), (before,))]


def same(one: Gradients, other: Gradients) -> bool:
    """True if all gradients agree; None is zero."""
    for a, b in zip(one, other, strict=True):
        a, b = (torch.zeros(()) if t is None else t.detach().double() for t in (a, b))
        if a.shape != b.shape and a.numel() > 1 and b.numel() > 1:
            return False
        if not torch.allclose(*torch.broadcast_tensors(a, b), WITHIN, WITHIN, equal_nan=True):
            return False
    return True
