"""The words of a verdict: the user's names for what a reading had to name.

In: a formula, a name or an example. Out: the same in the current words (`speaking`).
"""
