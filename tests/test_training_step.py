"""benchmarks/training_step.py: what is timed must be the same step, and be refused where not."""

import importlib.util
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "training_step.py"
SPECIFICATION = importlib.util.spec_from_file_location("training_step", FILE)
training_step = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(training_step)

pytestmark = pytest.mark.names
QUICK = ["--rounds", "1", "--threads", "1", "--hidden", "7"]


@pytest.fixture(scope="module")
def examples():
    return training_step.drawn_examples()


@pytest.mark.parametrize("hidden", [7, 64])
def test_every_spelling_arrives_at_the_same_parameters(examples, hidden):
    contenders = training_step.agreed(training_step.SPELLINGS, examples, hidden)
    drawn = training_step.drawn_parameters(hidden)
    for contender in contenders.values():
        for name, parameter in contender.parameters.items():
            assert parameter.shape == drawn[name].shape
            if name != "b1":  # its gradient is zero
                assert (parameter - drawn[name]).abs().max() > 1e-3


def test_a_step_that_is_another_is_refused(examples, monkeypatch, capsys):
    def without_bias(parameters, examples, chosen):
        training_step.step_of_ours({**parameters, "bnbias": torch.zeros(7)}, examples, chosen)

    spellings = {**training_step.SPELLINGS, "other": training_step.Spelling(without_bias)}
    monkeypatch.setattr(training_step, "SPELLINGS", spellings)
    with pytest.raises(training_step.Disagrees, match=r"^other, after 3 steps: C differs by"):
        training_step.agreed(spellings, examples, 7)
    assert training_step.main([*QUICK, "--no-compile"]) == 1
    assert "not timed: other" in capsys.readouterr().out


def test_what_broadcasts_or_is_no_number_disagrees():
    reference = {"b2": torch.ones(27)}
    for ours in (torch.ones(1, 27), torch.ones(27) + 1e-5, torch.full((27,), torch.nan)):
        assert training_step.disagreement({"b2": ours}, reference)
    assert training_step.disagreement({"b2": torch.ones(27) + 1e-7}, reference) is None


def test_the_table_holds_every_spelling(capsys):
    assert training_step.main([*QUICK, "--no-compile"]) == 0
    text = capsys.readouterr().out
    assert f"torch {torch.__version__}" in text and "7 hidden units, 1 thread " in text
    for name in training_step.SPELLINGS:
        assert f"│ {name} " in text
    assert training_step.COMPILED + " │ " not in text.split("┡")[1]


def test_without_a_compiler_the_others_are_measured(monkeypatch, capsys):
    def no_compiler(*_):
        raise RuntimeError("no C++ compiler found\nand a page of advice")

    monkeypatch.setattr(training_step, "compiled", lambda: training_step.Spelling(no_compiler))
    assert training_step.main(QUICK) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "ours, compiled: no C++ compiler found" in lines
    (row,) = (line for line in lines if line.startswith("│ ours, compiled "))
    assert "failed" in row
