"""Explanations of a wrong claim: the likely mistake, and the forward it would be right for.

In: a `Chain`, and a claim that is wrong.
Out: the terms that differ; another mathematics of which it is the right gradient.
"""
