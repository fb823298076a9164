"""Kernels in Triton beside the lines that they stand for, run by Triton's interpreter: every
function, in every loop, and never a wrong value where no kernel can compute. The interpreter has to
be chosen before Triton is imported: `make test-triton` runs this file in a process of its own.
"""

import os
from contextlib import contextmanager
from importlib import import_module

import pytest
import torch
from gallery import EVERY_REDUCTION, EVERYTHING

import generated

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]

HALF = (torch.float16, torch.bfloat16)
SIZES = (1, 3, 17, 64, 1000, 1025)  # the last one has an entry more than a tile
SMALL = (
    1e-2  # an array of smaller entries is compared with this: they are what is left of larger ones
)
LOWERED = {"resident": 32, "tile": 16, "chunk": 16, "programs": 2, "few": 1}
# Of the largest entry. The interpreter cuts float32 off to bfloat16: a unit, and not half of one;
# and twice where the gradient of a loss is scaled by what arrives at it.
TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 1e-4,
    torch.float16: 2**-10,
    torch.bfloat16: 2**-6,
}

# Products of 16 bits are rounded before what follows, as torch rounds them; the gradient of the
# scale of CLIP is what large sums leave of one another, and batches of few rows magnify it in MLP.
PRODUCTS = dict.fromkeys(
    [
        "barlow_twins",
        "biased_attention",
        "bilinear",
        "causal_attention",
        "conv1d",
        "conv2d",
        "gru_cell",
        "info_nce",
        "linear",
        "linear_attention",
        "lstm_cell",
        "masked_attention",
        "mlp",
        "rnn_cell",
        "scaled_dot_product_attention",
        "siglip",
    ],
    4,
) | {"clip": 128, "mlp": 16, "rnn_cell": 8, "gru_cell": 8, "lstm_cell": 8}

# The backward takes exp(x - y) of an output that was rounded: that is off by some |y| units.
ROUNDED = {"logsumexp": 8}


def module(name: str):
    return import_module(f"generated.triton.{name}")


everything = pytest.mark.parametrize("emitted", EVERYTHING, ids=str)


@contextmanager
def kernels_called(emitted):
    """The names of the kernels of a function that compute something."""
    own = import_module("generated.triton._running").watched(module(emitted.snake))
    with own as called, generated.use("triton"):
        yield called


@pytest.fixture
def lowered(request):
    """Limits so low that small arrays come to the second round of every loop."""
    limits = import_module("generated.triton._rules").limits
    before = {name: getattr(limits, name) for name in LOWERED}
    _forgotten()
    for name, value in LOWERED.items():
        setattr(limits, name, value)
    yield
    _forgotten()
    for name, value in before.items():
        setattr(limits, name, value)


def _forgotten() -> None:
    """How kernels were launched, which they remember by sizes."""
    every = import_module("generated.triton._running").every
    for own in {module(emitted.snake) for emitted in EVERYTHING}:
        for name in every(own):
            getattr(own, name).launches.clear()


def lengths_of(emitted, last: int, other: int = 5) -> list[int]:
    """``last`` entries along the axis along which most arrays lie in memory, else ``other``."""
    definition = emitted.definition
    ends = [t.home[-1] for t in definition.arguments if t.home]
    main = max(dict.fromkeys(ends), key=ends.count, default=None)
    return [last if axis == main else other for axis in definition.independent_axes]


def arguments_of(emitted, last: int, dtype=torch.float64, other: int = 5) -> dict:
    return emitted.arguments(dtype=dtype, lengths=lengths_of(emitted, last, other))


def upstream_of(output: torch.Tensor) -> torch.Tensor:
    """Random numbers, which every dtype has."""
    generator = torch.Generator().manual_seed(3)
    drawn = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    return (drawn.mul(8).round() / 8).to(output)


def outcome(emitted, arguments, wanted, upstream=None):
    """The output and the gradients, for a random upstream gradient: twice."""
    leaves = {
        name: t.detach().requires_grad_(name in wanted) if isinstance(t, torch.Tensor) else t
        for name, t in arguments.items()
    }
    output = emitted.function(**leaves)
    upstream = upstream_of(output) if upstream is None else upstream
    inputs = [leaves[name] for name in wanted if isinstance(leaves.get(name), torch.Tensor)]
    results = [output.detach()]
    for again in (True, False):
        results += torch.autograd.grad(
            output,
            inputs,
            upstream,
            retain_graph=again,
            allow_unused=True,
            materialize_grads=True,
        )
    return results


def outcome_or_refusal(emitted, arguments, wanted):
    """What is said of sizes for which there is no value."""
    try:
        return outcome(emitted, arguments, wanted)
    except ValueError as error:
        return str(error)


def assert_same(ours, theirs, tolerance):
    for own, other in zip(ours, theirs, strict=True):
        assert own.shape == other.shape and own.dtype == other.dtype
        own, other = own.double(), other.double()
        assert torch.equal(own.isnan(), other.isnan())
        assert torch.equal(own.isinf(), other.isinf())
        finite = other.isfinite()
        scale = other[finite].abs().max().item() if finite.any() else 0.0
        gap = (own[finite] - other[finite]).abs().max().item() if finite.any() else 0.0
        assert gap <= tolerance * max(scale, SMALL), (gap, scale)


def of(name: str):
    return next(e for e in (*EVERYTHING, *EVERY_REDUCTION) if str(e) == name)


def compared(emitted, arguments, wanted=None, tolerance=None) -> list[str]:
    """Kernels beside lines; the names of the kernels that were called."""
    wanted = [name for name in emitted.inputs if name in arguments] if wanted is None else wanted
    tensors = [t for t in arguments.values() if isinstance(t, torch.Tensor)]
    dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.float64)
    with generated.use("torch"):
        theirs = outcome_or_refusal(emitted, arguments, wanted)
    with kernels_called(emitted) as called:
        ours = outcome_or_refusal(emitted, arguments, wanted)
    if isinstance(theirs, str):
        assert ours == theirs
        return [theirs]
    assert_same(ours, theirs, tolerance or TOLERANCES[dtype])
    return called


@everything
@pytest.mark.parametrize("size", SIZES)
def test_kernels_compute_what_the_lines_do(emitted, size):
    """With and without what is optional: all gradients, and the first alone."""
    arguments = arguments_of(emitted, size)
    optional = {t.name for t, _ in emitted.definition.optional}
    assert compared(emitted, arguments)
    compared(emitted, {n: v for n, v in arguments.items() if n not in optional})
    compared(emitted, arguments, emitted.inputs[:1])


SEVERAL = [e for e in EVERYTHING if len(e.definition.outputs) > 1]


@pytest.mark.parametrize("emitted", SEVERAL, ids=str)
def test_each_of_several_outputs_alone(emitted):
    function = getattr(emitted.module, emitted.snake)
    arguments = arguments_of(emitted, 17)

    def found():
        leaves = {name: t.detach().requires_grad_() for name, t in arguments.items()}
        outputs = function(**leaves)
        how = {"retain_graph": True, "materialize_grads": True}
        for output in outputs:
            yield from torch.autograd.grad(output.sin().sum(), [*leaves.values()], **how)

    theirs = [*found()]  # before anything had the place of anything
    with kernels_called(emitted) as called:
        ours = [*found()]
    assert {*called} >= {"forward", "backward"}
    assert_same(ours, theirs, 1e-12)


@everything
def test_every_loop_comes_to_its_second_round(emitted, lowered):
    for size in (17, 48):
        assert compared(emitted, arguments_of(emitted, size))


@everything
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
def test_all_dtypes(emitted, dtype):
    units = (ROUNDED | PRODUCTS).get(emitted.snake, 1) if dtype in HALF else 1
    tolerance = TOLERANCES[dtype] * units
    for size in (1, 3, 17, 64, 1025):
        assert compared(emitted, arguments_of(emitted, size, dtype), tolerance=tolerance)


# -- hard cases ---------------------------------------------------------------

HARD = {
    "large": [300.0, -300.0, 0.0, 1e4, -1e4],
    "infinite": [float("inf"), 1.0, -float("inf"), 0.0, 2.0],
    "nothing": [-float("inf")] * 5,
    "no number": [float("nan"), 1.0, 2.0, -1.0, 0.0],
    "zeros": [0.0, -0.0, 0.0, -0.0, 0.0],
}
ALONE = [
    e
    for e in EVERYTHING
    if len(e.definition.arguments) == 1 and not e.definition.scalars and e.inputs
]


@pytest.mark.parametrize("row", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("emitted", ALONE, ids=str)
def test_extremes_come_out_as_from_the_lines(emitted, row):
    (name,) = emitted.inputs
    rank = len(emitted.definition.arguments[0].home)
    entries = torch.tensor([row, row[::-1], [1.0, 2.0, -3.0, 0.5, 0.0]], dtype=torch.float64)
    shape = {1: (15,), 2: (3, 5), 3: (3, 5, 1)}[rank]
    assert compared(emitted, {name: entries.reshape(shape)}, tolerance=1e-10)


@pytest.mark.parametrize("row", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "softmax_nll"])
def test_extremes_in_chunks(name, row, lowered):
    """A first chunk with nothing in it, and the extreme entries in another."""
    emitted = of(name)
    rows = torch.full([3, 40], -float("inf"), dtype=torch.float64)
    rows[0, 20:25] = rows[1, :5] = torch.tensor(row, dtype=torch.float64)
    rows[2] = torch.arange(40.0)
    first, *labels = (t.name for t in emitted.definition.arguments)
    arguments = {first: rows} | dict.fromkeys(labels, torch.tensor([21, 2, 39]))
    assert compared(emitted, arguments, [first], 1e-10)


LABELLED = [e for e in EVERYTHING if e.definition.ignoring]


@pytest.mark.parametrize("emitted", LABELLED, ids=str)
@pytest.mark.parametrize("every", [False, True], ids=["some", "all"])
def test_labels_that_are_ignored(emitted, every, lowered):
    arguments = arguments_of(emitted, 17)
    for ignoring in emitted.definition.ignoring:
        labels = arguments[ignoring.label.name]
        labels.view(-1)[:: 1 if every else 2] = -100
    assert compared(emitted, arguments)


def test_a_label_that_is_not_there_is_no_number_and_reads_from_nowhere():
    """On a GPU nothing waits to look at labels; on the interpreter the lines refuse it before."""
    own = module("softmax_nll")
    logits, labels = torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 4, 1])
    loss, *kept = own.softmax_nll_forward(logits, labels)
    assert loss.isnan() and all(t.isfinite().all() for t in kept)
    gradient = own.softmax_nll_backward(torch.ones_like(loss), logits, labels, *kept)
    assert gradient.isnan().all(1).tolist() == [False, True, False]
    assert gradient[[0, 2]].isfinite().all()


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "gelu", "logsumexp", "mse"])
def test_sizes_of_nothing_are_left_to_the_lines(name):
    emitted = of(name)
    optional = {t.name for t, _ in emitted.definition.optional}
    needed = [name for name in emitted.inputs if name not in optional]
    arguments = dict.fromkeys(needed, torch.randn(0, 3, dtype=torch.float64))
    assert compared(emitted, arguments) == []


def test_any_strides():
    base = torch.randn(12, 20, dtype=torch.float64)
    for view in (base.T, base[::2, 1::3], base[:1].expand(5, 20), base[3:, 5:]):
        assert compared(of("softmax"), {"x": view})


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "softmax_nll", "rms_norm"])
def test_the_same_bits_each_time(name, lowered):
    emitted = of(name)
    arguments = arguments_of(emitted, 48, torch.float32, other=33)
    with kernels_called(emitted):
        first, again = (outcome(emitted, arguments, emitted.inputs) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


@pytest.mark.parametrize("name", ["layer_norm", "softmax_nll", "mse"])
def test_more_parts_of_a_sum_than_are_added_at_once(name, lowered):
    import_module("generated.triton._rules").limits.programs = 40
    assert compared(of(name), arguments_of(of(name), 17, other=200))


def test_a_row_longer_than_registers_at_the_usual_limits():
    for name in ("softmax", "layer_norm"):
        emitted = of(name)
        arguments = arguments_of(emitted, 33_000, other=2)
        assert compared(emitted, arguments, tolerance=1e-11)
