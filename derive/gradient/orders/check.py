"""Check a formula for a gradient, or for second derivatives: a double backward, a tangent (jvp).

The latter are the gradients of one more forward, the total of the gradients of the first
(`in_the_inputs` of ``forwards.py``), and checked like those of any forward. What is said here is
what the names of a text mean in it: the upstream gradient that arrives is ``g`` or goes by its name
in the first order, the tangent is the gradient by it. Of several outputs each has its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from derive.claims.checking.check import check as check_first
from derive.claims.checking.check import check_definition, check_kinds
from derive.claims.checking.verdict import Verdict
from derive.claims.reading import NotUnderstood
from derive.derivation import derive
from derive.gradient.orders import FIRST, SECOND
from derive.gradient.orders.forwards import in_the_inputs
from derive.gradient.orders.verdict import VerdictWords
from derive.language.errors import QuestionError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward
from derive.language.notation.library import as_forward
from derive.language.symbols import Tensor, tensors_in

JVP, VECTOR = "jvp", "v"  # the tangent by its usual name, and the vector where there is but one


def check(
    forward: type[Forward] | str | Path,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = FIRST,
) -> Verdict:
    """Check whether ``formula`` is the gradient of ``forward`` with respect to its input ``of``
    (default: the first), or with ``order=2`` a second derivative (`check_second`).

    ``formula`` is one expression, in gradform's notation or as torch code, or a backward of several
    lines; then every gradient that it assigns is checked. ``let`` maps your names to those of the
    forward. If an input may have any number of dimensions, the text is checked for every shape.
    What is not decided within ``limit`` seconds is undecided. Raises `QuestionError` for text that
    is not supported.

    Long: the arguments are those of the command, and all but two are optional.
    """
    orders = {FIRST: check_first, SECOND: check_second}
    if isinstance(order, bool) or order not in orders:
        raise QuestionError(f"order is {order!r}, expected 1 or 2", "pass order=2")
    return orders[order](forward, formula, of, let, source, progress, limit)


def check_second(
    forward: type[Forward] | str | Path,
    formula: str,
    of: str | None = None,
    let: Mapping[str, str] | None = None,
    source: str = "formula",
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Verdict:
    """Whether ``formula`` is a second derivative of ``forward``, as `check` has it for the first.

    ``dx`` is the gradient by x of the gradients times their vectors, ``v_<output>``, ``jvp`` or
    ``dg`` the tangent of the output, and of several outputs each has its ``v_<output>``; a bare
    expression that reads nothing of the upstream gradients is the first of these. The text may read
    inputs, statements, what the backward saves, the upstream gradient ``g`` (of several outputs
    ``g_<output>``), a vector ``v_x`` for each input, and the first gradients ``g_x``.

    Long: the arguments are those of `check`.
    """
    check_kinds(formula, of, let)
    forward = as_forward(forward)
    proved = derive(forward, progress, limit)
    names = SecondNames(proved.definition, *in_the_inputs(proved.closed_form))
    meant = {**names.meant_in(formula), **names.mapped(let or {})}
    of = names.asked_in(formula, meant) if of is None else names.ours(of)
    try:
        verdict = check_definition(names.whole, formula, of, meant, source, progress, limit)
    except NotUnderstood as error:
        error.remedy = names.remedied(error.remedy)
        raise
    return names.said.of(verdict)


@dataclass(frozen=True)
class SecondNames:
    """Names in a text of tensors that go by other names in the forward ``whole`` of the total."""

    first: Definition
    whole: Definition
    upstreams: Mapping[str, Tensor]
    vectors: Mapping[str, Tensor]

    @cached_property
    def said(self) -> VerdictWords:
        tangents = {
            self.upstreams[t.name].name: Tensor(f"v_{t.name}", t.home) for t in self.first.outputs
        }
        return VerdictWords(self.first, f"d{self.whole.output.name}", tangents)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Names that a text may use, as far as nothing else has them."""
        known: dict[str, str] = {}
        for output, upstream in self.upstreams.items():
            own = (self.said.tangents[upstream.name].name, f"dd{output}")
            own += (JVP,) * (len(self.upstreams) == 1)
            known |= {f"d{output}": upstream.name} | dict.fromkeys(own, f"d{upstream.name}")
        if len(self.vectors) == 1:
            (vector,) = self.vectors.values()
            known[VECTOR] = vector.name
        taken = {*self.whole.position, *(axis.name for axis in self.whole.axes)}
        return {theirs: ours for theirs, ours in known.items() if theirs not in taken}

    def ours(self, name: str) -> str:
        return self.aliases.get(name, name)

    def meant_in(self, text: str) -> dict[str, str]:
        """The names that a text does not give to a value of its own, and those of results; what
        arrives at the total is 1.
        """
        own, tangents = _names_in(text, ast.Store), {f"d{g.name}" for g in self.upstreams.values()}
        known = {a: b for a, b in self.aliases.items() if b in tangents or a not in own}
        return {self.said.arriving: "1", **known}

    def mapped(self, let: Mapping[str, str]) -> dict[str, str]:
        """A person's own names, which may stand for those that a text may use."""
        return {theirs: self.ours(str(ours).strip()) for theirs, ours in let.items()}

    def asked_in(self, text: str, meant: Mapping[str, str]) -> str | None:
        """Infer the target of an expression that does not name it: the tangent, if it reads nothing
        of the upstream gradient, else None, for the gradient by the first input.
        """
        first, *_ = (g.name for g in self.upstreams.values())
        arriving = {g.name for g in self.upstreams.values()}
        for s in self.whole.statements:
            if arriving & {t.name for t in tensors_in(s.expression)}:
                arriving.add(s.name)
        read = {meant.get(name, name) for name in _names_in(text, ast.Load)}
        return None if read & arriving else first

    def remedied(self, remedy: str) -> str:
        """In a refusal the gradients are those of the inputs, and nothing is said of the total."""
        example = next(f"d{name}" for name in self.vectors)
        remedy = remedy.replace(f", {self.whole.output.name} ()", "")
        return remedy.replace(f"called {self.said.arriving},", f"called {example},")


def _names_in(text: str, context: type[ast.expr_context]) -> set[str]:
    """The names that a text reads or writes; none where it cannot be parsed: that is said later."""
    try:
        tree = ast.parse(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, context)}
