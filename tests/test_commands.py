"""The command line: its help, its version, what it says of a mistyped word, and that none of it
waits for SymPy or torch.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import derive
from codegen.commands.cli import gradform, help_text
from codegen.commands.completion import SHELLS
from codegen.commands.generate import TARGETS
from codegen.commands.verbs import VERBS
from codegen.targets.languages import kernels
from derive.commands.show import FORMATS
from derive.language.errors import MATH
from derive.language.notation.gallery import gallery
from derive.language.notation.library import forward_from, list_forwards
from derive.show import formats
from derive.version import VERSION

ROOT = Path(derive.__file__).parents[1]
PROGRAM = "from codegen.__main__ import gradform; gradform()"
LIGHT = [
    ["--help"],
    ["--version"],
    ["list"],
    ["list", "norm"],
    ["help", "show"],
    ["completion", "bash"],
    ["completion", "fish", "show", "lay"],
    ["shwo"],
    ["show", "layernorm", "--orderr"],
    *([verb, "--help"] for verb in VERBS),
]


def said(capsys, *arguments: str) -> tuple[int, str, str]:
    """The exit status, standard output and standard error of a command."""
    try:
        status = gradform(arguments)
    except SystemExit as end:
        status = end.code
    return status, *capsys.readouterr()


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    """In a Python of its own."""
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=path, **options)


def test_help_names_every_verb_on_a_line_and_three_examples(capsys):
    status, text, _ = said(capsys, "--help")
    assert status == 0 and text == help_text()
    lines = text.splitlines()
    for verb, record in VERBS.items():
        (line,) = (line for line in lines if re.match(rf"  {verb} ", line))
        assert line.endswith(record.about) and len(line) <= 80
    start = lines.index("examples:") + 1
    assert all(line.startswith("  gradform ") for line in lines[start : start + 3])
    assert lines[start + 3] == ""


def test_help_is_asked_for_in_many_ways(capsys):
    of_show = said(capsys, "show", "--help")[1]
    assert of_show.startswith("usage: gradform show")
    assert said(capsys, "help", "show") == (0, of_show, "")
    assert said(capsys, "-h", "show") == (0, of_show, "")
    assert said(capsys, "help", "help")[1] == help_text()
    assert said(capsys) == (0, help_text(), "")
    assert said(capsys, "help")[1] == said(capsys, "-h")[1] == help_text()
    assert said(capsys, "help", "shwo")[0] == 2


def test_version(capsys):
    assert said(capsys, "--version") == (0, f"gradform {VERSION}\n", "")


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_what_is_quick_imports_neither_sympy_nor_torch(arguments):
    program = f"""
import sys
from codegen.commands.cli import gradform
try:
    gradform({arguments!r})
finally:
    heavy = {{"sympy", "torch", "numpy", "rich", "jinja2"}} & set(sys.modules)
    print("imported:", *heavy, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.endswith("imported:\n"), done.stderr


def test_every_option_of_every_verb_is_explained():
    for verb, record in VERBS.items():
        for parsing in record.parsers:
            for action in parsing(f"gradform {verb}")._actions:
                assert action.help, f"{verb}: {action.option_strings or action.dest}"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["shwo", "softmax"], "gradform show?"),
        (["lsit"], "gradform list?"),
        (["generat"], "gradform generate?"),
        (["layernorm"], "layer_norm?"),
        (["show", "layr_norm"], "layer_norm?"),
        (["check", "sofmax", "dy"], "softmax?"),
        (["diff", "LayerNrm"], "layer_norm?"),
        (["trace", "relo"], "relu?"),
        (["show", "softmax", "--formt", "latex"], "--format?"),
        (["softmax", "--taget", "cpp"], "--target?"),
        (["softmax", "--target", "ccp"], "cpp?"),
        (["show", "softmax", "--format", "htm"], "html?"),
        (["show", "layer_norm", "--of", "gian"], "gain?"),
        (["check", "layer_norm", "--of", "gian", "dy"], "gain?"),
        (["softmax", "--shard", "n"], "N?"),
        (["completion", "bsh"], "bash?"),
        (["list", "layernrm"], "layer_norm?"),
        (["show", "bce"], "bce_with_logits?"),
    ],
    ids=" ".join,
)
def test_a_mistyped_word_gets_the_nearest_and_no_list(arguments, meant, capsys):
    status, out, error = said(capsys, *arguments)
    assert status == 2 and out == ""
    assert f"did you mean {meant}" in error and len(error.splitlines()) == 2
    names = [each.function for each in gallery()]
    assert sum(bool(re.search(rf"\b{name}\b", error)) for name in names) <= 3


def test_what_is_like_nothing_gets_where_to_look(capsys):
    for word in ("zzzzzz", "nope"):
        status, _, error = said(capsys, "show", word)
        assert status == 2 and "did you mean" not in error and "gradform list" in error
    status, _, error = said(capsys, "show", "relu", "--format", "PDF")
    assert status == 2 and "run pdflatex FILE.tex" in error and len(error.splitlines()) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["show", ""],
        ["show", "."],
        ["show", ".."],
        ["show", "a.b"],
        ["show", "a\0b"],
        ["show", "x" * 5000],
        ["show", "x" * 5000 + ".py"],
        ["show", "nosuch.py:"],
        ["show", "softmax", "tanh"],
        ["show", "softmax", "--small-batch", "many"],
        ["show", "softmax", "--order", "first"],
        ["check"],
        ["check", "softmax"],
        ["check", "softmax", "dy", "--let", "a"],
        ["diff"],
        ["new"],
        ["new", "../x"],
        ["new", "my.norm"],
        ["new", "class"],
        ["new", "torch"],
        ["new", "random"],
        ["new", ""],
        ["watch", "nosuch", "--target", "fortran"],
        ["watch", "softmax", "--limit", "soon"],
        ["import"],
        ["import", "nosuch.py:f", "--axes", "x: N"],
        ["trace"],
        ["report", "nosuch"],
        ["site", "nosuch"],
        ["completion"],
        ["generate", "--frob"],
        ["-x"],
        [""],
    ],
    ids=lambda a: " ".join(a)[:30],
)
def test_a_mistake_is_one_message_with_a_remedy(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, error = said(capsys, *arguments)
    assert (status, out) == (2, "")
    assert (
        error.startswith("error: ") and "Traceback" not in error and "gradform itself" not in error
    )
    assert "\n    " in error and not list(tmp_path.iterdir())


def test_a_reader_may_stop_reading(tmp_path):
    for arguments in ("list", "--help", "completion bash", "show tanh"):
        reader = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments.split()], cwd=ROOT, stdout=-1, stderr=-1
        )
        reader.stdout.close()
        assert reader.stderr.read() == b"" and reader.wait() == 0, arguments


def test_what_is_read_of_the_gallery_is_what_is_run():
    for listed, forward in zip(gallery(), list_forwards(), strict=True):
        definition = forward.definition
        takes = [t.name for t in definition.arguments]
        takes += [name for name, _ in definition.size_arguments]
        takes += [t.name for t, _ in definition.scalars]
        takes += ["ignore_index"] * bool(definition.ignoring)
        takes += ["reduction"] * bool(definition.reductions)
        assert (listed.name, listed.function) == (forward.__name__, definition.snake)
        assert (list(listed.takes), listed.returns) == (
            takes,
            ", ".join(t.name for t in definition.outputs),
        )
        assert listed.about


def test_the_words_of_options_are_those_that_there_are():
    assert set(TARGETS) == {"torch", *kernels}
    assert set(FORMATS[1:]) == formats.FORMATS.keys()


@pytest.mark.parametrize("name", ["MyNorm", "my_norm", "RMSLike"])
def test_a_new_forward_is_derived_at_once(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADFORM_CACHE", "")
    status, out, _ = said(capsys, "new", name)
    file = re.match(r"written to (\w+\.py): a template", out)[1]
    assert status == 0 and f"gradform {file}" in out
    (own,) = tmp_path.iterdir()
    assert own.name == file and forward_from(file).definition.snake == file.removesuffix(".py")
    own.write_text("mine\n")
    status, _, error = said(capsys, "new", name)
    assert status == 2 and "--force" in error and own.read_text() == "mine\n"
    assert said(capsys, "new", name, "--force")[0] == 0
    status, out, _ = said(capsys, file)
    assert status == 0 and "every size" in out


@pytest.mark.parametrize(("name", "file"), [("logsumexp", "softmax"), ("layer_norm", "layer_norm")])
def test_a_forward_of_the_gallery_is_copied_to_be_edited(name, file, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = said(capsys, "new", name)
    assert status == 0 and f"written to {file}.py: the gallery's {file}" in out
    text, theirs = (tmp_path / f"{file}.py").read_text(), (MATH / f"{file}.py").read_text()
    assert not re.search("^from derive", text, re.M) and "\nfrom gradform import" in text
    assert text.split("\nclass ")[1:] == theirs.split("\nclass ")[1:]
    assert forward_from(f"{file}.py:{name}").definition.place.file == str(tmp_path / f"{file}.py")


def completed(shell: str, *words: str) -> list[str]:
    done = run("completion", shell, *words)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "name, meant", [("layernorm", "layer_norm"), ("SoftmaxCrossEntropy", "cross_entropy")]
)
def test_what_the_gallery_has_is_said(name, meant, capsys, tmp_path):
    assert gradform(["new", name, "--out", str(tmp_path)]) == 0
    assert f"the gallery has {meant}: gradform new {meant} copies that" in capsys.readouterr().out


def test_completion_knows_verbs_names_options_and_their_words():
    assert {"show", "site"} <= {*completed("bash", "s")} and "check" not in completed("bash", "s")
    assert completed("bash", "show", "layer") == ["layer_norm"]
    assert completed("bash", "layer") == ["layer_norm"]
    assert completed("bash", "show", "softmax", "--fo") == ["--format", "--force"]
    assert completed("bash", "show", "softmax", "--format", "") == list(FORMATS)
    assert completed("bash", "softmax", "--target", "c") == ["cpp"]
    assert completed("bash", "check", "softmax", "--ax") == ["--axes"]
    assert completed("bash", "show", "--output", "") == []  # a file
    assert completed("bash", "completion", "") == [*SHELLS]
    assert "--version" in completed("bash", "--")
    (fish,) = completed("fish", "show", "layer")
    assert fish.startswith("layer_norm\tEvery row centred")
    assert completed("zsh", "lis") == [f"list:{VERBS['list'].about}"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path):
    """The script that is printed, with the program that it asks."""
    program = tmp_path / "gradform"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{PROGRAM}' \"$@\"\n")
    program.chmod(0o755)
    script = (
        "source <(gradform completion bash); COMP_WORDS=(gradform show lay); COMP_CWORD=2; "
        "_gradform; echo ${COMPREPLY[@]}; complete -p gradform"
    )
    path = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=path)
    assert done.stdout.startswith("layer_norm\ncomplete ") and done.stderr == ""
