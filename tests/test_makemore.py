"""examples/makemore.py: what it learns, what it keeps, what it draws, and what it refuses.

The network that it is compared with is typed by hand and differentiated by autograd.
"""

import json
import math
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import pytest
import torch
import torch.nn.functional as F
from test_network_batch import NAMES
from torch.overrides import TorchFunctionMode

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(EXAMPLES)  # where Python looks when it runs the program
    import makemore
    from character_model import checkpoint, network, pictures, training, words
    from character_model.mistakes import Mistake

pytestmark = pytest.mark.names
SEED = 2147483647
PARAMETERS = ("C", "W1", "b1", "W2", "b2", "bngain", "bnbias")
STEPS, HIDDEN = 300, 32
SMALL = ("--steps", str(STEPS), "--hidden", str(HIDDEN))


# The network by hand


def drawn_by_hand(hidden: int, generator: torch.Generator) -> list[torch.Tensor]:
    """The seven parameters, in the order of their names above."""

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    C = normal(27, 10)
    W1 = normal(30, hidden) * (5 / 3) / 30**0.5
    b1 = normal(hidden) * 0.1
    W2 = normal(hidden, 27) * 0.1
    b2 = normal(27) * 0.1
    return [C, W1, b1, W2, b2, normal(hidden) * 0.1 + 1.0, normal(hidden) * 0.1]


def logits_by_hand(parameters, contexts, mean=None, var=None) -> torch.Tensor:
    """The logits under given statistics, or under those of the batch itself."""
    C, W1, b1, W2, b2, gain, bias = parameters
    x = C[contexts].view(len(contexts), -1) @ W1 + b1
    mean = x.mean(0) if mean is None else mean
    var = x.var(0, correction=1) if var is None else var
    return torch.tanh(gain * (x - mean) / torch.sqrt(var + 1e-5) + bias) @ W2 + b2


def trained_by_autograd(examples, steps: int, hidden: int):
    """(parameters, losses, largest gradient of b1) after the same draws, in float64."""
    generator = torch.Generator().manual_seed(SEED)
    leaves = [p.double().requires_grad_() for p in drawn_by_hand(hidden, generator)]
    losses, largest_db1 = [], 0.0
    for step in range(steps):
        chosen = torch.randint(0, len(examples), (32,), generator=generator)
        logits = logits_by_hand(leaves, examples.contexts[chosen])
        loss = F.cross_entropy(logits, examples.labels[chosen])
        gradients = torch.autograd.grad(loss, leaves)
        largest_db1 = max(largest_db1, gradients[2].abs().max().item())
        losses.append(loss.item())
        with torch.no_grad():
            for leaf, gradient in zip(leaves, gradients, strict=True):
                leaf -= (0.1 if step < steps / 2 else 0.01) * gradient
    return [leaf.detach() for leaf in leaves], torch.tensor(losses).double(), largest_db1


def by_name(parameters) -> dict[str, torch.Tensor]:
    return dict(zip(PARAMETERS, parameters, strict=True))


# Runs of the program


@pytest.fixture(scope="module")
def dataset():
    return words.load(words.OWN_WORDS)


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a run that nothing interrupted, with what it said in output.txt."""
    out = tmp_path_factory.mktemp("whole") / "run"
    said = subprocess.run(
        [sys.executable, EXAMPLES / "makemore.py", "train", *SMALL, "--out", out],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    (out / "output.txt").write_text(said.stdout)
    (out / "progress.txt").write_text(said.stderr)
    return out


def failed(capsys, *arguments, status: int = 2) -> str:
    """Run the program, which must fail with one line under its name; the line."""
    try:
        assert makemore.main([str(argument) for argument in arguments]) == status
    except SystemExit as stopped:
        assert stopped.code == status
    message = capsys.readouterr().err
    assert message.startswith("makemore.py: ")
    assert message.count("\n") == 1 and message.endswith("\n")
    return message


def fields_of(folder: Path) -> dict:
    return torch.load(folder / "checkpoint.pt", weights_only=True)


def assert_same_run(one: Path, other: Path) -> None:
    """Every number of two runs is the same, to the last bit."""
    first, second = fields_of(one), fields_of(other)
    assert first.keys() == second.keys()
    for name in ("settings", "symbols", "fingerprint", "step", "data"):
        assert first[name] == second[name], name
    for name in ("losses", "generator"):
        assert torch.equal(first[name], second[name]), name
    for name in ("parameters", "calibration"):
        assert first[name].keys() == second[name].keys()
        for key, tensor in first[name].items():
            assert torch.equal(tensor, second[name][key]), key
    for name in ("loss.png", "logits_gradient.png"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def numbers_in(output: str) -> list[str]:
    """The lines of losses and the sampled names: all but the time and the folder."""
    lines = output.splitlines()
    names = lines.index(next(line for line in lines if line.startswith("20 names")))
    return [line for line in lines if " loss " in line] + lines[names : names + 21]


# Descent


def test_descent_follows_autograd(dataset):
    run = training.begin(training.Settings(STEPS, 64, SEED), None, dataset.fingerprint)
    untrained = run.parameters["b1"].clone()
    for _ in training.train(run, dataset.training, never):
        pass
    reference, losses, largest_db1 = trained_by_autograd(dataset.training, STEPS, 64)

    assert run.finished and len(run.losses) == STEPS
    assert losses[-50:].mean() < losses[:10].mean() - 0.5
    torch.testing.assert_close(run.losses.double(), losses, rtol=0, atol=5e-6)
    for name, expected in by_name(reference).items():
        error = (run.parameters[name].double() - expected).abs().max() / expected.abs().max()
        assert error < 1e-5, f"{name}: {error:.2g}"
    # A batch norm takes away every constant: b1 has the gradient zero, here without a rounding.
    assert largest_db1 < 1e-15
    assert torch.equal(run.parameters["b1"], untrained)


def test_the_parameters_are_drawn_in_the_published_order():
    drawn = network.drawn_parameters(27, 64, torch.Generator().manual_seed(SEED))
    expected = by_name(drawn_by_hand(64, torch.Generator().manual_seed(SEED)))
    assert list(drawn) == list(expected)
    for name, tensor in expected.items():
        assert torch.equal(drawn[name], tensor), name
    assert sum(tensor.numel() for tensor in drawn.values()) == 4137


def test_the_rate_falls_after_half_of_the_steps():
    assert [training.rate_at(step, 4) for step in range(4)] == [0.1, 0.1, 0.01, 0.01]
    assert [training.rate_at(step, 3) for step in range(3)] == [0.1, 0.1, 0.01]
    assert training.rate_at(99_999, 200_000) == 0.1
    assert training.rate_at(100_000, 200_000) == 0.01


class NoGraph(TorchFunctionMode):
    """Every function of torch must work as usual, and none may return a tensor with a history."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def __torch_function__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.seen += 1
                assert tensor.grad_fn is None and not tensor.requires_grad, function
        return result


def test_no_autograd_graph_is_built(tmp_path, monkeypatch, capsys):
    def forbidden(*_, **__):
        raise AssertionError("autograd was asked")

    monkeypatch.setattr(torch.autograd.Function, "apply", forbidden)
    monkeypatch.setattr(torch.autograd, "backward", forbidden)
    monkeypatch.setattr(torch.autograd, "grad", forbidden)
    monkeypatch.setattr(torch.Tensor, "backward", forbidden)
    # What switches the recording off would hide a graph: the program must not need it.
    monkeypatch.setattr(torch, "no_grad", forbidden)
    monkeypatch.setattr(torch, "inference_mode", forbidden)
    monkeypatch.setattr(torch, "set_grad_enabled", forbidden)
    monkeypatch.setattr(torch.Tensor, "detach", forbidden)
    with torch.enable_grad(), NoGraph() as functions:
        run = training.begin(training.Settings(20, 8), None, "")
        for tensor in run.parameters.values():
            assert tensor.is_leaf and not tensor.requires_grad
        data = words.load(words.OWN_WORDS)
        for _ in training.train(run, data.training, never):
            pass
        calibration = network.calibrate(run.parameters, data.training.contexts)
        network.mean_loss(run.parameters, calibration, data.test)
        list(network.sampled_names(run.parameters, calibration, words.SYMBOLS, 1, 3))
        network.logits_gradient(run.parameters, data.test.contexts, data.test.labels)
    assert functions.seen > 20 * 20  # the mode was on


def test_a_loss_that_is_no_number_ends_the_run(tmp_path, capsys, whole):
    fields = fields_of(whole)
    fields.update(step=10, losses=fields["losses"][:10])
    fields["parameters"]["W2"][0, 0] = math.inf
    torch.save(fields, tmp_path / "checkpoint.pt")
    message = failed(capsys, "train", "--resume", tmp_path, status=1)
    assert "diverged" in message
    assert fields_of(tmp_path)["step"] == 10


# Interrupted and resumed


def assert_resumes_to_the_same(out: Path, whole: Path, capsys) -> None:
    capsys.readouterr()
    assert makemore.main(["train", "--resume", "--out", str(out)]) == 0
    assert_same_run(out, whole)
    output = (whole / "output.txt").read_text()
    assert numbers_in(capsys.readouterr().out) == numbers_in(output)


def calling_at_step(monkeypatch, number: int, action) -> None:
    """Call ``action`` in the middle of a step."""
    descent, steps = training.descent, []

    def counting(*arguments):
        take = descent(*arguments)

        def counted(*given):
            steps.append(None)
            if len(steps) == number:
                action()
            return take(*given)

        return counted

    monkeypatch.setattr(training, "descent", counting)


def test_ctrl_c_ends_the_step_and_a_resumed_run_gives_the_same_numbers(
    tmp_path, monkeypatch, capsys, whole
):
    calling_at_step(monkeypatch, 177, lambda: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    assert makemore.main(["train", *SMALL, "--out", str(tmp_path)]) == 130
    assert signal.getsignal(signal.SIGINT) is before
    message = capsys.readouterr().err.splitlines()[-1]
    assert "stopped after 177 of 300 steps" in message
    assert message.endswith(f"train --resume {tmp_path}")
    assert fields_of(tmp_path)["step"] == 177
    assert_resumes_to_the_same(tmp_path, whole, capsys)


def test_a_run_that_died_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch, capsys, whole):
    monkeypatch.setattr(training, "SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr(makemore, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)

    def die():
        raise SystemExit(9)

    calling_at_step(monkeypatch, 42, die)
    with pytest.raises(SystemExit):
        makemore.main(["train", *SMALL, "--out", str(tmp_path)])
    assert fields_of(tmp_path)["step"] == 41
    assert_resumes_to_the_same(tmp_path, whole, capsys)


def test_a_real_ctrl_c_of_a_real_process(tmp_path, capsys):
    settings = ("--steps", "20000", "--hidden", "4")
    process = subprocess.Popen(
        [sys.executable, EXAMPLES / "makemore.py", "train", *settings, "--out", tmp_path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "checkpoint.pt").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("makemore.py: stopped after ")
    fields = fields_of(tmp_path)
    assert fields["step"] < 20000

    # As far as it came, and 200 steps further: what an uninterrupted run computes.
    steps = fields["step"] + 200
    run = checkpoint.read(tmp_path / "checkpoint.pt")
    data = words.load(words.OWN_WORDS)
    uninterrupted = training.begin(run.settings, None, data.fingerprint)
    for one, start in ((run, fields["step"]), (uninterrupted, 0)):
        for _ in training.train(one, data.training, stops_after(steps - start)):
            pass
    assert run.step == uninterrupted.step == steps
    assert torch.equal(run.losses, uninterrupted.losses)
    for name, tensor in run.parameters.items():
        assert torch.equal(tensor, uninterrupted.parameters[name]), name


def stops_after(steps: int):
    left = iter(range(steps - 1, -1, -1))
    return lambda: next(left) == 0


def test_resuming_a_finished_run_measures_it_again(capsys, whole):
    before = fields_of(whole)
    assert makemore.main(["train", "--resume", str(whole / "checkpoint.pt")]) == 0
    assert fields_of(whole)["seconds"] == before["seconds"]
    captured = capsys.readouterr()
    assert numbers_in(captured.out) == numbers_in((whole / "output.txt").read_text())
    assert "steps/s" not in captured.err


def test_a_checkpoint_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch, whole):
    run = checkpoint.read(whole / "checkpoint.pt")
    file = tmp_path / "checkpoint.pt"
    checkpoint.write(run, file)
    content = file.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    run.losses = run.losses[:5]
    with pytest.raises(Mistake, match="cannot be written: No space left"):
        checkpoint.write(run, file)
    assert file.read_bytes() == content


def test_a_checkpoint_holds_all_that_a_run_is(whole):
    fields = fields_of(whole)
    assert fields["step"] == len(fields["losses"]) == STEPS
    assert fields["settings"] == {
        "steps": STEPS,
        "hidden": HIDDEN,
        "seed": SEED,
        "threads": 1,
        "target": "torch",
    }
    assert fields["symbols"] == ".abcdefghijklmnopqrstuvwxyz"
    assert set(fields["parameters"]) == set(PARAMETERS)


# What a run prints


def test_the_end_of_a_run(whole):
    output = (whole / "output.txt").read_text()
    rows = dict(re.findall(r"│ (.+?) +│ +(.+?) │", output))
    assert list(rows) == [
        "training loss",
        "validation loss",
        "test loss",
        "parameters",
        "steps",
        "time",
        "steps per second",
    ]
    assert rows["parameters"] == "2,217"
    assert rows["steps"] == "300"
    run, data = checkpoint.read(whole / "checkpoint.pt"), words.load(words.OWN_WORDS)
    over_all = network.calibrate(run.parameters, data.training.contexts)
    assert torch.equal(run.calibration.mean, over_all.mean)
    assert torch.equal(run.calibration.var, over_all.var)
    for name, part in data.parts.items():
        loss = network.mean_loss(run.parameters, run.calibration, part)
        assert rows[f"{name} loss"] == f"{loss:.4f}"
    assert re.fullmatch(r"[\w.]+: \d+ words; examples: .+ training, .+", output.splitlines()[0])


def test_progress_is_told_line_by_line_where_there_is_no_terminal(whole):
    lines = re.findall(r"^step .*", (whole / "progress.txt").read_text(), re.M)
    assert 1 <= len(lines) <= 10
    for line in lines:
        assert re.fullmatch(r"step \d+ of 300, loss \d\.\d{4}, [\d,]+ steps/s, \d+:\d\d left", line)
    assert lines[-1].startswith("step 300 of 300")


def test_the_bar_of_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = training.begin(training.Settings(100, 4), None, "")
    with makemore.progress(run) as report:
        run.losses = torch.zeros(50)
        report(2.5)
    said = capsys.readouterr().err
    assert "━" in said and "step 50 of 100, loss 2.5000" in said
    assert said.count("\n") == 1  # one line, drawn again and again


def test_sample_prints_the_names_again(capsys, whole):
    assert makemore.main(["sample", str(whole)]) == 0
    names = capsys.readouterr().out.splitlines()
    assert names == numbers_in((whole / "output.txt").read_text())[-20:]
    assert makemore.main(["sample", str(whole), "--count", "3", "--seed", "1"]) == 0
    others = capsys.readouterr().out.splitlines()
    assert len(others) == 3 and others != names[:3]


# Measuring and sampling


@pytest.fixture
def trained(whole):
    return checkpoint.read(whole / "checkpoint.pt")


@pytest.mark.parametrize("entries", [network.ENTRIES_AT_ONCE, 7 * HIDDEN, 1])
def test_the_statistics_are_those_of_the_whole_training_set(trained, monkeypatch, entries):
    monkeypatch.setattr(network, "ENTRIES_AT_ONCE", entries)
    contexts = words.load(words.OWN_WORDS).training.contexts[:200]
    mean, var = network.calibrate(trained.parameters, contexts)
    C, W1, b1 = (trained.parameters[name].double() for name in ("C", "W1", "b1"))
    x = C[contexts].view(200, -1) @ W1 + b1
    torch.testing.assert_close(mean.double(), x.mean(0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(var.double(), x.var(0, correction=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("entries", [network.ENTRIES_AT_ONCE, 7 * HIDDEN])
def test_the_losses_are_those_of_the_network_under_its_statistics(
    trained, dataset, monkeypatch, entries
):
    monkeypatch.setattr(network, "ENTRIES_AT_ONCE", entries)
    parameters = [trained.parameters[name].double() for name in PARAMETERS]
    statistics = [tensor.double() for tensor in trained.calibration]
    for part in dataset.parts.values():
        expected = F.cross_entropy(
            logits_by_hand(parameters, part.contexts, *statistics), part.labels
        )
        loss = network.mean_loss(trained.parameters, trained.calibration, part)
        assert abs(loss - expected.item()) < 1e-5


def test_names_are_drawn_symbol_by_symbol(trained):
    parameters = [trained.parameters[name] for name in PARAMETERS]
    generator = torch.Generator().manual_seed(5)
    names = []
    for _ in range(10):
        name, context = "", [0, 0, 0]
        while True:
            logits = logits_by_hand(parameters, torch.tensor([context]), *trained.calibration)
            drawn = torch.multinomial(F.softmax(logits, 1), 1, generator=generator).item()
            if drawn == 0:
                break
            name += letter(drawn)
            context = [context[1], context[2], drawn]
        names.append(name)
    made = network.sampled_names(
        trained.parameters, trained.calibration, trained.symbols, seed=5, count=10
    )
    assert list(made) == names


def test_a_network_that_never_ends_a_word_is_cut_off(trained):
    trained.parameters["b2"][1] = 1e4
    names = network.sampled_names(trained.parameters, trained.calibration, trained.symbols, 1, 2)
    assert list(names) == ["a" * 40] * 2


# The pictures


def greys_at(png: Path, figure, places) -> list[float]:
    """How light the picture is at (column, row)s of its first axes: 0 black, 1 white."""
    pixels = matplotlib.image.imread(png)[:, :, :3].mean(2)
    drawn = figure.axes[0].transData.transform(places)
    return [float(pixels[len(pixels) - round(y), round(x)]) for x, y in drawn]


def letter(symbol: int) -> str:
    return "." if symbol == 0 else chr(ord("a") + symbol - 1)


def test_the_gradient_is_dark_where_the_label_is_pulled_up(tmp_path, trained, dataset):
    batch = words.Examples(dataset.training.contexts[:32], dataset.training.labels[:32])
    dlogits = network.logits_gradient(trained.parameters, batch.contexts, batch.labels)
    parameters = [trained.parameters[name].double() for name in PARAMETERS]
    logits = logits_by_hand(parameters, batch.contexts).requires_grad_()
    F.cross_entropy(logits, batch.labels).backward()
    torch.testing.assert_close(dlogits.double(), logits.grad, rtol=1e-4, atol=1e-7)

    figure = pictures.gradient_picture(dlogits, batch, trained.symbols)
    pictures.write_png(figure, tmp_path / "gradient.png")
    places = [(column, row) for row in range(32) for column in range(27)]
    greys = torch.tensor(greys_at(tmp_path / "gradient.png", figure, places)).view(32, 27)
    torch.testing.assert_close(greys, (dlogits / dlogits.abs().max() + 1) / 2, rtol=0, atol=0.01)
    assert torch.equal(greys.argmin(1), batch.labels)

    axes = figure.axes[0]
    assert "".join(tick.get_text() for tick in axes.get_xticklabels()) == trained.symbols
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "".join(map(letter, context)) + " " + letter(label)
        for context, label in zip(batch.contexts.tolist(), batch.labels.tolist(), strict=True)
    ]


def test_the_loss_curve_is_the_mean_over_1000_steps_or_fewer():
    def curve(count):
        losses = torch.arange(count, dtype=torch.float32)
        line = pictures.loss_curve(losses).axes[0].lines[0]
        return [float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()]

    steps, means = curve(200_000)
    assert len(means) == 200 and steps[:2] == [500, 1500] and means[0] == 499.5
    assert len(curve(300)[1]) == 50
    assert curve(3) == ([0.5, 1.5, 2.5], [0.0, 1.0, 2.0])


def test_both_pictures_of_a_run_show_something(whole):
    for name in ("loss.png", "logits_gradient.png"):
        pixels = matplotlib.image.imread(whole / name)
        assert min(pixels.shape[:2]) > 400
        assert pixels.std() > 0.05, name


def test_without_matplotlib_a_run_does_not_begin(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = failed(capsys, "train", *SMALL, "--out", tmp_path / "out")
    assert "pip install matplotlib" in message
    assert not (tmp_path / "out").exists()


# The words


@pytest.mark.skipif(not NAMES.is_file(), reason=f"no names at {NAMES}: set GRADFORM_NAMES")
def test_the_names_give_the_published_numbers_of_examples():
    data = words.load(NAMES)
    assert data.words == 32_033
    counts = [len(part) for part in data.parts.values()]
    assert counts == [182_625, 22_655, 22_866]


def test_27_symbols_and_a_word_of_each():
    assert len(words.SYMBOLS) == 27
    examples = words.examples_of(["ab", "z"])
    assert examples.contexts.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 26]]
    assert examples.labels.tolist() == [1, 2, 0, 26, 0]


def test_the_words_are_shuffled_with_the_seed_42_and_split_80_10_10():
    listed = words.OWN_WORDS.read_text().split()
    assert len(listed) == len(set(listed)) >= 300
    random.Random(42).shuffle(listed)
    data = words.load(words.OWN_WORDS)
    assert data.words == len(listed)
    borders = [0, int(0.8 * len(listed)), int(0.9 * len(listed)), len(listed)]
    for part, first, last in zip(data.parts.values(), borders, borders[1:], strict=False):
        text = "".join(letter(symbol) for symbol in part.labels.tolist())
        assert text == "".join(f"{word}." for word in listed[first:last])


def test_what_is_no_part_of_a_word_is_ignored(tmp_path):
    plain, other = tmp_path / "plain.txt", tmp_path / "other.txt"
    plain.write_bytes(b"anna\nbert\ncarl\n")
    other.write_bytes(b"\xef\xbb\xbfanna\r\n\r\n  bert\t\r\n\r\ncarl")
    one, same = words.load(plain), words.load(other)
    assert one.fingerprint == same.fingerprint
    assert torch.equal(one.training.labels, same.training.labels)
    plain.write_bytes(b"anna\ncarl\nbert\n")
    assert words.load(plain).fingerprint != one.fingerprint


def test_two_words_have_no_validation_part(tmp_path, capsys):
    file = tmp_path / "two.txt"
    file.write_text("anna\nbert\n")
    arguments = ["train", "--data", str(file), "--steps", "20", "--hidden", "4"]
    assert makemore.main([*arguments, "--out", str(tmp_path / "out")]) == 0
    rows = dict(re.findall(r"│ (.+?) +│ +(.+?) │", capsys.readouterr().out))
    assert rows["validation loss"] == "too few words"
    assert float(rows["training loss"]) < 4


FILES = {
    "empty": (b"", "is empty"),
    "blank lines": (b"\n \r\n\t\n", "is empty"),
    "one word": (b"anna\n", "one word only"),
    "upper case": (b"anna\nBert\n", "line 2: 'Bert' holds 'B': write it in lower case"),
    "accent": ("anna\n\nzoé\n".encode(), "line 3: 'zoé' holds 'é': the vocabulary is a to z"),
    "two in a line": (b"anna bert\n", "line 1: 'anna bert' holds ' ': one word per line"),
    "the end symbol": (b"anna\nbert.\n", "holds '.': the vocabulary"),
    "digits": (b"anna1\n", "holds '1'"),
    "one long line": (b"a" * 100_000 + b"-", "aaa...' holds '-'"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\xff", "not a text file"),
    "latin-1": ("zoé\n".encode("latin-1"), "not a text file"),
    "utf-16": ("anna\n".encode("utf-16"), "not a text file"),
    "null bytes": (b"anna\x00\n", "not a text file"),
}


@pytest.mark.parametrize("kind", FILES)
def test_data_that_cannot_be_used_is_named(kind, tmp_path, capsys):
    content, said = FILES[kind]
    file, out = tmp_path / "mine.txt", tmp_path / "out"
    file.write_bytes(content)
    message = failed(capsys, "train", "--data", file, *SMALL, "--out", out)
    assert str(file) in message and said in message
    assert len(message) < 300 + len(str(file))
    assert not out.exists()


def test_data_that_is_no_file_is_named(tmp_path, capsys):
    assert "does not exist" in failed(capsys, "train", "--data", tmp_path / "none.txt")
    assert "Is a directory" in failed(capsys, "train", "--data", tmp_path)


def test_a_mistake_is_one_line_without_a_traceback(tmp_path):
    said = subprocess.run(
        [sys.executable, EXAMPLES / "makemore.py", "train", "--data", "none.txt"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert said.returncode == 2
    assert said.stdout == ""
    assert said.stderr == "makemore.py: none.txt does not exist\n"
    assert list(tmp_path.iterdir()) == []


# The command line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "train or sample"),
        (["learn"], "learn"),
        (["train", "--steps", "0"], "--steps: 0 is out of range: at least 1"),
        (["train", "--steps", "-5"], "--steps: -5 is out of range"),
        (["train", "--steps", "many"], "'many' is not a whole number"),
        (["train", "--hidden", "0"], "--hidden: 0 is out of range"),
        (["train", "--hidden", "1000000"], "--hidden: 1000000 is out of range"),
        (["train", "--seed", "-1"], "--seed: -1 is out of range"),
        (["train", "--seed", str(2**63)], "--seed"),
        (["train", "--threads", "0"], "--threads: 0 is out of range"),
        (["train", "--step", "5"], "--step"),
        (["train", "words.txt"], "words.txt"),
        (["sample", "--count", "0"], "--count: 0 is out of range"),
    ],
)
def test_a_question_that_was_not_understood(arguments, said, capsys):
    assert said in failed(capsys, *arguments)


@pytest.mark.parametrize("seed", [0, makemore.LARGEST_SEED])
def test_every_seed_that_is_allowed_works(seed, trained):
    run = training.begin(training.Settings(1, 4, seed), None, "")
    sampling = seed + makemore.SAMPLING_SEED
    assert list(
        network.sampled_names(trained.parameters, trained.calibration, run.symbols, sampling, 1)
    )


@pytest.mark.parametrize("option", ["steps", "hidden", "seed"])
def test_a_setting_that_the_checkpoint_does_not_have(option, capsys, whole):
    own = fields_of(whole)["settings"][option]
    message = failed(capsys, "train", "--resume", whole, f"--{option}", own + 1)
    assert f"--{option} {own + 1} does not fit" in message and f"--{option} {own}:" in message


def test_a_setting_that_the_checkpoint_has_may_be_repeated(whole, capsys):
    assert makemore.main(["train", *SMALL, "--seed", str(SEED), "--resume", str(whole)]) == 0


def interrupted(tmp_path, monkeypatch, *arguments) -> Path:
    """The folder of a run that was stopped after three steps."""
    out = tmp_path / "interrupted"
    with monkeypatch.context() as patched:
        calling_at_step(patched, 3, lambda: signal.raise_signal(signal.SIGINT))
        assert makemore.main(["train", *SMALL, "--out", str(out), *arguments]) == 130
    return out


def test_other_data_than_the_checkpoint_has(tmp_path, monkeypatch, capsys):
    file, other = tmp_path / "mine.txt", tmp_path / "other.txt"
    file.write_text("anna\nbert\ncarl\n")
    other.write_text("anna\nbert\ncarla\n")
    monkeypatch.chdir(tmp_path)
    out = interrupted(tmp_path, monkeypatch, "--data", "mine.txt")
    monkeypatch.chdir("/")
    capsys.readouterr()

    message = failed(capsys, "train", "--resume", out, "--data", other)
    assert f"{other} does not hold the words that" in message
    other.write_text("anna\nbért\ncarla\n")
    assert "holds 'é'" in failed(capsys, "train", "--resume", out, "--data", other)
    file.rename(other)
    message = failed(capsys, "train", "--resume", out)
    assert f"{file}, the data of" in message and "pass its path with --data" in message
    assert makemore.main(["train", "--resume", str(out), "--data", str(other)]) == 0
    assert fields_of(out)["data"] == str(other)


def test_an_unfinished_run_is_neither_sampled_nor_overwritten(tmp_path, monkeypatch, capsys):
    out = interrupted(tmp_path, monkeypatch)
    capsys.readouterr()
    assert "unfinished" in failed(capsys, "sample", out)
    message = failed(capsys, "train", *SMALL, "--out", out)
    assert "holds a run after 3 of 300 steps" in message and f"--resume {out}" in message
    assert fields_of(out)["step"] == 3


def test_a_resumed_run_can_go_to_another_folder(tmp_path, monkeypatch, capsys, whole):
    out, other = interrupted(tmp_path, monkeypatch), tmp_path / "other"
    assert makemore.main(["train", "--resume", str(out), "--out", str(other)]) == 0
    assert_same_run(other, whole)
    assert fields_of(out)["step"] == 3


class Payload:
    """A pickle with a call that is made when it is read."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (os.mkdir, (str(self.file),))


def test_a_checkpoint_that_is_none(tmp_path, capsys, recwarn, whole):
    file = tmp_path / "checkpoint.pt"
    assert "does not exist" in failed(capsys, "train", "--resume", file)
    assert "does not exist" in failed(capsys, "sample", tmp_path)
    content = (whole / "checkpoint.pt").read_bytes()
    damaged = {
        "empty": b"",
        "cut off": content[: len(content) // 2],
        "text": b"anna\nbert\n",
        "json": json.dumps({"step": 1}).encode(),
        "runs code": pickle.dumps(Payload(tmp_path / "ran")),
    }
    for kind, wrong in damaged.items():
        file.write_bytes(wrong)
        message = failed(capsys, "train", "--resume", file)
        assert "is damaged, or not a checkpoint" in message, kind
        assert file.read_bytes() == wrong
        assert "choose another folder" in failed(capsys, "train", *SMALL, "--out", tmp_path)
    assert not (tmp_path / "ran").exists()
    assert not recwarn.list  # they would be printed beside the one line
    for foreign in ({"model": torch.zeros(3)}, torch.zeros(3), [1, 2]):
        torch.save(foreign, file)
        message = failed(capsys, "train", "--resume", tmp_path)
        assert "is not a checkpoint of this program" in message


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("losses"),
        lambda fields: fields.update(losses=fields["losses"][:-1]),
        lambda fields: fields.update(generator=torch.zeros(3)),
        lambda fields: fields["parameters"].pop("C"),
        lambda fields: fields["parameters"].update(b2=torch.zeros(26)),
        lambda fields: fields["settings"].update(hidden=33),
        lambda fields: fields["settings"].update(steps=299),
        lambda fields: fields["settings"].update(batch=32),
        lambda fields: fields.update(parameters=None),
    ],
)
def test_a_checkpoint_whose_parts_do_not_fit(change, tmp_path, capsys, whole):
    fields = fields_of(whole)
    change(fields)
    torch.save(fields, tmp_path / "checkpoint.pt")
    assert "parts do not fit together" in failed(capsys, "train", "--resume", tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below"):
        message = failed(capsys, "train", *SMALL, "--out", out)
        assert f"--out {out} is not a folder to write to" in message
    assert file.read_text() == "mine"


def test_nobody_elses_picture_is_replaced(tmp_path, capsys):
    file = tmp_path / "loss.png"
    file.write_text("mine")
    message = failed(capsys, "train", *SMALL, "--out", tmp_path)
    assert "loss.png was not written by gradform" in message and "--force" not in message
    assert file.read_text() == "mine" and [f.name for f in tmp_path.iterdir()] == ["loss.png"]
