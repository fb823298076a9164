"""Compares a Function that cannot be traced with a torch function of the same values, whose
derivative is the reference: in numbers, with all gradients needed, and each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from codegen.backwards.functions import FunctionSubject
from codegen.backwards.numeric import TRIED, WITHIN, distance
from codegen.importing.asked import GIVEN, LABELS, MASK, Argument, axes_of
from codegen.importing.examples import FIRST, axes_in, drawn
from codegen.importing.lengths import fitted
from derive.language.errors import QuestionError


@dataclass(frozen=True)
class InNumbers:
    """Distance of an argument's gradient from that of the reference, with the sizes."""

    name: str
    distance: float
    sizes: Mapping[str, int]
    returned: bool = True
    alone: bool = False  # where nothing else needs a gradient

    @property
    def outcome(self) -> str:
        return "agrees" if self.distance <= WITHIN else "wrong"

    def __str__(self) -> str:
        at = ", ".join(f"{axis} = {n}" for axis, n in self.sizes.items())
        at += f", where only {self.name} needs a gradient" if self.alone else ""
        if not self.returned:
            return f"numerically wrong: d{self.name} is None, but the derivative is not 0 at {at}"
        if self.outcome == "wrong":
            return f"numerically wrong: d{self.name} differs by {self.distance:.1e} at {at}"
        return f"agrees numerically, not proved: d{self.name}, within {self.distance:.1e}"


def in_numbers(
    subject: FunctionSubject,
    reference: Callable,
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
) -> list[InNumbers]:
    """Compare the Function with a torch function of the same values, at several sizes.

    Raises `QuestionError` where their values differ, or neither runs.
    """
    worst: dict[str, InNumbers] = {}
    axes = axes_in(arguments)
    for row in (FIRST, *TRIED):
        chosen = {a: row[i % len(row)] for i, a in enumerate(axes)} | dict(sizes)
        chosen = fitted(axes_of(arguments), chosen, sizes)
        for found in _beside(subject, reference, arguments, chosen):
            before = worst.get(found.name)
            if before is None or found.distance > before.distance:
                worst[found.name] = found
    if not worst:
        raise QuestionError(
            f"{subject.name} and its reference run at none of the tested sizes",
            "give --sizes, and mark labels and masks: labels: N int",
            subject.place,
        )
    return list(worst.values())


def _beside(subject, reference, arguments, sizes) -> Iterator[InNumbers]:
    """Compare with all gradients needed, then each alone; ``needs_input_grad`` is torch's own."""
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    places = [i for i, d in enumerate(differ) if d]
    tensors = drawn(arguments, sizes, torch.randn, {a.name: 2 for a in arguments})
    names = [a.name for a in arguments]
    for chosen in [places, *([i] for i in places if len(places) > 1)]:
        one, other = (
            [t.clone().requires_grad_(i in chosen) for i, t in enumerate(tensors)] for _ in "ab"
        )
        mine = _first(subject.of_class.apply(*subject.values(arguments, one)))
        theirs = _first(reference(**dict(zip(names, other, strict=True))))
        if mine.shape != theirs.shape or not distance(mine, theirs) <= WITHIN:
            raise QuestionError(
                f"{subject.name} and its reference return different values",
                "--like must name a function that computes the same",
                subject.place,
            )
        upstream = torch.randn(mine.shape, dtype=mine.dtype)
        for y in (mine, theirs):
            if y.requires_grad:  # 0 for an output that does not depend on it
                y.backward(upstream)
        for i in chosen:
            pair = (one[i], other[i])
            gap = distance(*(torch.zeros_like(t) if t.grad is None else t.grad for t in pair))
            there = one[i].grad is not None or gap == 0
            yield InNumbers(names[i], gap, sizes, there, alone=chosen != places)


def _first(found):
    return found[0] if isinstance(found, tuple) else found
