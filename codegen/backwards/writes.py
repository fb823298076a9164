"""In-place writes of a Function into tensors that are not its own, and their consequences.

A Function owns the tensors that it made, until it saves them for the backward. It does not own its
arguments, which are the caller's, its outputs, or the upstream gradients, which torch may pass to
others too. The consequences are found by running it as torch does: a gradient that is right once
may be wrong the second time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from codegen.backwards.called import (
    Called,
    Gradients,
    Tensors,
    Watch,
    Write,
    called,
    changed,
    memory_of,
    same,
)
from codegen.backwards.found import Finding
from codegen.backwards.functions import FunctionSubject
from codegen.backwards.numeric import sizes_around
from codegen.backwards.refused import raised
from codegen.importing.asked import Argument
from codegen.importing.examples import Example, drawn, example_of
from codegen.targets.torch.check import DRAWS
from derive.language.errors import QuestionError

ARGUMENT, OUTPUT, UPSTREAM, KEPT = "its argument", "its output", "the upstream gradient", "kept"
AGAIN = "a second backward (retain_graph=True)"


def of_writes(
    subject: FunctionSubject,
    example: Example,
    draw: Callable[[Mapping[str, int], Callable, int], Tensors],
) -> tuple[Finding, ...]:
    """Tensors that one call with finite values writes into; ``draw`` makes its arguments.

    Empty where the Function cannot be called.
    """
    first, *small = sizes_around(example)
    for sizes in (*small, first):
        for numbers in DRAWS:
            try:
                tensors, others = (draw(sizes, numbers, seed) for seed in (3, 4))
                call = called(subject, example.arguments, tensors)
            except Exception as error:
                if sizes is first:
                    return _refused(subject, error)
                break
            if all(y.isfinite().all() for y in call.differentiable):
                trial = _TwoCalls(subject, example.arguments, tensors, others, call)
                return tuple(_without_repetition([*trial.forward(), *trial.backward()]))
    return ()


def written_in(
    subject: FunctionSubject, arguments: Sequence[Argument], sizes: Mapping[str, int]
) -> tuple[Finding, ...]:
    """The same for a Function that is not read; empty if no valid arguments are found."""
    try:
        example = example_of(subject, arguments, sizes)
    except QuestionError:
        return ()

    def draw(at: Mapping[str, int], numbers: Callable, seed: int) -> Tensors:
        classes = {a.name: 2 for a in example.arguments}  # of labels, of which there are two here
        return drawn(example.arguments, at, numbers, classes, seed)

    return of_writes(subject, example, draw)


def _refused(subject: FunctionSubject, error: Exception) -> tuple[Finding, ...]:
    """The reason why torch rejects a call whose forward alone runs."""
    problem = raised(error, subject.file)
    words = f"wrong: torch raises where {subject.name} is called: {problem.words}"
    return (Finding(words, True, subject.file, problem.line),)


def _without_repetition(found: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for each line and tensor written."""
    seen: set[str] = set()
    for one in found:
        if (key := f"{one.words} {one.line}") not in seen:
            seen.add(key)
            yield one


class _TwoCalls:
    """One call, its backward, and the backward again."""

    def __init__(
        self,
        subject: FunctionSubject,
        arguments: Sequence[Argument],
        tensors: Tensors,
        others: Tensors,
        call: Called,
    ):
        self.subject, self.arguments = subject, arguments
        self.tensors, self.others, self.call = tensors, others, call
        self.names = [a.name for a in arguments]
        self.memory = {memory_of(t): name for name, t in zip(self.names, call.given, strict=True)}

    # The forward

    def forward(self) -> Iterator[Finding]:
        """Arguments that the forward writes into without marking them as dirty."""
        pairs = [*zip(self.call.given, self.tensors, strict=True)]
        for name, write in _into(self.memory, [*self.call.writes, *changed(pairs)]):
            given = self.call.given[self.names.index(name)]
            if any(y is given for y in self.call.outputs):
                continue  # mark_dirty was called, and the argument is returned
            words = f"the forward of {self.subject.name} writes into its argument {name}"
            needs = not given.is_leaf  # of the copies that were passed
            if needs or self._is_read(name):
                returned = any(
                    isinstance(y, torch.Tensor) and memory_of(y) == memory_of(given)
                    for y in self.call.outputs
                )
                also = "" if returned else f" and return {name}"
                yield Finding(
                    f"wrong: {words}", True, *_place(write),
                    f"write into {name}.clone(), or call ctx.mark_dirty({name}){also}"
                    + self._or_given(name),
                    (f"the caller's {name} changes, and autograd does not know: whatever else "
                     f"reads {name} gets a wrong gradient, or none",),
                )  # fmt: skip
            else:
                changes = f"{words}, which changes the caller's; no gradient depends on it"
                yield Finding(changes, False, *_place(write))

    def _is_read(self, name: str) -> bool:
        """True if the result depends on an argument: running statistics are written only."""
        i = self.names.index(name)
        mixed = [*self.tensors]
        own = mixed[i]
        mixed[i] = self.others[i] if own.is_floating_point() else (own == 0).to(own.dtype)
        try:
            other = called(self.subject, self.arguments, mixed)
            ups = [torch.ones_like(y) for y in self.call.differentiable]
            compared = [(_tensors(self.call.outputs), _tensors(other.outputs))]
            compared.append((self.call.backward(ups), other.backward(ups)))
        except Exception:
            return True
        return not all(same(one, two) for one, two in compared)

    def _or_given(self, name: str) -> str:
        """Advice for an argument that may need no gradient: running statistics."""
        return (
            "" if self._is_read(name) else f'; if it needs no gradient, say --axes "{name}: given"'
        )

    # The backward

    def backward(self) -> Iterator[Finding]:
        """Tensors that the backward writes into, and whether a second one gives the same."""
        call = called(self.subject, self.arguments, self.tensors)
        if not call.differentiable:
            return
        generator = torch.Generator().manual_seed(1)
        ups = [
            torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)
            for y in call.differentiable
        ]
        arrived, watch = [up.clone() for up in ups], Watch()
        kept = call.kept()
        values = (*call.given, *call.outputs, *arrived)
        there = [(t, t.detach().clone()) for t in values if isinstance(t, torch.Tensor)]
        try:
            first = call.backward(arrived, watch)
        except Exception:
            return  # that is found where the backward is read
        before = [None if g is None else g.clone() for g in first]
        places = self._places(call, arrived, kept)
        again = self._again(call, ups, before, first)
        written = False
        for (role, name), write in _into(places, [*watch.writes, *changed(there)]):
            found = self._of_backward(role, name, write, ups, again)
            written = written or found is not None
            if found is not None:
                yield found
        if not written and again[0]:
            yield Finding(*again[1])

    def _places(self, call: Called, arrived: Tensors, kept: Mapping[int, str]):
        """Owners of the memory that exists before the backward runs."""
        places = {memory: (KEPT, name) for memory, name in kept.items()}
        places |= {memory_of(up): (UPSTREAM, self._upstream(i)) for i, up in enumerate(arrived)}
        places |= {memory_of(y): (OUTPUT, "") for y in call.outputs if isinstance(y, torch.Tensor)}
        given = zip(self.names, call.given, strict=True)
        return places | {memory_of(t): (ARGUMENT, name) for name, t in given}

    def _upstream(self, i: int) -> str:
        """The name of an output's upstream gradient."""
        own = list(inspect.signature(self.subject.of_class.backward).parameters.values())[1:]
        if i < len(own) and own[i].kind is not inspect.Parameter.VAR_POSITIONAL:
            return own[i].name
        return f"{own[-1].name}[{i}]" if own else ""

    def _of_backward(self, role, name, write, ups, again) -> Finding | None:
        into = f"wrong: the backward of {self.subject.name} writes into"
        name = name if role in (ARGUMENT, UPSTREAM) else _called(write, name)
        because = [again[0]] if again[0] else []
        if role == UPSTREAM:
            because = [*self._others(ups), *because]
            words = f"{into} the upstream gradient {name}"
        elif role == KEPT:
            if not because:
                return None
            words = f"{into} {name}, which its forward keeps for it"
        else:
            if role == ARGUMENT and not self._is_read(name):
                return None
            whose = f"its argument {name}" if role == ARGUMENT else f"its output {name}".rstrip()
            because = [f"the caller's {'tensor' if role == OUTPUT else name} changes", *because]
            words = f"{into} {whose}"
        remedy = f"write into {name or 'it'}.clone(), or compute out of place"
        return Finding(words, True, *_place(write), remedy, tuple(because))

    def _again(self, call: Called, ups: Tensors, before: Gradients, first: Gradients):
        """Differences of a second backward from the first: in words, and as a finding."""
        try:
            second = call.backward([up.clone() for up in ups])
        except Exception as error:
            problem = raised(error, self.subject.file)
            short = problem.words.split(": [")[0]
            said = f"{AGAIN} of {self.subject.name} raises {short}"
            return f"{AGAIN} raises {short}", (said, False, self.subject.file, problem.line)
        for i, one, two in zip(call.asked, before, second, strict=True):
            if not same((one,), (two,)):
                words = f"{AGAIN} gives another d{self.names[i]}"
                return words, (f"wrong: {words}: {self.subject.name} changes what it keeps",)
        call.backward([3 * up for up in ups])
        for i, one, kept in zip(call.asked, before, first, strict=True):
            name = f"d{self.names[i]}"
            if not same((one,), (kept,)):
                words = f"{AGAIN} changes the {name} that the first returned"
                return words, (f"wrong: {words}",)
        return "", ()

    def _others(self, ups: Tensors) -> Iterator[str]:
        """Consequences for other tensors of writing into an upstream gradient."""
        beside = [up.clone().requires_grad_() for up in ups]
        with torch.enable_grad():
            terms = [b * 1 for b in beside]  # before y, so that they are reached after it
            own = called(self.subject, self.arguments, self.tensors)
            sums = [t + y for t, y in zip(terms, own.differentiable, strict=True)]
            asked = [*beside, *(own.leaves[i] for i in own.asked)]
        arrived = [up.clone() for up in ups]
        found = torch.autograd.grad(sums, asked, arrived, retain_graph=True, allow_unused=True)
        may = "becomes" if not same(found[: len(ups)], tuple(ups)) else "may become"
        yield f"torch passes it to others too: in y + z, the gradient of z {may} wrong"
        try:
            own.backward([torch.ones((), dtype=y.dtype).expand(y.shape) for y in sums])
        except Exception as error:
            if "single memory location" in str(error):
                yield "y.sum().backward() raises an error: all of its entries are one number there"


def _into(places: Mapping[int, object], writes: Sequence[Write]) -> Iterator[tuple]:
    """Every tensor that is written into, with the first line that does so."""
    done: set = set()
    for write in writes:
        place = places.get(write.memory)
        if place is not None and place not in done:
            done.add(place)
            yield place, write


def _tensors(outputs: Sequence) -> Gradients:
    return tuple(y if isinstance(y, torch.Tensor) else None for y in outputs)


def _called(write: Write, attribute: str) -> str:
    """The user's name of a saved tensor."""
    return next(iter(write.names), attribute)


def _place(write: Write) -> tuple[str, int]:
    return write.file, write.line
