"""Torch's operations as formulas.

In: a `Space`, and the arguments of a call. Out: a `Value`, a view of one, or a `Refusal`.

entries.py       what an entry of the tables is, how its arguments are bound
functions.py     of entries, and arithmetic; choosing.py: which of two, entry by entry
dtypes.py        bools, integers and floats where they meet
reductions.py, products.py   along dimensions
shaping.py       dimensions moved, added and spread; reshaping.py: joined and taken apart
making.py, picking.py        new tensors; entries by their index
vocabulary.py    all tables together, and the words that are no operations
"""
