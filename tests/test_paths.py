"""Contributions on all paths to a tensor add up to its gradient, on random rationals."""

import pytest
from evaluate import Numbers, close
from forwards import HEAD, told_apart
from sampling import sampled

import derive
from derive.language.symbols import Tensor
from derive.proof.proving.batch_sizes import batches_of
from derive.show.paths import branching, paths_to

FORWARDS = told_apart()

# The gradient of u keeps its name, and is another one on every path from x.
BEHIND_A_PRODUCT = f"""{HEAD}

class BehindAProduct(Forward):
    x = Input(N, D)
    weight = Input(D, H)
    other = Input(D, H)
    u = Sum(x * weight, D)
    mean = Sum(u, N) / N
    v = Sum(x * other, D)
    y = (u - mean) * v
"""


@pytest.mark.parametrize("name", sampled(FORWARDS))
def test_the_contributions_add_up_to_the_gradient(name, derived):
    check_contributions(derived(name).closed_form)


def test_they_add_up_behind_a_product_of_matrices(tmp_path):
    (tmp_path / "own.py").write_text(BEHIND_A_PRODUCT)
    form = derive.derive(tmp_path / "own.py").closed_form
    assert [str(t) for t in branching(form.definition)] == ["x"]
    check_contributions(form)


def check_contributions(form):
    definition = form.definition
    sizes = definition.sizes_from(batches_of(definition)[0])
    indexed = {
        hot.operand.name: hot.axis
        for s in definition.statements
        for hot in s.expression.atoms(derive.OneHot)
        if isinstance(hot.operand, Tensor)
    }
    numbers = Numbers(sizes, 1, [*form.relations.values], indexed)
    for adjoint in form.chain.adjoints:  # the gradients are those of the chain
        numbers.definitions[adjoint.name] = adjoint.expression
    for tensor in branching(definition):
        paths = paths_to(definition, tensor)
        assert len(paths) > 1
        gradient = numbers.entries(form.chain.by_name[f"d{tensor}"].tensor, tensor.home)
        parts = [numbers.entries(path.contribution, tensor.home) for path in paths]
        total = map(sum, zip(*parts, strict=True))
        assert all(map(close, total, gradient)), tensor


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("batch_norm", {"x": [None, "mean", "var"]}),
        (
            "mlp",
            {
                "hprebn": [None, "mean", "var"],
                "logits": [None, "logit_maxes", "counts_sum"],
            },
        ),
        ("linear", {}),
    ],
)
def test_paths_part_where_a_statistic_is_taken(name, expected, derived):
    definition = derived(name).definition
    found = {
        str(t): [path.via and str(path.via) for path in paths_to(definition, t)]
        for t in branching(definition)
    }
    assert found == expected
