"""`Reduced`: how a loss is reduced is an argument, of one module."""

import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, generated

from codegen.chunking import CHUNK
from codegen.commands.cli import main
from codegen.driver import lean
from codegen.driver.gate import TOLERANCE
from codegen.driver.ranks import generate_of_ranks
from codegen.targets.languages import kernels
from derive import NotationError, QuestionError, derive, forward_from
from derive.commands.check import check_command
from derive.commands.show import show_command
from derive.language.errors import NotationWarning
from derive.language.notation.forward import reduced_forward
from derive.language.notation.reduced import reduced, words_of

TOP = f'{HEAD}from derive import Axes, Reduced\n\nS = Axes("S")\n'
QUARTIC = """    x = Input(N, S)
    target = Input(N, S)
    error = x - target
    losses = error**4
    loss = Reduced(losses, mean=N * S, batchmean=N)
"""
ROWS = """    logits = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)
    logprobs = logits - log(Sum(exp(logits), C))
    losses = -Sum(OneHot(labels, C) * weight * logprobs, C)
    counted = Sum(OneHot(labels, C) * weight, C)
    loss = Reduced(losses, mean=Sum(counted, N, S))
"""
OUTPUTS = {
    "none": "losses",
    "sum": "Sum(losses, N, S)",
    "mean": "Sum(losses, N, S)/(N*S)",
    "batchmean": "Sum(losses, N, S)/N",
}


def forward_file(folder, name, body):
    file = folder / f"{name.lower()}.py"
    file.write_text(f"{TOP}\n\nclass {name}(Forward):\n{body}")
    return file


def definition_of(folder, body, name="Mine"):
    return forward_from(forward_file(folder, name, body)).definition


# -- the notation ------------------------------------------------------------------


def test_each_word_is_a_forward_of_its_own_and_the_first_one_the_default(tmp_path):
    definition = definition_of(tmp_path, QUARTIC)
    assert words_of(definition) == ("none", "sum", "mean", "batchmean")
    assert definition.reduction == "mean"
    assert reduced(definition, "mean") is definition
    for word, output in OUTPUTS.items():
        own = reduced(definition, word)
        assert (own.name, own.reduction, own.output.name) == ("Mine", word, "loss")
        assert str(own.statements[-1].expression) == output
        assert own.statements[:-1] == definition.statements[:-1]
        assert reduced(own, "mean") == definition


def test_without_a_word_of_its_own_the_sum_is_the_default(tmp_path):
    body = "    x = Input(N)\n    losses = x**2\n    loss = Reduced(losses)\n"
    definition = definition_of(tmp_path, body)
    assert (definition.reduction, words_of(definition)) == ("sum", ("none", "sum"))


def test_the_gradient_of_each_is_that_of_the_entries_with_the_upstream_inserted(tmp_path):
    definition = definition_of(tmp_path, QUARTIC)
    forms = {}
    for word in words_of(definition):
        proved = derive(type("One", (), {"definition": reduced(definition, word)}))
        assert proved.every_size
        forms[word] = str(proved.closed_form.by_name["dx"].expression)
    entries = "4*dloss*(-target + x)**3"
    assert forms == {
        "none": entries,
        "sum": entries,
        "mean": f"{entries}/(N*S)",
        "batchmean": f"{entries}/N",
    }


def test_no_word_that_there_is_not(tmp_path):
    definition = definition_of(tmp_path, QUARTIC)
    known = re.escape('reduction is one of "none", "sum", "mean" or "batchmean"')
    with pytest.raises(QuestionError, match=f"(?s)Mine has no reduction 'average'.*{known}"):
        reduced(definition, "average")
    plain = definition_of(tmp_path, "    x = Input(N)\n    y = x**2\n", "Plain")
    with pytest.raises(QuestionError, match=r"(?s)Plain has no reduction 'mean'.*leave reduction"):
        reduced(plain, "mean")


START = "    x = Input(N, C)\n    w = Given(N, C)\n    losses = x**2\n    total = Sum(x, N, C)\n"
REFUSED = {
    "loss = Reduced(x**2, mean=N)": "that is not a statement",
    "loss = Reduced(x, mean=N)": "that is not a statement",
    "loss = Reduced(total, mean=N)": "total has no axes",
    "loss = Reduced(losses, none=N)": "none is taken",
    "loss = Reduced(losses, sum=N)": "sum is taken",
    "loss = Reduced(losses, mean=0)": "divides by 0",
    "loss = Reduced(losses, mean=True)": "that is not a number",
    "loss = Reduced(losses, mean='N')": "that is not a number",
    "loss = Reduced(losses, mean=Sum(w, C))": "has the axis N, and one number is needed",
    "loss = Reduced(losses, mean=total)": "computed from x, which has a gradient",
    "loss = Reduced(losses, mean=1 + Sum(losses, N, C))": "computed from x, which has a gradient",
    "loss = 2 * Reduced(losses, mean=N)": "stands inside an expression",
    "loss = Reduced(losses, mean=N) / 2": "stands inside an expression",
    "loss = Reduced(losses, mean=N)\n    more = x": "more comes after loss = Reduced",
    "loss = Reduced(losses, mean=N)\n    z = Input(N)": "z comes after loss = Reduced",
    "reduction = x\n    loss = Reduced(losses, mean=N)": "reduction is defined already",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_meant_is_refused_at_its_line(line, tmp_path):
    with pytest.raises(NotationError, match=re.escape(REFUSED[line])) as caught:
        definition_of(tmp_path, f"{START}    {line}\n")
    assert caught.value.remedy and caught.value.place.line


@pytest.mark.parametrize("mean", ["N * C", "2 * N", "Sum(w, N, C)", "N", "3", "0.5 * C"])
def test_a_sum_is_divided_by_any_number_without_a_gradient(mean, tmp_path):
    definition = definition_of(tmp_path, f"{START}    loss = Reduced(losses, mean={mean})\n")
    assert derive(type("One", (), {"definition": definition})).every_size


BLOCKS = f"""{TOP}

class Own(Forward):
    x = Input(N, C)
    losses = x**2
    loss = Reduced(losses, mean=N)


class Both(Forward):
    x = Input(N, C)
    rows = Own(x, reduction="none")
    mean = Own(x)
    total = Own(x, reduction="sum")
    y = Sum(rows, N, C) + mean * total
"""


def test_a_block_is_the_default_unless_it_says_otherwise(tmp_path):
    file = tmp_path / "both.py"
    file.write_text(BLOCKS)
    definition = forward_from(f"{file}:Both").definition
    lines = {s.name: str(s.expression) for s in definition.statements}
    assert lines["rows"] == "x**2" and set(definition.by_name["rows"].tensor.axes) == {
        *definition.inputs[0].axes
    }
    assert lines["mean"].endswith("/N") and not lines["total"].endswith("/N")
    file.write_text(BLOCKS.replace('"sum"', '"middle"'))
    with pytest.raises(QuestionError, match="Own has no reduction 'middle'"):
        forward_from(f"{file}:Both")


# -- the module ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quartic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quartic")
    return generated(forward_file(folder, "Quartic", QUARTIC), folder)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return generated(forward_file(folder, "Rows", ROWS), folder)


def by_hand(word):
    def function(x, target):
        losses = (x - target) ** 4
        if word == "none":
            return losses
        return losses.sum() / {"sum": 1, "mean": losses.numel(), "batchmean": len(x)}[word]

    return function


@pytest.mark.parametrize("word", OUTPUTS)
@pytest.mark.parametrize("shape", [(4, 3), (4,), (4, 3, 2)])
def test_value_and_gradients_of_each_word_are_those_of_torch(quartic, word, shape):
    function, *_ = quartic
    x, target = draw(*shape), draw(*shape, seed=3)
    assert_same_gradients(lambda *a: function(*a, reduction=word), by_hand(word), x, target)


def test_the_default_is_the_first_word(quartic):
    function, *_ = quartic
    x, target = draw(4, 3), draw(4, 3, seed=3)
    assert_same_gradients(function, by_hand("mean"), x, target)


@pytest.mark.parametrize("word", ["average", "", None, "Mean", 0])
def test_a_word_that_there_is_not_is_refused(quartic, word):
    function, *_ = quartic
    said = re.escape(f"quartic: reduction is 'mean', 'batchmean', 'sum' or 'none', not {word!r}")
    with pytest.raises(ValueError, match=said):
        function(draw(4, 3), draw(4, 3), reduction=word)


@pytest.mark.parametrize("word", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 2), (5, 3, 2, 2)])
def test_labels_weights_and_what_is_ignored_are_those_of_torch(rows, word, weighted, shape):
    function, *_ = rows
    logits, weight = draw(*shape), draw(3, seed=5).exp() if weighted else None
    own = torch.randint(3, (shape[0], *shape[2:]), generator=torch.Generator().manual_seed(1))
    for labels in (own, own.masked_fill(own == 1, -100)):
        assert_same_gradients(
            lambda x, labels=labels: function(x, labels, weight, reduction=word),
            lambda x, labels=labels: F.cross_entropy(x, labels, weight, reduction=word),
            logits,
        )


@pytest.mark.parametrize("word", ["none", "sum", "mean"])
def test_what_sees_through_it_sees_each_reduction(rows, word):
    """Forward mode, transforms, half formats, the compiler's tracer, second derivatives."""
    function, *_ = rows
    logits, labels = draw(5, 3, 2), torch.randint(3, (5, 2))

    def ours(x):
        return function(x, labels, reduction=word)

    def torchs(x):
        return F.cross_entropy(x, labels, reduction=word)

    tangent = draw(5, 3, 2, seed=9)
    for one, other in zip(
        torch.func.jvp(ours, (logits,), (tangent,)),
        torch.func.jvp(torchs, (logits,), (tangent,)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    batch = torch.stack([logits, tangent])
    for of in (torch.func.jacrev, torch.func.hessian):
        torch.testing.assert_close(
            torch.func.vmap(of(ours))(batch), torch.func.vmap(of(torchs))(batch)
        )
    half = logits.bfloat16().requires_grad_()
    loss = ours(half)
    loss.backward(torch.ones_like(loss))
    assert loss.dtype == half.grad.dtype == torch.bfloat16
    torch.testing.assert_close(loss.double(), torchs(half.detach().double()), rtol=1e-2, atol=1e-2)


TURNED = ROWS.replace("mean=Sum", "whole=2, mean=Sum")


def test_what_another_reduction_alone_needs_has_its_place(tmp_path):
    """It is no statement without influence, and its values go where the others' go."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotationWarning)
        file = forward_file(tmp_path, "Turned", TURNED)
        forward_from(file)
    function, *_ = generated(file, tmp_path)
    logits, labels = draw(5, 3), torch.tensor([0, 2, -100, 1, 1])
    assert_same_gradients(
        lambda x: function(x, labels, reduction="mean"),
        lambda x: F.cross_entropy(x, labels),
        logits,
    )
    assert_same_gradients(
        lambda x: function(x, labels),
        lambda x: F.cross_entropy(x, labels, reduction="sum") / 2,
        logits,
    )


# -- orders, kernels, commands -----------------------------------------------------------


@pytest.mark.thorough
def test_third_derivatives_of_each_reduction_are_those_of_torch(tmp_path):
    function, *_ = generated(forward_file(tmp_path, "Rows", ROWS), tmp_path)
    logits, labels = draw(4, 3, 2), torch.tensor([[0, 1], [2, -100], [1, 1], [0, 2]])

    def third(of):
        x = logits.clone().requires_grad_()
        (first,) = torch.autograd.grad(of(x).tanh().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), x, create_graph=True)
        return torch.autograd.grad((second**2).sum(), x)[0]

    for word in ("none", "sum", "mean"):
        ours = third(lambda x, word=word: function(x, labels, reduction=word))
        torchs = third(lambda x, word=word: F.cross_entropy(x, labels, reduction=word))
        torch.testing.assert_close(ours, torchs)


def test_all_reductions_share_one_kernel(tmp_path):
    """It is compared with autograd in each reduction, before anybody sees it."""
    forward = forward_from(forward_file(tmp_path, "Quartic", QUARTIC))
    found = lean.generate(forward, kernels=kernels["cpp"])
    text, launches = found.kernels
    assert re.findall(r"EXPORTED\((\w+)", text) == ["forward", "backward", "at_once"]
    for own, other in (("reduction == 2.0", "reduction == 3.0"), ("double(N)", "double(S)")):
        wrong = text.replace(own, other)
        assert wrong != text
        beside = kernels["cpp"].beside((wrong, launches))
        assert beside.largest_difference(found.text, forward.definition, found.program) > TOLERANCE


def test_the_commands_take_a_reduction(tmp_path, capsys):
    file = str(forward_file(tmp_path, "Quartic", QUARTIC))
    for word, more in {"none": "", "sum": "", "mean": "/(N*S)", "batchmean": "/N"}.items():
        formula = f"4*dloss*(x - target)**3{more}"
        assert check_command([file, "--reduction", word, formula]) == 0
        assert check_command([file, formula]) == (word != "mean")
    assert (
        check_command([file, "4*dlosses*(x - target)**3"]) == 0
    )  # of the entries, within the mean
    capsys.readouterr()
    assert show_command([file, "--reduction", "none", "--chain"]) == 0
    assert "dloss arrives" in (said := capsys.readouterr().out) and "dlosses (N, *S)" in said
    assert show_command([file, "--reduction", "average"]) == 2
    assert 'reduction is one of "none", "sum", "mean" or "batchmean"' in capsys.readouterr().err
    assert main([file, "--reduction", "none", "--out", str(tmp_path / "out")]) == 2
    assert "a module has all reductions" in capsys.readouterr().err


def test_what_is_computed_in_chunks_has_one_reduction(tmp_path):
    forward = forward_from(forward_file(tmp_path, "Rows", ROWS))
    names = {
        word: generate_of_ranks(reduced_forward(forward, word), ["C"], way=CHUNK)
        for word in ("none", "mean")
    }
    assert names["mean"].file == "rows_chunk_c.py"
    assert names["none"].file == "rows_none_chunk_c.py"
    assert all(found.difference <= TOLERANCE for found in names.values())
