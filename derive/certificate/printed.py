"""The certificate of a closed form: definitions, lemmas, and at the end the theorem.

In: a `ClosedForm`. Out: the text of a file for Coq. Every statement has a lemma about its tangent
(``T_``) and one that transposes it (``P_``): the chain rule is proved, not assumed. That what the
chain gives is the closed form is proved last (``C_``), by the algebra of finite sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sympy import Add, Expr, Gt, Lt, Mul, Piecewise, Pow

from derive.certificate.signs import Signs
from derive.certificate.tangents import TANGENT, tangent
from derive.certificate.terms import TAKEN, Requirement, Terms, index, summed
from derive.gradient.chain.chain import Adjoint, Contribution
from derive.gradient.closing.closed_form import ClosedForm
from derive.language.nodes import OneHot, Position, Reindexing, Sum
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in

HEAD = """\
From Coq Require Import Reals Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
Require Import Grad.
Open Scope R_scope.
"""


@dataclass(frozen=True)
class Claimed:
    """A definition: ``tensor = expression``."""

    tensor: Tensor
    expression: Expr


def name_of(name: str) -> str:
    return f"{name}_" if name in TAKEN else name


@dataclass(frozen=True)
class Certificate:
    form: ClosedForm

    @property
    def definition(self) -> Definition:
        return self.form.definition

    # What there is

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return self.definition.axes

    @cached_property
    def sizes(self) -> tuple[Axis, ...]:
        """Axes whose sizes are variables."""
        return tuple(
            a
            for a in self.axes
            if self.definition.size(a) == a and a.length is None and a not in self.flattened
        )

    @cached_property
    def flattened(self) -> dict[Axis, tuple[Axis, ...]]:
        return dict(self.definition.flattened)

    @cached_property
    def moving_inputs(self) -> tuple[Tensor, ...]:
        return self.definition.differentiable

    @cached_property
    def moving(self) -> frozenset[str]:
        """Names of inputs and statements that change along the curve."""
        return frozenset().union(
            *(self.definition.depending_on(t.name) for t in self.moving_inputs)
        )

    @cached_property
    def upstreams(self) -> tuple[Tensor, ...]:
        return self.form.chain.upstreams

    @cached_property
    def forward(self) -> tuple[Claimed, ...]:
        return tuple(Claimed(s.tensor, s.expression) for s in self.definition.statements)

    @cached_property
    def backward(self) -> tuple[Claimed, ...]:
        """The closed form, with the parts of the forward that it reads and nobody named."""
        return tuple(Claimed(tensor, e) for tensor, e in self.form.with_parts)

    @cached_property
    def parts(self) -> tuple[Claimed, ...]:
        """Parts of the forward that the closed form names. Tangents and chain are written in them:
        what stands under a root, say, is no longer seen there.
        """
        return tuple(c for c in self.backward if c not in self.gradients)

    @cached_property
    def gradients(self) -> tuple[Claimed, ...]:
        return tuple(Claimed(s.tensor, s.expression) for s in self.form.statements)

    @cached_property
    def of_sums(self) -> tuple[Claimed, ...]:
        """Statements and parts that sum, or read one that does: what may cancel in the sums."""
        found: dict[str, Claimed] = {}
        for c in (*self.forward, *self.parts):
            if c.expression.has(Sum) or any(t.name in found for t in tensors_in(c.expression)):
                found[c.tensor.name] = c
        return tuple(found.values())

    def folded(self, e: Expr, via: str) -> Expr:
        """``e`` in terms of the parts, and of the statement that it is the derivative of."""
        for part in self.parts:
            e = _in_terms_of(e, part)
        statement = self.definition.by_name[via]
        pulled = _pulled(e)
        found = _in_terms_of(pulled, Claimed(statement.tensor, statement.expression))
        return e if found == pulled else found

    @cached_property
    def given(self) -> dict[str, Tensor]:
        """All that a definition may stand on: inputs, scalars, upstream gradients."""
        scalars = [t for t, _ in self.definition.scalars]
        return {t.name: t for t in (*self.definition.inputs, *scalars, *self.upstreams)}

    @cached_property
    def signs(self) -> Signs:
        return Signs(self.definition)

    @property
    def called_as(self) -> str:
        """With the reduction that this is the mathematics of."""
        d = self.definition
        return f'{d.name} with reduction="{d.reduction}"' if d.reduction else d.name

    # How it is written

    def size(self, axis: Axis) -> str:
        axis = self.definition.size(axis)
        if axis in self.flattened:
            return "(" + " * ".join(map(self.size, self.flattened[axis])) + ")"
        return str(axis.length) if axis.length is not None else name_of(axis.name)

    def terms(self, value: Callable[..., str]) -> Terms:
        return Terms(value, self.moving, self.axes, self.size)

    def at(self, name: str, axes: Iterable[Axis], where: Callable[[Axis], str] = index) -> str:
        indices = " ".join(map(where, axes))
        text = f"{name} {indices}".strip()
        return f"({text})" if " " in text else text

    def plain(self, tensor: Tensor, where: Callable[[Axis], str] = index) -> str:
        return self.at(name_of(tensor.name), tensor.axes, where)

    @cached_property
    def computed(self) -> frozenset[str]:
        return frozenset(n.tensor.name for n in (*self.forward, *self.backward))

    def along_curve(self, tensor: Tensor, where: Callable[[Axis], str] = index) -> str:
        """A value at ``t``."""
        moves = tensor.name in self.computed or tensor.name in self.moving
        if tensor.role == TANGENT:
            return self.at(f"{name_of(tensor.name[:-1])}'", tensor.axes, where)
        return self.at(name_of(tensor.name) + " t" * moves, tensor.axes, where)

    def of_chain(self, tensor: Tensor, where: Callable[[Axis], str] = index) -> str:
        """The same in a chain rule, whose adjoints are those of the chain."""
        if tensor.role == "adjoint" and tensor.name not in self.given:
            return self.at(f"chain_{tensor.name}", tensor.axes, where)
        return self.along_curve(tensor, where)

    def type_of(self, tensor: Tensor) -> str:
        return "nat -> " * len(tensor.home) + ("nat" if tensor.role == "label" else "R")

    def binders(self, tensor: Tensor) -> str:
        return "".join(f" ({index(a)} : nat)" for a in tensor.home)

    def bounds(self, axes: Sequence[Axis]) -> str:
        """``forall``, and that the indices are in range."""
        if not axes:
            return ""
        names = " ".join(map(index, axes))
        within = "".join(f"({index(a)} < {self.size(a)})%nat -> " for a in axes)
        return f"forall {names}, {within}"

    def summed(self, text: str, tensor: Tensor) -> str:
        return summed(text, {a: self.size(a) for a in self.axes if a in tensor.home})

    def paired(self, text: str, tensor: Tensor) -> str:
        moved = self.at(f"{name_of(tensor.name)}'", tensor.home)
        return self.summed(f"{text} * {moved}", tensor)

    # The definitions that are claimed

    @cached_property
    def stands_on(self) -> dict[str, list[str]]:
        """For each definition the variables that Coq will make it a function of, in order."""
        order = [self.size(a) for a in self.sizes] + list(map(name_of, self.given))
        used: dict[str, set[str]] = {n: {n} for n in order}
        terms, found = self.terms(self.plain), {}
        for s in (*self.forward, *self.backward):
            words = set(re.findall(r"[\w']+", terms.text(s.expression)))
            own = set().union(*(used[word] for word in words & used.keys()))
            used[name_of(s.tensor.name)] = own
            found[s.tensor.name] = [name for name in order if name in own]
        return found

    def claim(self) -> list[str]:
        terms = self.terms(self.plain)
        out = ["Module Claim.", "Section Claim."]
        out += [f"Variables {' '.join(map(self.size, self.sizes))} : nat."] if self.sizes else []
        out += [f"Variable {name_of(t.name)} : {self.type_of(t)}." for t in self.given.values()]
        for title, group in (("forward", self.forward), ("closed form", self.backward)):
            out.append(f"(* the {title} *)")
            for s in group:
                name = name_of(s.tensor.name)
                text = terms.text(s.expression)
                out.append(f"Definition {name}{self.binders(s.tensor)} : R := {text}.")
        return [*out, "End Claim.", "End Claim."]

    # What is assumed

    def hypotheses(self) -> list[tuple[str, str]]:
        """Each with its name, as propositions about the curve at ``t``."""
        d, terms = self.definition, self.terms(self.along_curve)
        out = [(f"size_{self.size(a)}", f"(0 < {self.size(a)})%nat") for a in self.sizes]
        for k, need in enumerate(dict.fromkeys(d.needs)):
            out.append((f"sizes_{k}", _positive(terms, need)))
        for demand in d.demands:
            for bound in demand.domain.bounds:
                ends = [terms.text(bound.limit), terms.text(demand.expression)]
                low, high = ends if bound.is_lower else ends[::-1]
                sign = "<" if bound.is_strict else "<="
                out.append((f"demand_{len(out)}", f"{low} {sign} {high}"))
        for t in self.moving_inputs:
            at = f"fun t => {self.at(name_of(t.name) + ' t', t.home)}"
            moved = self.at(f"{name_of(t.name)}'", t.home)
            out.append((f"H{t.name}", f"{self.bounds(t.home)}is_derive ({at}) t {moved}"))
        for label, axis in self.labels():
            at = self.at(name_of(label.name), label.home)
            out.append(
                (f"label_{label.name}", f"{self.bounds(label.home)}({at} < {self.size(axis)})%nat")
            )
        for k, need in enumerate(self.needs):
            if not self.shown(need):
                out.append((f"regular_{k}", self.needed(need)))
        return out

    def labels(self) -> list[tuple[Tensor, Axis]]:
        """Labels that are compared with an index along an axis."""
        nodes = [n for s in (*self.forward, *self.backward) for n in s.expression.atoms(OneHot)]
        pairs = {(n.operand.at_home, n.axis) for n in nodes if isinstance(n.operand, Tensor)}
        return sorted(pairs, key=lambda pair: (pair[0].name, pair[1].name))

    @cached_property
    def needs(self) -> list[Requirement]:
        terms = self.terms(self.along_curve)
        found = [need for s in self.forward for need in terms.needs(s.expression)]
        return list(dict.fromkeys(found))

    def shown(self, need: Requirement) -> bool:
        """Whether it follows from the signs of what is named."""
        return need.of is not None and self.signs.of(need.of) == "positive"

    def needed(self, need: Requirement) -> str:
        guards = "".join(f"{guard} -> " for guard in need.guards)
        return f"{self.bounds(need.axes)}{guards}{need.claim}"

    # The proof

    def text(self) -> str:
        parts = [
            HEAD,
            f"(* {self.called_as}: what is claimed *)",
            *self.claim(),
            "",
            "Section Proof.",
            *self.setting(),
            "",
            "(* signs *)",
            *self.sides(),
            "",
            "(* tangents: what every statement changes by *)",
            *self.tangents(),
            "",
            "(* chain: what each statement passes on to what it reads *)",
            *self.chain(),
            "",
            "(* closed form *)",
            *self.closed(),
            *self.theorem(),
        ]
        return "\n".join(parts) + "\n"

    def variables(self) -> list[tuple[str, str]]:
        out = [(self.size(a), "nat") for a in self.sizes] + [("t", "R")]
        for t in self.given.values():
            moves = t.name in self.moving
            out.append((name_of(t.name), "R -> " * moves + self.type_of(t)))
            if moves:
                out.append((f"{name_of(t.name)}'", self.type_of(t)))
        return out

    def called(self, name: str, moves: Callable[[str], str]) -> str:
        args = " ".join(moves(v) for v in self.stands_on[name])
        return f"Claim.{name_of(name)} {args}".strip()

    def moved(self, variable: str) -> str:
        names = {name_of(t.name) for t in self.moving_inputs}
        return f"({variable} t)" if variable in names else variable

    def setting(self) -> list[str]:
        out = [f"Variable {name} : {kind}." for name, kind in self.variables()]
        for s in (*self.forward, *self.backward):
            called = self.called(s.tensor.name, self.moved)
            out.append(f"Notation {name_of(s.tensor.name)} t := ({called}).")
        for name, claim in self.hypotheses():
            out.append(f"Hypothesis {name} : {claim}.")
            hint = name.startswith(("size", "demand", "label", "regular"))
            out += [f"#[local] Hint Resolve {name} : side."] if hint else []
        for a in self.sizes:
            n = self.size(a)
            out.append(f"Lemma some_{n} : 0 < INR {n}. Proof. now apply (lt_INR 0). Qed.")
            out.append(f"#[local] Hint Resolve some_{n} : side.")
        return out

    def sides(self) -> list[str]:
        out = []
        for s in self.forward:
            sign = self.signs.named.get(s.tensor.name)
            if sign:
                name, relation = name_of(s.tensor.name), "<" if sign == "positive" else "<="
                claim = f"{self.bounds(s.tensor.home)}0 {relation} {self.along_curve(s.tensor)}"
                out.append(f"Lemma sign_{name} : {claim}.")
                out.append(f"Proof. intros. unfold Claim.{name}. signs. Qed.")
                out.append(f"#[local] Hint Resolve sign_{name} : side.")
        for k, need in enumerate(self.needs):
            if self.shown(need):
                out.append(f"Lemma regular_{k} : {self.needed(need)}.")
                out.append("Proof. intros. signs. Qed.")
                out.append(f"#[local] Hint Resolve regular_{k} : side.")
        return out

    def tangents(self) -> list[str]:
        out, terms = [], self.terms(self.along_curve)
        for s in self.forward:
            if s.tensor.name not in self.moving:
                continue
            name, statement = name_of(s.tensor.name), self.definition.by_name[s.tensor.name]
            moved = self.at(f"{name}'", s.tensor.home)
            text = terms.text(self.folded(tangent(statement, self.moving), s.tensor.name))
            out.append(f"Definition {name}'{self.binders(s.tensor)} : R := {text}.")
            at = self.at(f"{name} t", s.tensor.home)
            out.append(
                f"Lemma T_{name} : {self.bounds(s.tensor.home)}is_derive (fun t => {at}) t {moved}."
            )
            read = dict.fromkeys(t.name for t in tensors_in(s.expression) if t.name in self.moving)
            poses = "".join(
                f"pose proof T_{name_of(r)}. " for r in read if r in self.definition.by_name
            )
            opened = _unfold(self.parts, [f"{name}'", f"Claim.{name}"])
            out.append(f"Proof. {poses}intros; {opened}. tangent. Qed.")
        return out

    def passed(self, adjoint: Adjoint) -> list[tuple[str, list[Contribution]]]:
        """The name of what each statement contributes."""
        via: dict[str, list[Contribution]] = {}
        for c in adjoint.contributions:
            via.setdefault(c.via, []).append(c)
        if len(via) == 1:
            return [(f"chain_{adjoint.name}", *via.values())]
        return [(f"{name_of(v)}_to_{name_of(adjoint.of.name)}", cs) for v, cs in via.items()]

    def chain(self) -> list[str]:
        terms = self.terms(self.of_chain)
        out, facts, given = [], [], {}
        adjoints = [a for a in self.form.chain.adjoints if a.of.name in self.moving]
        for a in adjoints:
            passed = self.passed(a)
            for name, contributions in passed:
                whole = Add(*(c.expression for c in contributions))
                whole = self.folded(whole, contributions[0].via)
                out.append(f"Definition {name}{self.binders(a.of)} : R := {terms.text(whole)}.")
                given.setdefault(contributions[0].via, []).append((name, a, whole))
            if len(passed) != 1:
                total = " + ".join(self.at(name, a.of.home) for name, _ in passed) or "0"
                out.append(f"Definition chain_{a.name}{self.binders(a.of)} : R := {total}.")
                right = (
                    " + ".join(self.paired(self.at(n, a.of.home), a.of) for n, _ in passed) or "0"
                )
                own = self.paired(self.at(f"chain_{a.name}", a.of.home), a.of)
                out.append(f"Lemma A_{name_of(a.of.name)} : {own} = {right}.")
                out.append(f"Proof. unfold chain_{a.name}. sums. Qed.")
                facts.append(f"A_{name_of(a.of.name)}")
        for s in reversed(self.forward):
            name = s.tensor.name
            if name not in self.moving:
                continue
            own = self.of_chain(Tensor(f"d{name}", s.tensor.home, role="adjoint"))
            terms_given = given.get(name, [])
            right = (
                " + ".join(self.paired(self.at(n, a.of.home), a.of) for n, a, _ in terms_given)
                or "0"
            )
            unfolded = [f"{name_of(name)}'", *(n for n, _, _ in terms_given)]
            out.append(f"Lemma P_{name_of(name)} : {self.paired(own, s.tensor)} = {right}.")
            own = f"ltac:(unfold Claim.{name_of(name)})"
            out.append(f"Proof. unfold {', '.join(unfolded)}. passing {own}. Qed.")
            facts.append(f"P_{name_of(name)}")
        poses = " ".join(f"pose proof {f}." for f in facts)
        out.append(f"Lemma chain : {self.arriving()} = {self.total('chain_d{}')}.")
        return [*out, f"Proof. {poses} lra. Qed."]

    def arriving(self) -> str:
        return " + ".join(
            self.paired(self.plain(u), t)
            for u, t in zip(self.upstreams, self.definition.outputs, strict=True)
        )

    def total(self, name: str) -> str:
        """The sum of the inputs' gradients times their derivatives along the curve."""
        return " + ".join(
            self.paired(self.at(name.format(t.name), t.home), t) for t in self.moving_inputs
        )

    def closed(self) -> list[str]:
        """A lemma for each gradient that is computed: what the chain gives is the closed form.

        What is proved equal is not opened again in later lemmas, but for the gradients of inputs:
        the chain does not read them.
        """
        adjoints = {a.name: a for a in self.form.chain.adjoints if a.of.name in self.moving}
        algebra = self._algebra()
        parts, whole = _unfold(self.parts), _unfold(self.forward)
        out, settled = [], []
        for s in self.backward:
            adjoint = adjoints.get(s.tensor.name)
            if adjoint is None:
                continue
            chain = [
                n
                for a in reversed(adjoints.values())
                if a.name not in settled
                for n in reversed(
                    dict.fromkeys([*(n for n, _ in self.passed(a)), f"chain_{a.name}"])
                )
            ]
            own = [p for p in self.parts if _is_real_power(p.expression)]
            own += [c for c in self.gradients if c.tensor.name not in settled]
            opened = _unfold(own, chain)
            t = adjoint.of
            names = (f"chain_{adjoint.name}", f"{name_of(adjoint.name)} t")
            left, right = (self.at(n, t.home) for n in names)
            lemma = f"C_{name_of(t.name)}"
            out.append(f"Lemma {lemma} : {self.bounds(t.home)}{left} = {right}.")
            ways = " ".join(f"ltac:({way})" for way in (opened, algebra, parts, whole))
            out.append(f"Proof. intros. closing {ways}. Qed.")
            if t not in self.moving_inputs:
                settled.append(adjoint.name)
                rows = " ".join(map(self._settled, (adjoints[n] for n in settled)))
                out.append(f"Ltac settled ::= lazymatch goal with {rows} end.")
                lemmas = ", ".join(f"?C_{name_of(adjoints[n].of.name)}" for n in settled)
                out.append(f"Ltac resettled ::= rewrite {lemmas} by within.")
        return out

    def _algebra(self) -> str:
        """The tactic that opens sums and products; first without those that no sum reads."""
        opened = [c for c in (*self.forward, *self.parts) if _is_algebra(c.expression)]
        of_sums = [c for c in self.of_sums if c in opened]
        first = f"({_unfold(of_sums)}) + " if of_sums and of_sums != opened else ""
        return f"{first}({_unfold(opened)})" if first else _unfold(opened)

    def _settled(self, adjoint: Adjoint) -> str:
        """How a gradient of the chain is replaced by what it was proved to be."""
        places = " _" * len(adjoint.of.home)
        lemma = f"C_{name_of(adjoint.of.name)}"
        return f"| |- chain_{adjoint.name}{places} = _ => eapply eq_trans; [apply {lemma}; within|]"

    def objective(self, moves: Callable[[Tensor], str]) -> str:
        return " + ".join(
            self.summed(f"{self.plain(u)} * {moves(t)}", t)
            for u, t in zip(self.upstreams, self.definition.outputs, strict=True)
        )

    def theorem(self) -> list[str]:
        """The lemma in the section, and the theorem with all that it assumes."""
        value = self.objective(self.along_curve)
        names = [(t, self.at(f"{name_of('d' + t.name)} t", t.home)) for t in self.moving_inputs]
        final = " + ".join(self.paired(name, t) for t, name in names)
        out = []
        for t, name in names:
            own = self.paired(self.at(f"chain_d{t.name}", t.home), t)
            enter = "apply Sum_ext; intros. " * len(t.home)
            out.append(f"Lemma E_{name_of(t.name)} : {own} = {self.paired(name, t)}.")
            out.append(
                f"Proof. {enter}rewrite C_{name_of(t.name)} by assumption. reflexivity. Qed."
            )
        poses = " ".join(f"pose proof T_{name_of(t.name)}." for t in self.definition.outputs)
        rewritten = ", ".join(f"E_{name_of(t.name)}" for t in self.moving_inputs)
        out += [
            f"Lemma gradient_along : is_derive (fun t => {value}) t ({final}).",
            f"Proof. {poses} eapply D_eq; [deriv|]. transitivity ({self.arriving()}); [sums|].",
            f"  rewrite chain, {rewritten}. reflexivity. Qed.",
            "End Proof.",
            "",
            f"(* The theorem: dx and all others are the gradients of {self.called_as}. *)",
            "Theorem gradient :",
            "  forall " + " ".join(f"({name} : {kind})" for name, kind in self.variables()) + ",",
        ]
        for _, claim in self.hypotheses():
            out.append(f"  ({self.spelled_out(claim)}) ->")
        return [
            *out,
            f"  is_derive (fun t => {self.spelled_out(value)}) t",
            f"    ({self.spelled_out(final)}).",
            "Proof. intros. apply gradient_along; assumption. Qed.",
            "Print Assumptions gradient.",
        ]

    def spelled_out(self, text: str) -> str:
        """``text`` with the definitions that the section's notations stand for."""
        for s in (*self.forward, *self.backward):
            name = name_of(s.tensor.name)
            text = re.sub(
                rf"(?<![\w'.]){name} t(?![\w'])", self.called(s.tensor.name, self.moved), text
            )
        return text


def _positive(terms: Terms, need: object) -> str:
    """A condition on the sizes."""
    low, high = terms.text(need.lts), terms.text(need.gts)
    return f"{low} {'<' if isinstance(need, (Gt, Lt)) else '<='} {high}"


def _unfold(claims: Sequence[Claimed], names: Sequence[str] = ()) -> str:
    """The tactic that opens ``names`` and then the definitions, those first that read others."""
    opened = [*names, *(f"Claim.{name_of(c.tensor.name)}" for c in reversed(claims))]
    return f"unfold {', '.join(opened) or 'Rdiv'}"


def _in_terms_of(e: Expr, part: Claimed) -> Expr:
    """``e`` with a part, its powers and what it is a factor of written by its name."""
    of, named = part.expression, {part.expression: part.tensor}
    if isinstance(of, Pow):
        for power in e.atoms(Pow):
            times = power.exp / of.exp
            if power.base == of.base and times.is_Integer:
                named[power] = part.tensor**times
    if isinstance(of, Add):
        own = of.as_coefficients_dict()
        for total in e.atoms(Add):
            terms = total.as_coefficients_dict()
            times = {terms[k] / own[k] for k in own} if terms.keys() == own.keys() else {}
            if len(times) == 1:
                named[total] = part.tensor * next(iter(times))
    if isinstance(of, Mul):
        for product in e.atoms(Mul):
            if set(of.args) <= set(product.args):
                others = (f for f in product.args if f not in of.args)
                named[product] = Mul(part.tensor, *others)
    return e.xreplace(named)


def _is_real_power(e: Expr) -> bool:
    """Whether its exponent is one that another may be added to."""
    return isinstance(e, Pow) and not e.exp.is_number


def _pulled(e: Expr) -> Expr:
    """``e`` with what does not vary along a sum before it."""
    if not e.args or not isinstance(e, (Add, Mul, Pow, Sum)):
        return e
    if not isinstance(e, Sum):
        return e.func(*map(_pulled, e.args))
    before, after = [], []
    for f in Mul.make_args(_pulled(e.operand)):
        (after if axes_of(f) & set(e.axes) else before).append(f)
    return Mul(*before, Sum.over(Mul(*after), e.axes))


def _is_algebra(e: Expr) -> bool:
    """Whether it is made of sums, products and choices alone."""
    if isinstance(e, Pow):
        return bool(e.exp.is_Integer) and _is_algebra(e.base)
    if isinstance(e, Piecewise):
        return all(_is_algebra(value) for value, _ in e.args)
    if isinstance(e, (Sum, Reindexing)):
        return _is_algebra(e.operand)
    if isinstance(e, (Add, Mul)):
        return all(map(_is_algebra, e.args))
    return not e.args or isinstance(e, (Tensor, OneHot, Position))
