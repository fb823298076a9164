"""What stands behind a backward as text: its lines, and the functions for whoever calls it."""

from __future__ import annotations

from codegen.program import NUMBERS, Second
from codegen.targets.torch.branches import Branches
from codegen.targets.torch.lines import broken
from codegen.targets.torch.printed import Core, PrintedFunction
from codegen.targets.torch.wrapping import unpacked, used, wrapped


class BehindTheBackward(Branches):
    """The second derivatives."""

    def second_cores(self, name: str = "") -> tuple[Core, ...]:
        """The lines of what comes behind the backward, and behind what was saved."""
        second = self.program.second
        if second is None:
            return ()
        cotangents = dict(second.cotangents)
        tensors = [p for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        behind = [second.behind.results[0], *(cotangents.get(p.name, "None") for p in tensors)]
        asked = [self.needs]
        found = [self.core(second.behind, f"{name}_behind", asked, behind)]
        if second.pullback is not None:
            returned = second.pullback.results
            found.append(self.core(second.pullback, f"{name}_pullback", asked, returned))
        kinds = (("behind", second.behind), ("pullback", second.pullback))
        for again, (kind, of) in zip(second.third, kinds, strict=False):
            computed = dict(again.gradients)
            returned = [computed.get(p.name, "None") for p in of.tensors]
            found.append(self.core(again.function, f"{name}_{kind}_again", asked, returned))
        return tuple(found)

    def second(self) -> tuple[PrintedFunction, ...]:
        """What comes behind the backward, for whoever calls it."""
        second = self.program.second
        return () if second is None else (self._jvp(second), self._double(second))

    def _jvp(self, second: Second) -> PrintedFunction:
        """The tangent of the output."""
        function, tangent = second.jvp, second.behind.results[0]
        layout = self.program.backward.parameters[0].layout
        pushed = self.printer(second.double).restored(tangent, layout)
        return PrintedFunction(
            function.summary,
            wrapped(f"def {function.name}", self.arguments(function), " -> Tensor:"),
            self.shapes(function),
            tuple(
                used(
                    [
                        *self.asked(function),
                        *self.lines(function),
                        *self.made_whole(function, [tangent]),
                    ],
                    pushed,
                )
            ),
            "",
            (),
            f"return {pushed}.to({self.dtype})",
        )

    def _double(self, second: Second) -> PrintedFunction:
        """The backward of the backward: one function after the other, and what they add up to."""
        double, tangent = second.double, second.behind.results[0]
        lines, values = self._called(second)
        layouts = {f"d{p.name}": p.layout for p in self.program.forward.tensors}
        layouts[tangent] = self.program.backward.parameters[0].layout
        printer = self.printer(double)
        lines += self.made_whole(second.behind, [tangent])
        returned, kinds = [], []
        for name, terms in values.items():
            kind = "Tensor" if terms else "None"
            shape = self.dimensions(second.behind, name, layouts[name])
            kinds.append((name, kind, f"  # {shape}"))
            if len(terms) > 1:
                lines.append(f"{name} = {' + '.join(terms)}")
                terms = [name]
            text = printer.restored(terms[0], layouts[name]) if terms else "None"
            returned.append(f"{text}.to({self.dtype})" if terms else text)
        kind = f" -> {double.result_class}:"
        return PrintedFunction(
            double.summary,
            wrapped(f"def {double.name}", self.arguments(double), kind),
            self.shapes(double),
            tuple(used(lines, ", ".join(returned))),
            double.result_class,
            tuple(kinds),
            wrapped(f"return {double.result_class}", returned, indent=4),
        )

    def _called(self, second: Second) -> tuple[list[str], dict[str, list[str]]]:
        """The calls, and for every result the names that are its terms; none where it is 0."""
        double, cotangents = second.double, dict(second.cotangents)
        needs, names = self.program.backward.parameters[1:], [p.name for p in double.parameters]
        saved = names[len(second.behind.parameters) - len(needs) :]
        tensors = [p for p in needs if p.role not in NUMBERS]
        found = [second.behind.results[0], *(cotangents.get(p.name, "_") for p in tensors)]
        every = "_pair.rule.every"
        given = ", ".join([*names, f"{every}_behind"])
        call = broken(f"{unpacked(found)} = _behind({given})")
        lines = [*self.asked(double), call]
        values: dict[str, list[str]] = {name: [] for name in double.results[1:]}
        pulled = unpacked(double.results[1:])
        if second.pullback is not None:
            of = [p.name for p in second.pullback.parameters if p.role == "adjoint"]
            passed = [name if name in cotangents.values() else "None" for name in of]
            lines.append(wrapped(f"{pulled} = _pullback", [*passed, *saved, every], indent=4))
            values = {name: [name] for name in values}
        elif self.program.forward.results[0] in cotangents:
            passed = [cotangents[self.program.forward.results[0]], *saved, every]
            lines.append(wrapped(f"{pulled} = _backward", passed, indent=4))
            values = {name: [name] for name in values}
        for p in tensors:
            if f"d{p.name}" in values and p.name in cotangents:
                values[f"d{p.name}"].append(cotangents[p.name])
        return lines, {found[0]: [found[0]], **values}
