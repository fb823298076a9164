"""The commands that need code generation, and the table of all verbs.

In: the words of a command. Out: its exit status, and what is printed or written. The parsers import
neither SymPy nor torch, so that help and completion are quick; a command imports its implementation
when it runs.
"""
