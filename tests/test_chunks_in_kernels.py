"""A pass in chunks as kernels between matrix products: cut, written over, right, in 16 bits."""

import importlib
import re
import sys
from dataclasses import replace
from itertools import groupby

import pytest
import torch
from forwards import forward_file

from codegen.chunking import CHUNK, ChunkedAxis
from codegen.driver.chunks import parts_of
from codegen.driver.gate import TOLERANCE
from codegen.driver.lean import generate
from codegen.driver.ranks import generate_of_ranks
from codegen.driver.writing import kernel_files
from codegen.schedule.costs import CPU
from codegen.schedule.elements import call, entry, index
from codegen.schedule.flattening import flat
from codegen.schedule.moments import in_one_pass
from codegen.schedule.nodes import Array, Flat, Node
from codegen.schedule.overwriting import may_overwrite
from codegen.schedule.plan import Nest, Plan, Sweep
from codegen.schedule.planning import planned
from codegen.targets.languages import kernels
from codegen.targets.lean.chunked import chunked_text
from codegen.targets.lean.target import whole_program
from derive import derive, forward_from

START = """
    C, K = Axis("C"), Axis("K")
    x = Input(N, K)
    weight = Input(C, K)
    labels = Label(N)
"""
LOSSES = {  # one loss in three spellings
    "log of a quotient": """
    counts = exp(Sum(x * weight, K))
    loss = -Sum(OneHot(labels, C) * log(counts / Sum(counts, C)), N, C) / N
""",
    "shifted by the maximum": """
    logits = Sum(weight * x, K)
    shifted = logits - Max(logits, C)
    picked = Sum(OneHot(labels, C) * shifted, C)
    losses = log(Sum(exp(shifted), C)) - picked
    loss = Sum(losses, N) / N
""",
    "powers of two": """
    logits = Sum(x * weight, K)
    total = Sum(2 ** (logits / log(2)), C)
    loss = Sum(log(total) - Sum(OneHot(labels, C) * logits, C), N) / N
""",
}
CASES = (
    *("linear_cross_entropy N", "linear_cross_entropy V", "linear_kl N", "linear_dpo N"),
    *("linear_grpo N", "scaled_dot_product_attention S", "scaled_dot_product_attention T"),
    *("batch_norm N", "clip N", "softmax C"),
)


def own(tmp_path, spelling):
    return forward_file(tmp_path, "Own", START + LOSSES[spelling])


def pieces(file, axis="N"):
    """The lines of the module that launches kernels, before anything is compiled."""
    forward = forward_from(file)
    _, parts = parts_of(forward, whole_program(forward, derive(forward)), ChunkedAxis(axis))
    part = parts[""]
    return kernels["cpp"].texts_in_chunks(part.made, chunked_text(part.page))


@pytest.mark.parametrize("spelling", LOSSES)
def test_a_pass_is_a_product_one_kernel_and_two_products(spelling, tmp_path):
    """The kernel writes the gradient of the logits over the logits, in the dtype of products."""
    loops, text = pieces(own(tmp_path, spelling))
    both = text[text.index("_both(") :]
    loop = both[both.rindex("    for over in ") : both.rindex("    loss = ")]
    assert loop.count("kernels.") == 1
    (product, left) = re.search(r"( \w+) = (own_x @ narrow_weight.mT)\n", loop).groups()
    assert left and re.search(rf"=({product})\n", loop), "no value is written over the product"
    assert "new_empty(n, C" not in loop  # so there is one array of their size at a time
    kernel = loops[loops.rindex("template") :]
    assert "In<Real> " in kernel and "Out<Real> " in kernel  # stored in 16 bits where x is
    after = loop[loop.index("kernels.") :]
    assert after.count("_add_product(") == 1 and after.count(" @ ") == 1


def test_the_torch_lines_between_kernels_are_those_of_products(tmp_path):
    """Attention in chunks of keys: maxima that run are torch's, all of a score is a kernel's."""
    _, text = pieces("scaled_dot_product_attention", "S")
    assert "torch.exp(scores" not in text and "_moved = torch.exp(" in text
    assert text.count("torch.maximum(") == 1


def test_what_only_a_product_reads_has_its_dtype(tmp_path):
    text = (
        START.replace("    labels = Label(N)\n", "")
        + "    p = exp(x) / Sum(exp(x), K)\n    y = Sum(p * weight, K)"
    )
    _, text = pieces(forward_file(tmp_path, "Own", text))
    assert "like.new_empty(n, K, dtype=narrow)" in text


AXES = """
    C, D, M = Axis("C"), Axis("D"), Axis("M")
    x = Input(N, C)
"""


@pytest.mark.parametrize(
    "text, result, expected",
    [
        ("    y = x - Sum(x, C)", "y", True),
        ("    y = exp(x) / Sum(exp(x - Max(x, C)), C)", "y", True),
        ("    labels = Label(N)\n    y = x * Sum(OneHot(labels, C) * x, C)", "y", True),
        ("    y = x - Sum(x, N)", "y", True),  # the sums are known behind the first sweep
        ("    y = Sum(exp(x), C) * Sum(x, N, C)", "y", False),  # has another shape
    ],
)
def test_what_may_be_written_over(text, result, expected, tmp_path):
    forward = forward_from(forward_file(tmp_path, "Own", AXES + text))
    program = whole_program(forward, derive(forward))
    found = flat(program, program.forward)
    plan = planned(in_one_pass(found, CPU))
    assert may_overwrite(plan, dict(found.results)[result], "x") is expected


@pytest.mark.parametrize(
    "a, b",
    [
        ("exp(x)", "Sum(x * Sum(a, C), C)"),  # the second walk along the row reads it again
        ("exp(x)", "x * Sum(a, N)"),  # so does a later sweep
        ("exp(x)", "tanh(x)"),  # and the next line of the loop
        ("Sum(OneHot(order, D) * Rename(x, C, D), D)", "exp(x)"),  # other entries of the row
        ("x * Sum(exp(x * Rename(x, N, M)), M, C)", "Sum(a, C)"),  # other rows
    ],
)
def test_what_is_read_later_or_elsewhere_is_not_written_over(a, b, tmp_path):
    order = "    order = Label(C)\n" * ("order" in a)
    text = AXES + f"{order}    a = {a}\n    b = {b}\n    y = a * b"
    forward = forward_from(forward_file(tmp_path, "Own", text))
    program = whole_program(forward, derive(forward))
    function = replace(program.forward, results=("a", "b"))
    plan = planned(in_one_pass(flat(program, function), CPU))
    assert not may_overwrite(plan, dict(plan.flat.results)["a"], "x")


RENAMED = {
    "the rows of a chunk beside all rows": """
    h = Sum(exp(x) / Sum(exp(x), C) * x, C)
    y = Sum(tanh(h * Rename(h, N, M) / 34), N) / N
""",
    "a value to which a later kernel adds": """
    labels = Label(N)
    u = OneHot(labels, C) * x
    v = Piecewise((Rename(u, C, M), Eq(Position(M), Position(C) + 1)), (0, True))
    s = tanh(Sum(Sum(v, C, N), M) / M / 84)
    y = v / (1 + Abs(s)) / (1 + Abs(Sum(v, M)))
""",
}


@pytest.mark.parametrize("text", RENAMED.values(), ids=RENAMED)
def test_kernels_have_rows_of_one_length(text, tmp_path):
    forward = forward_from(forward_file(tmp_path, "Own", AXES + text))
    found = generate_of_ranks(forward, ["N"], way=CHUNK, kernels=kernels["cpp"])
    assert found.kernels and found.difference <= TOLERANCE


OWN, OTHER = (entry("x", index(axis), index("C")) for axis in ("N", "M"))
MADE = Node("a", ("N", "C"), call("exp", OWN))


@pytest.mark.parametrize(
    "sweeps, expected",
    [
        ([[MADE]], True),
        ([[Node("b", ("N", "C"), OWN), MADE]], True),  # read before
        ([[MADE, Node("b", ("N", "C"), OWN)]], False),  # in the next line
        ([[MADE], [Node("b", ("N", "C"), OWN)]], False),  # in a later sweep
        ([[Node("b", ("N",), OTHER, "sum", ("M", "C")), MADE]], False),  # of other rows
    ],
)
def test_when_a_loop_may_write_over_what_it_reads(sweeps, expected):
    """Plans in which each line is a nest of its own, or one with those of the same axes."""
    stages = []
    for nodes in sweeps:
        nests = [Nest(axes, tuple(own)) for axes, own in groupby(nodes, lambda n: n.space[1:])]
        stages.append(Sweep(("N",), False, tuple(nests), ("a",), (), ()))
    arrays = (Array("x", ("N", "C"), ()),)
    nodes = {node.name: node for nodes in sweeps for node in nodes}
    plan = Plan(Flat(arrays, (), (*nodes.values(),), {}, (), (), {}), tuple(stages), nodes)
    assert may_overwrite(plan, "a", "x") is expected


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A package with the kernels of a forward in chunks, and its name."""

    def write(file, axis="N"):
        found = generate_of_ranks(forward_from(file), [axis], way=CHUNK, kernels=kernels["cpp"])
        package = tmp_path / "in_chunks"
        texts = {package / found.file: found.text, package / "__init__.py": ""}
        for path, text in (texts | kernel_files(package, [found], kernels["cpp"])).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        name = found.file.removesuffix(".py")
        module = importlib.import_module(f"in_chunks.{name}")
        return getattr(module, name), importlib.import_module(f"in_chunks.kernels.{name}"), found

    yield write
    for name in [name for name in sys.modules if name.split(".")[0] == "in_chunks"]:
        del sys.modules[name]


def test_a_loss_of_ones_own_runs_on_kernels(written, tmp_path):
    """Every dtype, autocast, and a label that is in no chunk."""
    loss, module, found = written(own(tmp_path, "shifted by the maximum"))
    assert found.difference <= TOLERANCE
    from in_chunks import kernels as package
    from in_chunks.kernels import _running

    torch.manual_seed(0)
    x, w, y = torch.randn(24, 32), torch.randn(40, 32), torch.randint(40, (24,))
    ways = [(torch.float64, None, 1e-12), (torch.float32, None, 1e-5)]
    ways += [(torch.bfloat16, None, 2e-2), (torch.float32, torch.bfloat16, 2e-2)]
    ways += [(torch.float16, None, 2e-3)]
    for dtype, autocast, allowed in ways:
        given = [t.to(dtype).clone().requires_grad_() for t in (x, w)]
        wide = [t.detach().double().requires_grad_() for t in given]
        with (
            package.use("cpp"),
            _running.watched(module) as called,
            torch.autocast("cpu", autocast, enabled=autocast is not None),
        ):
            made = loss(*given, y, chunk=5)
            made.backward()
        assert any("both" in name for name in called) and made.dtype == dtype
        wanted = torch.nn.functional.cross_entropy(wide[0] @ wide[1].T, y)
        wanted.backward()
        for one, other in zip(given, wide, strict=True):
            gap = (one.grad.double() - other.grad).norm() / other.grad.norm()
            assert gap < allowed, (dtype, autocast)
    with package.use("cpp"), pytest.raises((IndexError, RuntimeError)):
        loss(x, w, y.index_fill(0, torch.tensor([3]), 40), chunk=5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_gallery_in_chunks_on_kernels(case):
    name, axis = case.split()
    found = generate_of_ranks(forward_from(name), [axis], way=CHUNK, kernels=kernels["cpp"])
    assert found.difference <= TOLERANCE and found.kernels


@pytest.mark.slow
@pytest.mark.parametrize("spelling", LOSSES)
def test_a_loss_in_every_spelling(spelling, tmp_path):
    file = own(tmp_path, spelling)
    assert generate_of_ranks(forward_from(file), ["N"], way=CHUNK, kernels=kernels["cpp"]).kernels


@pytest.mark.slow
def test_a_class_that_says_so_has_kernels_of_chunks(tmp_path):
    text = START + "    chunked = N\n" + LOSSES["shifted by the maximum"]
    forward = forward_from(forward_file(tmp_path, "Own", text))
    made = generate(forward, kernels=kernels["cpp"])
    assert "own_both" in made.kernels[1] and "kernels.both" in made.kernels[1]


@pytest.mark.triton
@pytest.mark.parametrize("case", ["linear_cross_entropy N", "scaled_dot_product_attention S"])
def test_on_triton(case):
    name, axis = case.split()
    kernels["triton"].ready()
    found = generate_of_ranks(forward_from(name), [axis], way=CHUNK, kernels=kernels["triton"])
    assert found.kernels
