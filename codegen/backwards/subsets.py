"""Results of a Function when torch needs only some of its gradients.

``ctx.needs_input_grad`` is true for the inputs that need a gradient, and with
``set_materialize_grads(False)`` None arrives for an output that no loss reads. The check of all
gradients takes all of them to be asked for; here the others are compared with it, in numbers: the
lines are the same, only which of them run differs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from codegen.backwards.claims import Backward
from codegen.backwards.functions import Both, FunctionSubject, Seen
from codegen.backwards.numeric import WITHIN, distance, drawn_for, returned, sizes_tried
from codegen.backwards.refused import raised
from codegen.targets.torch.check import DRAWS

MOST = 5  # inputs of which all subsets are tried; of more, those of one or two, and all but one
AT_SIZES = 2  # that the backward is run at


@dataclass(frozen=True)
class Partly:
    """A gradient that is missing or differs, ``where`` only some are needed; ``blamed`` is empty
    where the backward raises.
    """

    where: str
    words: str
    blamed: tuple[str, ...]
    line: int = 0
    more: int = 0  # other subsets of which the same holds

    def said(self, function: str, line: str) -> str:
        of = f"{', '.join(self.blamed)} of {function}" if self.blamed else f"backward of {function}"
        cases = "case" if self.more == 1 else "cases"
        more = f", and in {self.more} more {cases}" if self.more else ""
        words = f"wrong: {of} {self.words} where {self.where}{more}"
        return f"{words}\n    line {self.line}: {line}" if self.line else words


@dataclass(frozen=True)
class GradientCase:
    """A choice of the inputs that need a gradient and the outputs no loss reads, with its words."""

    needs: tuple[bool, ...]
    unread: tuple[int, ...]
    where: str


@dataclass(frozen=True)
class Subsets:
    """Problems in the cases that were tried, and these cases in words; no words if the only case is
    that of all gradients. ``covered`` is short: "every subset of gradients".
    """

    found: tuple[Partly, ...] = ()
    words: str = ""
    covered: str = ""


def of_subsets(subject: FunctionSubject, backward: Backward) -> Subsets:
    """Try every case that torch can ask for and that the code can distinguish."""
    noted = _noted(backward)
    if noted is None:
        return Subsets()
    inputs, outputs = _inputs(backward) if noted.asks else [], []
    if not noted.materializes and noted.outputs > 1:
        outputs = [*range(noted.outputs)]
    cases = [
        *(_of_inputs(backward, chosen) for chosen in _chosen(inputs)),
        *(_of_outputs(backward, chosen) for chosen in _chosen(outputs)),
    ]
    if not cases:
        return Subsets()
    lines = {said.argument: said.line for said in backward.said}
    found: dict[tuple, Partly] = {}
    for case in cases:
        for partly in _differing(subject, backward, case):
            key = (partly.blamed, partly.words.split()[0])
            if key in found:
                found[key] = replace(found[key], more=found[key].more + 1)
            else:
                line = partly.line or lines.get(partly.blamed[0][1:] if partly.blamed else "", 0)
                found[key] = replace(partly, line=line)
    words = _words(backward, inputs, outputs, len(cases))
    return Subsets(tuple(found.values()), words, _covered(inputs, outputs))


def _covered(inputs: Sequence[int], outputs: Sequence[int]) -> str:
    of = ["gradients"] * (len(inputs) > 1) + ["outputs"] * (len(outputs) > 1)
    subsets = "every subset" if max(len(inputs), len(outputs)) <= MOST else "some subsets"
    return f"{subsets} of {' and '.join(of)}"


def _words(backward: Backward, inputs: Sequence[int], outputs: Sequence[int], tried: int) -> str:
    names = [p.name for p in backward.both.subject.parameters]
    of = []
    if len(inputs) > 1:
        of.append(f"of {', '.join(names[i] for i in inputs)} need a gradient")
    if outputs:
        of.append("outputs are read by the loss")
    part = "" if max(len(inputs), len(outputs)) <= MOST else ", which are not all"
    return f"the same where only some {' and some '.join(of)}: {tried} cases{part}, in numbers"


def _noted(backward: Backward) -> Seen | None:
    for _, _, noted in _runs(backward, 1):
        return noted
    return None


def _inputs(backward: Backward) -> list[int]:
    """Positions of the arguments that can need a gradient."""
    return [i for i, needs in enumerate(backward.both.needs) if needs]


def _chosen(places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Nonempty proper subsets, small ones first."""
    counts = range(1, len(places))
    if len(places) > MOST:
        counts = sorted({1, 2, len(places) - 1})
    return itertools.chain.from_iterable(itertools.combinations(places, n) for n in counts)


def _of_inputs(backward: Backward, chosen: Sequence[int]) -> GradientCase:
    parameters = backward.both.subject.parameters
    names = [parameters[i].name for i in chosen]
    needs = tuple(i in chosen for i in range(len(parameters)))
    verb = "needs" if len(names) == 1 else "need"
    return GradientCase(needs, (), f"only {' and '.join(names)} {verb} a gradient")


def _of_outputs(backward: Backward, chosen: Sequence[int]) -> GradientCase:
    count = len(backward.outputs)
    ordinals = [f"output {i + 1}" for i in chosen]
    verb = "is" if len(ordinals) == 1 else "are"
    unread = tuple(i for i in range(count) if i not in chosen)
    return GradientCase(
        tuple(backward.both.needs), unread, f"only {' and '.join(ordinals)} {verb} used"
    )


def _runs(backward: Backward, most: int) -> Iterator[tuple]:
    """Tensors, upstream gradients and records, at some sizes where all values are finite."""
    found = 0
    for sizes in sizes_tried(backward):
        for draw in DRAWS:
            tensors = drawn_for(backward, sizes, draw)
            try:
                values, ups, grads = returned(backward.both, tensors)
            except Exception:
                continue
            if all(t.isfinite().all() for t in (*values, *grads.values())):
                yield tensors, ups, backward.both.noted[0]
                found += 1
                break
        if found == most:
            return


def _differing(
    subject: FunctionSubject, backward: Backward, case: GradientCase
) -> Iterator[Partly]:
    """Gradients that differ from those returned when all are needed: each gradient once."""
    parameters = subject.parameters
    asked = [p.name for p, needs in zip(parameters, case.needs, strict=True) if needs]
    both = Both(subject, backward.both.arguments, case.needs, Seen(), case.unread)
    done: set[str] = set()
    for tensors, ups, _ in _runs(backward, AT_SIZES):
        arrived = [up * (i not in case.unread) for i, up in enumerate(ups)]
        _, _, whole = returned(backward.both, tensors, arrived)
        try:
            _, _, partly = returned(both, tensors, arrived)
        except Exception as error:
            problem = raised(error, subject.file)
            yield Partly(case.where, f"raises {problem.words}", (), problem.line)
            return
        shapes = dict(zip((a.name for a in both.arguments), tensors, strict=True))
        for name in asked:
            words = _differs(whole.get(name), partly.get(name), shapes[name])
            if words and name not in done:
                done.add(name)
                yield Partly(case.where, words, (f"d{name}",))


def _differs(whole: torch.Tensor | None, partly: torch.Tensor | None, like: torch.Tensor) -> str:
    """Describe how two gradients differ; None is zero, and correct where the gradient is zero."""
    if whole is None and partly is None:
        return ""
    shape = tuple(like.shape)
    pair = (whole, partly)
    try:
        ours, theirs = (torch.zeros(()) if g is None else g.sum_to_size(shape) for g in pair)
    except RuntimeError:
        return f"has shape {tuple(partly.shape)} for one of {shape}" if partly is not None else ""
    gap = distance(theirs, ours)
    if gap <= WITHIN:
        return ""
    return "is None" if partly is None else f"differs by {gap:.1e}"
