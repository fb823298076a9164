"""Lines of a random forward that give an axis another name, or make axes of others."""

from __future__ import annotations

from random_forwards import parts
from random_forwards.parts import Part, summed


def _twin(m, axis: str, taken) -> str | None:
    """Another name for an axis: one that it has already, or a new one."""
    known = [t for t, original in m.twins.items() if original == axis and t not in taken]
    if known and m.chance.random() < 0.8:
        return m.chance.choice(known)
    name = m.new_axis()
    if name is not None:
        m.twins[name] = axis
    return name


def _written(fit: tuple) -> list[str]:
    """What a choice is sorted by, so that it is the same in every process."""
    return [part if isinstance(part, str) else part.text for part in fit]


def pairs(m) -> Part | None:
    a = m.tensor(least=1)
    own = [axis for axis in sorted(a.axes) if axis in m.axes and axis != m.several] if a else []
    if not own or len(a.axes) > 2:
        return None
    axis = m.chance.choice(own)
    twin = _twin(m, axis, a.axes)
    if twin is None:
        return None
    other = Part(f"Rename({a.text}, {axis}, {twin})", (a.axes - {axis}) | {twin}, a.low, a.high)
    shared = sorted(a.axes - {axis})
    if shared and m.chance.random() < 0.6:
        return summed(a * other, [m.chance.choice(shared)])
    if m.chance.random() < 0.5:
        return a * other
    left = Part(f"Broadcast({a.text}, {twin})", a.axes | {twin}, a.low, a.high)
    return (left - other).power("2", 2) if m.chance.random() < 0.5 else left - other


def swapped(m) -> Part | None:
    """A tensor along two names of one axis, met the other way round."""
    fits = [(t, a, b) for t in m.tensors for a in t.axes for b in t.axes if m.twins.get(b) == a]
    if not fits:
        return None
    a, axis, twin = m.chance.choice(sorted(fits, key=_written))
    between = m.new_axis()
    if between is None:
        return None
    m.twins[between] = axis
    text = f"Rename(Rename(Rename({a.text}, {axis}, {between}), {twin}, {axis}), {between}, {twin})"
    other = Part(text, a.axes, a.low, a.high)
    return m.chance.choice((lambda: a * other, lambda: a + other, lambda: other))()


def renamed(m) -> Part | None:
    """A tensor along its twin axis brought home."""
    fits = [
        (t, a, b)
        for t in m.tensors
        for b in t.axes
        for a in [m.twins.get(b)]
        if a and a not in t.axes
    ]
    if not fits:
        return None
    a, axis, twin = m.chance.choice(sorted(fits, key=_written))
    return Part(f"Rename({a.text}, {twin}, {axis})", (a.axes - {twin}) | {axis}, a.low, a.high)


def flattened(m) -> Part | None:
    a = m.tensor(least=2)
    own = sorted(a.axes - {m.several}) if a else []
    if len(own) < 2 or m.several in a.axes:
        return None
    axes = tuple(m.chance.sample(own, 2))
    known = [flat for flat, made in m.flat.items() if made == axes]
    into = known[0] if known else m.new_axis()
    if into is None or into in a.axes:
        return None
    m.flat[into] = axes
    return Part(
        f"Flatten({a.text}, {', '.join(axes)}, into={into})",
        (a.axes - set(axes)) | {into},
        a.low,
        a.high,
    )


def unflattened(m) -> Part | None:
    fits = [
        (t, flat)
        for t in m.tensors
        for flat in m.flat
        if flat in t.axes and not set(m.flat[flat]) & t.axes
    ]
    if not fits:
        return None
    a, flat = m.chance.choice(sorted(fits, key=_written))
    into = m.flat[flat]
    return Part(
        f"Unflatten({a.text}, {flat}, into=({', '.join(into)}))",
        (a.axes - {flat}) | set(into),
        a.low,
        a.high,
    )


def split(m) -> Part | None:
    """An axis of an input as two: one of a fixed length, or of a size that is an argument."""
    fits = [(t, axis) for t in m.tensors for axis in t.axes if axis in m.splittable]
    if not fits or m.flat:
        return None
    a, axis = m.chance.choice(sorted(fits, key=_written))
    first, second = m.new_axis(), m.new_axis()
    if second is None:
        return None
    m.flat[axis] = (first, second)
    m.required.append(f"parts = Size({first})")
    return Part(
        f"Unflatten({a.text}, {axis}, into=({first}, {second}))",
        (a.axes - {axis}) | {first, second},
        a.low,
        a.high,
    )


def side_by_side(m) -> Part | None:
    axis = "Gate"
    m.lengths.setdefault(axis, m.chance.choice((2, 2, 3)))
    fits = [t for t in m.tensors if axis in t.axes]
    if fits and m.chance.random() < 0.7:
        a = m.chance.choice(fits)
        entry = m.chance.randrange(m.lengths[axis])
        return Part(
            f"Sum(OneHot({entry}, {axis}) * {a.text}, {axis})", a.axes - {axis}, a.low, a.high
        )
    a, b = m.operand(), m.operand()
    if axis in a.axes | b.axes or not (a.axes <= b.axes or b.axes <= a.axes):
        return None
    one, other = m.chance.sample(range(m.lengths[axis]), 2)
    low, high = min(a.low, b.low, 0.0), max(a.high, b.high, 0.0)
    return Part(
        f"OneHot({one}, {axis}) * {a.written(parts.POWER)} + "
        f"OneHot({other}, {axis}) * {b.written(parts.POWER)}",
        a.axes | b.axes | {axis},
        low,
        high,
        parts.SUM,
    )


def shifted(m) -> Part | None:
    """Windows of neighbours, by positions."""
    a = m.tensor(least=1)
    along = [axis for axis in sorted(a.axes) if axis in m.axes and axis != m.several] if a else []
    if not along or len(a.axes) > 2:
        return None
    axis = m.chance.choice(along)
    twin = _twin(m, axis, a.axes)
    if twin is None:
        return None
    step = m.chance.choice(
        (
            f"Eq(Position({twin}), Position({axis}) + 1)",
            f"Position({twin}) < Position({axis})",
            f"Ne(Position({twin}), Position({axis}))",
        )
    )
    m.state(
        Part(
            f"Piecewise((Rename({a.text}, {axis}, {twin}), {step}), (0, True))",
            a.axes | {twin},
            min(a.low, 0),
            max(a.high, 0),
        )
    )
    last = m.tensors[-1]
    return summed(last, [twin]) if m.chance.random() < 0.7 else summed(last, [axis])
