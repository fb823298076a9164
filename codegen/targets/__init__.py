"""Printers: lean modules of torch code, chains, the modules of ranks, and kernels.

In: a `Program`, in which everything is decided.
Out: text.
"""

TORCH = "torch"  # the name of lines of torch alone, as a target
