"""Tensors to run a function with: which sizes it takes, and what each argument is.

Sizes are all different, so that axes that are swapped show, and are such as nobody types. What a
function needs of them beyond that (one is twice another, or the product of two) is found by running
it. So is what is a label and what is a mask, which no signature says.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from codegen.importing.asked import GIVEN, LABELS, MASK, Argument
from codegen.importing.double import run_in_double
from codegen.importing.subjects import Subject
from codegen.importing.trace import quiet, untraceable
from derive.language.errors import QuestionError

# Four times a prime: they have halves and quarters.
FIRST = (12, 20, 28, 44, 52, 68, 76, 92, 116)
SECOND = (16, 24, 40, 56, 88, 104, 136, 152, 184)  # taken from the last: other sizes, another order
LIKELY_LABEL = re.compile(r"label|target|ids|idx|index|^y$|token|class", re.I)
LIKELY_MASK = re.compile(r"mask|pad|keep|valid|cond", re.I)
MOST_RUNS = 400  # of a function, for sizes that it takes
MOST_MASKS = 6  # arguments of which each is tried as a mask
MULTIPLES = (2, 3, 4)  # of another size, that a size is tried to be
IGNORED = -100  # torch's ignore_index where none is passed

Size = Callable[[Mapping[str, int]], int]
Recipe = Mapping[str, Size]  # sizes that are made of others


@dataclass(frozen=True)
class Number:
    """A size that is this number, as a parameter of the module has it."""

    number: int

    def __call__(self, sizes: Mapping[str, int]) -> int:
        return self.number


@dataclass(frozen=True)
class Example:
    """Arguments, each with its kind, the sizes they have, and how to choose others; ``held`` are
    those of the module's parameters, which it may also have as numbers.
    """

    arguments: tuple[Argument, ...]
    sizes: Mapping[str, int]
    recipe: Recipe
    held: Mapping[str, int]
    ignoring: bool = False  # whether labels may be torch's ignore_index

    def at(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """These sizes, with what is made of them."""
        return {**sizes, **{axis: size(sizes) for axis, size in self.recipe.items()}}

    def ways(self, sizes: Mapping[str, int]) -> list[dict[str, int]]:
        """The same, as they are and with the module's own."""
        found = [self.at(sizes), self.at({**sizes, **self.held})]
        return found if self.held else found[:1]


def axes_in(arguments: Sequence[Argument]) -> list[str]:
    return list(dict.fromkeys(a for arg in arguments for a in arg.axes if not a.isdigit()))


def drawn(
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
    draw: Callable[..., torch.Tensor] = torch.rand,
    highest: Mapping[str, int] | None = None,
    seed: int = 0,
) -> list[torch.Tensor]:
    """A tensor for each argument, of numbers between 0 and 1, which every function takes; labels
    below ``highest``, 0 where that is not known."""
    generator, found = torch.Generator().manual_seed(seed), []
    for argument in arguments:
        shape = [int(a) if a.isdigit() else sizes[a] for a in argument.axes]
        if argument.kind == LABELS:
            high = (highest or {}).get(argument.name, 1)
            found.append(torch.randint(high, shape, generator=generator))
        elif argument.kind == MASK:
            found.append(torch.rand(shape, generator=generator) > 0.5)
        else:
            found.append(draw(shape, generator=generator, dtype=torch.float64))
    return found


def run(subject: Subject, arguments: Sequence[Argument], tensors: Sequence[torch.Tensor]):
    """What the function returns, in float64 all the way."""
    with quiet(), run_in_double():
        return subject.module(arguments)(*tensors)


def leaves_out(subject: Subject, example: Example) -> bool:
    """Whether the function takes labels that are torch's ignore_index."""
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
    """Sizes and kinds for which the function runs.

    Raises `QuestionError`, with the user's line, where there are none.
    """
    axes = axes_in(arguments)
    unknown = [axis for axis in sizes if axis not in axes]
    if unknown:
        raise QuestionError(
            f"--sizes: there is no axis {unknown[0]}", f"there are {' '.join(axes)}"
        )
    usual = dict(zip(axes, itertools.chain(FIRST, itertools.count(FIRST[-1] + 1)), strict=False))
    fixed = {
        a: n for arg in arguments for a, n in zip(arg.axes, _shape(subject, arg), strict=False)
    }
    known = {**{a: n for a, n in fixed.items() if not a.isdigit()}, **sizes}
    first: Exception | None = None
    for recipe in itertools.islice(_recipes(axes, known, subject), MOST_RUNS):
        base = {**usual, **known}
        example = Example(tuple(arguments), base, recipe, {})
        chosen = example.at(base)
        if any(n < 1 for n in chosen.values()):
            continue
        for kinds in _kinds(arguments):
            own = tuple(replace(a, kind=kinds.get(a.name, a.kind)) for a in arguments)
            try:
                run(subject, own, drawn(own, chosen))
                own = _without_gradients(subject, tuple(map(_without_gradient, own)), chosen)
                return Example(own, chosen, recipe, {})
            except Exception as error:
                first = first or error
                if not kinds and not _may_be_kind(error):
                    break
        if not _may_be_size(first):
            break
    raise untraceable(first or ValueError("no sizes to try"), subject.file) from None


def _shape(subject: Subject, argument: Argument) -> tuple[int, ...]:
    own = subject.of_module.get(argument.name)
    return () if own is None else tuple(own.shape)


def _recipes(axes: list[str], known: Mapping[str, int], subject: Subject) -> Iterator[Recipe]:
    """None, then one size that is made of others, then two."""
    single: list[tuple[str, Size]] = []
    of_module = sorted({n for t in subject.of_module.values() for n in t.shape if n > 1})
    open_axes = [a for a in axes if a not in known]
    single += [(axis, Number(n)) for axis, n in itertools.product(open_axes, of_module)]
    for axis in open_axes:
        others = [a for a in axes if a != axis]
        for a, b in itertools.combinations(others, 2):
            single.append((axis, lambda s, a=a, b=b: s[a] * s[b]))
        for a in others:
            for k in MULTIPLES:
                single.append((axis, lambda s, a=a, k=k: k * s[a]))
            single.append((axis, lambda s, a=a: s[a] ** 2))
        for a in others:
            single.append((axis, lambda s, a=a: s[a]))
    yield {}
    yield from ({axis: size} for axis, size in single)
    numbers = [pair for pair in single if isinstance(pair[1], Number)]
    for chosen in (numbers, single):
        for (a, one), (b, other) in itertools.combinations(chosen, 2):
            if a != b:
                yield {a: one, b: other}


def _kinds(arguments: Sequence[Argument]) -> Iterator[dict[str, str]]:
    """All numbers, then the likely labels and masks, then each alone, then pairs."""
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
    """What torch has no gradient of is given."""
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
    """A mask of numbers."""
    masks = not argument.kind and "." not in argument.name and LIKELY_MASK.search(argument.name)
    return replace(argument, kind=GIVEN) if masks else argument


OF_KINDS = ("Long", "long", "bool", "nteger", "int", "class prob", "arget", "dtype", "cast")
OF_KINDS += ("ByteTensor", "indices", "Float", "Double", "double", "mask")
NO_GRADIENT = "is not differentiable with respect to"
OF_SIZES = ("size", "shape", "dimension", "must match", "view", "broadcast", "sizes", "einsum")
OF_SIZES += ("operand", "divisible", "AssertionError", "reshape", "split", "expand")


def _may_be_kind(error: Exception) -> bool:
    return any(word in str(error) for word in OF_KINDS)


def _may_be_size(error: Exception | None) -> bool:
    return isinstance(error, AssertionError) or any(word in str(error) for word in OF_SIZES)
