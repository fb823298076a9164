"""Uncertainty of autograd's results from rounding.

Every operation is repeated with its result moved by a unit in the last place, forward and backward;
within the resulting movement, autograd can promise nothing (stochastic arithmetic: Vignes 1993,
Parker 1997). Moving the inputs would not do: 1 - tanh(9)**2 hardly depends on a last place of 9,
but most of its digits are gone in the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SAMPLES = 4  # each takes as long as finding it once more
FREQUENCY = 1e6  # so high that the signs of numbers near each other have no pattern
FACTOR = 4.0  # a few samples seldom meet the worst case, and the code that is compared rounds too

ADDED = (torch.ops.aten.add, torch.ops.aten.sub)  # a term may be lost beside the other
SUMS = torch.ops.aten.sum  # its rounding is that of its terms: they may cancel in it


class LastPlace(TorchDispatchMode):
    """Moves the result of every operation that rounds up or down by a unit in the last place.

    The direction is a function of the value and the sample, so that equal values stay equal: ties
    are decided as before. Integers computed from integers are exact, and stay, and so does an
    operand with its sign changed: moved again, it would be moved back.
    """

    def __init__(self, sample: int):
        super().__init__()
        self.sample = sample

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation.overloadpacket is SUMS:
            args = (self.moved(args[0], args[:1]), *args[1:])
        result = operation(*args, **kwargs or {})
        if torch.Tag.pointwise not in operation.tags:
            return result
        moved = self.moved(result, args)
        if operation.overloadpacket in ADDED or moved is result:
            return moved
        for operand in args:
            if isinstance(operand, Tensor) and operand.is_floating_point():
                moved = torch.where(result.abs() == operand.abs(), result, moved)
        return moved

    def moved(self, value: Tensor, made_of: tuple) -> Tensor:
        if not value.is_floating_point() or (_whole(value) and all(map(_whole, made_of))):
            return value
        mantissa, _ = torch.frexp(value)
        up_or_down = torch.sin(FREQUENCY * (self.sample + 1) * mantissa).sign()
        moved = value * (1 + torch.finfo(value.dtype).eps * up_or_down)
        return torch.where(value.isfinite(), moved, value)


def _whole(value: object) -> bool:
    """True if all entries are integers."""
    if isinstance(value, Tensor):
        return not value.is_floating_point() or bool((value == value.round()).all())
    return isinstance(value, (int, float)) and float(value).is_integer()


def rounding_of(
    find: Callable[[], Mapping[str, Tensor]], expected: Mapping[str, Tensor]
) -> dict[str, float]:
    """The possible error of any entry of each tensor for which ``find`` gave ``expected``: its
    movement when found again with other last places.
    """
    farthest = dict.fromkeys(expected, 0.0)
    for sample in range(SAMPLES):
        with LastPlace(sample):
            found = find()
        for name, value in expected.items():
            gap = torch.where(found[name] == value, 0, found[name] - value).abs()
            farthest[name] = max(farthest[name], gap.max().item() if gap.numel() else 0.0)
    return {name: FACTOR * gap for name, gap in farthest.items()}
