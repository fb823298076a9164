"""Separates the mathematics inside an autograd Function from what torch differentiates outside.

Derived is the loss of every entry, with every label counted where an ignored one has a loss of 0.
The sum, the divisor of a mean and the mask are lines of torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sympy import Expr

from codegen.lowering import Lowering
from codegen.program.steps import Default, Fill, SplitLabel, Step
from derive.derivation import derive_definition
from derive.language.nodes import Sum
from derive.language.notation.definition import NONE, SUM, Definition, Ignoring
from derive.language.notation.layout import layouts_of
from derive.language.notation.reduced import reduced
from derive.language.notation.specialised import with_every_label
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.proved import Proved

DIVISOR = "divisor"
DONE_OUTSIDE = (Default, Fill, SplitLabel)  # by the public function


@dataclass(frozen=True)
class Outside:
    """The mathematics in parts: ``inside`` is derived. ``ignoring`` are the labels that are masked
    outside. ``divisors`` are the lines of the divisor of each word of ``reductions`` but "none" and
    "sum"; the first word is the default.
    """

    inside: Definition
    ignoring: tuple[Ignoring, ...] = ()
    reductions: tuple[str, ...] = ()
    divisors: tuple[tuple[str, tuple[Step, ...]], ...] = ()


def outside_of(definition: Definition) -> Outside:
    """Split ``definition`` into the part to derive and the part left to torch."""
    if not definition.reductions:
        return _with_mask_outside(definition)
    words = [word for word, _ in definition.reductions]
    losses = dict(definition.reductions)[NONE].expression
    entries = replace(reduced(definition, NONE), reductions=(), reduction="", kept=None)
    divisors = {
        word: _divisor(statement.expression, losses)
        for word, statement in definition.reductions
        if word not in (NONE, SUM)
    }
    lines = {word: _lines(definition, e) for word, e in divisors.items()}
    found = _with_mask_outside(entries)
    return replace(found, reductions=tuple(words), divisors=tuple(lines.items()))


def proved_inside(
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Proved:
    """The proof of the mathematics inside: ``proved`` itself, where nothing stands outside."""
    if proved.definition == outside.inside:
        return proved
    return derive_definition(outside.inside, progress, limit)


def _with_mask_outside(definition: Definition) -> Outside:
    inside = with_every_label(definition)
    return Outside(definition) if inside is None else Outside(inside, definition.ignoring)


def _divisor(mean: Expr, losses: Tensor) -> Expr:
    """The divisor of the sum of the ``losses``."""
    return Sum(losses, *losses.axes) / mean


def _lines(definition: Definition, divisor: Expr) -> tuple[Step, ...]:
    """The lines that compute a divisor, from labels and masks."""
    own = {s.name: s for s in definition.statements}
    needed: list[str] = []

    def ask(e: Expr) -> None:
        for t in tensors_in(e):
            if t.name in own and t.name not in needed:
                ask(own[t.name].expression)
                needed.append(t.name)

    ask(divisor)
    layouts = layouts_of(definition)
    lowering = Lowering(layouts, definition.axes, definition.by_name, frozenset(needed))
    like = definition.wanted[0].name
    steps: list[Step] = []
    for name in needed:
        steps += lowering.accumulated(name, (own[name].expression,), layouts[name], like)
    steps += lowering.accumulated(DIVISOR, (divisor,), (), like)
    return tuple(steps)
