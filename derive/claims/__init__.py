"""Formulas that somebody has: read from text, and compared with the proved gradient.

In: text.
Out: a verdict on each gradient.
"""
