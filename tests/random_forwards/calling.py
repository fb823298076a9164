"""Lines of a random forward that call another: of the same file, or of the gallery."""

from __future__ import annotations

from random_forwards.parts import Part


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
        fits = [t for t in m.tensors if t.axes == set(own) and (t.order == own or len(own) < 2)]
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
