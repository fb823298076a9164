"""A class body becomes a record; a forward that is called in it, a block of statements.

In: a class body, a NAME or a file.
Out: a `Definition`: named statements over named axes, frozen, complete and checked; its `Layout`.
"""
