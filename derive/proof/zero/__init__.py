"""Is an expression identically zero? Exact, and without a rule about gradients.

In: an expression in scalars, with `Sum` of SymPy's at most.
Out: True, which is a proof, or False, where nothing was decided.
"""
