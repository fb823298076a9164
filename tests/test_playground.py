"""What the playground answers, without a browser: messages in their order, what each says."""

import ast
import json
import subprocess
import sys

import pytest

from codegen.playground import answer, gallery
from codegen.playground.question import question_from
from derive.show.sections import FOUND, TITLES

SHELF = {forward["called"]: forward for forward in gallery()}
TANH = SHELF["tanh"]["text"]
TWO = TANH + "\n\nclass Twice(Forward):\n    x = Input(N)\n    y = 2 * x\n"


def answered(**question) -> list[dict]:
    messages = []
    answer(json.dumps(question), messages.append)
    return [json.loads(message) for message in messages]


def parts_in(messages) -> dict:
    found = {}
    for message in messages:
        found |= message.get("parts", {})
    return found


def trouble_in(messages) -> dict:
    (trouble,) = (m for m in messages if m["kind"] == "trouble")
    assert messages[-1]["kind"] == "done"
    return trouble


@pytest.fixture(scope="module")
def batch_norm():
    return answered(ask="derive", text=SHELF["batch_norm"]["text"])


def test_a_derivation_is_told_piece_by_piece(batch_norm):
    first = [next(iter(m["parts"])) for m in batch_norm if m["kind"] == "parts"]
    assert first == ["forwards", "title", "file", "picture", "sections", "markdown"]
    assert batch_norm[0] == {"kind": "stage", "what": "reading"}
    assert batch_norm[-1]["kind"] == "done"
    stages = [m["what"] for m in batch_norm if m["kind"] == "stage"]
    assert "simplifying" in stages and "proving dx" in stages


def test_a_derivation_has_all_that_a_page_shows(batch_norm):
    parts = parts_in(batch_norm)
    assert parts["inputs"] == ["x", "gain", "bias"] and parts["every_size"]
    assert "<math" in parts["closed"] and "<svg" in parts["picture"]
    assert r"\frac{1}{N - 1}" in parts["latex"] or "N - 1" in parts["latex"]
    assert [title for title, _ in parts["sections"]][:5] == [
        "The forward",
        "The closed form",
        "What was proved",
        "The chain",
        "To the closed form",
    ]
    assert parts["file"] == "batch_norm.py"
    assert parts["saved"][:4] == ["x (N, C)", "gain (C,)", "bias (C,)", "mean (1, C)"]
    assert dict(map(tuple, parts["costs"]))["reductions and products of the backward"] == "2 sum[N]"
    assert parts["markdown"].startswith("<!-- Generated")


def test_the_code_says_that_it_was_not_run(batch_norm):
    parts = parts_in(batch_norm)
    assert "not run beside autograd" in parts["said"]
    assert parts["torch"].startswith(f"# {parts['said']}\n")
    assert "batch_norm_backward" in {
        n.name for n in ast.parse(parts["torch"]).body if hasattr(n, "name")
    }
    for line in parts["backward"].splitlines():
        assert line.strip() in parts["torch"]


def test_an_edit_is_followed():
    text = SHELF["batch_norm"]["text"].replace("Sum(diff2, N) / (N - 1)", "Sum(diff2, N) / N")
    assert "N - 1" not in parts_in(answered(ask="derive", text=text))["latex"]


def test_second_derivatives_where_they_are_asked_for():
    parts = parts_in(answered(ask="derive", text=TANH, order=2))
    assert parts["second"].startswith("Second derivatives: exactly zero difference")
    assert any("Second order" in title for title, _ in parts["sections"])


def test_the_last_forward_is_meant_unless_one_is_named():
    assert parts_in(answered(ask="derive", text=TWO))["name"] == "Twice"
    parts = parts_in(answered(ask="derive", text=TWO, name="Tanh"))
    assert parts["name"] == "Tanh" and parts["forwards"] == ["Tanh", "Twice"]


@pytest.mark.parametrize(
    "text, line, problem",
    [
        ("x = (", 1, "never closed"),
        (TANH.replace("Input(N)", "Input(M)"), None, "M"),
        ("N = 1\n", 0, "holds no forward"),
        ("import nosuch\n", 1, "nosuch"),
        ("raise SystemExit\n", 1, "SystemExit"),
        ("", 0, "holds no forward"),
        (TANH.replace("    y =", "\ty ="), TANH[: TANH.index("    y =")].count("\n") + 1, "tabs"),
        ("(" * 100_000, 1, ""),
    ],
)
def test_a_mistake_has_its_line(text, line, problem):
    trouble = trouble_in(answered(ask="derive", text=text[:60_000]))
    assert trouble["outcome"] == "not understood" and trouble["where"] == "forward"
    if line is None:
        line = text[: text.index("Input(M)")].count("\n") + 1
    assert trouble["line"] == line
    assert problem in trouble["problem"] and "/" not in trouble["problem"].split(":")[0]


@pytest.mark.parametrize(
    "line, call, remedy",
    [
        ("", "torch.exp(x)", "write exp(x), with: from sympy import exp"),
        ("", "torch.nn.functional.silu(x)", "silu"),
        ("", "np.tanh(x + 1)", "write tanh(x + 1)"),
        ("import torch", "torch.exp(x)", "leave the import out: a forward"),
        ("import torch", "x", "leave the import out: a forward is written with SymPy's functions"),
    ],
)
def test_functions_of_torch_are_answered_with_what_to_write(line, call, remedy, monkeypatch):
    """Where there is no torch, as on the page."""
    monkeypatch.setitem(sys.modules, "torch", None)
    start = TANH.index("    y =")
    trouble = trouble_in(answered(ask="derive", text=f"{line}\n{TANH[:start]}    y = {call}\n"))
    assert remedy in trouble["remedy"]
    assert trouble["line"] == (1 if line else TANH[:start].count("\n") + 2)


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "GeneratorExit", "MemoryError"])
def test_whatever_a_text_raises_is_said(error):
    trouble = trouble_in(answered(ask="derive", text=f"raise {error}\n{TANH}"))
    assert error in trouble["problem"]


@pytest.mark.parametrize(
    "pasted", [TANH.replace("\n", "\r\n"), "\ufeff" + TANH, TANH.replace("    ", "\t")]
)
def test_what_is_pasted_is_read_as_it_is_meant(pasted):
    parts = parts_in(answered(ask="derive", text=pasted))
    assert parts["latex"] == parts_in(answered(ask="derive", text=TANH))["latex"]


def test_what_is_found_last_stands_where_it_belongs(batch_norm):
    told = [m["parts"]["sections"] for m in batch_norm if "sections" in m.get("parts", {})]
    first, last = ([title for title, _ in sections] for sections in told)
    assert last == [title for title in TITLES if title in last] and {*last} - {*first} == {FOUND}
    assert f"## {FOUND}" in parts_in(batch_norm)["markdown"]


def test_what_has_no_influence_is_warned_of_at_its_line():
    text = TANH.rstrip().replace("    y =", "    unused = x * 3\n    y =")
    (warning,) = (m for m in answered(ask="derive", text=text) if m["kind"] == "warning")
    assert text.split("\n")[warning["line"] - 1].strip() == "unused = x * 3"


def test_a_wrong_backward_is_refuted_line_by_line():
    parts = parts_in(answered(ask="check", text=TANH, backward="dx = dy*(1 + y*y)\n"))
    assert parts["outcome"] == "wrong"
    assert parts["lines"] == [{"name": "dx", "line": 1, "outcome": "wrong", "inherits": False}]
    assert "counterexample" in parts["verdict"] and parts["data"]["status"] == 1
    assert (
        parts_in(answered(ask="check", text=TANH, backward="dx = dy*(1 - y*y)"))["outcome"]
        == "right"
    )


def test_names_and_order_are_heard():
    asked = {"ask": "check", "text": TANH, "backward": "dx = dy*(1 - h*h)"}
    assert "h=y" in str(parts_in(answered(**asked)))  # found, and said
    assert parts_in(answered(**asked, let="h=y"))["outcome"] == "right"
    second = parts_in(answered(ask="check", text=TANH, backward="v*(1 - y*y)", order=2))
    assert second["outcome"] == "right" and second["data"]["order"] == 2


@pytest.mark.parametrize(
    "backward, line", [("dx = (", 1), ("dx = dy\ndx = dx + nosuch", 2), ("  ", 0)]
)
def test_a_mistake_in_a_backward_has_its_line(backward, line):
    trouble = trouble_in(answered(ask="check", text=TANH, backward=backward))
    assert (trouble["where"], trouble["line"]) == ("backward", line)


@pytest.mark.parametrize(
    "question",
    [
        "[]",
        '{"ask": "run", "text": ""}',
        '{"ask": "derive", "text": 1}',
        '{"ask": "derive", "text": "", "order": 7}',
        '{"ask": "derive", "text": "", "more": 1}',
        json.dumps({"ask": "derive", "text": "#" * 100_000}),
    ],
)
def test_what_is_no_question_is_refused(question):
    with pytest.raises(ValueError):
        question_from(question)
    messages = []
    answer(question, messages.append)
    assert [json.loads(m)["kind"] for m in messages] == ["trouble", "done"]


def test_a_limit_of_time_is_kept():
    messages = answered(ask="derive", text=SHELF["batch_norm"]["text"], limit=0.01)
    assert trouble_in(messages)["outcome"] == "unproved"


def test_every_forward_of_the_gallery_is_there():
    assert len(SHELF) == len(gallery()) > 50
    for forward in SHELF.values():
        assert f"class {forward['name']}(Forward)" in forward["text"] and forward["about"]


def test_what_runs_in_the_browser_needs_neither_torch_nor_rich():
    program = "import sys, codegen.playground as p; p.gallery(); "
    program += "print({'torch', 'numpy', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
