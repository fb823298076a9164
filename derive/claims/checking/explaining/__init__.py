"""What somebody who made a mistake may have meant.

In: a `Chain`, and a claim that is wrong.
Out: the terms that differ; another mathematics of which it is the right gradient.
"""
