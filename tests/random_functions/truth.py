"""What is true of a Function: it is run by torch as torch runs it, and compared with autograd.

In float64, with every value of its option, for every subset of the arguments that need a gradient,
at several sizes (ones and equal ones included), with an upstream gradient that is contiguous,
transposed in memory and expanded, twice with ``retain_graph``; nothing of the caller's may change.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import torch

from random_functions.grammar import Case

SIZES = (
    {"N": 3, "C": 4, "K": 2},
    {"N": 2, "C": 2, "K": 2},
    {"N": 1, "C": 4, "K": 3},
    {"N": 3, "C": 1, "K": 2},
    {"N": 2, "C": 3, "K": 1},
    {"N": 1, "C": 1, "K": 1},
)
CLOSE = {"rtol": 1e-8, "atol": 1e-8}


class Context(SimpleNamespace):
    """A ctx for the forward alone."""

    def save_for_backward(self, *_):
        pass


def wrongs(function: type, case: Case) -> list[str]:
    """What goes wrong, in words; nothing where the Function is right."""
    found = []
    for values, (number, sizes) in itertools.product(case.values, enumerate(SIZES)):
        for needs in itertools.product((True, False), repeat=len(case.inputs)):
            if any(needs):
                generator = torch.Generator().manual_seed(number)
                where = f"{values or ''} at {sizes}, needs {needs}"
                try:
                    said = _wrong(function, case, values, sizes, needs, generator)
                except (RuntimeError, TypeError, AttributeError, ValueError, IndexError) as error:
                    said = f"raises {type(error).__name__}: {str(error)[:150]}"
                if said:
                    found.append(f"{said} {where}".strip())
    return found


def _wrong(function, case: Case, values: dict, sizes: dict, needs, generator) -> str:
    def randn(shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    data = [randn([sizes[a] for a in t.axes]) for t in case.inputs]
    own = [d.clone().requires_grad_(n) for d, n in zip(data, needs, strict=True)]
    expected = _forward(function, [t.clone() for t in own], values)
    if not expected.requires_grad:
        return ""
    given = [d.clone().requires_grad_(n) for d, n in zip(data, needs, strict=True)]
    y = function.apply(*given, *values.values())
    if not torch.allclose(y, expected, **CLOSE):
        return "another value"
    asked, of_own = ([t for t in ts if t.requires_grad] for ts in (given, own))
    shape = y.shape
    upstreams = {
        "contiguous": randn(shape),
        "not contiguous": randn(shape[::-1]).permute([*range(len(shape))][::-1]),
        "expanded": randn(()).expand(shape),
    }
    for kind, g in upstreams.items():
        before = g.clone()
        right = torch.autograd.grad(
            expected, of_own, before, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for time in ("first", "second"):
            got = torch.autograd.grad(y, asked, g, retain_graph=True, allow_unused=True)
            for a, b in zip(got, right, strict=True):
                if a is None and b.any():
                    return f"None in a {time} backward ({kind})"
                if a is not None and not torch.allclose(a, b, **CLOSE):
                    return f"differs in a {time} backward ({kind})"
        if not torch.equal(g, before):
            return f"dy changes ({kind})"
    if any(not torch.equal(a.detach(), d) for a, d in zip(given, data, strict=True)):
        return "an argument changes"
    return "" if torch.allclose(y, expected, **CLOSE) else "the output changes"


def _forward(function, tensors, values: dict) -> torch.Tensor:
    """Its forward, recorded by autograd."""
    if "setup_context" in vars(function):
        return function.forward(*tensors, *values.values())
    return function.forward(Context(), *tensors, *values.values())
