"""A class body becomes a checked record: names, order, axes, layouts, composition."""

import pytest
from sympy import Min, sqrt

import derive
from derive import (
    Axis,
    Broadcast,
    Forward,
    Input,
    Label,
    NotationError,
    OneHot,
    Rename,
    Scalar,
    Sum,
)
from derive.language.nodes import renamed
from derive.language.notation.layout import layouts_of, shape
from derive.language.symbols import axes_of
from derive.math.batch_norm import BatchNorm

N, C, D, M = Axis("N"), Axis("C"), Axis("D"), Axis("M")


def shapes(forward):
    return {name: shape(layout) for name, layout in layouts_of(forward.definition).items()}


def test_names_in_snake_case():
    def named(name):
        return type(Forward)(name, (Forward,), _body()).definition.snake

    def _body():
        body = type(Forward).__prepare__("X", (Forward,))
        body["x"] = Input(N)
        body["y"] = 2 * body["x"]
        return body

    assert named("BatchNorm") == "batch_norm"
    assert named("SoftmaxNLL") == "softmax_nll"
    assert named("NLLLoss") == "nll_loss"
    assert named("MLP") == "mlp"
    assert named("L2Norm") == "l2_norm"


def test_later_lines_refer_to_names_and_not_to_expressions():
    statements = {s.name: str(s.expression) for s in BatchNorm.definition.statements}
    assert statements["xhat"] == "diff*inv_std"
    assert list(statements) == ["mean", "diff", "diff2", "var", "inv_std", "xhat", "y"]


def test_a_reduced_statement_keeps_a_dimension_of_one_where_it_is_broadcast_back():
    norm = shapes(derive.forward_from("batch_norm"))
    assert norm["mean"] == norm["var"] == norm["inv_std"] == "(1, C)"
    assert norm["gain"] == "(C,)" and norm["xhat"] == norm["y"] == "(N, C)"
    softmax = shapes(derive.forward_from("softmax_nll"))
    assert softmax["logit_maxes"] == softmax["counts_sum"] == softmax["counts_sum_inv"] == "(N, 1)"
    assert softmax["loss"] == "()" and softmax["labels"] == "(N,)"


def test_otherwise_the_axis_is_gone():
    class Products(Forward):
        x = Input(N, D)
        w = Input(D, C)
        h = Sum(x * w, D)
        total = Sum(h, C)
        y = total / 2

    assert shapes(Products) == {
        "x": "(N, D)",
        "w": "(D, C)",
        "h": "(N, C)",
        "total": "(N,)",
        "y": "(N,)",
    }


def test_a_matrix_product_does_not_count_as_a_broadcast():
    class Attention(Forward):
        q = Input(N, D)
        k = Input(C, D)
        v = Input(C, D)
        s = Sum(q * k, D)
        y = Sum(s * v, C)

    assert shapes(Attention)["s"] == "(N, C)"


def test_the_sign_of_a_statement_is_known_where_it_follows():
    by_name = derive.forward_from("softmax_nll").definition.by_name
    assert by_name["probs"].tensor.is_positive and not by_name["logprobs"].tensor.is_positive


def test_decimals_are_exact_and_minima_are_choices():
    class Clamped(Forward):
        x = Input(N)
        y = Min(0.1 * x, 2)

    assert (
        str(Clamped.definition.statements[0].expression) == "Piecewise((2, x >= 20), (x/10, True))"
    )


def test_renaming_avoids_capture():
    x, y = Input(N, M).named("x"), Input(N).named("y")
    e = y * Sum.over(x, [M])
    swapped = renamed(e, {N: M})  # the bound M steps aside
    assert axes_of(swapped) == {M}
    assert str(swapped) == "y[M]*Sum(x[M, N], N)"


def test_a_renamed_axis_has_the_size_of_the_one_it_was():
    class Pairs(Forward):
        x = Input(N)
        y = Sum(x - Rename(x, N, M), M) / M

    assert Pairs.definition.twins == ((M, N),)
    assert str(Pairs.definition.statements[0].expression) == "Sum(x - x[M], M)/N"
    assert [axis.name for axis in Pairs.definition.axes] == ["N", "M"]


def test_an_outer_sum_can_be_meant():
    class Outer(Forward):
        a = Input(N)
        b = Input(C)
        y = Broadcast(a, C) - b

    assert [axis.name for axis in Outer.definition.output.axes] == ["N", "C"]
    assert not Outer.definition.statements[0].expression.has(Broadcast)


def test_a_forward_inside_another_becomes_a_named_block():
    class Outer(Forward):
        x = Input(M, D)
        g = Input(D)
        b = Input(D)
        h = BatchNorm(x, g, b, eps=0.5)
        y = BatchNorm(h, gain=g, bias=b) + x

    definition = Outer.definition
    names = [s.name for s in definition.statements]
    assert names[:7] == ["h_mean", "h_diff", "h_diff2", "h_var", "h_inv_std", "h_xhat", "h"]
    assert names[7:] == [
        "batch_norm_mean",
        "batch_norm_diff",
        "batch_norm_diff2",
        "batch_norm_var",
        "batch_norm_inv_std",
        "batch_norm_xhat",
        "batch_norm",
        "y",
    ]
    assert {s.block for s in definition.statements} == {"h", "batch_norm", ""}
    assert definition.by_name["h_mean"].tensor.axes == (D,)
    assert str(definition.by_name["h_inv_std"].expression) == "1/sqrt(h_var + 1/2)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, g, i: BatchNorm(x, g), "lacks bias"),
        (lambda x, g, i: BatchNorm(x, g, g, 1, 2), "takes 4 arguments"),
        (lambda x, g, i: BatchNorm(x, g, g, epsilon=1), "no such argument"),
        (lambda x, g, i: BatchNorm(x, x, g), "gain has the axes"),
        (lambda x, g, i: BatchNorm(x, g, i), "bias is a tensor, not a label"),
        (lambda x, g, i: BatchNorm(x, g, g, eps=x), "eps is a number"),
        (lambda x, g, i: BatchNorm(2 * x, g, g), "give the expression a name"),
    ],
)
def test_a_wrong_call_is_explained(call, words):
    with pytest.raises(NotationError) as error:

        class Caller(Forward):
            x = Input(N, C)
            g = Input(C)
            i = Label(N)
            y = call(x, g, i) + Sum(OneHot(i, C) * x, C)

    assert words in str(error.value) and error.value.place.file == __file__


def test_scalars_are_arguments_and_not_differentiated():
    class Scaled(Forward):
        x = Input(N)
        k = Scalar(3)
        y = sqrt(k) * x

    definition = Scaled.definition
    assert [(t.name, default) for t, default in definition.scalars] == [("k", 3)]
    assert [t.name for t in definition.differentiable] == ["x"]


def test_forward_from_takes_names_and_files(tmp_path):
    assert derive.forward_from("BatchNorm").definition.snake == "batch_norm"
    file = tmp_path / "two.py"
    file.write_text(
        "from derive import Axis, Forward, Input\nN = Axis('N')\n"
        "class A(Forward):\n    x = Input(N)\n    y = x\n"
        "class B(Forward):\n    x = Input(N)\n    y = 2 * x\n"
    )
    assert derive.forward_from(f"{file}:B").__name__ == "B"
    with pytest.raises(derive.QuestionError, match="several forwards: A, B"):
        derive.forward_from(file)


def test_an_edit_within_the_same_second_is_seen(tmp_path):
    file = tmp_path / "mine.py"
    for factor in (2, 3, 4):
        file.write_text(
            "from derive import Axis, Forward, Input\nN = Axis('N')\n"
            f"class A(Forward):\n    x = Input(N)\n    y = {factor} * x\n"
        )
        assert str(derive.forward_from(file).definition.statements[0].expression) == f"{factor}*x"


def test_of_the_projects_forwards_the_one_that_is_named_is_run(tmp_path, monkeypatch):
    """Once, as long as its text stays; a file that defines others is not run at all."""
    text = (
        "from derive import Axis, Forward, Input\nN = Axis('N')\n"
        "class Twofold(Forward):\n    x = Input(N)\n    y = 2 * x\n"
    )
    (tmp_path / "twofold.py").write_text(text)
    (tmp_path / "other.py").write_text("raise SystemExit('nobody asks for this')\n")
    monkeypatch.setattr("derive.language.notation.gallery.MATH", tmp_path)  # a folder of its own
    found = derive.forward_from("twofold")
    assert found is derive.forward_from("Twofold")
    (tmp_path / "twofold.py").write_text(text.replace("2 *", "3 *"))
    assert str(derive.forward_from("twofold").definition.statements[0].expression) == "3*x"
    with pytest.raises(derive.QuestionError, match=r"did you mean twofold\? gradform list"):
        derive.forward_from("twofld")


def test_a_notebook_shows_the_users_own_frames_and_the_public_name_of_an_error():
    with pytest.raises(NotationError) as caught:

        class Called(Forward):
            x = Input(N, C)
            y = x.softmax(1)

    assert type(caught.value) is NotationError  # a user cannot import any other
    *frames, said = caught.value._render_traceback_()
    assert frames and all("test_forward.py" in frame for frame in frames)
    assert "y = x.softmax(1)" in frames[-1] and said.startswith("NotationError: ")
