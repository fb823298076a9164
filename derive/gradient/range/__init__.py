"""The range of a value: bounds, and parts of it that may overflow.

In: expressions, and the definitions of the names in them.
Out: `Bounds`; or a moderate factor and the exponent of what it is multiplied by (`Scales`).
"""
