"""The same mathematics in another spelling, made by program: every forward inlined, named in all
its parts, renamed, in base 2, and so on; and its relatives.

    writing.py      Definition               -> Pen       writes a forward down anew, line by line
    spellings.py    Definition, a spelling   -> Forward   the table of spellings
    comparison.py   Definition               -> Counts    what it costs, and whether it was proved
    processes.py    tasks                    -> results   each in a process and a time of its own
    record.py       forwards and spellings   -> Record    counts.json, written by ``make record``

``tests/test_respellings.py`` compares with the record, which holds what was reached.
"""
