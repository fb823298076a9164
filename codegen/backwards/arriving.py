"""How torch may pass tensors: not contiguous in memory, and of one entry along an axis.

What a Function computes was read at sizes that all differ, of tensors that are contiguous. Here it
is run with others, in numbers: whether its backward raises then, or returns something else.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from codegen.backwards.called import Called, called, same
from codegen.backwards.claims import Backward, Raises, misshapen, raised
from codegen.backwards.found import Found
from codegen.backwards.functions import FunctionSubject
from codegen.backwards.numeric import (
    WITHIN,
    distance,
    drawn_for,
    pairs,
    returned,
    sizes_tried,
)
from codegen.importing.double import run_in_double
from codegen.importing.examples import axes_in
from codegen.importing.relations import fit
from codegen.importing.trace import quiet
from codegen.targets.torch.check import DRAWS

Tensor = torch.Tensor
CONTIGUOUS = "use reshape in place of view, or call {}.contiguous() first"


def _transposed(t: Tensor) -> Tensor:
    """The same entries, the dimensions in another order in memory."""
    order = [*range(t.dim())][::-1]
    return t.permute(order).contiguous().permute(order)


def _along_first(t: Tensor) -> Tensor:
    return t[:1].expand(t.shape)


def _all_alike(t: Tensor) -> Tensor:
    return t.reshape(-1)[0].expand(t.shape)


# How an upstream gradient lies in memory, and which use of an output passes it so.
PASSED = {
    "y.sum()": (1, _all_alike),
    "y.sum(0)": (2, _along_first),
    "y.transpose(0, -1)": (2, _transposed),
}


def of_arriving(subject: FunctionSubject, backward: Backward) -> tuple[Found, ...]:
    """What goes wrong of other tensors than those that the Function was read with."""
    for tensors in _some(backward):
        laid = [
            *_of_upstreams(subject, backward, tensors),
            *_of_arguments(subject, backward, tensors),
        ]
        return (*laid[:1], *_of_one_entry(subject, backward))
    return ()


def _some(backward: Backward) -> Iterator[list[Tensor]]:
    for sizes in sizes_tried(backward)[::-1]:
        for draw in DRAWS:
            tensors = drawn_for(backward, sizes, draw)
            try:
                values, _, grads = returned(backward.both, tensors)
            except Exception:
                continue
            if all(t.isfinite().all() for t in (*values, *grads.values())):
                yield tensors


# In memory


def _of_upstreams(subject, backward: Backward, tensors) -> Iterator[Found]:
    call = _called(subject, backward, tensors)
    for use, (rank, lay) in PASSED.items() if call else ():
        ups = [lay(up) if up.dim() >= rank else up for up in _ups(call)]
        names = ", ".join(subject.upstreams[: len(ups)]) or "the upstream gradient"
        where = f"{names} is not contiguous, as {use} passes it"
        yield from _compared(subject, backward, call, call, ups, where, names)


def _of_arguments(subject, backward: Backward, tensors) -> Iterator[Found]:
    names = [
        a.name for a, t in zip(backward.example.arguments, tensors, strict=True) if t.dim() > 1
    ]
    call = _called(subject, backward, tensors)
    if not names or not call:
        return
    where = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not contiguous"
    try:
        other = called(subject, backward.example.arguments, tensors, _transposed)
    except Exception as error:
        line = raised(error, subject.file).line
        words = f"the forward of {subject.name} raises where {where}"
        yield Found(words, False, subject.file, line, CONTIGUOUS.format(names[0]))
        return
    yield from _compared(subject, backward, call, other, _ups(call), where, names[0])


def _called(subject, backward, tensors) -> Called | None:
    """None where it raises: that is found where the Function is read."""
    try:
        call = called(subject, backward.example.arguments, tensors)
        call.backward(_ups(call))
    except Exception:
        return None
    return call if call.differentiable else None


def _ups(call: Called) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(y.shape, y.dtype) for y in call.differentiable]
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(d) for s, d in shapes]


def _compared(subject, backward, call, other, ups, where, name) -> Iterator[Found]:
    """The backward of ``other`` beside that of ``call`` with the same numbers, contiguous."""
    try:
        same_numbers = [up.clone(memory_format=torch.contiguous_format) for up in ups]
        right = call.backward(same_numbers)
    except Exception:
        return
    try:
        got = other.backward(ups)
    except Exception as error:
        problem = raised(error, subject.file)
        words = f"wrong: the backward of {subject.name} raises where {where}"
        short = (problem.words.split(" (at least")[0],) if isinstance(problem, Raises) else ()
        yield Found(words, True, subject.file, problem.line, CONTIGUOUS.format(name), short)
        return
    for i, one, two in zip(call.asked, right, got, strict=True):
        if not same((one,), (two,)):
            argument = backward.example.arguments[i].name
            words = f"wrong: d{argument} of {subject.name} is another one where {where}"
            yield Found(words, True, remedy=f"call {name}.contiguous() first")


# Of one entry


def _of_one_entry(subject: FunctionSubject, backward: Backward) -> Iterator[Found]:
    """Along each axis in turn: what is squeezed there, or branches on a size."""
    example = backward.example
    *_, base = sizes_tried(backward)
    for axis in axes_in(example.arguments):
        sizes = example.at({**base, axis: 1})
        if sizes[axis] == 1 and fit(backward.definition, backward.of_axis, sizes):
            found = next(_at(subject, backward, sizes, f"{axis} = 1"), None)
            if found:
                yield found


def _at(subject, backward: Backward, sizes, where: str) -> Iterator[Found]:
    """What differs at some sizes from what was read of others."""
    for draw in DRAWS:
        tensors = drawn_for(backward, sizes, draw)
        try:
            with torch.no_grad(), quiet(), run_in_double():
                backward.both.outputs(tensors)
        except Exception:
            return  # it has no value there
        try:
            values, ups, grads = returned(backward.both, tensors)
        except Exception as error:
            problem = raised(error, subject.file)
            words = f"wrong: the backward of {subject.name} raises where {where}"
            short = (problem.words,) if isinstance(problem, Raises) else ()
            yield Found(words, True, subject.file, problem.line, because=short)
            return
        if all(t.isfinite().all() for t in (*values, *grads.values())):
            yield from _misshapen(subject, backward, tensors, where)
            yield from _read_otherwise(subject, backward, tensors, values, ups, grads, where)
            return


def _misshapen(subject, backward: Backward, tensors, where: str) -> Iterator[Found]:
    shapes = backward.both.noted[0].shapes
    places = [p.name for p in subject.parameters]
    lines = {said.argument: said.line for said in backward.said}
    for argument, t in zip(backward.example.arguments, tensors, strict=True):
        got = shapes[places.index(argument.name)]
        words = "" if got is None else misshapen(tuple(t.shape), got, argument.name)
        if words and argument.name in lines:
            words = f"wrong: d{argument.name} of {subject.name} where {where}", words
            yield Found(words[0], True, subject.file, lines[argument.name], because=words[1:])


def _read_otherwise(subject, backward, tensors, values, ups, grads, where) -> Iterator[Found]:
    lines = {f"d{said.argument}": said.line for said in backward.said}
    try:
        for what, ours, theirs in pairs(backward, tensors, values, ups, grads):
            if not ours.isfinite().all():
                return
            if not distance(ours, theirs) <= WITHIN:
                if what not in lines:
                    break
                words = f"wrong: {what} of {subject.name} where {where}"
                but = "its lines compute something else there than at other sizes"
                yield Found(words, True, subject.file, lines[what], because=(but,))
        else:
            return
    except (RuntimeError, ValueError):
        pass
    yield Found(
        f"{subject.name} was not checked where {where}: its forward computes something else there",
        False,
    )
