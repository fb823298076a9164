"""Forward and backward in closed form, which a lean module prints once or twice."""

from __future__ import annotations

from dataclasses import dataclass, replace

from codegen.program import Program
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.lean.outside import Outside
from derive.language.notation.definition import Definition
from derive.language.notation.specialised import without_options


@dataclass(frozen=True)
class Pair:
    """The ``program`` of both functions; ``outside`` holds their mathematics. With ``absent``
    tensors, which are then constant, or scalars ``zero``, it is that of the calls that leave these
    out.
    """

    program: Program
    outside: Outside
    absent: tuple[tuple[str, float], ...] = ()
    zero: tuple[str, ...] = ()

    @property
    def definition(self) -> Definition:
        return self.outside.inside

    @property
    def twice(self) -> bool:
        """True if its lines may be differentiated again: torch's derivatives of them are right."""
        return not self.program.without_second

    @property
    def tests(self) -> list[str]:
        """Python tests that are true for these calls: they read no tensor."""
        tests = [f"{name} is None" for name, _ in self.absent]
        return [*tests, *(f"{name} == 0" for name in self.zero)]

    @property
    def when(self) -> str:
        """The tests in words."""
        words = [f"{name} is omitted" for name, _ in self.absent]
        words += [f"{name} is 0" for name in self.zero]
        return " and ".join([*filter(None, [", ".join(words[:-1])]), words[-1]])

    @property
    def is_plain(self) -> bool:
        """True if it serves only some of the calls."""
        return bool(self.absent or self.zero)

    def under_own_name(self) -> Pair:
        """The pair under its own name, if it serves only calls that leave something out."""
        if not self.is_plain:
            return self
        own = self.program
        program = replace(own, name=f"{own.name}_plain", title=f"{own.title}Plain")
        return replace(self, program=program)


def pairs_of(whole: Program, outside: Outside) -> list[Pair]:
    """The pair of all calls, and that of calls that pass nothing optional, if any."""
    first = Pair(with_little_kept(whole), outside)
    if whole.without_options is None:
        return [first]
    own, definition = outside.inside, without_options(outside.inside)
    left = {t.name for t in definition.arguments} | {t.name for t, _ in definition.scalars}
    plain = Pair(
        with_little_kept(whole.without_options),
        replace(outside, inside=definition),
        absent=tuple((t.name, number) for t, number in own.optional if t.name not in left),
        zero=tuple(t.name for t, _ in own.scalars if t.name not in left),
    )
    return [first, plain]
