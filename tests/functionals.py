"""A generated function beside torch's of the same name: values and all gradients.

`Functional` says which two functions those are and what they take; `assert_agrees` compares them on
arguments that somebody else made, `assert_agrees_on` on random ones of a shape, a layout and a
dtype. The reference is torch in float64 on the same rounded numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module

import torch
from references import drawing
from torch import Tensor

# Of the error in a result or gradient, relative to the largest entry of the reference.
TOLERANCES = {
    torch.float64: 1e-10,
    torch.float32: 2e-5,
    torch.bfloat16: 4e-2,
    torch.float16: 8e-3,
}
OF_AUTOGRAD = 4  # times the error of torch's own, where the answer cancels to zero
LAYOUTS = ("contiguous", "transposed", "strided", "expanded upstream")
SHAPES = ((7,), (4, 3), (2, 5, 3), (3, 2, 4, 5), (2, 3, 2, 4, 3))  # rank 1 to 5

REDUCTIONS = ("mean", "sum", "none")

Draw = Callable[..., Tensor]
Arguments = Mapping[str, Tensor | None]


@dataclass(frozen=True)
class Functional:
    """A generated function, its reference, and random arguments for both.

    Both take what ``arguments`` draws for a shape, in that order, and every one of ``options``
    (numbers) by the same names. ``optional`` arguments may be left out, ``constant`` ones have no
    gradient although they are floating point. Ours is called with the ``reduction``, if there is
    one beside the default.
    """

    name: str
    reference: Callable[..., Tensor]
    arguments: Callable[[Draw, tuple[int, ...]], Arguments]
    options: tuple[Mapping[str, float], ...] = ({},)
    optional: frozenset[str] = frozenset()
    constant: frozenset[str] = frozenset()
    shapes: tuple[tuple[int, ...], ...] = field(default=SHAPES)
    reduction: str = ""

    def __str__(self) -> str:
        return f"{self.name}_{self.reduction}" if self.reduction else self.name

    @cached_property
    def ours(self) -> Callable[..., Tensor]:
        function = getattr(import_module(f"gradform.generated.{self.name}"), self.name)
        return partial(function, reduction=self.reduction) if self.reduction else function

    def ways(self, arguments: Arguments) -> Iterator[tuple[Mapping[str, float], Arguments]]:
        """(options, arguments), so that each option is met with all that is optional, without each
        of it, and without any.
        """
        each = [{name} for name in arguments if name in self.optional]
        left_out = [set(), *each, self.optional] if len(each) > 1 else [set(), *each]
        for options in self.options:
            for absent in left_out:
                yield options, {n: None if n in absent else t for n, t in arguments.items()}


def reduced(name, reference, arguments, *, reductions=REDUCTIONS, **more) -> list[Functional]:
    """The functional with each of the reductions, of which the mean is not asked for."""
    named = {word: {"reduction": word} if word != "mean" else {} for word in reductions}
    return [
        Functional(name, partial(reference, reduction=word), arguments, **own, **more)
        for word, own in named.items()
    ]


def values(name: str, *chosen: float) -> tuple[Mapping[str, float], ...]:
    """The default of an option, and each of these values of it."""
    return ({}, *({name: value} for value in chosen))


@dataclass(frozen=True)
class Outcome:
    """A value, and the gradients of the arguments by their names."""

    value: Tensor
    gradients: dict[str, Tensor]

    def results(self) -> dict[str, Tensor]:
        return {"value": self.value} | {f"d{name}": g for name, g in self.gradients.items()}


def outcome(
    function, arguments: Arguments, options, upstream: Tensor | None, constant=frozenset()
) -> Outcome:
    """The value of ``function`` and its gradients under the upstream gradient (ones for None)."""
    leaves = {
        name: tensor if tensor is None else tensor.detach() for name, tensor in arguments.items()
    }
    asked = {name: t for name, t in leaves.items() if is_floating(t) and name not in constant}
    for leaf in asked.values():
        leaf.requires_grad_()
    value = function(*leaves.values(), **options)
    upstream = torch.ones_like(value) if upstream is None else upstream.to(value.dtype)
    found = torch.autograd.grad(value, list(asked.values()), upstream, materialize_grads=True)
    return Outcome(value.detach(), dict(zip(asked, found, strict=True)))


def assert_agrees(
    functional: Functional, arguments: Arguments, options=None, upstream: Tensor | None = None
) -> None:
    """Values and gradients are those of the reference, within the tolerance of their dtype or the
    smallest number with all its digits; the upstream gradient is random where none is given.
    """
    options = options or {}
    if upstream is None:
        upstream = drawn_upstream(functional, arguments, options, drawing(0))
    dtype = next(t.dtype for t in arguments.values() if is_floating(t))
    doubled = {n: t.double() if is_floating(t) else t for n, t in arguments.items()}
    constant = functional.constant
    got = outcome(functional.ours, arguments, options, upstream, constant).results()
    expected = outcome(functional.reference, doubled, options, upstream, constant).results()
    for name, reference in expected.items():
        assert got[name].dtype == dtype, f"{name} is of {got[name].dtype}, not of {dtype}"
        assert got[name].shape == reference.shape, f"{name}: {got[name].shape}, {reference.shape}"
        error, scale = distance(got[name], reference), largest_finite(reference)
        allowed = max(TOLERANCES[dtype] * scale, torch.finfo(dtype).tiny)
        if error <= allowed:
            continue
        torchs = error_of_autograd(functional, arguments, options, upstream, name)
        allowed = max(allowed, OF_AUTOGRAD * torchs)
        assert error <= allowed, (
            f"{functional}({options}): {name} in {dtype} is {error:.2g} away, allowed is "
            f"{allowed:.2g}, for {arguments}:\n{got[name]}\n{reference}"
        )


def error_of_autograd(
    functional: Functional, arguments: Arguments, options, upstream, name: str
) -> float:
    """How far torch's own result lies from the one in float64, which has no finer one to lie from:
    its error is taken to be that of float32, in units of float64.
    """
    dtype = next(t.dtype for t in arguments.values() if is_floating(t))
    coarse = torch.float32 if dtype == torch.float64 else dtype

    def evaluated(*formats):
        converted = dict(arguments)
        for format in formats:
            converted = {n: t.to(format) if is_floating(t) else t for n, t in converted.items()}
        constant = functional.constant
        found = outcome(functional.reference, converted, options, upstream, constant)
        return found.results()[name]

    error = distance(evaluated(coarse), evaluated(coarse, torch.float64))
    return error * torch.finfo(dtype).eps / torch.finfo(coarse).eps


def is_floating(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.is_floating_point()


def distance(got: Tensor, reference: Tensor) -> float:
    """The largest difference; infinite where one is infinite or NaN and the other is not that."""
    got, finite = got.double(), reference.isfinite()
    same = (got == reference) | (got.isnan() & reference.isnan())
    if not bool((same | (finite & got.isfinite())).all()):
        return float("inf")
    return (got - reference)[finite].abs().max().item() if bool(finite.any()) else 0.0


def largest_finite(reference: Tensor) -> float:
    finite = reference[reference.isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


def assert_agrees_on(
    functional: Functional,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    layout: str = "contiguous",
    seed: int = 0,
) -> None:
    """The two agree on random arguments, with each of the options, with what is optional and
    without.
    """
    draw = drawing(seed)
    drawn = functional.arguments(draw, shape)
    rounded = {
        name: laid_out(t.to(dtype) if is_floating(t) else t, layout) for name, t in drawn.items()
    }
    for options, arguments in functional.ways(rounded):
        upstream = drawn_upstream(functional, arguments, options, draw, layout)
        assert_agrees(functional, arguments, options, upstream)


def drawn_upstream(functional, arguments, options, draw: Draw, layout="contiguous") -> Tensor:
    """A random upstream gradient for these arguments; a single number, seen everywhere, where the
    layout says so.
    """
    with torch.no_grad():
        like = functional.reference(*arguments.values(), **options)
    if layout == "expanded upstream":
        return draw(1).squeeze().to(like.dtype).expand(like.shape)
    upstream = draw(max(like.numel(), 1))[: like.numel()].reshape(like.shape)
    return laid_out(upstream.to(like.dtype), layout)


def laid_out(tensor: Tensor, layout: str) -> Tensor:
    """The same numbers in another order of memory, or with gaps between them."""
    if layout == "transposed":
        backwards = tuple(reversed(range(tensor.dim())))
        return tensor.permute(backwards).contiguous().permute(backwards)
    if layout == "strided" and tensor.dim():
        return tensor.repeat_interleave(2, -1)[..., ::2]
    return tensor.clone(memory_format=torch.contiguous_format)
