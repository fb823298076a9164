"""`Gradient`: the gradient of a statement inside of a forward; beside torch's double backward."""

from dataclasses import replace

import pytest
from forwards import HEAD, forward_file
from generating import assert_same_gradients, generated, pages
from inner_gradients import (
    FORWARDS,
    IMPORTS,
    burgers,
    detached,
    eikonal,
    flattened,
    forces,
    softplus_eikonal,
    windows,
)
from sampling import every
from sympy import Integer

from derive import NotationError, UnprovedError, derive, forward_from
from derive.derivation import derive_definition
from derive.proof.proving.inner_gradients import shown_gradients

LINES = 20


def definition_of(folder, *lines):
    body = "".join(f"    {line}\n" for line in ("x = Input(N, D)", "w = Input(D)", *lines))
    return forward_from(forward_file(folder, "Own", IMPORTS + body)).definition


def made(reference, folder):
    """The generated function, torch's, and the inputs that have a gradient."""
    body, inputs = FORWARDS[reference]
    name = reference.__name__.title().replace("_", "")
    function, _, result = generated(forward_file(folder, name, IMPORTS + body), folder)
    roles = [t.role for t in result.proved.definition.inputs]

    def every(x, leaf):
        left = iter(x)
        pairs = zip(inputs, roles, strict=True)
        return [next(left) if role == "input" else leaf(given) for given, role in pairs]

    def theirs(*x):
        def leaf(t):
            return t.clone().requires_grad_() if t.is_floating_point() else t

        return reference(*every(x, leaf)) + 0 * sum(t.sum() for t in x)  # or torch has none at all

    own = [t for t, role in zip(inputs, roles, strict=True) if role == "input"]
    return lambda *x: function(*every(x, lambda t: t)), theirs, own, result


@pytest.mark.parametrize("reference", every(3, FORWARDS), ids=lambda reference: reference.__name__)
def test_it_is_torchs_double_backward_and_proved_for_every_size(reference, tmp_path):
    ours, theirs, inputs, result = made(reference, tmp_path)
    assert_same_gradients(ours, theirs, *inputs)
    proved = result.proved
    assert proved.every_size and all(step.every_size for step in proved.adjoints)
    assert FORWARDS[reference][0].count("\n") <= LINES


def test_only_what_is_of_use_is_stated_and_slopes_are_shared(tmp_path):
    def stated(reference):
        body, _ = FORWARDS[reference]
        definition = forward_from(forward_file(tmp_path, "Own", IMPORTS + body)).definition
        return {s.name: str(s.expression) for s in definition.statements}

    lines = stated(eikonal)
    assert [*lines] == ["f_tanh", "normals", "loss"]
    assert lines["normals"] == "Sum(v*w*(1 - f_tanh**2), H)"
    lines = stated(forces)
    assert lines["energy_r2"] == "-s*exp(-r2*s)/2" and "energy" not in lines
    lines = stated(softplus_eikonal)
    assert lines["f_h_in"] == "f_h*exp(h_in)/(exp(h_in) + 1)"


@pytest.mark.parametrize("reference", [burgers, detached, windows, flattened])
def test_a_wrong_slope_is_not_proved(reference, tmp_path):
    """Each of them, in each of the gradients."""
    body, _ = FORWARDS[reference]
    definition = forward_from(forward_file(tmp_path, "Own", IMPORTS + body)).definition
    assert all(shown.decide() for shown in shown_gradients(definition))
    for inner in definition.inner:
        for k, slope in enumerate(inner.slopes[1:], 1):
            wrong = replace(slope, value=slope.value + Integer(1))
            slopes = (*inner.slopes[:k], wrong, *inner.slopes[k + 1 :])
            broken = replace(definition, inner=(replace(inner, slopes=slopes),))
            with pytest.raises(UnprovedError, match=f"derivative of .* by {slope.by} was not"):
                shown_gradients(broken)


def test_nothing_is_derived_whose_inner_gradient_is_not_proved(tmp_path, monkeypatch):
    definition = definition_of(tmp_path, "y = Gradient(tanh(x * w), x)")
    (inner,) = definition.inner
    last = replace(inner.slopes[-1], value=2 * inner.slopes[-1].value)
    wrong = replace(inner, slopes=(*inner.slopes[:-1], last))
    with pytest.raises(UnprovedError, match="y is unproved"):
        derive_definition(replace(definition, inner=(wrong,)))


def test_a_forward_with_one_is_called_and_what_is_called_is_differentiated(tmp_path):
    """Its gradient is proved again, along the axes that it has; what it adds is an outer sum."""
    file = tmp_path / "called.py"
    net = "    x = Input(N, D)\n    s = Input(N)\n    t = Input(D)\n    u = x**2 * s + x * t\n"
    file.write_text(
        f"{HEAD}\n\nclass Net(Forward):\n{net}\n\nclass Slopes(Forward):\n{net}"
        "    g = Gradient(u, x)\n    y = Sum(g * x, D)\n\n\n"
        "class Calling(Forward):\n    a = Input(K, H)\n    s = Input(K)\n    t = Input(H)\n"
        "    y = Slopes(a, s, t) - Sum(Gradient(Net(a, s, t), a) * a, H)\n"
        "    z = Sum(Gradient(y, a), H) + Sum(a**2, H)\n"
    )
    calling = forward_from(f"{file}:Calling")
    assert len(calling.definition.inner) == 3
    assert derive(calling).every_size
    assert str(derive(calling).closed_form.by_name["da"].expression) == "2*a*dz"


REFUSED = {
    "l = Label(N); y = Gradient(OneHot(l, C) * Sum(x, D), l)": "differentiate by a table",
    "y = Gradient(x**2)": "write g = Gradient(u, x)",
    "y = Gradient(x**2, x, w)": "write g = Gradient(u, x)",
    "y = Gradient(x**3, x**2)": "Sum(OneHot(0, D) * Gradient(u, x), D)",
    "y = Gradient(x**3, D)": "Sum(OneHot(0, D) * Gradient(u, x), D)",
    "y = Gradient(x * Rename(x, N, M), Rename(x, N, M))": "write Gradient(",
    "h = x * w; y = Gradient(w**2, h)": "differentiate by what it is computed from",
    "h = x * w; y = Gradient(w**2 * x, h)": "differentiate by what it is computed from",
    "y = Gradient(3 * x, x)": "write 3",
    "y = Gradient(sign(x), x)": "write 0",
    "y = Gradient(Gradient(x**2, x), x)": "write 2",
    "y = Gradient(x**2, Gradient(x**2, x))": "give it a line of its own",
    "b = Previous(h, N); h = tanh(b + x); y = Gradient(h, x)": "write its places out in a for loop",
    "y = Rename(Gradient(x**2, x), N, M)": "assign it to a name first",
}


@pytest.mark.parametrize("lines", REFUSED)
def test_what_has_no_gradient_is_refused_with_the_remedy(lines, tmp_path):
    with pytest.raises(NotationError) as refused:
        definition_of(tmp_path, *lines.split("; "))
    assert REFUSED[lines] in str(refused.value)


def test_names_are_left_to_the_user_and_asked_twice_it_is_one(tmp_path):
    lines = ["h = tanh(x * w)", "y = Gradient(h * x, x) * Gradient(h * x, x)", "y_h = y * w"]
    names = [s.name for s in definition_of(tmp_path, *lines, "z = y_h + Gradient(y, w)").statements]
    assert names.count("y_h") == 1 and "y_h_2" in names
    assert len(names) == len({*names})
    definition = definition_of(tmp_path, "g = Gradient(tanh(x), x)", "y = Gradient(tanh(x), x) * g")
    assert [s.name for s in definition.statements][-2:] == ["g", "y"]
    assert len(definition.inner) == 1


def test_it_is_said_what_a_statement_is_the_gradient_of(tmp_path):
    body, _ = FORWARDS[eikonal]
    forward = forward_from(forward_file(tmp_path, "Eikonal", IMPORTS + body))
    for text in pages(derive(forward)).values():
        assert "normals is the gradient of " in text
