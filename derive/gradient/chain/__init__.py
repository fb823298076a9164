"""The atomic chain: one adjoint for every statement, by the adjoints of its array nodes.

In: a `Definition`.
Out: a `Chain`, whose adjoints refer to each other and to the values of the forward by name.
"""
