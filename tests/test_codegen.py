"""From a proved closed form to a file: what the code looks like, how it is written, what the
commands say.
"""

import ast
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm
from forwards import HEAD, OWN, write
from sympy import Integer

import codegen.driver.lean
import codegen.targets.lean.target
import derive
from codegen import generate
from codegen.commands.cli import main
from codegen.driver.cache import FOLDER, VARIABLE
from codegen.targets.languages import kernels
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.target import written
from derive import UnprovedError, forward_from
from derive.derivation import closed_form_of, derive_definition
from derive.language.notation.library import forwards_from, list_forwards
from derive.proof.proving.proved import Proved

ROOT = Path(codegen.driver.lean.__file__).parents[2]
DX = "dx = gain * inv_std * torch.addcmul(dy - dbias / N, dgain / (N - 1), xhat, value=-1)"


@pytest.fixture(scope="module")
def built_in():
    """The module of every forward of the project, which `make check` says to be up to date."""
    names = (forward.definition.snake for forward in list_forwards())
    return {name: (ROOT / "generated" / f"{name}.py").read_text() for name in names}


def function(text: str, name: str) -> str:
    """The lines of one function of a generated module, without its docstring."""
    body = re.search(rf"^def {name}\(.*?(?=^@|^class |^def |\Z)", text, re.M | re.S).group()
    return re.sub(r'""".*?"""', "", body, flags=re.S)


def numbers_of(definition) -> set[int]:
    """The whole numbers that the mathematics writes itself."""
    written = {n for s in definition.statements for n in s.expression.atoms(Integer)}
    defaults = {n for _, n in definition.scalars if isinstance(n, int)}
    defaults |= {abs(ignoring.default) for ignoring in definition.ignoring}
    return {*map(int, written), *defaults, *definition.fixed.values()}


def test_the_driver_runs_the_stages_of_its_docstring():
    listed = re.findall(r"^    (\w+)\s{2,}", codegen.driver.lean.__doc__, re.M)
    assert listed == [
        "outside_of",
        "derive_definition",
        "whole_program",
        "module_text",
        "largest_difference",
        "check_every_use",
        "edges_of",
        "empty_in_words",
        "rounding",
        "chain_module",
        "write_modules",
    ]
    source = Path(codegen.driver.lean.__file__).read_text()
    assert all(f"{name}(" in source for name in listed[:-1])
    stages = (
        "outside_of",
        "derive_definition",
        "lean_module",
        "rounding_of_module",
        "chain_module",
    )
    generate = source[source.index("def generate(") : source.index("def lean_module(")]
    places = [generate.index(f"{name}(") for name in stages]
    assert places == sorted(places)


def test_batch_norm_reads_as_a_person_writes_it(built_in):
    code = function(built_in["batch_norm"], "batch_norm_backward")
    lines = [line.strip() for line in code.strip().split("\n")]
    assert "dbias = dy.sum(0)" in lines and "dgain = (dy * xhat).sum(0)" in lines
    assert DX in lines
    assert code.count(".sum(") == 2


def test_softmax_nll_uses_an_index_and_one_tensor_of_full_size(built_in):
    text = built_in["softmax_nll"]
    code = function(text, "softmax_nll_backward")
    assert "one_hot" not in code + function(text, "softmax_nll_forward")
    assert "dlogits = dloss / N * probs" in code
    assert "dlogits.scatter_add_(1, labels" in code


def test_the_forward_that_is_emitted_takes_no_logarithm_of_probabilities(built_in):
    code = function(built_in["softmax_nll"], "softmax_nll_forward")
    assert "torch.log(probs)" not in code and "torch.log(counts_sum" in code


def test_no_size_is_a_literal(built_in):
    """The whole numbers in the code are dimensions, exponents and those of the mathematics; 40 is
    where torch's softplus ends, and 5 the last dimension of a convolution's windows.
    """
    definitions = {f.definition.snake: f.definition for f in list_forwards()}
    for name, text in built_in.items():
        for kind in ("forward", "backward") if not definitions[name].chunked else ():
            code = ast.parse(function(text, f"{name}_{kind}"))
            numbers = {n.value for n in ast.walk(code) if isinstance(n, ast.Constant)}
            meant = {0, 1, 2, 3, 4, 5, 40} | numbers_of(definitions[name])
            assert {n for n in numbers if isinstance(n, int)} <= meant, name


OVERFLOWS = {
    **dict.fromkeys(("clip", "siglip"), "exp(scale)"),
    "focal_tversky": "share",
    "linear_grpo": "exp(logp_reference",
    "kl_div_log_target": "exp(target)",
    "ppo": "exp(logp",
    "selective_scan": "exp(A*delta)",
}


RELIED_ON = re.compile(r"^Proved for any chunks.*?\n\n", re.M | re.S)
NOT_UNSAFE = re.compile(
    r"no gradient|are refused|(is|are) NaN if|first of equal|are equal|[Ee]ntries where"
)


def test_only_exponentials_that_are_meant_are_not_safe(built_in):
    """Of a temperature, a target, a ratio of probabilities and a decay; and where a root is steep.
    What was tried is named apart: where float32 ends, and hard points.
    """
    tried = re.compile(
        r"(Where [^:]+: )?float32|[\w, ]+ may be infinite or NaN (where|for) |\w+ is centred twice"
    )
    for name, text in built_in.items():
        told = RELIED_ON.sub("", ast.get_docstring(ast.parse(text)))
        _, *edges = re.split(r"^- ", told, flags=re.M)
        said = [" ".join(edge.split()) for edge in edges]
        derived = [line for line in said if not tried.match(line)]
        derived = [line for line in derived if NOT_UNSAFE.search(line) is None]
        lengths = [line for line in derived if "may be 0" in line and name == "triplet"]
        named = [line.split(" ")[0] for line in derived if line not in lengths]
        assert {*named} == ({OVERFLOWS[name]} if name in OVERFLOWS else set()), name


def test_the_docstring_has_the_formula_the_proof_and_the_edges(built_in):
    text = built_in["batch_norm"]
    assert "dx = gain*inv_std*(dy - dbias/N - dgain*xhat/(N - 1))" in text
    assert "for every" in text and "N - 1 is 0" in text
    header = text.split('"""')[0]
    assert "batch_norm.py" in header and re.search(r"sha256: [0-9a-f]{64}", header)
    assert not re.search(r"20\d\d-\d\d", header) and str(ROOT) not in text


def test_generated_files_are_up_to_date(capsys, monkeypatch):
    """`make check` has asked for all of them."""
    monkeypatch.setenv(VARIABLE, str(ROOT / FOLDER))
    assert main(["batch_norm", "--check", "--out", str(ROOT / "generated")]) == 0
    assert "batch_norm" in capsys.readouterr().out


def test_the_table_says_what_was_done(tmp_path, capsys):
    assert main(["softmax_nll", "--out", str(tmp_path / "deep" / "out")]) == 0
    out = capsys.readouterr().out
    assert "dlogits = dloss*(probs - OneHot(labels, C))/N" in out
    assert "every size" in out and re.search(r"\de-1\d", out) and " s " in out
    assert "\x1b" not in out
    assert (tmp_path / "deep" / "out" / "softmax_nll.py").is_file()


def test_check_shows_a_readable_difference_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["batch_norm", "--out", str(out)]) == 0
    file = out / "batch_norm.py"
    edited = file.read_text().replace("dgain / (N - 1)", "dgain / N")
    file.write_text(edited)
    capsys.readouterr()
    assert main(["batch_norm", "--check", "--out", str(out)]) == 1
    shown = capsys.readouterr()
    assert f"-        {DX.replace('(N - 1)', 'N')}" in shown.out
    assert f"+        {DX}" in shown.out
    assert "out of date" in shown.err and file.read_text() == edited
    assert main(["softmax_nll", "--check", "--out", str(tmp_path / "none")]) == 1
    assert not (tmp_path / "none").exists()


def test_an_unproved_derivative_leaves_everything_as_it_was(tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    both = ["tanh", "softmax_nll", "--out", str(out)]
    assert main(both) == 0
    before = {f.name: (f.read_bytes(), f.stat().st_mtime_ns) for f in out.iterdir()}
    capsys.readouterr()

    def unproved(form, progress=None):
        if (
            form.definition.snake == "softmax_nll"
        ):  # the second of the two: the first was already done
            raise UnprovedError("SoftmaxNLL: dlogits is unproved")
        return right(form)

    right = codegen.driver.lean.derive_definition.__globals__["prove"]
    monkeypatch.setitem(codegen.driver.lean.derive_definition.__globals__, "prove", unproved)
    assert main(both) == 1
    assert "dlogits is unproved" in capsys.readouterr().err
    assert {f.name: (f.read_bytes(), f.stat().st_mtime_ns) for f in out.iterdir()} == before


def test_code_that_differs_from_autograd_is_not_emitted(tmp_path, capsys, monkeypatch):
    """The comparison is the last gate: a printer that prints something else is stopped there."""
    right = codegen.targets.lean.target.module_text
    monkeypatch.setattr(
        codegen.driver.lean, "module_text", lambda *of: right(*of).replace("dbias / N", "dbias")
    )
    assert main(["batch_norm", "--out", str(tmp_path / "out")]) == 1
    assert "differs from autograd" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dbias = dy.sum(0)", "dbias = 2 * dy.sum(0)"),
        ("return dx, dgain, dbias", "return dx, dbias, dbias"),
        ("y = torch.addcmul(bias, gain, xhat)", "y = gain * xhat"),
        ("x, gain, mean", "x, gain, 2 * mean"),
    ],
)
def test_the_comparison_sees_every_gradient(old, new, monkeypatch):
    """(What is wrong in a chain is seen by ``chain.py``: test_chain_modules.)"""
    right = codegen.targets.lean.target.module_text
    assert old in right(of_batch_norm())
    monkeypatch.setattr(
        codegen.driver.lean, "module_text", lambda *of: right(*of).replace(old, new)
    )
    with pytest.raises(UnprovedError, match="differs from autograd"):
        generate(forward_from("batch_norm"))


def of_batch_norm():
    """The text of its module."""
    forward = forward_from("batch_norm")
    outside = outside_of(forward.definition)
    return written(forward, outside, derive.derive(forward))[0]


def texts_of(*names: str) -> str:
    """Modules and kernels of all forwards of these names and files."""
    texts = []
    for forward in (forward for name in names for forward in forwards_from(name)):
        outside = outside_of(forward.definition)
        pair, text = written(forward, outside, derive_definition(outside.inside))
        texts += [text, *kernels["cpp"].texts([pair], text)]
    return "\n".join(texts)


def test_the_same_bytes_under_any_hash_seed(tmp_path):
    """Those of this process, whose seed is random, and of one with another seed."""
    file = write(tmp_path, "AbsoluteFourthNorm", "WeightedNLL")
    names = ("softmax_nll", str(file))
    program = "import sys, test_codegen; print(test_codegen.texts_of(*sys.argv[1:]))"
    places = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    other = subprocess.run(
        [sys.executable, "-c", program, *names],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": places},
        check=True,
    ).stdout
    assert other.count("class ") >= 3 and other.count("#include") >= 3
    assert other == texts_of(*names) + "\n"


def test_a_killed_run_leaves_whole_files(tmp_path):
    out = tmp_path / "out"
    assert main(["softmax_nll", "--out", str(out)]) == 0
    before = (out / "softmax_nll.py").read_bytes()
    for delay in (0.2, 1.0):
        process = warm.Popen(
            [sys.executable, "-m", "codegen", "softmax_nll", "--out", str(out)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (out / "softmax_nll.py").read_bytes() == before


def test_an_output_folder_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert main(["softmax_nll", "--out", str(tmp_path / "file")]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_two_forwards_for_one_file_are_refused(tmp_path, capsys):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(f"{HEAD}\n\nclass Same(Forward):{OWN['Swish']}")
    assert (
        main([str(tmp_path / "one.py"), str(tmp_path / "two.py"), "--out", str(tmp_path / "out")])
        == 2
    )
    assert "the same file" in capsys.readouterr().err


def test_hostile_docstrings_stay_docstrings(tmp_path):
    doc = 'A \\"\\"\\" quote, {{ program.name }}, {% raw %}, a back\\\\slash and \\\\N{BULLET}'
    file = tmp_path / "hostile.py"
    file.write_text(
        f'{HEAD}\n\nclass Hostile(Forward):\n    """{doc}"""\n    x = Input(N)\n    y = 2 * x\n'
    )
    text = generate(forward_from(file)).text
    compile(text, "hostile", "exec")
    assert "{{ program.name }}" in text


def test_an_axis_and_a_tensor_may_share_a_name(tmp_path):
    file = tmp_path / "shared.py"
    file.write_text(
        f"{HEAD}\nR = Axis('C')\n\nclass Shared(Forward):\n"
        "    C = Input(N, R)\n    y = C - Sum(C, R) / R\n"
    )
    result = generate(forward_from(file))
    assert "C_size = " in result.text and result.largest_difference < 1e-12


def test_a_function_that_the_target_lacks_is_named(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        f"from sympy import besselj\n{HEAD}\n\nclass Mine(Forward):\n"
        "    x = Input(N)\n    y = besselj(0, x)\n"
    )
    assert main([str(file), "--out", str(tmp_path / "out")]) in (1, 2)
    assert "besselj" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_gradient_that_cancels_is_compared_where_it_does_not(tmp_path):
    """1 - tanh(u)**2 far out has few digits left, autograd's as well as ours."""
    file = tmp_path / "saturated.py"
    file.write_text(
        "from sympy import tanh\n"
        "from derive import Axis, Forward, Input, Sum\n"
        'C = Axis("C")\n'
        "class Saturated(Forward):\n"
        "    x = Input(C)\n"
        "    h = 3**x\n"
        "    y = tanh(Sum(h, C))\n"
    )
    assert main([str(file), "--out", str(tmp_path / "out"), "--no-cache"]) == 0


def test_a_long_list_of_what_is_kept_is_on_lines_of_its_own():
    clip = next(f for f in list_forwards() if f.definition.snake == "clip")
    outside = outside_of(clip.definition)
    _, text = written(clip, outside, Proved(closed_form_of(outside.inside), (), ()))
    assert "tuple[Tensor, ...]" in text
    long = [line for line in text.split("\n") if len(line) > 100]
    assert not [line for line in long if re.search(r"return|->|_forward\(", line)]
