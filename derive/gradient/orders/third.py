"""Third derivatives of a proved backward: the backward of each of the two programs of the second
order, by the same construction.

A program computes results from what is at hand. ``total = sum over results r of Sum(w_r * r)`` is a
forward; its gradients by all that is at hand are what autograd asks of the program where it is
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sympy import Expr

from derive.derivation import derive_definition
from derive.gradient.orders.forwards import FreeNames, from_at_hand, product, renamed, total_of
from derive.gradient.orders.kinks import made_smooth
from derive.gradient.orders.second import Behind, SecondOrder, behind
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.statements import known_signs
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.forward_plan import forward_plan


@dataclass(frozen=True)
class BehindAgain:
    """The backward of a program: ``program`` computes it from ``vectors``, one for each result by
    name, and from the tensors at hand.
    """

    program: Behind
    vectors: Mapping[str, Tensor]


@dataclass(frozen=True)
class ThirdOrder:
    """The parts of the third derivatives, beside those of the ``second`` order."""

    second: SecondOrder
    of_second: BehindAgain
    of_pullback: BehindAgain

    @property
    def programs(self) -> tuple[BehindAgain, BehindAgain]:
        return self.of_second, self.of_pullback

    @property
    def every_size(self) -> bool:
        return all(each.program.proved.every_size for each in self.programs)


def third_order(
    second: SecondOrder,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> ThirdOrder:
    """Derive and prove the third derivatives, each of the two programs in ``limit`` seconds.

    Raises `UnprovedError` where the independent derivations do not confirm them.
    """
    found = (_again(program, progress, limit) for program in (second.second, second.pullback))
    return ThirdOrder(second, *found)


def _again(program: Behind, progress: Callable[[str], None], limit: float | None) -> BehindAgain:
    definition, vectors = behind_the_program(program)
    proved = derive_definition(definition, progress, limit)
    names = {t.name: f"c_{t.name}" for t in definition.differentiable}
    return BehindAgain(behind(proved, names), vectors)


def behind_the_program(program: Behind) -> tuple[Definition, Mapping[str, Tensor]]:
    """The forward whose gradients are those of what ``program`` has at hand, where its results have
    one each; and by the name of each result what stands before it.
    """
    definition = program.form.definition
    lines = _lines(program)
    made = {tensor.name for tensor, _ in lines}
    met = {t.name: t.at_home for _, e in lines for t in tensors_in(e) if t.name not in made}
    at_hand = [_differentiable(t) for t in met.values() if t.role != "scalar"]
    free = FreeNames(met, (f"d{name}" for name in met))
    known = {t.name: t for t in at_hand}
    smooth = made_smooth([e for _, e in lines])
    statements = []
    for (tensor, _), e in zip(lines, smooth, strict=True):
        value = renamed(e, known.get)
        own = Tensor(free(f"r_{tensor.name}"), tensor.home, role="statement", **known_signs(value))
        known[tensor.name] = own
        statements.append(Statement(own, value, definition.place))
    vectors = {
        result.name: Tensor(free(f"w_{result.name}"), result.home, role="given")
        for result in program.results.values()
        if program.form.by_name[result.name].expression != 0
    }
    total = sum(product(w, known[name]) for name, w in vectors.items())
    statements.append(total_of(total, definition, free))
    inputs = (*at_hand, *vectors.values())
    return from_at_hand(definition, f"{definition.name}Again", inputs, statements), vectors


def _differentiable(t: Tensor) -> Tensor:
    """A tensor at hand as an input; labels, and counts of them, keep their role."""
    if t.role in ("label", "kept"):
        return t
    return Tensor(t.name, t.home, role="input", **t._assumptions_orig)


def _lines(program: Behind) -> list[tuple[Tensor, Expr]]:
    """The lines that the results need, from what is at hand."""
    form = program.form
    total, at_hand = form.definition.output.name, form.definition.at_hand
    plan = [(v.tensor, v.expression) for v in forward_plan(form) if v.tensor.name != total]
    written = [(s.tensor, s.expression) for s in form.statements]
    needed = {result.name for result in program.results.values()}
    kept = []
    for tensor, e in reversed([*plan, *written]):
        if tensor.name in needed and tensor.name not in at_hand:
            kept.append((tensor, e))
            needed |= {t.name for t in tensors_in(e)}
    return kept[::-1]
