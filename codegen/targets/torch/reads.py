"""Prints reads at an affine index: slices, padding at the ends, windows."""

from __future__ import annotations

from fractions import Fraction

from codegen.program import reads, values
from codegen.targets.torch.rows import TORCH, Prints
from codegen.targets.torch.vocabulary import ATOM, SIGN, SUM

ZERO, ONE = values.Number(Fraction(0)), values.Number(Fraction(1))


@TORCH.of(reads.Read)
def _read(p: Prints, value: reads.Read) -> tuple[str, int]:
    if value.shared:
        return _taken(p, value), ATOM
    if not value.steps:
        return _one(p, value), ATOM
    text, along, count = _plain(p, value), value.along, len(value.operand.dims)
    if value.divisor != ONE:
        text = f"_runtime.spaced({text}, {along}, {p.text(value.divisor)})"
    first, *inner = value.steps
    if value.fits:
        text = _sliced(p, text, value, "" if inner else _step(p, first))
    else:
        text = _padded(p, text, value)
        if not inner and first.step != ONE:
            text = f"{text}[{':, ' * along}::{p.text(first.step)}]"
    place = along
    for outer, own in zip(value.steps, inner, strict=False):
        rest = value.steps[value.steps.index(own) :]
        text += f".unfold({place}, {_extent(p, rest)}, {p.text(outer.step)})"
        place = count
        count += 1
    if inner and inner[-1].step != ONE:
        text += f"[..., ::{p.text(inner[-1].step)}]"
    turned = [_place(p, value, i) for i, s in enumerate(value.steps) if s.backward]
    if turned:
        text = f"{text}.flip({', '.join(map(str, turned))})"
    return text, ATOM


def _one(p: Prints, value: reads.Read) -> str:
    """The same entry for all places."""
    if value.fits and value.divisor == ONE:
        entry = "-1" if value.after == ZERO else p.text(value.offset)
        return f"{p.tight(value.operand)}.select({value.along}, {entry})"
    text = p.text(value.operand)
    if value.divisor != ONE:
        text = f"_runtime.spaced({text}, {value.along}, {p.text(value.divisor)})"
    return f"{_padded(p, text, value)}.squeeze({value.along})"


def _plain(p: Prints, value: reads.Read) -> str:
    """The operand of a read, as an argument or before a bracket."""
    as_argument = value.divisor != ONE or not value.fits
    return p.text(value.operand) if as_argument else p.tight(value.operand)


def _place(p: Prints, value: reads.Read, i: int) -> int:
    """The dimension of the i-th of the new axes."""
    return value.along if i == 0 else len(value.operand.dims) + i - 1


def _step(p: Prints, step: reads.IndexStep) -> str:
    return "" if step.step == ONE else p.text(step.step)


def _extent(p: Prints, steps) -> str:
    """The extent from the first to the last entry read along some axes."""
    terms = [
        p.sizes[s.axis] if s.step == ONE else f"{p.text(s.step, SIGN)} * ({p.sizes[s.axis]} - 1)"
        for s in steps
    ]
    if len(steps) == 1 and steps[0].step == ONE:
        return terms[0]
    less = sum(s.step == ONE for s in steps) - 1
    return " + ".join(terms) + (f" - {less}" if less > 0 else " + 1" if less < 0 else "")


def _sliced(p: Prints, text: str, value: reads.Read, step: str) -> str:
    """A view of the range that is read."""
    start = "" if value.before == ZERO else p.text(_opposite(value.before))
    stop = "" if value.after == ZERO else p.text(value.stop)
    if not start and not stop and not step:
        return text
    return f"{text}[{':, ' * value.along}{start}:{stop}{':' * bool(step)}{step}]"


def _padded(p: Prints, text: str, value: reads.Read) -> str:
    before, after = p.text(value.before), p.text(value.after)
    fill = "" if value.fill == ZERO else f", {p.text(value.fill)}"
    last = value.along == len(value.operand.dims) - 1
    if last and value.grows:
        value_of = f", value={p.text(value.fill)}" if fill else ""
        return f"torch.nn.functional.pad({text}, ({before}, {after}){value_of})"
    return f"_runtime.padded({text}, {value.along}, {before}, {after}{fill})"


def _taken(p: Prints, value: reads.Read) -> str:
    """Reads along dimensions that the operand has already, by an index for each entry."""
    dims, operand = value.dims, p.tight(value.operand)
    terms = [(-1 if s.backward else 1, s) for s in value.steps]
    index = p.text(value.offset)
    for sign, s in terms:
        place = next(i for i, dim in enumerate(dims) if dim.axis.name == s.axis)
        shape = ", ".join("-1" if i == place else "1" for i in range(len(dims)))
        along = f"torch.arange({p.sizes[s.axis]}, device={p.like}.device).view({shape})"
        along = along if s.step == ONE else f"{p.text(s.step, SIGN)} * {along}"
        index += f" {'-' if sign < 0 else '+'} {along}"
    order = [d.axis.name for d in dims]
    own = [d.axis.name for d in value.operand.dims]
    own[value.along] = ""
    places = ", ".join(str(own.index(name)) if name in own else "None" for name in order)
    more = f", {p.text(value.divisor)}" if value.divisor != ONE else ""
    fill = "" if value.fill == ZERO else f", fill={p.text(value.fill)}"
    return f"_runtime.entries_at({operand}, {value.along}, ({places},), {index}{more}{fill})"


@TORCH.of(reads.Joined)
def _joined(p: Prints, value: reads.Joined) -> tuple[str, int]:
    parts = [
        f"{'-' * negative}{p.text(v, SIGN if negative else SUM)}" for v, negative in value.parts
    ]
    return f"torch.cat(({', '.join(parts)}), {value.along})", ATOM


@TORCH.of(reads.Overlapped)
def _overlapped(p: Prints, value: reads.Overlapped) -> tuple[str, int]:
    numbers = ", ".join(map(p.text, (value.step, value.spacing, value.offset)))
    operand, length = p.text(value.operand), p.sizes[value.length]
    return f"_runtime.overlapped({operand}, {value.along}, {numbers}, {length})", ATOM


@TORCH.of(reads.Placed)
def _placed(p: Prints, value: reads.Placed) -> tuple[str, int]:
    lines = [
        f"({line.along}, {p.sizes[line.entries]}, {p.text(line.step)}, "
        f"{p.text(line.spacing)}, {p.text(line.offset)}, {p.sizes[line.length]})"
        for line in value.lines
    ]
    operand, label = p.text(value.operand), p.text(value.label)
    return f"_runtime.placed({operand}, {label}, {', '.join(lines)})", ATOM


def _opposite(value: values.Value) -> values.Value:
    if isinstance(value, values.Number):
        return values.Number(-value.value)
    if isinstance(value, values.Plus):
        return values.Plus(tuple((term, not negative) for term, negative in value.terms))
    return values.Plus(((value, True),))
