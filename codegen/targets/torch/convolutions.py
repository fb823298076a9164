"""Prints convolutions and their gradients as calls of torch."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from codegen.program import reads, values
from codegen.targets.torch.rows import TORCH, Prints
from codegen.targets.torch.vocabulary import ATOM, SIGN, SUM

NOTHING, ONE = values.Number(Fraction(0)), values.Number(Fraction(1))


@TORCH.of(reads.Convolve)
def _convolve(p: Prints, value: reads.Convolve) -> tuple[str, int]:
    c, rank = value.channels, len(value.geometry)
    ones = [("",)] * rank
    roles = {
        "input": [c.batch, (*c.group, *c.into), *ones],
        "weight": [(*c.group, *c.out), c.into, *ones],
        "output": [c.batch, (*c.group, *c.out), *ones],
    }
    first, second = (kind for kind in roles if kind != value.made)
    x = _in_torchs_order(p, value.first, roles[first])
    other = _in_torchs_order(p, value.second, roles[second])
    same = all(g.same for g in value.geometry)
    options = _options(p, value, same)
    if value.made == "output":
        x = x if same else _with_ends(p, x, value.geometry)
        made = f"torch.nn.functional.conv{rank}d({x}, {other}{options})"
    else:
        shape = [_product(p, names) for names in roles[value.made][:2]]
        shape += [_length(p, g, value.made, same) for g in value.geometry]
        given = f"({', '.join(shape)})"
        if value.made == "weight":
            x = x if same else _with_ends(p, x, value.geometry)
            arguments = f"{x}, {given}, {other}"
        else:
            arguments = f"{given}, {x}, {other}"
        made = f"torch.nn.grad.conv{rank}d_{value.made}({arguments}{options})"
        if value.made == "input" and not same:
            made = _with_ends(p, made, value.geometry, taken_off=True)
    return _in_our_order(p, made, roles[value.made][:2]), ATOM


def _in_torchs_order(p: Prints, value: values.Value, groups: Sequence[tuple[str, ...]]) -> str:
    """Each group of dimensions merged; one of size 1 for an empty group."""
    if all(len(group) == 1 for group in groups):
        return p.text(value)
    text = p.tight(value)
    for place, group in enumerate(groups):
        if not group:
            text = f"{text}.unsqueeze({place})"
        elif len(group) > 1:
            text = f"{text}.flatten({place}, {place + len(group) - 1})"
    return text


def _in_our_order(p: Prints, text: str, groups: Sequence[tuple[str, ...]]) -> str:
    """The reverse, splitting from the last dimension on."""
    for place, group in reversed(list(enumerate(groups))):
        if not group:
            text = f"{text}.squeeze({place})"
        elif len(group) > 1:
            sizes = ", ".join(p.sizes[name] for name in group)
            text = f"{text}.unflatten({place}, ({sizes}))"
    return text


def _options(p: Prints, value: reads.Convolve, same: bool) -> str:
    found = {
        "stride": [g.stride for g in value.geometry],
        "padding": [g.before if same else NOTHING for g in value.geometry],
        "dilation": [g.dilation for g in value.geometry],
    }
    text = ""
    for name, each in found.items():
        texts = list(map(p.text, each))
        if {*each} != {NOTHING if name == "padding" else ONE}:
            plain = texts[0] if len({*texts}) == 1 else f"({', '.join(texts)})"
            text += f", {name}={plain}"
    if value.channels.group:
        text += f", groups={_product(p, value.channels.group)}"
    return text


def _product(p: Prints, names: Sequence[str]) -> str:
    return " * ".join(p.sizes[name] for name in names) or "1"


def _length(p: Prints, g: reads.Geometry, made: str, same: bool) -> str:
    if made == "weight":
        return p.sizes[g.entry]
    size = p.sizes[g.input]
    ends = [v for v in (g.before, g.after) if v != NOTHING and not same]
    return " + ".join([size, *map(p.text, ends)])


def _with_ends(p: Prints, text: str, geometry, taken_off: bool = False) -> str:
    """The text with padding for missing entries at the ends, or with it taken off."""
    if all(g.grows for g in geometry) and not taken_off:
        ends = [v for g in reversed(geometry) for v in (g.before, g.after)]
        return f"torch.nn.functional.pad({text}, ({', '.join(map(p.text, ends))}))"
    if all(g.grows and g.after == NOTHING for g in geometry) and taken_off:
        starts = (p.text(g.before) for g in geometry)
        return f"{text}[:, :, {', '.join(f'{start}:' for start in starts)}]"
    sign = "-" if taken_off else ""
    for place, g in enumerate(geometry, 2):
        ends = [_end(p, v, sign) for v in (g.before, g.after)]
        if ends != ["0", "0"]:
            text = f"_runtime.padded({text}, {place}, {', '.join(ends)})"
    return text


def _end(p: Prints, value: values.Value, sign: str) -> str:
    if value == NOTHING:
        return "0"
    return sign + p.text(value, SIGN if sign else SUM)
