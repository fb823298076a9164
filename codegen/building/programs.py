"""From a proved closed form to a Program: the functions, each from an outline: arguments, lines,
checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codegen.building.arguments import divisors, fillings, refused
from codegen.building.looping import Looping
from codegen.building.outlines import Line, Outline, listed
from codegen.building.recurrences import Loop, links_backward, links_forward, with_loops
from codegen.building.signatures import Signatures
from codegen.lowering import Lowering
from codegen.lowering.differentiated import with_lines_to_differentiate
from codegen.lowering.idioms import with_logarithms_joined
from codegen.lowering.matrices import with_triangles
from codegen.lowering.repeated import better
from codegen.lowering.vanishing import with_zeros_kept
from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program.steps import NotZero, Step
from derive.chain.ties import ties_backward, ties_forward
from derive.closing.risks import first_of_equals, unsafe
from derive.formulas.text import formula
from derive.language.symbols import Axes, Tensor
from derive.notation.layout import Layout
from derive.proving.proved import Proved


def program_of(proved: Proved, source: Path, source_hash: str) -> Program:
    """Everything that a target prints, decided; the mathematics is in the file ``source``."""
    return Builder(proved).program(source, source_hash)


class Builder(Signatures):
    """The functions of a Program."""

    def program(self, source: Path, source_hash: str) -> Program:
        definition, snake = self.definition, self.definition.snake
        lines = [(v.tensor, v.expression) for v in self.plan]
        risks, more = unsafe(lines, self.statements(), self.form.relations)
        program = Program(
            name=snake,
            title=definition.name,
            doc=definition.doc,
            source=source.name,
            source_hash=source_hash,
            formulas=self._formulas_written(),
            proved=self.proved.summary,
            unsafe=(*map(str, risks), *more),
            risks=risks,
            first=first_of_equals(self.statements()),
            sizes=tuple((axis.name, self.sizes[axis]) for axis in definition.axes),
            several=tuple(self.sizes[a] for a in definition.axes if isinstance(a, Axes)),
            flattened=tuple(
                (self.sizes[flat], tuple(self.sizes[part] for part in parts))
                for flat, parts in definition.flattened
            ),
            derived=self._derived(),
            fixed=tuple((self.sizes[axis], n) for axis, n in definition.fixed.items()),
            requirements=tuple(self._requirements()),
            means=tuple((name, axis.name) for axis, name in self._sizes_divided_by().items()),
            labels=tuple(self._label_ranges()),
            ranges=self._ranges(self._inputs(), self._counting()),
            ignored=tuple(ignoring.label.name for ignoring in definition.ignoring),
            broadcast=definition.broadcast,
            forward=self._forward(),
            backward=with_zeros_kept(self._backward(), self.origins_of_saved()),
            atoms=self._atoms(),
            chain=self._chain(),
        )
        return with_lines_to_differentiate(program)

    def _formulas_written(self) -> tuple[str, ...]:
        ties = *ties_forward(self.definition), *ties_backward(self.definition)
        return tuple(f"{tensor} = {formula(e)}" for tensor, e in (*ties, *self.statements()))

    # -- the four functions ---------------------------------------------------

    def _forward(self) -> Function:
        outputs = [t.name for t in self.definition.results]
        results = (*outputs, *(p.name for p in self.needs() if p.name not in outputs))
        values = with_logarithms_joined(((v.tensor, v.expression) for v in self.plan), results)
        lines = [Line(tensor, (e,), self.layouts[tensor.name]) for tensor, e in values]
        return self.function(
            Outline(
                f"{self.definition.snake}_forward",
                f"The {listed('output', outputs)}, then what the backward needs.",
                self._inputs(),
                lines,
                results,
                f"{self.definition.name}Forward",
                self.definition.wanted[0].name,
                checks=self._asked_of_inputs(),
                links=links_forward(self.definition),
            )
        )

    def _backward(self) -> Function:
        upstreams = self.upstreams()
        parameters, names = [*upstreams, *self.needs()], [p.name for p in upstreams]
        return self.function(
            Outline(
                f"{self.definition.snake}_backward",
                f"The gradients of the inputs, from {listed('', names)} and what the forward"
                " saved.",
                parameters,
                self._gradient_lines(),
                self._gradients(),
                f"{self.definition.name}Gradients",
                names[0],
                self.definition.by_name,
                self._at_hand(),
                self.asked_of_saved(parameters),
                links_backward(self.definition),
            )
        )

    def _gradients(self) -> tuple[str, ...]:
        return tuple(f"d{t.name}" for t in self.definition.wanted)

    def _atoms(self) -> Function:
        statements = self.definition.statements
        lines = [Line(s.tensor, (s.expression,), self.layouts[s.name]) for s in statements]
        return self.function(
            Outline(
                f"{self.definition.snake}_atoms",
                "Every statement of the forward, as written.",
                self._inputs(),
                lines,
                tuple(t.name for t in self._valued()),
                f"{self.definition.name}Atoms",
                self.definition.wanted[0].name,
                self.definition.by_name,
                links=links_forward(self.definition),
            )
        )

    def _valued(self) -> list[Tensor]:
        """The statements, and the states before each place."""
        definition = self.definition
        return [*(s.tensor for s in definition.statements), *(c.before for c in definition.carried)]

    def _chain(self) -> Function:
        chain = self.form.chain
        parameters = self.upstreams()
        like = parameters[0].name
        numbers = [p for p in self._inputs() if p.role in NUMBERS]
        parameters += [p for p in self._inputs() if p not in numbers]
        parameters += [Parameter(t.name, self.layouts[t.name], "statement") for t in self._valued()]
        parameters += numbers
        lines = [
            Line(a.tensor, tuple(c.through_outer for c in a.contributions), self.layouts[a.of.name])
            for a in chain.adjoints
        ]
        found = chain.arriving | chain.by_name.keys()  # what is an index has no gradient
        results = [name for s in self.definition.statements if (name := f"d{s.name}") in found]
        results += self._gradients()
        return self.function(
            Outline(
                f"{self.definition.snake}_chain",
                "The gradient of every statement and input, one step of the chain rule at a time.",
                parameters,
                lines,
                tuple(results),
                f"{self.definition.name}Chain",
                like,
                self.definition.by_name,
                checks=self._asked_beside_inputs(parameters),
                links=links_backward(self.definition),
            )
        )

    def function(self, outline: Outline) -> Function:
        parameters, lines = outline.parameters, list(outline.lines)
        known: dict[str, Layout] = dict(self.layouts)
        known |= {p.name: p.layout for p in parameters} | {
            line.tensor.name: line.layout for line in lines
        }
        of = self.definition.axes, outline.statements, outline.saved
        lowering = Lowering(known, *of, self._peaks, self._magnitudes)
        numbers = {p.name for p in parameters if p.role in NUMBERS}
        steps: list[Step] = [*fillings(parameters)]
        if any(p.role == "index" for p in parameters):
            steps += self._labels_split()
        steps += self._lowered(outline, lowering, numbers)
        if not lowering.rounds_as_autograd:
            own = {*parameters, *self.definition.arguments, *(line.tensor for line in lines)}
            taken = {t.name for t in own} | self.definition.by_name.keys()
            steps = better(steps, numbers, {*taken, *self.sizes.values()})
        steps = [with_triangles(step, self._factors) for step in steps]
        steps = [*self._zeros(outline, steps, numbers), *steps]
        return Function(
            outline.name,
            outline.summary,
            tuple(parameters),
            outline.checks,
            self._read_sizes(steps, parameters, outline.results),
            tuple(steps),
            outline.results,
            outline.result_class,
        )

    def _lowered(self, outline: Outline, lowering: Lowering, numbers: set[str]) -> Iterator[Step]:
        """The steps of the lines of a function, those that follow from one another as loops."""
        items = with_loops([*outline.lines], outline.links)
        looping = Looping(self.definition, self.form.chain, outline, lowering, numbers)
        looping.taken |= {*self.sizes.values()}
        for item in items:
            if isinstance(item, Loop):
                yield from looping.steps(item, [other for other in items if other is not item])
            else:
                named = item.tensor.name, item.terms, item.layout
                yield from lowering.accumulated(*named, outline.like)

    def _zeros(self, outline: Outline, steps: list[Step], numbers: set[str]) -> list[NotZero]:
        """What the steps divide by and nothing refuses before."""
        refusals = refused(self._requirements(), self._lengths(outline.parameters))
        never = {r.left for r in refusals if not r.equal} | self._never_zero
        found = divisors(steps, numbers, outline.name)
        return [zero for zero in found if zero.divisor not in never]
