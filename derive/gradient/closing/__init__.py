"""From the chain to a short program, as a person would write it after two pages of algebra.

In: a `Chain`.
Out: a `ClosedForm`, of all that were found the cheapest, with the record of every step; what was
rewritten is in the table of ``identities.py``.
"""
