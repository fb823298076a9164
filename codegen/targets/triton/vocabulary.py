"""Tables of Triton's names; functions without ``tl.`` are in ``templates/functions.py``."""

from __future__ import annotations

import keyword
from fractions import Fraction

from codegen.targets.functions import IN_TARGETS
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
FUNCTIONS = {name: row.triton for name, row in IN_TARGETS.items() if row.triton}
FUNCTIONS |= {name: name for name in ("larger", "smaller", "power")}
# Powers that are no general one, by their exponents: functions of the base, or itself.
POWERS = {
    Fraction(1): "",
    Fraction(2): "square",
    Fraction(3): "cube",
    Fraction(1, 2): "tl.sqrt",
}
# In Python, of numbers that are known before a kernel is called.
OF_NUMBERS = {"larger": "max", "smaller": "min"}
OF_NUMBERS |= {name: row.python for name, row in IN_TARGETS.items() if row.python}
# Functions that kernels import from those that they share.
SHARED = frozenset(name for name in FUNCTIONS.values() if "." not in name)
SHARED |= {"added", "aligned", "counted_label", "cube", "is_counted", "known", "largest", "load"}
SHARED |= {"load_at", "placed", "rescaled", "square", "total", "within"}
WORDS = """
floating kernel l tl triton unscaled table Table ROWS BLOCK REAL ALIGN before start program
row rows range
"""
TRITON = Taken(
    frozenset((*SHARED, *WORDS.split(), *keyword.kwlist)),
    ("BLOCK_", "i_", "size_"),
    ("_ptr", "_units", "_count"),
)
