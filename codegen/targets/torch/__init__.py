"""Torch code: how values and steps are printed, how it is compared with autograd; and the modules
that compute an axis in parts.
"""
