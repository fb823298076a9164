"""Tables of C++ names; the functions stand in ``templates/loops.h``."""

from __future__ import annotations

from fractions import Fraction

from codegen.targets.functions import IN_TARGETS

I64 = "int64_t"  # of all sizes and indices

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
# How much they bind, as in C++; conditions stand in parentheses beside others.
LEVELS = {
    "or": 1,
    "and": 1,
    "compare": 2,
    "add": 3,
    "subtract": 3,
    "multiply": 4,
    "divide": 4,
    "floor divide": 4,
    "remainder": 4,
    "negate": 5,
    "not": 5,
}
FUNCTIONS = {name: row.cpp for name, row in IN_TARGETS.items() if row.cpp}
FUNCTIONS |= {"larger": "larger", "smaller": "smaller", "power": "pow"}
# Powers that are no call of a library's, by their exponents: functions of the base, or itself; one
# that is negative is 1 over that.
POWERS = {
    Fraction(1): "",
    Fraction(2): "square",
    Fraction(3): "cube",
    Fraction(1, 2): "square_root",
}
# Names that a variable of a kernel cannot have.
WORDS = """
alignas alignof and asm auto bool break case catch char class compl const constexpr continue default
delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new noexcept not operator or private protected public register return short signed
sizeof static struct switch template this throw true try typedef typename union unsigned using
virtual void volatile while xor NULL nullptr std main errno memset memcpy Real threads row first
last scratch choose square cube square_root unless infinity
DONE NO_MEMORY OUT_OF_RANGE VECTOR ONE DECLARED EXPORTED Guarded INLINE LOOP ONCE BLOCK ROWS TILE
LINE PAGE each sum largest Several reduced Scratch Own cleared Owned Kept Total Columns Most
in_blocks is_counted counted_label Alone threads_for in_threads rows tiles entries in_range
smaller_size add_block forward backward REAL step Vector Memory bytes_of_memory SUMS WIDE BYTES
LANES CONTRACTED CONTRACTS tile
columns turned product clear add_rows pick_rows descend
multiplied_added Divisor either polynomial bits_of of_bits smaller_bits
Kind In Out Stored Formats Given Read Written STORED FORMAT bfloat16 float16
"""
TAKEN = frozenset((*WORDS.split(), *FUNCTIONS.values()))
# How names begin and end that are made of others.
PREFIXES = ("i_", "size_", "SIZE_", "first_", "last_", "given_", "all_", "want_")
SUFFIXES = ("_now", "_total", "_block", "_constant", "_wanted")
