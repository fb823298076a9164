"""The options of a Function, and their values that are checked.

An option is an argument of forward that is not a tensor. Its values are its default, those that the
code compares it with, and another one unless the default is another. A tensor that may be None is
an option, too: left out or not.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from codegen.backwards.compared import ComparedOptions, compared_in
from codegen.backwards.functions import FunctionSubject
from codegen.importing.asked import Argument, NamedArguments
from derive.language.errors import QuestionError

MOST = 16  # combinations of values that are checked
SOME_FLOAT = 0.75  # where None or a float is taken
ANY_OTHER = "any_other"  # a text that is none of those that the code knows
ASK = 'write --axes "{name}: N C" for a tensor, and --with "{name}=..." for any other value'


@dataclass(frozen=True)
class Setting:
    """A value of each option, and the arguments that are tensors with it."""

    options: Mapping[str, Any]
    arguments: tuple[Argument, ...]
    varied: tuple[str, ...]  # the options that have several values, in order
    unsaid: bool = False  # whether a value is one that the user's code does not know

    def __str__(self) -> str:
        return ", ".join(said(name, self.options.get(name, GIVEN)) for name in self.varied)


GIVEN = object()  # of a tensor that may be None: it is there


def said(name: str, value: Any) -> str:
    """``reduction="mean"``, as the user types it."""
    if value is GIVEN:
        return f"{name} given"
    if value == ANY_OTHER:
        return f"any other {name}"
    if isinstance(value, Enum):
        return f"{name}={type(value).__name__}.{value.name}"
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"


@dataclass(frozen=True)
class Settings:
    """The settings to check, the first with all defaults; ``only`` are the options with a single
    value, and ``apart`` says that not every combination of the others is checked.
    """

    each: tuple[Setting, ...]
    only: Mapping[str, str] = field(default_factory=dict)  # each with its value in words
    apart: bool = False


def settings_of(
    subject: FunctionSubject, arguments: Sequence[Argument], chosen: Mapping[str, Any]
) -> Settings:
    """All settings to check; ``chosen`` are the values set by the user.

    Raises `QuestionError` for an option of which no value is known.
    """
    names = [p.name for p in subject.parameters]
    names_known = vars(sys.modules[subject.of_class.__module__])
    chosen = {
        n: v.found_in(names_known) if isinstance(v, NamedArguments) else v
        for n, v in chosen.items()
    }
    asked = [*chosen, *(a.name for a in arguments)]
    unknown = next((name for name in asked if name not in names), None)
    if unknown:
        takes = ", ".join(names)
        raise QuestionError(
            f"{subject.name} has no argument {unknown}", f"it takes {takes}", subject.place
        )
    compared = compared_in(subject.of_class, names, subject.has_setup)
    given = {a.name for a in arguments}
    values: dict[str, list[Any]] = {}
    for p in subject.parameters:
        if p.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if p.name in chosen:
            values[p.name] = [chosen[p.name]]
        elif p.name in given:
            left_out = None in compared.values.get(p.name, [None]) and p.default is None
            values |= {p.name: [GIVEN, None]} if left_out else {}
        else:
            values[p.name] = _values(p, compared, _annotation(subject, p.name))
    lacking = [name for name, own in values.items() if not own]
    if lacking:
        raise QuestionError(
            f"{subject.name} needs {', '.join(lacking)}, whose axes are missing",
            ASK.format(name=lacking[0]),
            subject.place,
        )
    return _settings(values, tuple(arguments), compared)


def _annotation(subject: FunctionSubject, name: str) -> Any:
    try:
        return typing.get_type_hints(inspect.unwrap(subject.of_class.forward)).get(name)
    except Exception:
        return None


def _values(p: inspect.Parameter, compared: ComparedOptions, annotation: Any) -> list[Any]:
    """Values of an option, its default first; empty if none can be found."""
    has_default = p.default is not inspect.Parameter.empty
    found = [p.default] if has_default else []
    torchs = compared.torchs.get(p.name, ())
    known = _different([*compared.values.get(p.name, ()), *torchs])
    known = [v for v in known if v is not None or has_default or len(known) > 1]
    met = next((v for v in (p.default, *known) if isinstance(v, Enum)), None)
    members = annotation if met is None else type(met)
    if isinstance(members, type) and issubclass(members, Enum):
        return _different([*found, *members])
    if p.default is None and float in typing.get_args(annotation):
        known.append(SOME_FLOAT)
    if typing.get_origin(annotation) is typing.Literal:
        known += typing.get_args(annotation)
    if isinstance(p.default, bool) or annotation is bool:
        return _different([*found, *([False, True] if not found else [not p.default])])
    if p.name in compared.truths and not has_default and not known:
        known += [False, True]
    known += _beyond(p.default, compared.bounds.get(p.name, ()))
    if p.name in compared.truths and type(p.default) in (int, float):
        known.append(type(p.default)(0 if p.default else 1))
    return _different([*found, *known, *_other(p.default if has_default else None, known)])


def _beyond(default: Any, bounds: Sequence[Any]) -> list[Any]:
    """A number at every bound, and one on the side where the default is not."""
    found = []
    for bound in (b for b in bounds if isinstance(b, (int, float))):
        is_number = isinstance(default, (int, float))
        found += [bound, bound - 1 if is_number and default > bound else bound + 1]
    return [type(default)(n) if type(default) in (int, float) else n for n in found]


def _other(default: Any, known: Sequence[Any]) -> list[Any]:
    """A value other than the known ones, unless the default is one."""
    if default is not None and default not in known:
        return []
    if any(isinstance(v, str) for v in known):
        return [ANY_OTHER]
    numbers = [v for v in known if type(v) in (int, float)]
    return [max(numbers) + 1] if numbers else []


def _different(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(type(v) is type(value) and v == value for v in found):
            found.append(value)
    return found


def _settings(
    values: Mapping[str, list[Any]], arguments: tuple[Argument, ...], compared: ComparedOptions
) -> Settings:
    several = tuple(name for name, own in values.items() if len(own) > 1)
    only = {name: said(name, own[0]) for name, own in values.items() if len(own) == 1}
    found = list(itertools.islice(_combined(values), MOST + 1))
    apart = len(found) > MOST
    if apart:
        found = [{name: own[0] for name, own in values.items()}]
        found += [{**found[0], name: v} for name in several for v in values[name][1:]]
    each = []
    for options in found:
        tensors = {name for name, value in options.items() if value is GIVEN}
        own = {name: value for name, value in options.items() if name not in tensors}
        there = tuple(a for a in arguments if a.name not in own)
        unsaid = any(
            value == ANY_OTHER
            or (
                value in compared.torchs.get(name, ())
                and value not in compared.values.get(name, ())
            )
            for name, value in own.items()
        )
        each.append(Setting(own, there, several, unsaid))
    return Settings(tuple(each), only, apart)


def _combined(values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))
