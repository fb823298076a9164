"""The `torch.autograd.Function` of a module whose axes are split, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.program import NUMBERS
from codegen.targets.torch.asking import Core
from codegen.targets.torch.sharded import ShardedPage
from codegen.targets.torch.wrapping import broken_at_its_place, in_tuple
from derive.language.notation.definition import IGNORE_INDEX


@dataclass(frozen=True)
class RankPair:
    """Texts that the `torch.autograd.Function` is printed from."""

    inputs: str
    output: str
    upstream: str
    forward: tuple[str, ...]
    backward: tuple[str, ...]


class ShardedPair(ShardedPage):
    """The page of the functions that autograd calls."""

    @property
    def plain(self) -> ShardedPair | None:
        """The page of the pair for calls that pass nothing optional."""
        return ShardedPair(self.sharded.plain) if self.sharded.plain is not None else None

    def takes_plain(self) -> str:
        """The condition under which the shorter pair is called."""
        plain, printer = self.sharded, self.printer(self.program.forward)
        tests = [f"{name} is None" for name in plain.absent]
        tests += [f"{name} == 0" for name in plain.zero]
        for step in plain.counting:
            lengths = "".join(f", {printer.text(length)}" for length in step.lengths)
            tests.append(f"_runtime.all_count({step.name}, {IGNORE_INDEX}{lengths})")
        return " and ".join(tests)

    def plain_pair(self) -> tuple[Core, ...]:
        if self.plain is None:
            return ()
        forward, backward = (self.plain.program.forward, self.plain.program.backward)
        gradients = [
            name if name in backward.results else "None" for name in self.program.backward.results
        ]
        return (
            self.plain.one_core(forward, "_plain_forward", forward.results),
            self.plain.one_core(backward, "_plain_backward", gradients),
        )

    def pair(self) -> RankPair:
        program = self.program
        forward, backward = program.forward, program.backward
        lines = self.kept("_forward")
        gradients = self.called_back("_backward")
        if self.plain is not None:
            short, after = (
                self.plain.kept("_plain_forward"),
                self.plain.called_back("_plain_backward"),
            )
            lines = [f"ctx.plain = {self.takes_plain()}", *either("ctx.plain", short, lines)]
            gradients = either("ctx.plain", after, gradients)
        places = {name: i for i, name in enumerate(backward.results)}
        returned = [
            f"gradients[{places[f'd{p.name}']}] if ctx.needs_input_grad[{i}] else None"
            if p.role == "input"
            else "None"
            for i, p in enumerate(forward.parameters, 1)
        ]
        lines += ["ctx.over = over", f"return {forward.results[0]}"]
        gradients += [f"return {in_tuple(['None', *returned])}"]
        return RankPair(
            self.inputs,
            forward.results[0],
            backward.parameters[0].name,
            tuple(map(broken_at_its_place, lines)),
            tuple(map(broken_at_its_place, gradients)),
        )

    def kept(self, name: str) -> list[str]:
        """The lines of the forward that autograd calls."""
        forward, needs = self.program.forward, self.program.backward.parameters[1:]
        plain = name != "_forward"  # it returns a plain tuple
        of = "" if plain else "result."
        made = ", ".join(forward.results) + "," * (len(forward.results) == 1)
        saved = ", ".join(f"{of}{p.name}" for p in needs if p.role not in NUMBERS)
        numbers = [f"{of}{p.name}" for p in needs if p.role in NUMBERS]
        return [
            f"{made if plain else 'result'} = {name}(*over, {self.inputs})",
            *[f"{forward.results[0]} = result.{forward.results[0]}"] * (not plain),
            f"ctx.save_for_backward({saved})",
            f"ctx.numbers = {in_tuple(numbers) if numbers else '()'}",
        ]

    def called_back(self, name: str) -> list[str]:
        """The lines of the backward: the ranks know each other's lengths by then."""
        backward, overs = self.program.backward, [*self.over.values()]
        meets = self.meets(backward, again=True)
        given = ", ".join(
            [*overs, backward.parameters[0].name, "*ctx.saved_tensors", "*ctx.numbers"]
        )
        return [
            *(
                f'{over} = ctx.over[{i}].again("{backward.name}", {meets[axis]})'
                for i, (axis, over) in enumerate(self.over.items())
            ),
            f"with {', '.join(overs)}:",
            f"    gradients = {name}({given})",
        ]


def either(test: str, lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """Lines for a test that holds, and others for one that does not."""
    return [
        f"if {test}:",
        *(f"    {line}" for line in lines),
        "else:",
        *(f"    {line}" for line in others),
    ]
