"""Second and third derivatives: the backward is a forward again.

In: a `Proved` backward. Out: a `SecondOrder`, two short programs derived and proved as the first
was: what comes back where what is saved has a gradient too, and what comes back behind the
backward, which is the product of the Hessian with a vector, and the tangent of the output; for a
reader they are one program. From that a `ThirdOrder`: what comes back behind each of the two.
"""

FIRST, SECOND, THIRD = 1, 2, 3  # the orders that are derived
