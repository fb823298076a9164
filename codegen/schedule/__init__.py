"""Loops that compute a function of a Program: between the Program and the text of kernels.

In: a function of a Program.
Out: a `Plan` (``plan.py``): sweeps over memory, the passes over a row in each, what is parallel,
what a row keeps; in no language yet. ``flattening.py`` makes nodes of the lines, ``planning.py``
finds the sweeps that move the least; on a GPU each of them is one or several `Walk`s
(``walks.py``): rows in registers, or programs that walk along them.
"""
