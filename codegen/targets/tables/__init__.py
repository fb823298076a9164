"""Parts that kernels of all languages share: ``templates`` are copied beside those of each.

In: the pairs of functions of a lean module, and their kernels.
Out: the plain functions that launch them; the comparison with autograd.
"""
