"""What a value can be: between which numbers it lies, and what of it may overflow.

In: expressions, and the definitions of the names in them.
Out: `Bounds`; or a moderate factor and the exponent of what it is multiplied by (`Scales`).
"""
