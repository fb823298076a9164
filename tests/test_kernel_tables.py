"""A table of kernels, read: which kernel is called with what, and what its row makes of it. None is
built here; ``called`` are Python functions in their place.
"""

import importlib
import sys
from dataclasses import replace

import pytest
import torch

from codegen.schedule.divided import divided
from codegen.schedule.elements import Element, entry, index, number, size
from codegen.schedule.nodes import Flat, Node
from codegen.targets import kernels as languages

SHAPES = """
    x, y, dx, dy: N C
    inv_std: N 1
    gain = 1, bias = 0.5, dgain, dbias: C
    labels: N, whole numbers
    total: one number
    Gate = 4
    gates: Gate N
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """What all kernels share, as a package of its own."""
    folder = tmp_path_factory.mktemp("tables")
    kernels = folder / "tables_of_kernels"
    kernels.mkdir()
    for name, text in languages["cpp"].shared().items():
        (kernels / name).write_text(text)
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"tables_of_kernels.{name}")
    sys.path.remove(str(folder))


class Rows:
    """Writes rows as functions; ``called`` are (kernel, what it was given) in order."""

    def __init__(self, package):
        self.calls, self.reading = package("_calls"), package("_reading")
        self.kernels = package("_running").Kernels("thing.py")
        self.called, self.status = [], 0

    def function(self, arguments, steps, results, make=None, filled=True, **more):
        shapes = self.reading.shapes_of(SHAPES)
        own = self.calls.Call(self.kernels, shapes, steps, arguments, filled=filled, **more)
        function = own.function([results], make)
        for name, kernel in self.kernels.every.items():
            for dtype in (torch.float32, torch.float64):
                kernel.functions[dtype] = lambda *given, n=name: self.answer(n, given)
        return function

    def answer(self, name, given):
        self.called.append((name, given[:-1]))  # the last one is the number of threads
        return self.status


@pytest.fixture
def rows(package):
    return Rows(package)


X = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
GAIN = torch.ones(3, dtype=torch.float64)


def test_a_kernel_is_given_addresses_sizes_and_numbers_in_their_order(rows):
    step = "forward(gain, x; C, N; eps) -> inv_std, y"
    forward = rows.function(["x", "gain", "eps"], [step], ["y", "gain", "eps", "nothing"])
    y, gain, eps, nothing = forward(X, GAIN, 1e-5)
    ((name, given),) = rows.called
    inv_std, made = given[2:4]
    assert (name, given[:2], given[4:]) == (
        "forward",
        (GAIN.data_ptr(), X.data_ptr()),
        (3, 2, 1e-5),
    )
    assert y.data_ptr() == made != inv_std and y.shape == (2, 3) and y.dtype == X.dtype
    assert gain is GAIN and eps == 1e-5 and nothing is None
    assert rows.kernels.every["forward"].counts == (4, 2, 1)


def test_what_is_not_contiguous_is_copied_and_what_a_kernel_refuses_is_none(rows):
    forward = rows.function(["x"], ["forward(x; C, N) -> y"], ["y"])
    strided = X.T
    forward(strided)
    assert rows.called[0][1][0] != strided.data_ptr() and rows.called[0][1][2:] == (2, 3)
    rows.status = 1
    assert forward(X) is None
    rows.status = 2
    with pytest.raises(MemoryError, match="thing: forward ran out of memory"):
        forward(X)


def test_what_is_left_out_is_filled_in_where_the_row_has_it(rows):
    step = "forward(bias, gain, x; C, N) -> y"
    gain, bias = rows.function(["x", "gain", "bias"], [step], ["gain", "bias"])(X, None, None)
    assert torch.equal(gain, GAIN) and torch.equal(bias, GAIN / 2)
    plain = rows.function(["x", "gain", "bias"], ["plain(x; C, N) -> y"], ["y", "gain"])
    assert torch.equal(plain(X, None, None)[1], GAIN)  # which is a result
    plain = rows.function(["x", "gain"], ["plain(x; C, N) -> y"], ["y"])
    assert len(plain(X, None)) == 1
    back = rows.function(["dy", "gain"], ["back(dy, gain; C, N) -> dx"], ["dx"], filled=False)
    assert back(X, GAIN)[0].shape == (2, 3)


def test_lines_of_torch_stand_between_kernels(rows):
    steps = [
        ("product", lambda x, gain: x @ gain),
        "forward(product: N; N) -> total",
        ("low, high", lambda x, N: (x.min(), N)),
        "other = low",
        "twice = N * C",
    ]
    forward = rows.function(["x", "gain"], steps, ["total", "other", "high", "twice"])
    total, other, high, twice = forward(X, GAIN)
    assert total.shape == () and other == 0 and high == 2 and twice == 6
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (product,) = rows.function(["x", "gain"], steps[:2], ["product"])(X.float(), GAIN.float())
    assert product.dtype == torch.float32


def test_a_part_leaves_null_what_is_not_wanted(rows):
    step = "backward(dy; C, N) -> dgain, dbias, dx"
    made = ["dx", "dbias", "also"]
    same = "also = dbias"
    part = {"part": ["dbias"], "left_out": ["dx", "dgain"], "filled": False}
    dx, dbias, also = rows.function(["dy"], [step, same], made, **part)(X)
    ((name, given),) = rows.called
    assert name == "backward_of_dbias" and dx is None and dbias is also
    assert given[1:4] == (None, dbias.data_ptr(), None)


def test_sizes_are_fixed_given_or_read_off_shapes(rows):
    labels = torch.zeros(2, dtype=torch.int64)
    step = "forward(labels, x; C, Gate, K, N) -> gates, more: K 1"
    forward = rows.function(["labels", "x", "K"], [step], ["gates", "more", "N"])
    gates, more, n = forward(labels, X, 7)
    assert gates.shape == (4, 2) and more.shape == (7, 1) and n == 2
    assert gates.dtype == torch.float64  # that of the first argument which is no label
    assert rows.called[0][1][4:] == (3, 4, 7, 2)


def test_a_name_that_is_nowhere_is_named(rows):
    with pytest.raises(ValueError, match="K is neither given nor made"):
        rows.function(["x"], ["forward(x; K) -> y"], ["y"])


def test_a_row_for_several_reductions_is_one_for_each(package):
    table = package("_table").Table.__new__(package("_table").Table)
    table.rows = []
    step = "forward(x; C, N; divisor) -> total"
    table.add("sum | mean plain loss of dx", "divisor = 1 | N * C", step, of="dx | dx dy")
    one, other = table.rows
    assert (one.word, one.plain, one.kind, one.of) == ("sum", True, "loss", ("dx",))
    assert one.steps == ("divisor = 1", step) and other.steps == ("divisor = N * C", step)
    assert other.word == "mean" and other.parts == (("dx",), ("dx", "dy"))
    table.add("lean backward", step, saved="x, eps")
    last = table.rows[-1]
    assert (last.word, last.plain, last.kind, last.saved) == (
        "",
        False,
        "lean backward",
        ("x", "eps"),
    )


# -- reductions that differ in a divisor -------------------------------------------

LOSSES = entry("losses", index("N"))


def times(*args):
    return Element("multiply", args)


def divide(*args):
    return Element("divide", args)


def flat_of(*values):
    """``total`` is the sum of losses, or the first of the values; the others are gradients."""
    first = Node("total", (), LOSSES, "sum", ("N",))
    of_sum, *gradients = values
    nodes = [first] if of_sum is None else [replace(first, name="sum"), Node("total", (), of_sum)]
    nodes += [Node(f"d{i}", ("N",), value) for i, value in enumerate(gradients)]
    return Flat((), (), tuple(nodes), {}, (("total", "total"),), (), {})


def test_a_sum_and_what_is_divided_by_sizes_are_one_function_of_a_divisor():
    x = entry("x", index("N"))
    whole = flat_of(None, times(entry("dloss"), x), x)
    mean = flat_of(
        divide(divide(entry("sum"), size("N")), size("C")),
        times(divide(divide(entry("dloss"), size("N")), size("C")), x),
        times(divide(divide(number(1), size("N")), size("C")), x),
    )
    found, sizes = divided(whole, mean, "divisor")
    by = Element("scalar", name="divisor")
    assert sizes == ("C", "N") and found.scalars == ("divisor",)
    assert [node.value for node in found.nodes[1:]] == [
        divide(entry("sum"), by),
        times(divide(entry("dloss"), by), x),
        times(divide(number(1), by), x),
    ]


@pytest.mark.parametrize(
    "gradient",
    [
        times(divide(entry("dloss"), size("C")), entry("x", index("N"))),  # by other sizes
        times(divide(entry("dloss"), size("N")), entry("y", index("N"))),  # of something else
        divide(times(entry("dloss"), entry("x", index("N"))), entry("counted")),  # by no size
    ],
)
def test_what_differs_in_more_is_not(gradient):
    whole = flat_of(None, times(entry("dloss"), entry("x", index("N"))))
    assert divided(whole, flat_of(divide(entry("sum"), size("N")), gradient), "divisor") is None
    assert divided(whole, whole, "divisor") is None


def test_loops_over_other_axes_are_not():
    x = entry("x", index("N"))
    whole, mean = flat_of(None, x), flat_of(divide(entry("sum"), size("N")), x)
    assert divided(whole, mean, "divisor") is not None
    *first, last = mean.nodes
    other = replace(mean, nodes=(*first, replace(last, axes=("C",))))
    assert divided(whole, other, "divisor") is None
