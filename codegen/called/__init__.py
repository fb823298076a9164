"""`gradform.function` and `gradform.check`: no file is written.

In: a forward, or code of torch's.
Out: a function with a derived backward; a verdict on a gradient.
"""
