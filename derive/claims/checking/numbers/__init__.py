"""Evaluate a forward, its gradients and a claim: to fifty digits, or exactly.

In: a `Chain`, a claim, and a budget. Out: a point at which they differ, as small as possible, or
none.

arithmetic.py     the arithmetics: fifty digits, exact_numbers.py, and residues.py, which is exact
                  at random data (fields.py: modulo primes)
evaluation.py     expressions at a point, as tables of their entries (tables.py, array_nodes.py)
points.py         points, simple and random
comparison.py     a claim beside the gradient
further.py        at which further sizes they agree
counterexample.py the smallest point at which they differ; search.py finds it, confirmation.py
                  asks SymPy
"""
