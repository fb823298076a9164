"""A forward, its gradients and a claim in numbers: fifty digits, or exact.

arithmetic.py     the two arithmetics: fifty digits, and exact_numbers.py
evaluation.py     expressions at a point; points.py: points, simple and random
comparison.py     a claim beside the gradient
counterexample.py the smallest point at which they differ; search.py finds it, confirmation.py
                  asks SymPy
"""
