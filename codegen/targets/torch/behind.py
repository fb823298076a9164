"""What stands behind a backward as text: the second derivatives, and those behind them."""

from __future__ import annotations

from codegen.program import NUMBERS
from codegen.targets.torch.notation import Notation
from codegen.targets.torch.printed import Core


class BehindTheBackward(Notation):
    """The second derivatives."""

    def second_cores(self, name: str, declared: str) -> tuple[Core, ...]:
        """The lines of what comes behind the backward, and behind what was saved, each with its
        decorator.
        """
        second = self.program.second
        if second is None:
            return ()
        cotangents = dict(second.cotangents)
        tensors, tangents = self._saved(), second.behind.results[: len(self.program.upstreams)]
        behind = [*tangents, *(cotangents.get(name, "None") for name in tensors)]
        kinds = [("behind", second.behind, behind)]
        if second.pullback is not None:
            kinds.append(("pullback", second.pullback, second.pullback.results))
        found = [
            self.declared_core(function, f"{name}_{kind}", f"@{declared}.{kind}", returned)
            for kind, function, returned in kinds
        ]
        for again, (kind, of, _) in zip(second.third, kinds, strict=False):
            computed, places = dict(again.gradients), self._places(kind)
            returned = [computed.get(p.name, "None") for p in of.tensors]
            taken = ", ".join([f'"{kind}"', *(str(places[of]) for of, _ in again.vectors)])
            decorator = f"@{declared}.third({taken})"
            found.append(
                self.declared_core(again.function, f"{name}_{kind}_again", decorator, returned)
            )
        return tuple(found)

    def _places(self, kind: str) -> dict[str, int]:
        """Of each result of a function its place among all."""
        second = self.program.second
        if kind == "pullback":
            return {result: i for i, result in enumerate(second.pullback.results)}
        count, tensors = len(self.program.upstreams), self._saved()
        cotangents = ((c, tensors.index(of) + count) for of, c in second.cotangents)
        return {name: i for i, name in enumerate(second.behind.results[:count])} | dict(cotangents)

    def _saved(self) -> list[str]:
        return [p.name for p in self.program.needs if p.role not in NUMBERS]

    def cores_alone(self, name: str, declared: str) -> tuple[Core, ...]:
        """The backward of each of several outputs alone; None for what does not need it."""
        program = self.program
        found = []
        for output, function in zip(program.outputs, program.alone, strict=False):
            made = [r if r in function.results else "None" for r in program.backward.results]
            decorator = f'@{declared}.alone("{output}")'
            found.append(
                self.declared_core(function, f"{name}_backward_of_{output}", decorator, made)
            )
        return tuple(found)
