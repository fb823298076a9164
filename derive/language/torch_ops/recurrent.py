"""Cells of recurrent networks."""

from __future__ import annotations

from derive.language.torch_ops.formulas import sigmoid, tanh, where
from derive.language.torch_ops.norms import equal_parts
from derive.language.torch_ops.products import linear
from derive.language.torch_ops.table import FLOAT, Tensor, Tensors, op

GATES_OF_GRU, GATES_OF_LSTM = 3, 4  # blocks of rows in a weight


def plus(x, y):
    return x + y


def _both(a, input, hx, weights):
    """The input's and the state's linear terms."""
    w_ih, w_hh, b_ih, b_hh = weights
    return linear(a, input, w_ih, b_ih), linear(a, hx, w_hh, b_hh)


@op("rnn_tanh_cell", forms="torch", called="h", of=FLOAT)
def _tanh_cell(a, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
               b_ih: Tensor | None = None, b_hh: Tensor | None = None):  # fmt: skip
    whole = a.each(plus, *_both(a, input, hx, (w_ih, w_hh, b_ih, b_hh)))
    return a.each(tanh, whole)


@op("rnn_relu_cell", forms="torch", called="h", of=FLOAT)
def _relu_cell(a, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
               b_ih: Tensor | None = None, b_hh: Tensor | None = None):  # fmt: skip
    whole = a.each(plus, *_both(a, input, hx, (w_ih, w_hh, b_ih, b_hh)))
    return a.each(lambda u: where(u <= 0, 0, u), a.let("u", whole))


@op("gru_cell", forms="torch", called="h", of=FLOAT)
def _gru_cell(a, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor,
              b_ih: Tensor | None = None, b_hh: Tensor | None = None):  # fmt: skip
    """As in torch, the reset gate multiplies the state's term including its bias."""
    whole = _both(a, input, hx, (w_ih, w_hh, b_ih, b_hh))
    names = "from_input", "from_state"
    (r, z, n), (p, q, s) = (
        equal_parts(a, a.let(name, u), u.rank - 1, GATES_OF_GRU)
        for name, u in zip(names, whole, strict=True)
    )
    reset, update = (
        a.let(name, a.each(sigmoid, a.each(plus, u, v)))
        for name, u, v in (("reset", r, p), ("update", z, q))
    )
    inner = a.each(lambda u, g, v: u + g * v, n, reset, s)
    new = a.let("new", a.each(tanh, inner))
    return a.each(lambda z, n, h: (1 - z) * n + z * h, update, new, hx)


@op("lstm_cell", forms="torch", called="h", of=FLOAT)
def _lstm_cell(a, input: Tensor, hx: Tensors, w_ih: Tensor, w_hh: Tensor,
               b_ih: Tensor | None = None, b_hh: Tensor | None = None):  # fmt: skip
    if len(hx) != 2:
        a.refuse(f"a state of {len(hx)} tensors", "write (h, c)")
    h, c = hx
    whole = a.let("gates", a.each(plus, *_both(a, input, h, (w_ih, w_hh, b_ih, b_hh))))
    names = ("enter", "forget", "candidate", "leave")
    functions = (sigmoid, sigmoid, tanh, sigmoid)
    enter, forget, candidate, leave = (
        a.let(name, a.each(f, part))
        for name, f, part in zip(
            names, functions, equal_parts(a, whole, whole.rank - 1, GATES_OF_LSTM), strict=True
        )
    )
    kept = lambda f, c, i, g: f * c + i * g  # noqa: E731
    cell = a.let("cell", a.each(kept, forget, c, enter, candidate))
    return a.each(lambda o, c: o * tanh(c), leave, cell), cell
