"""A loss together with its gradients in one function: its upstream gradient is one number, by which
the gradients are multiplied later. Where the caller chooses the reduction, the sum and its divisor
are computed in it as well; so are the masks of ignored labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from codegen.program import Function, Parameter, Program
from codegen.program.steps import NotZero, SplitLabel, Step
from codegen.program.values import SizeOf
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Element,
    choose,
    compare,
    entry,
    index,
    is_number,
    number,
    over,
    size,
)
from codegen.schedule.flattening import Flattening
from codegen.schedule.nodes import Flat, Node
from derive.language.notation.definition import REDUCTION


@dataclass(frozen=True)
class AroundLoss:
    """Computation around the entries of a loss. ``divisors`` are the lines that compute the divisor
    of their sum for each word of ``reduction``; the number of the word, from 1, is passed.
    ``ignored`` are labels: where one is the argument ``index``, the loss is 0. ``absent`` are
    arrays that the lines read and that are one number everywhere.
    """

    reduces: bool = False
    divisors: tuple[tuple[Step, ...], ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()  # (label, the name of where it counts)
    index: str = ""
    absent: Mapping[str, Element] = field(default_factory=dict)


NOTHING = AroundLoss()


def with_gradients(
    program: Program, wanted: Sequence[str], around: AroundLoss = NOTHING
) -> tuple[Function, Flat] | None:
    """The forward followed by the gradients ``wanted``, for an upstream gradient of 1; None if the
    output is not a number, if there are several, or if the backward needs more.
    """
    forward, backward = program.forward, program.backward
    upstream = backward.parameters[0]
    if (
        len(program.outputs) > 1
        or bool(upstream.layout) != around.reduces
        or any(is_refused(step) for step in backward.steps)
    ):
        return None
    divisors = _numbered(around.divisors)
    given = [p for p in forward.parameters if p.role != "index"]
    numbers = [Parameter(around.index, (), "index")] * bool(around.index)
    numbers += [Parameter(REDUCTION, (), "index")] * around.reduces
    function = replace(
        forward,
        name=f"{forward.name}_with_gradients",
        parameters=(*given, *numbers),
        steps=(*(s for steps in divisors for s in steps), *_steps(forward, backward)),
        results=(forward.results[0], *wanted),
    )
    axes = {code: axis for axis, code in program.sizes}
    known = {p.name: size(axes[p.name]) for p in backward.parameters if p.role == "size"}
    return function, _Around(program, function, known, around).flat()


def _steps(forward: Function, backward: Function) -> list[Step]:
    """The steps of both, each once."""
    return [*forward.steps, *(s for s in backward.steps if s not in forward.steps)]


def _numbered(divisors: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """The lines of every divisor, with its number in the name of the last."""
    return [
        [*steps[:-1], replace(steps[-1], name=f"{steps[-1].name}_{i}")]
        for i, steps in enumerate(divisors, 1)
    ]


class _Around(Flattening):
    """The nodes of a function, and those around them."""

    def __init__(
        self, program: Program, function: Function, known: Mapping[str, Element], around: AroundLoss
    ):
        self.around = around
        self.upstream, self.output = program.backward.parameters[0], program.outputs[0]
        inside = [self.upstream] * around.reduces
        layouts = {p.name: p.layout for p in function.tensors}
        inside += [Parameter(kept, layouts[label], "kept") for label, kept in around.ignored]
        inside += [Parameter(name, (), "given") for name in around.absent]
        own = replace(function, parameters=(*function.parameters, *inside))
        if not around.reduces:
            known = {**known, self.upstream.name: ONE}
        super().__init__(program, own, known)
        self.inside = {p.name for p in inside}

    def flat(self) -> Flat:
        found = super().flat()
        results, nodes, layouts = dict(found.results), [*found.nodes], dict(found.layouts)
        self.masks = {s.kept: s.name for s in self.function.steps if isinstance(s, SplitLabel)}
        self.masks |= {kept: label for label, kept in self.around.ignored}
        self.scale = ONE
        if self.around.reduces:
            divisor = self._divisor(nodes)
            self.scale = ONE if divisor == ONE else over(ONE, divisor)
            axes = self.axes(layouts[self.output])
            at = tuple(map(index, axes))
            loss = self._counting(entry(results[self.output], *at), at)
            summed, output = self.fresh("loss_sum"), self.fresh(self.output)
            nodes.append(Node(summed, (), loss, "sum", axes))
            nodes.append(Node(output, (), over(entry(summed), divisor)))
            results[self.output], layouts[output] = output, ()
        loops = {n.name: n.value.replaced(self._changed) for n in nodes if isinstance(n, Node)}
        nodes = [replace(n, value=loops[n.name]) if n.name in loops else n for n in nodes]
        return replace(
            found,
            arrays=tuple(a for a in found.arrays if a.name not in {*self.inside, *self.masks}),
            nodes=tuple(nodes),
            layouts=layouts,
            results=tuple(results.items()),
            ignored=dict.fromkeys(self.masks.values(), self.around.index),
        )

    def _divisor(self, nodes: list[Node]) -> Element:
        """The divisor of the sum for the given word; a node of its own if it is computed."""
        found, places = ONE, [0]
        for i, steps in enumerate(_numbered(self.around.divisors), 1):
            name = steps[-1].name
            value = self.known.get(name)
            if value is None:
                value = entry(self.made[name])
                places.append(1 + [node.name for node in nodes].index(self.made[name]))
            chosen = compare(Element("scalar", name=REDUCTION), "==", number(Fraction(i)))
            found = choose(chosen, value, found)
        if is_number(found):
            return found
        nodes.insert(max(places), Node(self.fresh("divisor"), (), found))
        return entry(nodes[max(places)].name)

    def _counting(self, value: Element, at: tuple[Element, ...]) -> Element:
        """0 where a label is ignored."""
        for label, _ in self.around.ignored:
            value = choose(self._test(label, at), value, ZERO)
        return value

    def _changed(self, e: Element) -> Element | None:
        """An element for the joint function: masks are tests of labels, upstreams numbers."""
        if e.kind == "compare" and e.args[0].name in self.masks and e.args[1] == ZERO:
            test = self._counts(e.args[0])
            return test if e.name == "!=" else Element("not", (test,))
        if e.kind == "label" and e.name in self.masks.values():
            return Element("counted", (e,), self.around.index)
        if e.kind == "counts":
            return e
        if e.kind != "entry":
            return None
        if e.name in self.masks:
            return choose(self._counts(e), ONE, ZERO)
        if e.name in self.around.absent:
            return self.around.absent[e.name]
        if e.name == self.upstream.name and e.name in self.inside:
            return self._counting(self.scale, e.args)
        return None

    def _counts(self, e: Element) -> Element:
        return self._test(self.masks[e.name], e.args)

    def _test(self, label: str, at: tuple[Element, ...]) -> Element:
        return Element("counts", (Element("label", at, label),), self.around.index)


def is_refused(step: Step) -> bool:
    """True if the step may reject values from loops: a divisor of 0 that is no size of an axis. An
    axis without entries makes tensors empty, and these are left to the lines.
    """
    return isinstance(step, NotZero) and not isinstance(step.divisor, SizeOf)
