"""Find tensors to run a function with: sizes it accepts, and the kind of each argument.

All sizes differ, so that swapped axes are detected, and are unlikely to be typed as literals.
Relations between sizes (one twice another, or a product of two) are found by running the function.
So is which argument is a label or a mask, which no signature says.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import torch

from codegen.importing.asked import GIVEN, LABELS, MASK, Argument, axes_of
from codegen.importing.double import run_in_double
from codegen.importing.lengths import fitted, names_in, size_at, unfit
from codegen.importing.size_relations import (
    Recipe,
    SizesMustBeEqual,
    candidate_relations,
    is_merged,
    shaped,
    with_made,
)
from codegen.importing.subjects import Subject
from codegen.importing.trace import quiet, untraceable
from derive.language.errors import QuestionError

# Four times a prime: divisible by 2 and 4.
FIRST = (12, 20, 28, 44, 52, 68, 76, 92, 116)
SECOND = (16, 24, 40, 56, 88, 104, 136, 152, 184)  # taken from the end
LIKELY_LABEL = re.compile(r"label|target|ids|idx|index|^y$|token|class", re.I)
LIKELY_MASK = re.compile(r"mask|pad|keep|valid|cond", re.I)
LONGEST_SEARCH = 20.0  # seconds to search for sizes
MOST_ENTRIES = 2**23  # in all arguments together, for a run
MOST_MASKS = 6  # arguments tried as masks
IGNORED = -100  # torch's default ignore_index


@dataclass(frozen=True)
class Example:
    """Arguments with their kinds and sizes, and how to choose other sizes; ``held`` are the sizes
    of the module's parameters, ``asked`` those the user gave.
    """

    arguments: tuple[Argument, ...]
    sizes: Mapping[str, int]
    recipe: Recipe
    held: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[str, int] = field(default_factory=dict)
    ignoring: bool = False  # whether labels may be ignore_index

    def at(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """These sizes, with dependent sizes computed."""
        return with_made(fitted(axes_of(self.arguments), sizes, self.asked), self.recipe)

    def ways(self, sizes: Mapping[str, int]) -> list[dict[str, int]]:
        """The same sizes, and once more with the module's own."""
        found = [self.at(sizes), self.at({**sizes, **self.held})]
        return found if self.held else found[:1]


def axes_in(arguments: Sequence[Argument]) -> list[str]:
    """The names of all sizes."""
    return list(dict.fromkeys(name for axis in axes_of(arguments) for name in names_in(axis)))


def drawn(
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
    draw: Callable[..., torch.Tensor] = torch.rand,
    highest: Mapping[str, int] | None = None,
    seed: int = 0,
) -> list[torch.Tensor]:
    """A random tensor for each argument, between 0 and 1, which every function accepts; labels are
    below ``highest``, or 0 if that is unknown.
    """
    generator, found = torch.Generator().manual_seed(seed), []
    for argument in arguments:
        shape = [size_at(axis, sizes) for axis in argument.axes]
        if argument.kind == LABELS:
            high = (highest or {}).get(argument.name, 1)
            found.append(torch.randint(high, shape, generator=generator))
        elif argument.kind == MASK:
            found.append(torch.rand(shape, generator=generator) > 0.5)
        else:
            found.append(draw(shape, generator=generator, dtype=torch.float64))
    return found


def run(subject: Subject, arguments: Sequence[Argument], tensors: Sequence[torch.Tensor]):
    """Run the function, in float64 throughout."""
    with quiet(), run_in_double():
        return subject.module(arguments)(*tensors)


def leaves_out(subject: Subject, example: Example) -> bool:
    """Whether the function skips labels equal to torch's ignore_index."""
    tensors = drawn(example.arguments, example.sizes)
    labels = [i for i, a in enumerate(example.arguments) if a.kind == LABELS]
    for i in labels:
        tensors[i].view(-1)[0] = IGNORED
    try:
        run(subject, example.arguments, tensors)
    except Exception:
        return False
    return bool(labels)


def example_of(
    subject: Subject, arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> Example:
    """Sizes and kinds of arguments for which the function runs.

    Raises `QuestionError`, with the user's line, if there are none.
    """
    axes = axes_in(arguments)
    unknown = [axis for axis in sizes if axis not in axes]
    if unknown:
        raise QuestionError(
            f"--sizes: there is no axis {unknown[0]}", f"there are {' '.join(axes)}"
        )
    literal = {int(a) for arg in arguments for a in arg.axes if a.isdigit()}
    fixed = {
        a: n for arg in arguments for a, n in zip(arg.axes, _shape(subject, arg), strict=False)
    }
    known = {**{a: n for a, n in fixed.items() if a in axes}, **sizes}
    numbers = literal | {n for t in subject.of_module.values() for n in t.shape}
    search = _Search(subject, tuple(arguments), axes, numbers - {1})
    apart = _told_apart(known, [a for a in axes if a in sizes])
    changed = {a for a, n in apart.items() if n != known[a]}
    for chosen, free in ((apart, changed), (known, set())) if changed else ((known, set()),):
        example = search.found(chosen, sizes.keys() - free, free)
        if example is not None:
            return example
    raise untraceable(search.first or ValueError("no sizes to try"), subject.file) from None


def _told_apart(known: Mapping[str, int], asked: Sequence[str]) -> dict[str, int]:
    """Change sizes so that no two of those asked for are equal: axes with different names are told
    apart by size.
    """
    found = dict(known)
    for i, axis in enumerate(asked):
        while found[axis] in {found[a] for a in asked[:i]}:
            found[axis] *= 2
    return found


@dataclass
class _Search:
    """Searches for sizes and kinds for which a function runs; ``numbers`` are sizes the user gave,
    ``first`` the first exception raised.
    """

    subject: Subject
    arguments: tuple[Argument, ...]
    axes: Sequence[str]
    numbers: Collection[int]
    first: Exception | None = None
    end: float = field(default_factory=lambda: time.monotonic() + LONGEST_SEARCH)

    def found(
        self, known: Mapping[str, int], asked: Collection[str], free: Collection[str]
    ) -> Example | None:
        """Search with ``known`` sizes, those of ``free`` if possible, and others for the other
        axes; only ``asked`` sizes are fixed. Raises `SizesMustBeEqual`.
        """
        unused = itertools.chain(FIRST, itertools.count(FIRST[-1] + 1))
        unused = (n for n in unused if n not in {*known.values(), *self.numbers})
        base = {axis: known[axis] if axis in known else next(unused) for axis in self.axes}
        base = fitted(axes_of(self.arguments), base, known, apart=True)
        if missing := unfit(axes_of(self.arguments), base):
            raise QuestionError(
                f"--axes: {missing}, which is not a size", "choose others with --sizes"
            )
        held = {axis: known[axis] for axis in self.axes if axis in asked}
        open_axes = [a for a in self.axes if a not in known or a in free]
        for recipe in candidate_relations(open_axes, self.axes, self.arguments, self.numbers):
            if time.monotonic() > self.end:
                break
            example = Example(self.arguments, with_made(base, recipe), recipe, asked=held)
            if self._is_too_large(example.sizes):
                continue
            for kinds in _kinds(self.arguments):
                own = tuple(replace(a, kind=kinds.get(a.name, a.kind)) for a in self.arguments)
                try:
                    if recipe:
                        shaped(self.subject, own, example.sizes)
                    run(self.subject, own, drawn(own, example.sizes))
                except Exception as error:
                    if self.first is None or (_may_be_size(error) > _may_be_size(self.first)):
                        self.first = error
                    if not kinds and not _may_be_kind(error):
                        break
                    continue
                self._refuse_merged(recipe)
                own = tuple(map(_without_gradient, own))
                own = _without_gradients(self.subject, own, example.sizes)
                return replace(example, arguments=own)
            if not _may_be_size(self.first):
                break
        return None

    def _is_too_large(self, sizes: Mapping[str, int]) -> bool:
        """Whether no size is left, or too many entries."""
        if min(sizes.values(), default=1) < 1 or unfit(axes_of(self.arguments), sizes):
            return True
        shapes = ([size_at(axis, sizes) for axis in a.axes] for a in self.arguments)
        return sum(map(prod, shapes)) > MOST_ENTRIES

    def _refuse_merged(self, recipe: Recipe) -> None:
        """Refuse to merge axes that the user named differently or gave a fixed length."""
        of_module = bool(self.subject.of_module)
        merged = {
            a: s
            for a, s in recipe.items()
            if is_merged(a, s) and not (of_module and s.formula.is_Integer)
        }
        if merged:
            raise SizesMustBeEqual(self.subject, self.arguments, merged, self.first)


def _shape(subject: Subject, argument: Argument) -> tuple[int, ...]:
    own = subject.of_module.get(argument.name)
    return () if own is None else tuple(own.shape)


def _kinds(arguments: Sequence[Argument]) -> Iterator[dict[str, str]]:
    """All floats first, then the likely labels and masks, then single ones, then pairs."""
    names = [a.name for a in arguments if not a.kind and "." not in a.name]
    labels = [n for n in names if LIKELY_LABEL.search(n)]
    masks = [n for n in names if LIKELY_MASK.search(n)]
    rest = [n for n in names if n not in labels]
    tried = [(), tuple(labels), *((n,) for n in labels + rest), *itertools.combinations(names, 2)]
    masked = [(), tuple(masks), *((n,) for n in rest[:MOST_MASKS])]
    seen: list[dict[str, str]] = []
    for more, chosen in itertools.product(masked, tried):
        kinds = dict.fromkeys(more, MASK) | dict.fromkeys(chosen, LABELS)
        if kinds not in seen:
            seen.append(kinds)
            yield kinds


def _without_gradients(
    subject: Subject, arguments: tuple[Argument, ...], sizes: Mapping[str, int]
) -> tuple[Argument, ...]:
    """Mark the arguments for which torch computes no gradient as given."""
    tensors = drawn(arguments, sizes)

    def raises(chosen: Sequence[int]) -> bool:
        leaves = [t.clone().requires_grad_(i in chosen) for i, t in enumerate(tensors)]
        try:
            run(subject, arguments, leaves)
        except RuntimeError as error:
            return NO_GRADIENT in str(error)
        return False

    numbers = [i for i, t in enumerate(tensors) if t.is_floating_point()]
    if not raises(numbers):
        return arguments
    without = {i for i in numbers if raises([i])}
    return tuple(replace(a, kind=GIVEN) if i in without else a for i, a in enumerate(arguments))


def _without_gradient(argument: Argument) -> Argument:
    """The argument as a mask of numbers."""
    masks = not argument.kind and "." not in argument.name and LIKELY_MASK.search(argument.name)
    return replace(argument, kind=GIVEN) if masks else argument


OF_KINDS = ("Long", "long", "bool", "nteger", "int", "class prob", "arget", "dtype", "be cast")
OF_KINDS += ("ByteTensor", "indices", "Float", "Double", "double", "mask")
NO_GRADIENT = "is not differentiable with respect to"
OF_SIZES = ("size", "shape", "dimension", "must match", "view", "broadcast", "sizes", "einsum")
OF_SIZES += ("elements", "operand", "divisible", "AssertionError", "reshape", "split", "expand")


def _may_be_kind(error: Exception) -> bool:
    return any(word in str(error) for word in OF_KINDS)


def _may_be_size(error: Exception | None) -> bool:
    return isinstance(error, AssertionError) or any(word in str(error) for word in OF_SIZES)
