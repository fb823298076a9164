"""Read a formula in torch or in the notation, without running any of it.

In: a text, and the `Definition` whose names it uses. Out: a `Reading`, that is claims, each an
expression in named axes; or `NotUnderstood`, with the position in the text.

source.py        the text, bounded and parsed; refusals.py: where and why something is not read
names.py         what a name means; operations: what a call of torch's means
values.py        an expression with torch's dimensions; broadcasting.py: values that meet
notation.py      the project's own nodes; indexing.py, expressions.py: what a syntax node means
lines.py, memory.py, program.py   several lines: assignments, and what shares its storage
pasted.py, scopes.py   what stands around the lines: a class, functions, ctx and cache
held.py, calling.py    dictionaries and tuples; functions that the text calls
roles.py         the arguments: upstream gradients, and other words for inputs
claims.py        what the lines say of each gradient
loops.py, writes.py    loops over the places along an axis, and what is written into
unknown.py       the names that nothing says what they are
unread.py        the syntax that is not read, with what to write
reader.py        all of it: a text becomes claims
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
