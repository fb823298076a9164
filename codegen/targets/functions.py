"""How targets write each function of a `Program`: one row each, by SymPy's name or an idiom's.

What holds of a function of SymPy's is in its row in ``derive/language/functions.py``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

COSTLY_CALL = 12  # exponentials, logarithms and their like, relative to an addition


@dataclass(frozen=True)
class InTargets:
    """One function in every target.

    ``torch`` is a name, or a text with a place {0}, {1} for each of several operands. ``cpp`` and
    ``triton`` are names in kernels: None if torch computes whole arrays between the loops, "" if
    loops make it of other functions. Names of Triton without a dot are CUDA's, or stand in
    ``templates/functions.py``; those of C++ are the standard library's, or stand in ``loops.h``.

    ``python`` is the function of a number, that of ``math`` where nothing is said. Torch's takes
    ``more`` arguments, or ``tensors`` alone. ``pullback`` is how torch's autograd passes a gradient
    {g} through the function of {x} with the value {y}: with the same operations, the step-by-step
    backward rounds as autograd does. Source: torch's derivatives.yaml. ``safe_at`` of an idiom is
    that of the rows in ``derive``.
    """

    torch: str
    cpp: str | None = None
    triton: str | None = None
    _: KW_ONLY
    cost: int = COSTLY_CALL
    python: str = ""
    more: str = ""
    tensors: bool = False
    pullback: str = ""
    safe_at: int | None = None


IN_TARGETS = {
    "exp": InTargets("torch.exp", "exp", "tl.exp"),
    "log": InTargets("torch.log", "log", "tl.log", pullback="{g} / {x}"),
    "log1p": InTargets("torch.log1p", "log1p", "log1p", safe_at=0),
    "expm1": InTargets("torch.expm1", "expm1", "expm1", safe_at=0),
    "sigmoid": InTargets(
        "torch.sigmoid", "", "", pullback="torch.ops.aten.sigmoid_backward({g}, {y})"
    ),
    "logsigmoid": InTargets("torch.nn.functional.logsigmoid", "", ""),
    # From 40 on, log(1 + exp(u)) is u to the last digit of float64; torch's 20 is too soon.
    "softplus": InTargets("torch.nn.functional.softplus", "", "", more=", threshold=40"),
    # The derivative of tanh is a fused multiply-add in there.
    "tanh": InTargets(
        "torch.tanh", "tanh", "tanh", pullback="torch.ops.aten.tanh_backward({g}, {y})"
    ),
    "sinh": InTargets("torch.sinh", "sinh", "sinh"),
    "cosh": InTargets("torch.cosh", "cosh", "cosh"),
    "sin": InTargets("torch.sin", "sin", "tl.sin"),
    "cos": InTargets("torch.cos", "cos", "tl.cos"),
    "tan": InTargets("torch.tan", "tan", "tan"),
    "atan": InTargets("torch.atan", "atan", "atan"),
    "asin": InTargets("torch.asin", "asin", "asin"),
    "acos": InTargets("torch.acos", "acos", "acos"),
    "asinh": InTargets("torch.asinh", "asinh", "asinh"),
    "acosh": InTargets("torch.acosh", "acosh", "acosh"),
    "atanh": InTargets("torch.atanh", "atanh", "atanh"),
    "atan2": InTargets("torch.atan2({0}, {1})", "atan2", "atan2", tensors=True),
    "erf": InTargets("torch.erf", "erf", "tl.erf"),
    "erfc": InTargets("torch.erfc", "erfc", "erfc"),
    "erfinv": InTargets("torch.erfinv"),
    "loggamma": InTargets("torch.lgamma", "log_gamma", "lgamma", python="math.lgamma"),
    "digamma": InTargets("torch.digamma"),
    "polygamma": InTargets("torch.polygamma({1}, {0})"),
    "i0": InTargets("torch.special.i0"),
    "i1": InTargets("torch.special.i1"),
    "Abs": InTargets("torch.abs", "absolute", "tl.abs", cost=1, python="abs"),
    "sign": InTargets("torch.sign", "sign", "sign", cost=2, python="(lambda x: (x > 0) - (x < 0))"),
    "floor": InTargets("torch.floor", "floor", "tl.floor", cost=1),
    "ceiling": InTargets("torch.ceil", "ceil", "tl.ceil", cost=1, python="math.ceil"),
    "Round": InTargets("torch.round", "nearest", "rint", cost=1, python="round"),
    "Mod": InTargets("torch.remainder({0}, {1})", "", ""),
}
