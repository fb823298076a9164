"""The commands that need code generation, and the table of all verbs.

In: the words of a command. Out: its exit status, and what is printed or written. What a command
takes is known without SymPy and torch, so that help and completion are quick; what it does is
imported when it does it.
"""
