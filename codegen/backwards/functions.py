"""Makes a ``torch.autograd.Function`` traceable: its forward and its backward in one graph.

The context is one of our own: torch's would hide what a forward saves for its backward, and whether
it is an input, the output, or an intermediate value, which has no gradient of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from codegen.backwards.context import RecordedContext, kept_in, noted_of
from codegen.backwards.unrecorded import unrecorded
from codegen.importing.asked import Argument
from codegen.importing.subjects import REMEDIES, TENSOR_AND_NAME, Subject
from codegen.importing.trace import seen
from derive.language.errors import Place, QuestionError
from derive.language.notation.library import run_file

FORWARD, BACKWARD = "forward", "backward"


@dataclass
class Seen:
    """Observations of one run of a Function; kept here because `torch.export` resets modules."""

    phase: str = FORWARD
    outputs: int = 0
    is_float: tuple[bool, ...] = ()
    gradients: tuple[bool, ...] = ()  # which of them are not None
    shapes: tuple = ()
    kept: int = 0
    between: tuple[int, ...] = ()  # places of saved tensors other than inputs and outputs
    asks: bool = False  # whether it read ctx.needs_input_grad
    materializes: bool = True  # whether zeros arrive for an output that no loss reads


@dataclass(frozen=True)
class FunctionSubject(Subject):
    """A class with a forward and a backward."""

    @property
    def of_class(self) -> type[torch.autograd.Function]:
        return self.function

    @property
    def source(self) -> str:
        """The source of both; Python does not find that of a class in a notebook."""
        own = (self.of_class.forward, self.of_class.setup_context, self.of_class.backward)
        try:
            return "\n".join(inspect.getsource(inspect.unwrap(f)) for f in own)
        except OSError:  # typed at a prompt
            return ""

    @property
    def of_module(self) -> dict[str, torch.Tensor]:
        return {}

    @property
    def has_setup(self) -> bool:
        return self.of_class.setup_context is not torch.autograd.Function.setup_context

    @property
    def is_once_differentiable(self) -> bool:
        return "once_differentiable" in getattr(self.of_class.backward, "__qualname__", "") or (
            hasattr(self.of_class.backward, "__wrapped__")
        )

    @property
    def parameters(self) -> list[inspect.Parameter]:
        found = list(inspect.signature(self.of_class.forward).parameters.values())
        return found if self.has_setup else found[1:]

    @property
    def upstreams(self) -> list[str]:
        """The backward's names for upstream gradients; ``*`` is before those of a tuple."""
        own = inspect.signature(inspect.unwrap(self.of_class.backward)).parameters.values()
        named = [p.name for p in own if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        return named + [f"*{p.name}" for p in own if p.kind is p.VAR_POSITIONAL]

    def check(self, arguments: Sequence[Argument]) -> None:
        """Raise `QuestionError` if a tensor has no axes."""
        names = [p.name for p in self.parameters]
        given = {a.name for a in arguments}
        unknown = [name for name in given if name not in names]
        takes = ", ".join(names)
        if unknown:
            raise QuestionError(
                f"{self.name} has no argument {unknown[0]}", f"it takes {takes}", self.place
            )
        given |= {*self.options}
        missing = [p.name for p in self.parameters if _is_needed(p) and p.name not in given]
        if missing:
            raise QuestionError(
                f"{self.name} needs {', '.join(missing)}, whose axes are missing",
                f'write --axes "{missing[0]}: N C"; a non-tensor argument needs a default',
                self.place,
            )

    def module(self, arguments: Sequence[Argument]) -> torch.nn.Module:
        """A module of the forward alone."""
        return ForwardAlone(self, arguments)

    def values(self, arguments: Sequence[Argument], tensors: Sequence) -> list:
        """All arguments of the forward; those other than tensors as chosen, or their defaults."""
        given = {**self.options, **dict(zip((a.name for a in arguments), tensors, strict=False))}
        return [given.get(p.name, p.default) for p in self.parameters]

    def forward(self, context: RecordedContext, values: Sequence) -> tuple:
        with unrecorded():
            if self.has_setup:
                result = seen(self.of_class.forward)(*values)
                seen(self.of_class.setup_context)(context, tuple(values), result)
            else:
                result = seen(self.of_class.forward)(context, *values)
        found = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        return tuple(y.clone() if any(y is v for v in values) else y for y in found)


def _is_needed(p: inspect.Parameter) -> bool:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return p.default is inspect.Parameter.empty and p.kind not in variable


class ForwardAlone(torch.nn.Module):
    """Module of the forward: returns the first floating-point output."""

    def __init__(self, subject: FunctionSubject, arguments: Sequence[Argument]):
        super().__init__()
        self.subject, self.arguments = subject, tuple(arguments)

    def forward(self, *tensors):
        values = self.subject.values(self.arguments, tensors)
        context = RecordedContext([True] * len(values))
        found = self.subject.forward(context, values)
        return next(y for y in found if y.is_floating_point())


class Both(torch.nn.Module):
    """Module of the forward and then the backward: called with the arguments and the upstream
    gradients, it returns the outputs, the gradients that are not None, and the saved tensors.
    """

    def __init__(
        self,
        subject: FunctionSubject,
        arguments: Sequence[Argument],
        needs: Sequence[bool],
        noted: Seen,
        unread: Sequence[int] = (),
    ):
        super().__init__()
        self.subject, self.arguments = subject, tuple(arguments)
        self.needs, self.noted = tuple(needs), [noted]  # a list: export resets what it sees
        self.unread = tuple(unread)  # the outputs that no loss reads, of the differentiable ones

    def outputs(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs that gradients arrive for."""
        context = RecordedContext(self.needs)
        own = [t.clone() for t in tensors]  # which a forward may write into
        found = self.subject.forward(context, self.subject.values(self.arguments, own))
        return [y for y in found if _differs(y, context)]

    def forward(self, *tensors):
        noted, count = self.noted[0], len(self.arguments)
        noted.phase = FORWARD
        values = self.subject.values(self.arguments, tensors)
        context = RecordedContext(self.needs)
        outputs = self.subject.forward(context, values)
        arriving = self._arriving(outputs, tensors[count:], context)
        noted.phase = BACKWARD
        with unrecorded():
            gradients = seen(inspect.unwrap(self.subject.of_class.backward))(context, *arriving)
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        noted.gradients = tuple(isinstance(g, torch.Tensor) for g in gradients)
        noted.shapes = tuple(tuple(g.shape) if g is not None else None for g in gradients)
        kept = kept_in(context)
        known = [*values, *outputs]
        noted.between = tuple(
            i for i, t in enumerate(kept) if not any(t is other for other in known)
        )
        noted.kept, noted.phase = len(kept), ""
        said = noted_of(context)
        noted.asks, noted.materializes = said.is_asked, said.materializes
        outputs = [y for y in outputs if _differs(y, context)]
        noted.outputs = len(outputs)
        found = [g for g in gradients if isinstance(g, torch.Tensor)]
        return (*outputs, *found, *kept)

    def _arriving(self, outputs: Sequence, ups: Sequence, context: RecordedContext) -> list:
        """Upstream gradients; for unread outputs zeros, or None if the forward asked for that."""
        found, place = [], 0
        for y in outputs:
            up = torch.zeros_like(y) if noted_of(context).materializes else None
            if _differs(y, context):
                up = up if place in self.unread else ups[place]
                place += 1
            found.append(up)
        return found


def _differs(y: torch.Tensor, context: RecordedContext) -> bool:
    return y.is_floating_point() and not any(
        y is other for other in noted_of(context).not_differentiable
    )


def function_of(asked: str | type) -> FunctionSubject:
    """Find a Function by ``FILE.py:MyFunction`` or class. Raises `QuestionError`."""
    path, value, name = None, asked, getattr(asked, "__name__", str(asked))
    if isinstance(asked, str):
        file, colon, name = asked.rpartition(":")
        if not colon or not file.endswith(".py"):
            raise QuestionError(f"{asked} does not name a class in a file", TENSOR_AND_NAME)
        path = Path(file)
        module = run_file(path, REMEDIES)
        there = [n for n, v in vars(module).items() if _is_function(v)]
        if name not in vars(module):
            listed = ", ".join(there) or "not a torch.autograd.Function"
            raise QuestionError(f"{path} has no {name}", f"it has {listed}")
        value = vars(module)[name]
    if not _is_function(value):
        raise QuestionError(
            f"{name} is not a torch.autograd.Function", "name a class with a forward and a backward"
        )
    return FunctionSubject(value, name, _place_of(value, path), inspect.getdoc(value) or "")


def reference_of(subject: FunctionSubject, like: str | Callable) -> Callable:
    """The function called ``like``, of the same file. Raises `QuestionError`."""
    if callable(like):
        return like
    found = vars(sys.modules[subject.of_class.__module__]).get(like)
    if not callable(found):
        raise QuestionError(f"there is no function {like} next to {subject.name}", "--like NAME")
    return found


def _is_function(value: object) -> bool:
    own = isinstance(value, type) and issubclass(value, torch.autograd.Function)
    return own and value is not torch.autograd.Function


def _place_of(value: type, path: Path | None) -> Place:
    try:
        forward = inspect.unwrap(value.forward)
        file = inspect.getsourcefile(forward) or str(path)
    except TypeError:
        return Place(str(path or "<unknown>"), 0)
    try:
        return Place(file, inspect.getsourcelines(value)[1])
    except (OSError, TypeError):  # in a notebook
        return Place(file, forward.__code__.co_firstlineno)
