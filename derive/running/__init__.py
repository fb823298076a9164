"""How a program begins, waits, is stopped, writes files and ends; no mathematics.

In: a command, a time limit, texts of files.
Out: an exit status, one message on standard error, and all files or none.
"""
