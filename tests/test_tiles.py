"""Kernels of tiles on Triton's interpreter, beside autograd through the statements in float64."""

import os
from types import SimpleNamespace

import pytest
import torch
from forwards import HEAD

from codegen.chunking import ChunkedAxis, chunked
from codegen.commands.cli import main
from codegen.driver.ranks import generate_of_ranks
from codegen.files.loading import loaded
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.target import whole_program
from codegen.targets.torch.taken import taken
from codegen.tiles import TILES
from derive import forward_from
from derive.derivation import closed_form_of
from derive.language.errors import QuestionError
from derive.proof.proving.proved import Proved
from derive.running.command import DONE, NOT_UNDERSTOOD

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") != "1", reason="not interpreted: see make test-triton"
    ),
]
AXES = """\
from derive import Axes, Outputs
from derive.math.softmax import MaskedSoftmax, Softmax

B, G = Axis("B"), Axis("G")
T, S, E, F = Axis("T"), Axis("S"), Axis("E"), Axis("F")
D, V = Axis("D"), Axis("V")
"""
HOW = (  # dtypes, how near, entries of a tile
    *((torch.float64, 1e-12, 1), (torch.float32, 1e-5, 4), (torch.float32, 1e-5, None)),
    *((torch.float16, 1e-2, 4), (torch.bfloat16, 5e-2, 4)),
)
SIZES = {
    "B": 2,
    "H": 2,
    "G": 3,
    "T": 5,
    "S": 7,
    "E": 3,
    "F": 2,
    "N": 6,
    "C": 5,
    "K": 3,
    "D": 5,
    "V": 7,
}
OPERANDS = """
    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, F)
"""
OF_HEADS = """
    query = Input(B, H, T, E)
    key = Input(B, H, S, E)
    value = Input(B, H, S, F)
"""
PRODUCT = """
    scores = Sum(query * key, E) / sqrt(E)
"""
CAUSAL = """
    counts = Piecewise((exp(scores), Position(S) <= Position(T)), (0, True))
    probs = counts / Sum(counts, S)
    y = Sum(probs * value, S)
"""
SOFTMAX = """
    probs = Softmax(scores)
    y = Sum(probs * value, S)
"""
MANY = {
    "causal, grouped queries, soft cap": """
    query = Input(B, H, G, T, E)
    key = Input(B, H, S, E)
    value = Input(B, H, S, F)
    cap = Scalar(2)
    scores = cap * tanh(Sum(query * key, E) / cap)
"""
    + CAUSAL,
    "a window, with slopes that learn": OF_HEADS
    + """
    slope = Input(H)
    window = Scalar(2.5)
    far = Broadcast(Position(T), S) - Broadcast(Position(S), T)
    scores = Sum(query * key, E) - slope * far
    near = Piecewise(
        (scores, (Position(S) <= Position(T) + 1) & (Position(T) < Position(S) + window)),
        (-oo, True),
    )
    probs = Softmax(near)
    y = Sum(probs * value, S)
""",
    "norms of queries and keys, a bias of all examples, two outputs": OPERANDS
    + """
    gain = Input(E)
    bias = Input(T, S)
    q = query / sqrt(Sum(query**2, E) + 1) * gain
    k = key / sqrt(Sum(key**2, E) + 1)
    scores = Sum(q * k, E) + Broadcast(bias, B)
    lse = log(Sum(exp(scores), S))
    probs = exp(scores - lse)
    y = Sum(probs * value, S)
    outputs = Outputs(y, lse)
""",
}
ONE_EACH = {
    "plain": OPERANDS + PRODUCT + SOFTMAX,
    "causal": OPERANDS + PRODUCT + CAUSAL,
    "bias": OPERANDS
    + "    bias = Input(B, T, S)\n"
    + """
    scores = Sum(query * key, E) + bias
    mask = Piecewise((1, bias > -oo), (0, True))
    probs = MaskedSoftmax(scores, mask)
    y = Sum(probs * value, S)
""",
    "documents": OPERANDS
    + """
    first = Given(B, T)
    second = Given(B, S)
"""
    + PRODUCT
    + """
    mask = Piecewise((1, Eq(first, second)), (0, True))
    probs = MaskedSoftmax(scores, mask)
    y = Sum(probs * value, S)
""",
    "sinks": OF_HEADS
    + "    sink = Input(H)\n"
    + PRODUCT
    + """
    counts = exp(scores)
    probs = counts / (exp(sink) + Sum(counts, S))
    y = Sum(probs * value, S)
""",
    "squares of probabilities": OPERANDS
    + PRODUCT
    + """
    probs = Softmax(scores)
    y = Sum(probs**2 * value, S)
""",
}


OF_ROWS = """
    left = Input(N, D)
    right = Input(V, D)
    products = Sum(left * right, D)
"""
LOSSES = {
    "labels, of which some are ignored, capped": OF_ROWS
    + """
    labels = Label(N, ignored=-100)
    logits = 2 * tanh(products / 2)
    losses = log(Sum(exp(logits), V)) - Sum(OneHot(labels, V) * logits, V)
    loss = Sum(Kept(labels) * losses, N) / Sum(Kept(labels), N)
""",
    "pairs, right or wrong": OF_ROWS
    + """
    sign = Piecewise((1, Eq(Position(N), Position(V))), (-1, True))
    loss = Sum(Sum(log(1 + exp(-sign * products)), V), N) / N
""",
    "the error of an average": OF_ROWS
    + """
    value = Input(V, F)
    target = Given(N, F)
    y = Sum(Softmax(products) * value, V)
    loss = Sum(Sum((y - target) ** 2, F), N) / N
""",
    "distances, a value for each row": OF_ROWS
    + """
    far = Sum(left**2, D) + Sum(right**2, D) - 2 * products
    y = log(Sum(exp(-far), V))
""",
}


def of_forward(body, tmp_path, axis="S"):
    """The module of a forward in tiles, not proved, and its definition."""
    from codegen.targets.triton.tiled import tiled_text

    file = tmp_path / "own.py"
    file.write_text(f"{HEAD}{AXES}\n\nclass Own(Forward):\n{body}", encoding="utf-8")
    forward = forward_from(file)
    definition = forward.definition
    program = whole_program(forward, Proved(closed_form_of(definition), (), (), ""))
    walk = ChunkedAxis(axis, apart=True)
    in_chunks = chunked(program, walk, "own_tiles", "OwnTiles")
    text = tiled_text(in_chunks, Outside(definition))
    return SimpleNamespace(
        module=loaded(text, "own_tiles"), definition=definition, program=program, text=text
    )


def drawn(own, dtype, sizes=SIZES):
    torch.manual_seed(0)
    found = {}
    for tensor in own.definition.arguments:
        shape = [sizes[axis.name] for axis in tensor.home]
        found[tensor.name] = torch.randn(shape, dtype=torch.float64).to(dtype)
    for name in {"first", "second"} & {*found}:
        found[name] = torch.randint(3, found[name].shape).to(dtype)
    if "labels" in found:
        found["labels"] = torch.tensor([3, -100, 0, 6, 2, -100])
    if "bias" in found and found["bias"].dim() == 3:
        found["bias"][:, 1] = -torch.inf
    return found


def largest_gap(own, arguments, chunk):
    """The largest difference of outputs and gradients from autograd in float64."""
    inputs = [t.name for t in own.definition.inputs if t.role == "input"]
    mine = {n: v.clone().requires_grad_(n in inputs) for n, v in arguments.items()}
    wide = {n: v.double() if v.is_floating_point() else v for n, v in arguments.items()}
    exact = {n: v.requires_grad_(n in inputs) for n, v in wide.items()}
    numbers = {t.name: number for t, number in own.definition.scalars}
    values = taken(own.definition, {**exact, **numbers})
    expected = [values[name] for name in own.program.outputs]
    found = own.module.own_tiles(**mine, **numbers, chunk=chunk)
    found = [found] if isinstance(found, torch.Tensor) else [*found]
    upstreams = [torch.randn(y.shape, dtype=torch.float64) for y in expected]
    wanted = torch.autograd.grad(expected, [exact[n] for n in inputs], upstreams)
    narrow = [g.to(y.dtype) for g, y in zip(upstreams, found, strict=True)]
    gradients = torch.autograd.grad(found, [mine[n] for n in inputs], narrow)
    pairs = zip((*found, *gradients), (*expected, *wanted), strict=True)
    return max(((a.double() - b).abs() / b.abs().max().clamp(min=1)).max().item() for a, b in pairs)


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_of_many_scores_at_once(body, tmp_path):
    own = of_forward(body, tmp_path)
    assert largest_gap(own, drawn(own, torch.float32), 2) <= 1e-5


@pytest.mark.parametrize("body", LOSSES.values(), ids=LOSSES)
def test_of_products_over_long_axes(body, tmp_path):
    """Features in blocks, and rows in more tiles than there are programs at once."""
    own = of_forward(body, tmp_path, "V")
    for dtype, least, chunk in ((torch.float64, 1e-12, 2), (torch.bfloat16, 5e-2, None)):
        assert largest_gap(own, drawn(own, dtype), chunk) <= least, (dtype, chunk)


@pytest.mark.thorough
@pytest.mark.parametrize("body", ONE_EACH.values(), ids=ONE_EACH)
def test_of_each_score(body, tmp_path):
    own = of_forward(body, tmp_path)
    for dtype, least, chunk in HOW:
        assert largest_gap(own, drawn(own, dtype), chunk) <= least, (dtype, chunk)


def test_of_views_and_of_nothing(tmp_path):
    """Any strides, an expanded operand, no rows, no examples, some gradients alone."""
    own = of_forward(ONE_EACH["causal"], tmp_path)
    heads, one = torch.randn(2, 5, 2, 3).transpose(1, 2)[0], torch.randn(1, 5, 3).expand(2, 5, 3)
    cases = (heads, one, True), (heads[:, :0], one, True), (heads[:0], one[:0], True)
    for query, key, wanted in (*cases, (heads, one, False)):
        given = [t.detach().requires_grad_(wanted) for t in (query, key)]
        value = torch.randn_like(key).requires_grad_()
        y = own.module.own_tiles(*given, value, chunk=2)
        exact = [t.detach().double().requires_grad_(t.requires_grad) for t in (*given, value)]
        z = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True)
        up = torch.randn_like(z)
        wrt = [i for i, t in enumerate(exact) if t.requires_grad]
        found = torch.autograd.grad(y, [(*given, value)[i] for i in wrt], up.float())
        expected = torch.autograd.grad(z, [exact[i] for i in wrt], up)
        for a, b in zip((y, *found), (z, *expected), strict=True):
            torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "skips"),
    [
        (MANY["a window, with slopes that learn"], True),
        (ONE_EACH["documents"], False),
        (OPERANDS + PRODUCT + CAUSAL.replace("(0, True)", "(1, True)"), False),
    ],
    ids=["window", "documents", "what is masked counts"],
)
def test_tiles_are_skipped_by_conditions_on_positions(body, skips, tmp_path):
    output, _, _ = of_forward(body, tmp_path).text.partition("_gradients")
    assert ("begin_all" in output) is skips


@pytest.mark.parametrize(
    ("name", "axis", "said"),
    [
        ("linear_attention", "E", "linear_attention has no tiles"),
        ("mse", "N", "mse has no tiles"),
        ("linear_dpo", "V", "dweight_sum is a sum over N as well"),
        ("conv1d", "C", "no tiles"),
    ],
    ids=["a product of one axis", "a loss", "a loss of two axes", "a convolution"],
)
def test_what_is_no_tile_is_refused(name, axis, said):
    with pytest.raises(QuestionError, match=said):
        generate_of_ranks(forward_from(name), [axis], way=TILES)


def test_tiles_of_ranks_are_refused(tmp_path, capsys):
    arguments = ["causal_attention", "--chunk", "S", "--shard", "T", "--target", "triton"]
    assert main([*arguments, "--out", str(tmp_path)]) == NOT_UNDERSTOOD
    assert "writes torch code alone" in capsys.readouterr().err


def test_the_command(tmp_path, capsys):
    options = ["--chunk", "S", "--target", "triton", "--out", str(tmp_path)]
    assert main(["scaled_dot_product_attention", *options]) == DONE
    text = (tmp_path / "scaled_dot_product_attention_tiles_s.py").read_text()
    assert "tl.dot" in text and "in tiles of S" in text
