"""What is made of one or two parts, entry by entry, and of a part along its axes.

``m`` is the forward that is made: it draws the chances, and has the numbers and the other tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from random_forwards import parts
from random_forwards.parts import Part, chosen, mentions, number, size, summed

STEEPEST = 3.0  # what a tanh is taken of


def squashed(m, part: Part) -> Part:
    """Between -1 and 1, and not so near to them that the slope has no digits left."""
    if part.largest > STEEPEST:
        part = part / number(str(math.ceil(part.largest / STEEPEST)))
    return part.of("tanh", -1.0, 1.0)


def function_of(m, a: Part) -> Part:
    options: list[Callable[[], Part]] = [
        lambda: squashed(m, a),
        lambda: (number("1") + a.power("2", 2)).of("log", 0.0, 8.0),
        lambda: a.of("Abs", 0.0, a.largest),
        lambda: number("1") / (number("1") + a.power("2", 2)),
        lambda: a.of("erf", -1.0, 1.0),
        lambda: a.of("sin", -1.0, 1.0),
        lambda: a.of("cos", -1.0, 1.0),
        lambda: a.of("atan", -1.6, 1.6),
        lambda: Part(f"Larger({a.text}, 0)", a.axes, max(a.low, 0), max(a.high, 0)),
        lambda: Part(f"Smaller({a.text}, 1)", a.axes, min(a.low, 1), min(a.high, 1)),
        lambda: choice_of(m, a),
        lambda: m.scalar() * a,
        lambda: number("2") * a,
        lambda: a - number("1"),
        lambda: (a.power("2", 2) + number("1")).of("sqrt", 1.0, a.largest + 1),
    ]
    if a.largest <= 6:
        options += [
            lambda: a.power("2", 2),
            lambda: a.power("3", 3),
        ]
    if a.high <= 3.5 and a.low >= -8:
        options += 2 * [lambda: a.monotone("exp", math.exp)]
    if a.largest <= 8:
        options += [
            lambda: Part(
                f"1 / (1 + exp(-{a.written(parts.POWER)}))",
                a.axes,
                parts.sigmoid(a.low),
                parts.sigmoid(a.high),
                parts.PRODUCT,
            ),
            lambda: Part(f"log(1 + exp({a.text}))", a.axes, 0.0, a.largest + 1),
        ]
    if a.low >= 0.05:
        options += 3 * [lambda: a.monotone("log", math.log)]
        options += 2 * [lambda: a.monotone("sqrt", math.sqrt)]
        options += [
            lambda: a.power("Rational(-1, 2)", -0.5),
            lambda: a.power("Rational(2, 3)", 2 / 3),
            lambda: number("1") / a,
        ]
    return m.tamed(m.chance.choice(options)())


LIMITS = {"0": 0.0, "1": 1.0, "Rational(1, 2)": 0.5, "-1": -1.0}


def condition(m, a: Part) -> tuple[str, frozenset[str]]:
    chance = m.chance
    limit = chance.choice(("0", "1", "Rational(1, 2)", "-1", "alpha"))
    if limit == "alpha":
        limit = m.scalar().text
    elif not a.low < LIMITS[limit] < a.high:  # SymPy would choose, once and for all
        limit = f"Rational({round(50 * (a.low + a.high))}, 100)"
    sign = chance.choice((">", ">=", "<", "<="))
    test, axes = f"{a.written(parts.PRODUCT)} {sign} {limit}", a.axes
    other = next((t for t in m.tensors if t.axes == a.axes and t.text != a.text), None)
    if other is not None and chance.random() < 0.4:
        test = f"{a.written(parts.PRODUCT)} {sign} {other.text}"
    along = sorted(a.axes - {m.several})
    if along and chance.random() < 0.35:
        place = f"Position({along[0]}) {chance.choice(('<', '>=', '<='))} 1"
        test = f"{chance.choice(('And', 'Or'))}({test}, {place})"
    if chance.random() < 0.25:
        test = f"Not({test})"
    return test, axes


def choice_of(m, a: Part) -> Part:
    chance = m.chance
    test, axes = condition(m, a)
    other = chance.choice(
        (
            number("0"),
            number("1"),
            a * number("2"),
            a.power("2", 2) if a.largest < 6 else number("1"),
            m.scalar() * a,
        )
    )
    branches = [(a, test), (other, "True")]
    if chance.random() < 0.3:
        again, more = condition(m, a)
        branches.insert(1, (number("2") * a - number("1"), again))
        axes |= more
    if chance.random() < 0.3:
        branches = [(branches[-1][0], test), *branches[1:-1], (a, "True")]
    return chosen(branches, axes)


def combined(m, a: Part, b: Part) -> Part:
    """Two parts pointwise; where neither has all axes, it is said that this is meant."""
    chance = m.chance
    same = any(mentions(a.text, t.text) and mentions(b.text, t.text) for t in m.tensors)
    kind = chance.choice("++**^" if same else "+-+-****//^")  # nothing vanishes
    if kind == "/":
        return a / (b if b.low >= 0.1 else positive(m, b))
    if kind == "^" and b.largest <= 2.5:
        base = a if a.low >= 0.1 else positive(m, a)
        if base.high <= 5 and base.low >= 0.2:
            return Part(
                f"{base.written(parts.ATOM)}**{b.written(parts.ATOM)}",
                a.axes | b.axes,
                0.01,
                base.high**2.5,
                parts.POWER,
            )
    if kind in "+-":
        missing = sorted(b.axes - a.axes)
        if missing and a.axes - b.axes:
            a = Part(f"Broadcast({a.text}, {', '.join(missing)})", a.axes | b.axes, a.low, a.high)
        return a + b if kind == "+" else a - b
    return a * b


def positive(m, a: Part) -> Part:
    chance = m.chance
    options = [
        lambda: number("2") + squashed(m, a),
        lambda: number("1") + a.power("2", 2),
        lambda: number("1") + a.of("Abs", 0.0, a.largest),
    ]
    if a.high <= 2.5 and a.low >= -2.5:
        options += [lambda: a.monotone("exp", math.exp)]
    if a.low >= 0:
        options += [lambda: a + m.scalar()]
    return chance.choice(options)()


def reduced(m, a: Part, axes: Iterable[str]) -> Part:
    """Without these axes."""
    axes = sorted(axes)
    m.chance.shuffle(axes)
    while axes:
        if m.chance.random() < 0.2:
            a = summed(a, [axes.pop()], "Max")
            continue
        count = m.chance.randint(1, len(axes))
        taken, axes = axes[:count], axes[count:]
        a = summed(a, taken)
        if m.chance.random() < 0.5:
            a = a / entries(taken)
    return a


def reduced_some(m, a: Part, share: float) -> Part:
    return reduced(m, a, [axis for axis in sorted(a.axes) if m.chance.random() < share])


def entries(axes: list[str]) -> Part:
    product = size(axes[0])
    for axis in axes[1:]:
        product = product * size(axis)
    return Part(product.text, frozenset(), 1.0, 6.0, product.binds)
