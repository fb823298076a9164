"""Certificates for Coq: what is printed, refused and committed; and, where Coq is, what it says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from derive.certificate import LIBRARY, PARTIAL, Certificate, checked, installed
from derive.commands.certifying import ACCEPTED, certificate_of, digest, library, recorded
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.errors import NotationError
from derive.language.notation.library import as_forward, forwards_from

FOLDER = Path(__file__).parents[1] / "certificates"
SAMPLE = ["linear", "rms_norm", "hinge"]


def needs_coq(test):
    absent = pytest.mark.skipif(not installed(), reason="apt-get install coq libcoq-coquelicot")
    return pytest.mark.coq(absent(test))


RESIDUAL = """
from sympy import Rational
from derive import Axis, Forward, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")


class NormOfResidual(Forward):
    x, z, gain = Input(N, C), Input(N, C), Input(C)
    eps = Scalar(1e-5)

    whole = x + z
    square = Sum(whole**2, C) / C
    scale = (square + eps) ** Rational(-1, 2)
    y = x + gain * (whole * scale)
"""


def form_of(name):
    return close(derive_chain(as_forward(name).definition))


def test_what_is_committed_is_what_coq_accepted():
    """The record has the digest of each file and of the library that it was accepted with."""
    record = recorded(FOLDER)
    accepted = {name for name, entry in record.items() if entry.kind == ACCEPTED}
    assert {file.stem for file in FOLDER.glob("*.v")} == accepted | {LIBRARY.stem, PARTIAL.stem}
    assert all((FOLDER / f.name).read_text() == library(f) for f in (LIBRARY, PARTIAL))
    stale = [n for n in accepted if digest((FOLDER / f"{n}.v").read_text()) != record[n].digest]
    assert not stale


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_printed_is_what_is_committed(name):
    assert certificate_of(as_forward(name)) == (FOLDER / f"{name}.v").read_text()


def test_nothing_is_assumed_outside_the_theorem():
    """No proof is left out, and every hypothesis of the section is one of the theorem."""
    for file in FOLDER.glob("*.v"):
        text = file.read_text()
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort)\b", text), file
        if file.name not in {LIBRARY.name, PARTIAL.name}:
            assert text.rstrip().endswith("Print Assumptions gradient.")
            theorem = text.partition("Theorem gradient :")[2]
            assert len(re.findall(r"\) ->$", theorem, re.M)) == text.count("\nHypothesis ")


def test_a_refusal_names_the_node():
    with pytest.raises(NotationError, match=r"RecurrenceBefore .* CumProd"):
        Certificate(form_of("alpha_compositing")).text()


@needs_coq
@pytest.mark.parametrize("name", SAMPLE[:2])
def test_coq_accepts_a_sample(name):
    assert checked(certificate_of(as_forward(name))).said == ""


@needs_coq
def test_coq_accepts_a_forward_of_ones_own(tmp_path):
    file = tmp_path / "norm_of_residual.py"
    file.write_text(RESIDUAL)
    (forward,) = forwards_from(file)
    assert checked(certificate_of(forward)).said == ""


@needs_coq
def test_coq_refuses_a_sign():
    form = form_of("linear")
    first, *others = form.statements
    wrong = replace(form, statements=(replace(first, expression=-first.expression), *others))
    assert checked(Certificate(wrong).text()).said.startswith("C_x")


@needs_coq
def test_an_axiom_of_ones_own_is_seen():
    text = certificate_of(as_forward("linear"))
    proof = "Proof. intros. apply gradient_along; assumption. Qed."
    assert proof in text
    wrong = text.replace("Theorem gradient", "Axiom anything : False.\nTheorem gradient")
    wrong = wrong.replace(proof, "Proof. destruct anything. Qed.")
    assert checked(wrong).said == "the theorem rests on anything"
