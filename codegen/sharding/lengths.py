"""Lengths of axes: of all ranks together in formulas and checks, of one rank in shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from codegen.program import Function, Program
from codegen.program.parts import values_in
from codegen.program.shards import OwnSize, Ratio, WholeSize
from codegen.program.steps import (
    Default,
    Fits,
    InRange,
    NameSize,
    NotZero,
    Numeric,
    ReadSizes,
    Refuse,
    Step,
    Within,
)
from codegen.program.values import LengthOf, Load, Quotient, SizeOf, Times, Value
from codegen.sharding.groups import Groups
from codegen.sharding.values import rewritten, values_of
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout

OF_LENGTHS = (Refuse, NotZero, Within, InRange, Default)  # may need a length of all ranks
ABOUT_NUMBERS = (Default, Numeric, Within)


class Lengths:
    """The lengths used in one function of a Program."""

    def __init__(self, program: Program, function: Function, groups: Groups):
        self.program, self.function, self.groups = program, function, groups
        self.sizes = dict(program.sizes)
        self.of_code = {code: axis for axis, code in reversed(program.sizes)}
        self.flattened = {
            self.of_code[code]: [self.of_code[part] for part in parts]
            for code, parts in program.flattened
        }
        self.codes = {self.sizes[axis]: group for axis, group in groups.of.items()}

    def of_axis(self, axis: str) -> Value:
        """The length of an axis on all ranks together.

        Raises `QuestionError` if it is unknown.
        """
        group = self.groups.of.get(axis) or self.codes.get(self.sizes.get(axis, ""))
        if not group:
            made_of = self.of_parts(axis)
            product = tuple((self.of_axis(part), False) for part in made_of)
            return Times(product) if made_of else SizeOf(axis)
        if self.sizes[axis] == self.sizes[group]:
            return WholeSize(group)
        parts = self.flattened.get(axis, ())
        if parts and parts[0] == group:  # as long as its parts together
            return Times(tuple((self.of_axis(part), False) for part in parts))
        parts = self.flattened.get(group, ())
        if axis in parts:
            others = [(self.of_axis(part), True) for part in parts if part != axis]
            return Times(((WholeSize(group), False), *others))
        raise QuestionError(
            f"{self.program.name} cannot be split along {group}: the total length of {axis} is not"
            " known",
            "split another axis",
        )

    def of_parts(self, axis: str) -> list[str]:
        """The parts of a flattened axis, where one behind the first is split: the axis is whole
        once gathered. Empty for others, and where an argument lies along it, which has the length.
        """
        parts = self.flattened.get(axis, [])
        home = {dim.axis.name for p in self.program.forward.parameters for dim in p.layout}
        split = any(part in self.groups.of for part in parts[1:])
        return parts if split and axis not in home else []

    def of_all(self, value: Value) -> Value | None:
        """The value of a length over all ranks together; None for other values."""
        if isinstance(value, SizeOf):
            return self.of_axis(value.name)
        if isinstance(value, LengthOf):
            axis = self.layouts[value.tensor][value.along].axis.name
            found = self.of_axis(axis)
            return value if found == SizeOf(axis) else found
        given = {p.name for p in self.function.parameters if p.role == "size"}
        if isinstance(value, Load) and value.name in self.codes.keys() & given:
            return self.of_axis(self.codes[value.name])
        return None

    @property
    def layouts(self) -> dict[str, Layout]:
        forward = {p.name: p.layout for p in self.program.forward.parameters}
        return forward | {p.name: p.layout for p in self.function.parameters}

    def asks_for_all(self, step: Step) -> bool:
        """True if a step needs the full length of a split axis. How an axis is made of others is
        checked on the part where they are split together.
        """
        if not isinstance(step, OF_LENGTHS):
            return False
        of_parts = isinstance(step, Refuse) and step.equal and isinstance(step.left, SizeOf)
        if of_parts and step.left.name in self.groups.of:
            return False
        return any(self.of_all(v) not in (None, v) for v in values_in(step))

    def with_all(self, step: Step) -> Step:
        """The step with lengths replaced by those over all ranks."""
        if isinstance(step, Refuse):
            left, right = rewritten(step.left, self.of_all), rewritten(step.right, self.of_all)
            return replace(step, left=left, right=right)
        if isinstance(step, Default):
            return replace(step, value=rewritten(step.value, self.of_all))
        if isinstance(step, NotZero):
            return replace(step, divisor=rewritten(step.divisor, self.of_all))
        if isinstance(step, InRange):
            return replace(step, lengths=tuple(rewritten(v, self.of_all) for v in step.lengths))
        if isinstance(step, Within):
            bounds = tuple((sign, rewritten(v, self.of_all)) for sign, v in step.bounds)
            return replace(step, value=rewritten(step.value, self.of_all), bounds=bounds)
        return step

    def of_part(self, checks: Iterable[Step]) -> Iterator[Step]:
        """Checks of the arguments of one rank. A dimension along another name of a split axis, or
        along an axis gathered from it, is as long as all parts: that is unknown there, and the
        length of a part is not read from it.
        """
        read = {p.name for p in self.function.parameters}  # of the split lengths, or given
        for step in checks:
            if isinstance(step, NameSize):
                yield replace(step, value=self.divided(step.value))
            elif isinstance(step, Fits):
                yield replace(step, known=tuple(map(self._known(read), step.dims, step.known)))
                missing = [
                    self._is_of_part(dim) and self.code(dim) not in read for dim in step.dims
                ]
                if any(missing) and not step.optional:
                    yield ReadSizes(step.name, step.dims, tuple(missing))
                    read |= {self.code(d) for d, new in zip(step.dims, missing, strict=True) if new}
            elif isinstance(step, ReadSizes):
                pairs = zip(step.dims, step.new, strict=True)
                new = [new and not self._is_whole(dim) for dim, new in pairs]
                if any(new):
                    yield replace(step, new=tuple(new))
            else:
                yield step

    def code(self, dim: Dim) -> str:
        return self.sizes[dim.axis.name]

    def _is_of_part(self, dim: Dim) -> bool:
        """True if it has the length of the part that names a split size."""
        return not dim.one and dim.axis.name in self.groups.of

    def _is_whole(self, dim: Dim) -> bool:
        """True if its length is not read off: that of a part is elsewhere, or it is gathered."""
        return self.code(dim) in self.codes or bool(self.of_parts(dim.axis.name))

    def _known(self, read: set[str]) -> Callable[[Dim, bool], bool]:
        def known(dim: Dim, known: bool) -> bool:
            if dim.one:
                return known
            if self.code(dim) in self.codes:
                return self._is_of_part(dim) and self.code(dim) in read
            return known and not self.of_parts(dim.axis.name)

        return known

    def divided(self, value: Value) -> Value:
        """The length of a part, as a quotient. Where an axis is split with the first of its parts,
        the length of the parts behind it is the same for all ranks, also for one without entries.
        """
        group = self.codes.get(value.flat, "") if isinstance(value, Quotient) else ""
        if group and isinstance(value.divisor, Load):  # a number, of all ranks together
            return replace(value, dividend=self.of_axis(group))
        return Ratio(value.dividend, value.divisor, group) if group else value

    def read(self, steps: Sequence[Step]) -> list[tuple[str, Value]]:
        """Sizes read off shapes, with those named in the ``steps`` of a rank."""
        found = [(name, self.divided(self.read_off(value))) for name, value in self.function.sizes]
        known = {name for name, _ in found} | {p.name for p in self.function.parameters}
        named = [self.of_axis(axis) for step in steps for axis, _ in getattr(step, "axes", ())]
        lengths = [v for value in named for v in (value, *values_in(value))]
        lengths += [v for step in steps for v in values_of(step)]
        for axis in dict.fromkeys(v.name for v in lengths if isinstance(v, SizeOf)):
            code, place = self.sizes[axis], self.place_of(axis)
            if code not in known and place is not None:
                found.append((code, place))
                known.add(code)
        return found

    def read_off(self, value: Value) -> Value:
        """The length of a part, which is read where the axis has its own name."""
        if not isinstance(value, LengthOf):
            return value
        axis = self.layouts[value.tensor][value.along].axis.name
        if axis in self.groups.of or self.sizes[axis] not in self.codes:
            return value
        names = [own for own in self.groups.of if self.sizes.get(own) == self.sizes[axis]]
        own = OwnSize(names[0]) if names and names[0] in self.groups.axes else value
        return next(filter(None, map(self.place_of, names)), own)

    def place_of(self, axis: str) -> LengthOf | None:
        for p in self.function.parameters:
            for along, dim in enumerate(p.layout):
                if dim.axis.name == axis and not dim.one:
                    return LengthOf(p.name, along)
        return None
