"""``gradform.check``: compares a formula with a Forward, or checks a torch.autograd.Function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from codegen.called.functions import DerivedFunction
from codegen.importing.asked import in_python
from derive.language.errors import QuestionError

if TYPE_CHECKING:
    import torch

    from codegen.backwards.answered import FunctionVerdict
    from codegen.backwards.several import SeveralVerdicts
    from derive.claims.checking.verdict import Verdict
    from derive.language.notation.forward import Forward


@overload
def check(
    forward: type[Forward] | str | Path,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = 1,
) -> Verdict:
    """Long: the arguments are those of the command, and all but two are optional."""


@overload
def check(
    forward: type[torch.autograd.Function],
    axes: str | Mapping[str, str],
    *,
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
    like: str | Callable = "",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> FunctionVerdict | SeveralVerdicts:
    """Long: the arguments are those of the command, and all but two are optional."""


def check(forward: Any, *args: Any, **kwargs: Any) -> Any:
    """Check a gradient that somebody wrote: a formula, or the backward of an autograd Function.

    ``check(MyForward, "dy*gain", of="x")`` says whether that is the gradient:
    `derive.gradient.orders.check` has all arguments. ``check(MyFunction, "x: N C, gain: C")`` says
    whether the backward of a ``torch.autograd.Function`` is the gradient of its forward, where
    ``axes`` names the axes of its tensors; ``sizes``, ``options`` and ``like`` are as in
    `check_function`, ``limit`` is in seconds. The verdict has ``right`` and ``outcome``; ``print``
    shows all of it.

    Raises `QuestionError` for what is not understood.
    """
    asked = _class_of(forward)
    if asked is None:
        from derive.gradient.orders.check import check as check_formula

        formula_of = forward.forward if isinstance(forward, DerivedFunction) else forward
        return check_formula(formula_of, *args, **kwargs)
    return _check_function(asked, *args, **kwargs)


def _class_of(asked: object) -> type | None:
    """The autograd Function, given as its class or its ``apply``; None for others."""
    torch = sys.modules.get("torch")
    asked = asked if isinstance(asked, type) else getattr(asked, "__self__", None)
    if torch is None or not isinstance(asked, type):
        return None
    return asked if issubclass(asked, torch.autograd.Function) else None


def _check_function(
    asked: type,
    axes: str | Mapping[str, str] = "",
    *,
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
    like: str | Callable = "",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> FunctionVerdict | SeveralVerdicts:
    """Long: as above."""
    from codegen.backwards.checking import check_function
    from derive.running.limits import limited, seconds_of

    limit = seconds_of(limit)
    try:
        with limited(limit):
            return check_function(asked, axes, sizes, limit, progress, like, options)
    except QuestionError as error:
        raise in_python(error) from None
