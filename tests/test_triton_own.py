"""Kernels in Triton of forwards that are in no gallery, beside autograd: at the usual limits, and
at some so low that small arrays reach every loop.
"""

import os
from importlib import import_module

import pytest
from forwards import HEAD
from test_kernels_of_ones_own import AXES, BODIES

from codegen.targets.languages import kernels
from codegen.targets.lean.check import largest_difference
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.pair import pairs_of
from codegen.targets.lean.target import module_text, whole_program
from derive import forward_from
from derive.derivation import derive_definition

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") != "1", reason="not interpreted: see make test-triton"
    ),
]
MORE = """\
from derive import Concat, CumProd, CumSum, Flip, Gather, Outputs, Previous, Reduced, Scalar, Scan
from derive import SegmentMax, SegmentSum, Shift, Size, Slice, Unflatten, Window
J, E = Axis("J", C + D), Axis("E", C - 1)
"""
LOWERED = "resident=8 tile=4 chunk=2 programs=2 few=2"
OWN = {
    "sums along other axes than those of a softmax": """
    x = Input(N, C)
    u = Input(N, D)
    v = Input(N, K)
    lse = log(Sum(exp(x), C))
    b = Sum(tanh(u + lse), N, D)
    loss = Sum(lse, N) * b + Sum(v * lse**2, N, K)
""",
    "a gain of two axes that are one, beside rows": """
    x = Input(N, C, K)
    w = Input(C, K)
    y = w * x / sqrt(Sum(x**2, C, K) / (C * K) + 1)
""",
    "differences, whose gradients reach one entry more": """
    x = Input(N, C)
    d = Slice(x, C, into=E, start=1) - Slice(x, C, into=E)
    loss = Sum(d**2, N, E) / N
""",
    "tensors one after the other, with a gain": """
    a = Input(N, C)
    b = Input(N, D)
    w = Input(J)
    c = Concat((a, C), (b, D), into=J)
    y = exp(c * w) / Sum(exp(c * w), J)
""",
    "names in Greek": """
    x = Input(N, C)
    β = Input(C)
    ε = Scalar(0.5)
    μ = Sum(x, C) / C
    y = β * (x - μ) / sqrt(Sum((x - μ)**2, C) / C + ε)
""",
    "a gradient that rows have parts of, along the axis that is walked": """
    x = Input(N, C, K)
    w = Input(C)
    y = exp(x * w) / Sum(exp(x * w), K)
""",
    "groups with a gain, and what has one value for each place along one of two axes": """
    x = Input(N, G, C, K)
    w = Input(G, C)
    m = Sum(x, C, K) / (C * K)
    r = Sum((x - m)**2, K)
    y = w * (x - m) / sqrt(Sum(w**2 * r, C) + 1) + r
""",
    "rows of three axes, with weights along the first": """
    x = Input(N, G, C, K, D)
    w = Input(N, C)
    t = sqrt(x**2 + 1) * w
    m = Sum(exp(-t**2) * x, C, K, D) / (C * K * D)
    y = x * (tanh(x) - m) * t
""",
    "a loss of groups, with weights along one of two axes": """
    x = Input(N, G, C, K)
    w = Input(C)
    t = Input(G)
    loss = Sum(t * sqrt(Sum(w**2 * x**2, C, K) + 1), N, G) / N
""",
    "numbers that are called as what a kernel counts": """
    x = Input(N, H, C)
    w = Input(N, H)
    rows = Scalar(0.5)
    NH = Scalar(3)
    y = exp(x * rows * w) / Sum(exp(x * rows), C) + tanh(NH * x)
""",
}


@pytest.mark.parametrize("body", [*BODIES.values(), *OWN.values()], ids=[*BODIES, *OWN])
def test_kernels_in_triton_of_a_forward_of_ones_own(body, tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    file.write_text(f"{HEAD}{MORE}{AXES}\n\nclass Own(Forward):{body}", encoding="utf-8")
    forward, target = forward_from(file), kernels["triton"]
    outside = outside_of(forward.definition)
    pairs = pairs_of(whole_program(forward, derive_definition(outside.inside)), outside)
    text, program = module_text(*pairs), pairs[0].program
    beside = target.beside(target.texts(pairs, text))
    kernels_of = {}
    for limits in ("", LOWERED):
        monkeypatch.setenv("GRADFORM_TRITON", limits)
        with beside._imported(text, program.name) as (module, package):
            own = import_module(f"{package.__name__}.{program.name}")
            watched = import_module(f"{package.__name__}._running").watched(own)
            with package.use("triton"), watched as called:
                gap = largest_difference(module, forward.definition, program)
        assert gap <= 1e-9 and called, limits
        kernels_of[limits] = {*called}
    assert kernels_of[LOWERED] == kernels_of[""]
