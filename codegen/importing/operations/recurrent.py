"""Cells of recurrent networks, and weights that are normalized."""

from __future__ import annotations

from functools import partial

from codegen.importing.operations.pointwise import relu, sigmoid, sqrt
from codegen.importing.operations.products import linear
from codegen.importing.operations.table import rule
from derive.torch_ops import trees
from derive.torch_ops.trees import ONE

TANH = partial(trees.call, "tanh")
GATES_OF_GRU, GATES_OF_LSTM = 3, 4  # blocks of rows of a weight


def blocks(r, u, count: int, name: str) -> list:
    """The parts of what all gates compute at once."""
    u = r.let(name, u)
    return [r.part(u, 1, count, k) for k in range(count)]


def both(r, input, hx, weights):
    """What comes from the input and from the state."""
    w_ih, w_hh, b_ih, b_hh = weights
    return linear(r, input, w_ih, b_ih), linear(r, hx, w_hh, b_hh)


@rule("rnn_tanh_cell", called="h")
def _tanh_cell(r, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Long: torch\'s arguments."""
    u, v = both(r, x, hx, (w_ih, w_hh, b_ih, b_hh))
    return r.pointwise(TANH, r.sum_like(trees.sum_of, u, v))


@rule("rnn_relu_cell", called="h")
def _relu_cell(r, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Long: torch\'s arguments."""
    u, v = both(r, x, hx, (w_ih, w_hh, b_ih, b_hh))
    return r.pointwise(relu, r.let("u", r.sum_like(trees.sum_of, u, v)))


@rule("gru_cell", called="h")
def _gru_cell(r, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """torch's: the reset gate stands before the bias of the state.

    Long: torch's arguments.
    """
    u, v = both(r, x, hx, (w_ih, w_hh, b_ih, b_hh))
    of_input, of_state = (
        blocks(r, w, GATES_OF_GRU, n) for w, n in ((u, "from_input"), (v, "from_state"))
    )
    gates = [r.sum_like(trees.sum_of, a, b) for a, b in zip(of_input, of_state, strict=True)]
    reset = r.let("reset", r.pointwise(sigmoid, gates[0]))
    update = r.let("update", r.pointwise(sigmoid, gates[1]))
    inner = r.sum_like(trees.sum_of, of_input[2], r.pointwise(trees.product, reset, of_state[2]))
    new = r.let("new", r.pointwise(TANH, inner))
    kept = r.pointwise(trees.product, update, hx)
    fresh = r.pointwise(lambda z, n: trees.product(trees.difference(ONE, z), n), update, new)
    return r.sum_like(trees.sum_of, fresh, kept)


@rule("lstm_cell", called="h")
def _lstm_cell(r, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Long: torch\'s arguments."""
    h, c = hx
    u, v = both(r, x, h, (w_ih, w_hh, b_ih, b_hh))
    parts = blocks(r, r.sum_like(trees.sum_of, u, v), GATES_OF_LSTM, "gates")
    names = ("enter", "forget", "candidate", "leave")
    functions = (sigmoid, sigmoid, TANH, sigmoid)
    enter, forget, candidate, leave = (
        r.let(name, r.pointwise(f, part))
        for name, f, part in zip(names, functions, parts, strict=True)
    )
    kept = r.pointwise(trees.product, forget, c)
    cell = r.let(
        "cell",
        r.sum_like(trees.sum_of, kept, r.pointwise(trees.product, enter, candidate)),
    )
    return [r.pointwise(trees.product, leave, r.pointwise(TANH, cell)), cell]


@rule("_weight_norm", called="weight")
def _weight_norm(r, v, g, dim=0):
    others = [i for i in range(v.rank) if i != dim % v.rank]
    norm = r.pointwise(sqrt, r.sum(r.pointwise(trees.square, v), others, keepdim=True))
    return r.pointwise(lambda v, g, n: trees.quotient(trees.product(g, v), n), v, g, norm)
