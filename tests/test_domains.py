"""A scalar is in its domain: the notation says which, the proof relies on it, the emitted functions
refuse the rest.
"""

import math
import re
from io import StringIO

import numpy
import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from gallery import EVERYTHING
from generating import draw, forward_file, generated, module_from
from rich.console import Console
from sympy import Rational

from codegen.driver.lean import generate
from derive import NotationError, check, derive, forward_from
from derive.language.domain import Bound, Domain
from derive.show import document_of
from derive.show.formats import FORMATS
from derive.show.terminal import rendered
from generated.cross_entropy import cross_entropy
from generated.huber import huber
from generated.smooth_l1 import smooth_l1
from generated.std import std
from generated.var import var

DECLARED = [e for e in EVERYTHING if e.definition.demands]
NAN = math.nan


def outside(domain: Domain, sizes) -> list[float]:
    """Numbers on the wrong side of each bound, the nearest first, and NaN."""
    found = [NAN]
    for bound in domain.bounds:
        limit = float(bound.limit.xreplace(sizes))
        away = -1 if bound.is_lower else 1
        found += [limit] * bound.is_strict
        found += [math.nextafter(limit, away * math.inf), limit + 3 * away, away * math.inf]
    return found


@pytest.mark.parametrize("emitted", DECLARED, ids=str)
def test_every_function_refuses_what_is_outside_by_name_value_and_domain(emitted):
    drawn = emitted.arguments()
    sizes = {
        axis: size
        for t in emitted.definition.arguments
        for axis, size in zip(t.home, drawn[t.name].shape, strict=False)
    }
    for demand in emitted.definition.demands:
        name = str(demand.expression)
        for number in outside(demand.domain, sizes):
            wrong = rf"{name} must be (a number )?{demand.domain}, got {re.escape(str(number))}\b"
            with pytest.raises(ValueError, match=f"^{emitted.snake}: {wrong}"):
                emitted.function(**{**drawn, name: number})


@pytest.mark.parametrize("emitted", [e for e in EVERYTHING if e.definition.scalars], ids=str)
def test_a_scalar_is_a_number_and_no_tensor(emitted):
    """One that requires a gradient would train wrong without a word."""
    drawn = emitted.arguments(dtype=torch.float32)
    for t, default in emitted.definition.scalars:
        for wrong in (torch.tensor(1.0), torch.tensor(1.0, requires_grad=True)):
            said = f"^{emitted.snake}: {t} must be a number"
            with pytest.raises((TypeError, ValueError), match=said):
                emitted.function(**drawn, **{t.name: wrong})
        for wrong in ("1", [1.0]):
            with pytest.raises((TypeError, RuntimeError)):
                emitted.function(**drawn, **{t.name: wrong})
        if isinstance(default, (int, float)):
            expected = emitted.function(**drawn, **{t.name: float(numpy.float32(default))})
            for same in (numpy.float32(default), numpy.float64(numpy.float32(default))):
                value = emitted.function(**drawn, **{t.name: same})
                assert value.dtype == torch.float32 and torch.equal(value, expected)


X, TARGET = draw(6, 4), draw(6, 4, seed=2)
LABELS = torch.tensor([0, 3, 1, 2, 2, 0])
BESIDE_TORCH = {
    "huber": (huber, F.huber_loss, "delta", (0, -1.0, NAN, 1e-3, 2)),
    "smooth_l1": (smooth_l1, F.smooth_l1_loss, "beta", (-1, -1e-9, NAN, 0, 0.5)),
}


@pytest.mark.parametrize("name", BESIDE_TORCH)
def test_what_torch_refuses_is_refused_and_nothing_else(name):
    function, reference, option, numbers = BESIDE_TORCH[name]
    for number in numbers:
        x = X.clone().requires_grad_()
        try:
            expected = reference(x, TARGET, **{option: number})
        except RuntimeError:
            with pytest.raises(ValueError, match=option):
                function(x, TARGET, **{option: number})
            continue
        loss = function(x, TARGET, **{option: number})
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(
            torch.autograd.grad(loss, x), torch.autograd.grad(expected, x), equal_nan=True
        )


@pytest.mark.parametrize("smoothing", [1.5, -0.1, 1.0 + 1e-9])
def test_a_smoothing_outside_of_0_to_1_is_refused(smoothing):
    with pytest.raises(
        ValueError, match="label_smoothing must be a number at least 0 and at most 1"
    ):
        cross_entropy(X, LABELS, label_smoothing=smoothing)
    for allowed in (0, 1, 0.3):
        torch.testing.assert_close(
            cross_entropy(X, LABELS, label_smoothing=allowed),
            F.cross_entropy(X, LABELS, label_smoothing=float(allowed)),
        )


def test_a_correction_leaves_something_to_divide_by():
    for correction in (4, 5, 4.0, NAN):
        for compute in (
            lambda c: var(X, c),
            lambda c: std(X, c),
        ):
            with pytest.raises(
                ValueError, match=r"must be (a number )?below C, got .* where C = 4"
            ):
                compute(correction)
    for correction in (3, 3.5, 0, -1):
        torch.testing.assert_close(var(X, correction), torch.var(X, 1, correction=correction))
    with pytest.raises(ValueError, match="got 1 where C = 1"):
        std(X[:, :1])


def test_compiled_whole_they_are_checked_too():
    compiled = torch.compile(
        lambda x, correction: var(x, correction).sum(),
        backend="eager",
        fullgraph=True,
        dynamic=True,
    )
    for correction in (0, 1, 2.5, 0.25):
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(compiled(x, correction), x)
        torch.testing.assert_close(
            gradient, torch.autograd.grad(torch.var(x, 1, correction=correction).sum(), x)[0]
        )
    torch._dynamo.reset()


# The notation

REFUSED = {
    "Scalar(0, above=0)": "the default is not above 0",
    "Scalar(-1, at_least=0)": "the default is not at least 0",
    "Scalar(2.0, at_least=0, at_most=1)": "the default is not at least 0 and at most 1",
    "Scalar(1, below=1)": "the default is not below 1",
    "Scalar(-1 / C, above=0)": "the default is not above 0",
    "Scalar(C, below=C)": "the default is not below C",
    "Scalar(1, above=1, at_most=1)": "to be above 1 and at most 1: no number is",
    "Scalar(1, at_least=2, below=1)": "to be at least 2 and below 1: no number is",
    "Scalar(1, above=C, below=0)": "to be above C and below 0: no number is",
    "Scalar(1, above=0, at_least=0)": "to be above 0 and at least 0",
    "Scalar(1, above=float('nan'))": "above is not a finite number",
    "Scalar(1, at_most='2')": "at_most is not a finite number",
    "Scalar(1, above=x)": "above is not a finite number",
    "Scalar(1, below=K)": "no input has the axis K",
}


@pytest.mark.parametrize("declared", REFUSED)
def test_what_is_no_domain_or_does_not_hold_the_default_is_refused_with_its_line(
    declared, tmp_path
):
    body = f"    x = Input(N, C)\n    a = {declared}\n    y = a * x\n"
    with pytest.raises(NotationError, match=re.escape(REFUSED[declared])) as refused:
        forward_from(forward_file(tmp_path, "Scaled", body))
    line = len(HEAD.splitlines()) + 5
    assert f"scaled.py:{line}: " in str(refused.value)


def test_a_domain_of_one_number_or_in_sizes_is_one(tmp_path):
    body = (
        "    x = Input(N, C)\n    a = Scalar(1, at_least=1, at_most=1)\n"
        "    b = Scalar(1 / C, above=0, at_most=N)\n    y = a * b * x\n"
    )
    function, _, _ = generated(forward_file(tmp_path, "Scaled", body), tmp_path)
    x = draw(2, 3)
    torch.testing.assert_close(function(x, b=2), 2 * x)
    for name, number in (("a", 1.5), ("b", 0), ("b", 2.5)):
        with pytest.raises(ValueError, match=f"scaled: {name} must be"):
            function(x, **{name: number})


def test_the_proof_relies_on_a_domain_and_on_no_default(tmp_path):
    """The root of a square is the number itself only where that is not negative."""
    body = "    x = Input(N)\n    a = Scalar(2.0{})\n    y = sqrt(a**2 * x**2) / a\n"
    for declared in (", above=0", ""):
        file = forward_file(tmp_path, f"Scaled{len(declared)}", body.format(declared))
        function, _, result = generated(file, tmp_path)
        (statement,) = result.proved.definition.statements
        assert (str(statement) == "y = Abs(x)") == bool(declared)
        x = draw(5)
        for a in (2.0, 0.5) if declared else (2.0, -0.5):
            leaf = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(function(leaf, a).sum(), leaf)
            torch.testing.assert_close(gradient, math.copysign(1, a) * x.sign())


def test_signs_follow_from_bounds():
    def signs(**limits):
        return Domain(tuple(Bound(k, Rational(str(v))) for k, v in limits.items())).signs()

    assert signs(above=0) == signs(at_least=1) == signs(above=0.5) == {"positive": True}
    assert signs(at_least=0) == {"nonnegative": True}
    assert signs(below=0) == {"negative": True} and signs(at_most=0) == {"nonpositive": True}
    assert signs(at_least=-1, at_most=1) == signs() == {}
    assert signs(at_least=0, at_most=1) == {"nonnegative": True}


COMPOSED = """
class Rooted(Forward):
    x = Input(N)
    a = Scalar(1.0, above=0)
    y = sqrt(a**2) * x


class Outer(Forward):
    x = Input(N)
    t = Input()
    b = Scalar({default})
    y = Rooted(x, {passed})
"""


def outer(folder, passed, default="1.0"):
    file = folder / "outer.py"
    file.write_text(HEAD + COMPOSED.format(passed=passed, default=default))
    return f"{file}:Outer"


@pytest.mark.parametrize(
    ("passed", "problem"),
    [
        ("0", "a has to be above 0, and 0 is not"),
        ("-2", "a has to be above 0, and -2 is not"),
        ("t", "a has to be above 0, and t is not known to be"),
        ("-exp(t)", "a has to be above 0, and -exp(t) is not"),
    ],
)
def test_a_callee_is_called_with_numbers_in_its_domain(passed, problem, tmp_path):
    with pytest.raises(NotationError, match=re.escape(problem)) as refused:
        forward_from(outer(tmp_path, passed))
    assert "outer.py:" in str(refused.value)


@pytest.mark.parametrize("passed", ["1", "exp(t)", "1 / N", "sqrt(1 + t**2)"])
def test_what_is_in_the_domain_by_its_form_demands_nothing(passed, tmp_path):
    assert forward_from(outer(tmp_path, passed)).definition.demands == ()


@pytest.mark.parametrize(
    ("passed", "inside", "wrong"), [("b", 2.0, 0), ("1 - b", 0.5, 1.5), ("2 * b", 0.1, -1)]
)
def test_what_a_callee_demands_the_caller_checks(passed, inside, wrong, tmp_path):
    source = outer(tmp_path, passed, default="0.5")
    assert derive(forward_from(source)).closed_form
    (demand,) = forward_from(source).definition.demands
    assert str(demand.domain) == "above 0"
    own = forward_file(
        tmp_path,
        "Whole",
        f"    x = Input(N)\n    b = Scalar(0.5)\n    y = Rooted(x, {passed})\n",
    )
    own.write_text(f"{HEAD}\n{COMPOSED.split('class Outer')[0]}\n{own.read_text()[len(HEAD) :]}")
    module = module_from(generate(forward_from(f"{own}:Whole")).text, tmp_path, "whole")
    x = draw(5)
    factor = {"b": inside, "1 - b": 1 - inside, "2 * b": 2 * inside}[passed]
    torch.testing.assert_close(module.whole(x, inside), factor * x)
    with pytest.raises(ValueError, match=r"^whole: .* must be (a number )?above 0, got"):
        module.whole(x, wrong)


def test_defaults_that_a_callee_does_not_take_are_refused(tmp_path):
    with pytest.raises(NotationError, match="b has to be above 0, and is not with the defaults"):
        forward_from(outer(tmp_path, "b", default="0"))


def test_a_formula_is_tried_on_numbers_in_the_domain_alone(tmp_path):
    """What is right for all of those is not refuted by another, and what is wrong is by one."""
    body = (
        "    x = Input(N)\n    a = Scalar(0.5, at_least=0, at_most=1)\n"
        "    y = Piecewise((a * x, a <= 1), (x**3, True))\n"
    )
    forward = forward_from(forward_file(tmp_path, "Scaled", body))
    for right in ("a*dy", "abs(a)*dy"):
        assert check(forward, right, of="x").right is not False
    wrong = check(forward, "a**2*dy", of="x")
    assert wrong.right is False
    (shown,) = re.findall(r"^    a += (\S+)$", str(wrong), re.M)
    assert 0 <= Rational(shown) <= 1


SHOWN = {
    "text": ("a = 0.5 (above 0), b = 1/√(N) (at least 0 and at most C), c = 2.", "a/2 has to be "),
    "markdown": (
        r"$b$ = $\frac{1}{\sqrt{N}}$ (at least $0$ and at most $C$), $c$ = 2.",
        r"$\frac{a}{2}$ has to be below $C$.",
    ),
    "latex": ("$a$ = 0.5 (above $0$), ", r"$\frac{a}{2}$ has to be below $C$."),
    "html": ("</math> = 0.5 (above <math", "</math> has to be below <math"),
}


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    """Scalars with one end, two ends and none, and a block that is given half of one."""
    file = tmp_path_factory.mktemp("composed") / "composed.py"
    file.write_text(
        f"from sympy import sqrt\n{HEAD}\n\n"
        "class Inner(Forward):\n    x = Input(N, C)\n    s = Scalar(0.1, below=C)\n"
        "    y = s * x\n\n"
        "class Outer(Forward):\n    x = Input(N, C)\n    a = Scalar(0.5, above=0)\n"
        "    b = Scalar(1 / sqrt(N), at_least=0, at_most=C)\n    c = Scalar(2)\n"
        "    y = Inner(x, s=a / 2) * b * c\n"
    )
    return document_of(derive(forward_from(f"{file}:Outer")))


@pytest.mark.parametrize("format", SHOWN)
def test_a_domain_is_shown_beside_its_scalar(composed, format):
    """That of a block is shown in a sentence of its own."""
    if format == "text":
        console = Console(width=100, file=StringIO())
        console.print(rendered(composed))
        shown = console.file.getvalue()
    else:
        shown = FORMATS[format](composed)
    for words in SHOWN[format]:
        assert words in shown


def test_a_number_that_may_be_zero_is_not_divided_by_without_a_word(tmp_path):
    body = "    x = Input(N)\n    beta = Scalar(1.0, at_least=0)\n    y = Sum(x / beta, N) / beta\n"
    function, _, _ = generated(forward_file(tmp_path, "Shared", body), tmp_path)
    torch.testing.assert_close(function(draw(3), beta=2.0), draw(3).sum() / 4)
    try:
        found = function(draw(3), beta=0)
    except ValueError as refused:
        assert "divides by beta, which is 0" in str(refused)
    else:
        assert not found.isfinite().any()
