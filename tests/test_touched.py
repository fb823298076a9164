"""``make test-fast`` runs what is near a change, within its time."""

from pathlib import Path

import touched


def test_the_tests_of_a_module_are_near_it():
    near = touched.nearest({"derive.proof.zero.exact"})
    assert "test_exact" in near
    assert near.index("test_exact") < near.index("test_docs")


def test_a_generated_module_follows_its_forward_and_a_page_is_read_by_its_tests():
    root = touched.ROOT
    assert "generated.softmax" in touched.importers()["derive.math.softmax"]
    paths = [root / "derive" / "proof" / "zero" / "exact.py", root / "docs" / "proof.md"]
    assert touched.modules(paths) == {"derive.proof.zero.exact", "test_docs"}
    assert touched.modules([Path(touched.__file__)]) == {"touched"}


def test_what_does_not_fit_is_left_out(monkeypatch, tmp_path):
    (tmp_path / "seconds.json").write_text('{"test_a": 50, "test_b": 80, "test_c": 40}')
    monkeypatch.setattr(touched, "SECONDS", tmp_path / "seconds.json")
    monkeypatch.setattr(touched, "ALWAYS", ())
    assert touched.chosen(["test_a", "test_b", "test_c"], 100) == (["test_a", "test_c"], ["test_b"])
