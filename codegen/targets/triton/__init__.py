"""Kernels in Triton, for GPUs.

In: the plans of the functions of a lean module.
Out: the text of the kernels, and of the module of Python that launches them.
"""
