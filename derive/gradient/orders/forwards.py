"""The two forwards whose gradients a second derivative is made of.

The backward computes the gradients of the inputs from the upstream gradients and from what the
forward saved. A derivative of it is taken in two steps, each a gradient like any other:

- *behind the backward*: ``total = sum over inputs i of Sum(v_i * dinput_i)``, as a function of the
  upstream gradients and of what is saved. Its gradient by an upstream gradient is the tangent of
  that output, by what is saved a cotangent ``c_``;
- *behind the forward*: ``total = Sum(c_y*y) + sum over what is saved of Sum(c_s*s)``, as a function
  of the inputs, so that what is saved is a function of the inputs, and no constant.

One after the other they are the product of the Hessian with ``v``; the first backward is the second
of them where all cotangents but those of the outputs are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Add, Expr

from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.gradient.orders.kinks import made_smooth
from derive.gradient.values.naming import in_full
from derive.language.names import unused
from derive.language.nodes import Peak, Sum, along
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.outputs import rejoined
from derive.language.notation.statements import known_signs
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.proof.proving.forward_plan import forward_plan


def behind_the_forward(form: ClosedForm) -> tuple[Definition, Mapping[str, Tensor]]:
    """The forward whose gradients are those of the inputs where the outputs and what is saved have
    one each; and the cotangents, by the name of what they are of. The backward of it finds the
    same values as the first.
    """
    definition = form.definition
    free = FreeNames(definition.position, (f"d{name}" for name in form.relations.position))
    values = [t for t in form.saved if t.role == "statement"]
    outputs = definition.outputs
    tensors = [*outputs, *(t for t in values if t not in outputs)]
    cotangents = {t.name: Tensor(free(f"c_{t.name}"), t.home, role="given") for t in tensors}
    peaks: dict[Expr, Tensor] = {}

    def shift(peak: Peak) -> Tensor:
        axes = [axis for axis in definition.axes if axis in axes_of(peak)]
        return peaks.setdefault(peak, Tensor(free("shift"), axes, role="given"))

    # What a shift is does not matter to the gradients: it is held where it is.
    statements = [
        replace(s, expression=s.expression.replace(lambda e: isinstance(e, Peak), shift))
        for s in _with_saved_parts(form)
    ]
    statements = rejoined(statements, definition.returned, {t.name for t in values})
    total = Add(*(product(cotangents[t.name], t) for t in tensors))
    statements.append(total_of(total, definition, free))
    known = {t.name for t in form.saved} | {c.name for c in cotangents.values()}
    pulled = replace(
        definition,
        name=f"{definition.name}Pullback",
        inputs=(*definition.inputs, *cotangents.values(), *peaks.values()),
        statements=tuple(statements),
        kept=frozenset(known),
        returned=(),
    )
    return pulled, cotangents


def behind_the_backward(
    form: ClosedForm,
) -> tuple[Definition, Mapping[str, Tensor], Mapping[str, Tensor]]:
    """The forward whose gradients are those of the upstream gradients and of what is saved, where
    the gradients of the inputs have one each; the upstream gradients in it by the names of the
    outputs, and by the name of each input what stands before its gradient.
    """
    definition = form.definition
    values = [t for t in form.saved if t.role == "statement"]
    read = [t for t in form.saved if t not in values and t.role != "scalar"]
    met = [*form.saved, *definition.inputs, *(t for t, _ in definition.scalars)]
    free = FreeNames((t.name for t in met), (f"d{t.name}" for t in met))
    upstreams = _upstreams(definition, free)
    vectors = {
        x.name: Tensor(free(f"v_{x.name}"), x.home, role="given") for x in definition.differentiable
    }
    saved = [Tensor(t.name, t.home, role="input", **t._assumptions_orig) for t in values]
    known = {t.name: t for t in saved} | {f"d{name}": g for name, g in upstreams.items()}
    statements = []
    for s in _smooth_statements(form):
        value = renamed(s.expression, known.get)
        own = form.again.get(s.tensor, s.tensor).name  # what is computed again has its name here
        name = f"g_{own.removeprefix('d')}" if s.of is not None else own
        tensor = Tensor(free(name), s.tensor.home, role="statement", **known_signs(value))
        known[s.tensor.name] = tensor
        statements.append(Statement(tensor, value, definition.place))
    total = Add(*(product(v, known[f"d{name}"]) for name, v in vectors.items()))
    statements.append(total_of(total, definition, free))
    inputs = (*upstreams.values(), *read, *saved, *vectors.values())
    behind = from_at_hand(definition, f"{definition.name}Second", inputs, statements)
    return behind, upstreams, vectors


def _upstreams(definition: Definition, free: FreeNames) -> dict[str, Tensor]:
    """The upstream gradients as tensors of a forward, by the names of the outputs."""
    names = {t: f"g_{t.name}" for t in definition.outputs}
    if len(names) == 1:
        names = dict.fromkeys(names, "g")
    return {t.name: Tensor(free(name), t.home) for t, name in names.items()}


def from_at_hand(
    definition: Definition, name: str, inputs: Sequence[Tensor], statements: Sequence[Statement]
) -> Definition:
    """The forward of ``statements`` on the axes of ``definition``, whose inputs are all at hand."""
    numbers = {t.name for s in statements for t in tensors_in(s.expression)}
    return replace(
        definition,
        name=name,
        inputs=tuple(inputs),
        scalars=tuple((t, n) for t, n in definition.scalars if t.name in numbers),
        statements=tuple(statements),
        optional=(),
        ignoring=(),
        broadcast=(),
        demands=(),
        kept=frozenset(t.name for t in inputs),
        returned=(),
    )


class FreeNames:
    """Names that are not taken yet."""

    def __init__(self, *taken: Iterable[str]):
        self.taken = set().union(*taken)

    def __call__(self, name: str) -> str:
        name = unused(name, self.taken.__contains__)
        self.taken |= {name, f"d{name}"}
        return name


def _with_saved_parts(form: ClosedForm) -> list[Statement]:
    """The statements of the forward, and the parts that are saved, each by its name where others
    are made of it.

    Where those are shifted by a peak the lines that compute them are taken, since other statements
    read what is shifted there as well.
    """
    definition, relations = form.definition, form.relations
    saved = {t.name for t in form.saved}
    parts = {p.tensor.name: p for p in relations.parts}
    others = [p for name, p in parts.items() if name not in saved]
    stated = [v for v in relations.values if v.tensor.name not in parts or v.tensor.name in saved]
    found = [(v.tensor, in_full(v.expression, others)) for v in stated]
    smooth = made_smooth([e for _, e in found])
    found = [(tensor, e) for (tensor, _), e in zip(found, smooth, strict=True)]
    if any(e.has(Peak) for tensor, e in found if tensor.name in parts):
        lines = {v.tensor: v.expression for v in reversed(forward_plan(form))}
        found = list(reversed(lines.items()))
    return [Statement(tensor, e, definition.place) for tensor, e in found]


def _smooth_statements(form: ClosedForm) -> list[ClosedStatement]:
    """The lines of the backward, of which what is smooth is differentiated as such."""
    values = [v.expression for v in form.relations.values]
    smooth = made_smooth([s.expression for s in form.statements], values)
    return [replace(s, expression=e) for s, e in zip(form.statements, smooth, strict=True)]


def renamed(e: Expr, known: Callable[[str], Tensor | None]) -> Expr:
    """``e`` with other tensors instead of those that are ``known`` by name."""
    met = {t: other for t in e.atoms(Tensor) if (other := known(t.name)) is not None}
    return e.xreplace({t: along(other, t) for t, other in met.items()})


def product(v: Tensor, gradient: Tensor) -> Expr:
    return Sum.over(v * gradient, gradient.home) if gradient.home else v * gradient


def total_of(e: Expr, definition: Definition, free: FreeNames) -> Statement:
    return Statement(Tensor(free("total"), (), role="statement"), e, definition.place)


def in_the_inputs(
    form: ClosedForm,
) -> tuple[Definition, Mapping[str, Tensor], Mapping[str, Tensor]]:
    """The forward of the total as a function of the inputs and of the upstream gradients, which are
    among them: the statements of the forward, then the lines of the backward, then the total.
    Its gradients are the second derivatives in one piece, as a person claims them; the upstream
    gradients in it by the names of the outputs, and by the name of each input what stands before
    its gradient.
    """
    pulled, cotangents = behind_the_forward(form)
    definition = form.definition
    inputs = [t for t in pulled.inputs if t not in cotangents.values()]
    forward = pulled.statements[:-1]
    tensors = [*inputs, *(s.tensor for s in forward), *(t for t, _ in definition.scalars)]
    known = {t.name: t for t in tensors}
    free = FreeNames(known, form.relations.position, (f"d{name}" for name in known))
    upstreams = _upstreams(definition, free)
    vectors = {
        x.name: Tensor(free(f"v_{x.name}"), x.home, role="given") for x in definition.differentiable
    }
    known |= {f"d{name}": g for name, g in upstreams.items()}
    lines: list[Statement] = []
    for s in _smooth_statements(form):
        value = renamed(s.expression, known.get)
        name = f"g_{s.tensor.name.removeprefix('d')}" if s.of is not None else s.tensor.name
        tensor = Tensor(free(name), s.tensor.home, role="statement", **known_signs(value))
        known[s.tensor.name] = tensor
        lines.append(Statement(tensor, value, definition.place))
    total = Add(*(product(v, known[f"d{name}"]) for name, v in vectors.items()))
    whole = replace(
        definition,
        name=f"{definition.name}SecondOrder",
        inputs=(*inputs, *upstreams.values(), *vectors.values()),
        statements=(*forward, *lines, total_of(total, definition, free)),
        returned=(),
    )
    return whole, upstreams, vectors
