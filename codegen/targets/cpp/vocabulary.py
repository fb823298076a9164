"""What C++ calls things, in tables; the functions stand in ``templates/loops.h``."""

from __future__ import annotations

from fractions import Fraction

# By the kind of an element: the sign between its two arguments.
SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor divide": "/",
    "remainder": "%",
    "and": "&",
    "or": "|",
}
FUNCTIONS = {
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
    "expm1": "expm1",
    "tanh": "tanh",
    "sinh": "sinh",
    "cosh": "cosh",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "atan": "atan",
    "asin": "asin",
    "acos": "acos",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "erf": "erf",
    "erfc": "erfc",
    "abs": "absolute",
    "sign": "sign",
    "floor": "floor",
    "ceiling": "ceil",
    "larger": "larger",
    "smaller": "smaller",
}
# Powers that are no call of a library's, by their exponents: of the base.
POWERS = {
    Fraction(2): "square({0})",
    Fraction(3): "cube({0})",
    Fraction(-1): "(1 / {0})",
    Fraction(-2): "(1 / square({0}))",
    Fraction(1, 2): "square_root({0})",
    Fraction(-1, 2): "(1 / square_root({0}))",
}
# Names that a variable of a kernel cannot have.
WORDS = """
alignas alignof and asm auto bool break case catch char class compl const constexpr continue default
delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not operator or private protected public register return short signed
sizeof static struct switch template this throw true try typedef typename union unsigned using
virtual void volatile while xor Real begin end thread threads row rows work tile block stop scratch
choose square cube square_root absolute sign larger smaller unless exp log log1p expm1 tanh sinh
cosh sin cos tan atan asin acos asinh acosh atanh erf erfc floor ceil pow infinity DONE NO_MEMORY
OUT_OF_RANGE VECTOR ONE DECLARED CAUGHT FAILED REAL failed used count entries tall wide forward step
Vector Memory Scratch clear product columns tile descend turned in_range add_block add_rows
pick_rows sum_of_parts max_of_parts threads_for smaller_size memset memcpy main errno
SUMS WIDE BYTES LANES CONTRACTED CONTRACTS bytes_of_memory backward NULL nullptr std
"""
TAKEN = frozenset(WORDS.split())
# How names begin and end that are made of others.
PREFIXES = ("i_", "size_", "SIZE_", "first_", "last_", "steady_", "number_", "given_", "all_")
SUFFIXES = (
    "_now",
    "_here",
    "_added",
    "_inner",
    "_unordered",
    "_value",
    "_block",
    "_total",
    "_part",
    "_parts",
    "_memory",
)
