"""The words of a verdict: what the user calls what a reading had to name.

In: a formula, a name or an example. Out: the same in the words that are `speaking`.
"""
