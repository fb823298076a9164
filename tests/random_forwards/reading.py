"""Lines of a random forward that read entries in another place, inside of one another, and lines
that no gradient passes. The same contract as in ``productions.py``.
"""

from __future__ import annotations

from random_forwards.parts import PRODUCT, SUM, Part, summed


def _moved(m, a: Part) -> Part:
    """``a`` with its entries in other places along one of its axes, once or several times."""
    for _ in range(m.chance.choice((1, 1, 2, 3))):
        axis = m.chance.choice(sorted(a.axes - {m.several}))
        word = m.chance.choice(("Shift({}, {}, 1)", "Shift({}, {}, -1)", "Flip({}, {})"))
        a = Part(word.format(a.text, axis), a.axes, min(a.low, 0.0), max(a.high, 0.0))
    return a


def moved(m) -> Part | None:
    a = m.tensor(least=1)
    return _moved(m, a) if a and a.axes - {m.several} else None


def so_far(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None or not a.axes - {m.several} or a.largest > 4:
        return None
    inside = _moved(m, a) if m.chance.random() < 0.5 else a
    axis = m.chance.choice(sorted(a.axes - {m.several}))
    return Part(f"CumSum({inside.text}, {axis})", a.axes, 9 * inside.low, 9 * inside.high)


def picked(m) -> Part | None:
    """The entry of what is read elsewhere, at a label."""
    a = m.tensor(least=1)
    known = [t for t in m.known_order if a and t in a.axes and t != m.several]
    if not known:
        return None
    axis = m.chance.choice(known)
    own = [t for t in m.known_order if t != axis and t in a.axes]
    if not own:
        return None
    label, _ = m.label(own[: m.chance.randint(1, len(own))])
    inside = _moved(m, a) if m.chance.random() < 0.8 else a
    low, high = min(a.low, 0.0), max(a.high, 0.0)
    read = Part(f"Gather({inside.text}, {label}, {axis})", a.axes - {axis}, low, high)
    return _moved(m, read) if read.axes - {m.several} and m.chance.random() < 0.3 else read


def renamed_again(m) -> Part | None:
    """A tensor along an axis that a renaming made, under a third name."""
    fits = [(t, axis) for t in m.tensors for axis in sorted(t.axes) if axis in m.twins]
    new = m.new_axis() if fits else None
    if new is None:
        return None
    a, axis = m.chance.choice(sorted(fits, key=lambda fit: (fit[0].text, fit[1])))
    m.twins[new] = m.twins[axis]
    inside = _moved(m, a) if m.chance.random() < 0.3 else a
    return Part(f"Rename({inside.text}, {axis}, {new})", (a.axes - {axis}) | {new}, a.low, a.high)


def without_gradient(m) -> Part | None:
    """A one-hot, a mask or places by a name of its own, which later lines read as any tensor; here
    as a factor.
    """
    a = m.tensor(least=1)
    along = [t for t in m.known_order if a and t in a.axes and t != m.several]
    if not along:
        return None
    axis = m.chance.choice(along)
    others = [t for t in along if t != axis]
    kinds = ["hot", "places"] + ["mask", "given"] * bool(others)
    kind = m.chance.choice(kinds)
    if kind == "hot":
        label, _ = m.label(others)
        made = Part(f"OneHot({label}, {axis})", frozenset((*others, axis)), 0.0, 1.0)
    elif kind == "places":
        made = Part(f"Position({axis}) + 1", frozenset((axis,)), 1.0, 9.0, SUM)
        made = Part(f"1 / ({made.text})", made.axes, 0.1, 1.0, PRODUCT)
    elif kind == "mask":
        test = f"Position({others[0]}) <= Position({axis})"
        made = Part(f"Piecewise((1, {test}), (0, True))", frozenset((others[0], axis)), 0.0, 1.0)
    else:
        made = Part(f"Piecewise((1, {a.text} > 0), (0, True))", a.axes, 0.0, 1.0)
    named = m.state(made)
    read = _moved(m, named) if m.chance.random() < 0.6 else named
    if m.chance.random() < 0.3:
        read = m.state(read)
    product = read * a
    return summed(product, [axis]) if m.chance.random() < 0.5 else product


READING = (
    (moved, 20),
    (so_far, 10),
    (picked, 30),
    (renamed_again, 20),
    (without_gradient, 40),
)
