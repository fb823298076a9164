"""What a line of a random forward may be: a table of productions with their weights.

A production receives the forward while it is made and returns the expression of its last line, or
None where nothing fits; lines before that one it states itself.
"""

from __future__ import annotations

from random_forwards import parts
from random_forwards.parts import Part, chosen, number, size, summed


def pointwise(m) -> Part:
    return m.function_of(m.tensor())


def choice(m) -> Part:
    return m.choice_of(m.tensor())


def two_together(m) -> Part:
    return m.combined(m.operand(), m.operand())


def with_a_number(m) -> Part:
    return m.chance.choice((lambda a: a * m.scalar(), lambda a: a + m.scalar()))(m.operand())


def reduction(m) -> Part | None:
    a = m.operand(least=1)
    return a and m.reduced_some(a, 0.7)


def largest(m) -> Part | None:
    a = m.operand(least=1)
    return a and summed(a, [m.chance.choice(sorted(a.axes))], "Max")


def below_the_largest(m) -> Part | None:
    a = m.operand(least=1)
    return a and a - summed(a, [m.chance.choice(sorted(a.axes))], "Max")


def contraction(m) -> Part | None:
    a = m.operand(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    return summed(a * m.operand(having=[axis]), [axis])


def centred(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    return a - summed(a, [axis]) / size(axis)


def standardized(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    diff = m.state(a - summed(a, [axis]) / size(axis))
    count = size(axis) + number("1") if m.chance.random() < 0.2 else size(axis)
    var = m.state(summed(diff.power("2", 2), [axis]) / count)
    eps = m.scalar()
    if m.chance.random() < 0.5:
        return diff / Part(f"sqrt({var.text} + {eps.text})", var.axes, 0.3, 7.0)
    return diff * Part(f"({var.text} + {eps.text})**Rational(-1, 2)", var.axes, 0.1, 3, parts.POWER)


def softmax(m) -> Part | None:
    a = m.tensor(least=1)
    if a is None:
        return None
    axis = m.chance.choice(sorted(a.axes))
    if m.chance.random() < 0.3:
        a = m.state(a - summed(a, [axis], "Max"))
    elif a.high > 3.5:
        a = m.state(m.squashed(a))
    e = Part(f"exp({a.text})", a.axes, 0.001, 35.0)
    if m.chance.random() < 0.6:
        e = m.state(e)
    share = Part(f"{e.text} / Sum({e.text}, {axis})", a.axes, 0.0, 1.0, parts.PRODUCT)
    way = m.chance.random()
    if way < 0.2:
        return Part(f"log(Sum({e.text}, {axis}))", a.axes - {axis}, -3.0, 6.0)
    if way < 0.4:
        share = m.state(share)
        return Part(f"log({share.text})", a.axes, -8.0, 0.0)
    return share


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


def brought_back(m) -> Part | None:
    """A number made of a tensor, beside the tensor."""
    a = m.tensor(least=1)
    if a is None:
        return None
    total = m.reduced(a, a.axes)
    if m.chance.random() < 0.6:
        total = m.state(total)
    return a * total if m.chance.random() < 0.5 else a / m.positive(total)


def sum_of_sums(m) -> Part | None:
    a, b = m.tensor(least=1), m.tensor(least=1)
    if a is None:
        return None
    one, other = m.reduced_some(a, 0.6), m.reduced_some(b, 0.6)
    return m.combined(one, other)


def block(m) -> Part | None:
    """A call of the other forward of the file."""
    if not m.helpers:
        return None
    helper = m.helpers[0]
    if helper.made_axes & helper.output.axes or helper.several or helper.lengths:
        return None
    formal = list(dict.fromkeys(axis for _, axes in helper.inputs for axis in axes))
    here = [axis for axis in m.known_order if axis != m.several]
    if len(here) < len(formal):
        return None
    bound = dict(zip(formal, m.chance.sample(here, len(formal)), strict=True))
    arguments = []
    for name, axes in helper.inputs:
        own = tuple(bound[axis] for axis in axes)
        if name.startswith("lab"):
            arguments.append(m.label(own)[0])
            continue
        fits = [t for t in m.tensors if t.order == own or (len(own) < 2 and t.axes == set(own))]
        if name == "mask" or (not fits and name not in ("mask", "weight", "bias")):
            kind = "Given" if name in ("mask", "weight", "bias") else "Input"
            made = m.declared_as(own, kind)
            if made is None:
                return None
            arguments.append(f"{name}={made}")
            continue
        arguments.append(f"{name}={m.chance.choice(fits).text}")
    written = ", ".join(_named(helper, arguments))
    sizes = f"parts={bound_size}" if (bound_size := None) else ""
    axes = frozenset(bound[axis] for axis in helper.output.axes)
    return Part(f"Block({written}{sizes})", axes, helper.output.low, helper.output.high)


def _named(helper, arguments: list[str]) -> list[str]:
    return [
        a if "=" in a else f"{name}={a}"
        for (name, _), a in zip(helper.inputs, arguments, strict=True)
    ]


GALLERY = {
    "Softmax": ("softmax", 1, 0.0, 1.0),
    "LogSoftmax": ("softmax", 1, -8.0, 0.0),
    "Logsumexp": ("softmax", 1, -2.0, 8.0),
    "Sigmoid": ("sigmoid", 0, 0.0, 1.0),
    "Silu": ("silu", 0, -1.0, 40.0),
    "LayerNorm": ("layer_norm", 1, -3.0, 3.0),
    "L2Normalize": ("l2_normalize", 1, -1.0, 1.0),
}


def of_the_gallery(m) -> Part | None:
    name = m.chance.choice(sorted(GALLERY))
    file, least, low, high = GALLERY[name]
    fits = [t for t in m.tensors if len(t.order) > least or (len(t.axes) == least == 1)]
    if name == "LayerNorm":
        fits = [t for t in fits if t.order]
    if not fits:
        return None
    a = m.chance.choice(fits)
    if a.largest > 8:
        return None
    m.imports.append(f"from derive.math.{file} import {name}")
    axes = a.axes
    if name == "Logsumexp":
        axes = a.axes - {(a.order or tuple(a.axes))[-1]}
    return Part(f"{name}({a.text})", axes, low, high)


PRODUCTIONS = (
    (pointwise, 10),
    (choice, 6),
    (two_together, 12),
    (with_a_number, 3),
    (reduction, 6),
    (largest, 4),
    (below_the_largest, 3),
    (contraction, 8),
    (centred, 4),
    (standardized, 4),
    (softmax, 7),
    (causal, 3),
    (masked, 4),
    (pick, 7),
    (scatter, 6),
    (segments, 4),
    (kept, 6),
    (pairs, 6),
    (swapped, 4),
    (renamed, 3),
    (flattened, 6),
    (unflattened, 5),
    (split, 3),
    (side_by_side, 4),
    (shifted, 3),
    (brought_back, 5),
    (sum_of_sums, 4),
    (block, 30),
    (of_the_gallery, 4),
)
