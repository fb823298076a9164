"""The gradient: the chain rule, and the short program that is equal to it.

In: a `Definition`.
Out: a `ClosedForm`, with the record of every step.
"""
