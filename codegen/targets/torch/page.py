"""The parts of a Program as text: what the template of a module prints."""

from __future__ import annotations

from codegen.program import Function
from codegen.targets.torch.autograd import Autograd
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.printed import PrintedFunction
from codegen.targets.torch.wrapping import KINDS, public, wrapped


class Page(Autograd):
    """What stands in a module, function by function."""

    def public(self) -> str:
        """The ``def`` of the differentiable function."""
        program = self.program
        several = ", ".join(["Tensor"] * len(program.outputs))
        kind = f"tuple[{several}]" if len(program.outputs) > 1 else "Tensor"
        return wrapped(f"def {program.name}", public(program.forward.parameters), f" -> {kind}:")

    def printed(self) -> tuple[PrintedFunction, ...]:
        """The four functions that stand before the second order."""
        program = self.program
        kinds = ("forward", "backward", "checked", "checked")
        functions = (program.forward, program.backward, program.atoms, program.chain)
        return tuple(
            PrintedFunction(
                function.result_class,
                self.results(function),
                f'"""{function.summary}"""',
                self.declared_core(function, function.name, f"@_pair.{kind}"),
            )
            for kind, function in zip(kinds, functions, strict=True)
        )

    def results(self, function: Function) -> tuple[tuple[str, str, str], ...]:
        """The fields of what a function returns: name, type, and its dimensions as a comment."""
        kinds = {p.name: KINDS.get(p.role, "Tensor") for p in function.parameters}
        kinds |= {name: self.kind_of_size(name) for name, _ in function.sizes}
        layouts = layouts_in(function)
        return tuple(
            (
                name,
                kinds.get(name, "Tensor"),
                f"  # {self.dimensions(function, name, layouts[name])}" if name in layouts else "",
            )
            for name in function.results
        )

    def seconds(self) -> tuple[dict[str, object], ...]:
        """The second order, if there is one."""
        if self.program.second is None:
            return ()
        cores = self.second_cores("", "_pair")
        return ({"results": self._results_of_second(), "cores": cores},)

    def plains(self) -> tuple[dict[str, object], ...]:
        """The shorter pair, if there is one."""
        if self.plain is None:
            return ()
        return ({"special": self.special(), "cores": self.plain_pair()},)

    def _results_of_second(self) -> tuple[tuple[str, str, str], ...]:
        """The fields of what the backward of the backward returns."""
        second, upstreams = self.program.second, self.program.upstreams
        tangents = second.double.results[: len(upstreams)]
        cotangents = dict(second.cotangents)
        all_there = second.pullback is not None or self.program.outputs[0] in cotangents
        layouts = {f"d{p.name}": p.layout for p in self.program.forward.tensors}
        layouts |= {name: p.layout for name, p in zip(tangents, upstreams, strict=True)}
        found = []
        for name in second.double.results:
            there = all_there or name in tangents or name[1:] in cotangents
            shape = self.dimensions(second.behind, name, layouts[name])
            found.append((name, "Tensor" if there else "None", f"  # {shape}"))
        return tuple(found)
