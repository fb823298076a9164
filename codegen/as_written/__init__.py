"""Runs a class body again, with numbers, exactly as it was typed.

In: a forward, sizes and numbers for its arguments. Out: its outputs, entry by entry and by the
names of their axes. Nothing is shared with the reading of the notation, the derivation or the
lowering: here `Sum` adds numbers up and `Rename` gives an axis another name. So emitted code can
be compared with what was written, and not with what it was taken for.
"""

from codegen.as_written.comparing import difference_from_body as difference_from_body
from codegen.as_written.order import digits_lost_by_order as digits_lost_by_order
from codegen.as_written.wider import wider_than_body as wider_than_body
