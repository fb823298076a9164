"""A formula is data: whatever is thrown at the reader, it answers soon, and runs nothing of it."""

import gc
import sys
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from derive import forward_from
from derive.claims.reading import NotUnderstood, Reading, read
from derive.claims.reading.notation import CALLS
from derive.claims.reading.operations.vocabulary import BUILTINS, FILLS, OPERATIONS

DEFINITIONS = {
    name: forward_from(name).definition for name in ("batch_norm", "softmax_nll", "linear", "mlp")
}
SECONDS, ATTEMPTS = 1.0, 3


def answer(text: str, name: str = "batch_norm", let=None):
    """The reader's answer, within its time. An answer that comes late is asked for again: a
    machine may be busy with something else, a text that takes long takes long each time.
    """
    for _ in range(ATTEMPTS):
        result, spent = answer_and_time(text, name, let or {})
        if spent < SECONDS:
            return result
    raise AssertionError(f"{spent:.2f} s for {text[:200]!r}")


def answer_and_time(text: str, name: str, let: dict):
    """The reader's answer, and the CPU time of its thread, without garbage collection of what other
    tests have left behind.
    """
    definition = DEFINITIONS[name]
    gc.disable()
    start = time.thread_time()
    try:
        result = read(text, definition, definition.differentiable[0], let)
    except NotUnderstood as error:
        result = error
        assert "\x1b" not in str(error) and len(str(error)) < 20_000
    finally:
        spent = time.thread_time() - start
        gc.enable()
    return result, spent


DOUBLED = "a = dy*x + 1\n" + "a = a*a + x\n" * 60
BOMBS = {
    "a tower of powers": "9**9**9**9",
    "a large power": "x**999999999",
    "a power of a power": "((((x**16)**16)**16)**16)**16",
    "a number with a large exponent": "1e999999999*x",
    "a small number with a large exponent": "1e-999999999*x",
    "a long number": "9" * 5_000,
    "a long hexadecimal number": "0x" + "f" * 50_000,
    "ten thousand brackets": "(" * 10_000 + "x" + ")" * 10_000,
    "ten thousand open brackets": "(" * 10_000,
    "ten thousand square brackets": "[" * 10_000 + "]" * 10_000,
    "brackets of all kinds": "([{" * 3_000,
    "five thousand minus signs": "-" * 5_000 + "x",
    "minus signs with spaces": "- " * 5_000 + "x",
    "not of not": "not " * 5_000 + "x",
    "a long sum": "+".join(["x"] * 5_000),
    "a long product": "*".join(["(x + dy)"] * 90),
    "many products": "\n".join(["a = (x + dy)**16"] + ["a = a*(x + dy)**16"] * 50),
    "a long chain of dots": "x" + ".T" * 5_000,
    "a long chain of calls": "x" + ".exp()" * 5_000,
    "a long chain of indices": "x" + "[:, None]" * 5_000,
    "a long comparison": "<".join(["x"] * 5_000),
    "a long tuple": ",".join(["x"] * 20_000),
    "lambdas": "lambda: " * 2_000 + "x",
    "choices": "x if x else " * 2_000 + "x",
    "a megabyte": "x + " * 250_000 + "x",
    "a megabyte of comment": "x # " + "x" * 1_000_000,
    "a megabyte of lines": "\n" * 1_000_000,
    "four thousand lines": "a = dy\n" * 4_000,
    "sixty doublings": "a = dy + x\n" + "a = a + a*x\n" * 60,
    "many copies": "a = x + dy\n" + "a = a + a*x\n" * 9 + "b = a*1\n" * 1_000,
    "sixty squares": DOUBLED,
    "nested functions": "a = x\n" + "a = torch.tanh(a) + 1\n" * 1_500,
    "a sum of fractions": "a = x\n" + "\n".join(f"a = a + x/{10**9 + i}" for i in range(1_500)),
    "growing numbers": "a = 3\n" + "a = a**16\n" * 100,
    "growing fractions": "a = 1.7\n" + "a = a*a + 0.3\n" * 100,
    "new axes": "a = x\n" + "a = a[:, None]*a\n" * 30,
    "outer products": "a = gain\n" + "a = a[..., None]*gain\n" * 100,
    "products of matrices": "a = x\n" + "a = a @ x.T @ x\n" * 500,
    "softmax of softmax": "a = x\n" + "a = F.softmax(a, 1)\n" * 500,
    "variance of variance": "a = x\n" + "a = a - a.var(0)\n" * 300,
    "choices of choices": "a = x\n" + "a = torch.where(a > x, a*x, a)\n" * 300,
    "sixty choices": "a = x\n" + "".join(f"a = torch.where(x > {i}, dy, a)\n" for i in range(60)),
    "clamps": "a = x\n" + "a = a.clamp(-1, 1)*x\n" * 200,
    "einsum with many letters": "torch.einsum('" + "a" * 50_000 + "', x)",
    "a huge string": "'" + "x" * 60_000 + "'",
    "an open string": "'''" + "x" * 60_000,
    "deep blocks": "".join(" " * i + "if x:\n" for i in range(200)) + " " * 200 + "x",
    "escapes": "'" + "\\x" * 20_000 + "'",
    "format": "f'{x!r:>{9**9}}'",
    "nested formats": "f'{" * 20 + "x" + "}'" * 20,
    "a backslash at every end": "x \\\n" * 1_000 + "+ x",
    "many targets": "=".join(["dx"] * 5_000) + "= x",
    "starred": "*" * 5_000 + "x",
    "decorators": "@x\n" * 1_000 + "def f(): pass",
    "sums in sums": "Sum(" * 25 + "x" + ", N)" * 25,
    "many chained sums": "a = x\n" + "a = Sum(a*x, N)*x\n" * 300,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused_within_a_second(text):
    assert isinstance(answer(text), NotUnderstood)


@pytest.mark.parametrize(
    "text", ["(" + "7" * 39 + ")**0.123456789**0.9876**0.5", "x + " * 90 + "x"]
)
def test_what_is_unusual_and_small_is_read(text):
    assert isinstance(answer(text), Reading)


BOUNDS = {  # what is bounded, and how that is said
    "ten thousand brackets": "brackets are nested too deeply",
    "a megabyte": "1000001 characters",
    "four thousand lines": "4000 lines",
    "minus signs with spaces": "too many signs",
    "a long comparison": "more than 10000 parts",
    "lambdas": "more than a hundred operations",
    "a tower of powers": "the exponent 387420489 is too large",
    "a number with a large exponent": "too long",
    "sixty doublings": "too large to expand",
    "many copies": "too long to expand",
    "outer products": "too many dimensions",
    "sixty choices": "choices are nested too deeply",
}


@pytest.mark.parametrize("name, problem", BOUNDS.items())
def test_every_bound_is_said(name, problem):
    assert problem in answer(BOMBS[name]).problem


REFUSED = {
    "nothing": "",
    "blanks": " \n\t\n ",
    "a comment": "# x",
    "a NUL byte": "x\0",
    "an escape sequence": "x # \x1b[31m",
    "a lone surrogate": "x + \udc80",
    "a right-to-left mark": "x + \u202ey",
    "a zero-width space": "x\u200b",
    "a form feed": "x\x0c+ y",
    "a byte order mark": "\ufeffx",
    "a wide letter": "\uff58 + 1",
    "a mathematical letter": "\U0001d431 + 1",
    "an attribute of Python's": "x.__class__",
    "a way to the builtins": "().__class__.__bases__[0].__subclasses__()",
    "import": "__import__('os').system('true')",
    "eval": "eval('x')",
    "exec": "exec('x')",
    "open": "open('/etc/passwd')",
    "getattr": "getattr(x, 'T')",
    "a lambda": "(lambda: x)()",
    "a comprehension": "[x for x in x]",
    "a generator": "sum(x for x in x)",
    "a walrus": "(a := x)",
    "a format": "f'{x}'",
    "a starred argument": "torch.exp(*x)",
    "two stars": "torch.exp(**x)",
    "a call of a call": "x()()",
    "torch itself": "torch",
    "a module of torch's": "torch.os.system('true')",
    "loading": "torch.load('x')",
    "a hub": "torch.hub.load('x', 'y')",
    "a dictionary": "{'x': x}",
    "await": "await x",
    "yield": "yield x",
    "a global": "global x",
    "a class": "class A: pass",
    "a with that calls": "with open('x') as f:\n  dx = dy",
    "infinity": "x*float('inf')",
    "a complex number": "x*1j",
    "a division by zero": "x/(x - x)",
    "a root of a negative number": "sqrt(-x**2 - 1)*0 + (-1)**0.5",
    "a logarithm of zero": "log(x - x)",
    "bytes": "b'x'",
    "an ellipsis": "...",
    "a bool": "True",
}


IGNORED = {  # what stands around pasted lines says nothing, and is not run either
    "an import": "import os\nfrom subprocess import *\ndx = dy",
    "a decorator": "@print('x')\ndef f(): return dy",
    "a default that calls": "def f(a=print('x')): return dy",
    "a class": "class F(print('x')):\n  y = print('x')\n  def backward(ctx, g): return g",
    "an assertion": "assert print('x')\ndx = dy",
}


@pytest.mark.parametrize("text", IGNORED.values(), ids=IGNORED)
def test_what_stands_around_is_ignored(text):
    assert isinstance(answer(text), Reading)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_formula_is_refused_with_its_place(text):
    error = answer(text)
    assert isinstance(error, NotUnderstood)
    assert error.problem and error.remedy
    assert all(c.isprintable() or c == "\n" for c in str(error))


REAL = {
    "batch_norm": [
        "gain*inv_std*(dy - dy.mean(0) - xhat*(dy*xhat).sum(0, keepdim=True)/(n-1))",
        "gain*inv_std*(dy - Sum(dy, N)/N - xhat*Sum(dy*xhat, N)/(N - 1))",
        "dgain = (dy*xhat).sum(0)\ndbias = dy.sum(0)\ndx = gain*inv_std*(dy - dbias/n)\ndx -= x",
        "dx = (x > 0).float()*torch.where(x > 1e-5, dy, 0.5) + x.var(0, correction=1)",
        "torch.einsum('nd,nd->d', x, dy)[None, :] @ x.T",
    ],
    "softmax_nll": [
        "dloss*(F.softmax(logits, 1) - F.one_hot(labels, C)) / logits.shape[0]",
        "dlogprobs = torch.zeros_like(logprobs)\ndlogprobs[range(n), labels] = -1.0/n",
        "dlogits = probs.clone()\ndlogits[torch.arange(n), labels] -= 1\ndlogits /= n",
        "probs.gather(1, labels[:, None]) - OneHot(ArgMax(logits, C), C)",
    ],
    "linear": ["dy @ weight.T", "x.T @ dy", "x @ x.T @ dy @ weight.T"],
    "mlp": [
        "demb = dembcat.view(emb.shape)\ndC = torch.zeros_like(C)\n"
        "dC.index_put_((contexts,), demb, accumulate=True)",
        "Sum(OneHot(contexts, V)*Unflatten(dembcat, K, into=(T, E)), N, T)",
    ],
}
FORMULAS = [(name, text) for name, texts in REAL.items() for text in texts]
WORDS = {piece for _, text in FORMULAS for piece in text.replace("(", " ( ").split()}
PIECES = [
    *sorted(WORDS),
    *"()[]{}+-*/@=.,:;#'\"\\\n\t ~<>!%^&|0123456789",
    *("**", "//", "==", "+=", "dx", "None", "True", "lambda ", "for ", "if ", "\x1b[0m", "\u2212"),
]


@st.composite
def mutated(draw):
    """A real formula with a few pieces dropped, doubled, exchanged or brought in."""
    name, text = draw(st.sampled_from(FORMULAS))
    for _ in range(draw(st.integers(1, 6))):
        i, j = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        j = min(j, i + 8)
        piece = draw(st.sampled_from(PIECES))
        text = draw(
            st.sampled_from(
                [
                    text[:i] + text[j:],
                    text[:j] + text[i:],
                    text[:i] + piece + text[i:],
                    text[:i] + piece + text[j:],
                    text[:i] + text[i:j][::-1] + text[j:],
                ]
            )
        )
    return name, text


def nested(inner):
    joined = st.sampled_from(["+", "-", "*", "/", "**", "@", "<", "==", "&", ","])
    before = ("(", "-", "torch.exp(", "Sum(", "F.softmax(", "torch.where(x > 0, x, ", "x[")
    after = (")", ".T", ".sum(0)", "[:, None]", ", N)", ".max(1).values", "]")
    return st.one_of(
        st.tuples(inner, joined, inner).map("".join),
        st.tuples(st.sampled_from(before), inner, st.sampled_from(after)).map("".join),
    )


LEAVES = st.sampled_from(["x", "dy", "gain", "n", "2", "0.5", "xhat", "eps", "mean", "N", "-1"])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200))
@example("\x00")
def test_any_text_is_read_or_refused(text):
    answer(text)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_a_mutated_formula_is_read_or_refused(drawn):
    name, text = drawn
    answer(text, name)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(LEAVES, nested, max_leaves=25))
def test_nested_expressions_are_read_or_refused(text):
    answer(text)


ARGUMENTS = st.sampled_from(
    "0 1 -1 2 0.5 n C 1/n True False None x probs labels labels[:,None] range(n) x.shape ... (0,1) "
    "(labels,) () [0] 'nc,nc->n' 'ij' probs.max(1) probs.argmax(1) torch.float32 (x>0) eps "
    "torch.arange(C) counts_sum loss dim=0 keepdim=True dim=(0,1) correction=1 num_classes=C "
    "accumulate=True value=1 src=x dtype=x alpha=2 end_dim=1".replace("x", "logits").split()
)
WORDS_READ = st.sampled_from(sorted({*OPERATIONS, *FILLS, *BUILTINS, *CALLS, "nothing"}))
START = st.sampled_from(
    ["logits", "labels", "probs.max(1)", "n", "torch", "F", "loss", "logits.shape", "(logits > 0)"]
)


FORMS = [
    *("{call}", "{call}.sum(0)", "-{call}", "{call} + logits", "{call} @ {call}", "{call}.T"),
    *("{call}[{index}]", "logits[{index}]", "{call}.shape[0]", "{call} > 0", "logits ** {call}"),
    *("{call} == {call}", "a, b = {call}\na", "a = {call}\na += a\na"),
    "dlogits = logits.clone()\ndlogits[{index}] = {call}",
    "dlogits = logits.clone()\ndlogits[{index}] += {call}",
    "a = logits.clone()\na.{name}({arguments})\na*2",
    "a = {call}\na.{name}({arguments})\ndlogits = a",
    "dloss = {call}\ndlogits = probs*dloss",
]


@st.composite
def calls(draw):
    """A call of anything that is read, of anything, with any arguments, perhaps as a statement."""
    arguments = ", ".join(draw(st.lists(ARGUMENTS, max_size=4)))
    name = draw(WORDS_READ) + draw(st.sampled_from(["", "", "_"]))
    start = draw(st.one_of(START, st.just("")))
    call = f"{start}.{name}({arguments})" if start else f"{name}({arguments})"
    index = ", ".join(draw(st.lists(st.one_of(ARGUMENTS, st.just(":")), min_size=1, max_size=3)))
    form = draw(st.sampled_from(FORMS))
    return form.format(call=call, index=index, name=name, arguments=arguments)


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@example("torch.full(0, 0, 'nc,nc->n')")
@example("binary_cross_entropy(n, 0)")
@given(calls())
def test_any_call_is_read_or_refused(text):
    answer(text, "softmax_nll")


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3))
def test_any_names_of_ones_own_are_taken_or_refused(let):
    answer("dy*gain", let=let)


events: list[str] = []
watching = False
HARMLESS = ("builtins.id", "object.__getattr__", "sys._getframe")


def _listen(event: str, arguments) -> None:
    if watching and event not in HARMLESS:
        events.append(event)


def test_nothing_of_a_text_is_run():
    """An audit hook sees whatever is compiled to run, imported, opened or called in a process."""
    global watching
    sys.addaudithook(_listen)
    for text in REFUSED.values():
        answer(text)  # once before: the modules that messages need are imported
    watching = True
    try:
        for text in REFUSED.values():
            answer(text)
        for name, text in FORMULAS:
            answer(text, name)
        for text in IGNORED.values():
            answer(text)
    finally:
        watching = False
    assert set(events) <= {"compile"}  # ast.parse, which makes a tree and no code
