"""Recurrences that are not linear in the state, beside loops typed by hand: a statement that reads
itself, or a later one, at the place before.
"""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from generating import draw, generated, pages
from sympy import Function, Symbol, symbols

import codegen.driver.lean
from codegen.called.functions import function
from codegen.driver.ranks import generate_of_ranks
from codegen.targets.languages import kernels
from derive import NotationError, QuestionError, check, derive, forward_from

TOLERANCE = 1e-10
HEAD = """from sympy import Eq, oo, Piecewise, exp, log, tanh
from derive import At, Axis, Forward, Given, Input, Label, Max, OneHot, Outputs, Position, Previous
from derive import Broadcast, CumSum, Next, Rename, Scalar, Shift, Sum

N, T, K, H, J = (Axis(name) for name in "NTKHJ")
S, R, C, V = (Axis(name) for name in "SRCV")
D = Axis("D", 3)
FAR = -(10**30)  # below every score


class Recurrent(Forward):
"""
ELMAN = """    x = Input(N, T, K)
    weight_ih = Input(H, K)
    weight_hh = Input(H, J)
    bias = Input(H)
    h0 = Input(N, H, default=0)
    from_input = Sum(x * weight_ih, K) + bias
    h = tanh(from_input + Sum(Rename(Previous(h, T, initial=h0), H, J) * weight_hh, J))
"""
RELU = """    x = Input(N, T, H)
    w = Input(H, J)
    v = Input(C, H)
    h = Max(x + Sum(Rename(Previous(h, T), H, J) * w, J), 0)
    y = Sum(h * v, H)
"""
GRU = """    r_in = Input(N, T, H)
    z_in = Input(N, T, H)
    n_in = Input(N, T, H)
    h0 = Input(N, H)
    w_r = Input(H, J)
    w_z = Input(H, J)
    w_n = Input(H, J)
    before = Previous(h, T, initial=h0)
    along = Rename(before, H, J)
    r = 1 / (1 + exp(-r_in - Sum(w_r * along, J)))
    z = 1 / (1 + exp(-z_in - Sum(w_z * along, J)))
    n = tanh(n_in + r * Sum(w_n * along, J))
    h = (1 - z) * n + z * before
"""
LSTM = """    pre = Input(N, T, H)
    w = Input(H, J)
    u = Input(H, J)
    h0 = Input(N, H)
    c0 = Input(N, H)
    along = Rename(Previous(h, T, initial=h0), H, J)
    gate = 1 / (1 + exp(-pre - Sum(w * along, J)))
    c = gate * Previous(c, T, initial=c0) + (1 - gate) * tanh(pre + Sum(u * along, J))
    h = gate * tanh(c)
    outputs = Outputs(h, c)
"""
DELTA = """    q = Input(N, T, K)
    k = Input(N, T, K)
    v = Input(N, T, V)
    beta = Input(N, T)
    before = Previous(state, T)
    state = before + beta * k * (v - Sum(before * k, K))
    y = Sum(state * q, K)
"""
LEAKY = """    x = Input(N, T)
    leak = Input()
    u = leak * Previous(u, T) * (1 - tanh(Previous(u, T))) + x
    y = Sum(u**2, T)
"""
MOMENTUM = """    A = Input(H, J)
    noise = Input(T, H)
    w0 = Input(H)
    rate = Scalar(0.1)
    mu = Scalar(0.9)
    before = Previous(w, T, initial=w0)
    slope = Sum(A * Rename(before, H, J), J) + noise
    m = mu * Previous(m, T) + slope
    w = before - rate * m
    loss = Sum(w**2, T, H)
"""
MASKED = """    x = Input(N, T, H)
    mask = Given(N, T)
    w = Input(H, J)
    h0 = Input(N, H)
    before = Previous(h, T, initial=h0)
    new = tanh(x + Sum(w * Rename(before, H, J), J))
    h = Piecewise((new, mask > 0), (before, True))
"""
HMM = """    start = Input(S)
    change = Input(R, S)
    emitted = Input(N, T, S)
    mask = Given(N, T)
    before = Previous(alpha, T, initial=start)
    new = log(Sum(exp(Rename(before, S, R) + change), R)) + emitted
    alpha = Piecewise((new, mask > 0), (before, True))
    last = Sum(Piecewise((alpha, Eq(Position(T), T - 1)), (0, True)), T)
    y = log(Sum(exp(last), S))
"""
VITERBI = """    start = Input(S)
    change = Input(R, S)
    emitted = Input(N, T, S)
    best = Max(Rename(Previous(best, T, initial=start), S, R) + change, R) + emitted
    y = Max(Sum(Piecewise((best, Eq(Position(T), T - 1)), (0, True)), T), S)
"""
CTC = """    logp = Input(T, N, C)
    extended = Label(N, S)  # the labels with blanks between them
    allowed = Given(N, S, D)  # 1 where a path may come from D places before
    start = Given(N, S)  # 0 at the first place, far below 0 elsewhere
    ends = Given(N, S)  # 1 where a path may end
    length = Given(N)
    before = At(Previous(alpha, T, initial=start), S, Position(S) - Position(D))
    paths = Piecewise((before, allowed > 0), (FAR, True))
    alpha = log(Sum(exp(paths), D)) + Sum(OneHot(extended, C) * logp, C)
    last = Sum(Piecewise((alpha, Eq(Position(T) + 1, length)), (0, True)), T)
    loss = -log(Sum(exp(Piecewise((last, ends > 0), (FAR, True))), S))
"""
ALTERNATING = """    x = Input(N, T)
    a = tanh(x + Previous(b, T))
    b = x * Previous(a, T, initial=1)
    y = a + b
"""
TWO_BACK = """    x = Input(N, T)
    one = Previous(h, T, initial=1)
    two = Previous(one, T)
    h = tanh(x + one * two)
"""
BEFORE_AND_BEHIND = """    x = Input(N, T)
    w = Input(T)
    total = CumSum(x, T) * w
    h = tanh(total + Previous(h, T) ** 2)
    y = Sum(Next(h, T) * h, T)
"""


def over(step, count, *states):
    """The states that ``step(t, *states)`` makes of one another, along dimension 1."""
    found = []
    for t in range(count):
        states = step(t, *states)
        found.append(states)
    return [torch.stack(each, 1) for each in zip(*found, strict=True)]


def elman(x, w, u, b, h0):
    return over(lambda t, h: (torch.tanh(x[:, t] @ w.T + b + h @ u.T),), x.shape[1], h0)[0]


def relu(x, w, v):
    zero = torch.zeros_like(x[:, 0])
    return over(lambda t, h: ((x[:, t] + h @ w.T).relu(),), x.shape[1], zero)[0] @ v.T


def gru(r_in, z_in, n_in, h0, w_r, w_z, w_n):
    def step(t, h):
        r = torch.sigmoid(r_in[:, t] + h @ w_r.T)
        z = torch.sigmoid(z_in[:, t] + h @ w_z.T)
        n = torch.tanh(n_in[:, t] + r * (h @ w_n.T))
        return ((1 - z) * n + z * h,)

    return over(step, r_in.shape[1], h0)[0]


def lstm(pre, w, u, h0, c0):
    def step(t, h, c):
        gate = torch.sigmoid(pre[:, t] + h @ w.T)
        c = gate * c + (1 - gate) * torch.tanh(pre[:, t] + h @ u.T)
        return gate * torch.tanh(c), c

    return tuple(over(step, pre.shape[1], h0, c0))


def delta(q, k, v, beta):
    def step(t, state):
        read = torch.einsum("nkv,nk->nv", state, k[:, t])
        write = beta[:, t, None] * (v[:, t] - read)
        return (state + k[:, t, :, None] * write[:, None],)

    zero = k.new_zeros(*k[:, 0].shape, v.shape[-1])
    return torch.einsum("ntkv,ntk->ntv", over(step, k.shape[1], zero)[0], q)


def leaky(x, leak):
    zero = torch.zeros_like(x[:, 0])
    u = over(lambda t, u: (leak * u * (1 - torch.tanh(u)) + x[:, t],), x.shape[1], zero)[0]
    return (u**2).sum(1)


def momentum(a, noise, w0):
    w, m, loss = w0, torch.zeros_like(w0), 0.0
    for each in noise:
        m = 0.9 * m + a @ w + each
        w = w - 0.1 * m
        loss = loss + (w**2).sum()
    return loss


def masked(x, mask, w, h0):
    def step(t, h):
        return (torch.where(mask[:, t, None] > 0, torch.tanh(x[:, t] + h @ w.T), h),)

    return over(step, x.shape[1], h0)[0]


def hmm(start, change, emitted, mask):
    def step(t, alpha):
        new = (alpha[:, :, None] + change).logsumexp(1) + emitted[:, t]
        return (torch.where(mask[:, t, None] > 0, new, alpha),)

    first = start.expand(emitted.shape[0], -1)
    return over(step, emitted.shape[1], first)[0][:, -1].logsumexp(1)


def viterbi(start, change, emitted):
    def step(t, best):
        return ((best[:, :, None] + change).max(1).values + emitted[:, t],)

    first = start.expand(emitted.shape[0], -1)
    return over(step, emitted.shape[1], first)[0][:, -1].max(1).values


def alternating(x):
    def step(t, a, b):
        return torch.tanh(x[:, t] + b), x[:, t] * a

    ones = torch.ones_like(x[:, 0])
    return sum(over(step, x.shape[1], ones, 0 * ones))


def two_back(x):
    def step(t, one, two):
        return torch.tanh(x[:, t] + one * two), one

    ones = torch.ones_like(x[:, 0])
    return over(step, x.shape[1], ones, 0 * ones)[0]


def before_and_behind(x, w):
    total = x.cumsum(1) * w
    zero = torch.zeros_like(x[:, 0])
    h = over(lambda t, h: (torch.tanh(total[:, t] + h**2),), x.shape[1], zero)[0]
    return (h[:, 1:] * h[:, :-1]).sum(1)


X = draw(3, 5, 2)
MASK = (draw(3, 5, seed=3) > -0.5).double()
CASES = {
    "elman": (ELMAN, elman, draw(3, 5, 4), draw(2, 4), draw(2, 2), draw(2), draw(3, 2)),
    "relu": (RELU, relu, X, draw(2, 2), draw(4, 2)),
    "gru": (GRU, gru, X, X.cos(), X.sin(), draw(3, 2), *(draw(2, 2, seed=i) for i in range(3))),
    "lstm": (LSTM, lstm, X, draw(2, 2), draw(2, 2, seed=1), draw(3, 2), draw(3, 2, seed=1)),
    "delta rule": (DELTA, delta, X, X.cos(), draw(3, 5, 4), draw(3, 5).sigmoid()),
    "leaky": (LEAKY, leaky, draw(3, 5), torch.tensor(0.7)),
    "momentum": (MOMENTUM, momentum, draw(3, 3), draw(5, 3), draw(3)),
    "masked": (MASKED, masked, X, MASK, draw(2, 2), draw(3, 2)),
    "hmm": (HMM, hmm, draw(2), draw(2, 2), X, MASK),
    "viterbi": (VITERBI, viterbi, draw(2), draw(2, 2), X),
    "alternating": (ALTERNATING, alternating, draw(3, 5)),
    "two back": (TWO_BACK, two_back, draw(3, 5)),
    "before and behind": (BEFORE_AND_BEHIND, before_and_behind, draw(3, 5), draw(5)),
}
GIVEN = {"masked": 1, "hmm": 3}  # which of the inputs has no gradient


def file_of(folder, body: str) -> Path:
    file = folder / "recurrent.py"
    file.write_text(HEAD + body, encoding="utf-8")
    return file


def assert_as_typed(ours, reference, inputs, given=None):
    """Outputs and gradients, in float64."""

    def run(function):
        leaves = [t.double().clone().requires_grad_(i != given) for i, t in enumerate(inputs)]
        outputs = function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        ups = [draw(max(o.numel(), 1), seed=7 + i).reshape(o.shape) for i, o in enumerate(outputs)]
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        return [*outputs, *torch.autograd.grad(outputs, wanted, ups)]

    for one, other in zip(run(ours), run(reference), strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=TOLERANCE, atol=TOLERANCE)


LEFT_TO_RIGHT = """    emit = Input(T, S)
    stay = Input(S)
    move = Input(S)
    before = Previous(alpha, T, initial=FAR)
    came = log(exp(before + stay) + exp(Shift(before, S, 1, fill=FAR) + move))
    place = Position(S) + Broadcast(Position(T), S)
    alpha = Piecewise((0, Eq(place, 0)), (came, True)) + emit
"""
LONGEST = LEFT_TO_RIGHT.replace(
    "log(exp(before + stay) + exp(Shift(before, S, 1, fill=FAR) + move))",
    "Max(before + stay, Shift(before, S, 1, fill=FAR) + move)",
)


def left_to_right(join):
    def reached(emit, stay, move):
        """The states in reach alone: there is no path to the others."""
        row = [emit[0, 0]]
        for t in range(1, len(emit)):
            paths = [[r + stay[s]] for s, r in enumerate(row)] + [[]]
            for s, r in enumerate(row):
                paths[s + 1].append(r + move[s + 1])
            row = [join(torch.stack(p), 0) + e for p, e in zip(paths, emit[t], strict=False)]
        return torch.stack(row)

    return reached


@pytest.mark.parametrize(
    ("body", "join"), [(LEFT_TO_RIGHT, torch.logsumexp), (LONGEST, torch.amax)]
)
def test_a_state_that_starts_below_every_score_is_compared_where_autograd_has_numbers(
    body, join, tmp_path
):
    ours, _, result = generated(file_of(tmp_path, body), tmp_path)
    inputs = draw(4, 4), draw(4, seed=1), draw(4, seed=2)
    assert_as_typed(lambda *own: ours(*own)[-1], left_to_right(join), inputs)
    definition, program, text = result.proved.definition, result.program, result.text
    largest_difference = codegen.driver.lean.Runs().largest_difference
    assert text.count("1e+30") > 1 and largest_difference(text, definition, program) < TOLERANCE
    for right, wrong in (("1e+30", "1e+999"), (" + stay\n", " - 9 * stay\n")):
        assert right in text
        broken = text.replace(right, wrong)
        assert largest_difference(broken, definition, program) > TOLERANCE, wrong


@pytest.mark.parametrize("name", CASES)
def test_a_recurrence_is_the_loop_and_its_gradients_autograds(name, tmp_path):
    body, reference, *inputs = CASES[name]
    ours, _, result = generated(file_of(tmp_path, body), tmp_path)
    assert_as_typed(ours, reference, inputs, GIVEN.get(name))
    assert result.proved.every_size == (name != "viterbi")
    assert "by induction from place to place" in result.proved.summary


LEAN = ("elman", "lstm", "viterbi", "before and behind")


@pytest.mark.parametrize(
    "name", [n if n in LEAN else pytest.param(n, marks=pytest.mark.thorough) for n in CASES]
)
def test_a_lean_recurrence_is_the_loop_and_its_gradients_autograds(name, tmp_path):
    body, reference, *inputs = CASES[name]
    lean, given = function(forward_from(file_of(tmp_path, body))).derive(), GIVEN.get(name)
    assert_as_typed(lean, reference, inputs, given)

    def first(of):
        def gradients(*leaves):
            outputs = of(*leaves)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            loss = sum((o**3).sum() for o in outputs)
            found = torch.autograd.grad(loss, wanted, create_graph=True)
            return sum((g**2).sum() for g in found)

        return gradients

    assert_as_typed(first(lean), first(reference), inputs, given)


def test_one_that_starts_below_every_score_and_reads_its_place_is_lean(tmp_path):
    lean = codegen.driver.lean.generate(forward_from(file_of(tmp_path, LEFT_TO_RIGHT)))
    assert lean.text.count("1e+30") > 1 and lean.largest_difference < TOLERANCE


def paths_of(labels, lengths):
    """What the class body of CTC is given, of labels from 1 on with 0 for the blank."""
    count, longest = labels.shape
    extended = torch.zeros(count, 2 * longest + 1, dtype=torch.long)
    extended[:, 1::2] = labels
    allowed = torch.ones(*extended.shape, 3)
    allowed[:, 0, 1:] = allowed[:, 1, 2:] = 0
    skips = (extended[:, 2:] != 0) & (extended[:, 2:] != extended[:, :-2])
    allowed[:, 2:, 2] = skips.float()
    start = torch.full(extended.shape, -1e30)
    start[:, 0] = 0
    places = torch.arange(extended.shape[1])
    ends = (places == 2 * lengths[:, None]) | (places == 2 * lengths[:, None] - 1)
    return extended, allowed.double(), start.double(), ends.double()


def test_ctc_by_its_recurrence_is_torchs(tmp_path):
    labels = torch.tensor([[1, 1, 2], [3, 2, 1], [2, 0, 0]])
    lengths, times = torch.tensor([3, 3, 1]), torch.tensor([9, 7, 4])
    extended, allowed, start, ends = paths_of(labels, lengths)
    allowed[:, 1, 1] = 1
    ours, _, result = generated(file_of(tmp_path, CTC), tmp_path)

    def own(logits):
        logp = logits.log_softmax(-1)
        return ours(logp, extended, allowed, start, ends, times.double())

    def torchs(logits):
        return F.ctc_loss(logits.log_softmax(-1), labels, times, lengths, reduction="none")

    assert_as_typed(own, torchs, [draw(9, 3, 4)])
    assert result.proved.every_size
    assert "one_hot" not in result.text


STEPPED = """

class Layers(Forward):
    x = Input(N, T, H)
    w1 = Input(H, J)
    w2 = Input(H, J)
    first = Recurrent(x, w1)
    second = Recurrent(first, w2)
    y = Sum(first * second, T)
"""
CORE = """    x = Input(N, T, H)
    w = Input(H, J)
    h0 = Input(N, H, default=0)
    before = Previous(h, T, initial=h0)
    h = tanh(x + Sum(Rename(before, H, J) * w, J))
    y = before + x
"""


def test_a_recurrence_is_called_twice_in_another_forward(tmp_path):
    file = file_of(tmp_path, CORE + STEPPED)
    ours, _, _ = generated(f"{file}:Layers", tmp_path)

    def layers(x, w1, w2):
        zero = torch.zeros_like(x[:, 0])

        def step(t, h1, h2):
            y1 = h1 + x[:, t]
            found.append(y1 * (h2 + y1))
            return torch.tanh(x[:, t] + h1 @ w1.T), torch.tanh(y1 + h2 @ w2.T)

        found = []
        over(step, x.shape[1], zero, zero)
        return sum(found)

    assert_as_typed(ours, layers, [X, draw(2, 2), draw(2, 2, seed=1)])


def test_both_outputs_of_a_recurrence_are_taken_by_another_forward(tmp_path):
    body = """

class Both(Forward):
    pre = Input(N, T, H)
    w = Input(H, J)
    u = Input(H, J)
    h0 = Input(N, H)
    c0 = Input(N, H)
    h, c = Recurrent(pre, w, u, h0, c0)
    y = Sum(h * c, T)
"""
    ours, _, _ = generated(f"{file_of(tmp_path, LSTM + body)}:Both", tmp_path)

    def both(*inputs):
        h, c = lstm(*inputs)
        return (h * c).sum(1)

    assert_as_typed(ours, both, CASES["lstm"][2:])


OVER_TIME = """from derive import Axis, Forward, Input, Previous
from derive.math.gru_cell import GRUCell

N, T, K, H, P = (Axis(name) for name in "NTKHP")


class Recurrent(Forward):
    x = Input(N, T, K)
    h0 = Input(N, H)
    weight_ih = Input(P, K)
    weight_hh = Input(P, H)
    bias_ih = Input(P)
    bias_hh = Input(P)
    h = GRUCell(x, Previous(h, T, initial=h0), weight_ih, weight_hh, bias_ih, bias_hh)
"""


def test_a_cell_of_the_gallery_over_time_is_torchs_layer(tmp_path):
    file = tmp_path / "over_time.py"
    file.write_text(OVER_TIME, encoding="utf-8")
    ours, _, _ = generated(file, tmp_path)
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")

    def torchs(x, h0, *weights):
        layer = torch.nn.GRU(4, 2, batch_first=True, dtype=x.dtype)
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, given, (x, h0[None]))[0]

    weights = [draw(6, 4), draw(6, 2), draw(6), draw(6, seed=1)]
    assert_as_typed(ours, torchs, [draw(3, 5, 4), draw(3, 2), *weights])


def test_its_second_derivatives_are_autograds(tmp_path):
    ours, *_ = generated(file_of(tmp_path, ELMAN), tmp_path)
    inputs = [t.double().requires_grad_() for t in CASES["elman"][2:]]
    torch.autograd.gradgradcheck(ours, inputs)


def test_any_step_is_tied_together_by_the_chain_rule():
    """The theorem that the proof rests on, for a step that nothing is known of: SymPy's derivative
    of three steps in one another is what comes back from place to place.
    """
    step, x, w, h0, up = Function("f"), symbols("x:3"), Symbol("w"), Symbol("h0"), symbols("g:3")
    states = [h0]
    for t in range(3):
        states.append(step(states[t], x[t], w))
    whole = sum(u * h for u, h in zip(up, states[1:], strict=True))
    back, found = 0, {"w": 0}
    for t in reversed(range(3)):
        arrives = up[t] + back  # dh + dh_after
        by_before, by_x, by_w = (states[t + 1].fdiff(k).doit() for k in (1, 2, 3))
        found |= {x[t]: arrives * by_x, "w": found["w"] + arrives * by_w}
        back = arrives * by_before  # dh_before
    expected = {v: whole.diff(v).doit() for v in (*x, w, h0)}
    found = {**found, w: found.pop("w"), h0: back}
    assert all((expected[v] - found[v]).doit().expand() == 0 for v in expected)


def test_a_claim_about_it_is_checked_and_its_pages_say_how_it_is_tied(tmp_path):
    file = file_of(tmp_path, ELMAN)
    assert check(file, "dbias = Sum((1 - h**2)*(dh + dh_after), N, T)").right
    assert not check(file, "dbias = Sum((1 - h**2)*dh, N, T)").right
    found = pages(derive(file))
    assert "dh_after = next[T](dh_before)" in " ".join(found["text"].split())
    assert "dh_initial = dh_before[T = 0]" in " ".join(found["text"].split())
    assert "h_before = previous[T](h_after, h_initial)" in " ".join(found["text"].split())
    assert all("before" in page for page in found.values())


def test_what_is_around_a_recurrence_has_kernels_and_no_axis_is_split(tmp_path):
    forward = forward_from(file_of(tmp_path, ELMAN))
    assert codegen.driver.lean.generate(forward, kernels=kernels["cpp"]).kernels
    with pytest.raises(QuestionError, match="has a recurrence: its axes are not split"):
        generate_of_ranks(forward, ["N"])


REFUSED = {
    "x = Input(N, T); h = tanh(x + Previous(h, T) + h)": "read it as Previous",
    "x = Input(T, S); h = tanh(x + Previous(h, T) + Previous(h, S))": "along one axis",
    "x = Input(N, T); g = CumSum(Previous(h, T), T); h = tanh(x + g)": "several of them together",
    "x = Input(N, T); g = Sum(Rename(Previous(h, T), T, S), S); h = tanh(x + g)": "several of them",
    "x = Input(N, T); h = Sum(x + Previous(h, T), T)": "has not all the axes",
    "x = Input(N, T); h = log(exp(x) + exp(Previous(h, T, initial=-oo)))": r"-10\*\*30",
    "x = Input(N, T, S); a = Piecewise((0, Eq(Position(S), 0)), (-oo, True)); "
    "h = log(exp(x) + exp(Previous(h, T, initial=a)))": r"-10\*\*30",
    "x = Input(N, T); y = x * Previous(z, T)": "z is unknown",
    "x = Input(N, T); y = x + h; h = tanh(x + Previous(h, T))": "defined only on line",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_recurrence_is_refused_with_the_remedy(body, tmp_path):
    lines = "".join(f"    {line.strip()}\n" for line in body.split(";"))
    with pytest.raises(NotationError, match=REFUSED[body]):
        forward_from(file_of(tmp_path, lines))


def test_no_place_to_go_along_is_refused(tmp_path):
    ours, _, _ = generated(file_of(tmp_path, ELMAN), tmp_path)
    with pytest.raises(ValueError, match="T"):
        ours(*(t[:, :0] if t.dim() == 3 else t for t in CASES["elman"][2:]))
