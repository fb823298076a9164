"""Tables of names in torch and Python: functions by SymPy's name, roots by their exponent,
reductions by their kind.
"""

from __future__ import annotations

from fractions import Fraction

# How tightly a text binds.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)

FUNCTIONS = {
    "exp": "torch.exp",
    "log": "torch.log",
    "log1p": "torch.log1p",
    "expm1": "torch.expm1",
    "sigmoid": "torch.sigmoid",
    "logsigmoid": "torch.nn.functional.logsigmoid",
    "softplus": "torch.nn.functional.softplus",
    "tanh": "torch.tanh",
    "sinh": "torch.sinh",
    "cosh": "torch.cosh",
    "sin": "torch.sin",
    "cos": "torch.cos",
    "tan": "torch.tan",
    "atan": "torch.atan",
    "asin": "torch.asin",
    "acos": "torch.acos",
    "asinh": "torch.asinh",
    "acosh": "torch.acosh",
    "atanh": "torch.atanh",
    "erf": "torch.erf",
    "erfc": "torch.erfc",
    "erfinv": "torch.erfinv",
    "loggamma": "torch.lgamma",
    "digamma": "torch.digamma",
    "i0": "torch.special.i0",
    "i1": "torch.special.i1",
    "Abs": "torch.abs",
    "sign": "torch.sign",
    "floor": "torch.floor",
    "ceiling": "torch.ceil",
    "Round": "torch.round",
}
OF_MATRIX = {
    "inverse": "torch.linalg.inv({})",
    "logdet": "_runtime.logdet({})",
    "cholesky": "torch.linalg.cholesky(({0} + {0}.mT) / 2)",
}
SEVERAL = {  # of several operands, in the order of a `Program`
    "polygamma": "torch.polygamma({1}, {0})",
    "atan2": "torch.atan2({0}, {1})",
    "Mod": "torch.remainder({0}, {1})",
}
# From 40 on, log(1 + exp(u)) is u to the last digit of float64; torch's 20 is too soon.
MORE = {"softplus": ", threshold=40"}
ROOTS = {Fraction(1, 2): "torch.sqrt"}
# How torch's autograd passes a gradient g through a function of x with the value y: with the same
# operations, so that the step-by-step backward rounds as autograd does. The derivative of tanh is
# a fused multiply-add in there. Source: torch's derivatives.yaml.
PULLBACKS = {
    "log": "{g} / {x}",
    "tanh": "torch.ops.aten.tanh_backward({g}, {y})",
    "sigmoid": "torch.ops.aten.sigmoid_backward({g}, {y})",
    "sqrt": "{g} / (2 * {y})",
}
REDUCTIONS = {"sum": "sum", "min": "amin", "max": "amax"}
CUMULATIVE = {"sum": "cumsum", "product": "cumprod", "max": "cummax"}
WITH_INDICES = frozenset({"max"})  # torch gives those beside the values
# A row that is -oo everywhere is not shifted, and what is no number stays none. One with +oo in it
# is not shifted either where the peak is added again, as in the logarithm of a sum, which is +oo;
# where it is not, the row has no shares: +oo - +oo is no number.
UNSHIFTED = {
    "peak": ".nan_to_num(math.nan, 0.0, 0.0)",
    "subtracted peak": ".nan_to_num(math.nan, math.inf, 0.0)",
}
# Names in the formula of a number. Longer formulas are written as numbers.
IN_NUMBERS = {"sqrt": "math.sqrt", "exp": "math.exp", "log": "math.log", "pi": "math.pi"}
IN_NUMBERS |= {"erf": "math.erf", "tanh": "math.tanh", "E": "math.e"}
