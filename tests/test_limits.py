"""A time limit ends a run with what was found and what was not decided, and leaves nothing
behind that depends on it.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from types import CellType, FunctionType, SimpleNamespace

import pytest
from forwards import HEAD
from sympy.core.facts import FactKB

import codegen.driver.cache
import codegen.driver.emitting
import derive
import derive.gradient.closing.closed_form
import derive.language.symbols
import derive.proof.proving.claim
import derive.proof.proving.proof
import derive.running.limits
from codegen.commands.cli import gradform, main
from derive.claims.checking.ground import Ground, ground_of
from derive.language.errors import QuestionError, UndecidedError
from derive.language.notation.library import load
from derive.running.limits import OutOfTime, Stage, limited, look, seconds_of

SHORT, LONG = 0.2, 6
SCALED = "\n\nclass Scaled(Forward):\n    x = Input(N)\n    w = Input(N)\n    y = w * x**2\n"


def hang(*_):
    time.sleep(LONG)
    raise AssertionError("nobody left it")


def hanging(function, when):
    """``function``, which does not come back where ``when`` holds for its arguments."""
    return lambda *arguments: (hang if when(*arguments) else function)(*arguments)


@pytest.fixture
def scaled(tmp_path):
    file = tmp_path / "scaled.py"
    file.write_text(HEAD + SCALED)
    os.utime(file, (10**9, 10**9))
    return str(file)


@pytest.fixture(autouse=True)
def nothing_rings_afterwards():
    handler, hook = signal.getsignal(signal.SIGALRM), sys.unraisablehook
    yield
    assert signal.getsignal(signal.SIGALRM) is handler and sys.unraisablehook is hook
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon", ""])
@pytest.mark.parametrize("verb", ["", "report", "show", "check"])
def test_what_is_no_time_is_refused(scaled, capsys, verb, limit, tmp_path):
    out = ["--out", str(tmp_path / "out")] if verb in ("", "report") else []
    formula = ["dy"] * (verb == "check")
    arguments = [*[verb] * bool(verb), scaled, *out, "--limit", limit, *formula]
    assert gradform(arguments) == 2
    assert f"limit {limit!r} is not a positive number of seconds" in capsys.readouterr().err


def test_a_limit_in_python_is_a_number_too():
    assert (seconds_of(None), seconds_of(3), seconds_of("0.5")) == (None, 3.0, 0.5)
    for limit in (True, [], 10**400, -2.0):
        with pytest.raises(QuestionError, match="not a positive number of seconds"):
            derive.derive("tanh", limit=limit)


def test_a_block_is_left_wherever_it_is():
    done = []
    with limited(SHORT), Stage() as stage:
        for _ in range(2):
            try:
                time.sleep(LONG)
            except Exception:  # of somebody who expects errors
                done.append("swallowed")
    assert stage.is_over and not done


def test_without_a_limit_there_is_no_timer():
    with Stage() as stage:
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        look()
    assert not stage.is_over


def test_the_inner_stage_keeps_its_share_and_the_outer_one_has_the_rest():
    begin = time.monotonic()
    with limited(2 * SHORT), Stage() as outer:
        with Stage(share=0.5) as inner:
            time.sleep(LONG)
        assert inner.is_over and time.monotonic() - begin < 2 * SHORT
        time.sleep(LONG)
    assert outer.is_over


def test_an_outer_limit_holds_for_an_inner_one():
    begin = time.monotonic()
    with limited(SHORT), limited(LONG), Stage() as stage:
        time.sleep(LONG)
    assert stage.is_over and time.monotonic() - begin < LONG / 2


def test_the_alarm_of_somebody_else_is_given_back():
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 2 * SHORT)
        with limited(SHORT), Stage() as stage:
            time.sleep(LONG)
        assert stage.is_over and not heard
        time.sleep(2 * SHORT)
        assert heard == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_errors_and_ctrl_c_pass():
    for kind in (KeyboardInterrupt, ValueError):
        with pytest.raises(kind), limited(LONG), Stage():
            raise kind


def test_where_it_cannot_be_raised_it_is_raised_again_without_a_traceback(monkeypatch):
    monkeypatch.setattr(derive.running.limits, "AGAIN", SHORT)
    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: shown.append(what.exc_type))

    class Deaf:
        def __del__(self):
            time.sleep(LONG)

    with limited(SHORT), Stage() as stage:
        Deaf()
        time.sleep(LONG)
    monkeypatch.undo()
    assert stage.is_over and not shown


def test_an_import_is_not_left_half_done(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text(
        "import time\nuntil = time.monotonic() + 0.4\n"
        "while time.monotonic() < until:\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with limited(SHORT), Stage() as stage:
        importlib.import_module("slow_module")
        time.sleep(LONG)
    assert stage.is_over and sys.modules.pop("slow_module").whole


def test_what_a_module_derives_while_it_is_imported_is_left(tmp_path, monkeypatch):
    (tmp_path / "deriving.py").write_text(
        "import time\nfrom derive.running.limits import Stage, limited\n"
        f"with limited({SHORT}), Stage() as stage:\n    time.sleep({LONG})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("deriving")
    assert sys.modules.pop("deriving").stage.is_over


def test_what_follows_from_a_fact_of_sympys_is_not_left_half_noted():
    (name,) = {FactKB.deduce_all_facts.__globals__["__name__"]}
    done = []

    def spin():
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            pass
        done.append(True)

    there = {"__name__": name, "time": time}
    with limited(SHORT), Stage() as stage:
        FunctionType(spin.__code__, there, closure=(CellType(done),))()
        time.sleep(LONG)
    assert stage.is_over and done


def test_where_there_is_no_timer_the_time_is_looked_at():
    over = []

    def work():
        with limited(SHORT), Stage() as stage:
            while True:
                look()
        over.append(stage.is_over)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10 * SHORT)
    assert over == [True]


def test_it_is_no_exception_that_somebody_may_expect():
    assert not issubclass(OutOfTime, Exception)


def test_time_is_out_before_a_closed_form_is_found(scaled, monkeypatch):
    monkeypatch.setattr(derive.gradient.closing.closed_form, "_finished", hang)
    with pytest.raises(UndecidedError) as error:
        derive.derive(scaled, limit=SHORT)
    words = str(error.value)
    assert "before a closed form was found" in words and "in progress: simplifying, for" in words
    assert "a longer --limit" in words


def test_the_search_is_ended_with_the_best_so_far_which_is_proved(scaled, monkeypatch):
    """At the least with the form in which every gradient has a name."""
    whole = derive.derive(scaled)
    monkeypatch.setattr(derive.gradient.closing.closed_form, "names_kept", hang)
    begin = time.monotonic()
    found = derive.derive(scaled, limit=2)
    assert 0.9 < time.monotonic() - begin < LONG
    assert found.closed_form.hurried and found.every_size
    assert not found.closed_form.preference < whole.closed_form.preference
    assert found.cut_short.endswith("decided whether there is a cheaper closed form")
    assert not whole.closed_form.hurried and whole.cut_short == ""


@pytest.mark.parametrize("name", ["batch_norm", "gru_cell", "focal"])
def test_the_search_is_worth_it(name):
    """What it finds costs less than to name every gradient, or none."""
    chain = derive.gradient.closing.closed_form.derive_chain(derive.forward_from(name).definition)
    found = derive.gradient.closing.closed_form.close(chain)
    facts = derive.gradient.closing.closed_form.Facts(found.relations)
    first, _ = derive.gradient.closing.closed_form._simplifiers(chain, facts)
    for names in (frozenset(a.name for a in first.spelled.adjoints), frozenset()):
        assert (
            found.preference
            <= derive.gradient.closing.closed_form._finished(first, names).preference
        )


def undecided_dw(monkeypatch):
    """The proof of dw on small batches does not come back."""
    monkeypatch.setattr(
        derive.proof.proving.proof,
        "needed_on",
        hanging(derive.proof.proving.proof.needed_on, lambda claim, *_: not claim.left.has(W)),
    )


N = derive.Axis("N")
W = derive.language.symbols.Tensor("w", (N,))


def test_time_is_out_during_the_proof(scaled, monkeypatch, tmp_path, capsys):
    undecided_dw(monkeypatch)
    out = tmp_path / "out"
    assert main([scaled, "--out", str(out), "--limit", "1"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("unproved: Scaled: the time limit ran out before the proof was finished")
    assert "found: dx = 2*dy*w*x\n" in said and "found: dw = dy*x**2\n" in said
    assert "proved on small batches: dx; for every size: nothing\n" in said
    assert "not decided: dw\n" in said and "in progress: proving dw, for" in said
    assert "nothing was emitted" in said and not out.exists()


def test_what_is_proved_for_small_batches_is_emitted_and_says_so(
    scaled, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(codegen.driver.cache, "STARTED", time.time() + 3600)
    monkeypatch.setenv(codegen.driver.cache.VARIABLE, str(tmp_path / "kept"))
    arguments = [scaled, "--out", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr(derive.proof.proving.claim, "holds_for_every_size", hang)
        assert main([*arguments, "--limit", "1"]) == 0
    said = capsys.readouterr()
    assert "only those" in said.out and "note: Scaled: the time limit ran out" in said.err
    assert "whether dx, dw hold for every size" in said.err
    text = " ".join((tmp_path / "out" / "scaled.py").read_text().split())
    assert "only those sizes were proved for dx, dw" in text
    assert not list((tmp_path / "kept").glob("*.json"))  # it would be taken for all there is
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "every size" in said.out and "cached" not in said.out and not said.err
    assert main([*arguments, "--limit", "1"]) == 0
    assert "cached" in capsys.readouterr().out


def test_every_forward_of_a_pool_has_the_limit(scaled, monkeypatch):
    given = []

    class Here:
        def submit(self, function, *arguments):
            given.append(arguments[2])
            future = Future()
            future.set_result(SimpleNamespace(chain=None))
            return future

    @contextmanager
    def pool(processes):
        yield Here()

    monkeypatch.setattr(codegen.driver.emitting, "_pool", pool)
    nothing_kept = codegen.driver.cache.Cache(None)
    monkeypatch.setattr(nothing_kept, "put", lambda *_: None)
    codegen.driver.emitting.emit_all(load_one(scaled) * 4, nothing_kept, processes=2, limit=7)
    assert given == [(7, nothing_kept.target, None, False)] * 4
    monkeypatch.setattr(derive.gradient.closing.closed_form, "_finished", hang)
    with pytest.raises(UndecidedError):
        codegen.driver.emitting._emitted(scaled, "Scaled", (SHORT, "torch", None, False))


def load_one(file):
    return load(derive.language.notation.library.Path(file))


def test_a_check_that_is_out_of_time_is_undecided(scaled, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(Ground, "proved", hang)
        question = ["check", scaled, "--of", "x", "2*w*x*dy"]
        assert gradform([*question, "--limit", "1"]) == 1
        said = capsys.readouterr().out
        assert said.startswith("undecided: dx of scaled")
        assert "neither proved nor refuted; the time limit ran out (checking dx, for" in said
        assert gradform([*question, "--limit", "1", "--json"]) == 1
        (gradient,) = json.loads(capsys.readouterr().out)["gradients"]
        assert gradient["outcome"] == "undecided" and "time limit" in gradient["cut_short"]
    assert ground_of.cache_info().currsize == 0
    assert gradform(question) == 0


def test_what_is_refuted_in_time_is_wrong_also_where_it_is_not_explained(
    scaled, monkeypatch, capsys
):
    monkeypatch.setattr("derive.claims.checking.wrong_claims.WrongClaim.comparison", hang)
    assert gradform(["check", scaled, "--of", "x", "3*w*x*dy", "--limit", "2"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("wrong: dx of scaled") and "the smallest counterexample" in said
    assert "the time limit ran out before it was explained" in said


def test_what_is_proved_but_not_shown_in_time(scaled, monkeypatch, capsys):
    monkeypatch.setattr("derive.commands.showing.document_of", hang)
    assert gradform(["show", scaled, "--limit", "1", "--chain"]) == 1
    said = capsys.readouterr()
    assert "the gradients are proved" in said.err and "what else there is to show" in said.err
    assert said.out == ""
