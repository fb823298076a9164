"""An expression as a person writes it.

In: an expression, or a sentence with some in it (``words.py``).
Out: plain text, letters of Unicode, LaTeX, MathML; all in the order that ``text.py`` has.
"""
