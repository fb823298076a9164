"""Tries every use of a module before it is written: without optional arguments, with each subset of
gradients, twice differentiated, with an axis of size 1.

All second derivatives at a point are sums of the same few (``second_oracle.py``): of ``v_i`` times
the gradient by input i, by the upstream gradient and by input j. Where autograd has no number over
the statements, nothing is compared.

Up to three inputs every subset of them needs a gradient, of more each alone, the first with every
other, and all; every gradient is differentiated alone, and all together. Also tried: the gradient
of vmap; second derivatives in a batch; the lines that forward mode differentiates, by autograd.
torch's own forward mode imports its compiler, which takes longer than all the rest: it runs where
torch has formulas for it that differ from the gradient's, those of scans, loops, matrices and
convolutions. Optional tensors are left out one by one and together. On edges (``edges.py``)
derivatives have to be finite, and those of one of the sides or between them, as far as autograd
over the statements tells what those are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice
from types import ModuleType
from typing import Protocol

import torch
from sympy import Piecewise
from torch import Tensor
from torch.autograd import forward_ad

from codegen.program import Program, arrays, loops, reads
from codegen.program.parts import values_in
from codegen.program.values import Value
from codegen.targets.torch.edges import FAR
from codegen.targets.torch.hard_points import in_words
from codegen.targets.torch.second_oracle import UsePoint, gradients_of, points_of, statements_at
from codegen.targets.torch.several import joined, one_by_one
from codegen.targets.torch.wrong import WrongUse
from derive.gradient.orders import FIRST, SECOND
from derive.language.notation.definition import Definition

TOLERANCE = 1e-8  # of second derivatives in float64, relative to the largest entry
ROUNDED = 1e3  # times the effect of the inputs' last place
BESIDE = 1e-3  # relative change of derivatives near an edge, on one side
OWN_TANGENTS = (  # for the rest torch derives forward mode from the gradient, or it is linear
    *(arrays.Cumulate, arrays.Scanned, arrays.OfMatrix, arrays.Solved, arrays.SegmentMax),
    *(loops.Looped, loops.Collected, reads.Convolve),
)
EVERY_SUBSET = 3  # inputs of which every subset is tried


class OfModule(Protocol):
    """A namespace with the function of a module under its name, returning every entry."""

    module: ModuleType


def check_every_use(
    module: OfModule, definition: Definition, program: Program, most: int | None = None
) -> tuple[str, ...]:
    """Use the module in every way, at the first points or at all. Raises `WrongUse` for the first
    failure; returns results that are infinite or NaN where the mathematics is finite, in words.
    """
    found: dict[str, dict[str, None]] = {}
    chooses = any(s.expression.has(Piecewise) for s in definition.statements)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's about batching rules
        for point in islice(points_of(definition, program), most):
            uses = _Uses(module, definition, program, point)
            if uses.defined:
                uses.check()
            left_out = chooses and point.edge is None
            where = "where a branch is not taken" if left_out else str(point)
            for what, order in uses.infinite:
                said = what if order == FIRST else "second derivatives"
                found.setdefault(where, {})[said] = None
    return in_words(
        (where, f"{' and '.join(what)} may be NaN or infinite") for where, what in found.items()
    )


class _Uses:
    """The uses of a module at one point."""

    def __init__(self, module: OfModule, definition: Definition, program: Program, point: UsePoint):
        self.module, self.program, self.point = module.module, program, point
        self.several = getattr(module, program.name)
        self.function = lambda **arguments: joined(self.several(**arguments))
        self.known = statements_at(definition, program, point)
        self.inputs, self.arguments = self.known.inputs, self.known.arguments
        self.infinite: list[tuple[str, int]] = []
        self.twice = not program.without_second

    @property
    def defined(self) -> bool:
        """True if the module accepts these arguments: it may reject a size."""
        try:
            with torch.no_grad():
                self.function(**self.arguments)
        except ValueError as error:
            return not str(error).startswith(self.program.name)
        except Exception:
            return True
        return True

    def check(self) -> None:
        for what, order, use, expected in self._every_use():
            try:
                found = use()
            except Exception as error:  # whatever a wrong line of code leads torch to
                said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                self._refuse(what, order, f"does not run ({said})")
            for i, one in enumerate(found):
                self._compare(what, order, one, expected, i)

    def _refuse(self, what: str, order: int, how: str) -> None:
        raise WrongUse(
            f"{self.program.title}: {what} of the generated code {how}, {self.point};"
            " nothing was emitted",
            order,
        )

    def _compare(self, what: str, order: int, found: Tensor | None, expected: Callable, i) -> None:
        wanted = expected(*self.known.derivatives)[i]
        found = torch.zeros_like(wanted) if found is None else found.detach()
        if found.shape != wanted.shape:
            shapes = f"has shape {tuple(found.shape)}, expected {tuple(wanted.shape)}"
            self._refuse(what, order, shapes)
        there = wanted.isfinite()
        gap = torch.where(there, found - wanted, 0).abs()
        if self.point.edge is not None:  # where each may take the side of a kink that it likes
            self.infinite += [(what, order)] * bool((there & ~found.isfinite()).any())
            wrong = there & (gap > BESIDE * (1 + wanted.abs()))
            if self.point.edge is not FAR and wrong.any():  # far out nothing is close
                wrong &= self._is_beyond(found, wanted, lambda known: expected(*known)[i])
                if wrong.any():
                    self._refuse(what, order, "is that of neither side over the statements")
            return
        if not gap.numel():
            return
        allowed = TOLERANCE * (1 + torch.where(there, wanted, 0).abs().max())
        if bool((gap <= allowed).all()):
            return
        moved = (expected(*self.known.nudged)[i] - wanted).abs() * ROUNDED
        if bool((gap <= allowed + moved.nan_to_num(0, 0, 0)).all()):
            return
        if not gap.isfinite().all():
            self.infinite += [(what, order)] * self.known.finite
            return
        self._refuse(what, order, f"differs by {gap.max():.1e} from autograd over the statements")

    def _is_beyond(self, found: Tensor, wanted: Tensor, expected: Callable) -> Tensor:
        """True if it is farther from one side of an edge than the other side is."""
        low, high, steady = wanted, wanted, torch.ones_like(wanted, dtype=torch.bool)
        for close, closer in self.known.beside:
            one, other = expected(close), expected(closer)
            steady &= (one - other).abs() <= BESIDE * (1 + other.abs())
            low, high = torch.minimum(low, other), torch.maximum(high, other)
        margin = (high - low) / 4 + BESIDE * (1 + wanted.abs())
        return steady & ((found < low - margin) | (found > high + margin))

    # -- the uses, each with its order, and what is expected of the known derivatives --

    def _every_use(self) -> Iterator[tuple[str, int, Callable, Callable]]:
        for names in self._subsets():
            yield (
                f"the gradient with respect to {', '.join(names)}",
                FIRST,
                lambda names=names: self._once(names),
                lambda first, _, names=names: [first[n] for n in names],
            )
        if len(self.program.outputs) > 1 and self.inputs:
            yield (
                "the gradient of each output alone",
                FIRST,
                lambda: one_by_one(self.several, self._leaves, self.inputs, self.known.upstream),
                lambda first, _: [first[n] for n in self.inputs],
            )
        if not self.twice or not self.inputs:
            return
        for names in self._subsets():
            several = [(n,) for n in names] if len(names) > 1 else []
            for of in [names, *several]:
                yield (
                    f"the second derivative by {', '.join(of)}, then {', '.join(names)},",
                    SECOND,
                    lambda names=names, of=of: self._twice(names, of),
                    lambda _, second, names=names, of=of: _summed(second, of, names),
                )
        if self.point.thorough:
            yield from self._transforms()

    def _subsets(self) -> Iterable[tuple[str, ...]]:
        names = self.inputs
        if not self.point.thorough:
            return [names] * bool(names)
        if len(names) <= EVERY_SUBSET:
            return [c for n in range(len(names)) for c in combinations(names, n + 1)]
        pairs = [(names[0], other) for other in names[1:]]
        return [*((n,) for n in names), *pairs, names]

    def _leaves(self, names: Iterable[str]) -> dict[str, object]:
        own = {n: self.arguments[n].detach().clone().requires_grad_() for n in names}
        return {**self.arguments, **own}

    def _once(self, names: tuple[str, ...]) -> list[Tensor]:
        leaves = self._leaves(names)
        output = self.function(**leaves)
        if not output.requires_grad:
            return [torch.zeros_like(leaves[n]) for n in names]
        own = [leaves[n] for n in names]
        return [*torch.autograd.grad(output, own, self.known.upstream, materialize_grads=True)]

    def _twice(
        self,
        names: tuple[str, ...],
        of: tuple[str, ...],
        vectors: Sequence[Tensor] = (),
        **options: bool,
    ) -> list[Tensor]:
        leaves = self._leaves(names)
        upstream = self.known.upstream.clone().requires_grad_()
        gradients = gradients_of([self.function(**leaves)], [upstream], [leaves[n] for n in of])
        vectors = vectors or [self.known.vectors[n] for n in of]
        inputs = [upstream, *(leaves[n] for n in names)]
        return gradients_of(gradients, vectors, inputs, **options)

    def _transforms(self) -> Iterator[tuple[str, int, Callable, Callable]]:
        names = self.inputs

        def gradients(first, _):
            return [first[n] for n in names]

        def second_derivatives(_, second):
            return _summed(second, names, names)

        yield "the gradient of torch.func.vmap", FIRST, self._vmapped, gradients
        yield "a batch of second derivatives", SECOND, self._batched, second_derivatives
        if hasattr(self.module, "_by_lines"):
            lines = "of the lines that forward mode differentiates"
            yield f"the gradient {lines}", FIRST, self._finite_by_lines, gradients
            second = partial(self._by_lines, partial(self._twice, names, names))
            yield f"the second derivative {lines}", SECOND, second, second_derivatives
        if any(isinstance(value, OWN_TANGENTS) for value in self._values()):
            yield (
                "forward mode",
                FIRST,
                self._tangents,
                lambda _, second: _summed(second, names, ()),
            )
            if hasattr(self.module, "_in_chunks"):
                return  # refused: its lines write over what autograd recorded
            yield (
                "forward mode over the gradient",
                SECOND,
                self._tangents_of_gradients,
                lambda _, second: _summed(second, names, names)[1:],
            )

    def _values(self) -> Iterator[Value]:
        return (value for step in self.program.forward.steps for value in values_in(step))

    def _vmapped(self) -> list[Tensor]:
        own = [self.arguments[n].detach() for n in self.inputs]
        batch = [torch.stack([tensor, tensor]).requires_grad_() for tensor in own]

        def output(*own: Tensor) -> Tensor:
            return self.function(**{**self.arguments, **dict(zip(self.inputs, own, strict=True))})

        outputs, upstreams = torch.func.vmap(output)(*batch), torch.stack([self.known.upstream] * 2)
        return [g[1] for g in gradients_of([outputs], [upstreams], batch)]

    def _batched(self) -> list[Tensor | None]:
        vectors = [torch.stack([v, v]) for v in self.known.vectors.values()]
        how = {"is_grads_batched": True, "materialize_grads": False}  # torch's zeros are no batch
        found = self._twice(self.inputs, self.inputs, vectors, **how, allow_unused=True)
        return [None if gradient is None else gradient[1] for gradient in found]

    def _tangents(self) -> list[Tensor]:
        with forward_ad.dual_level():
            return [forward_ad.unpack_dual(self.function(**self._duals())).tangent]

    def _tangents_of_gradients(self) -> list[Tensor]:
        with forward_ad.dual_level():
            duals = self._duals()
            own = [duals[n] for n in self.inputs]
            found = gradients_of([self.function(**duals)], [self.known.upstream], own)
            return [forward_ad.unpack_dual(gradient).tangent for gradient in found]

    def _duals(self) -> dict[str, object]:
        leaves = self._leaves(self.inputs)
        vectors = self.known.vectors
        return {**leaves, **{n: forward_ad.make_dual(leaves[n], vectors[n]) for n in self.inputs}}

    def _by_lines(self, use: Callable) -> list[Tensor]:
        """The use by its lines: the module is told that autograd is in forward mode."""
        asked, told = self.module._by_lines, []
        self.module._by_lines = lambda: not told.append(True)
        try:
            found = use()
        finally:
            self.module._by_lines = asked
        if not told:
            raise NotImplementedError("forward mode is not asked for")
        return found

    def _finite_by_lines(self) -> list[Tensor]:
        """Forward-mode gradients; where they are NaN, those of second derivatives replace them."""
        found = self._by_lines(partial(self._once, self.inputs))
        wanted = (self.known.derivatives[0][name] for name in self.inputs)
        pairs = zip(found, wanted, strict=True)
        return [torch.where(one.isfinite(), one, other) for one, other in pairs]


def _summed(second: Mapping, of: Iterable[str], by: Iterable[str]) -> list[Tensor]:
    """Gradients of the upstream gradient and of the inputs ``by``, from the gradients ``of``."""
    rows = [second[n] for n in of]
    total = sum((row[0] for row in rows[1:]), rows[0][0])
    return [total, *(sum((r[1][n] for r in rows[1:]), rows[0][1][n]) for n in by)]
