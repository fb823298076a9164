"""Candidate relations between sizes, in the order they are tried, and the refusal of a function
that needs sizes to be equal though the user named them differently.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from sympy import Expr, I, Integer, Symbol, solve
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)

from codegen.importing.asked import GUESSED, LABELS, MASK, Argument, axes_of
from codegen.importing.double import run_in_double
from codegen.importing.lengths import NAME, axis_said, is_made, length_of, size_at
from codegen.importing.subjects import Subject
from codegen.importing.trace import quiet, untraceable
from derive.language.errors import QuestionError

MULTIPLES = (2, 3, 4, 8)  # of another size
NEAR = (-1, 1, -2, 2)  # offsets from another size
MOST_WAYS = 600  # each costs a run on meta tensors
OF_VALUES = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)


@dataclass(frozen=True)
class DependentSize:
    """A size defined by an expression of others, or a number."""

    formula: Expr

    def __call__(self, sizes: Mapping[str, int]) -> int:
        return int(self.formula.subs({s: sizes[s.name] for s in self.formula.free_symbols}))


Recipe = Mapping[str, DependentSize]


def with_made(sizes: Mapping[str, int], recipe: Recipe) -> dict[str, int]:
    """These sizes, with dependent sizes computed."""
    found = dict(sizes)
    for _ in recipe:  # dependent sizes may depend on each other
        found |= {axis: size(found) for axis, size in recipe.items()}
    return found


def candidate_relations(
    free: Sequence[str],
    axes: Sequence[str],
    arguments: Sequence[Argument],
    numbers: Collection[int],
) -> Iterator[Recipe]:
    """Yield None, then one dependent size (an expression of others or one of ``numbers``), then
    two. Equality of two sizes that the user named differently comes after everything equally
    simple.
    """
    known = [Integer(n) for n in sorted(numbers)]
    lengths = [length_of(axis) for axis in axes_of(arguments) if is_made(axis)]
    fixed = [(axis, DependentSize(n)) for axis in free for n in known]
    fixed += _solved(free, lengths, known)
    of_numbers = [(axis, DependentSize(k * n)) for axis in free for n in known for k in MULTIPLES]
    multiples, near = (
        [(axis, DependentSize(of(a, k))) for axis in free for k in each for a in axes if a != axis]
        for of, each in ((_times, MULTIPLES), (_plus, NEAR))
    )
    others = {axis: [a for a in axes if a != axis] for axis in free}
    products = [
        (axis, DependentSize(Symbol(a) * Symbol(b)))
        for axis in free
        for a, b in itertools.combinations_with_replacement(others[axis], 2)
    ]
    equal = [(axis, DependentSize(Symbol(a))) for axis in free for a in axes[: axes.index(axis)]]
    unnamed = [(axis, made) for axis, made in equal if not is_merged(axis, made)]
    # a module's parameters have fixed sizes; a literal size is the user's
    of_module = any(axis.startswith(GUESSED) for axis in axes)
    single = [*fixed * of_module, *multiples, *of_numbers, *products, *unnamed, *near]
    single += _solved(free, lengths, [*lengths, *(Symbol(a) for a in axes if a not in free)])
    merging = [pair for pair in equal if pair not in unnamed] + fixed * (not of_module)
    found = itertools.chain(
        [{}],
        ({axis: made} for axis, made in single),
        ({axis: made} for axis, made in merging),
        _by_position(free, arguments),
        _pairs(fixed * of_module),
        _pairs(merging),
        _pairs([*multiples, *products, *unnamed]),
    )
    return itertools.islice(found, MOST_WAYS)


def _solved(
    free: Sequence[str], lengths: Sequence[Expr], others: Sequence[Expr]
) -> list[tuple[str, DependentSize]]:
    """Solve for sizes at which these lengths equal others."""
    return [
        (str(name), DependentSize(found))
        for length, other in itertools.product(lengths, others)
        for name in sorted(length.free_symbols - other.free_symbols, key=str)
        if str(name) in free
        for found in solve(length - other, name)
        if not found.has(I)
    ]


def _times(axis: str, k: int) -> Expr:
    return k * Symbol(axis)


def _plus(axis: str, k: int) -> Expr:
    return k + Symbol(axis)


def _pairs(single: Sequence[tuple[str, DependentSize]]) -> Iterator[Recipe]:
    """Pairs of independent relations."""
    for (a, one), (b, other) in itertools.combinations(single, 2):
        apart = Symbol(a) not in other.formula.free_symbols
        if a != b and apart and Symbol(b) not in one.formula.free_symbols:
            yield {a: one, b: other}


def _by_position(free: Sequence[str], arguments: Sequence[Argument]) -> Iterator[Recipe]:
    """Equate axes at the same broadcast position in all tensors."""
    found: dict[str, DependentSize] = {}
    for place in range(max((a.rank for a in arguments), default=0)):
        there = [a.axes[-1 - place] for a in arguments if a.rank > place]
        there = list(dict.fromkeys(axis for axis in there if axis.isidentifier()))
        found |= {
            a: DependentSize(Symbol(there[0])) for a in there[1:] if a in free and a not in found
        }
    if len(found) > 1:
        yield found


def is_merged(axis: str, made: DependentSize) -> bool:
    """Whether a relation merges an axis the user named with another one or a number."""
    if axis.startswith(GUESSED):
        return False
    return made.formula.is_Integer or (
        made.formula.is_Symbol and not made.formula.name.startswith(GUESSED)
    )


class SizesMustBeEqual(QuestionError):
    """A function runs only if sizes are equal that the user named differently."""

    def __init__(
        self,
        subject: Subject,
        arguments: Sequence[Argument],
        merged: Recipe,
        error: Exception | None,
    ):
        self.equal = " and ".join(f"{axis} = {made.formula}" for axis, made in merged.items())
        raised = untraceable(error or ValueError("it does not run"), subject.file)
        self.raised = raised.problem
        super().__init__(
            f"{subject.name} runs only where {self.equal}; at other sizes: {raised.problem}",
            f"fix that line, or, if they are one axis, say so: {said(arguments, merged)}",
            raised.place or subject.place,
        )

    def verdict(self, name: str) -> str:
        """The same refusal for a Function that has a backward."""
        place = self.place
        return (
            f"wrong: the axes of {name}: it runs only where {self.equal}, line {place.line}\n"
            f"    {linecache.getline(place.file, place.line).strip()}\n    {self.raised}\n"
            f"{self.remedy}. No gradient was checked"
        )


def said(arguments: Sequence[Argument], merged: Recipe) -> str:
    """The axes as typed, with one name for equal ones."""
    names = {axis: str(made.formula) for axis, made in merged.items()}
    renamed = [NAME.sub(lambda m: names.get(m[0], m[0]), " ".join(a.axes)) for a in arguments]
    named = [" ".join(axis_said(axis, "") for axis in axes.split()) for axes in renamed]
    kinds = [f" {a.kind}" if a.kind else "" for a in arguments]
    pairs = zip(arguments, named, kinds, strict=True)
    return f'--axes "{", ".join(f"{a.name}: {axes}{kind}" for a, axes, kind in pairs)}"'


def shaped(subject: Subject, arguments: Sequence[Argument], sizes: Mapping[str, int]) -> None:
    """Run on meta tensors only, and raise what the function raises at these sizes."""
    try:
        with quiet(), FakeTensorMode(allow_non_fake_inputs=True), run_in_double():
            subject.module(arguments)(*(_empty(a, sizes) for a in arguments))
    except OF_VALUES:
        return


def _empty(argument: Argument, sizes: Mapping[str, int]) -> torch.Tensor:
    dtype = {LABELS: torch.int64, MASK: torch.bool}.get(argument.kind, torch.float64)
    return torch.empty([size_at(axis, sizes) for axis in argument.axes], dtype=dtype)
