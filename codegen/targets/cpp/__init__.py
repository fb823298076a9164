"""The C++ target: the loops of a schedule as a kernel, and the lines of Python that call it."""
