"""A Function in numbers: the last door of a check, and all that is left where nothing is traced.

What was read of a backward is compared with what the backward returns, so that no mistake of a rule
becomes a verdict. A Function that calls what cannot be traced, a kernel in Triton or C++, is
compared with a torch function of the same values, whose derivative is the measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from sympy import Symbol

from codegen.backwards.claims import Backward
from codegen.backwards.functions import Both, FunctionSubject, Seen
from codegen.importing.asked import GIVEN, LABELS, MASK, Argument
from codegen.importing.examples import FIRST, axes_in, drawn
from codegen.importing.trace import quiet, run_in_double
from codegen.targets.torch.check import DRAWS
from codegen.targets.torch.interpret import interpreted
from derive.chain.chain import adjoint_of
from derive.language.errors import QuestionError
from derive.language.symbols import Tensor, tensors_in
from derive.notation.definition import Statement

WITHIN = 1e-9  # of the largest entry: float64, and a backward that rounds otherwise
TRIED = ((3, 4, 2, 5, 6), (5, 2, 7, 3, 4), (8, 6, 4, 10, 12))  # sizes, in the order of the axes
CLAIMED = "claimed"
WITH_TIES = (  # data of which many are equal, or 0
    lambda shape, **how: torch.randn(shape, **how).round(),
    lambda shape, **how: torch.zeros(shape, dtype=torch.float64),
)
Tensors = Sequence[torch.Tensor]


def check_reading(subject: FunctionSubject, backward: Backward) -> None:
    """Raises `QuestionError` where what was read is not what the backward returns."""
    found = 0
    for sizes in _sizes(backward.example.arguments, backward.example.at, backward.example.sizes):
        for draw in DRAWS:
            tensors = _drawn(backward, sizes, draw)
            try:
                values, ups, grads = _returned(backward.both, tensors)
            except Exception:
                continue
            if not all(t.isfinite().all() for t in (*values, *grads.values())):
                continue
            found += 1
            for what, ours, theirs in _pairs(backward, tensors, values, ups, grads):
                gap = _distance(ours, theirs)
                if not gap <= WITHIN:
                    at = ", ".join(f"{axis} = {n}" for axis, n in sizes.items())
                    raise QuestionError(
                        f"{subject.name} was read as a different function: {what} at {at} differs "
                        f"by {gap:.1e}",
                        "it may take another branch at other sizes, or depend on something that is "
                        "not an argument",
                        subject.place,
                    )
            break
    if not found:
        raise QuestionError(
            f"{subject.name} has no finite values at the sizes that were tried", "give --sizes"
        )


def _pairs(backward: Backward, tensors: Tensors, values, ups, grads) -> Iterator[tuple]:
    """What was read beside what is returned: the output and every gradient."""
    output = backward.definition.output
    if len(values) == 1:
        yield (
            "the output",
            _evaluated(backward, output, output, tensors, ups),
            _home(backward, values),
        )
    else:
        loss = sum((up * y).sum() for up, y in zip(ups, values, strict=True))
        yield "the outputs", _evaluated(backward, output, output, tensors, ups), loss
    for said in backward.said:
        theirs = grads.get(said.argument)
        if said.expression is not None and theirs is not None:
            of = next(t for t in backward.definition.inputs if t.name == said.name)
            ours = _evaluated(backward, said.expression, of, tensors, ups)
            position = [d.name for d in backward.inputs].index(said.name)
            shape = tensors[position].shape
            yield f"d{said.argument}", ours.reshape(shape), theirs.sum_to_size(shape)


def _home(backward: Backward, ys: Tensors) -> torch.Tensor:
    """A tensor that lies as the one output, in the order in which the notation has its axes."""
    return _along(ys[0], backward.outputs[0], backward.definition.output.home)


def _along(y: torch.Tensor, along: Sequence[str | None], home: Sequence) -> torch.Tensor:
    names = [name for name in along if name is not None]
    y = y.reshape([n for n, name in zip(y.shape, along, strict=True) if name is not None])
    return y.permute([names.index(axis.name) for axis in home])


def _sizes(
    arguments: Sequence[Argument], at: Callable, first: Mapping[str, int]
) -> Iterator[Mapping[str, int]]:
    axes = axes_in(arguments)
    yield first
    for row in TRIED:
        yield at({a: row[i % len(row)] for i, a in enumerate(axes)})


def _drawn(backward: Backward, sizes: Mapping[str, int], draw: Callable) -> list[torch.Tensor]:
    """Numbers as they are drawn, and labels of a class."""
    chosen = {Symbol(axis): n for axis, n in sizes.items()}
    known = {axis: int(size.subs(chosen)) for axis, size in backward.of_axis.items()}
    named = {a.name: d for a, d in zip(backward.example.arguments, backward.inputs, strict=True)}
    high = {
        name: min((known.get(axis, 1) for axis in backward.indexed.get(d.name, ())), default=1)
        for name, d in named.items()
    }
    return drawn(backward.example.arguments, sizes, draw, high, seed=3)


def _returned(both: Both, tensors: Tensors) -> tuple[Tensors, Tensors, dict]:
    """The outputs, the upstream gradients, and what is returned for each argument by name."""
    with torch.no_grad(), quiet(), run_in_double():
        outputs = both.outputs(tensors)
        ups = [torch.randn(y.shape, dtype=torch.float64) for y in outputs]
        noted = Seen()
        both.noted = [noted]
        found = both(*(t.clone() for t in tensors), *ups)
    gradients = iter(found[noted.outputs :])
    names = [p.name for p in both.subject.parameters]
    pairs = zip(names, noted.gradients, strict=False)
    return found[: noted.outputs], ups, {name: next(gradients) for name, there in pairs if there}


def _evaluated(backward: Backward, e, of: Tensor, tensors: Tensors, ups: Tensors):
    """An expression along the axes of ``of``."""
    definition = backward.definition
    upstream = adjoint_of(definition.output)
    arriving = Tensor(upstream.name, upstream.home, role="given")
    e = e.xreplace({t: arriving.along(t.axes) for t in tensors_in(e) if t.name == upstream.name})
    last = Statement(Tensor(CLAIMED, of.home, role="statement"), e, definition.place)
    whole = replace(
        definition,
        inputs=(*definition.inputs, arriving),
        statements=(*definition.statements, last),
    )
    given = {
        d.name: t.double() if t.dtype == torch.bool or d.kind == GIVEN else t
        for d, t in zip(backward.inputs, tensors, strict=True)
    }
    if len(ups) == 1:
        arrived = {upstream.name: _home(backward, ups)}
    else:
        arrived = {upstream.name: torch.ones((), dtype=torch.float64)}
        places = definition.inputs[len(definition.inputs) - len(ups) :]
        for t, up, along in zip(places, ups, backward.outputs, strict=True):
            arrived[t.name] = _along(up, along, t.home)
    return interpreted(whole, {**given, **arrived})[CLAIMED]


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Of the largest entry."""
    if not other.numel():
        return 0.0
    gap = (one - other).abs().max().item()
    return gap / max(other.abs().max().item(), 1.0) if gap == gap else float("inf")


@dataclass(frozen=True)
class InNumbers:
    """How far the gradient of an argument is from that of the reference, at which sizes."""

    name: str
    distance: float
    sizes: Mapping[str, int]
    returned: bool = True

    @property
    def outcome(self) -> str:
        return "agrees" if self.distance <= WITHIN else "wrong"

    def __str__(self) -> str:
        at = ", ".join(f"{axis} = {n}" for axis, n in self.sizes.items())
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
    """The Function beside a torch function of the same values, at several sizes.

    Raises `QuestionError` where their values differ, or neither runs.
    """
    worst: dict[str, InNumbers] = {}
    axes = axes_in(arguments)
    for row in (FIRST, *TRIED):
        chosen = {a: row[i % len(row)] for i, a in enumerate(axes)} | dict(sizes)
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
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    tensors = drawn(arguments, sizes, torch.randn, {a.name: 2 for a in arguments})
    one, other = (
        [t.clone().requires_grad_(d) for t, d in zip(tensors, differ, strict=True)] for _ in "ab"
    )
    mine = subject.of_class.apply(*subject.values(arguments, one))
    theirs = reference(**dict(zip((a.name for a in arguments), other, strict=True)))
    mine = mine[0] if isinstance(mine, tuple) else mine
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    if mine.shape != theirs.shape or not _distance(mine, theirs) <= WITHIN:
        raise QuestionError(
            f"{subject.name} and its reference return different values",
            "--like must name a function that computes the same",
            subject.place,
        )
    upstream = torch.randn(mine.shape, dtype=mine.dtype)
    mine.backward(upstream)
    theirs.backward(upstream)
    for argument, a, b, wanted in zip(arguments, one, other, differ, strict=True):
        if wanted:
            expected = torch.zeros_like(b) if b.grad is None else b.grad
            got = torch.zeros_like(a) if a.grad is None else a.grad
            distance = _distance(got, expected)
            yield InNumbers(argument.name, distance, sizes, a.grad is not None or distance == 0)


def straight_through(
    subject: FunctionSubject, arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """The gradients that the backward makes of a forward that has none: where torch's own
    derivative of it is 0 everywhere, as that of a rounding is.
    """
    axes = axes_in(arguments)
    chosen = {a: TRIED[0][i % len(TRIED[0])] for i, a in enumerate(axes)} | dict(sizes)
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    tensors = drawn(arguments, chosen, torch.randn)
    leaves = [t.requires_grad_(d) for t, d in zip(tensors, differ, strict=True)]
    both = Both(subject, arguments, [True] * len(subject.parameters), Seen())
    try:
        y = subject.module(arguments)(*leaves)
        asked = [t for t, d in zip(leaves, differ, strict=True) if d]
        own = torch.autograd.grad(y.sum(), asked, allow_unused=True)
        with torch.no_grad():
            _, _, grads = _returned(both, [t.detach() for t in leaves])
    except Exception:
        return ()
    if any(g is not None and g.any() for g in own):
        return ()
    return tuple(f"d{name}" for name, g in grads.items() if g.any())


def is_torchs(subject: FunctionSubject, backward: Backward, argument: str) -> bool:
    """Whether the gradient is what torch's own derivative of the forward is where entries are
    equal, or 0: its convention there.
    """
    arguments = backward.example.arguments
    place = [a.name for a in arguments].index(argument)
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    try:
        for draw in WITH_TIES:
            tensors = _drawn(backward, backward.example.sizes, draw)
            _, ups, grads = _returned(backward.both, tensors)
            leaves = [t.requires_grad_(d) for t, d in zip(tensors, differ, strict=True)]
            y = subject.module(arguments)(*leaves)
            (own,) = torch.autograd.grad(y, [leaves[place]], ups[0])
            if not _distance(grads[argument].sum_to_size(own.shape), own) <= WITHIN:
                return False
    except Exception:
        return False
    return True
