"""Torch code: how values and steps are printed, and how they are compared with autograd.

In: a `Program`, or one whose axes are split.
Out: lines of torch; the distance from autograd; modules that compute an axis in parts.
"""
