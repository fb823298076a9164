"""What a lean module prints once or twice: a forward and a backward in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.program import Program
from codegen.targets.lean.outside import Outside
from derive.notation.definition import Definition


@dataclass(frozen=True)
class Pair:
    """The ``program`` of both functions; ``outside`` holds their mathematics. Where tensors are
    ``absent`` or scalars ``zero``, it is that of the calls that leave these out.
    """

    program: Program
    outside: Outside
    absent: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()

    @property
    def definition(self) -> Definition:
        return self.outside.inside

    @property
    def twice(self) -> bool:
        """Whether its lines may be differentiated again: torch's derivatives of them are right."""
        return not self.program.without_second

    @property
    def tests(self) -> list[str]:
        """Python that is true for these calls: it reads no tensor."""
        tests = [f"{name} is None" for name in self.absent]
        return [*tests, *(f"{name} == 0" for name in self.zero)]

    @property
    def when(self) -> str:
        """The tests in words."""
        words = [f"{name} is omitted" for name in self.absent]
        words += [f"{name} is 0" for name in self.zero]
        return " and ".join([*filter(None, [", ".join(words[:-1])]), words[-1]])

    def under_own_name(self) -> Pair:
        """What the calls that leave something out run, beside the pair of all calls."""
        own = self.program
        program = replace(own, name=f"{own.name}_plain", title=f"{own.title}Plain")
        return replace(self, program=program)
