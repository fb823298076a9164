"""Arguments of pasted functions: which is the upstream gradient, which a value, which a cache."""

import pytest
from sympy import exp, log

from derive import Axis, Forward, Given, Input, Sum, check
from derive.claims.reading import NotUnderstood

N, D, H, M = Axis("N"), Axis("D"), Axis("H"), Axis("M")


class Product(Forward):
    u = Input(N, D)
    v = Input(N, D)
    y = u * v


class Logistic(Forward):
    x = Input(N, D)
    w = Input(D)
    y = Given(N)
    p = 1 / (1 + exp(-Sum(x * w, D)))
    loss = -Sum(y * log(p) + (1 - y) * log(1 - p), N) / N


class Columns(Forward):
    X = Given(D, M)
    W = Input(H, D)
    b = Input(H)
    Y = Given(H, M)
    Z = Sum(W * X, D) + b
    loss = Sum((Z - Y) ** 2, H, M) / M


MSE = "def mse_backward({}): dx = 2*(x - target)/{}; return dx"
DICTIONARY = """
def backward(X, Y, cache):
    A, W = cache["A"], cache["W"]
    dZ = A - Y
    dW = X.T @ dZ/len(X)
    return dW
"""
PRODUCTS = {
    "upstream first": "def f_backward(dout, u, v):\n  du = dout*v\n  dv = dout*u\n  return du, dv",
    "upstream last": "def f_backward(u, v, grad):\n  du = grad*v\n  dv = grad*u\n  return du, dv",
    "a tuple of caches": """
def f_backward(dL, cache):
    (u_cache, v_cache) = cache
    u, v = u_cache[:], v_cache
    du = dL*v_cache
    return du
""".replace("    u, v = u_cache[:], v_cache\n", "    v = v_cache\n").replace("dL*v_cache", "dL*v"),
    "a dictionary of gradients": """
def f_backward(u, v, upstream):
    grads = {}
    d = upstream*v
    grads["u"] = d
    d = upstream*u
    grads["v"] = d
    return grads
""",
    "a layer": """
class Product:
    def forward(self, u, v):
        self.cache = {"u": u, "v": v}
        return u*v
    def backward(self, g):
        return g*self.cache["v"], g*self.cache["u"]
""",
    "a function that it calls": """
def scaled(a, b):
    c = a*b
    return c
def f_backward(g, u, v):
    du = scaled(g, v)
    dv = scaled(b=u, a=g)
    return du, dv
""",
    "an option": """
def f_backward(g, u, v, mode="plain"):
    if mode == "plain":
        du = g*v
    else:
        du = g*u
    dv = g*u
    return du, dv
""",
}
WRONG = {  # what is exchanged
    "upstream first": ("dout*v", "dout*u"),
    "upstream last": ("grad*u", "grad*v"),
    "a tuple of caches": ("dL*v", "dL*v*v"),
    "a dictionary of gradients": ("upstream*u", "upstream"),
    "a layer": ('g*self.cache["u"]', 'g*self.cache["v"]'),
    "a function that it calls": ("c = a*b", "c = a + b"),
    "an option": ('mode="plain"', 'mode="other"'),
}


@pytest.mark.parametrize("arguments", ["x, target", "target, x", "x, target, scale=2.0"])
@pytest.mark.parametrize("size", ["x.numel()", "x.size", "len(x)", "np.size(x)", "x.shape[0]"])
def test_without_an_upstream_gradient_it_is_1_and_said(arguments, size):
    verdict = check("mse", MSE.format(arguments, size))
    assert verdict.answers and verdict.outcome == "right"
    assert "no argument is dloss = 1" in " ".join(verdict.remarks)


def test_words_for_the_target_are_not_exchanged():
    right = "def mse_prime(y_true, y_pred): return 2*(y_pred - y_true)/np.size(y_true)"
    assert check("mse", right).outcome == "right"
    assert check("mse", right.replace("y_pred - y_true", "y_true - y_pred")).outcome == "wrong"


@pytest.mark.parametrize("name", PRODUCTS)
def test_roles_are_found_from_names_and_use(name):
    assert check(Product, PRODUCTS[name]).outcome == "right"
    before, after = WRONG[name]
    assert before in PRODUCTS[name]
    assert check(Product, PRODUCTS[name].replace(before, after)).outcome == "wrong"


def test_the_upstream_gradient_is_said_where_it_has_another_name():
    verdict = check(Product, PRODUCTS["upstream last"])
    assert "upstream gradient: grad=dy" in " ".join(verdict.remarks)


def test_what_is_not_clear_is_asked_for_and_the_answer_is_followed():
    text = "def f_backward(a, b): return a*(1 - b)"
    with pytest.raises(NotUnderstood, match=r"--let a=\.\.\. --let b="):
        check(Product, text)
    assert check(Product, text, let={"a": "dy", "b": "v"}).outcome == "wrong"


def test_an_option_without_a_default_is_asked_for():
    text = PRODUCTS["an option"].replace('mode="plain"', "mode")
    with pytest.raises(NotUnderstood, match="the value of mode is not known") as error:
        check(Product, text)
    assert 'mode = "plain"' in str(error.value)
    told = text.replace("    if mode", '    mode = "plain"\n    if mode', 1)
    assert check(Product, told).outcome == "right"


def test_dictionaries_hold_what_their_keys_say():
    assert check(Logistic, DICTIONARY).outcome == "right"
    wrong = DICTIONARY.replace("/len(X)", "")
    with pytest.raises(NotUnderstood, match="--let A="):  # which value A is shows where it is right
        check(Logistic, wrong)
    assert check(Logistic, wrong, let={"A": "p"}).outcome == "wrong"


COLUMNS = """
def backward(X, Y, cache):
    m = X.shape[1]
    dZ = 2*(cache["Z"] - Y)
    dW = np.dot(dZ, X.T)/m
    db = np.sum(dZ, axis=1, keepdims=True)/m
    return {"dW": dW, "db": db}
"""


def test_examples_may_be_columns_and_a_number_may_be_made_up_for_later():
    verdict = check(Columns, COLUMNS)
    assert verdict.outcome == "right"
    assert "examples in columns: Z (H, M)" in " ".join(verdict.remarks)
    wrong = check(Columns, COLUMNS.replace("X.T)/m", "X.T)"))
    assert [a.name for a in wrong.answers if a.outcome == "wrong"] == ["dW"]


def test_a_returned_gradient_that_no_line_computes_is_refused():
    with pytest.raises(NotUnderstood, match="dv is returned but not computed"):
        check(Product, "def f_backward(g, u, v):\n  du = g*v\n  return du, dv")
