"""examples/exercises.py: what it finds exact, what it must not let pass, and what it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(EXAMPLES)  # where Python looks when it runs the program
    import exercises
    from character_model import network
    from character_model.words import Examples

pytestmark = pytest.mark.names
DTYPES = (torch.float32, torch.float64)
CAPABILITIES = ("DEFAULT", "AVX2", "AVX512")  # each CPU has those before its own
STATEMENTS = (
    *("emb", "embcat", "hprebn", "bnmeani", "bndiff", "bndiff2", "bnvar", "bnvar_inv", "bnraw"),
    *("hpreact", "h", "logits", "logit_maxes", "norm_logits", "counts", "counts_sum"),
    *("counts_sum_inv", "probs", "logprobs"),
)
PARAMETERS = ("C", "W1", "b1", "W2", "b2", "bngain", "bnbias")


def drawn_network(dtype, n: int = 32, hidden: int = 64, seed: int = 0):
    """Parameters, and a function that draws one batch after the other."""
    generator = torch.Generator().manual_seed(seed)
    drawn = exercises.drawn_parameters(27, hidden, generator)

    def batch_of() -> Examples:
        contexts = torch.randint(27, (n, 3), generator=generator)
        return Examples(contexts, torch.randint(27, (n,), generator=generator))

    return {name: parameter.to(dtype) for name, parameter in drawn.items()}, batch_of


def inexact(comparisons) -> list[str]:
    return [c.name for c in comparisons if not c.exact]


def far(comparisons) -> list[str]:
    return [c.name for c in comparisons if not c.approximate]


# What holds


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_all_26_gradients_are_exact(dtype, seed):
    parameters, batch_of = drawn_network(dtype, seed=seed)
    comparisons = exercises.first_exercise(parameters, batch_of())
    assert sorted(c.name for c in comparisons) == sorted([*STATEMENTS, *PARAMETERS])
    assert not inexact(comparisons) and not far(comparisons)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "hidden"), [(5, 7), (30, 7), (33, 64), (32, 1), (200, 30)])
def test_other_sizes_are_within_rounding(dtype, n, hidden):
    parameters, batch_of = drawn_network(dtype, n, hidden)
    batch = batch_of()
    assert not far(exercises.first_exercise(parameters, batch))
    assert not far(exercises.second_exercise(parameters, batch))
    assert not far(exercises.third_exercise(parameters, batch))
    assert not far(exercises.fourth_exercise(parameters, [batch_of() for _ in range(3)]))


def test_the_closed_forms_are_as_near_as_the_published_ones():
    parameters, batch_of = drawn_network(torch.float32)
    batch = batch_of()
    (logits,) = exercises.second_exercise(parameters, batch)
    assert logits.name == "logits" and 0 < logits.difference <= 1e-8
    hprebn = exercises.third_exercise(parameters, batch)[0]
    assert hprebn.name == "hprebn" and 0 < hprebn.difference <= 2e-9


def test_the_steps_descend():
    parameters, batch_of = drawn_network(torch.float64)
    batch = batch_of()
    first = exercises.differentiated(parameters, batch).values["loss"]
    comparisons = exercises.fourth_exercise(parameters, [batch] * 5)
    assert [c.name for c in comparisons] == list(PARAMETERS)
    assert exercises.differentiated(parameters, batch).values["loss"] < first - 0.1


def test_the_gradient_of_b1_is_measured_by_what_cancels():
    """Autograd's is rounding only: nothing is within rounding of it by its own size."""
    parameters, batch_of = drawn_network(torch.float32)
    reference = exercises.differentiated(parameters, batch_of())
    db1, zero = reference.gradients["b1"], torch.zeros(64)
    assert 0 < db1.abs().max() < 1e-7
    assert not exercises.compared("b1", zero, db1).approximate
    assert exercises.compared("b1", zero, db1, reference.scales()["b1"]).approximate


# What must not pass


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_unit_in_the_last_place_is_not_exact(dtype):
    reference = torch.tensor([0.3, -1.0, 2.0], dtype=dtype)
    ours = reference.clone()
    assert exercises.compared("x", ours, reference).exact
    ours[1] = torch.nextafter(ours[1], ours[0])
    comparison = exercises.compared("x", ours, reference)
    assert not comparison.exact and comparison.approximate
    assert 0 < comparison.difference <= torch.finfo(dtype).eps


def test_what_broadcasts_or_converts_is_not_compared():
    reference = torch.ones(1, 64)
    for ours in (torch.ones(64), torch.ones(1, 1), torch.ones(()), torch.ones(1, 64).double()):
        comparison = exercises.compared("bnmeani", ours, reference)
        assert not comparison.exact and not comparison.approximate
        assert comparison.difference is None
    comparison = exercises.compared("bnmeani", torch.ones(64), reference)
    assert comparison.kind == "(64,), not (1, 64)"


def test_a_nan_and_the_sign_of_a_zero_are_seen():
    zeros = torch.zeros(2)
    assert not exercises.compared("x", -zeros, zeros).exact
    assert exercises.compared("x", -zeros, zeros).approximate
    nan = exercises.compared("x", zeros / 0, torch.ones(2))
    assert not nan.exact and not nan.approximate


def with_chain(monkeypatch, name: str, change) -> None:
    """Change one gradient of the generated chain."""
    original = exercises.mlp_chain

    def changed(*arguments, **named):
        chain = original(*arguments, **named)
        return chain._replace(**{name: change(getattr(chain, name).clone())})

    monkeypatch.setattr(exercises, "mlp_chain", changed)


def one_unit_off(gradient):
    entry = gradient.view(-1)[7]
    gradient.view(-1)[7] = torch.nextafter(entry, entry + 1)
    return gradient


def printed(capsys, *arguments) -> tuple[int, str]:
    status = exercises.main([str(argument) for argument in arguments])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("name", ["logprobs", "logit_maxes", "bnvar", "b1"])
def test_a_gradient_that_is_off_by_one_unit_is_shown(name, monkeypatch, capsys):
    with_chain(monkeypatch, f"d{exercises.GENERATED_NAMES[name]}", one_unit_off)
    status, text = printed(capsys)
    assert status == 1
    assert text.endswith("\n25 of 26 exact\n")
    assert line_of(name, text)[2:4] == ["no", "yes"]


def test_a_gradient_of_another_shape_is_shown(monkeypatch, capsys):
    with_chain(monkeypatch, "dmean", lambda gradient: gradient[0])
    status, text = printed(capsys)
    assert status == 1
    assert text.endswith("\n25 of 26 exact\n")
    line = line_of("bnmeani", text)
    assert line[2:] == ["no", "no", "not compared"]
    assert line[1].startswith("(64,), not")


@pytest.mark.parametrize(
    ("room", "function", "place", "name"),
    [
        (exercises, "softmax_nll_backward", None, "logits"),
        (exercises, "batch_norm_backward", 0, "hprebn"),
        (network, "mlp_backward", 4, "b2"),
    ],
)
def test_a_closed_form_that_is_off_is_named(room, function, place, name, monkeypatch, capsys):
    original = getattr(room, function)

    def changed(*arguments, **named):
        result = original(*arguments, **named)
        return result * (1 + 1e-5) if place is None else off(result, place, 1 + 1e-5)

    monkeypatch.setattr(room, function, changed)
    status, text = printed(capsys)
    assert status == 1
    assert f"further away than rounding in 2 to 4: {name}\n26 of 26 exact\n" in text


def off(gradients, place, factor):
    return tuple(g * factor if i == place else g for i, g in enumerate(gradients))


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_one_step_that_is_off_is_not_forgotten(wrong, monkeypatch):
    original, calls = network.mlp_backward, []

    def changed(*arguments, **named):
        calls.append(1)
        result = original(*arguments, **named)
        return off(result, 3, 1.01) if len(calls) == wrong + 1 else result

    monkeypatch.setattr(network, "mlp_backward", changed)
    parameters, batch_of = drawn_network(torch.float32)
    comparisons = exercises.fourth_exercise(parameters, [batch_of() for _ in range(3)])
    assert far(comparisons) == ["W2"]


def line_of(name: str, text: str) -> list[str]:
    """The cells of the first line of a tensor."""
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.split("\n")]
    return next(line for line in lines if line and line[0] == name)


# The program


EVERY_SETTING = """
import exercises
from itertools import product
for dtype, threads in product(("float32", "float64"), {threads}):
    assert exercises.main(["--dtype", dtype, "--threads", threads]) == 0, (dtype, threads)
"""


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_all_26_are_exact_on_every_kind_of_cpu(capability):
    own = torch.backends.cpu.get_cpu_capability()
    if capability not in CAPABILITIES[: CAPABILITIES.index(own) + 1 if own in CAPABILITIES else 1]:
        pytest.skip(f"this CPU has {own} only")
    threads = [str(count) for count in (1, 2) if count <= os.cpu_count()]
    ran = subprocess.run(
        [sys.executable, "-c", EVERY_SETTING.format(threads=threads)],
        # Two threads that spin on a core which others use as well would take minutes.
        env={
            **os.environ,
            "ATEN_CPU_CAPABILITY": capability.lower(),
            "OMP_WAIT_POLICY": "passive",
        },
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(f"CPU capability {capability},") == 2 * len(threads)
    assert ran.stdout.count("\n26 of 26 exact\n") == 2 * len(threads)
    assert not set(ran.stdout) & {"\x1b", "\r", "…"}
    assert max(map(len, ran.stdout.split("\n"))) <= 80


def test_words_of_ones_own(tmp_path, capsys):
    file = tmp_path / "mine.txt"
    file.write_text("anna\nbert\ncarla\ndora\n")
    status, text = printed(capsys, "--data", file, "--batch", 8, "--hidden", 16, "--seed", 3)
    assert status == 0 and text.startswith("mine.txt: batch 8, 16 hidden units, float32\n")


def test_a_file_that_cannot_be_used_is_named(tmp_path, capsys):
    missing = tmp_path / "missing.txt"
    assert exercises.main(["--data", str(missing)]) == 2
    assert capsys.readouterr().err == f"exercises.py: {missing} does not exist\n"


@pytest.mark.parametrize(
    "wrong",
    [
        ("--batch", "3"),
        ("--hidden", "0"),
        ("--seed", "-1"),
        ("--dtype", "half"),
        ("--threads", "x"),
    ],
)
def test_an_option_that_is_none(wrong, capsys):
    with pytest.raises(SystemExit) as left:
        exercises.main(list(wrong))
    assert left.value.code == 2
    assert f"argument {wrong[0]}" in capsys.readouterr().err
