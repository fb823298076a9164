"""Runs a Function in numbers: the last door of a check.

The gradients as read are compared with those that the backward returns, so that no mistake of a
rule becomes a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from codegen.backwards.claims import Backward
from codegen.backwards.functions import Both, FunctionSubject, Seen
from codegen.backwards.refused import Raises, misshapen
from codegen.importing.asked import GIVEN, LABELS, MASK, Argument, axes_of
from codegen.importing.comparing import FACTORS, other_than
from codegen.importing.double import run_in_double
from codegen.importing.examples import Example, axes_in, drawn
from codegen.importing.lengths import fitted
from codegen.importing.relations import few_enough, fit, sizes_of_all
from codegen.importing.trace import quiet
from codegen.targets.torch.check import DRAWS
from codegen.targets.torch.interpret import interpreted
from derive.gradient.chain.chain import adjoint_of
from derive.language.errors import QuestionError
from derive.language.notation.definition import Statement
from derive.language.symbols import Tensor, tensors_in

WITHIN = 1e-9  # of the largest entry: float64, and a backward that rounds otherwise
TRIED = ((3, 4, 2, 5, 6), (5, 2, 7, 3, 4), (8, 6, 4, 10, 12))  # sizes, in the order of the axes
NUDGE = 1e-6  # relative: float32 would show it, and few roundings jump
CLAIMED = "claimed"
ONLY_SOME = "the forward takes these sizes, and the backward fits others alone: refuse them, or pad"
UNWRITTEN = "write all of what torch.empty makes before it is read, or use torch.zeros"
WITH_TIES = (  # data of which many are equal, or 0
    lambda shape, **how: torch.randn(shape, **how).round(),
    lambda shape, **how: torch.zeros(shape, dtype=torch.float64),
)
Tensors = Sequence[torch.Tensor]


def check_reading(subject: FunctionSubject, backward: Backward) -> None:
    """Raise `QuestionError` if the gradients as read differ from those returned, also for other
    values of the scalars.
    """
    others = 0
    for factor in FACTORS if backward.scalars else ():
        own = other_than(backward.scalars, factor)
        both = backward.both
        both = Both(subject.at(dict(own.values())), both.arguments, both.needs, Seen())
        others += _compared(subject, replace(backward, scalars=own, both=both))
    if backward.scalars and not others:
        raise QuestionError("no other values are taken", "", subject.place)
    if not _compared(subject, backward):
        raise QuestionError(
            f"{subject.name} has no finite values at the sizes that were tried",
            UNWRITTEN if "empty" in subject.source else "give --sizes",
            subject.place,
        )


def _compared(subject: FunctionSubject, backward: Backward) -> int:
    """Number of sizes at which numbers were compared; raises where they differ."""
    found = 0
    for sizes in sizes_tried(backward):
        for draw in DRAWS:
            tensors = drawn_for(backward, sizes, draw)
            try:
                values, ups, grads = returned(backward.both, tensors)
            except Exception:
                continue
            if not all(t.isfinite().all() for t in (*values, *grads.values())):
                continue
            _check_shapes(backward, tensors, grads, sizes)
            found += 1
            at = ", ".join(f"{axis} = {n}" for axis, n in sizes.items())
            try:
                compared = [*pairs(backward, tensors, values, ups, grads)]
            except RuntimeError as error:  # shapes as read do not broadcast here
                raise QuestionError(
                    f"{subject.name} was read as a function that has no values at {at}: {error}",
                    "what does not divide may be cut off there: use a view that asks for it, such "
                    "as unflatten",
                    subject.place,
                ) from None
            for what, ours, theirs in compared:
                gap = distance(ours, theirs)
                if not gap <= WITHIN:
                    raise QuestionError(
                        f"{subject.name} was read as a different function: {what} at {at} differs "
                        f"by {gap:.1e}",
                        "it may take another branch at other sizes, or depend on something that is "
                        "not an argument",
                        subject.place,
                    )
            break
    return found


def _check_shapes(backward: Backward, tensors: Tensors, grads: Mapping, sizes: Mapping) -> None:
    """Raise `Raises` where torch does: the forward takes these sizes, a gradient does not fit."""
    shapes = {d.name: tuple(t.shape) for d, t in zip(backward.inputs, tensors, strict=True)}
    for said in backward.said:
        if said.argument in grads and said.name in shapes and not said.problem:
            got = tuple(grads[said.argument].shape)
            if problem := misshapen(shapes[said.name], got, said.argument):
                at = ", ".join(f"{axis} = {n}" for axis, n in sizes.items())
                raise Raises(f"{problem}, where {at}", said.line, ONLY_SOME)


def pairs(backward: Backward, tensors: Tensors, values, ups, grads) -> Iterator[tuple]:
    """Pairs of a value as read and as returned: the output and every gradient."""
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
    """The one output, with its dimensions in the order of the notation's axes."""
    return _along(ys[0], backward.outputs[0], backward.definition.output.home)


def _along(y: torch.Tensor, along: Sequence[str | None], home: Sequence) -> torch.Tensor:
    names = [name for name in along if name is not None]
    y = y.reshape([n for n, name in zip(y.shape, along, strict=True) if name is not None])
    return y.permute([names.index(axis.name) for axis in home])


def sizes_around(example: Example) -> list[Mapping[str, int]]:
    """The sizes of an example, and others."""
    axes = axes_in(example.arguments)
    rows = [{a: row[i % len(row)] for i, a in enumerate(axes)} for row in TRIED]
    return [example.sizes, *map(example.at, rows)]


def sizes_tried(backward: Backward) -> list[Mapping[str, int]]:
    """The sizes of the example, and others that the forward can have."""
    first, *others = sizes_around(backward.example)
    fitting = [sizes for sizes in others if fit(backward.definition, backward.of_axis, sizes)]
    return few_enough(backward.of_axis, [first, *fitting])


def drawn_for(
    backward: Backward, sizes: Mapping[str, int], draw: Callable, seed: int = 3
) -> list[torch.Tensor]:
    """Random numbers for the arguments, and labels of a class."""
    known = {a: int(n) for a, n in sizes_of_all(backward.of_axis, sizes).items()}
    named = {a.name: d for a, d in zip(backward.example.arguments, backward.inputs, strict=True)}
    high = {
        name: min((known.get(axis, 1) for axis in backward.indexed.get(d.name, ())), default=1)
        for name, d in named.items()
    }
    return drawn(backward.example.arguments, sizes, draw, high, seed)


def returned(
    both: Both, tensors: Tensors, ups: Tensors | None = None
) -> tuple[Tensors, Tensors, dict]:
    """The outputs, the upstream gradients, random if none are given, and the gradient returned for
    each argument by name.
    """
    with torch.no_grad(), quiet(), run_in_double():
        if ups is None:
            ups = [torch.randn(y.shape, dtype=torch.float64) for y in both.outputs(tensors)]
        noted = Seen()
        both.noted = [noted]
        found = both(*(t.clone() for t in (*tensors, *ups)))
    gradients = iter(found[noted.outputs :])
    names = [p.name for p in both.subject.parameters]
    pairs = zip(names, noted.gradients, strict=False)
    return found[: noted.outputs], ups, {name: next(gradients) for name, there in pairs if there}


def _evaluated(backward: Backward, e, of: Tensor, tensors: Tensors, ups: Tensors):
    """The value of an expression along the axes of ``of``."""
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
    given = {name: value for name, (_, value) in backward.scalars.items()} | {
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


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest entry."""
    if not other.numel():
        return 0.0
    gap = (one - other).abs().max().item()
    return gap / max(other.abs().max().item(), 1.0) if gap == gap else float("inf")


def straight_through(
    subject: FunctionSubject, arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> tuple[str, ...]:
    """Gradients that the backward returns although the forward has none: its values do not move
    with its arguments, as in rounding. torch's own derivative would not tell: it is missing, too,
    for values that leave the graph, to numpy and back.
    """
    axes = axes_in(arguments)
    chosen = {a: TRIED[0][i % len(TRIED[0])] for i, a in enumerate(axes)} | dict(sizes)
    chosen = fitted(axes_of(arguments), chosen, sizes)
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    both = Both(subject, arguments, [True] * len(subject.parameters), Seen())
    made: dict[str, bool] = {}
    for draw in DRAWS:
        try:
            tensors = drawn(arguments, chosen, draw)
            values, ups, grads = returned(both, tensors)
            moved = [t * (1 + NUDGE) if d else t for t, d in zip(tensors, differ, strict=True)]
            near, _, _ = returned(both, moved, ups)
        except Exception:
            continue
        if not all(v.isfinite().all() for v in values):
            continue
        if not all(map(torch.equal, values, near)):
            return ()
        for name, g in grads.items():
            made[name] = made.get(name, False) or bool(g.any())
    return tuple(f"d{name}" for name, some in made.items() if some)


def is_torchs(subject: FunctionSubject, backward: Backward, argument: str) -> bool:
    """True if the gradient, where entries are equal or 0, is that of torch's own derivative of the
    forward: its convention there.
    """
    arguments = backward.example.arguments
    place = [a.name for a in arguments].index(argument)
    differ = [a.kind not in (LABELS, MASK, GIVEN) for a in arguments]
    try:
        for draw in WITH_TIES:
            tensors = drawn_for(backward, backward.example.sizes, draw)
            _, ups, grads = returned(backward.both, tensors)
            leaves = [t.requires_grad_(d) for t, d in zip(tensors, differ, strict=True)]
            y = subject.module(arguments)(*leaves)
            (own,) = torch.autograd.grad(y, [leaves[place]], ups[0])
            if not distance(grads[argument].sum_to_size(own.shape), own) <= WITHIN:
                return False
    except Exception:
        return False
    return True
