"""Second derivatives of a proved backward, as two short programs (``forwards.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sympy import Expr, Integer

from derive.derivation import derive_definition
from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.gradient.orders.forwards import behind_the_backward, behind_the_forward
from derive.language.choices import written_in
from derive.language.errors import UnprovedError
from derive.language.names import unused
from derive.language.nodes import along
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor, is_constant, tensors_in
from derive.proof.proving.proved import Proved, in_words


@dataclass(frozen=True)
class Behind:
    """One of the two programs: ``proved`` has the closed form with the upstream gradient of its
    total; ``statements`` are the same where that is 1, in the order of computation. ``results``
    says by which names what is asked for goes: of the tensor of each name, that which is computed.
    """

    proved: Proved
    statements: tuple[ClosedStatement, ...]
    results: Mapping[str, Tensor]

    @property
    def form(self) -> ClosedForm:
        """The closed form of these statements."""
        return replace(self.proved.closed_form, statements=self.statements)


@dataclass(frozen=True)
class SecondOrder:
    """The parts of the second derivatives of ``first``.

    ``pullback`` computes the gradients of the inputs from ``cotangents``, one each of the outputs
    and of what is saved, by name. ``second`` computes from ``upstreams``, the gradients of the
    outputs by their names, and ``vectors``, one for the gradient of each input, what comes back
    behind the backward: the tangents of the outputs, ``v_<output>``, and cotangents of what is
    saved.
    """

    first: Proved
    pullback: Behind
    cotangents: Mapping[str, Tensor]
    second: Behind
    upstreams: Mapping[str, Tensor]
    vectors: Mapping[str, Tensor]

    @property
    def tangents(self) -> tuple[Tensor, ...]:
        """The tangents of the outputs."""
        return tuple(self.second.results[g.name] for g in self.upstreams.values())

    @property
    def every_size(self) -> bool:
        return self.pullback.proved.every_size and self.second.proved.every_size

    @property
    def summary(self) -> str:
        """A summary in words: for which sizes it is proved, and by which route."""
        return in_words([*self.second.proved.gradients, *self.pullback.proved.gradients])


def second_order(
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> SecondOrder:
    """Derive and prove the second derivatives of what was ``proved``, each of the two programs in
    ``limit`` seconds.

    Raises `UnprovedError` where the independent derivations do not confirm them.
    """
    form = proved.closed_form
    definition, cotangents = behind_the_forward(form)
    pullback = behind(derive_definition(definition, progress, limit), {})
    _check_at_hand(pullback.form, definition)
    definition, upstreams, vectors = behind_the_backward(form)
    names = {g.name: f"v_{name}" for name, g in upstreams.items()}
    names |= {t.name: cotangents[t.name].name for t in form.saved if t.name in cotangents}
    names |= {t.name: f"c_{t.name}" for t in form.saved if t.role == "input"}
    second = behind(derive_definition(definition, progress, limit), names)
    return SecondOrder(proved, pullback, cotangents, second, upstreams, vectors)


def _check_at_hand(pullback: ClosedForm, definition: Definition) -> None:
    """Raises `UnprovedError` where the pullback reads what is not saved."""
    read = [t for t in pullback.saved if t.role in ("input", "given", "statement")]
    missing = [t.name for t in read if t.name not in definition.at_hand]
    if missing:
        raise UnprovedError(
            f"{definition.name}: the gradients of the saved values need {', '.join(missing)}, "
            "which is not saved; no second derivative was emitted"
        )


def behind(proved: Proved, names: Mapping[str, str]) -> Behind:
    """The program where the upstream gradient of the total is 1; the gradients of what has one of
    the ``names`` go by that.
    """
    form = proved.closed_form
    definition = form.definition
    taken = {*form.relations.position, *(s.tensor.name for s in form.statements)}
    known: dict[str, Expr] = {f"d{definition.output.name}": Integer(1)}
    results: dict[str, Tensor] = {}
    statements = []
    for s in form.statements:
        e = written_in(s.expression, {t: along(known[t.name], t) for t in _met(s, known)})
        tensor = s.tensor
        asked = s.of is not None and s.of in definition.differentiable
        if asked:
            name = names.get(s.of.name, tensor.name)
            name = unused(name, (taken - {tensor.name}).__contains__)
            taken.add(name)
            renamed = Tensor(
                name, tensor.home, tensor.home, tensor.role, **tensor._assumptions_orig
            )
            results[s.of.name] = renamed
            known[tensor.name] = tensor = renamed
        elif isinstance(e, Tensor) or is_constant(e):
            known[tensor.name] = e
            continue
        statements.append(replace(s, tensor=tensor, expression=e))
    return Behind(proved, tuple(statements), results)


def _met(statement: ClosedStatement, known: Mapping[str, Expr]) -> list[Tensor]:
    return [t for t in tensors_in(statement.expression) if t.name in known]
