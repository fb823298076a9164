"""A site: an index by kind, a page for every forward, the documentation; links lead somewhere."""

from pathlib import Path

import pytest
from test_pages import Tags, parsed

from derive.commands.site import SiteLinks, _kinds, write_site
from derive.language.errors import QuestionError
from derive.language.notation.library import list_forwards
from derive.show.handbook import handbook
from derive.show.html import PageLinks, keys_of

ROOT = Path(__file__).resolve().parents[1]


def test_a_site_has_a_page_for_every_forward_and_an_index(tmp_path):
    small = [f for f in list_forwards() if f.__name__ in ("Tanh", "Embedding")]
    seen = []

    def progress(found):
        for forward in found:
            seen.append(forward.__name__)
            yield forward

    files = write_site(tmp_path / "site", small, progress)
    assert sorted(seen) == ["Embedding", "Tanh"]
    pages = {"index.html", "tanh.html", "embedding.html"}
    assert {f.name for f in files} == {*pages, "Grad.v", "tanh.v", "embedding.v"}
    assert {f.name for f in (tmp_path / "site").iterdir()} == {*pages, "certificates"}
    root = parsed(files[0].read_text())
    links = [e.get("href") for e in root.iter("a")]
    assert sorted(links) == ["#content", "embedding.html", "tanh.html"]
    assert [e.text for e in root.iter("h2")] == ["Activations", "Layers"]
    assert len(list(root.iter("math"))) >= 2
    (page,) = (f.read_text() for f in files if f.name == "tanh.html")
    assert 'href="index.html"' in page and 'href="certificates/tanh.v"' in page
    assert (tmp_path / "site" / "certificates" / "tanh.v").is_file()


def test_every_forward_has_a_kind_and_every_kind_its_files():
    files = {Path(f.definition.place.file).stem for f in list_forwards()}
    assert files == {*_kinds()}


def test_documentation_is_a_part_of_the_site(tmp_path):
    (tanh,) = (f for f in list_forwards() if f.__name__ == "Tanh")
    docs = tmp_path / "docs"
    docs.mkdir()
    hostile = "<script>alert(1)</script> [x](javascript:alert(1))"
    (docs / "README.md").write_text(
        f"# All\n\n[one](one.md#two-words) [no](../no.md) [two](more/two.md)\n\n{hostile}\n"
    )
    (docs / "one.md").write_text(
        "# One\n\n## Two words\n\n[back](README.md)\n\n| a |\n|---|\n| b |\n"
    )
    (docs / "more").mkdir()
    (docs / "more" / "two.md").write_text("# Two\n\n[one](../one.md#two-words)\n")
    beside = SiteLinks("play/index.html", "lessons/index.html", docs)
    write_site(tmp_path / "site", [tanh], beside=beside)
    names = ("index.html", "one.html", "more-two.html")
    first, one, two = ((tmp_path / "site/docs" / f).read_text() for f in names)
    links = [e.get("href") for e in parsed(first).iter("a")]
    around = ["../index.html", "../lessons/index.html", "../docs/index.html", "../play/index.html"]
    assert links == ["#content", *around, "one.html#two-words", "more-two.html"]
    assert 'href="one.html#two-words"' in two
    assert Tags(first).found["script"] == 0 and "alert(1)" in first and "no" in first
    assert 'id="two-words"' in one and 'href="index.html"' in one and "<table>" in one


def test_links_between_our_own_pages_lead_somewhere():
    pages = handbook(ROOT / "docs", PageLinks())
    found = {name: {e.get("id") for e in parsed(text).iter()} for name, text in pages.items()}
    for name, text in pages.items():
        for link in (e.get("href") for e in parsed(text).iter("a")):
            file, _, place = link.partition("#")
            assert link.startswith("https:") or not place or place in found[file or name], link
            assert link.startswith("https:") or (file or name) in found, link


def test_titles_that_are_alike_have_each_an_address():
    assert keys_of(["A b", "A b", "`a` b", "?"]) == ["a-b", "a-b-1", "a-b-2", "section"]


def test_a_site_that_cannot_be_complete_is_not_begun(tmp_path):
    (tanh,) = (f for f in list_forwards() if f.__name__ == "Tanh")
    with pytest.raises(QuestionError, match="two pages"):
        write_site(tmp_path / "site", [tanh, tanh])
    assert not (tmp_path / "site").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(QuestionError, match="cannot be written"):
        write_site(tmp_path / "file", [tanh])
