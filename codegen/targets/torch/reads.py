"""Prints reads at an affine index: slices, padding at the ends, windows."""

from __future__ import annotations

from fractions import Fraction

from codegen.program import reads, values
from codegen.targets.torch.vocabulary import ATOM, SIGN, SUM

ZERO, ONE = values.Number(Fraction(0)), values.Number(Fraction(1))


class ReadPrinter:
    """The printing methods of `Read`; `Printer` has the rest."""

    sizes: dict[str, str]
    like: str

    def text(self, value: values.Value, at_least: int = SUM) -> str:
        raise NotImplementedError

    def tight(self, value: values.Value) -> str:
        raise NotImplementedError

    def _Read(self, value: reads.Read):
        if value.shared:
            return self._taken(value), ATOM
        if not value.steps:
            return self._one(value), ATOM
        text, along, count = self._plain(value), value.along, len(value.operand.dims)
        if value.divisor != ONE:
            text = f"_runtime.spaced({text}, {along}, {self.text(value.divisor)})"
        first, *inner = value.steps
        if value.fits:
            text = self._sliced(text, value, "" if inner else self._step(first))
        else:
            text = self._padded(text, value)
            if not inner and first.step != ONE:
                text = f"{text}[{':, ' * along}::{self.text(first.step)}]"
        place = along
        for outer, own in zip(value.steps, inner, strict=False):
            rest = value.steps[value.steps.index(own) :]
            text += f".unfold({place}, {self._extent(rest)}, {self.text(outer.step)})"
            place = count
            count += 1
        if inner and inner[-1].step != ONE:
            text += f"[..., ::{self.text(inner[-1].step)}]"
        turned = [self._place(value, i) for i, s in enumerate(value.steps) if s.backward]
        if turned:
            text = f"{text}.flip({', '.join(map(str, turned))})"
        return text, ATOM

    def _one(self, value: reads.Read) -> str:
        """The same entry for all places."""
        if value.fits and value.divisor == ONE:
            entry = "-1" if value.after == ZERO else self.text(value.offset)
            return f"{self.tight(value.operand)}.select({value.along}, {entry})"
        text = self.text(value.operand)
        if value.divisor != ONE:
            text = f"_runtime.spaced({text}, {value.along}, {self.text(value.divisor)})"
        return f"{self._padded(text, value)}.squeeze({value.along})"

    def _plain(self, value: reads.Read) -> str:
        """The operand of a read, as an argument or before a bracket."""
        as_argument = value.divisor != ONE or not value.fits
        return self.text(value.operand) if as_argument else self.tight(value.operand)

    def _place(self, value: reads.Read, i: int) -> int:
        """The dimension of the i-th of the new axes."""
        return value.along if i == 0 else len(value.operand.dims) + i - 1

    def _step(self, step: reads.IndexStep) -> str:
        return "" if step.step == ONE else self.text(step.step)

    def _extent(self, steps) -> str:
        """The extent from the first to the last entry read along some axes."""
        terms = [
            self.sizes[s.axis]
            if s.step == ONE
            else f"{self.text(s.step, SIGN)} * ({self.sizes[s.axis]} - 1)"
            for s in steps
        ]
        if len(steps) == 1 and steps[0].step == ONE:
            return terms[0]
        less = sum(s.step == ONE for s in steps) - 1
        return " + ".join(terms) + (f" - {less}" if less > 0 else " + 1" if less < 0 else "")

    def _sliced(self, text: str, value: reads.Read, step: str) -> str:
        """A view of the range that is read."""
        start = "" if value.before == ZERO else self.text(_opposite(value.before))
        stop = "" if value.after == ZERO else self.text(value.stop)
        if not start and not stop and not step:
            return text
        return f"{text}[{':, ' * value.along}{start}:{stop}{':' * bool(step)}{step}]"

    def _padded(self, text: str, value: reads.Read) -> str:
        before, after = self.text(value.before), self.text(value.after)
        fill = "" if value.fill == ZERO else f", {self.text(value.fill)}"
        last = value.along == len(value.operand.dims) - 1
        if last and value.grows:
            value_of = f", value={self.text(value.fill)}" if fill else ""
            return f"torch.nn.functional.pad({text}, ({before}, {after}){value_of})"
        return f"_runtime.padded({text}, {value.along}, {before}, {after}{fill})"

    def _taken(self, value: reads.Read) -> str:
        """Reads along dimensions that the operand has already, by an index for each entry."""
        dims, operand = value.dims, self.tight(value.operand)
        terms = [(-1 if s.backward else 1, s) for s in value.steps]
        index = self.text(value.offset)
        for sign, s in terms:
            place = next(i for i, dim in enumerate(dims) if dim.axis.name == s.axis)
            shape = ", ".join("-1" if i == place else "1" for i in range(len(dims)))
            along = f"torch.arange({self.sizes[s.axis]}, device={self.like}.device).view({shape})"
            along = along if s.step == ONE else f"{self.text(s.step, SIGN)} * {along}"
            index += f" {'-' if sign < 0 else '+'} {along}"
        order = [d.axis.name for d in dims]
        own = [d.axis.name for d in value.operand.dims]
        own[value.along] = ""
        places = ", ".join(str(own.index(name)) if name in own else "None" for name in order)
        more = f", {self.text(value.divisor)}" if value.divisor != ONE else ""
        fill = "" if value.fill == ZERO else f", fill={self.text(value.fill)}"
        return f"_runtime.entries_at({operand}, {value.along}, ({places},), {index}{more}{fill})"

    def _Joined(self, value: reads.Joined):
        parts = [
            f"{'-' * negative}{self.text(v, SIGN if negative else SUM)}"
            for v, negative in value.parts
        ]
        return f"torch.cat(({', '.join(parts)}), {value.along})", ATOM

    def _Overlapped(self, value: reads.Overlapped):
        numbers = ", ".join(map(self.text, (value.step, value.spacing, value.offset)))
        operand, length = self.text(value.operand), self.sizes[value.length]
        return f"_runtime.overlapped({operand}, {value.along}, {numbers}, {length})", ATOM

    def _Placed(self, value: reads.Placed):
        lines = [
            f"({line.along}, {self.sizes[line.entries]}, {self.text(line.step)}, "
            f"{self.text(line.spacing)}, {self.text(line.offset)}, {self.sizes[line.length]})"
            for line in value.lines
        ]
        operand, label = self.text(value.operand), self.text(value.label)
        return f"_runtime.placed({operand}, {label}, {', '.join(lines)})", ATOM


def _opposite(value: values.Value) -> values.Value:
    if isinstance(value, values.Number):
        return values.Number(-value.value)
    if isinstance(value, values.Plus):
        return values.Plus(tuple((term, not negative) for term, negative in value.terms))
    return values.Plus(((value, True),))
