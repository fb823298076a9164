"""What kernels share, whatever language they are in: names and expressions, the plain functions
that launch them, and the comparison with autograd. ``templates`` are the files in Python that are
copied beside the kernels of each language.
"""
