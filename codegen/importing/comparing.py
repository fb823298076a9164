"""Compare the imported forward with the user's function numerically, as the last step of an import.

Values and gradients are compared in float64 at several sizes: small and large, even and odd, in
increasing and decreasing order. This catches a mistake in any rule, and a branch that depends on
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from sympy import Expr
from torch import Tensor

from codegen.importing.agreement import Agreement, distance, gradients_of
from codegen.importing.asked import GIVEN, LABELS, MASK, Argument
from codegen.importing.blocks import APART, AT_ONCE, BlockLoop, refuse_unseen
from codegen.importing.examples import Example, axes_in, drawn, run
from codegen.importing.reader import Declared
from codegen.importing.relations import few_enough, fit, sizes_of_all
from codegen.importing.subjects import Subject
from codegen.importing.trace import untraceable
from codegen.targets.torch.check import DRAWS
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.taken import taken
from derive.language.errors import Place, QuestionError
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor as Symbolic

Shape = tuple[int, ...]
OF_VALUES, OF_GRADIENTS = 1e-12, 1e-10  # relative to the largest entry
# Sizes to try besides those of the trace, assigned to the axes in order.
TRIED = ((3, 4, 2, 5, 6), (5, 3, 7, 2, 4), (2, 3, 5, 7, 4), (8, 6, 4, 10, 2), (16, 8, 24, 4, 12))
IGNORED_SHARE = 0.3  # fraction of labels set to ignore_index
FACTORS = (0.43, 2.3)  # scalars are also tried at these multiples of their defaults
Scalars = Mapping[str, tuple[str, float]]  # name: (path, value)


@dataclass
class NumericComparison:
    """A function and the forward imported from it. ``high``: the axes that each label indexes;
    ``of_axis``: the sizes of all axes in terms of the arguments'. ``worked``: the draw whose values
    were finite before; it is then the only one tried.
    """

    subject: Subject
    arguments: tuple[Argument, ...]
    definition: Definition
    inputs: Sequence[Declared]
    high: Mapping[str, Sequence[str]]
    of_axis: Mapping[str, Expr]
    scalars: Scalars = field(default_factory=dict)  # name: (path, value)
    worked: tuple[Callable[..., Tensor], ...] = DRAWS
    raised: Exception | None = None  # by the function, at the last failing sizes
    loops: Sequence[BlockLoop] = ()  # traced as one block
    branch: Place | None = None  # the user's line that asked for these sizes
    shapes: tuple[Sequence[Shape], Sequence[Shape]] = ((), ())  # of the outputs: forward, function
    again: bool = True  # whether to check that the function is deterministic

    def distances(self, sizes: Mapping[str, int]) -> tuple[float, float] | None:
        """The largest differences in values and gradients; None if the function fails or is not
        finite at these sizes.
        """
        if not fit(self.definition, self.of_axis, sizes):
            return None
        found = [self._distances(sizes, whole) for whole in self._ways]
        found = [pair for pair in found if pair is not None]
        return (max(v for v, _ in found), max(g for _, g in found)) if found else None

    @property
    def _ways(self) -> tuple[bool, ...]:
        """Whether to draw integers: comparisons are also tried with integers, which may
        be equal.
        """
        pairs = zip(self.arguments, self.inputs, strict=True)
        return (True, False) if any(_only_compared(a, d) for a, d in pairs) else (False,)

    def _distances(self, sizes: Mapping[str, int], whole: bool) -> tuple[float, float] | None:
        for draw, tensors in self._drawn(sizes, whole):
            try:
                theirs, their_gradients = self._run(tensors)
            except QuestionError:
                raise
            except Exception as error:
                self.raised = error
                continue  # it may need numbers between 0 and 1
            if not theirs.isfinite().all() or not theirs.numel():
                continue
            self.worked = (draw,)
            ours, our_gradients = self._interpreted(tensors)
            if not ours.isfinite().all():
                continue  # the plain statements overflow; generated code may not
            where = self._at(sizes)
            for tensor, own, shape in zip(self.definition.outputs, *self.shapes, strict=True):
                self._check_shape(tensor, own, shape, where)
            value = distance(ours, theirs)
            if not value <= OF_VALUES:
                raise self._wrong(f"its value {where}", value)
            worst = 0.0
            for name, one, other in zip(
                (i.name for i in self.inputs), our_gradients, their_gradients, strict=True
            ):
                if one is not None and other is not None and other.isfinite().all():
                    gap = distance(one, other)
                    worst = max(worst, gap)
                    if not gap <= OF_GRADIENTS:
                        raise self._wrong(f"its gradient of {name} {where}", gap)
            return value, worst
        return None

    def _check_shape(self, output: Symbolic, own: Shape, theirs: Shape, where: str) -> None:
        if own != theirs:
            home = ", ".join(axis.name for axis in output.home)
            raise QuestionError(
                f"what was read lies along ({home}), of the shape {own} {where}, "
                f"and {self.subject.name} returns {theirs}",
                "a forward has no dimension of size 1, and the others in the order in which they "
                "first appear among its inputs, behind axes of a fixed length: return them so",
                self.subject.place,
            )

    def _wrong(self, what: str, gap: float) -> QuestionError:
        if self.loops:
            return QuestionError(f"{APART}: {what} differs", AT_ONCE, self.loops[0].place)
        if self.branch is not None:
            return QuestionError(
                f"it takes another branch at other sizes: {what} differs",
                "import one branch as a separate function",
                self.branch,
            )
        return QuestionError(
            f"{self.subject.name} was read as a different function: {what} differs by {gap:.1e}",
            "it may take another branch at other sizes, stop a gradient (torch.no_grad) or "
            "depend on something that is not an argument; nothing was written",
            self.subject.place,
        )

    def _at(self, sizes: Mapping[str, int]) -> str:
        return "at " + ", ".join(f"{axis} = {n}" for axis, n in sizes.items())

    def _drawn(
        self, sizes: Mapping[str, int], whole: bool
    ) -> Iterator[tuple[Callable[..., Tensor], list[Tensor]]]:
        """Random arguments: standard normal first, then ones in the domain of logarithms."""
        known = {axis: int(n) for axis, n in sizes_of_all(self.of_axis, sizes).items()}
        highest = {
            d.name: min(
                (known.get(a, sizes.get(a, 1)) for a in self.high.get(d.name, ())), default=2
            )
            for d in self.inputs
        }
        named = {a.name: highest[d.name] for a, d in zip(self.arguments, self.inputs, strict=True)}
        for draw in self.worked:
            tensors = drawn(self.arguments, sizes, draw, named, seed=1)
            for i, declared in enumerate(self.inputs):
                if declared.kind == LABELS and declared.ignored is not None:
                    chosen = torch.Generator().manual_seed(i)
                    out = torch.rand(tensors[i].shape, generator=chosen) < IGNORED_SHARE
                    tensors[i] = torch.where(out, declared.ignored, tensors[i])
                if whole and _only_compared(self.arguments[i], declared):
                    tensors[i] = (tensors[i] > tensors[i].median()).double()
            yield draw, tensors

    def _leaves(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return [
            t.clone().requires_grad_(_differs(declared))
            for t, declared in zip(tensors, self.inputs, strict=True)
        ]

    def _run(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor | None]]:
        leaves = self._leaves(tensors)
        result, theirs = _as_one(run(self._at_values, self.arguments, leaves))
        self.shapes = (self.shapes[0], theirs)
        if self.again and not self._same_again(result, tensors):
            raise QuestionError(
                f"{self.subject.name} returns a different result when called again",
                "draw random numbers outside and pass them; call .eval() on a module with dropout",
                self.subject.place,
            )
        return result.detach(), gradients_of(result, leaves)

    @property
    def _at_values(self) -> Subject:
        return self.subject.at(dict(self.scalars.values()))

    def _same_again(self, result: Tensor, tensors: Sequence[Tensor]) -> bool:
        self.again = False
        again, _ = _as_one(run(self._at_values, self.arguments, self._leaves(tensors)))
        return torch.equal(result.nan_to_num(), again.nan_to_num())

    def _interpreted(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor | None]]:
        leaves = self._leaves(tensors)
        arguments = {name: value for name, (_, value) in self.scalars.items()} | {
            d.name: t.double() if t.dtype == torch.bool or d.kind == GIVEN else t
            for d, t in zip(self.inputs, leaves, strict=True)
        }
        result = self._output(interpreted, arguments)
        gradients = gradients_of(result, leaves)
        if all(g is None or g.isfinite().all() for g in gradients):
            return result.detach(), gradients
        # autograd multiplies branches not taken by 0, even infinite ones
        return result.detach(), gradients_of(self._output(taken, arguments), leaves)

    def _output(self, run: Callable, arguments: Mapping[str, Tensor]) -> Tensor:
        found = run(self.definition, arguments)
        whole, shapes = _as_one([found[output.name] for output in self.definition.outputs])
        self.shapes = (shapes, self.shapes[1])
        return whole


def compared(
    comparison: NumericComparison,
    example: Example,
    beyond: Sequence[tuple[Mapping[str, int], Place | None]],
) -> Agreement:
    """Compare forward and function at the usual sizes and at ``beyond``, sizes that violate an
    assumption of the trace, each with the line that made it.

    Raises `QuestionError` where they differ.
    """
    subject = comparison.subject
    axes = axes_in(example.arguments)
    found: list[Mapping[str, int]] = []
    worst = [0.0, 0.0]
    seen: list[Mapping[str, int]] = []
    for sizes, place in beyond:
        comparison.branch = place
        seen += [sizes] if comparison.distances(sizes) else []
    comparison.branch = None
    tried = [example.sizes]
    tried += [{a: row[i % len(row)] for i, a in enumerate(axes)} for row in TRIED]
    for sizes in few_enough(comparison.of_axis, [w for each in tried for w in example.ways(each)]):
        distances = None if sizes in found else comparison.distances(sizes)
        if distances is not None:
            found.append(sizes)
            worst = [max(pair) for pair in zip(worst, distances, strict=True)]
    refuse_unseen(comparison.loops, comparison.of_axis, [*seen, *found])
    if not found and comparison.raised is not None:
        raise untraceable(comparison.raised, subject.file)
    if not found:
        raise QuestionError(
            f"{subject.name} has no finite value at the tested inputs, so the forward cannot be "
            "checked",
            "make it finite for inputs between 0 and 1",
            subject.place,
        )
    return Agreement(
        tuple(found), *worst, tuple(comparison.scalars), _other_values(comparison, found)
    )


def other_than(scalars: Scalars, factor: float) -> Scalars:
    """The scalars multiplied by ``factor``."""
    return {n: (path, v * factor or factor / 10) for n, (path, v) in scalars.items()}


def _other_values(comparison: NumericComparison, sizes: Sequence[Mapping[str, int]]) -> int:
    """The number of scalar values at which the two agree; raises where they differ, and where the
    function accepts no other value.
    """
    defaults, tried = comparison.scalars, 1
    for factor in FACTORS if defaults else ():
        comparison.worked = DRAWS
        comparison.scalars = other_than(defaults, factor)
        tried += any(d is not None for d in [comparison.distances(own) for own in sizes[:2]])
    comparison.scalars = defaults
    if defaults and tried == 1:
        raise QuestionError("no other values are taken", "", comparison.subject.place)
    return tried


def _as_one(outputs: Tensor | Sequence[Tensor | None]) -> tuple[Tensor, list[Shape]]:
    """All outputs flattened into one tensor, and their shapes."""
    several = [outputs] if isinstance(outputs, Tensor) else [t for t in outputs if t is not None]
    shapes = [tuple(t.shape) for t in several]
    return several[0] if len(several) == 1 else torch.cat([t.flatten() for t in several]), shapes


def _only_compared(argument: Argument, declared: Declared) -> bool:
    return declared.kind == GIVEN and argument.kind == ""


def _differs(declared: Declared) -> bool:
    return declared.kind not in (LABELS, MASK, GIVEN)
