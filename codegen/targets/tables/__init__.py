"""Tables of kernels, whatever language these are in: which of them compute the functions of a
module, from what. ``templates`` are the files in Python that read a table, which are copied beside
the kernels of each language.
"""
