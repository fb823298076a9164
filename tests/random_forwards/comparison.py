"""A generated module beside plain torch: the value, gradients, and gradients of these."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod

import torch

from codegen.driver.gate import Generated
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis
from random_forwards.batches import Batch, arguments_of, ignore_index
from random_forwards.named import DOUBLE
from random_forwards.plain_torch import evaluate

TOLERANCE = 1e-9


class Wrong(Exception):
    """What was generated differs from plain torch: where, and by how much."""


def compared(
    module, result: Generated, definition: Definition, text: str, batch: Batch, twice: bool
) -> bool:
    """Whether there was anything to compare: numbers that are finite in plain torch; ``twice``
    differentiated too. Raises `Wrong`.
    """
    labels: dict[str, list[Axis]] = {}
    by_name = {axis.name: axis for axis in definition.axes}
    for label, axis in result.program.labels:
        labels.setdefault(label, []).append(by_name[axis])
    passed = arguments_of(definition, labels, batch)
    plain = Plain(definition, text, batch, passed)
    if not plain.finite:
        return False
    compare = _Comparison(batch, plain)
    name = definition.snake
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = getattr(module, name)(**passed)
        compare(f"{name}()", output, plain.output)
        inputs = [t.name for t in definition.differentiable if t.name in passed]
        if output.requires_grad and not plain.decided_by_rounding:
            found = torch.autograd.grad(
                output, [passed[n] for n in inputs], plain.upstream, allow_unused=True
            )
            for n, gradient in zip(inputs, found, strict=True):
                compare(f"d{n} of {name}()", gradient, plain.gradient_of_passed(n))
            if twice and not result.program.without_second:
                _twice_compared(getattr(module, name), plain, compare)
    return True


def _twice_compared(function, plain: Plain, compare) -> None:
    """What comes back to the inputs where the gradients of each one, and of all together, are
    differentiated again.
    """
    passed, inputs = plain.passed, plain.inputs
    for of in [inputs, *([n] for n in inputs if len(inputs) > 1)]:
        how = {"create_graph": True, "materialize_grads": True}
        found = torch.autograd.grad(
            function(**passed), [passed[n] for n in of], plain.upstream, **how
        )
        again = _again(of, found, [passed[n] for n in inputs])
        for n, gradient, wanted in zip(inputs, again, plain.second(of), strict=True):
            said = f"the gradient with respect to {', '.join(of)}, differentiated again by {n},"
            compare(said, gradient, wanted)


def _again(of, gradients, inputs) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(len(of))
    total = sum(
        (g * torch.randn(g.shape, generator=generator, dtype=DOUBLE)).sum() for g in gradients
    )
    if not total.requires_grad:
        return [torch.zeros_like(t) for t in inputs]
    how = {"retain_graph": True, "materialize_grads": True}
    return list(torch.autograd.grad(total, inputs, **how))


def _nudged(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same numbers but for their last places."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: value.detach() * (1 + 1e-15 * torch.randn(value.shape, generator=generator).to(value))
        if value.is_floating_point()
        else value
        for name, value in values.items()
    }


class Plain:
    """The same forward in plain torch: values, and gradients by autograd for a random upstream
    gradient.
    """

    def __init__(self, definition: Definition, text: str, batch: Batch, passed: Mapping):
        self.passed, self.whole, merged = passed, {}, {}
        for t in definition.arguments:
            if t.name in passed:
                full = [n for axis in t.home for n in batch.dims[axis]]
                value = passed[t.name]
                self.whole[t.name] = value = (
                    value if list(value.shape) == full else (value.broadcast_to(full))
                )
                merged[t.name] = value.reshape([prod(batch.dims[axis]) for axis in t.home])
                if t in definition.labels and definition.ignoring:
                    out = merged[t.name] == ignore_index(definition, batch)
                    if t.name in {i.label.name for i in definition.ignoring}:
                        merged[t.name] = merged[t.name].masked_fill(out, -1)
        others = {n: v for n, v in passed.items() if n not in merged and n != "ignore_index"}
        self.whole |= {n: v for n, v in passed.items() if n not in merged}
        self.inputs = [t.name for t in definition.differentiable if t.name in passed]
        result = evaluate(text, definition.name, merged | others)
        near = evaluate(text, definition.name, _nudged(merged) | others)  # a tie may be an accident
        self.decided_by_rounding = result.decided_by_rounding or near.decided_by_rounding
        self.at_an_end = result.at_an_end
        homes = {s.name: [axis.name for axis in s.tensor.home] for s in definition.statements}
        if set(homes[definition.output.name]) != set(result.output.axes):
            raise Wrong(
                f"the output has the axes {homes[definition.output.name]}, in plain torch "
                f"{list(result.output.axes)}"
            )
        self._sources = {n: self.whole[n] for n in self.inputs}
        self.statements: dict[str, torch.Tensor] = {}
        for name, value in result.statements.items():
            if name in homes and set(homes[name]) == set(value.axes):
                self._sources[name] = value.data
                self.statements[name] = value.along(homes[name])
        self._axes = {n: (v.axes, homes.get(n)) for n, v in result.statements.items()}
        output = self.statements[definition.output.name]
        self.output = output.reshape(
            [n for axis in definition.output.home for n in batch.dims[axis]]
        )
        generator = torch.Generator().manual_seed(batch.seed + 100)
        self.upstream = torch.randn(tuple(self.output.shape), generator=generator, dtype=DOUBLE)
        self._gradients = self._differentiated()
        everything = [self.output, *self._gradients.values()]
        self.finite = all(bool(value.isfinite().all()) for value in everything)

    def _differentiated(self) -> dict[str, torch.Tensor]:
        sources = dict(self._sources)
        leaves = {f"passed {n}": self.passed[n] for n in self.inputs}
        wanted = {n: v for n, v in (sources | leaves).items() if v.requires_grad}
        found = {}
        if self.output.requires_grad:
            gradients = torch.autograd.grad(
                self.output,
                list(wanted.values()),
                self.upstream,
                allow_unused=True,
                retain_graph=True,
            )
            found = {n: g for n, g in zip(wanted, gradients, strict=True) if g is not None}
        return {n: found.get(n, torch.zeros_like(v)) for n, v in (sources | leaves).items()}

    def second(self, of) -> list[torch.Tensor]:
        """What comes back to the inputs that were passed behind the gradients ``of`` some."""
        leaves = [self.passed[n] for n in self.inputs]
        how = {"create_graph": True, "materialize_grads": True}
        found = torch.autograd.grad(self.output, [self.passed[n] for n in of], self.upstream, **how)
        return _again(of, found, leaves)

    def gradient_of_passed(self, name: str) -> torch.Tensor:
        return self._gradients[f"passed {name}"]

    def gradient(self, name: str) -> torch.Tensor:
        """With the dimensions of the tensor in their order."""
        gradient = self._gradients[name]
        if name in self.inputs:
            return gradient
        axes, home = self._axes[name]
        return gradient.permute([axes.index(axis) for axis in home])


class _Comparison:
    """Compares two tensors, and raises `Wrong` where they differ."""

    def __init__(self, batch: Batch, plain: Plain):
        sizes = ", ".join(f"{axis}={'x'.join(map(str, n))}" for axis, n in batch.dims.items())
        left_out = ", what may be left out left out" if batch.bare else ""
        self.at = f"at {sizes} (data {batch.seed}){left_out}"

    def __call__(self, what: str, actual: torch.Tensor | None, expected: torch.Tensor) -> None:
        expected = expected.detach()
        if actual is None:
            actual = torch.zeros_like(expected)
        actual = actual.detach()
        if actual.shape != expected.shape:
            raise Wrong(
                f"{what} has the shape {tuple(actual.shape)}, in plain torch "
                f"{tuple(expected.shape)}, {self.at}"
            )
        if not expected.numel():
            return
        masked = (expected == -torch.inf) & (actual == expected)  # a score that takes no part
        actual, expected = actual.masked_fill(masked, 0), expected.masked_fill(masked, 0)
        if not expected.isfinite().all():
            return
        if not actual.isfinite().all():
            raise Wrong(f"{what} is not finite, {self.at}")
        gap, largest = (actual - expected).abs().max().item(), expected.abs().max().item()
        if gap > TOLERANCE * (largest + 0.01):
            raise Wrong(
                f"{what} is {gap:.1e} away from plain torch, whose largest is {largest:.1e}, "
                f"{self.at}:\n{actual}\n{expected}"
            )
