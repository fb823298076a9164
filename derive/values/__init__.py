"""What the definitions of a forward say about its values.

In: a `Definition`.
Out: `Relations`: every part with a name, in one spelling (``canonical.py``), and each definition
solved for its other members (a table, ``equations.py``).
"""
