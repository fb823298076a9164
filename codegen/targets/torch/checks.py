"""Prints the checks of a function's arguments: a line or two for each step.

The functions that these lines call, such as ``_fits``, stand at the end of the generated module;
the target puts in those that are called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from codegen.program import parts, steps, values
from codegen.targets.torch.lines import LONGEST, broken
from codegen.targets.torch.rows import TORCH, Prints
from codegen.targets.torch.vocabulary import PRODUCT, SIGN
from derive.language.notation.layout import Dim, Layout
from derive.language.symbols import Axes

TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
MORE = " " * 8  # indent of a line continued below a condition
ROUND_A_PART = 15  # twelve spaces, an f and two quotes


@TORCH.of(steps.Fits)
def _fits(p: Prints, step: steps.Fits) -> str:
    """A test of whether it fits, and a call that names the mismatch."""
    name, shape = step.name, expected(p, step.dims, step.known)
    words = written(p, step.dims)
    owners = [f"{', '.join(sizes)} as in {owner}" for owner, sizes in step.owners]
    words += f" with {' and '.join(owners)}" * bool(owners)
    asked = [f'"{name}"', name, f'"{words}"', shape]
    lines, dtype = [], p.around.dtype
    if step.kind == "index":
        lines.append(f'{name} = _inputs.index("{name}", {name})')
        dtype = "torch.int64"
    elif step.kind == "number":
        lines.append(f'{name} = _inputs.as_number("{name}", {name}, {p.around.dtype})')
        dtype = f"{name}.dtype"
    asked += [dtype] * (step.kind != "first") + ["True"] * (step.kind == "saved")
    asked += ["wide=True"] * (step.kind == "parameter")
    if p.around.hurried:
        wrong = [f"not isinstance({name}, Tensor)", *misshapen(p, step)]
        if step.kind == "first":
            wrong.append(f"not {name}.is_floating_point()")
        elif step.kind in ("same", "parameter", "saved"):
            wrong.append(f"{name}.dtype != {dtype}")
        lines.append(f"{condition(wrong)}\n        {_call(asked, len(MORE))}")
    else:
        lines.append(_call(asked, 4))
    if step.kind == "first":
        lines.append(f"{dtype} = {name}.dtype")
    return if_there(p, step, "\n    ".join(lines))


def misshapen(p: Prints, step: steps.Fits) -> list[str]:
    """Conditions that hold if the shape is wrong."""
    name, layout = step.name, step.dims
    if all(step.known):
        return [f"{name}.shape != {expected(p, layout, step.known)}"]
    places = [i for i, dim in enumerate(layout) if isinstance(dim.axis, Axes)]
    if places and not step.known[places[0]]:
        found = [f"{name}.dim() < {len(layout) - 1}"] * (len(layout) > 1)
    elif places:
        found = [f"{name}.dim() != {len(layout) - 1} + len({_dims_at(p, layout, places[0])})"]
    else:
        found = [f"{name}.dim() != {len(layout)}"]
    for place, (dim, known) in enumerate(zip(layout, step.known, strict=True)):
        if not known:
            continue
        if isinstance(dim.axis, Axes):
            end = place - len(layout) + 1
            part = f"{name}.shape[{place or ''}:{end or ''}]"
            found.append(f"{part} != ({_entry(p, dim, known)},)")
        else:
            after = place - len(layout) if places and places[0] < place else place
            found.append(f"{name}.shape[{after}] != {_entry(p, dim, known)}")
    return found


def _dims_at(p: Prints, layout: Layout, place: int) -> str:
    return p.around.dims[size(p, layout[place])]


@TORCH.of(steps.Spread)
def _spread(p: Prints, step: steps.Spread) -> str:
    shape = expected(p, step.dims, (True,) * len(step.dims))
    return if_there(p, step, f"{step.name} = _runtime.spread({step.name}, {shape})")


def if_there(p: Prints, step: steps.Fits | steps.Spread, line: str) -> str:
    if not step.optional:
        return line
    inside = line.replace("\n", "\n    ")
    return f"if {step.name} is not None:\n        {inside}"


@TORCH.of(steps.ReadSizes)
def _read_sizes(p: Prints, step: steps.ReadSizes) -> str:
    several = any(isinstance(dim.axis, Axes) for dim in step.dims)
    new = [i for i, is_new in enumerate(step.new) if is_new]
    if len(new) == 1 and not several:
        return f"{size(p, step.dims[new[0]])} = {step.name}.shape[{new[0]}]"
    names = []
    for dim, is_new in zip(step.dims, step.new, strict=True):
        star = "*" * isinstance(dim.axis, Axes)
        own = p.around.dims[size(p, dim)] if star else size(p, dim)
        names.append(star + (own if is_new else "_"))
    comma = "," * (len(names) == 1)
    return f"{', '.join(names)}{comma} = {step.name}.shape"


@TORCH.of(steps.ReadShape)
def _read_shape(p: Prints, step: steps.ReadShape) -> str:
    dims = p.around.dims[step.axes]
    line = f'{dims} = _inputs.shape("{step.name}", {step.name})'
    return f"{line}\n    {step.name} = math.prod({dims})"


@TORCH.of(steps.InSingle)
def _in_single(p: Prints, step: steps.InSingle) -> str:
    names, comma = ", ".join(step.tensors), "," * (len(step.tensors) == 1)
    if step.mixed:
        return broken(f"{names}{comma} = _runtime.single({names})")
    line = f"{names} = {names}.float()" if comma else f"{names} = _runtime.single({names})"
    return f"if {p.around.dtype} in _runtime.HALF:\n        {broken(line, MORE)}"


@TORCH.of(steps.MergeDims)
def _merge_dims(p: Prints, step: steps.MergeDims) -> str:
    lines = [f"if len({p.around.dims[step.name]}) != 1:"]
    alike: dict[tuple[int, int], list[str]] = {}
    for name, layout in step.tensors:
        place = next(i for i, dim in enumerate(layout) if isinstance(dim.axis, Axes))
        alike.setdefault((place, place - len(layout) + 1), []).append(name)
    for (first, last), names in alike.items():
        comma = "," * (len(names) == 1)
        own = ", ".join(names)
        lines.append(
            "        " + broken(f"{own}{comma} = _runtime.merged({first}, {last}, {own})", MORE)
        )
    return "\n".join(lines)


@TORCH.of(steps.NameSize)
def _name_size(p: Prints, step: steps.NameSize) -> str:
    return "\n    ".join(size_lines(p, step.name, step.value))


@TORCH.of(steps.Refuse)
def _refuse(p: Prints, step: steps.Refuse) -> str:
    sign = "!=" if step.equal else "=="
    test = f"{p.text(step.left)} {sign} {p.text(step.right)}"
    left, right = p.in_words(step.left), p.in_words(step.right)
    wrong = f"{left} is {'not ' * step.equal}{right}"
    sizes = ", ".join(f"{axis} = {{{name}}}" for axis, name in step.axes)
    message = f"{p.around.program}: {step.name} {step.use}, but {wrong} where {sizes}"
    return f"if {test}:\n        {_raised(message)}"


@TORCH.of(steps.NotZero)
def _not_zero(p: Prints, step: steps.NotZero) -> str:
    divisor = p.text(step.divisor)
    wrong = f'"{step.name} divides by {p.in_words(step.divisor)}, which is 0"'
    left_out = f"{step.unless} is None and " * bool(step.unless)
    return f"if {left_out}{divisor} == 0:\n        raise ValueError({wrong})"


@TORCH.of(steps.Needed)
def _needed(p: Prints, step: steps.Needed) -> str:
    wrong = f'"{p.around.program}: {step.name} is missing"'
    return f"if {step.name} is None:\n        raise TypeError({wrong})"


@TORCH.of(steps.InRange)
def _in_range(p: Prints, step: steps.InRange) -> str:
    lengths = ", ".join(p.text(length) for length in step.lengths)
    return f'_inputs.in_range("{step.name}", {step.name}, {lengths})'


@TORCH.of(steps.Fill)
def _fill(p: Prints, step: steps.Fill) -> str:
    number, shape = p.text(step.value.operand), p.shape(step.value.dims)
    one = f"{p.like}.new_full((), {number})"
    if parts.is_wide(step.value.operand):
        one = p.as_tensor(step.value.operand)
    filled = one + f".expand({shape})" * bool(shape)
    return f"if {step.name} is None:\n        {step.name} = {filled}"


@TORCH.of(steps.Default)
def _default(p: Prints, step: steps.Default) -> str:
    return f"{step.name} = {p.text(step.value)} if {step.name} is None else {step.name}"


@TORCH.of(steps.Numeric)
def _numeric(p: Prints, step: steps.Numeric) -> str:
    kinds, convert = ("int", "whole") if step.whole else ("(float, int)", "number")
    number = f'{step.name} = _inputs.{convert}("{step.name}", {step.name})'
    return f"if not isinstance({step.name}, {kinds}):\n        {number}"


@TORCH.of(steps.Within)
def _within(p: Prints, step: steps.Within) -> str:
    """A range check that rejects NaN too."""
    (sign, limit), *above = step.bounds
    value, limit = p.text(step.value, PRODUCT), p.text(limit, PRODUCT)
    test = f"{value} {sign} {limit}"
    for other, largest in above:
        test = f"{limit} {TURNED[sign]} {value} {other} {p.text(largest, PRODUCT)}"
    names = [p.sizes[v.name] for v in parts.values_in(step) if isinstance(v, values.SizeOf)]
    where = ", ".join(f"{name} = {{{name}}}" for name in dict.fromkeys(names))
    wrong = f"{p.around.program}: {step.name} must be {step.domain}, got {{{value}}}"
    wrong += f" where {where}" * bool(where)
    return f"if not {test}:\n        {_raised(wrong)}"


def size_lines(p: Prints, name: str, length: values.Value) -> list[str]:
    """Lines that compute a size, after a check that it divides."""
    line = f"{name} = {p.text(length)}"
    if isinstance(length, values.Derived):
        return _derived_lines(p, length, line)
    if not isinstance(length, values.Quotient):
        return [line]
    dividend, divisor = p.text(length.dividend), p.text(length.divisor, SIGN)
    found = f"{length.flat} = {{{dividend}}} is not a multiple of {length.by}"
    wrong = f"{p.around.program}: {found} = {{{divisor}}}"
    return [
        f"if {divisor} < 1 or {p.text(length.dividend, PRODUCT)} % {divisor}:",
        f"    {_raised(wrong)}",
        line,
    ]


def _derived_lines(p: Prints, length: values.Derived, line: str) -> list[str]:
    """``line`` computes a size by a formula; an invalid length raises."""
    name = line.partition(" ")[0]
    found = f"{p.around.program}: {name} = {length.formula} is"
    lines = [line, f"if {name} < 1:", f"    {_raised(f'{found} {{{name}}}')}"]
    if length.divisor == values.Number(Fraction(1)):
        return lines
    dividend, divisor = (p.text(v, PRODUCT) for v in (length.dividend, length.divisor))
    whole = f"{found} not whole: {{{dividend}}} / {divisor}"
    return [f"if {dividend} % {divisor}:", f"    {_raised(whole)}", *lines]


def restored(p: Prints, name: str, layout: Layout) -> str:
    """A result with all dimensions of each `Axes` restored."""
    for place, dim in enumerate(layout):
        if isinstance(dim.axis, Axes):
            dims = p.around.dims[size(p, dim)]
            lengths = f"[1] * len({dims})" if dim.one else dims
            return f"_runtime.restored({name}, {place}, {lengths})"
    return name


def size(p: Prints, dim: Dim) -> str:
    return p.sizes[dim.axis.name]


def written(p: Prints, layout: Layout) -> str:
    """The shape in words: ``(*N, C)``, ``(N, 3)``."""
    names = [size(p, dim) for dim in layout]
    lengths = [str(p.around.lengths.get(name, name)) for name in names]
    inside = ", ".join(map(Dim.written, layout, lengths))
    return f"({inside},)" if len(layout) == 1 else f"({inside})"


def expected(p: Prints, layout: Layout, known: tuple[bool, ...]) -> str:
    """The known shape: None stands for an unknown size, ``...`` for any number of them."""
    dims = [_entry(p, dim, own) for dim, own in zip(layout, known, strict=True)]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def _entry(p: Prints, dim: Dim, known: bool) -> str:
    if isinstance(dim.axis, Axes):
        if dim.one:
            return f"*[1] * len({p.around.dims[size(p, dim)]})"
        return f"*{p.around.dims[size(p, dim)]}" if known else "..."
    if dim.one:
        return "1"
    if not known:
        return "None"
    return str(p.around.lengths.get(size(p, dim), size(p, dim)))


def _raised(message: str) -> str:
    """Lines that raise a `ValueError` with the message, the inside of an f-string, split to fit the
    width.
    """
    line = f'raise ValueError(f"{message}")'
    if len(line) + len(MORE) <= LONGEST:
        return line
    pieces = [""]
    for word in re.findall(r"(?:\{[^}]*\}|[^ {])+ ?", message):
        if len(pieces[-1]) + len(word) + ROUND_A_PART > LONGEST:
            pieces.append("")
        pieces[-1] += word
    inside = "".join(f'\n            f"{part}"' for part in pieces)
    return f"raise ValueError({inside}\n        )"


def condition(tests: Sequence[str], word: str = "or") -> str:
    """The line ``if`` any of the tests holds, broken to fit; all of them by ``and``."""
    line = f"if {f' {word} '.join(tests)}:"
    if len(line) + len(MORE) <= LONGEST:
        return line
    return "if (\n        " + f"\n        {word} ".join(tests) + "\n    ):"


def _call(arguments: list[str], margin: int) -> str:
    line = f"_inputs.fits({', '.join(arguments)})"
    if len(line) + margin + 4 <= LONGEST:
        return line
    return broken(line, " " * margin)
