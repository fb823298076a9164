"""Nothing unproved gets out: wrong rules, wrong identities and wrong formulas are caught by the
proof.
"""

from dataclasses import replace

import pytest
from sympy import Abs, Integer, Mul, Rational, exp, sqrt

import derive
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.errors import UnprovedError
from derive.language.identity import IdentityRule
from derive.language.nodes import ArrayNode, Max, Sum
from derive.language.notation.reduced import reduced
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.proof.proving import claim
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.claim import holds_for_every_size
from derive.proof.proving.every_size import IndexedForward
from derive.proof.proving.proof import Proofs, prove, proved_gradient
from derive.proof.proving.written_out import are_the_same as _are_the_same


def form_of(name):
    return close(derive_chain(derive.forward_from(name).definition))


def changed(form, name, change):
    """The closed form with one statement changed."""
    statements = (
        replace(s, expression=change(s.expression)) if s.tensor.name == name else s
        for s in form.statements
    )
    return replace(form, statements=tuple(statements))


def test_both_are_proved_for_small_batches_and_for_every_size(proved):
    for p in proved.values():
        assert p.every_size
        for gradient in p.gradients:
            assert {n for batch in gradient.sizes for _, n in batch} == {2, 3, 4}
            assert all(len({n for _, n in batch}) == len(batch) for batch in gradient.sizes)


N, C = derive.Axis("N"), derive.Axis("C")
WRONG = {
    "Bessel's factor lost": ("batch_norm", "dx", lambda e: e.subs(1 / (N - 1), 1 / N)),
    "Bessel's factor on the wrong term": (
        "batch_norm",
        "dx",
        lambda e: e.xreplace({1 / N: 1 / (N - 1), 1 / (N - 1): 1 / N}),
    ),
    "a factor close to 1": ("batch_norm", "dx", lambda e: e * (1 + Rational(1, 10**12))),
    "sum over the wrong axis": (
        "batch_norm",
        "dbias",
        lambda e: Sum.over(e.operand, [C]) * 0 + e * C,
    ),
    "statistics as constants": (
        "batch_norm",
        "dx",
        lambda e: Mul(*[f for f in e.args if not f.is_Add]),
    ),
    "mean forgotten": ("softmax_nll", "dlogits", lambda e: e * N),
    "wrong sign": ("softmax_nll", "dlogits", lambda e: -e),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_closed_form_is_unproved(wrong):
    name, gradient, change = WRONG[wrong]
    form = changed(form_of(name), gradient, change)
    with pytest.raises(UnprovedError, match=r"d\w+ is unproved"):  # it, or what reads it
        prove(form)


def claim_of(form, gradient):
    """The last claim that is tried: everything is written out."""
    adjoint, statement = form.chain.by_name[gradient], form.by_name[gradient]
    return [*Proofs(form).claims(adjoint, statement)][-1]


@pytest.mark.parametrize("wrong", ["Bessel's factor lost", "a factor close to 1", "mean forgotten"])
def test_the_second_route_alone_refuses_it_too(wrong):
    name, gradient, change = WRONG[wrong]
    right, form = form_of(name), changed(form_of(name), gradient, change)
    everything = frozenset(right.definition.by_name)
    assert holds_for_every_size(claim_of(right, gradient), everything)
    assert not holds_for_every_size(claim_of(form, gradient), everything)


@pytest.mark.parametrize("name, again", [("swiglu", "s_again"), ("mish", "gate_again")])
def test_a_value_that_is_computed_again_wrongly_is_caught(name, again):
    form = form_of(name)
    assert again in form.by_name
    for change in (lambda e: 1 - e, lambda e: e**2):
        with pytest.raises(UnprovedError, match=r"d\w+ is unproved"):
            prove(changed(form, again, change))


@pytest.fixture
def by_steps(monkeypatch):
    """What the proofs by steps gave, where few products of terms are made for one question."""
    monkeypatch.setattr(derive.proof.proving.proof, "WITHIN", (1000,))
    right, shown = Proofs._by_steps, []
    monkeypatch.setattr(Proofs, "_by_steps", lambda *args: shown.append(right(*args)) or shown[-1])
    return shown


def test_what_takes_long_at_once_is_proved_step_by_step(by_steps):
    assert prove(form_of("batch_norm_biased")).every_size
    assert any(found and len(found) > 3 for found in by_steps)


def test_a_step_of_the_record_is_not_relied_upon(by_steps):
    form = form_of("batch_norm_biased")
    for change in (lambda e: 2 * e, lambda e: e.subs(1 / N, 1 / (N + 1))):
        with pytest.raises(UnprovedError, match="dx is unproved"):
            prove(changed(form, "dx", change))
    wrong = tuple(replace(step, after=2 * step.after) for step in form.steps)
    with pytest.raises(UnprovedError):  # right, but not by these steps
        prove(replace(form, steps=wrong))


@pytest.mark.parametrize("node", [Sum, Max])
def test_a_wrong_adjoint_is_caught(node, monkeypatch):
    right = node.adjoint

    def doubled(e, upstream):
        return [(operand, 2 * gradient) for operand, gradient in right(e, upstream)]

    monkeypatch.setattr(node, "adjoint", doubled)
    forward = derive.forward_from("batch_norm") if node is Sum else _row_maximum()
    with pytest.raises(UnprovedError):
        prove(close(derive_chain(forward.definition)))


def _row_maximum():
    class RowMaximum(derive.Forward):
        x = derive.Input(N, C)
        largest = Max(x, C)
        y = x - largest

    return RowMaximum


def _wrong(name: str, rewrite):
    """The table of identities with one entry made wrong."""
    from derive.gradient.closing.identities import identities

    return tuple(replace(i, rewrite=rewrite(i)) if i.name == name else i for i in identities)


WRONG_IDENTITIES = {
    "constant factor": lambda right: lambda node, k: _scaled(right.rewrite(node, k), -1),
    "total of a one-hot": lambda right: lambda node, k: _scaled(right.rewrite(node, k), 3),
    "fact": lambda right: (
        lambda node, k: (
            0
            if isinstance(node, Sum) and not any(t.role == "adjoint" for t in node.atoms(Tensor))
            else None
        )
    ),
}


def _scaled(e, factor):
    return None if e is None else factor * e


@pytest.mark.parametrize("name", WRONG_IDENTITIES)
def test_a_wrong_identity_is_caught(name, monkeypatch):
    import derive.gradient.closing.facts as facts
    import derive.gradient.closing.simplifying as simplifying

    wrong: tuple[IdentityRule, ...] = _wrong(name, WRONG_IDENTITIES[name])
    monkeypatch.setattr(simplifying, "identities", wrong)
    monkeypatch.setattr(
        simplifying, "gentle", tuple(i for i in wrong if i.name not in ("distribute", "linear"))
    )
    monkeypatch.setattr(facts, "elementary", tuple(i for i in wrong if i.name != "fact"))
    failures = 0
    for forward, word in {"batch_norm": None, "softmax_nll": None, "cross_entropy": "none"}.items():
        try:
            prove(close(derive_chain(reduced(derive.forward_from(forward).definition, word))))
        except (UnprovedError, ZeroDivisionError):
            failures += 1
    assert failures


def test_a_fact_that_the_forward_relies_on_is_proved_too(monkeypatch, proved):
    from derive.gradient.closing.facts import Facts
    from derive.proof.proving.forward_plan import forward_plan

    def computed():
        return [value.tensor.name for value in forward_plan(proved["batch_norm"].closed_form)]

    before = computed()
    assert before.count("diff") == 2 and before.count("y") == 1  # a difference is centred again
    monkeypatch.setattr(Facts, "fact", lambda self, node: 0 * node)  # "everything sums to zero"
    assert computed() == before


def test_a_record_says_so_where_only_small_batches_were_proved(monkeypatch, proved):
    monkeypatch.setattr("derive.proof.proving.claim.holds_for_every_size", lambda *_: False)
    p = prove(form_of("softmax_nll"))
    assert not p.every_size and "only those sizes were proved for dlogits" in p.summary
    assert "for every size" in proved["softmax_nll"].summary


def test_batches_cover_every_size_on_every_axis():
    batches = batches_of(derive.forward_from("batch_norm").definition)
    for axis in (N, C):
        assert {batch[axis] for batch in batches} == {2, 3, 4}


def test_where_a_size_less_two_is_divided_by_the_batches_are_larger():
    class Dividing(derive.Forward):
        x = derive.Input(N, C)
        y = Sum(x**2, N) / (N - 2)

    assert {batch[N] for batch in batches_of(Dividing.definition)} == {3, 4, 5}


def test_the_second_route_writes_a_forward_without_our_nodes():
    definition = derive.forward_from("softmax_nll").definition
    e = IndexedForward(definition).computed("loss", {})
    assert not e.atoms(ArrayNode) and not axes_of(e)


def test_entries_of_like_names_are_not_taken_for_one_another():
    """The entry 1 of ``x_1`` is not the entry 1, 1 of ``x``."""

    class Alike(derive.Forward):
        x = derive.Input(N, C)
        x_1 = derive.Input(N)
        y = x**2 * x_1

    assert prove(close(derive_chain(Alike.definition))).every_size


def test_a_label_is_one_along_an_axis_and_its_twin():
    class Paired(derive.Forward):
        x = derive.Input(C, N)
        label = derive.Label()
        picked = derive.OneHot(label, N) * x
        y = Sum(picked * derive.Rename(picked, N, derive.Axis("M")), C)

    assert prove(close(derive_chain(Paired.definition))).every_size


def test_the_largest_of_a_copy_is_the_largest():
    class Copied(derive.Forward):
        x = derive.Input(N, C)
        h = x
        y = Max(h, C)

    assert prove(close(derive_chain(Copied.definition))).every_size


def with_values(form, names):
    """The closed form, to which twice the value is known of those with these names."""
    relations = form.relations
    wrong = tuple(
        replace(v, expression=2 * v.expression) if v.tensor.name in names else v
        for v in relations.values
    )
    return replace(
        form, knowledge=replace(form.knowledge, relations=replace(relations, values=wrong))
    )


def test_a_statement_is_taken_for_what_the_user_wrote_and_for_nothing_else():
    """Whatever is known of it: only a part is what it stands for."""
    form = form_of("softmax")
    written = form.definition.by_name
    wrong = with_values(form, form.relations.by_name)
    values = Proofs(wrong).parts.definition.by_name
    assert written.keys() < values.keys()
    for value in wrong.relations.values:
        taken = written.get(value.tensor.name, value)
        assert values[value.tensor.name].expression == taken.expression


def test_entries_are_the_same_only_if_they_are_whatever_the_tensors_are():
    x, y = Tensor("x", (N,)), Tensor("y", (N,))
    assert _are_the_same(x * (x + y), x**2 + x * y)
    assert not _are_the_same(x, y) and not _are_the_same(Sum(x, N), Sum(y, N))
    assert not _are_the_same(Abs(x), x)  # it may be negative


def test_what_is_computed_again_as_something_else_is_refused_although_it_is_known_as_that():
    form = with_values(form_of("swiglu"), {"s"})
    with pytest.raises(UnprovedError, match=r"d\w+ is unproved"):
        prove(changed(form, "s_again", lambda e: 2 * e))


def test_what_is_computed_again_is_the_value_that_it_is():
    """So nothing needs to be known of that value."""
    form = form_of("swiglu")
    ((equality, _),) = Proofs(form).closed("dgate").claims
    assert equality.left.has(form.definition.by_name["s"].tensor)
    assert not equality.left.has(exp)


def test_both_sides_are_in_the_names_of_what_the_forward_computes():
    """A proof that has to write out what is computed takes several times as long."""

    class Unit(derive.Forward):
        x = derive.Input(N, C)
        y = x / sqrt(Sum(x**2, C))

    form = close(derive_chain(Unit.definition))
    for equality in Proofs(form).claims(form.chain.by_name["dx"], form.by_name["dx"]):
        for side in (equality.left, equality.right):
            assert {t.name for t in tensors_in(side)} & {
                "one_over_sqrt_sum_x_squared",
                "sum_x_squared",
            }
            assert not side.has(Sum(Unit.x**2, C))


def test_a_part_that_is_named_wrongly_proves_nothing(monkeypatch):
    form = form_of("batch_norm")
    wrong = changed(form, "dx", lambda e: 2 * e)
    monkeypatch.setattr(
        "derive.gradient.values.relations.Relations.with_parts", lambda *_, **__: Integer(0)
    )
    prove(form)
    with pytest.raises(UnprovedError):
        prove(wrong)


def test_a_gradient_rests_on_those_that_it_reads():
    """The formula of ``dx`` is right given ``dh``; what stands for ``dh`` is not."""

    class Inner(derive.Forward):
        x = derive.Input(N, C)
        h = x**2 + 1
        y = h**3

    form = close(derive_chain(Inner.definition))
    dh = form.chain.by_name["dh"]
    wrong = replace(form, closed={**form.closed, "dh": 2 * form.closed["dh"]})
    claimed = replace(form.by_name["dx"], expression=2 * form.by_name["dx"].expression)
    assert dh.of.role == "statement" and "dh" not in form.by_name
    with pytest.raises(UnprovedError, match="dh is unproved"):
        proved_gradient(wrong, claimed)


def test_it_is_proved_for_every_size_only_if_what_it_reads_is(monkeypatch):
    form = form_of("batch_norm")
    right = claim.holds_for_every_size
    unshown = Proofs(form).step(form.chain.by_name["dxhat"]).claims[0][0]
    monkeypatch.setattr(claim, "holds_for_every_size", lambda c, n: c != unshown and right(c, n))
    proved = prove(form)
    every_size = {str(g.tensor): g.every_size for g in proved.gradients}
    assert every_size["dgain"] and every_size["dbias"] and not every_size["dx"]
