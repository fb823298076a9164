"""Lines of a random forward that choose: by position, by a mask, by a label."""

from __future__ import annotations

from random_forwards import parts
from random_forwards.combining import condition
from random_forwards.parts import Part, chosen, number, summed


def causal(m) -> Part | None:
    a = m.tensor(least=2)
    along = sorted(a.axes - {m.several}) if a else []
    if len(along) < 2:
        return None
    key, query = m.chance.sample(along, 2)
    test = f"Position({key}) <= Position({query})"
    if m.chance.random() < 0.5 or a.high > 3.5:
        other = m.chance.choice((number("0"), number("2") * a))
        return chosen([(a, test), (other, "True")], (key, query))
    score = m.state(Part(f"Piecewise(({a.text}, {test}), (-oo, True))", a.axes, a.low, a.high))
    m.tensors.remove(score)
    m.unused.remove(score)
    if m.chance.random() < 0.5:
        text = f"exp({score.text}) / Sum(exp({score.text}), {key})"
    else:
        top = m.free_names.pop(0)
        m.lines.append(f"{top} = Max({score.text}, {key})")
        counts = m.state(Part(f"exp({score.text} - {top})", a.axes, 0.0, 1.0))
        text = f"{counts.text} / Sum({counts.text}, {key})"
    return Part(text, a.axes, 0.0, 1.0, parts.PRODUCT)


def masked(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None or not a.order or any(name == "mask" for name, _ in m.inputs):
        return None
    m.required.append(f"mask = Given({', '.join(a.order)})")
    m.inputs.append(("mask", a.order))
    test = m.chance.choice(
        ("mask > 0", "Ne(mask, 0)", "Not(Eq(mask, 0))", "mask <= Rational(1, 2)")
    )
    if a.high <= 3.5 and m.chance.random() < 0.3:
        axis = m.chance.choice(sorted(a.axes))
        counts = m.state(
            chosen([(Part(f"exp({a.text})", a.axes, 0.0, 35.0), test), (number("0"), "True")])
        )
        return counts / (number("1") + summed(counts, [axis]))
    return chosen([(a, test), (number("0"), "True")])


def _labelled(m, a: Part) -> tuple[str, str] | None:
    """An axis of ``a`` and a label that indexes it, along some of the others."""
    along = sorted(a.axes - {m.several})
    if not along:
        return None
    axis = m.chance.choice(along)
    known = m.known_axes - {axis}
    order = [t for t in m.known_order if t in known]
    own = [t for t in order if m.chance.random() < 0.6 and (t in a.axes or m.chance.random() < 0.3)]
    return axis, m.label(own)[0]


def pick(m) -> Part | None:
    a = m.operand(least=1)
    found = a and _labelled(m, a)
    if not found:
        return None
    axis, label = found
    own = frozenset(m.axes_of_label(label))
    if not own <= a.axes and not own:
        return None
    factors = [f"OneHot({label}, {axis})", a.written(parts.POWER)]
    m.chance.shuffle(factors)
    text = f"Sum({' * '.join(factors)}, {axis})"
    return Part(text, (a.axes | own) - {axis}, min(a.low, 0.0), max(a.high, 0.0))


def likelihood(m) -> Part | None:
    """The logarithm of a softmax at a label, or of what was picked from it."""
    a = m.tensor(least=1)
    along = [t for t in m.known_order if t in a.axes and t != m.several] if a else []
    if not along or a.high > 8:
        return None
    axis = m.chance.choice(along)
    label, ignored = m.label([t for t in m.known_order if t in a.axes and t != axis])
    e = m.state(Part(f"exp({a.text})", a.axes, 0.001, 35.0)) if m.chance.random() < 0.4 else None
    counts = e.text if e else f"exp({a.text})"
    shares = Part(f"{counts} / Sum({counts}, {axis})", a.axes, 0.0, 1.0, parts.PRODUCT)
    probs = m.state(shares)
    if not ignored and m.chance.random() < 0.3:
        text = f"log(Sum(OneHot({label}, {axis}) * {probs.text}, {axis}))"
    else:
        text = f"-Sum(OneHot({label}, {axis}) * log({probs.text}), {axis})"
    own = m.axes_of_label(label)
    return Part(text, (a.axes | set(own)) - {axis}, -8.0, 8.0, parts.SUM)


def choices_of_one_condition(m) -> Part | None:
    """Two choices that go together."""
    a = m.tensor()
    b = m.tensor(having=a.axes)
    test, axes = condition(m, a)
    one = chosen([(a, test), (m.chance.choice((number("0"), number("2"))), "True")], axes)
    last = m.chance.choice((number("1"), b * number("2")))
    other = chosen([(m.chance.choice((b, number("0"))), test), (last, "True")], axes)
    if m.chance.random() < 0.5:
        one = m.state(one)
    return one * other if m.chance.random() < 0.6 else one + other


def scatter(m) -> Part | None:
    """An entry along an axis that the operand lacks, or has already."""
    a = m.operand()
    along = [axis for axis in m.known_order if axis != m.several]
    if not along:
        return None
    axis = m.chance.choice(along)
    if axis in a.axes and m.chance.random() < 0.6:  # the axis is bound inside and met outside
        a = summed(a, [axis])
    order = [t for t in m.known_order if t != axis and t in a.axes]
    own = [t for t in order if m.chance.random() < 0.7]
    label, _ = m.label(own)
    hot = Part(f"OneHot({label}, {axis})", frozenset((*own, axis)), 0.0, 1.0)
    result = hot * a if m.chance.random() < 0.5 else a * hot
    if not a.axes <= hot.axes:  # as a factor of a sum it would be taken for a mistake
        result = m.state(result)
    if own and m.chance.random() < 0.4:
        inside = sorted(a.axes & set(own))
        return summed(result, inside[:1]) if inside else result
    if m.chance.random() < 0.25:
        return summed(result, [axis])
    return result


def segments(m) -> Part | None:
    """The sum over all with the same label, brought back to each."""
    a = m.tensor(least=1)
    if a is None:
        return None
    along = [t for t in m.known_order if t != m.several]
    pairs = [(e, v) for e in along for v in along if e != v and e in a.axes and v not in a.axes]
    if not pairs:
        return None
    entry, to = m.chance.choice(pairs)
    label, _ = m.label([entry])
    total = m.state(
        summed(
            Part(f"OneHot({label}, {to}) * {a.text}", a.axes | {to}, min(a.low, 0), max(a.high, 0)),
            [entry],
        )
    )
    if m.chance.random() < 0.3:
        return total
    picked = Part(
        f"OneHot({label}, {to}) * {total.text}",
        total.axes | {entry, to},
        min(total.low, 0),
        max(total.high, 0),
    )
    return Part(f"Sum({picked.text}, {to})", picked.axes - {to}, picked.low, picked.high)


def kept(m) -> Part | None:
    a = m.operand(least=1)
    own = [t for t in m.known_order if t in a.axes] if a else []
    if not own:
        return None
    own = own[: m.chance.randint(1, len(own))]
    label, ignored = m.label(own, ignored=True)
    return ignored and Part(
        f"Kept({label}) * {a.written(parts.POWER)}",
        a.axes,
        min(a.low, 0),
        max(a.high, 0),
        parts.PRODUCT,
    )
