"""The `torch.autograd.Function` of a module as text."""

from __future__ import annotations

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import NUMBERS
from codegen.program.steps import Assign
from codegen.program.values import Load
from codegen.targets.torch.again import DifferentiatedAgain
from codegen.targets.torch.lines import broken
from codegen.targets.torch.printed import Core, Differentiable, Transformed
from codegen.targets.torch.wrapping import WITHIN, broken_at_its_place, in_tuple, unpacked, used
from derive.notation.definition import IGNORE_INDEX

COMPOSED = (".flatten(", ".unflatten(", "torch.einsum(")  # of other operations, so without a rule


class Autograd(DifferentiatedAgain):
    """What autograd calls."""

    def differentiable(self) -> Differentiable:
        program = self.program
        forward, backward = program.forward, program.backward
        needs = backward.parameters[1:]
        saved = [f"result.{p.name}" for p in needs if p.role not in NUMBERS] + self.kept
        numbers = [f"result.{p.name}" for p in needs if p.role in NUMBERS]
        places = {name: i for i, name in enumerate(backward.results)}
        gradients = [
            f"gradients[{places[f'd{p.name}']}]"
            + f" if ctx.needs_input_grad[{i}] else None" * (p.default is not None)  # or left out
            if p.role == "input"
            else "None"
            for i, p in enumerate(forward.parameters)
        ]
        return Differentiable(
            self.inputs,
            forward.results[0],
            lines_to_differentiate(program).name,
            backward.parameters[0].name,
            tuple(broken(line, WITHIN) for line in [*self.kept_numbers(), *self.plain_applied()]),
            broken(f"ctx.save_for_backward({', '.join(saved)})", WITHIN),
            in_tuple(numbers),
            tuple(broken(line, WITHIN) for line in self.returned("result.")),
            tuple(broken_at_its_place(line) for line in self.called_back()),
            broken(f"return {in_tuple(gradients)}", WITHIN),
            ("@_runtime.for_batches",) * self.composed,
            self.behind_the_backward(),
            self.transformed(),
            self.line_by_line(),
        )

    @property
    def composed(self) -> bool:
        """Whether what comes back calls what torch has no batch of gradients for."""
        second = self.program.second
        functions = [self.program.backward]
        functions += [] if second is None else [second.behind, second.pullback or second.behind]
        lines = (line for function in functions for line in self.lines(function))
        own = any(name in line for line in lines for name in COMPOSED)
        return own or (self.plain is not None and self.plain.composed)

    def applied(self) -> list[str]:
        """Which function of autograd's is called."""
        function = f"{self.apply} = {self.program.title}Function.apply"
        if not self.any_order:
            return [function]
        other = f"{self.apply} = {self.program.title}Transformed.apply"
        active = "_runtime.transforms_active()"
        return [f"if {active}:\n        {other}\n    else:\n        {function}"]

    def transformed(self) -> tuple[Transformed, ...]:
        """The function of autograd's that torch.func sees through: its context is made of what
        went in and came out, so all that is saved is one or the other.
        """
        if not self.any_order:
            return ()
        forward, needs = self.program.forward, self.program.backward.parameters[1:]
        tensors = [p for p in needs if p.role not in NUMBERS]
        made = {step.name for step in forward.steps}
        handed_on = {p.name for p in forward.parameters if p.name not in made}
        own = {p.name for p in forward.parameters} - handed_on  # filled in where they are left out
        returned = {name: f"result.{name}" for name in self.names_of_outputs}
        for p in needs:
            if p.name in own:
                returned[p.name] = f"result.{p.name}.view_as(result.{p.name})"
            elif p.name not in handed_on:
                returned.setdefault(p.name, f"result.{p.name}")
        seen = len(self.names_of_outputs) - 1  # what else is returned has no gradient
        filled = [p.name for p in tensors if p.name in own and p.role == "input"]
        names = {name: f"{name}_filled" for name in filled}
        kept = handed_on | {*filled}
        arguments = [p.name if p.name in kept else "_" for p in forward.parameters]
        context = [
            f"{unpacked(arguments)} = inputs",
            f"{unpacked([names.get(name, name) for name in returned])} = outputs",
            *(f"{name} = {names[name]} if {name} is None else {name}" for name in filled),
            f"ctx.save_for_backward({', '.join(p.name for p in tensors)})",
            f"ctx.numbers = {in_tuple([p.name for p in needs if p.role in NUMBERS])}",
            *["ctx.plain = False"] * (self.plain is not None),
        ]
        return (
            Transformed(
                broken(f"return {in_tuple([*returned.values()])}", WITHIN),
                f"*cotangents[:{seen}]" if len(returned) > seen + 1 else "*cotangents",
                tuple(broken(line, WITHIN) for line in used(context, "")),
            ),
        )

    @property
    def names_of_outputs(self) -> list[str]:
        """The output, and the values that are saved, each once."""
        forward = self.program.forward
        if self.program.second is None or self.program.second.pullback is None:
            return [forward.results[0]]
        values = [p.name for p in self.program.second.pullback.parameters if p.role == "statement"]
        return [forward.results[0], *(name for name in values if name != forward.results[0])]

    def outputs(self, of: str = "") -> list[str]:
        """What autograd sees: the output, and the values that are saved, each once. These have a
        gradient where the backward is differentiated.
        """
        same = {
            step.name
            for step in self.program.forward.steps
            if isinstance(step, Assign) and isinstance(step.value, Load)
        }
        same |= self.entries
        return [
            f"{of}{name}.view_as({of}{name})" if name in same and i else f"{of}{name}"
            for i, name in enumerate(self.names_of_outputs)
        ]

    def returned(self, of: str = "") -> list[str]:
        """How autograd is given the outputs. Under torch.compile nothing is differentiated again,
        and a gradient of what is saved would be all zeros, added to the others.
        """
        outputs = self.outputs(of)
        alone = [f"if torch.compiler.is_compiling():\n            return ({outputs[0]},)"]
        return [*alone * (len(outputs) > 1), f"return {in_tuple(outputs)}"]

    def called_back(self) -> list[str]:
        """The gradients of the inputs, as it comes: with cotangents of what was saved, to be
        differentiated again, or as nearly always.
        """
        if self.by_lines:
            return self.called_back_by_lines()
        upstream = self.program.backward.parameters[0].name
        count = len(self.program.forward.parameters)
        lines = []
        if any(pair.program.second and pair.program.second.pullback for pair in self.pairs):
            if self.third:
                known = "ctx.plain, " * (self.plain is not None)
                known += f"ctx.needs_input_grad, ctx.numbers, {upstream}, *cotangents, *saved"
                again = "any(c is not None for c in cotangents) and torch.is_grad_enabled()"
                tensors = "*filter(torch.is_tensor, cotangents)"
                lines += [f"if {again} and not _runtime.in_plain_torch({tensors}):"]
                function = f"{self.program.title}Pullback"
                lines += [f"    gradients = _runtime.applied({function}, {known})"]
            way = "elif" if self.third else "if"
            lines += [f"{way} any(c is not None for c in cotangents):"]
            lines += self.either(
                lambda pair, name: [pair.pulled_back(f"{name}_pullback", upstream)], "    "
            )
            lines += [f"elif {upstream} is None:"]
        else:
            lines += [f"if {upstream} is None:"]
        lines += [
            f"    return (None,) * {count}",
            f"elif torch.is_grad_enabled() and not _runtime.in_plain_torch({upstream}):",
        ]
        if self.any_order:
            known = "ctx.plain, " * (self.plain is not None) + "ctx.needs_input_grad, ctx.numbers"
            gradient = f"{self.program.title}Gradient"
            lines += [f"    gradients = _runtime.applied({gradient}, {known}, {upstream}, *saved)"]
        else:
            lines += ["    raise NotImplementedError(_REFUSAL)"]
        lines += ["else:"]
        lines += self.either(
            lambda pair, name: [f"gradients = {pair.backward_called(name, upstream)}"], "    "
        )
        return lines

    def pulled_back(self, name: str, upstream: str) -> str:
        if self.program.second is None or self.program.second.pullback is None:
            return "raise NotImplementedError(_REFUSAL)"
        more = ", needs=ctx.needs_input_grad" * self.guards_in(self.program.second.pullback)
        return f"gradients = {name}({upstream}, *cotangents, *saved, *ctx.numbers{more})"

    def plain_pair(self) -> tuple[Core, ...]:
        if self.plain is None:
            return ()
        page, pair = self.plain, self.plain.program
        gradients = tuple(
            name if name in pair.backward.results else "None"
            for name in self.program.backward.results
        )
        return (
            page.core(pair.forward, "_plain_forward", returned=pair.forward.results),
            page.core(
                pair.backward,
                "_plain_backward",
                [page.needs] * page.guards,
                returned=gradients,
            ),
            *page.second_cores("_plain", gradients),
        )

    def takes_plain(self) -> str:
        """When the shorter pair is taken; nothing where there is none."""
        plain = self.program.plain
        if plain is None:
            return ""
        printer = self.printer(self.program.forward)
        tests = [f"{name} is None" for name in plain.absent]
        tests += [f"{name} == 0" for name in plain.zero]
        for step in plain.counting:
            lengths = "".join(f", {printer.text(length)}" for length in step.lengths)
            tests.append(f"_runtime.all_count({step.name}, {IGNORE_INDEX}{lengths})")
        return " and ".join(tests)

    def plain_applied(self) -> list[str]:
        """When the shorter pair is taken, and how."""
        plain = self.program.plain
        if plain is None:
            return []
        inputs = ", ".join(p.name for p in plain.forward.parameters)
        needs = plain.backward.parameters[1:]
        saved = ", ".join([*(p.name for p in needs if p.role not in NUMBERS), *self.kept])
        numbers = [p.name for p in needs if p.role in NUMBERS]
        results = in_tuple(plain.forward.results).removeprefix("(").removesuffix(")")
        return [
            f"ctx.plain = {self.takes_plain()}",
            "if ctx.plain:",
            f"    {results} = _plain_forward({inputs})",
            f"    ctx.save_for_backward({saved})",
            f"    ctx.numbers = {in_tuple(numbers)}",
            *("    " + line.replace("\n", "\n    ") for line in self.plain.returned()),
        ]
