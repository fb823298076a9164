"""Relations between the values of a forward, from its definitions.

In: a `Definition`.
Out: `Relations`: the values in one spelling (``canonical.py``), whatever the user named on the way
(``graph.py``), every part with a name (``parts.py``), and each definition solved for its other
members (a table, ``equations.py``).
"""
