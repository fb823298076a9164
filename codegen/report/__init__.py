"""The quality of generated modules.

In: the record of each module (``files/quality.py``).
Out: the page of a folder, and tables on a terminal.
"""
