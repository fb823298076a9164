"""How a program begins, waits, is stopped, writes files and ends; no mathematics.

In: a command, a limit of time, texts of files.
Out: an exit status, one message on standard error, and all files or none.
"""
