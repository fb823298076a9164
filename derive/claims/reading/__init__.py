"""Read a formula in torch or in the notation, without running any of it.

In: a text, and the `Definition` whose names it uses. Out: a `Reading`, that is claims, each an
expression in named axes; or `NotUnderstood`, with the position in the text.

book.py          the signs in which formulas are shown, as code
source.py        the text, limited and parsed; refusals.py: errors with their position
names.py         the meaning of names; operations: torch's functions and methods
values.py        an expression with torch's dimensions; broadcasting.py: combining values
notation.py      the notation's nodes; indexing.py, expressions.py: nodes of the syntax tree
lines.py, memory.py, program.py   several lines: assignments, and shared storage
pasted.py, scopes.py   the code around the lines: classes, functions, ctx and cache
containers.py, calling.py    dictionaries and tuples; calls of the text's functions
roles.py         arguments: upstream gradients, and synonyms of inputs
claims.py        the gradients that the lines claim
loops.py, writes.py    loops over positions along an axis, and in-place writes
unknown.py       undefined names
unsupported.py   syntax that is not read, with a replacement
reader.py        the driver: a text becomes claims
"""

from derive.claims.reading.lines import TextLine as TextLine
from derive.claims.reading.names import TextNames as TextNames
from derive.claims.reading.reader import Claim as Claim
from derive.claims.reading.reader import Reading as Reading
from derive.claims.reading.reader import read as read
from derive.claims.reading.reader import takes_in as takes_in
from derive.claims.reading.refusals import Misaligned as Misaligned
from derive.claims.reading.refusals import NotUnderstood as NotUnderstood
from derive.claims.reading.unknown import UnknownNames as UnknownNames
from derive.claims.reading.values import TextValue as TextValue
