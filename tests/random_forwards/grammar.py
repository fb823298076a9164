"""Random forwards as text: `random_forward` makes the file that a user could have written.

Every production states one or several lines, of a size and with bounds that make sense, and knows
nothing of how gradform treats them. What is nasty is meant: an axis bound twice, names of axes used
again, tensors met along swapped axes, numbers brought back to a row, statements used many times.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from copy import copy

from random_forwards.combining import combined, function_of, reduced, reduced_some, squashed
from random_forwards.parts import LARGEST, Part, mentions
from random_forwards.productions import PRODUCTIONS
from random_forwards.reading import READING
from random_forwards.unusual import UNUSUAL

UNUSUAL_FROM = 50_000  # from this seed on, every other forward has lines of unusual kind
READING_FROM = 100_000  # from here on every other one reads entries elsewhere
AXES = ("N", "C", "K", "D")
MORE_AXES = ("M", "L", "T", "E")
INPUTS = ("x", "w", "z", "q")
NAMES = ("u", "v", "h", "s", "t", "r", "p", "g", "e", "f", "m", "d", "c", "k", "o", "n", "i", "j")
HEAD = """\
from sympy import Abs, And, Eq, Ne, Not, Or, Piecewise, Rational, atan, cos, erf, exp, log, oo
from sympy import Max as Larger, Min as Smaller, sin, sqrt, tanh
from derive import Axes, Axis, Broadcast, Flatten, Forward, Given, Input, Kept, Label, Max
from derive import CumSum, Flip, Gather, OneHot, Position, Rename, Scalar, Shift, Size, Sum
from derive import Unflatten
"""


def random_forward(seed: int, most: int = 6) -> str:
    """The text of a file with a forward called ``Drawn``, the same for the same ``seed``: of up to
    ``most`` lines, and those that bring everything together.
    """
    chance = random.Random(f"forward {seed}")
    helpers = []
    if chance.random() < 0.25:
        helpers.append(_Forward(chance, "Block", [], 2).made())
    made = _Forward(chance, "Drawn", helpers, most)
    if seed >= UNUSUAL_FROM and seed % 2:
        more = READING if seed >= READING_FROM else UNUSUAL
        made.productions = (*PRODUCTIONS, *more)
    made = made.made()
    bodies = [forward.text for forward in [*helpers, made]]
    axes = dict.fromkeys(line for forward in [*helpers, made] for line in forward.axis_lines)
    gallery = dict.fromkeys(line for forward in [*helpers, made] for line in forward.imports)
    head = HEAD + "".join(f"{line}\n" for line in gallery)
    return "\n\n".join([head + "\n" + "\n".join(axes) + "\n", *bodies])


class _Forward:
    """One class body while it is made."""

    def __init__(self, chance: random.Random, name: str, helpers: list[_Forward], most: int):
        self.chance, self.name, self.helpers, self.most = chance, name, helpers, most
        self.small = most < 3  # a block of another
        self.required: list[str] = []
        self.optional: list[str] = []
        self.lines: list[str] = []
        self.tensors: list[Part] = []
        self.unused: list[Part] = []
        self.inputs: list[tuple[str, tuple[str, ...]]] = []  # of any kind, as they are declared
        self.lengths: dict[str, int] = {}
        self.several: str | None = None
        self.imports: list[str] = []
        self.free_names = list(NAMES)
        self.free_axes = list(MORE_AXES)
        self.axes: list[str] = []  # of the inputs
        self.flat: dict[str, tuple[str, ...]] = {}  # axes of several others, with those
        self.twins: dict[str, str] = {}
        self.scalars = 0
        self.output: Part | None = None
        self.productions = PRODUCTIONS

    # -- the whole --------------------------------------------------------------------

    def made(self) -> _Forward:
        chance = self.chance
        self.axes = list(AXES[: chance.choice((1, 2, 2, 2, 3, 3))])
        if chance.random() < 0.12 and not self.small:
            self.several = chance.choice(self.axes)
        for _ in range(chance.choice((1, 1, 2, 2, 3))):
            self.input()
        if not any(part.axes for part in self.tensors):
            self.input(axes=tuple(self.axes))
        wanted = chance.randint(1 if self.small else 2, self.most)
        while len(self.lines) < wanted:
            self.statement()
        self.finish()
        return self

    @property
    def text(self) -> str:
        declared = [*self.required, *self.optional]
        body = "\n".join(f"    {line}" for line in [*declared, *self.lines])
        return f"class {self.name}(Forward):\n{body}\n"

    @property
    def axis_lines(self) -> list[str]:
        made = [axis for flat, parts in self.flat.items() for axis in (flat, *parts)]
        used = [*self.axes, *self.lengths, *self.twins, *made]
        lines = []
        for axis in dict.fromkeys(axis for axis in used if mentions(self.text, axis)):
            kind = "Axes" if axis == self.several else "Axis"
            length = f", {self.lengths[axis]}" if axis in self.lengths else ""
            lines.append(f'{axis} = {kind}("{axis}"{length})')
        return lines

    @property
    def known_order(self) -> list[str]:
        """The axes whose size an argument tells, in the order of the arguments."""
        passed = [axes for name, axes in self.inputs if not self._is_optional(name)]
        return list(dict.fromkeys(axis for axes in passed for axis in axes))

    @property
    def known_axes(self) -> set[str]:
        return set(self.known_order)

    @property
    def made_axes(self) -> set[str]:
        return {*self.twins, *self.flat, *(a for own in self.flat.values() for a in own)}

    @property
    def splittable(self) -> list[str]:
        """Axes that a single input has and nothing else was made of, so that they may be of any
        size.
        """
        return [
            axis
            for axis in self.axes
            if axis != self.several and axis not in self.twins.values() and not self.small
        ]

    def _is_optional(self, name: str) -> bool:
        return any(line.startswith(f"{name} = ") for line in self.optional)

    def axes_of_label(self, label: str) -> tuple[str, ...]:
        return dict(self.inputs)[label]

    def declared_as(self, axes: tuple[str, ...], kind: str) -> str | None:
        """A new argument along ``axes``, if there is a name left for it."""
        before = len(self.inputs)
        part = self.input(axes, kind)
        if len(self.inputs) == before:
            return None
        return part.text

    def statement(self) -> None:
        kinds, weights = zip(*self.productions, strict=True)
        while True:
            before = {k: copy(v) for k, v in vars(self).items() if isinstance(v, (list, dict, int))}
            part = self.chance.choices(kinds, weights)[0](self)
            if part:
                break
            vars(self).update(before)  # what it declared on the way
        self.state(part)

    def finish(self) -> None:
        """What was not used yet becomes a part of the output."""
        last = self.tensors[-1]
        result = reduced_some(self, last, 0.2)
        if result.text != last.text or not self.lines:
            result = self.state(result)
        for left in [part for part in self.unused if part.text != result.text]:
            left = reduced(self, left, left.axes - result.axes)
            together = combined(self, result, left)
            result = self.state(together)
        if self.chance.random() < 0.3 and result.axes:
            result = self.state(reduced(self, result, result.axes))
        self.output = result

    # -- declarations -----------------------------------------------------------------

    def input(self, axes: tuple[str, ...] | None = None, kind: str = "Input") -> Part:
        chance = self.chance
        if axes is None:
            count = min(len(self.axes), chance.choice((0, 1, 1, 2, 2, 2, 3)))
            axes = tuple(chance.sample(self.axes, count))
        options = ""
        known = {a for _, own in self.inputs for a in own}
        optional = set(axes) <= known and chance.random() < 0.12 and self.tensors
        if optional:
            options += f", default={chance.choice((0, 1, 2))}"
        if set(axes) <= known and chance.random() < 0.12 and axes and self.tensors:
            options += ", broadcast=True"
        used = {name for name, _ in self.inputs}
        names = INPUTS if kind == "Input" else ("mask", "weight", "bias")
        free = [name for name in names if name not in used]
        if not free:
            return chance.choice([t for t in self.tensors if t.text in used])
        name = free[0]
        written = f"{name} = {kind}({(', '.join(axes) + options).removeprefix(', ')})"
        (self.optional if optional else self.required).append(written)
        self.inputs.append((name, axes))
        part = Part(name, frozenset(axes), -2.0, 2.0, order=axes)
        self.tensors.append(part)
        self.unused.append(part)
        return part

    def label(self, axes: Iterable[str], ignored: bool = False) -> tuple[str, bool]:
        """A label along ``axes``, declared or met again; and whether it may be ignored."""
        axes = tuple(axes)
        for name, own in self.inputs:
            if name.startswith("lab") and own == axes and self.chance.random() < 0.6:
                return (
                    name,
                    f"{name} = Label({', '.join((*axes, 'ignored=-100'))})" in self.required,
                )
        name = f"lab{sum(n.startswith('lab') for n, _ in self.inputs) or ''}"
        ignored = ignored or self.chance.random() < 0.3
        options = (*axes, "ignored=-100") if ignored else axes
        self.required.append(f"{name} = Label({', '.join(options)})")
        self.inputs.append((name, axes))
        return name, ignored

    def scalar(self) -> Part:
        chance = self.chance
        if self.scalars and chance.random() < 0.5:
            return Part("alpha", frozenset(), 0.1, 2.0)
        if self.scalars == 2:
            return Part("beta", frozenset(), 0.1, 2.0)
        name = ("alpha", "beta")[self.scalars]
        self.scalars += 1
        default = chance.choice(("0.5", "1.5", "1", "0.1"))
        known = [
            a
            for line in self.required
            if "Input" in line
            for n, a in self.inputs
            if line.startswith(f"{n} = ")
            for a in a
            if a != self.several
        ]
        if known and chance.random() < 0.15:
            default = f"1 / sqrt({known[0]})"
        self.optional.append(f"{name} = Scalar({default})")
        return Part(name, frozenset(), 0.1, 2.0)

    # -- statements -------------------------------------------------------------------

    def state(self, part: Part) -> Part:
        """The part as a line with a name of its own."""
        part = self.tamed(part)
        name = self.free_names.pop(0)
        self.lines.append(f"{name} = {part.text}")
        self.unused = [t for t in self.unused if not mentions(part.text, t.text)]
        tensor = Part(name, part.axes, part.low, part.high)
        self.tensors.append(tensor)
        self.unused.append(tensor)
        return tensor

    def new_axis(self) -> str | None:
        return self.free_axes.pop(0) if self.free_axes else None

    def tamed(self, part: Part) -> Part:
        return part if part.largest <= LARGEST else squashed(self, part)

    def tensor(self, having: Iterable[str] = (), least: int = 0) -> Part | None:
        """One of the tensors, most often one that nothing was made of yet."""
        having = set(having)
        fits = [t for t in self.tensors if having <= t.axes and len(t.axes) >= least]
        if not fits:
            return None
        fresh = [t for t in fits if t in self.unused]
        return self.chance.choice(fresh if fresh and self.chance.random() < 0.6 else fits)

    def operand(self, having: Iterable[str] = (), least: int = 0) -> Part | None:
        """A tensor, or a function of one."""
        part = self.tensor(having, least)
        if part is not None and self.chance.random() < 0.35:
            part = function_of(self, part)
        return part
