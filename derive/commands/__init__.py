"""The verbs of the command line that need no code generation.

In: the words of a command.
Out: its exit status, and what is printed or written.
"""
