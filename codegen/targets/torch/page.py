"""The parts of a Program as text: what the template of a module prints."""

from __future__ import annotations

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program.steps import Fits
from codegen.targets.torch.autograd import Autograd
from codegen.targets.torch.lines import broken
from codegen.targets.torch.printed import Core, PrintedFunction
from codegen.targets.torch.wrapping import WITHIN, public, used, wrapped


class Page(Autograd):
    """What stands in a module, function by function."""

    def public(self) -> Core:
        """The differentiable function."""
        program = self.program
        printer, output = self.printer(program.forward), program.forward.results[0]
        layout = program.backward.parameters[0].layout
        first = next(
            s.name for s in program.forward.checks if isinstance(s, Fits) and s.kind == "first"
        )
        lines = lines_to_differentiate(program).name
        through = f"return {lines}({self.inputs}).{output}.to({first}.dtype)"
        seen = "_runtime.in_plain_torch()"
        seen += " or _runtime.transforms_active()" * self.by_lines
        lines = [
            *(f'_inputs.without_gradient("{name}", {name})' for name in self.of_role("given")),
            f"if {seen}:\n        {broken(through, WITHIN)}",
            self.prepared,
            self.explained(f"{output} = _pair({self.inputs})"),
        ]
        whole = printer.restored(output, layout)
        lines += self.made_whole(program.forward, [output])
        lines += [f"{output} = {whole}"] * (whole != output)
        rounded = f"{output} if {output}.dtype == {self.dtype} else {output}.to({self.dtype})"
        returned = f"return {rounded}"
        return Core(
            wrapped(f"def {program.name}", public(program.forward.parameters), " -> Tensor:"),
            tuple(used(lines, returned)),
            returned,
        )

    def forward(self) -> PrintedFunction:
        function = self.program.forward
        return self.function(
            function,
            [
                self.prepared,
                self.explained(f"{self.result} = _forward({self.inputs})"),
                *self.made_whole(function, function.results, f"{self.result}."),
            ],
            self.restored(function, f"{self.result}.", rounded=1),
            self.core(function, "_forward"),
        )

    def backward(self) -> PrintedFunction:
        function = self.program.backward
        arguments = [*(p.name for p in function.parameters), "_pair.rule.every"]
        return self.function(
            function,
            [*self.asked(function), wrapped(f"{self.result} = _backward", arguments, indent=4)],
            self.restored(function, f"{self.result}.", rounded=len(function.results)),
            self.core(function, "_backward", [self.needs]),
        )

    def atoms(self) -> PrintedFunction:
        function = self.program.atoms
        lines = [self.prepared, *self.in_range(), *self.lines(function)]
        lines += self.made_whole(function, function.results)
        return self.function(function, lines, self.restored(function))

    def chain(self) -> PrintedFunction:
        function = self.program.chain
        lines = [self.prepared, *self.in_range(), *self.asked(function), *self.lines(function)]
        lines += self.made_whole(function, function.results)
        return self.function(function, lines, self.restored(function))
