"""The same mathematics in another spelling, made by program: every forward inlined, named in all
its parts, renamed, in base 2, and so on; and its relatives.

    writing.py      Definition               -> Pen       writes a forward down anew, line by line
    spellings.py    Definition, a spelling   -> Forward   the table of spellings
    comparison.py   Definition               -> Outcome   what it costs, and whether it was proved

``make respellings`` prints the table of all; ``tests/test_respellings.py`` holds what holds.
"""

from respelling.comparison import Outcome as Outcome
from respelling.comparison import outcome as outcome
from respelling.comparison import verdict as verdict
from respelling.comparison import written as written
from respelling.spellings import Spelling as Spelling
from respelling.spellings import respelled as respelled
from respelling.spellings import spellings as spellings
