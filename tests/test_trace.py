"""What `trace` shows: the record at each door, in the order in which a forward passes them."""

import re
from dataclasses import replace
from importlib import import_module

import pytest
from forwards import HEAD

import codegen.driver.trace
from codegen.commands.cli import gradform
from codegen.driver.trace import doors, doors_after
from derive.derivation import stages
from derive.language.errors import UnprovedError
from derive.language.formulas.unicode import words_of
from derive.proof.proving.proof import prove
from derive.proof.proving.proved import Proved
from derive.show.document import Code, Prose

RECORDS = (
    "Definition",
    "Chain",
    "Relations",
    "Scales",
    "ClosedForm",
    "Proved",
    "Program",
    "Plan",
    "Plan",
    "Program",  # a lean module's
    "str",
    "float",
)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    file = tmp_path_factory.mktemp("own") / "mine.py"
    file.write_text(
        f"{HEAD}\n\nclass Mine(Forward):\n    x = Input(N)\n    y = x - Sum(x, N) / N\n"
    )
    return str(file)


def printed(capsys, *arguments: str) -> str:
    assert gradform(["trace", *arguments]) == 0
    return capsys.readouterr().out


def titles(text: str) -> list[tuple[str, str]]:
    """What made the record at each door, and the type of that."""
    return re.findall(r"^([\w.]+) -> (\w+)$", text, re.M)


def test_every_record_of_the_derivation_has_its_door():
    assert {gives for _, _, gives in stages} == set(doors_after)


def test_a_forward_of_the_readers_own_passes_all_doors_in_order(capsys, own):
    text = printed(capsys, own)
    assert [record for _, record in titles(text)] == list(RECORDS)
    assert not re.search(r" +$", text, re.M)


def test_the_modules_are_where_it_says(capsys, own):
    for path, _ in titles(printed(capsys, own)):
        module, *names = path.split(".")
        made = import_module(module)
        while names:
            name = names.pop(0)
            made = getattr(made, name, None) or import_module(f"{made.__name__}.{name}")
        assert callable(made)


def test_it_shows_what_the_records_hold(capsys):
    text = printed(capsys, "batch_norm")
    door = dict(zip(RECORDS, re.split(r"\n\n", text)[1:], strict=True))
    assert re.search(r"var +\(1, C\) = Σ\[N\] diff2/\(N . 1\)", door["Definition"])
    assert "+ dmean/N              through mean: broadcast over N" in door["Chain"]
    assert re.search(r"diff += xhat/inv_std +from the definition of xhat", door["Relations"])
    assert re.search(r"Σ\[N\] xhat = 0 found in \d steps", door["Relations"])
    assert re.search(r"diff +a difference that cancels: its sum along N is 0", door["Scales"])
    assert re.search(r"= gain·inv_std·\(dy . dbias/N . .* factor$", door["ClosedForm"], re.M)
    assert "read from the forward: gain, inv_std, xhat" in door["ClosedForm"]
    assert re.search(r"closed form, for every size too +dgain, dbias, dx$", door["Proved"], re.M)
    assert re.search(r"dgain +\(C,\) Reduce\(Times\(Load, Load\)\)", door["Program"])
    assert "dgain = (dy * xhat).sum(0)" in door["str"]
    assert "differs from autograd" in door["float"]


def test_of_a_long_derivation_the_rules_are_counted(capsys, monkeypatch):
    monkeypatch.setattr(codegen.driver.trace, "MOST_STEPS", 17)
    assert re.search(
        r"^  dx +chain rule 1, ",
        printed(capsys, "batch_norm"),
        re.M,
    )


def test_what_overflows_is_shown_with_how_it_is_followed(capsys):
    assert re.search(r"exp_x +.*followed as 1 times exp\(x\)", printed(capsys, "softmax"))


def test_where_a_door_stays_closed_those_before_it_are_shown(capsys, monkeypatch, own):
    def refused(*arguments):
        raise UnprovedError("no door")

    monkeypatch.setattr(codegen.driver.trace, "lean_tried", refused)
    assert gradform(["trace", own]) == 1
    text = capsys.readouterr()
    assert [record for _, record in titles(text.out)] == list(RECORDS[:-3])  # nor code unchecked
    assert "unproved: no door" in text.err


def test_what_is_proved_for_small_batches_alone_is_said_to_be(proved):
    form = proved["batch_norm"]
    first, *others = form.gradients
    shown = replace(form, gradients=(replace(first, every_size=False), *others))
    (door,) = doors_after[Proved](prove, shown)
    verdicts = dict(door.blocks[-1].lines)
    assert verdicts["closed form, there alone"] == "dgain"
    assert verdicts["closed form, for every size too"] == "dbias, dx"


def test_an_unknown_name_is_not_understood(capsys):
    assert gradform(["trace", "nosuch"]) == 2
    text = capsys.readouterr()
    assert text.out == "" and "no forward is called 'nosuch'" in text.err


def test_the_lines_of_code_are_those_that_were_compared(own):
    import derive

    *_, text, compared = doors(derive.forward_from(own))
    (code,) = (block for block in text.blocks if isinstance(block, Code))
    assert [name for name, _ in code.lines] == ["dx"]
    (difference,) = compared.blocks
    assert isinstance(difference, Prose) and "autograd" in words_of(difference.words)
