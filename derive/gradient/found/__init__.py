"""Findings besides the gradients.

In: a forward.
Out: findings: what has no influence, gradients that are sums or matrix products, and the like.
"""
