"""Rules that no published forward needs, each with mathematics in which it matters: the closed form
is this one, and another without the rule.

The best-known forwards are in ``test_closed_form_quality.py``; that an identity is true, in
``test_identities.py``. ``make mutants`` breaks the rules one after the other.
"""

import pytest
from forwards import HEAD
from generating import forward_file
from sympy import Abs

from derive import Axis, Max, Sum, forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.closing.cost import cost_of
from derive.language.symbols import Tensor
from derive.proof.proving.forward_plan import forward_plan

N, C, T = Axis("N"), Axis("C"), Axis("T")

MORE = """\
    from sympy import cosh, sinh
    T, E, F = Axis("T"), Axis("E"), Axis("F")
"""
X, LABELLED = "x = Input(N, C)\n", "x = Input(N, C)\nlabels = Label(N)\n"
HOT = "OneHot(labels, C)"
OWN = f"own = Sum({HOT} * x, C)\n"
PROBS = f"p = exp(x) / Sum(exp(x), C)\nown = Sum({HOT} * p, C)\n"
RESHAPED = "x = Input(N, T, E)\nf = Flatten(x, T, E, into=F)\n"

# The rule that matters: statements, and the closed form.
RULES = {
    "nested sums": (
        X + "k = Given(N)\nb = Input()\nr = b + k\ny = x + r",
        ["dx = dy", "db = Sum(dy, C, N)"],
    ),
    "hyperbolic quotient": (
        "x = Input(N)\nw = Input(N)\ny = w * log(cosh(x)) ** 2",
        [
            "abs_x = Abs(x)",
            "log_cosh_x = abs_x + log(1 + exp(-2*abs_x)) - log(2)",
            "dx = 2*dy*log_cosh_x*w*tanh(x)",
            "dw = dy*log_cosh_x**2",
        ],
    ),
    "power of a one-hot": (
        LABELLED + f"z = tanh({HOT} * x)\ny = {HOT} * z",
        [f"dx = dy*(1 - z**2)*{HOT}"],
    ),
    "one-hot picks": (
        LABELLED + OWN + f"y = {HOT} * own + x",
        [
            "dx = dy*OneHot(labels, C) + dy",
        ],
    ),
    "a picked entry over itself": (
        LABELLED + PROBS + "loss = -Sum(log(own), N) / N",
        [f"dx = dloss*(p - {HOT})/N"],
    ),
    "logarithm of a picked entry": (
        LABELLED + PROBS + "loss = Sum(own * log(own), N)",
        ["down = dloss*(log_own + 1)", "dx = p*(-down*exp(log_own) + down*OneHot(labels, C))"],
    ),
    "reshaped back": (
        RESHAPED + "u = Unflatten(f, F, into=(T, E))\ny = u**2",
        [
            "dx = 2*dy*x",
        ],
    ),
    "reshaping a product": (
        RESHAPED + "g = Input(N)\ny = g * f",
        [
            "dg = Sum(dy*Flatten(x, T, E, into=F), F)",
            "dx = g*Unflatten(dy, F, into=(T, E))",
        ],
    ),
    "total of a reshaped tensor": (
        "x = Input(N, T, E)\nmean = Sum(x, T, E) / (T * E)\ny = Flatten(x - mean, T, E, into=F)",
        ["dx = Unflatten(dy, F, into=(T, E)) - Sum(dy, F)/(E*T)"],
    ),
    "one choice": (
        "x = Input(N)\nw = Given(N)\nr = Piecewise((tanh(x), w > 0), (x, True))\n"
        "y = Piecewise((r**3, w > 0), (r, True))",
        [
            "tanh_x = tanh(x)",
            "dx = dy*Piecewise((3*(1 - tanh_x**2)*"
            "Piecewise((tanh_x**2, w > 0), (x**2, True)), w > 0), (1, True))",
        ],
    ),
    "no division where the choice is 0": (
        X + "k = Given(N)\nw = Input(C)\ny = Piecewise((x, k > 0), (0, True)) / w",
        [
            "dx = dy*Piecewise((1/w, k > 0), (0, True))",
            "dw = -Sum(dy*y, N)/w",
        ],
    ),
    "the operand of two matrix products": (
        "x = Input(N, T)\nw = Input(T, C)\ny = tanh(Sum(x * w, T))",
        ["d_sum_w_x = dy*(1 - y**2)", "dx = Sum(d_sum_w_x*w, C)", "dw = Sum(d_sum_w_x*x, N)"],
    ),
    "a matrix product keeps the name of its gradient": (
        "x = Input(N, T)\nw = Input(T, C)\nv = Input(C, E)\nh = Sum(x * w, T)\ny = Sum(h * v, C)",
        ["dh = Sum(dy*v, E)", "dx = Sum(dh*w, C)", "dw = Sum(dh*x, N)", "dv = Sum(dy*h, N)"],
    ),
    "a gradient that is wanted takes the place of its equal": (
        "x = Input(N, T)\nw = Input(T, C)\nb = Input(T)\nz = x + b\ny = Sum(z * w, T)",
        [
            "dx = Sum(dy*w, C)",
            "dw = Sum(dy*z, N)",
            "db = Sum(dx, N)",
        ],
    ),
    "a sum is no gradient over what may be zero": (
        X + "b = Input(C)\na = Input(C)\ny = x * (b**2 + a)",
        ["da = Sum(dy*x, N)", "dx = dy*(a + b**2)", "db = 2*b*da"],
    ),
    "a sum is a gradient up to its divisor": (
        X + "b = Input(C)\nc = Input(C)\ny = x + b / c",
        ["dx = dy", "db = Sum(dy, N)/c", "dc = -b*db/c"],
    ),
    "a renamed axis is as long as its own": (
        "x = Input(N)\nw = Input(N)\nd = x - Rename(x, N, H)\ny = Sum(w * d, H)",
        ["dx = N*dy*w - Sum(dy[H]*w[H], H)", "dw = dy*Sum(x - x[H], H)"],
    ),
    "nothing is divided by what the forward multiplies by": (
        X + "g = Input(C)\nd = x - Sum(x, C) / C\ninv = 1 / sqrt(Sum(d**2, C))\nxhat = d * inv\n"
        "y = g * xhat",
        [
            "dg = Sum(dy*xhat, N)",
            "dxhat = dy*g",
            "dx = inv*(dxhat - xhat*Sum(dxhat*xhat, C) - Sum(dxhat, C)/C)",
        ],
    ),
    "nothing is divided by a scalar that may be 0": (
        "x = Input(N)\nk = Scalar(2)\ny = k * tanh(x)",
        ["dx = dy*k*(1 - tanh(x)**2)"],
    ),
    "sums that have a sum in common": (
        "x = Input(N, C, T)\na = Input(N)\nb = Input(C)\ny = x * a * b",
        [
            "sum_dy_x = Sum(dy*x, T)",
            "da = Sum(b*sum_dy_x, C)",
            "db = Sum(a*sum_dy_x, N)",
            "dx = a*b*dy",
        ],
    ),
    "a sum is saved and not taken again": (
        X + "w = Input(C)\ny = Sum(x * exp(w), C) * w",
        [
            "sum_dy_w = Sum(dy*w, C)",
            "exp_w = exp(w)",
            "dx = exp_w*sum_dy_w",
            "dw = exp_w*Sum(sum_dy_w*x, N) + Sum(dy*sum_x_exp_w, N)",
        ],
    ),
    "what is computed again is computed from the inputs": (
        "x = Input(C)\nw = Input(C)\nk = x + 1\nb = k * x\ny = b * w + tanh(b)",
        ["b = x*(x + 1)", "dx = dy*(2*x + 1)*(w - tanh(b)**2 + 1)", "dw = b*dy"],
    ),
    "what is summed up in a condition comes out of the choice": (
        X + "e = exp(x - Max(x, C))\ntotal = Sum(e, C)\n"
        "y = Piecewise((e / total, total > 1), (0, True))",
        [
            "choice_in_dx = Piecewise((1/total, total > 1), (0, True))",
            "dx = choice_in_dx*e*(-choice_in_dx*Sum(dy*e, C) + dy)",
        ],
    ),
    "a number before a statement": (
        X + "w = Input(N, C)\nh = 2 * (x - w)\ny = h**2 * tanh(h)",
        [
            "h = -2*w + 2*x",
            "tanh_h = tanh(h)",
            "dx = 4*dy*h*(h*(1 - tanh_h**2)/2 + tanh_h)",
            "dw = -dx",
        ],
    ),
    "a peak is taken of what varies alone": (
        "x = Input(N)\nk = Input(C)\ni = Label(N)\ne = exp(x)\nt = Sum(OneHot(i, C) * e, N)\n"
        "y = Sum(OneHot(i, C) * x * e / Sum(OneHot(i, C) * t, C), N) * k",
        [
            "dx = e_over_t_at_i*((x + 1)*Sum(dy*k*OneHot(i, C), C) "
            "- Sum(dy*k*sum_in_y*OneHot(i, C), C))",
            "dk = dy*sum_in_y",
        ],
    ),
    "values that are computed alike are one": (
        X + "a = tanh(x)\nb = tanh(x)\ny = a * b",
        ["a = tanh(x)", "dx = 2*a*dy*(1 - a**2)"],
    ),
    "a sum of terms that are centred together": (
        X + "b = Input(C)\ny = (x + b - Sum(x + b, C) / C)**2",
        [
            "d_b_plus_x_minus_mean_b_plus_x = 2*b_plus_x_minus_mean_b_plus_x*dy",
            "dx = d_b_plus_x_minus_mean_b_plus_x - Sum(d_b_plus_x_minus_mean_b_plus_x, C)/C",
            "db = Sum(dx, N)",
        ],
    ),
    "a sigmoid of a sum is one": (
        X + "w = Input(C)\ny = x / (1 + exp(-Sum(x * w, C)))",
        [
            "d_sum_w_x = sigmoid_sum_w_x*(1 - sigmoid_sum_w_x)*Sum(dy*x, C)",
            "dw = Sum(d_sum_w_x*x, N)",
            "dx = d_sum_w_x*w + dy*sigmoid_sum_w_x",
        ],
    ),
    "a choice by what is given has no name": (
        X + "k = Given(N)\nm = Piecewise((1, k > 0), (0, True))\nh = m * x\ny = m * h**2",
        ["dx = 2*dy*x*Piecewise((1, k > 0), (0, True))"],
    ),
    "a part and its negative are one": (
        X + "mean = Sum(x, C) / C\ny = (x - mean)**3 * tanh(mean - x)",
        [
            "tanh_of_x_minus_mean_x = tanh(x_minus_mean_x)",
            "d_x_minus_mean_x = dy*x_minus_mean_x**2*(-3*tanh_of_x_minus_mean_x "
            "+ x_minus_mean_x*(tanh_of_x_minus_mean_x**2 - 1))",
            "dx = d_x_minus_mean_x - Sum(d_x_minus_mean_x, C)/C",
        ],
    ),
    "the name of a part ends with its scalar": (
        X + "eps = Scalar(1)\nv = Sum(x**2, C)\ny = x / (v + eps)",
        ["dx = dy/v_plus_eps - 2*y*Sum(dy*y, C)"],
    ),
    "a number that two matrix products share is multiplied once": (
        "x = Input(N, T)\nw = Input(T, C)\nb = Input(C)\nu = Sum(x * w, T)\ny = 2 * (u + b)",
        [
            "du = 2*dy",
            "dx = Sum(du*w, C)",
            "dw = Sum(du*x, N)",
            "db = 2*Sum(dy, N)",
        ],
    ),
    "a gradient with a name that sums to zero": (
        "x = Input(N, T)\nw = Input(T, C)\nb = Input(C)\nu = Sum(x * w, T) + b\n"
        "d = u - Sum(u, N) / N\ny = d / sqrt(Sum(d**2, N))",
        [
            "du = one_over_sqrt_sum_d_squared*(dy - y*Sum(dy*y, N) - Sum(dy, N)/N)",
            "dx = Sum(du*w, C)",
            "dw = Sum(du*x, N)",
            "db = 0",
        ],
    ),
    "a root and its reciprocal are one": (
        X + "w = Input(N, C)\nv = Sum(x**2, C)\ny = x * w / sqrt(v + 1) + w**2 * sqrt(v + 1)",
        [
            "dx = (dy*w + x*Sum(dy*w*(w - x/sqrt_of_one_plus_v**2), C))/sqrt_of_one_plus_v",
            "dw = dy*(2*sqrt_of_one_plus_v*w + x/sqrt_of_one_plus_v)",
        ],
    ),
    "a divisor with exponentials in it": (
        X + "b = Input(N, C)\nw = Input(N, C)\ny = w / (exp(x) + exp(b))",
        [
            "w_times_dy = dy*w",
            "dx = -w_times_dy/((exp(b) + exp(x))*(exp(b - x) + 1))",
            "db = -w_times_dy/((exp(b) + exp(x))*(exp(-b + x) + 1))",
            "dw = dy/(exp(b) + exp(x))",
        ],
    ),
    "what remains of a whole, whatever its numbers": (
        X + "y = log(2 + exp(x))",
        ["dx = dy/(1 + 2*exp(-x))"],
    ),
    "a part whose own parts have names": (
        X + "w = Input(N, C)\n"
        "y = Piecewise((w / (Sum(x**2, C) + 1), w / (Sum(x**2, C) + 1) < 2), (0, True))",
        [
            "dx = 2*x*Sum(dy*Piecewise((-w/one_plus_sum_x_squared**2,"
            " w/one_plus_sum_x_squared < 2), (0, True)), C)",
            "dw = dy*Piecewise((1/one_plus_sum_x_squared, w/one_plus_sum_x_squared < 2), (0,"
            " True))",
        ],
    ),
    "a power of a function of a reduction": (
        X + "w = Input(N, C)\ny = w * log(Sum(exp(x), C)) ** 2",
        [
            "dx = 2*log_sum_exp_x*exp(-log_sum_exp_x + x)*Sum(dy*w, C)",
            "dw = dy*log_sum_exp_x**2",
        ],
    ),
    "a gradient on the way has a name": (
        X
        + "w = Input(N, C)\nk = Input(N, C)\na = tanh(x)\nb = a * w\nt = Sum(b * k, C)\ny = t * b",
        [
            "a = tanh(x)",
            "sum_a_dy_w = Sum(a*dy*w, C)",
            "db = dy*t + k*sum_a_dy_w",
            "dx = db*w*(1 - a**2)",
            "dw = a*db",
            "dk = a*sum_a_dy_w*w",
        ],
    ),
    "a share is cut into no fractions of exponentials": (
        "x = Input(N)\ny = exp(2 * x) / (1 + exp(x))**3",
        [
            "sigmoid_minus_x = 1/(exp(x) + 1)",
            "dx = dy*sigmoid_minus_x*(3*sigmoid_minus_x - 1)/(1 + exp(-x))**2",
        ],
    ),
    "a logarithm is taken again under its own name": (
        "x = Input(N)\nt = Input(N)\nw = Input(N)\ns = 1 / (1 + exp(-x))\n"
        "y = -(t * w * log(s) + (1 - t) * log(1 - s))",
        [
            "softplus_minus_abs_x = log(1 + exp(-Abs(x)))",
            "log_s = -softplus_minus_abs_x + Piecewise((x, x <= 0), (0, True))",
            "s = 1/(1 + exp(-x))",
            "dx = dy*(s*(t*w - t + 1) - t*w)",
            "dt = dy*(-log_s*w - softplus_minus_abs_x - Piecewise((x, x >= 0), (0, True)))",
            "dw = -dy*log_s*t",
        ],
    ),
    "an exponential of what the forward computes": (
        X + "m = Max(x, C)\nd = x - m\nlse = log(Sum(exp(d), C))\ny = d - lse",
        ["dx = dy - exp(y)*Sum(dy, C)"],
    ),
    "what is compared is chosen before": (
        "x = Input(N)\nw = Input(N)\na = Piecewise((x, x > 0), (0, True))\n"
        "y = Piecewise((a**2, a < w), (a * w, True))",
        [
            "a = Piecewise((x, x > 0), (0, True))",
            "dx = dy*Piecewise((1, x > 0), (0, True))*Piecewise((2*a, w > a), (w, True))",
            "dw = dy*Piecewise((0, w > a), (a, True))",
        ],
    ),
    "a sum of what has a name": (
        X + "squares = x**2\ntotal = Sum(squares, C)\nu = x / sqrt(total)\nloss = Sum(u**2, N, C)",
        ["dx = 0"],
    ),
}


def closed(body, folder):
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    file = forward_file(folder, "Watched", MORE + lines)
    file.write_text(file.read_text().replace(HEAD, HEAD + "from derive import Unflatten\n"))
    return close(derive_chain(forward_from(file).definition))


@pytest.mark.parametrize("rule", RULES)
def test_the_closed_form_is_the_one_that_the_rule_gives(rule, tmp_path):
    body, lines = RULES[rule]
    assert sorted(str(closed(body, tmp_path)).split("\n")) == sorted(lines)


# The lines of a forward function, by what they compute.
COMPUTED = {
    "the entries that are picked, and no others": (
        LABELLED + f"h = tanh(x)**2 + 1\ny = Sum({HOT} * h, C)",
        ["y"],
    ),
    "all entries where one reader takes all of them": (
        LABELLED + f"h = x**2\nown = Sum({HOT} * h, C)\ny = own + Sum(h, C)",
        ["h", "own", "y"],
    ),
    "what has a name and is read once": (X + "h = x**2\ny = h + 1", ["h", "y"]),
    "no multiple of what has a name": (X + "h = 2 * x\ny = h + 1", ["y"]),
    "a row that is summed": (
        LABELLED + f"h = Sum(x**2, N)\ny = Sum({HOT} * h, C)",
        ["h", "y"],
    ),
}


@pytest.mark.parametrize("computed", COMPUTED)
def test_the_forward_computes(computed, tmp_path):
    body, names = COMPUTED[computed]
    lines = forward_plan(closed(body, tmp_path))
    assert [line.tensor.name for line in lines] == names


def test_a_sum_of_what_is_larger_than_its_tensors_takes_more_lines_but_no_more_loops():
    """Eager torch writes and reads that before it is summed, a loop does not; a matrix product is
    a library's.
    """
    x, y = Tensor("x", (N,)), Tensor("y", (C,))
    whole = Tensor("z", (N, C))

    def cost(total):
        return cost_of([(x, total)], frozenset("xyz"))

    assert cost(Sum(Abs(x + y), C)).lines > cost(Sum(Abs(whole), C)).lines
    assert cost(Sum(Abs(x + y), C)).moved < cost(Sum(Abs(whole), C)).moved
    assert cost(Sum(x * y, C)).lines < cost(Sum(Abs(x + y), C)).lines


def test_what_is_computed_on_the_way_costs_no_pass():
    """Nor does its name: it is at hand where it is read, unless a matrix product reads it or it is
    asked for. A row that is summed is at hand, all rows are not.
    """
    x, dx = Tensor("x", (N, C)), Tensor("dx", (N, C))
    on_the_way, total = Tensor("a", (N, C)), Tensor("t", (N,), role="adjoint")
    sums, w, product = Tensor("s", (C,), role="adjoint"), Tensor("w", (C, T)), Tensor("p", (N, T))

    def moved(*statements, results=("dx",)):
        return cost_of(statements, frozenset({"x", "a", "w"}), frozenset(results)).moved

    assert moved((on_the_way, x**3), (dx, on_the_way + 1)) == moved((dx, x**3 + 1))
    row = (on_the_way, x**3), (total, Sum(on_the_way, C)), (dx, on_the_way + total)
    both = (*row[:2], (sums, Sum(x, N)), (dx, on_the_way + total + sums))
    multiplied = (on_the_way, x**3), (product, Sum(on_the_way * w, C)), (dx, on_the_way + 1)
    once = moved((on_the_way, x**3), (dx, on_the_way + 1))
    assert moved(*row) == once < moved(*both)
    assert moved(*multiplied, results=("dx", "p")) > once + 1


def test_a_reduction_in_two_statements_is_one():
    """As is one inside of another: the cost counts what is distinct."""
    x, a, b = (Tensor(name, (N, C)) for name in "xab")
    total = Sum(x**2, C)
    first, second = (a, x * total), (b, x + Max(total, N))
    both = cost_of([first, second], frozenset("x"), frozenset("ab"))
    assert both.reductions == 2
    named = Tensor("t", (N,), role="adjoint")
    apart = [(named, total), (a, x * named), (b, x + Max(named, N))]
    assert cost_of(apart, frozenset("x"), frozenset("ab")).moved == both.moved
