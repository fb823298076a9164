"""A certificate that Coq checks: that a closed form is the gradient, for every size.

In: a `ClosedForm`. Out: the text of a file for Coq, to be read beside ``Grad.v`` (`Certificate`),
and what Coq says of it (`checked`). The theorem: along every differentiable curve of the inputs,
the sum of the outputs times the gradients that arrive has the derivative that the closed form
gives.

``terms.py`` and ``tangents.py`` are tables of nodes, ``signs.py`` says what is surely positive,
``printed.py`` is the file, ``coq.py`` runs Coq. What has no row is refused by its name. Nothing
here is trusted but that the definitions that are printed are those of the forward and of the closed
form: they stand first, and the theorem last.
"""

from derive.certificate.coq import LIBRARY as LIBRARY
from derive.certificate.coq import PARTIAL as PARTIAL
from derive.certificate.coq import Checked as Checked
from derive.certificate.coq import checked as checked
from derive.certificate.coq import installed as installed
from derive.certificate.printed import Certificate as Certificate
