"""What stands behind a backward as text: its lines, and the functions for whoever calls it."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.program import NUMBERS
from codegen.targets.torch.functions import Functions
from codegen.targets.torch.printed import Core, PrintedFunction
from codegen.targets.torch.wrapping import (
    unpacked,
    used,
    wrapped,
)


class BehindTheBackward(Functions):
    """The second derivatives."""

    def second_cores(self, name: str = "", gradients: Sequence[str] = ()) -> tuple[Core, ...]:
        """The lines of what comes behind the backward, and behind what was saved; ``gradients`` are
        those that the latter returns, if these are not all that it computes.
        """
        second = self.program.second
        if second is None:
            return ()
        cotangents = dict(second.cotangents)
        tensors = [p for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        behind = [second.behind.results[0], *(cotangents.get(p.name, "None") for p in tensors)]
        found = [self.core(second.behind, f"{name}_behind", returned=behind)]
        if second.pullback is not None:
            found.append(
                self.core(
                    second.pullback,
                    f"{name}_pullback",
                    returned=gradients or second.pullback.results,
                )
            )
        return tuple(found)

    def second(self) -> tuple[PrintedFunction, ...]:
        """What comes behind the backward, for whoever calls it."""
        second = self.program.second
        if second is None:
            return ()
        double, cotangents = second.double, dict(second.cotangents)
        names = [p.name for p in double.parameters]
        saved = names[len(second.behind.parameters) - len(self.program.backward.parameters[1:]) :]
        tensors = [p for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        found = [second.behind.results[0], *(cotangents.get(p.name, "_") for p in tensors)]
        lines = [
            *self.asked(double),
            wrapped(f"{unpacked(found)} = _behind", names, indent=4),
        ]
        values: dict[str, list[str]] = {name: [] for name in double.results[1:]}
        pulled = unpacked(double.results[1:])
        if second.pullback is not None:
            of = [p.name for p in second.pullback.parameters if p.role == "adjoint"]
            passed = [name if name in cotangents.values() else "None" for name in of]
            lines.append(wrapped(f"{pulled} = _pullback", [*passed, *saved], indent=4))
            values = {name: [name] for name in values}
        elif self.program.forward.results[0] in cotangents:
            passed = [cotangents[self.program.forward.results[0]], *saved]
            passed += [f"(True,) * {len(self.program.forward.parameters)}"] * self.guards
            lines.append(wrapped(f"{pulled} = _backward", passed, indent=4))
            values = {name: [name] for name in values}
        for p in tensors:
            if f"d{p.name}" in values and p.name in cotangents:
                values[f"d{p.name}"].append(cotangents[p.name])
        layouts = {f"d{p.name}": p.layout for p in self.program.forward.tensors}
        layouts[found[0]] = self.program.backward.parameters[0].layout
        printer = self.printer(double)
        returned = []
        for name, terms in ((found[0], [found[0]]), *values.items()):
            if len(terms) > 1:
                lines.append(f"{name} = {' + '.join(terms)}")
                terms = [name]
            text = printer.restored(terms[0], layouts[name]) if terms else "None"
            returned.append(f"{text}.to({self.dtype})" if terms else text)
        kinds = [
            (name, "Tensor" if terms else "None", f"  # {self.shape_of(layouts[name])}")
            for name, terms in ((found[0], [found[0]]), *values.items())
        ]
        tangent = second.jvp
        pushed = [*self.asked(tangent), *self.lines(tangent)]
        pushed_to = printer.restored(found[0], layouts[found[0]])
        return (
            PrintedFunction(
                tangent.summary,
                wrapped(f"def {tangent.name}", self.arguments(tangent), " -> Tensor:"),
                self.shapes(tangent),
                tuple(used(pushed, pushed_to)),
                "",
                (),
                f"return {pushed_to}.to({self.dtype})",
            ),
            PrintedFunction(
                double.summary,
                wrapped(
                    f"def {double.name}", self.arguments(double), f" -> {double.result_class}:"
                ),
                self.shapes(double),
                tuple(used(lines, ", ".join(returned))),
                double.result_class,
                tuple(kinds),
                wrapped(f"return {double.result_class}", returned, indent=4),
            ),
        )
