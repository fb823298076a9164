"""Second derivatives: the backward is a forward again.

In: a `Proved` backward. Out: a `SecondOrder`, two short programs derived and proved as the first
was: what comes back where what is saved has a gradient too, and what comes back behind the
backward, which is the product of the Hessian with a vector, and the tangent of the output.
"""
