"""Explanations of a wrong claim: the likely mistake, and the forward for which it would be right.

In: a `Chain`, and a claim that is wrong. Out: the terms that differ; another forward of which it is
the right gradient.
"""
