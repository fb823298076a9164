"""Prints values and steps for a lean module: as the torch target, with no runtime."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from codegen.program import arrays, parts, steps, values
from codegen.targets.lean.held import Graded, RootOffZero
from codegen.targets.lean.kinks import Beyond
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.rows import TORCH, Prints, Rows
from codegen.targets.torch.vocabulary import ATOM, SUM

LEAN = Rows(TORCH)


class LeanPrinter(Printer):
    """Prints the lines of one function. ``in_place``: the target of an addition is batched wherever
    its source is, so vmap permits it, as in a backward, where both come from the upstream gradient.
    There composite operations are split too: is_grads_batched has no vmap rule for them.
    """

    rows: ClassVar[Rows] = LEAN
    in_place = False

    @property
    def einsum(self) -> str:
        return "_runtime.einsum" if self.in_place else "torch.einsum"

    def flattened(self, text: str, first: int, last: int) -> str:
        if not self.in_place:
            return super().flattened(text, first, last)
        return f"_runtime.flatten({text}, {first}, {last})"


@LEAN.of(steps.NotZero)
def _not_zero(p: Prints, step: steps.NotZero) -> str:
    return TORCH[steps.NotZero](p, replace(step, name=p.around.program))


@LEAN.of(steps.Fill)
def _fill(p: Prints, step: steps.Fill) -> str:
    before, filled = TORCH[steps.Fill](p, step).split(" = ")
    line = f"{step.name} = {filled} if {step.name} is None else {step.name}"
    return line if len(STEP + line) <= LONGEST else f"{before} = {filled}"


@LEAN.of(arrays.OneHotOf)
def _one_hot_of(p: Prints, value: arrays.OneHotOf) -> tuple[str, int]:
    """torch raises for an invalid label; its one_hot has no vmap rule in a backward."""
    index = value.index
    asked = isinstance(index, values.Load) and not p.in_place
    if asked or isinstance(index, values.Number) or parts.on_diagonal(index) is not None:
        return TORCH[arrays.OneHotOf](p, value)
    arguments = f"{p.text(index)}, {p.sizes[value.size]}, {p.like}.dtype"
    return f"_runtime.one_hot({arguments})", ATOM


@LEAN.of(Graded)
def _graded(p: Prints, value: Graded) -> tuple[str, int]:
    differentiated, plain = p.text(value.differentiated), p.text(value.plain)
    return (
        f"{differentiated} if torch.is_grad_enabled() else {plain}",
        SUM,
    )  # on a line of its own


@LEAN.of(Beyond)
def _beyond(p: Prints, value: Beyond) -> tuple[str, int]:
    """torch's relu passes no gradient at 0; NaN stays NaN."""
    if value.low == values.Number(Fraction(0)):
        return f"torch.relu({p.text(value.operand)})", ATOM
    bound, relation = (value.high, ">=") if value.low is None else (value.low, "<=")
    test = values.Compare(value.operand, relation, bound, dims=value.operand.dims)
    return p.printed(values.Choose(test, bound, value.operand, dims=value.dims))


@LEAN.of(RootOffZero)
def _root_off_zero(p: Prints, value: RootOffZero) -> tuple[str, int]:
    return f"_runtime.sqrt({p.text(value.square)})", ATOM


@LEAN.of(arrays.Split)
def _split(p: Prints, value: arrays.Split) -> tuple[str, int]:
    if not p.in_place:
        return TORCH[arrays.Split](p, value)
    sizes = ", ".join(p.sizes[axis] for axis in value.into)
    return f"_runtime.unflatten({p.text(value.operand)}, {value.along}, ({sizes}))", ATOM
