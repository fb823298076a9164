"""Rows that are read in chunks, with the largest entry and sums of exponentials followed together:
the rule, and what comes out when a schedule is followed word by word.
"""

import operator
from collections.abc import Sequence
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import pytest
import torch

from codegen.building.programs import program_of
from codegen.schedule.costs import GPU
from codegen.schedule.elements import (
    ZERO,
    call,
    choose,
    compare,
    entry,
    index,
    less,
    minus,
    number,
    plus,
    size,
    times,
)
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Array, Flat, Node
from codegen.schedule.online import in_chunks
from codegen.schedule.planning import planned
from codegen.schedule.rows import sweep_of
from derive import derive
from derive.language.notation.library import as_forward

OPERATIONS = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "negate": torch.neg,
    "choose": torch.where,
}
RELATIONS = {"==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt}


class Followed:
    """What comes out of the sweeps of a function whose rows have one axis, with chunks of 3."""

    def __init__(self, own: Flat, **arrays: torch.Tensor):
        self.arrays = {n: t.double() if t.is_floating_point() else t for n, t in arrays.items()}
        self.sizes = {}
        for array in own.arrays:
            self.sizes |= dict(zip(array.axes, arrays[array.name].shape, strict=True))
        self.sweeps = [in_chunks(stage) for stage in planned(own, GPU).stages]
        for sweep in self.sweeps:
            self.sweep(sweep)

    def sweep(self, sweep) -> None:
        self.parts = dict.fromkeys(sweep.partial, torch.zeros((), dtype=torch.float64))
        for node in sweep.nodes:
            shape = [self.sizes[axis] for axis in node.axes]
            if node.name in sweep.stored:
                self.arrays[node.name] = torch.full(shape, nan, dtype=torch.float64)
        for row in range(self.sizes[sweep.parallel[0]] if sweep.parallel else 1):
            self.at = dict.fromkeys(sweep.parallel, torch.tensor(row))
            self.values = {}
            for nest in sweep.nests:
                self.nest(nest, sweep)
        self.arrays |= self.parts

    def nest(self, nest, sweep) -> None:
        """Each pass over a row begins with nothing in hand but numbers of the row."""
        paired = {total: peak for peak, total in nest.online}
        for node in (node for node in nest.nodes if node.kind and nest.axes):
            start = -inf if node.kind == "max" else 0.0
            self.values[node.name] = torch.tensor(start, dtype=torch.float64)
        length = self.sizes[nest.axes[0]] if nest.axes else 1
        for first in range(0, length, 3):
            if nest.axes:
                self.at[nest.axes[0]] = torch.arange(first, min(first + 3, length))
            before = dict(self.values)
            for node in sorted(nest.nodes, key=lambda node: node.kind != "max"):
                self.node(node, sweep, before, paired.get(node.name))
        for node in nest.nodes:
            if nest.axes and not node.kind:
                del self.values[node.name]
            elif node.name in sweep.stored and node.name not in self.parts:
                self.put(node)

    def put(self, node) -> None:
        self.arrays[node.name][tuple(self.at[a] for a in node.axes)] = self.values[node.name]

    def node(self, node, sweep, before, peak) -> None:
        found = self.value(node.value)
        if node.name in sweep.partial:
            self.parts[node.name] = self.parts[node.name] + found.sum()
        elif node.kind == "max":
            self.values[node.name] = torch.maximum(before[node.name], found.amax())
        elif node.kind == "sum":
            scale = torch.ones((), dtype=torch.float64)
            if peak and before[peak] != self.values[peak]:
                scale = torch.exp(before[peak] - self.values[peak])
            self.values[node.name] = before[node.name] * scale + found.sum()
        else:
            self.values[node.name] = found
            if node.name in sweep.stored:
                self.put(node)

    def value(self, e):
        args = [self.value(arg) for arg in e.args]
        if e.kind == "number":
            return torch.tensor(float(e.number), dtype=torch.float64)
        if e.kind in ("size", "index"):
            return torch.tensor(self.sizes[e.name]) if e.kind == "size" else self.at[e.name]
        if e.kind in ("entry", "label"):
            own = self.values.get(e.name)
            return self.arrays[e.name][tuple(args)] if own is None else own
        if e.kind == "compare":
            return RELATIONS[e.name](*args)
        return (getattr(torch, e.name.lower()) if e.kind == "call" else OPERATIONS[e.kind])(*args)


def of_gallery(name: str, **arrays: torch.Tensor) -> Followed:
    forward = as_forward(name)
    program = program_of(derive(forward), Path(forward.definition.place.file), "")
    return Followed(flat(program, program.forward), **arrays)


def of_nodes(*nodes: Node, before: Sequence[Node] = ()) -> Followed:
    """Of ``nodes``, which are results, and those ``before`` them, made of the rows x."""
    results = tuple((node.name, node.name) for node in nodes)
    array = Array("x", ("N", "C"), ())
    return Followed(Flat((array,), (), (*before, *nodes), {}, results, (), {}), x=ROWS)


ROWS = torch.tensor(
    [
        [0.5, -2.0, 3.0, 1.0, 700.0, -1.0, 2.0],
        [-900.0, -800.0, -1000.0, -inf, -801.0, -inf, -800.5],
        [-inf, -inf, -inf, -inf, 2.0, 1.0, 3.0],  # nothing in the first chunk
        [-inf] * 7,
        [1.0, 2.0, inf, 0.0, 5.0, -inf, 2.0],
        [1.0, 2.0, 3.0, 4.0, nan, 6.0, 7.0],
        [800.0, 1.0, 0.0, 0.0, 0.0, 0.0, 810.0],
    ],
    dtype=torch.float64,
)


def close(own, other):
    torch.testing.assert_close(own, other, rtol=1e-14, atol=0.0, equal_nan=True)


def passes(followed) -> list[int]:
    return [sum(bool(nest.axes) for nest in sweep.nests) for sweep in followed.sweeps]


def test_softmax_reads_a_row_twice():
    own = of_gallery("softmax", x=ROWS)
    close(own.arrays["y"][[0, 1, 2, 5, 6]], torch.softmax(ROWS, 1)[[0, 1, 2, 5, 6]])
    assert own.arrays["y"][3:5].isnan().any(1).all()
    assert passes(own) == [2]


def test_logsumexp_reads_a_row_once():
    own = of_gallery("logsumexp", x=ROWS)
    close(own.arrays["y"], torch.logsumexp(ROWS, 1))
    assert passes(own) == [1]


def test_a_peak_that_is_subtracted_as_it_is_gives_no_number_where_it_did():
    """The maximum of softmax_nll has no guard: of a row of -oo alone its sum is NaN."""
    labels = torch.tensor([4, 1, 6, 0, 0, 0, 6])
    pairs = zip(ROWS.split(1), labels.split(1), strict=True)
    own = [of_gallery("softmax_nll", logits=row, labels=label) for row, label in pairs]
    losses = torch.stack([each.arrays["loss"] for each in own])
    close(losses, torch.nn.functional.cross_entropy(ROWS, labels, reduction="none"))
    assert own[3].arrays["probs"].isnan().all()
    assert passes(own[0]) == [2, 0]


X, M = entry("x", index("N"), index("C")), entry("m", index("N"))
OTHER, TWO = entry("w", index("C")), number(Fraction(2))
SHIFTED = call("exp", less(X, M))
PEAK = Node("m", ("N",), X, "max", ("C",))


def test_a_sum_without_guard_is_no_number_where_the_maximum_is_infinite():
    own = of_nodes(PEAK, Node("s", ("N",), SHIFTED, "sum", ("C",)))
    close(own.arrays["s"], (ROWS - ROWS.amax(1, keepdim=True)).exp().sum(1))
    assert own.arrays["s"].isnan().tolist() == [False, False, False, True, True, True, False]


def test_what_a_row_would_keep_is_computed_again():
    exponential, total = call("exp", X), entry("t", index("N"))
    again = entry("e", index("N"), index("C"))
    own = of_nodes(
        Node("t", ("N",), times(again, again), "sum", ("C",)),
        Node("y", ("N", "C"), less(again, total)),
        before=[Node("e", ("N", "C"), exponential)],
    )
    close(own.arrays["y"], ROWS.exp() - (2 * ROWS).exp().sum(1, keepdim=True))


def test_all_maxima_of_a_row_are_found_in_one_pass():
    least = Node("l", ("N",), minus(X), "max", ("C",))
    spread = plus(M, entry("l", index("N")))
    own = of_nodes(PEAK, least, Node("y", ("N", "C"), times(X, spread)))
    wanted = ROWS * (ROWS.amax(1, keepdim=True) + (-ROWS).amax(1, keepdim=True))
    close(own.arrays["y"], wanted)
    assert passes(own) == [2]


def followed(term, *more):
    """The pairs of a sweep that has the sum of ``term`` behind the maximum of a row."""
    nodes = [PEAK, *more, Node("s", ("N",), term, "sum", ("C",))]
    nests = in_chunks(sweep_of(nodes, ("N",), {"m", "s"})).nests
    return [pair for nest in nests for pair in nest.online]


@pytest.mark.parametrize(
    "term",
    [
        SHIFTED,
        times(X, SHIFTED),
        less(SHIFTED, call("exp", less(OTHER, M))),
        call("exp", less(less(X, M), OTHER)),
        choose(compare(OTHER, "==", TWO), SHIFTED, ZERO),
        call("exp", less(times(OTHER, X), M)),
    ],
)
def test_terms_with_a_factor_of_the_maximum(term):
    assert followed(term) == [("m", "s_raw")]


def test_a_guarded_maximum_stays_as_it_is():
    condition = compare(call("abs", M), "==", number(inf))
    assert followed(call("exp", less(X, choose(condition, ZERO, M)))) == [("m", "s")]


@pytest.mark.parametrize(
    "term",
    [
        less(X, M),
        times(M, SHIFTED),
        call("exp", times(TWO, less(X, M))),
        call("exp", less(M, X)),
        call("exp", less(X, times(TWO, M))),
        call("exp", less(X, choose(compare(M, ">", number(inf)), ZERO, M))),
        call("exp", less(X, choose(compare(M, "==", TWO), ZERO, M))),
        call("exp", less(X, entry("m", size("N")))),
        less(SHIFTED, OTHER),
        times(SHIFTED, SHIFTED),
        choose(compare(X, "==", M), SHIFTED, ZERO),
    ],
)
def test_other_terms_wait_for_the_maximum(term):
    assert followed(term) == []


def test_what_is_divided_by_another_sum_of_the_row_waits_for_it():
    other = Node("t", ("N",), OTHER, "sum", ("C",))
    assert followed(times(SHIFTED, entry("t", index("N"))), other) == []
