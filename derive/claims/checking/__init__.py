"""Decide whether a backward is right, and if not, what is missing.

In: a forward, and a text that claims its gradients.
Out: a `Verdict`: every claim is right, wrong or undecided, with a proof or a counterexample.
"""
