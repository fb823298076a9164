"""From a proved closed form to a `Program`.

In: `Proved`, and what the functions keep.
Out: a `Program`: its functions with their arguments, sizes, lines and refusals.
"""
