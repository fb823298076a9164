"""The second pair of a lean module: the same mathematics where nothing optional is passed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.program import Program
from codegen.targets.lean.outside import Outside


@dataclass(frozen=True)
class WithoutOptions:
    """The ``program`` of calls in which the tensors ``absent`` are left out and the scalars
    ``zero`` are 0; ``outside`` holds its mathematics.
    """

    program: Program
    outside: Outside
    absent: tuple[str, ...]
    zero: tuple[str, ...]

    @property
    def test(self) -> str:
        """Python that is true for these calls: it reads no tensor."""
        tests = [f"{name} is None" for name in self.absent]
        return " and ".join([*tests, *(f"{name} == 0" for name in self.zero)])

    @property
    def when(self) -> str:
        """The test in words."""
        words = [f"{name} is omitted" for name in self.absent]
        words += [f"{name} is 0" for name in self.zero]
        return " and ".join([*filter(None, [", ".join(words[:-1])]), words[-1]])

    @property
    def named(self) -> Program:
        """The program under the name of its own pair."""
        own = self.program
        return replace(own, name=f"{own.name}_plain", title=f"{own.title}Plain")
