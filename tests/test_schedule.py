"""What a schedule says beside its loops: formats, over which rows a sum runs, what is alive."""

from dataclasses import replace
from pathlib import Path

import pytest
from generating import forward_file

from codegen.building.programs import program_of
from codegen.schedule.costs import CPU, GPU
from codegen.schedule.dropping import without
from codegen.schedule.elements import (
    Element,
    call,
    choose,
    compare,
    entry,
    index,
    number,
    over,
    plus,
    size,
)
from codegen.schedule.flattening import flat
from codegen.schedule.merging import merged
from codegen.schedule.nodes import Array, Flat, LibraryNode, Node
from codegen.schedule.planning import planned
from codegen.schedule.shape import shape_of
from codegen.schedule.walks import parts_of
from codegen.targets.cpp.kernels import kernels_of
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.triton.alive import alive
from codegen.targets.triton.values import Values, inlined_in
from derive import derive
from derive.language.notation.library import as_forward


@pytest.fixture(scope="module")
def program():
    """The Program of a forward of the gallery by its name."""
    known = {}

    def of(name):
        if name not in known:
            forward = as_forward(name)
            known[name] = program_of(derive(forward), Path(forward.definition.place.file), "")
        return known[name]

    return of


def sweeps(flat, costs=CPU):
    return [stage for stage in planned(flat, costs).stages if not isinstance(stage, LibraryNode)]


def test_statistics_are_exact_and_what_is_returned_is_in_the_format_of_the_inputs(program):
    whole = with_little_kept(program("layer_norm"))
    forward = planned(flat(whole, whole.forward)).entries()
    given = dict.fromkeys(["x", "gain", "bias"], "real")
    kept = dict.fromkeys(["mean", "sum_diff", "inv_std"], "exact")
    assert forward == given | kept | {"y": "real"}
    backward = planned(flat(whole, whole.backward)).entries()
    assert (backward["x"], backward["mean"], backward["inv_std"]) == ("real", "exact", "exact")
    assert (backward["dx"], backward["dgain"]) == ("real", "real")


def test_a_gradient_that_is_read_again_is_not_rounded_before(program):
    """The dx of a batch norm is made of dgain."""
    whole = program("batch_norm")
    own = flat(whole, whole.backward)
    entries = planned(own).entries()
    assert (entries["dgain"], entries["dbias"], entries["dx"]) == ("exact", "exact", "real")


def test_labels_and_what_a_loss_keeps(program):
    whole = program("softmax_nll")
    own = flat(whole, whole.backward)
    assert planned(own).entries() == {
        "dloss": "real",
        "labels": "whole",
        "probs": "exact",
        "dlogits_": "real",
    }


def test_over_which_rows_a_sum_runs(program):
    """Of a group norm, the sum that is dbias runs over the batch and not over the groups."""
    whole = program("group_norm")
    first = sweeps(flat(whole, whole.backward))[0]
    assert first.parallel == ("N", "G") and first.over("dbias") == ("N",)
    whole = program("softmax_nll")
    (first, _) = sweeps(flat(whole, whole.forward))
    assert first.over("sum_1") == ("N",)


def alive_in(whole, backward, chunked=False):
    """How many values are alive in the one sweep of a function on a GPU."""
    own = flat(whole, whole.backward if backward else whole.forward)
    plan = planned(own, GPU)
    (sweep,) = plan.stages
    sweep = parts_of(sweep)[0] if chunked else sweep
    shape = replace(shape_of(sweep), chunked=chunked)
    return alive(sweep, shape, Values(sweep, inlined_in(own, plan)))


@pytest.mark.parametrize(
    ("name", "backward", "registers", "chunks"),
    [
        ("softmax", False, 1, 3),  # x; in chunks the exponential, a maximum and a sum
        ("softmax", True, 2, 3),  # dy, y; in chunks their product, and the sum of it
        ("rms_norm", True, 4, 3),  # x, gain, gain*dy, and the sum dgain, which is apart in chunks
        ("layer_norm", True, 5, 4),  # xhat, gain, gain*dy, dgain, dbias
        ("layer_norm", False, 2, 3),  # x and its square, as gain is read later; y, gain, bias
    ],
)
def test_how_many_values_of_a_row_are_alive(program, name, backward, registers, chunks):
    whole = program(name)
    assert alive_in(whole, backward) == registers
    assert alive_in(whole, backward, chunked=True) == chunks


@pytest.mark.parametrize(
    ("lines", "registers"),
    [
        ("e = tanh(x)\n    t = Sum(e, C)\n    y = e * t", 1),
        ("t = Sum(tanh(x), C)\n    y = tanh(x) * t", 1),  # what is the same is computed once
        ("t = Sum(tanh(x), C)\n    y = tanh(x) * t + x", 2),
        ("a = tanh(x)\n    t = Sum(a * abs(x), C)\n    y = (a + t) * (abs(x) + t) * x", 3),
    ],
)
def test_what_is_read_on_both_sides_of_a_reduction_is_alive(tmp_path, lines, registers):
    text = f"x = Input(N, C)\n    {lines}"
    forward = as_forward(str(forward_file(tmp_path, "Rows", f"\n    {text}\n")))
    whole = program_of(derive(forward), Path(forward.definition.place.file), "")
    assert alive_in(whole, backward=False) == registers


def test_a_gpu_adds_up_over_rows_where_a_cpu_has_few_long_ones(program):
    """A batch norm of images has as many rows as channels; each is scattered over the batch."""
    whole = program("batch_norm_biased")
    own = flat(whole, whole.backward)
    (sweep,) = sweeps(own)
    assert (sweep.parallel, sweep.partial) == (("C",), ())
    first, second = sweeps(own, GPU)
    assert (first.parallel, second.parallel) == (("N", "C"), ("N", "C"))
    assert first.partial == ("dgain", "dbias") and first.over("dgain") == ("N",)


N, C = index("N"), index("C")


def joined(*nodes, **arrays):
    """The axes that are one in a function of nodes and arrays."""
    given = tuple(Array(name, tuple(axes), ()) for name, axes in arrays.items())
    results = tuple((node.name, node.name) for node in nodes)
    found = merged(Flat(given, (), nodes, {}, results, (), {}))
    return found, found.joined


def test_neighbouring_axes_that_are_always_met_together_are_one():
    doubled = Node("y", ("N", "C"), plus(entry("x", N, C), entry("x", N, C)))
    mean = over(over(entry("x", N, C), size("N")), size("C"))
    total = Node("t", (), mean, "sum", ("N", "C"))
    found, axes = joined(doubled, total, x="NC")
    assert axes == {"N*C": ("N", "C")}
    both = index("N*C")
    assert found.arrays[0].axes == ("N*C",)
    assert found.nodes == (
        Node("y", ("N*C",), plus(entry("x", both), entry("x", both))),
        Node("t", (), over(over(entry("x", both), size("N")), size("C")), "sum", ("N*C",)),
    )
    third = Node("y", ("N", "C", "S"), entry("x", N, C, index("S")))
    assert joined(third, x="NCS")[1] == {"N*C*S": ("N", "C", "S")}


@pytest.mark.parametrize(
    "node",
    [
        Node("y", ("N", "C"), plus(entry("x", N, C), entry("gain", C))),
        Node("y", ("N",), entry("x", N, C), "sum", ("C",)),
        Node("y", ("N", "C"), plus(entry("x", N, C), entry("z", C, N))),
        Node("y", ("N", "C"), plus(entry("x", N, C), Element("real", (C,)))),
        Node("y", ("N", "C"), entry("x", N, Element("label", (N, C), "at"))),
        Node("y", ("C", "N"), entry("x", N, C)),
    ],
)
def test_axes_that_are_met_apart_stay_so(node):
    arrays = {"x": "NC", "gain": "C", "z": "CN", "at": "NC"}
    read = {name: axes for name, axes in arrays.items() if name in node.reads}
    assert joined(node, **read)[1] == {}


def test_an_axis_that_is_summed_alone_stays_so():
    doubled = Node("y", ("N", "C"), plus(entry("x", N, C), entry("x", N, C)))
    assert joined(doubled, Node("count", (), size("C"), "sum", ("N",)), x="NC")[1] == {}


def test_a_kernel_in_cpp_has_one_loop_over_axes_that_are_always_met_together():
    """Its sizes are those of both, and it divides by their product; along an axis that is met alone
    there is a loop of its own.
    """
    third = over(over(entry("x", N, C), size("C")), number(3))
    alone = plus(third, entry("gain", C))
    both = over(over(over(entry("x", N, C), size("C")), size("N")), size("C"))
    for value, loops in ((both, "entries(NC, threads"), (alone, "entries(N, C, threads")):
        node = Node("y", ("N", "C"), value)
        given = tuple(Array(n, ("N", "C")[-k:], ()) for n, k in (("x", 2), ("gain", 1)))
        arrays = tuple(array for array in given if array.name in node.reads)
        own = Flat(arrays, (), (node,), {}, (("y", "y"),), (), {})
        (kernel,) = kernels_of("forward", own, {"N": "N", "C": "C"})
        text = "\n".join(kernel.lines)
        assert kernel.sizes == ("C", "N") and loops in text
        assert ("const int64_t NC = N * C;" in text) == (value is both)
        assert ("const Divisor by_NC = Real(NC);" in text) == (value is both)
        assert ("y[nc] = x[nc] / by_NC / by_C;" in text) == (value is both)


def text_of(flat, codes) -> str:
    kernels = kernels_of("forward", flat, codes)
    return "\n".join(line for kernel in kernels for line in kernel.lines)


def text_of_one(value, *scalars):
    own = Flat(
        (Array("x", ("N", "C"), ()),),
        scalars,
        (
            Node("total", ("N",), entry("x", N, C), "sum", ("C",)),
            Node("y", ("N", "C"), value),
        ),
        {},
        (("y", "y"), ("total", "total")),
        (),
        {},
    )
    return text_of(own, {"N": "N", "C": "C"})


def test_what_all_entries_are_divided_by_is_inverted_before_their_loop():
    """But for a number of the caller's, and for what is divided once in a row."""
    x, beta = entry("x", N, C), Element("scalar", name="beta")
    text = text_of_one(plus(over(x, entry("total", N)), over(x, beta)), "beta")
    assert text.index("const Divisor by_total = total_now;") < text.index("each(C")
    assert "x[n * C + c] / by_total + x[n * C + c] / Real(beta)" in text
    assert "Divisor" not in text_of_one(plus(x, over(entry("total", N), size("C"))))


@pytest.mark.parametrize(("dear", "chosen"), [(True, True), (False, False)])
def test_a_dear_choice_by_a_number_is_made_before_the_loops(dear, chosen):
    x, beta = entry("x", N, C), Element("scalar", name="beta")
    other = call("exp", x) if dear else plus(x, x)
    made = choose(compare(beta, ">", number(0)), call("tanh", x), other)
    text = text_of_one(made, "beta")
    assert ("either(beta_above_zero, [=](auto beta_above_zero)" in text) == chosen
    assert "choose(beta_above_zero, tanh" in text


def test_batch_norm_reads_its_input_twice_on_a_cpu(program):
    """Once for all of its sums, and once for what it returns."""
    whole = program("batch_norm_biased")
    text = text_of(without(flat(whole, whole.forward), "S"), {"N": "N", "C": "C"})
    assert text.count("rows(N, C * N") == 1 and text.count("entries(N, C") == 1
    assert "/ Real(1)" not in text


# -- when a value is computed -----------------------------------------------------------


def test_what_a_later_sweep_reads_is_computed_in_it():
    """A norm that is summed over rows comes first; the exponentials are in no memory then."""
    nodes = (
        Node("norm", (), entry("weight", N), "sum", ("N",)),
        Node("e", ("N", "C"), call("exp", entry("x", N, C))),
        Node("s", ("N",), entry("e", N, C), "sum", ("C",)),
        Node("total", (), over(entry("s", N), entry("weight", N)), "sum", ("N",)),
        Node("y", ("N", "C"), over(over(entry("e", N, C), entry("s", N)), entry("norm"))),
        Node("loss", (), over(entry("total"), entry("norm"))),
    )
    arrays = (Array("x", ("N", "C"), ()), Array("weight", ("N",), ()))
    results = (("loss", "loss"), ("y", "y"))
    stages = planned(Flat(arrays, (), nodes, {}, results, (), {})).stages
    assert [stage.stored for stage in stages] == [("norm",), ("total", "y"), ("loss",)]
