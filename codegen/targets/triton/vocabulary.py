"""Tables of Triton's names; functions without ``tl.`` are in ``templates/functions.py``."""

from __future__ import annotations

import keyword
from fractions import Fraction

from codegen.targets.tables.names import Taken

# By the kind of an element: the sign between its two arguments.
SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor divide": "//",
    "remainder": "%",
    "and": "&",
    "or": "|",
}
# How much they bind, as in Python.
LEVELS = {
    "compare": 1,
    "or": 2,
    "and": 3,
    "add": 4,
    "subtract": 4,
    "multiply": 5,
    "divide": 5,
    "floor divide": 5,
    "remainder": 5,
    "negate": 6,
    "not": 6,
}
# Of CUDA, by the names that SymPy has for them.
OF_LIBRARY = """
acos acosh asin asinh atan atan2 atanh cosh erfc expm1 log1p rint sinh tan tanh
"""
FUNCTIONS = {
    **{name: name for name in OF_LIBRARY.split()},
    "loggamma": "lgamma",
    "exp": "tl.exp",
    "log": "tl.log",
    "erf": "tl.erf",
    "abs": "tl.abs",
    "floor": "tl.floor",
    "ceiling": "tl.ceil",
    "Round": "rint",
    "sin": "tl.sin",
    "cos": "tl.cos",
    "sign": "sign",
    "larger": "larger",
    "smaller": "smaller",
    "power": "power",
}
# Powers that are no general one, by their exponents: functions of the base, or itself.
POWERS = {
    Fraction(1): "",
    Fraction(2): "square",
    Fraction(3): "cube",
    Fraction(1, 2): "tl.sqrt",
}
# In Python, of numbers that are known before a kernel is called.
OF_NUMBERS = {
    "abs": "abs",
    "larger": "max",
    "smaller": "min",
    "ceiling": "math.ceil",
    "Round": "round",
    "sign": "(lambda x: (x > 0) - (x < 0))",
    "loggamma": "math.lgamma",
}
SHARED = f"""
{OF_LIBRARY} added aligned counted_label cube is_counted known larger largest lgamma load load_at
placed power rescaled sign
smaller square total within
"""
WORDS = f"""
{SHARED} floating kernel l tl triton unscaled table Table ROWS BLOCK REAL ALIGN before start program
row rows range
"""
TRITON = Taken(
    frozenset((*WORDS.split(), *keyword.kwlist)),
    ("BLOCK_", "i_", "size_"),
    ("_ptr", "_units", "_count"),
)
