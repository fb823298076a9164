"""Layouts in which torch may pass tensors: not contiguous, or with one entry along an axis.

A Function is read with contiguous tensors, at sizes that all differ. Here it is run with others, in
numbers, to see whether its backward raises or returns something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from codegen.backwards.called import Called, Tensors, called, same
from codegen.backwards.claims import Backward
from codegen.backwards.found import Finding
from codegen.backwards.functions import FunctionSubject
from codegen.backwards.numeric import WITHIN, distance, drawn_for, pairs, returned, sizes_tried
from codegen.backwards.refused import Raises, misshapen, raised
from codegen.importing.double import run_in_double
from codegen.importing.examples import axes_in
from codegen.importing.relations import fit
from codegen.importing.trace import quiet
from codegen.targets.torch.check import DRAWS

Tensor = torch.Tensor
CONTIGUOUS = "use reshape in place of view, or call {}.contiguous() first"


def _transposed(t: Tensor) -> Tensor:
    """The same entries, with the dimensions in another order in memory."""
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


def of_arriving(subject: FunctionSubject, backward: Backward) -> tuple[Finding, ...]:
    """Problems with other tensors than those that the Function was read with."""
    trial = _ReadFunction(subject, backward)
    for tensors in trial.some():
        laid = [*trial.of_upstreams(tensors), *trial.of_arguments(tensors)]
        return (*laid[:1], *trial.of_one_entry())
    return ()


class _ReadFunction:
    """A Function with its traced backward."""

    def __init__(self, subject: FunctionSubject, backward: Backward):
        self.subject, self.backward = subject, backward
        self.arguments = backward.example.arguments
        self.lines = {s.argument: s.line for s in backward.said if not s.problem}

    def some(self) -> Iterator[list[Tensor]]:
        """Arguments with finite values."""
        for sizes in sizes_tried(self.backward)[::-1]:
            for draw in DRAWS:
                tensors = drawn_for(self.backward, sizes, draw)
                try:
                    values, _, grads = returned(self.backward.both, tensors)
                except Exception:
                    continue
                if all(t.isfinite().all() for t in (*values, *grads.values())):
                    yield tensors

    # In memory

    def of_upstreams(self, tensors: Tensors) -> Iterator[Finding]:
        call = self._called(tensors)
        for use, (rank, lay) in PASSED.items() if call else ():
            ups = [lay(up) if up.dim() >= rank else up for up in _ups(call)]
            names = ", ".join(self.subject.upstreams[: len(ups)]) or "the upstream gradient"
            where = f"{names} is not contiguous, as {use} passes it"
            yield from self._compared(call, call, ups, where, names)

    def of_arguments(self, tensors: Tensors) -> Iterator[Finding]:
        given = zip(self.arguments, tensors, strict=True)
        names = [a.name for a, t in given if t.dim() > 1]
        call = self._called(tensors)
        if not names or not call:
            return
        where = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not contiguous"
        try:
            other = called(self.subject, self.arguments, tensors, _transposed)
        except Exception as error:
            words = f"the forward of {self.subject.name} raises where {where}"
            line = raised(error, self.subject.file).line
            yield Finding(words, False, self.subject.file, line, CONTIGUOUS.format(names[0]))
            return
        yield from self._compared(call, other, _ups(call), where, names[0])

    def _called(self, tensors: Tensors) -> Called | None:
        """None where it raises: that is reported where the Function is read."""
        try:
            call = called(self.subject, self.arguments, tensors)
            call.backward(_ups(call))
        except Exception:
            return None
        return call if call.differentiable else None

    def _compared(self, call: Called, other: Called, ups: Tensors, where: str, name: str):
        """Compare the backward of ``other`` with that of ``call``: the same numbers, contiguous."""
        try:
            numbers = [up.clone(memory_format=torch.contiguous_format) for up in ups]
            right = call.backward(numbers)
        except Exception:
            return
        try:
            got = other.backward(ups)
        except Exception as error:
            yield self._raising(error, where, CONTIGUOUS.format(name))
            return
        for i, one, two in zip(call.asked, right, got, strict=True):
            if not same((one,), (two,)):
                of = f"d{self.arguments[i].name} of {self.subject.name}"
                words = f"wrong: {of} is another one where {where}"
                yield Finding(words, True, remedy=f"call {name}.contiguous() first")

    def _raising(self, error: Exception, where: str, remedy: str = "") -> Finding:
        problem = raised(error, self.subject.file)
        words = f"wrong: the backward of {self.subject.name} raises where {where}"
        short = (problem.words.split(" (at least")[0],) if isinstance(problem, Raises) else ()
        return Finding(words, True, self.subject.file, problem.line, remedy, short)

    # Of one entry

    def of_one_entry(self) -> Iterator[Finding]:
        """Findings with one entry along each axis in turn: squeezed axes, or branches on a size."""
        example = self.backward.example
        *_, base = sizes_tried(self.backward)
        for axis in axes_in(self.arguments):
            sizes = example.at({**base, axis: 1})
            if sizes[axis] == 1 and fit(self.backward.definition, self.backward.of_axis, sizes):
                found = next(self._at(sizes, f"{axis} = 1"), None)
                if found:
                    yield found

    def _at(self, sizes: Mapping[str, int], where: str) -> Iterator[Finding]:
        """Differences, at some sizes, from the backward that was read at others."""
        both = self.backward.both
        for draw in DRAWS:
            tensors = drawn_for(self.backward, sizes, draw)
            try:
                with torch.no_grad(), quiet(), run_in_double():
                    both.outputs(tensors)
            except Exception:
                return  # it has no value there
            try:
                run = returned(both, tensors)
            except Exception as error:
                yield self._raising(error, where)
                return
            values, _, grads = run
            if all(t.isfinite().all() for t in (*values, *grads.values())):
                yield from self._misshapen(tensors, where)
                yield from self._read_otherwise(tensors, run, where)
                return

    def _misshapen(self, tensors: Tensors, where: str) -> Iterator[Finding]:
        shapes = self.backward.both.noted[0].shapes
        places = [p.name for p in self.subject.parameters]
        for argument, t in zip(self.arguments, tensors, strict=True):
            got = shapes[places.index(argument.name)]
            problem = "" if got is None else misshapen(tuple(t.shape), got, argument.name)
            if problem and argument.name in self.lines:
                yield self._wrong(argument.name, where, problem)

    def _read_otherwise(self, tensors: Tensors, run: tuple, where: str) -> Iterator[Finding]:
        but = "its lines compute something else there than at other sizes"
        unchecked = f"{self.subject.name} was not checked where {where}"
        try:
            for what, ours, theirs in pairs(self.backward, tensors, *run):
                if not ours.isfinite().all():
                    return
                if not distance(ours, theirs) <= WITHIN:
                    argument = what.removeprefix("d")
                    if argument in self.lines:
                        yield self._wrong(argument, where, but)
                        return
                    break
            else:
                return
        except (RuntimeError, ValueError):
            pass  # its output has other dimensions there
        yield Finding(f"{unchecked}: its forward computes something else there", False)

    def _wrong(self, argument: str, where: str, problem: str) -> Finding:
        words = f"wrong: d{argument} of {self.subject.name} where {where}"
        return Finding(words, True, self.subject.file, self.lines[argument], because=(problem,))


def _ups(call: Called) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(y.shape, y.dtype) for y in call.differentiable]
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(d) for s, d in shapes]
