"""Torch code: printing of values and steps, and the comparison with autograd.

In: a `Program`, or one whose axes are split.
Out: lines of torch; the distance from autograd; modules that compute an axis in parts.
"""
