"""The lines of a class body as they were typed: values alone do not say what was written.

In: the frame of a class body that is being run, and the values that its names have.
Out: the names and axes that stand in a line, or what is wrong with it, before it is run.
"""
