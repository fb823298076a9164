"""Computing in chunks of an axis: the passes, what runs along, memory, dtypes and edges."""

import functools
import itertools
import re
from fractions import Fraction

import pytest
import torch
from forwards import forward_file
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from codegen.chunking import BOTH, CHUNK, ChunkedAxis, chunked
from codegen.chunking.nodes import ChunkNode
from codegen.chunking.online import degree
from codegen.chunking.passes import check_order
from codegen.driver.gate import TOLERANCE
from codegen.driver.lean import generate
from codegen.driver.ranks import generate_of_ranks
from codegen.files.loading import loaded
from codegen.program.steps import Assign
from codegen.program.values import Apply, Load, Number, Plus, Power, Times
from codegen.targets.lean.target import whole_program
from derive import derive, forward_from
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.library import list_forwards
from derive.proof.proving.parts import identities

F = torch.nn.functional
CLASSES = 7

LINEAR_NLL = """
    x = Input(N, K)
    weight = Input(C, K)
    labels = Label(N)
    bias = Input(C, default=0)
    logits = Sum(x * weight, K) + bias
    shifted = logits - Max(logits, C)
    logprobs = shifted - log(Sum(exp(shifted), C))
    loss = -Sum(OneHot(labels, C) * logprobs, N, C) / N
"""
ATTENTION = """
    B, T, S, E, K = Axis("B"), Axis("T"), Axis("S"), Axis("E"), Axis("K")
    query = Input(B, T, E)
    key = Input(B, S, E)
    value = Input(B, S, K)
    counts = exp(Sum(query * key, E) / sqrt(E))
    y = Sum(counts / Sum(counts, S) * value, S)
"""
SAMPLE = (  # an axis of a forward: what is mapped, added, run, collected or made of others
    *("softmax_nll C", "nll N", "group_norm S", "embedding V", "mlp T", "triplet N"),
    "siglip D",  # rows and columns of one product change places
    *("add_rms_norm C", "info_nce N", "elu N", "var C", "softmax C", "linear_attention E"),
)


def made(file, axis, **how):
    """The function of a forward in chunks of an axis."""
    found = generate_of_ranks(forward_from(file), [axis], way=CHUNK, **how)
    name = found.file.removesuffix(".py")
    return getattr(loaded(found.text, name), name), found


def axes_of(forward):
    """The axes of its arguments."""
    arguments = forward.definition.arguments
    return dict.fromkeys(axis.name for t in arguments for axis in t.home)


@pytest.mark.parametrize("case", SAMPLE)
def test_in_chunks(case):
    assert made(*case.split())[1].difference <= TOLERANCE


@pytest.mark.thorough
@pytest.mark.parametrize("forward", list_forwards(), ids=lambda f: f.definition.snake)
def test_every_axis_of_the_gallery(forward):
    """In chunks and right, or refused with the value that meets others."""
    for axis in axes_of(forward):
        try:
            found = generate_of_ranks(forward, [axis], way=CHUNK)
        except QuestionError as error:
            assert axis in str(error).splitlines()[0]
        else:
            assert found.difference <= TOLERANCE


@pytest.mark.parametrize(
    "name, axis, words",
    [
        ("conv1d", "T", "a window of the convolution along T meets entries of several"),
        ("lstm_cell", "H", "dpre needs all rows of a value of N x Gate x H at once"),
        ("group_norm", "C", "flattened from G x K: a chunk may end inside of one"),
    ],
)
def test_what_has_no_chunks_is_refused(name, axis, words):
    with pytest.raises(QuestionError, match=words):
        generate_of_ranks(forward_from(name), [axis], way=CHUNK)


class Looking(TorchDispatchMode):
    """The largest tensor that is made, and the largest that is converted."""

    def __init__(self):
        super().__init__()
        self.made, self.converted, self.products = 0, 0, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.made = max(self.made, tensor.numel())
                if "_to_copy" in str(function):
                    self.converted = max(self.converted, tensor.numel())
                if "mm" in str(function):
                    self.products.add(args[-1].dtype)
        return result


@pytest.mark.parametrize("axis, largest", [("N", 8 * 50), ("C", 40 * 8)])
def test_nothing_is_held_that_lies_along_the_axis(axis, largest, tmp_path):
    """A linear layer and a cross entropy: no tensor is as large as the logits, on the way there and
    back, and back once more; the gradient of the weight is.
    """
    function, _ = made(forward_file(tmp_path, "LinearNLL", LINEAR_NLL), axis)
    n, k, c = 40, 3, 50
    x, weight, bias = (torch.randn(*s, dtype=torch.float64) for s in ((n, k), (c, k), (c,)))
    leaves = [tensor.requires_grad_() for tensor in (x, weight, bias)]
    index = torch.randint(c, (n,))
    with Looking() as looking:
        loss = function(x, weight, index, bias=bias, chunk=8)
        gradients = torch.autograd.grad(3 * loss, leaves, retain_graph=True)
        again = torch.autograd.grad(3 * loss, leaves, create_graph=True)
        second = torch.autograd.grad(summed(again), leaves, create_graph=True)
    assert looking.made == largest
    logits = x @ weight.T + bias
    wanted = torch.autograd.grad(3 * F.cross_entropy(logits, index), leaves, create_graph=True)
    wanted_second = torch.autograd.grad(summed(wanted), leaves)
    for found in (gradients, again):
        torch.testing.assert_close(found, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    torch.testing.assert_close(second, wanted_second, rtol=TOLERANCE, atol=TOLERANCE)
    with pytest.raises(NotImplementedError, match="no third derivatives in chunks"):
        torch.autograd.grad(summed(second), leaves)
    with pytest.raises(ValueError, match="chunk must be a positive int, got 0"):
        function(x, weight, index, chunk=0)
    with pytest.raises((IndexError, RuntimeError)):
        function(x, weight, index + c)


def summed(gradients):
    return sum((gradient**2).sum() for gradient in gradients)


def test_only_gradients_that_are_asked_for_are_computed(tmp_path):
    function, found = made(forward_file(tmp_path, "LinearNLL", LINEAR_NLL), "N")
    assert "if need_weight:" in found.text
    x, weight = torch.randn(6, 3, requires_grad=True), torch.randn(5, 3)
    index = torch.randint(5, (6,))
    with Looking() as looking:
        function(x, weight, index, chunk=1).backward()
    assert looking.made < 3 * weight.numel() and looking.products
    (wanted,) = torch.autograd.grad(F.cross_entropy(x @ weight.T, index), x)
    torch.testing.assert_close(x.grad, wanted)


@pytest.mark.parametrize("wrong", [-1, CLASSES])
def test_a_label_that_is_in_no_chunk_is_refused(wrong):
    """Also on a GPU and in compiled code, which torch asks at its own places."""
    function, found = made("linear_cross_entropy", "V")
    assert "may be infinite or NaN where every entry of labels is ignored" in " ".join(
        found.text.split()
    )
    h, w, labels = torch.randn(3, 2), torch.randn(CLASSES, 2), torch.tensor([0, -100, 2])
    torch.testing.assert_close(function(h, w, labels, chunk=2), cross_entropy(h, w, labels))
    labels[0] = wrong
    with pytest.raises(IndexError, match=f"labels holds {wrong}, not in 0"):
        function(h, w, labels, chunk=2)


def of_attention(known=[]):  # noqa: B006
    known += [] if known else made("scaled_dot_product_attention", "S")
    return known[0]


def every_transform(function):
    grad, first = torch.func.grad(function, (0, 1)), torch.func.grad(function)
    return {
        "the gradient of the gradient": torch.func.grad(lambda *x: summed(first(*x)), (0, 1)),
        "gradients one by one": torch.func.vmap(grad, (None, 0)),
        "a tangent": lambda *x: torch.func.jvp(function, x, (x[0].cos(), x[1].sin()))[1],
        "forward over reverse": torch.func.hessian(function),
        "reverse over forward": torch.func.jacrev(torch.func.jacfwd(function)),
        "forward over forward": torch.func.jacfwd(torch.func.jacfwd(function)),
    }


def of_two(name):
    """A number computed from two tensors in chunks, and the same by torch."""
    torch.manual_seed(0)
    if name == "a loss":
        from generated.linear_cross_entropy import linear_cross_entropy

        y = labels_of(4)
        own = lambda h, w: linear_cross_entropy(h, w, y, chunk=3)  # noqa: E731
        by_torch = lambda h, w: cross_entropy(h, w, y)  # noqa: E731
        shapes = (4, 2), (CLASSES, 2)
    else:
        v, attend = torch.randn(1, 5, 2, dtype=torch.float64), of_attention()
        own = lambda q, k: attend(q, k, v, chunk=3)[0].sin().sum()  # noqa: E731
        by_torch = lambda q, k: attention(q, k, v)[0].sin().sum()  # noqa: E731
        shapes = (1, 3, 2), (1, 5, 2)
    return own, by_torch, [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def attention(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


@pytest.mark.parametrize("name", ["a loss", "attention"])
def test_every_transform_of_torch(name):
    own, by_torch, (a, b) = of_two(name)
    wanted = every_transform(by_torch)
    for what, transform in every_transform(own).items():
        given = (a, torch.stack([b, b + 1])) if "one by one" in what else (a, b)
        torch.testing.assert_close(transform(*given), wanted[what](*given), msg=what)


@pytest.mark.parametrize("name", ["a loss", "attention"])
def test_compiled(name):
    """Without a graph break, chunks unrolled; transforms that are no gradients as well."""
    torch._dynamo.reset()
    own, by_torch, given = of_two(name)
    a, b = given[0], torch.stack([given[1]] * 2)
    compiled = functools.partial(torch.compile, backend="aot_eager", fullgraph=True)
    found = compiled(torch.func.vmap(own, (None, 0)))(a, b)
    torch.testing.assert_close(found, torch.func.vmap(by_torch, (None, 0))(a, b))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="compile a function that calls back"):
        compiled(torch.func.grad(own))(*given)
    gradient = torch.compile(torch.func.grad(own), backend="aot_eager")(*given)
    torch.testing.assert_close(gradient, torch.func.grad(by_torch)(*given))
    torch.testing.assert_close(compiled(own)(*given), by_torch(*given))
    leaves = [tensor.requires_grad_() for tensor in given]
    found = torch.autograd.grad(compiled(own)(*leaves), leaves)
    torch.testing.assert_close(found, torch.autograd.grad(by_torch(*leaves), leaves))


# -- what runs -------------------------------------------------------------------------


def test_the_forward_of_flash_attention_is_one_pass(tmp_path):
    """Sums measured from a running maximum; probabilities are computed again from what is kept."""
    file = forward_file(tmp_path, "Attending", ATTENTION)
    function, found = made(file, "S")
    assert found.forward == ("1 pass",)
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, n, e, dtype=torch.float64) for n, e in ((4, 3), (9, 3), (9, 5)))
    k[:, :4] += 50  # the maximum grows and stays
    wanted = F.scaled_dot_product_attention(q, k, v)
    for chunk in (1, 2, 4, 100, None):
        torch.testing.assert_close(function(q, k, v, chunk=chunk), wanted)
    y = function(q.requires_grad_(), k, v)
    y.mul_(2)  # which the backward reads
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


WEIGHTED = {  # weights, of which the sum of products with their gradient is exchanged
    "any function over its sum": "w = 1 / (1 + Sum(query * key, E) ** 2)",
    "linear attention": "w = Sum((1 + query**2) * (1 + key**2), E)",
}


@pytest.mark.parametrize("weights", WEIGHTED.values(), ids=WEIGHTED)
def test_exchanged_sums_save_a_pass(weights, tmp_path, monkeypatch):
    body = f"""
    T, S, E, K = Axis("T"), Axis("S"), Axis("E"), Axis("K")
    query = Input(T, E)
    key = Input(S, E)
    value = Input(S, K)
    {weights}
    y = Sum(w / Sum(w, S) * value, S)
"""
    forward = forward_from(forward_file(tmp_path, "Weighted", body))
    program = whole_program(forward, derive(forward))
    with_exchange = chunked(program, ChunkedAxis("S"))
    monkeypatch.setattr("codegen.chunking.placed.exchanged", lambda *given: None)
    without = chunked(program, ChunkedAxis("S"))
    assert "exchanged" in with_exchange.rewritten - without.rewritten
    assert (with_exchange.gradients.count, without.gradients.count) == (1, 2)


@pytest.mark.parametrize("chunk", [1, 2, 3, 100, None])
def test_rows_of_minus_infinity_and_of_nan_stay_what_they_are(chunk):
    function, _ = in_chunks_of_classes()
    x = torch.randn(5, 6)
    x[0, :3], x[1, 3:], x[2, 4], x[3, 2] = -torch.inf, -torch.inf, torch.nan, torch.inf
    torch.testing.assert_close(function(x, chunk=chunk), x.softmax(1), equal_nan=True)
    x[4] = -torch.inf
    torch.testing.assert_close(function(x, chunk=chunk)[4], in_whole(x)[4], equal_nan=True)


def in_chunks_of_classes(known=[]):  # noqa: B006
    if not known:
        known += made("softmax", "C")
    return known


def in_whole(x):
    from generated.softmax import softmax

    return softmax(x)


def test_no_rows_and_no_classes(tmp_path):
    function, _ = made(forward_file(tmp_path, "Attending", ATTENTION), "T")
    for shape in ((2, 0, 3), (0, 4, 3)):
        q = torch.randn(shape, requires_grad=True)
        k, v = torch.randn(shape[0], 3, 3), torch.randn(shape[0], 3, 2)
        y = function(q, k, v)
        y.sum().backward()
        assert y.shape == (*shape[:2], 2) and q.grad.shape == shape


M = Load("m", dims=())
X = Load("x", dims=())
FROM_M = Apply("exp", Plus(((X, False), (M, True))))


@pytest.mark.parametrize(
    "value, expected",
    [
        (X, 0),
        (FROM_M, -1),
        (Times(((FROM_M, False), (X, False))), -1),
        (Times(((FROM_M, False), (FROM_M, True))), 0),
        (Power(FROM_M, Number(Fraction(2))), -2),
        (Plus(((FROM_M, False), (FROM_M, True))), -1),
        (Plus(((FROM_M, False), (X, False))), None),
        (Apply("exp", M), 1),
        (Apply("tanh", M), None),
        (M, None),
        (Load("e"), -1),
    ],
)
def test_how_a_value_changes_with_its_maximum(value, expected):
    nodes = {
        "m": ChunkNode("m", [], {"x"}, "largest"),
        "e": ChunkNode("e", [Assign("e", FROM_M)], {"x", "m"}, "mapped"),
    }
    assert degree(value, "m", nodes) == expected


@pytest.mark.parametrize(
    "name",
    ["rows", "joined sums", "rescaled", "upstream", "collected", "carried", "near", "symmetric"],
)
def test_what_chunks_rely_on_is_proved(name):
    assert identities[name].proved


def test_a_line_that_reads_too_early_is_not_written(tmp_path):
    forward = forward_from(forward_file(tmp_path, "LinearNLL", LINEAR_NLL))
    found = chunked(whole_program(forward, derive(forward)), ChunkedAxis("C")).both
    check_order(found, ())
    last = found.passes.pop()
    found.passes.insert(0, last)
    with pytest.raises(UnprovedError, match="too early"):
        check_order(found, ())


# -- from chunk to chunk ----------------------------------------------------------------

RUNNING = {  # a forward, and its passes for the output and for the gradients
    "one way, the other, and back": (
        """
    x = Input(N, T)
    a = CumSum(x**2, T)
    b = CumSum(tanh(a) * x, T, reverse=True)
    c = CumSum(b * x, T)
    loss = Sum(c * b * x + Next(a, T), N, T)
""",
        3,
        4,
    ),
    "a product, a maximum, a logarithm": (
        """
    x = Input(N, T)
    y = CumProd(x, T) * CumMax(x, T) + log(CumSum(exp(x), T))
""",
        1,
        2,
    ),
    "an initial state": (
        """
    x = Input(N, T)
    a = Input(T, N)
    h0 = Input(N)
    h = Scan(a, x, T, initial=h0)
    y = h * Previous(h, T, initial=1) + Next(h, T)
""",
        2,
        2,
    ),
    "a step of what runs has its states": (
        """
    x = Input(N, T)
    a = Input(T, N)
    h = Scan(a, x, T)
    y = h * Previous(h, T)
""",
        1,
        1,
    ),
    "measured from a maximum": (
        """
    x = Input(N, T)
    p = exp(x - Max(x, T))
    y = CumSum(p / Sum(p, T), T)
    loss = Sum(y**2, N, T)
""",
        2,
        4,
    ),
    "the first largest of what runs from the end": (
        """
    x = Input(T, N)
    loss = Sum(Max(CumSum(x, T, reverse=True), T) ** 2, N)
""",
        1,
        3,
    ),
    "two states": (
        """
    x = Input(T, N, H)
    w = Input(H, K)
    h0 = Input(N, H)
    before = Previous(h, T, initial=h0)
    c = Previous(c, T) * before + before
    h = tanh(x + c + Sum(w * Rename(before, H, K), K))
""",
        1,
        1,
    ),
    "a sum of what runs in a later pass is no running one": (
        """
    x = Input(N, T)
    b = CumSum(CumSum(x, T) * x, T, reverse=True)
    y = Sum(exp(x - Max(x, T)) * b, T)
""",
        2,
        2,
    ),
    "halos in halos": (
        """
    x = Input(N, T)
    u = tanh(x) - Shift(tanh(x), T, 1)
    v = u * u - Shift(u, T, -2) * x
    loss = Sum(CumSum(v, T) * Shift(v, T, 1), N, T)
""",
        1,
        3,
    ),
    "windows": (
        """
    x = Input(N, T)
    w = Input(W)
    y = x * Sum(w * exp(At(x**2, T, Position(T) + Position(W) - 1)), W)
""",
        1,
        1,
    ),
    "a convolution of its own length": (
        """
    x = Input(N, C, T)
    w = Input(D, C, K)
    h = Sum(w * At(tanh(x), T, Position(T) - 2 * Position(K)), K, C)
    y = exp(h) * Sum(w, C, K)
""",
        1,
        2,
    ),
}
OF_TIME = """
    from derive import At, CumMax, CumProd, CumSum, Next, Outputs, Previous, Scan, Shift
    T, W = Axis("T"), Axis("W", 3)
"""


def over_time(folder, body):
    """A file with a forward that has the notation of what runs."""
    file = forward_file(folder, "Own", body)
    lines, text = OF_TIME.replace("\n    ", "\n"), file.read_text(encoding="utf-8")
    file.write_text(text.replace("\n\nclass", f"{lines}\n\nclass", 1), encoding="utf-8")
    return file


@pytest.mark.parametrize("text, forward, backward", RUNNING.values(), ids=RUNNING)
def test_what_runs_goes_on_from_chunk_to_chunk(text, forward, backward, tmp_path):
    _, found = made(over_time(tmp_path, text), "T")
    passes = [int(words[0].split()[0]) for words in (found.forward, found.backward)]
    assert passes == [forward, backward] and found.difference <= 1e-12


def test_a_recurrence_in_chunks_of_another_axis(tmp_path):
    assert made(over_time(tmp_path, RUNNING["two states"][0]), "N")[1].difference <= 1e-12


def selective_scan_in_chunks(known=[]):  # noqa: B006
    if not known:
        known += made("selective_scan", "T")
    return known[0]


def test_states_are_kept_at_the_borders_of_chunks_alone():
    """A scan, forward and backward: 9 rows of states, of 64; each chunk has 8."""
    n, t, k, s = 2, 64, 8, 8
    shapes = ((n, t, k), (n, t, k), (k, s), (n, t, s), (n, t, s), (k,))
    given = [torch.rand(shape).sub_(1.0).requires_grad_() for shape in shapes]
    with Looking() as looking:
        selective_scan_in_chunks()(*given, chunk=8).sum().backward()
    assert looking.made <= 9 * n * k * s


def test_all_functions_that_share_states_have_the_same_chunks(monkeypatch):
    """Also where these are as long as memory permits."""
    function = selective_scan_in_chunks()
    monkeypatch.setattr(function.__globals__["_Chunk"], "room", 200)
    monkeypatch.setattr(function.__globals__["_Chunk"], "fewest", 1)
    shapes = ((1, 9, 1), (1, 9, 1), (1, 1), (1, 9, 1), (1, 9, 1), (1,))
    given = [torch.rand(shape).sub_(1.0).requires_grad_() for shape in shapes]
    found = [torch.autograd.grad(function(*given, chunk=c).sum(), given) for c in (None, 9)]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_gradients_of_few_rows_that_run(rows):
    torch.manual_seed(rows)
    shapes = ((1, rows, 2), (1, rows, 2), (2, 2), (1, rows, 2), (1, rows, 2), (2,))
    given = [torch.rand(s, dtype=torch.float64).sub_(0.5).requires_grad_() for s in shapes]
    function = selective_scan_in_chunks()
    assert torch.autograd.gradcheck(lambda *tensors: function(*tensors, chunk=2), given)


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_minus_infinity_and_nan_run_on(chunk, tmp_path):
    function, _ = cumulated(tmp_path)
    x = torch.randn(4, 5)
    x[0, :3], x[1], x[2, 2], x[3, 3] = -torch.inf, -torch.inf, torch.nan, torch.inf
    added, most = function(x, chunk=chunk)
    torch.testing.assert_close(added, x.logcumsumexp(1), equal_nan=True)
    torch.testing.assert_close(most, x.cummax(1).values, equal_nan=True)


def cumulated(folder, known=[]):  # noqa: B006
    body = """
    x = Input(N, T)
    added = log(CumSum(exp(x), T))
    most = CumMax(x, T)
    outputs = Outputs(added, most)
"""
    if not known:
        known += made(over_time(folder, body), "T")
    return known


def test_what_runs_the_other_way_without_states_is_not_written():
    forward = forward_from("selective_scan")
    found = chunked(whole_program(forward, derive(forward)), ChunkedAxis("T"))
    check_order(found.gradients, found.kept)
    with pytest.raises(UnprovedError, match="h runs the other way"):
        check_order(found.gradients, [name for name in found.kept if name != "h_states"])


# -- over ranks as well ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["linear_kl V N", "scaled_dot_product_attention S T", "softmax_nll C N"]
)
def test_chunks_of_the_parts_of_ranks(case):
    """One axis is split over ranks, and each computes in chunks of the other."""
    name, *axes = case.split()
    assert generate_of_ranks(forward_from(name), axes, way=BOTH).difference <= TOLERANCE


def test_a_chunk_takes_as_few_collectives_as_all_rows(tmp_path):
    """A maximum, a sum of what follows from it and of the picked logits, and that of dx."""
    file = forward_file(tmp_path, "LinearNLL", LINEAR_NLL)
    found = generate_of_ranks(forward_from(file), ["C", "N"], way=BOTH)
    assert found.difference <= TOLERANCE
    loop = found.text.split("_plain_both(")[-1].split("for over in")[-1].split("return")[0]
    assert re.findall(r"over_c\.(largest|sum)\(", loop) == ["largest", "sum", "sum"]
    assert "-(-over_c.size // over_c.count)" in loop  # so that all ranks have as many chunks
    assert (
        "requires_grad=[x.requires_grad, weight.requires_grad, bias is not None and" in found.text
    )


def test_ranks_add_what_all_chunks_together_have(tmp_path):
    text = """
    C = Axis("C")
    x = Input(C, N)
    y = Sum(exp(x), C, N)
"""
    found = generate_of_ranks(
        forward_from(forward_file(tmp_path, "Own", text)), ["C", "N"], way=BOTH
    )
    output = found.text.split("def own_shard_c_chunk_n_output")[1].split("\ndef ")[0]
    assert re.search(r"\n    \w+ = over_c\.sum\(", output) and output.count("over_c.sum(") == 1


@pytest.mark.parametrize("axes, words", [("CN", "met under another name"), ("NN", "named twice")])
def test_what_is_not_split_over_ranks_and_in_chunks(axes, words, tmp_path):
    forward = forward_from(forward_file(tmp_path, "Own", next(iter(OWN.values()))))
    with pytest.raises(QuestionError, match=words):
        generate_of_ranks(forward, [*axes], way=BOTH)


# -- losses of a linear layer -------------------------------------------------------------


def labels_of(*shape):
    found = torch.randint(CLASSES, shape)
    found[torch.rand(shape) < 0.3] = -100
    found.view(-1)[0] = 1
    return found


def cross_entropy(h, w, y, class_weight=None, label_smoothing=0.0, softcap=0.0, z_weight=0.0):
    z = h @ w.T
    z = softcap * torch.tanh(z / softcap) if softcap else z
    loss = F.cross_entropy(z, y, class_weight, label_smoothing=label_smoothing)
    return loss + z_weight * (z.logsumexp(1) ** 2)[y != -100].mean()


def test_each_reduction_is_in_chunks(tmp_path):
    body = f"""
    {LINEAR_NLL.split("loss =")[0].strip()}
    losses = -Sum(OneHot(labels, C) * logprobs, C)
    chunked = N
    loss = Reduced(losses, mean=N)
"""
    file = forward_file(tmp_path, "LinearNLL", body)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("derive import", "derive import Reduced,", 1), encoding="utf-8")
    function = loaded(generate(forward_from(file)).text, "linear_nll").linear_nll
    x, weight = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (7, CLASSES))
    index = torch.randint(CLASSES, (7,))
    for word in ("mean", "sum", "none"):
        own = function(x, weight, index, reduction=word, chunk=2)
        wanted = F.cross_entropy(x @ weight.T, index, reduction=word)
        up = torch.randn_like(wanted)
        torch.testing.assert_close(own, wanted)
        for one, other in zip(
            *(torch.autograd.grad(y, (x, weight), up) for y in (own, wanted)), strict=True
        ):
            torch.testing.assert_close(one, other)
    torch.testing.assert_close(function(x, weight, index), F.cross_entropy(x @ weight.T, index))
    with pytest.raises(ValueError, match="linear_nll: reduction is 'mean', 'sum' or 'none', not"):
        function(x, weight, index, reduction="median")


OPTIONS = {"class_weight": 0, "label_smoothing": 0.1, "softcap": 2.0, "z_weight": 0.1}


def gradients_of(loss, leaves):
    return loss.detach(), *torch.autograd.grad(loss, leaves, torch.tensor(1.5, dtype=loss.dtype))


def test_every_option_of_the_linear_cross_entropy():
    from generated.linear_cross_entropy import linear_cross_entropy

    torch.manual_seed(0)
    h, w = (torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in (6, CLASSES))
    y = labels_of(6)
    own = OPTIONS | {"class_weight": torch.rand(CLASSES, dtype=torch.float64)}
    for count in range(len(own) + 1):
        for names in itertools.combinations(own, count):
            given = {name: own[name] for name in names}
            wanted = gradients_of(cross_entropy(h, w, y, **given), (h, w))
            for chunk in (1, 4, None):
                loss = linear_cross_entropy(h, w, y, **given, chunk=chunk)
                for one, other in zip(gradients_of(loss, (h, w)), wanted, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    for rows in (1, 0):  # one row; none, and all ignored: NaN, as torch
        nothing = linear_cross_entropy(h[:rows], w, torch.full((rows,), -100))
        assert nothing.isnan()


@pytest.mark.parametrize("autocast", [False, True])
def test_products_of_16_bits_stay_so_and_no_argument_is_converted(autocast):
    from generated.linear_cross_entropy import linear_cross_entropy

    torch.manual_seed(0)
    half = torch.float32 if autocast else torch.bfloat16
    h, w = (torch.randn(n, 32).to(half).requires_grad_() for n in (24, 40))
    y = torch.randint(40, (24,))
    with Looking() as looking, torch.autocast("cpu", enabled=autocast):
        loss = linear_cross_entropy(h, w, y, chunk=4)
        loss.backward()
    assert looking.products == {torch.bfloat16}
    assert loss.dtype == half and w.grad.dtype == half
    if not autocast:  # but the sum over chunks, once
        assert looking.converted == w.numel()
    wide = [t.detach().float().requires_grad_() for t in (h, w)]
    wanted = gradients_of(F.cross_entropy(wide[0] @ wide[1].T, y), wide)[1:]
    for one, other in zip((h.grad, w.grad), wanted, strict=True):
        assert (1.5 * one.float() - other).norm() < 0.02 * other.norm()


OWN = {
    "a flattened output has the size of its parts": """
    C, K, M = Axis("C"), Axis("K"), Axis("M")
    x = Input(N, C, K)
    twice = 2 * x
    flat = Flatten(twice, C, K, into=M)
    e = exp(twice)
    y = Sum(e**2, C, K) * tanh(flat) * Sum(tanh(e), C, K)
""",
    "what a view still reads is not written over": """
    C, D, K, M = Axis("C"), Axis("D"), Axis("K"), Axis("M")
    x = Input(N, D)
    w = Input(D, C, K)
    a = Sum(x * w, D)
    flat = Flatten(a, C, K, into=M)
    e = exp(a)
    y = Sum(e**2, C, K) * tanh(flat) * Sum(tanh(e), C, K)
""",
    "a sum that grows as its maximum falls is no running one": """
    x = Input(C, N)
    y = Sum(exp(Max(x, N) - x) * x, N)
""",
    "a sum that reads another one of the same pass has its own": """
    C = Axis("C")
    x = Input(C, N)
    s = Sum(x, N)
    y = Sum(exp(x - Max(x, N)) * tanh(x * s), N)
""",
    "a gradient that is the same in all entries": """
    x = Input(C)
    w = Input(N)
    y = Sum(tanh(w + Sum(x, C)), N) / N
""",
    "places of maxima that are looked up in a row": """
    x = Input(N, C)
    y = tanh(Sum(x, C)) + Max(Max(Min(x, 1), C), N)
""",
    "a later line of a gradient reads a sum of another pass": """
    x = Input(N)
    label = Label()
    v = x * OneHot(label, N)
    y = log(exp(v) / Sum(exp(v), N))
""",
    "sizes are read off the inputs": """
    from derive import Size, Unflatten
    L, M = Axis("L"), Axis("M")
    parts = Size(L)
    x = Input(K, C, N)
    w = Input(H, N)
    flat = Flatten(tanh(x), C, K, into=M)
    apart = Unflatten(tanh(w), H, into=(L, D))
    y = Sum(apart, D) * Max(flat, M)
""",
    "a condition that other chunks read": """
    x = Input(N, C)
    M = Axis("M")
    v = Piecewise((x * Rename(x, N, M), ~((x >= 1) & (Position(C) < 1))), (2, True))
    y = tanh(Sum(v * x, N, C) / (N * C)) * Max(v, M)
""",
    "a gradient is the upstream one": """
    x = Input(N)
    w = Input(default=0)
    y = Sum(exp(x) / Sum(exp(x), N) + w, N) / N
""",
    "an argument that is held lies along its condition": """
    M = Axis("M")
    x = Input(N, M)
    k = Input()
    a = exp(k) * x
    diagonal = Sum(Piecewise((a, Eq(Position(M), Position(N))), (0, True)), M)
    y = log(Sum(exp(a), M)) - diagonal
""",
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_forwards_of_ones_own(text, tmp_path):
    assert made(forward_file(tmp_path, "Own", text), "N")[1].difference <= TOLERANCE
