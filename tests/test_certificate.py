"""Certificates for Coq: what is printed, refused and committed; and, where Coq is, what it says."""

import re
import shutil
from dataclasses import replace

import pytest

from codegen.commands.cli import gradform
from codegen.files.dependencies import machinery_files
from derive.certificate import LIBRARY, PARTIAL, Certificate, checked, installed
from derive.commands.certifying import certificate_of, form_of, library
from derive.derivation import derive
from derive.language.errors import CERTIFICATES, NotationError
from derive.language.notation.library import forward_from, forwards_from
from derive.proof.proving.certified import ACCEPTED, certified, committed, recorded
from derive.running.command import NOT_UNDERSTOOD

SAMPLE = ["linear", "rms_norm", "hinge"]


def needs_coq(test):
    absent = pytest.mark.skipif(not installed(), reason="apt-get install coq libcoq-coquelicot")
    return pytest.mark.coq(absent(test))


OF_ONES_OWN = """
from sympy import exp, log, sqrt
from derive import Axis, Forward, Input, Label, OneHot, Scalar, Sum

N, C = Axis("N"), Axis("C")


class NormBesideResidual(Forward):
    x, z, gain = Input(N, C), Input(N, C), Input(C)
    eps = Scalar(1e-5)

    y = z + gain * x / sqrt(Sum(x**2, C) / C + eps)


class NormOfResidual(Forward):
    x, z, gain, bias = Input(N, C), Input(N, C), Input(C), Input(C)
    eps = Scalar(1e-5)

    h = x + z
    mean = Sum(h, C) / C
    y = (h - mean) / sqrt(Sum((h - mean) ** 2, C) / C + eps) * gain + bias


class OwnFocal(Forward):
    x, labels = Input(N, C), Label(N)
    gamma = Scalar(2)

    probs = exp(x) / Sum(exp(x), C)
    p = Sum(OneHot(labels, C) * probs, C)
    loss = -Sum((1 - p) ** gamma * log(p), N) / N


class OwnFocalOfLogits(Forward):
    x, labels = Input(N, C), Label(N)
    alpha, gamma = Scalar(0.25), Scalar(2)

    logp = Sum(OneHot(labels, C) * x, C) - log(Sum(exp(x), C))
    loss = -alpha * Sum((1 - exp(logp)) ** gamma * logp, N) / N


class OwnFocalOfTargets(Forward):
    x, target = Input(N, C), Input(N, C)

    p = 1 / (1 + exp(-x))
    losses = -target * (1 - p) ** 2 * log(p) - (1 - target) * p**2 * log(1 - p)
    loss = Sum(losses, N, C) / (N * C)
"""


def form_named(name):
    return form_of(forward_from(name))


def with_a_sign(form):
    first, *others = form.statements
    return replace(form, statements=(replace(first, expression=-first.expression), *others))


def test_what_is_committed_is_what_coq_accepted():
    """The record has the digest of each file and of the library that it was accepted with."""
    record = recorded(CERTIFICATES)
    accepted = {name for name, entry in record.items() if entry.kind == ACCEPTED}
    shared = (LIBRARY, PARTIAL)
    assert {f.stem for f in CERTIFICATES.glob("*.v")} == accepted | {f.stem for f in shared}
    assert all((CERTIFICATES / f.name).read_text() == library(f) for f in shared)
    files = {n: CERTIFICATES / f"{n}.v" for n in accepted}
    stale = [n for n, file in files.items() if committed(file) != record[n].digests[0]]
    assert not stale


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_printed_is_what_is_committed(name):
    assert certificate_of(form_named(name)) == (CERTIFICATES / f"{name}.v").read_text()


@pytest.mark.parametrize("file", ["linear.v", LIBRARY.name, "record.txt", ""])
def test_a_record_of_something_else_says_nothing(tmp_path, file):
    """Of another text, another library, another digest, or of nothing."""
    for known in ("linear.v", LIBRARY.name, "record.txt"):
        shutil.copy(CERTIFICATES / known, tmp_path)
    form = form_named("linear")
    assert certified(form, tmp_path) == f"{tmp_path.name}/linear.v"
    assert not certified(with_a_sign(form), tmp_path)
    if file == "record.txt":
        digests = recorded(tmp_path)["linear"].digests
        text = (tmp_path / file).read_text().replace(digests[0], digests[1])
        (tmp_path / file).write_text(text)
    elif file:
        (tmp_path / file).write_text((tmp_path / file).read_text().replace("Lemma", "Theorem"))
    else:
        (tmp_path / "record.txt").unlink()
    assert not certified(form, tmp_path)


def test_what_is_shown_of_a_proof_says_it():
    assert {CERTIFICATES / "record.txt", CERTIFICATES / "linear.v"} <= {*machinery_files()}
    words = ". Certified by Coq: certificates/linear.v of gradform"
    assert derive("linear").summary.endswith(words)


def test_nothing_is_assumed_outside_the_theorem():
    """No proof is left out, and every hypothesis of the section is one of the theorem."""
    for file in CERTIFICATES.glob("*.v"):
        text = file.read_text()
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort)\b", text), file
        if file.name not in {LIBRARY.name, PARTIAL.name}:
            assert text.rstrip().endswith("Print Assumptions gradient.")
            theorem = text.partition("Theorem gradient :")[2]
            assert len(re.findall(r"\) ->$", theorem, re.M)) == text.count("\nHypothesis ")


def test_the_theorem_says_of_which_reduction_it_is():
    text = (CERTIFICATES / "mse.v").read_text()
    assert text.count('MSE with reduction="mean"') == 2


def test_a_folder_of_ones_own_is_compared_by_name(tmp_path, capsys):
    assert gradform(["certificate", "--check", "--out", str(tmp_path)]) == NOT_UNDERSTOOD
    assert "my_norm.py --check" in capsys.readouterr().err


def test_a_refusal_names_the_node():
    with pytest.raises(NotationError, match=r"RecurrenceBefore .* CumProd"):
        Certificate(form_named("alpha_compositing")).text()


@needs_coq
@pytest.mark.parametrize("name", SAMPLE[:2])
def test_coq_accepts_a_sample(name):
    assert checked(certificate_of(form_named(name))).said == ""


@needs_coq
@pytest.mark.parametrize("k", range(5))
def test_coq_accepts_a_forward_of_ones_own(tmp_path, k):
    """Norms in one line; focal losses of probabilities and of logits, at labels and targets."""
    file = tmp_path / "own.py"
    file.write_text(OF_ONES_OWN)
    forward = list(forwards_from(file))[k]
    assert checked(certificate_of(form_of(forward))).said == ""


@needs_coq
def test_the_limit_is_of_the_processor():
    assert checked(certificate_of(form_named("linear")), 1).said == "undecided after 1 seconds"


@needs_coq
def test_coq_refuses_a_sign():
    wrong = with_a_sign(form_named("linear"))
    assert checked(Certificate(wrong).text()).said.startswith("C_x")


@needs_coq
def test_an_axiom_of_ones_own_is_seen():
    text = certificate_of(form_named("linear"))
    proof = "Proof. intros. apply gradient_along; assumption. Qed."
    assert proof in text
    wrong = text.replace("Theorem gradient", "Axiom anything : False.\nTheorem gradient")
    wrong = wrong.replace(proof, "Proof. destruct anything. Qed.")
    assert checked(wrong).said == "the theorem rests on anything"
