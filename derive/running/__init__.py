"""Running a program: start, waiting, interruption, files and exit; no mathematics.

In: a command, a time limit, texts of files.
Out: an exit status, one message on standard error, and all files or none.
"""
