"""From a forward to a file that may be written.

In: a forward.
Out: the texts of its modules, derived or found in the cache, printed, and compared with autograd.
"""
