"""The source lines of a class body: values alone do not show what was written.

In: the frame of a running class body, and the values of its names. Out: the names and axes in a
line, or what is wrong with it, before it runs.
"""
