"""The words of the mathematics: named axes, tensors, the nodes that SymPy lacks, declarations, and
their errors.

In: what a user writes, as Python evaluates it.
Out: SymPy expressions, which may be asked for their axes, or refused with file, line and remedy.
"""
