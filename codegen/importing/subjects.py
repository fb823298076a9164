"""The function or module to import, and its tensors.

A user's file is executed as Python.
"""

from __future__ import annotations

import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Self

import torch

from codegen.importing.asked import Argument, NamedArguments
from codegen.importing.trace import TracedCall, WithParameters
from derive.language.errors import Place, QuestionError
from derive.language.notation.library import run_file

TENSOR_AND_NAME = "FILE.py:function"


@dataclass(frozen=True)
class Subject:
    """A function or a module, its name, and its file."""

    function: Callable | torch.nn.Module
    name: str
    place: Place
    doc: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # non-tensor arguments
    attributes: Mapping[str, float] = field(default_factory=dict)  # of a module, by path

    @property
    def file(self) -> str:
        return self.place.file

    @property
    def of_module(self) -> dict[str, torch.Tensor]:
        """The module's floating-point parameters and buffers; empty for a function."""
        if not isinstance(self.function, torch.nn.Module):
            return {}
        buffers = {n: b for n, b in self.function.named_buffers() if b.is_floating_point()}
        return {**dict(self.function.named_parameters()), **buffers}

    @property
    def constant(self) -> set[str]:
        """Its tensors without a gradient."""
        return set() if not self.of_module else set(dict(self.function.named_buffers()))

    def module(self, arguments: Sequence[Argument]) -> torch.nn.Module:
        """The module to trace and run: called with the argument tensors in order."""
        own = [a.name for a in arguments if a.name in self.of_module]
        names = [a.name for a in arguments if a.name not in self.of_module]
        if isinstance(self.function, torch.nn.Module):
            return WithParameters(self.function, names, own, self.options, self.attributes)
        return TracedCall(self.function, names if self.parameters is not None else (), self.options)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter] | None:
        """None for a function not written in Python, which takes its tensors in order."""
        target = self.function.forward if self.of_module else self.function
        try:
            return inspect.signature(target).parameters
        except (TypeError, ValueError):
            return None

    def floats(self, arguments: Sequence[Argument]) -> dict[str, float]:
        """The floats among options and among attributes of a module and its submodules."""
        given = {a.name for a in arguments}
        found = dict(self.options)
        for name, p in (self.parameters or {}).items():
            if name not in given:
                found.setdefault(name, p.default)
                if type(found[name]) is int and {p.annotation, type(p.default)} & {float, "float"}:
                    found[name] = float(found[name])
        if isinstance(self.function, torch.nn.Module):
            for path, module in self.function.named_modules():
                own = ChainMap(vars(module), *map(vars, _classes_of(module)))
                found |= {
                    f"{path}.{n}".lstrip("."): v
                    for n, v in own.items()
                    if n not in found and not n.startswith("_")
                }
        return {n: v for n, v in found.items() if type(v) is float and isfinite(v)}

    def at(self, values: Mapping[str, float]) -> Self:
        """The same subject with other floats."""
        parameters = self.parameters or {}
        options = {n: v for n, v in values.items() if n in parameters or n in self.options}
        own = {n: v for n, v in values.items() if n not in options}
        return replace(self, options={**self.options, **options}, attributes=own)

    def check(self, arguments: Sequence[Argument]) -> None:
        """Check that exactly the tensors it needs have axes. Raises `QuestionError`."""
        parameters = self.parameters
        if parameters is None:
            return
        named = {n: p for n, p in parameters.items() if p.kind in _BY_NAME}
        takes = ", ".join(named) or "nothing"
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        for argument in arguments:
            known = argument.name in named or argument.name in self.of_module
            if not known and not open_ended:
                raise QuestionError(
                    f"{self.name} has no argument {argument.name}", f"it takes {takes}", self.place
                )
        unknown = next((n for n in self.options if n not in named and not open_ended), None)
        if unknown:
            raise QuestionError(
                f"{self.name} has no argument {unknown}", f"it takes {takes}", self.place
            )
        given = {*(argument.name for argument in arguments), *self.options}
        missing = [
            n for n, p in named.items() if p.default is inspect.Parameter.empty and n not in given
        ]
        if missing:
            said = ", ".join(f"{a.name}: {' '.join(a.axes)}" for a in arguments)
            more = ", ".join(f"{n}: N C" for n in missing)
            raise QuestionError(
                f"{self.name} needs {', '.join(missing)}, whose axes are missing",
                f'write --axes "{said}, {more}"; for a non-tensor argument its value: '
                f'--with "{missing[0]}=0.5"',
                self.place,
            )


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def subject_of(asked: str | Callable, options: Mapping[str, Any] | None = None) -> Subject:
    """Resolve ``FILE.py:function`` or an object; ``options`` are values of non-tensor arguments, of
    the function or of the class's constructor. Raises `QuestionError`.
    """
    subject = _subject_of(asked, dict(options or {}))
    known = vars(sys.modules.get(getattr(subject.function, "__module__", ""), torch))
    values = {
        n: v.found_in(known) if isinstance(v, NamedArguments) else v
        for n, v in subject.options.items()
    }
    return replace(subject, options=values)


def _subject_of(asked: str | Callable, options: dict[str, Any]) -> Subject:
    if not isinstance(asked, str):
        return _found(asked, _name_of(asked), None, options)
    path, colon, name = asked.rpartition(":")
    if not colon or not path.endswith(".py") or not name:
        raise QuestionError(
            f"{asked} does not name a function in a file", f"write {TENSOR_AND_NAME}"
        )
    module = run_file(Path(path), REMEDIES)
    if name not in vars(module):
        there = ", ".join(_offered(module)) or "not a function"
        raise QuestionError(f"{path} has no {name}", f"it has {there}")
    return _found(vars(module)[name], name, Path(path), options)


REMEDIES: Mapping[str, str] = {
    "No module named": "install it, or put the file next to this one",
    "": "fix that line; the file is executed first",
}


def _offered(module) -> list[str]:
    """The functions and modules that a file defines."""
    own = getattr(module, "__name__", "")
    return [
        name
        for name, value in vars(module).items()
        if (callable(value) and getattr(value, "__module__", "") == own)
        or isinstance(value, torch.nn.Module)
    ]


def _name_of(asked: object) -> str:
    asked = asked.func if isinstance(asked, partial) else asked
    name = getattr(asked, "__name__", type(asked).__name__)
    return "function" if name == "<lambda>" else name


def _found(value: object, name: str, path: Path | None, options: dict[str, Any]) -> Subject:
    """Raise `QuestionError` for an object that is neither a function nor a module."""
    if isinstance(value, type) and issubclass(value, torch.autograd.Function):
        raise QuestionError(
            f"{name} is an autograd Function, which already has a backward",
            "check it: gradform check FILE.py:NAME --axes ...; or import the function that its "
            "forward computes",
        )
    if isinstance(value, type) and issubclass(value, torch.nn.Module):
        value = _made(value, name, options)
    if isinstance(value, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        raise QuestionError(f"{name} is a TorchScript function", "name the original function")
    if not callable(value):
        raise QuestionError(f"{name} is {type(value).__name__}, not a function", "name a function")
    value = inspect.unwrap(value) if inspect.isfunction(value) else value
    owner = type(value) if isinstance(value, torch.nn.Module) else value
    owner = owner.func if isinstance(owner, partial) else owner
    target = owner.forward if isinstance(value, torch.nn.Module) else owner
    try:
        file = inspect.getsourcefile(target) or str(path)
        line = inspect.getsourcelines(target)[1]
    except (OSError, TypeError):
        file, line = str(path or "<unknown>"), 0
    doc = vars(owner).get("__doc__") if isinstance(owner, type) else owner.__doc__
    return Subject(value, name, Place(file, line), inspect.cleandoc(doc or ""), options)


def _made(of: type, name: str, options: dict[str, Any]) -> torch.nn.Module:
    """An instance of a module class; removes the constructor's arguments from ``options``."""
    takes = inspect.signature(of).parameters
    used = {n: options.pop(n) for n in [*options] if n in takes}
    needed = [
        n
        for n, p in takes.items()
        if p.default is inspect.Parameter.empty and p.kind in _BY_NAME and n not in used
    ]
    if needed:
        raise QuestionError(
            f"{name} is a class, and needs {', '.join(needed)}",
            f'write --with "{needed[0]}=..."; or create an instance in the file, '
            f"net = {name}(...), and use FILE.py:net",
        )
    return of(**used)


def _classes_of(module: torch.nn.Module) -> list[type]:
    """The user's and torch's classes in it, without nn.Module itself."""
    return [c for c in type(module).__mro__ if c not in torch.nn.Module.__mro__]
