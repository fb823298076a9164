"""The proof. It shares the meaning of nodes with the derivation, and no code.

In: a `ClosedForm`.
Out: `Proved`.
"""
