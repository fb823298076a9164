"""Lines of unusual kind: powers of magnitudes, clipped ratios, masks by position, choices that are
compared, numbers that float32 does not hold. The same contract as in ``productions.py``.
"""

from __future__ import annotations

from random_forwards.combining import squashed
from random_forwards.parts import PRODUCT, SUM, Part, chosen, number, summed


def powers_of_a_magnitude(m) -> Part:
    a = squashed(m, m.tensor())
    one, other = m.chance.sample(
        ("3", "2", "Rational(3, 2)", "Rational(5, 2)", "Rational(4, 3)"), 2
    )
    sign = m.chance.choice("+-")
    return Part(f"Abs({a.text})**{one} {sign} Abs({a.text})**{other}", a.axes, -1.0, 2.0, SUM)


def clipped_ratio(m) -> Part | None:
    a = squashed(m, m.tensor())
    old = squashed(m, m.tensor(having=a.axes))
    gain = m.tensor(having=a.axes)
    if old.axes != a.axes or gain.axes != a.axes or old.text == a.text:
        return None
    ratio = m.state(Part(f"exp({a.text} - {old.text})", a.axes, 0.1, 7.4)).text
    held = m.chance.choice(
        (
            f"Smaller(Larger({ratio}, Rational(4, 5)), Rational(6, 5))",
            f"Piecewise((Rational(4, 5), {ratio} < Rational(4, 5)),"
            f" (Rational(6, 5), {ratio} > Rational(6, 5)), ({ratio}, True))",
        )
    )
    held = m.state(Part(held, a.axes, 0.8, 1.2)).text
    w, most = gain.text, 7.4 * gain.largest
    smaller = m.chance.choice(
        (
            f"Smaller({ratio} * {w}, {held} * {w})",
            f"Piecewise(({ratio} * {w}, {ratio} * {w} < {held} * {w}), ({held} * {w}, True))",
        )
    )
    return Part(smaller, a.axes, -most, most)


def so_far(m) -> Part | None:
    """A sum over the entries before, in one of several spellings."""
    a = m.tensor(least=1)
    axes = sorted((a.axes if a else frozenset()) - {m.several} - m.made_axes)
    twin = m.new_axis() if axes else None
    if twin is None:
        return None
    axis = m.chance.choice(axes)
    m.twins[twin] = axis
    other = f"Rename({a.text}, {axis}, {twin})"
    sign = m.chance.choice(("<=", "<", ">="))
    mask = f"Piecewise((1, Position({twin}) {sign} Position({axis})), (0, True))"
    term = m.chance.choice(
        (
            f"Piecewise(({other}, Position({twin}) {sign} Position({axis})), (0, True))",
            f"{other} * {mask}",
            f"Piecewise((0, Eq({mask}, 0)), ({other}, True))",
            f"Piecewise(({other}, Ne({mask}, 0)), (0, True))",
        )
    )
    low, high = min(a.low, 0.0), max(a.high, 0.0)
    return summed(Part(term, a.axes | {twin}, low, high), [twin])


def sides_that_are_multiples(m) -> Part:
    a = m.tensor()
    up, down = (
        Part(f"{n} * {a.text}", a.axes, -a.largest, a.largest, PRODUCT) for n in ("0.8", "-0.2")
    )
    return chosen([(up, f"{up.text} > {down.text}"), (down, "True")])


def compared_choice(m) -> Part:
    a = m.tensor()
    step = f"Piecewise((1, {a.text} > 0), (0, True))"
    test = m.chance.choice((f"Eq({step}, 0)", f"Ne({step}, 1)", f"{step} < Rational(1, 2)"))
    inner = chosen([(a * number("2"), f"{a.text} > 1"), (a, "True")])
    return chosen([(number("3") * a, test), (inner, "True")])


def number_out_of_range(m) -> Part:
    a = m.tensor()
    return m.chance.choice(
        (
            Part(f"Larger({a.text}, -1e39)", a.axes, a.low, a.high),
            Part(f"Smaller({a.text}, 1e39)", a.axes, a.low, a.high),
            Part(f"{a.text} + 1e-46 * {a.text}**2", a.axes, a.low, a.high, SUM),
            Part(f"Piecewise(({a.text}, {a.text} < 1e39), (1e39, True))", a.axes, a.low, a.high),
            Part(f"1e-40 * ({a.text} * 1e40)", a.axes, a.low, a.high, PRODUCT),
        )
    )


UNUSUAL = (
    (powers_of_a_magnitude, 20),
    (clipped_ratio, 20),
    (so_far, 30),
    (sides_that_are_multiples, 15),
    (compared_choice, 20),
    (number_out_of_range, 15),
)
