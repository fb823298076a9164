"""Groups of ranks that axes are split over, and the dimension of a tensor that is split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.program import Program
from derive.language.errors import QuestionError
from derive.language.nearest import did_you_mean
from derive.language.notation.layout import Layout

Split = tuple[str, ...]  # for each dimension the axis whose group it is split over, or ''


@dataclass(frozen=True)
class Groups:
    """``axes`` are those requested; ``of`` maps an axis to the group that splits it: itself, the
    axis it is flattened into as the first part, or its own first part. The parts of the one that is
    ``chunked`` are computed one after the other, those of others at once; in a ``ring`` the ranks
    of the other axis have them too, and pass them on.
    """

    axes: tuple[str, ...]
    of: Mapping[str, str]
    chunked: str = ""
    ring: bool = False

    @property
    def of_ranks(self) -> tuple[str, ...]:
        """The axes of which a rank has a part: in a ring, the one that goes round is the last."""
        others = tuple(axis for axis in self.axes if axis != self.chunked)
        return (*others, self.chunked) if self.ring else others

    def at_home(self, layout: Layout) -> Split:
        """The split of an argument or a result as a rank has it: where it lies along both axes of a
        ring, it is whole along the one that goes round.
        """
        split = self.split(layout)
        visits = self.ring and {*split} <= {"", self.chunked}
        return tuple("" if group == self.chunked and not visits else group for group in split)

    def in_time(self, split: Split) -> Split:
        """The split of the chunked axis alone."""
        return tuple(group if group == self.chunked else "" for group in split)

    def split(self, layout: Layout) -> Split:
        """The group that each dimension of this layout is split over. Raises `QuestionError` if one
        group splits two dimensions: a rank would have one block, and nobody the others.
        """
        found = tuple("" if dim.one else self.of.get(dim.axis.name, "") for dim in layout)
        for group in filter(None, found):
            if found.count(group) > 1:
                axes = [d.axis.name for d, g in zip(layout, found, strict=True) if g == group]
                raise QuestionError(
                    f"a tensor along {' and '.join(axes)} cannot be split: one contains the other",
                    "split another axis",
                )
        return found


def groups_of(program: Program, axes: Sequence[str], chunked: str = "") -> Groups:
    """The groups of axes. Raises `QuestionError` for an axis that cannot be split."""
    for axis in axes:
        _can_be_split(program, axis)
        if axes.count(axis) > 1:
            raise QuestionError(f"the axis {axis} is named twice", "name it once")
    of_code = {code: axis for axis, code in reversed(program.sizes)}
    of = {axis: axis for axis in axes}
    for code, codes_of_parts in program.flattened:
        whole, parts = of_code[code], [of_code[part] for part in codes_of_parts]
        _is_known(program, whole, [part for part in parts if part in axes])
        if whole in axes:
            if dict(program.sizes)[parts[0]] in dict(program.fixed):
                raise QuestionError(
                    f"the axis {whole} of {program.name} is flattened from {' x '.join(parts)}, and"
                    f" {parts[0]} has a fixed length, so it cannot be split",
                    f"split {parts[-1]}",
                )
            of[parts[0]] = whole
        elif parts[0] in axes:
            of[whole] = parts[0]
    return Groups(tuple(axes), of, chunked)


def _can_be_split(program: Program, axis: str) -> None:
    codes = dict(program.sizes)
    home = {dim.axis.name for p in program.forward.parameters for dim in p.layout}
    if axis not in codes or axis not in home:
        known = ", ".join(sorted(home)) or "none"
        raise QuestionError(
            f"{program.name} has no argument along an axis {axis!r}",
            did_you_mean(axis, sorted(home), f"the axes of its arguments: {known}"),
        )
    other = next(a for a, code in program.sizes if code == codes[axis] and a in home)
    if other != axis:
        raise QuestionError(
            f"the axis {axis} of {program.name} is another name of {other}", f"split {other}"
        )
    if codes[axis] in dict(program.fixed):
        raise QuestionError(
            f"the axis {axis} of {program.name} has a fixed length", "split another axis"
        )


def _is_known(program: Program, whole: str, split: Sequence[str]) -> None:
    """Raise if the split part of an axis is ambiguous: parts of one length share a name."""
    codes = dict(program.sizes)
    for part in split:
        if [*codes.values()].count(codes[part]) > 1:
            raise QuestionError(
                f"the axis {whole} of {program.name} is flattened from {part}, which has two names:"
                " it is ambiguous which one is split",
                "split another axis",
            )
