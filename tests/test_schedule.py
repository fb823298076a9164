"""What a schedule says beside its loops: formats, over which rows a sum runs, what is alive."""

from pathlib import Path

import pytest

from codegen.build import program_of
from codegen.driver import derive
from codegen.schedule.costs import CPU, GPU
from codegen.schedule.flattening import flat
from codegen.schedule.lean import lean
from codegen.schedule.nodes import Whole
from codegen.schedule.planning import planned
from derive.notation.library import as_forward


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
    return [stage for stage in planned(flat, costs).stages if not isinstance(stage, Whole)]


def test_statistics_are_exact_and_what_is_returned_is_in_the_format_of_the_inputs(program):
    found = lean(program("layer_norm"))
    forward = planned(found.flat_forward).entries(found.flat_forward)
    given = dict.fromkeys(["x", "gain", "bias"], "real")
    assert forward == given | {"mean": "exact", "sum_2": "exact", "inv_std": "exact", "y": "real"}
    backward = planned(found.flat_backward).entries(found.flat_backward)
    assert (backward["x"], backward["mean"], backward["inv_std"]) == ("real", "exact", "exact")
    assert (backward["dx"], backward["dgain"]) == ("real", "real")


def test_a_gradient_that_is_read_again_is_not_rounded_before(program):
    """The dx of a batch norm is made of dgain."""
    whole = program("batch_norm")
    own = flat(whole, whole.backward)
    entries = planned(own).entries(own)
    assert (entries["dgain"], entries["dbias"], entries["dx"]) == ("exact", "exact", "real")


def test_labels_and_what_a_loss_keeps(program):
    whole = program("softmax_nll")
    own = flat(whole, whole.backward)
    assert planned(own).entries(own) == {
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


@pytest.mark.parametrize(
    ("name", "backward", "alive"),
    [
        ("layer_norm", True, 5),  # dy, gain, xhat, and the sums dgain and dbias
        ("layer_norm", False, 3),  # x, gain, bias
        ("rms_norm", True, 4),  # dy, x, gain, and the sum dgain
        ("softmax", True, 2),  # dy, y
    ],
)
def test_how_many_full_rows_are_alive(program, name, backward, alive):
    whole = program(name)
    (sweep,) = sweeps(flat(whole, whole.backward if backward else whole.forward))
    assert sweep.alive() == alive


def test_a_gpu_adds_up_over_rows_where_a_cpu_has_few_long_ones(program):
    """A batch norm of images has as many rows as channels; each is scattered over the batch."""
    whole = program("batch_norm_biased")
    own = flat(whole, whole.backward)
    (sweep,) = sweeps(own)
    assert (sweep.parallel, sweep.partial) == (("C",), ())
    first, second = sweeps(own, GPU)
    assert (first.parallel, second.parallel) == (("N", "C"), ("N", "C"))
    assert first.partial == ("dgain", "dbias") and first.over("dgain") == ("N",)
