"""Derivatives of a backward that has none in closed form, as text: autograd takes them, over the
statements, for which the inputs are kept.
"""

from __future__ import annotations

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import NUMBERS
from codegen.targets.torch.pairs import Pairs
from codegen.targets.torch.printed import DifferentiatedByLine
from codegen.targets.torch.wrapping import WITHIN, in_tuple

ACTIVE = "_runtime.transforms_active()"


class LineByLine(Pairs):
    """What stands where the second order was asked for and is not proved."""

    @property
    def by_lines(self) -> bool:
        """Whether autograd takes the second derivatives, line by line."""
        return bool(self.program.without_second)

    @property
    def kept(self) -> list[str]:
        """The tensors that are kept for it, beside what the closed form reads."""
        arguments = self.asked_for if self.by_lines else ()
        return [p.name for p in arguments if p.role not in NUMBERS]

    @property
    def seen_through(self) -> str:
        """When the function is its statements."""
        return "_runtime.in_plain_torch()" + f" or {ACTIVE}" * self.by_lines

    def kept_numbers(self) -> list[str]:
        """The line that keeps the other arguments."""
        others = [p.name for p in self.asked_for if p.role in NUMBERS]
        return [f"ctx.others = {in_tuple(others) if others else '()'}"] * self.by_lines

    def line_by_line(self) -> tuple[DifferentiatedByLine, ...]:
        if not self.by_lines:
            return ()
        forward, backward = self.program.forward, self.program.backward
        counts = {"tensors": 0, "others": 0}
        arguments = []
        for p in forward.parameters:
            kind = "others" if p.role in NUMBERS else "tensors"
            arguments.append(f"{kind}[{counts[kind]}]")
            counts[kind] += 1
        places = {f"d{p.name}": i for i, p in enumerate(forward.parameters)}
        return (
            DifferentiatedByLine(
                backward.parameters[0].name,
                f"[{', '.join(arguments)}]",
                f"{lines_to_differentiate(self.program).name}(*arguments).{forward.results[0]}",
                f"[{', '.join(f'gradients[{places[name]}]' for name in backward.results)}]",
                "@_runtime.uncast\n" * self.multiplies_matrices(self.program.atoms),
            ),
        )

    def called_back_by_lines(self) -> list[str]:
        """The gradients of the inputs, and how they are differentiated again."""
        upstream = self.program.backward.parameters[0].name
        count = len(self.program.forward.parameters)
        seen = f"_runtime.in_plain_torch({upstream}) or {ACTIVE}"
        known = f"ctx.needs_input_grad, ctx.others, {upstream}, *tensors"
        kept = len(self.kept)
        return [
            f"saved, tensors = saved[:-{kept}], saved[-{kept}:]",
            f"if {upstream} is None:",
            f"    return (None,) * {count}",
            "graph = torch.is_grad_enabled()",
            f"if graph and ({seen}):",
            f"    gradients = _line_by_line({known})",
            "else:",
            "    with torch.no_grad():",
            *self.either(
                lambda pair, name: [f"gradients = {pair.backward_called(name, upstream)}"],
                WITHIN,
            ),
            "    if graph:",
            f"        gradients = {self.program.title}Again.apply(gradients, {known})",
        ]
