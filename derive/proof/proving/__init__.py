"""Nothing leaves this room unproved, and nothing here knows how a closed form was made.

In: a `ClosedForm`.
Out: a `Proved`: which gradient, for which sizes, and by which of two routes; or an `UnprovedError`.
Of it, ``forward_plan.py`` gives the lines of the forward, each proved too.
"""
