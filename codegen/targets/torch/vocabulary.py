"""Tables of names in torch and Python: functions by SymPy's name, roots by their exponent,
reductions by their kind.
"""

from __future__ import annotations

from fractions import Fraction

from codegen.targets.functions import IN_TARGETS

# How tightly a text binds.
SUM, PRODUCT, SIGN, POWER, ATOM = range(5)

FUNCTIONS = {name: row.torch for name, row in IN_TARGETS.items() if "{" not in row.torch}
OF_MATRIX = {
    "inverse": "torch.linalg.inv({})",
    "logdet": "_runtime.logdet({})",
    "cholesky": "torch.linalg.cholesky(({0} + {0}.mT) / 2)",
}
# Of several operands, in the order of a `Program`.
SEVERAL = {name: row.torch for name, row in IN_TARGETS.items() if "{" in row.torch}
ROOTS = {Fraction(1, 2): "torch.sqrt"}
PULLBACKS = {name: row.pullback for name, row in IN_TARGETS.items() if row.pullback}
PULLBACKS["sqrt"] = "{g} / (2 * {y})"
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
