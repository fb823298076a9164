"""Pages of prose, written in Markdown: the documentation as a part of a site.

In: the texts of a folder by their names. Out: pages by their names. A link from one to another
leads to its page, a picture is inside of the page, and a link to what is not on the site is its
text alone.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Mapping
from pathlib import Path
from posixpath import normpath

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from derive.show.html import PageLinks, file_of, keys_of

FIRST = "README.md"  # which is the index of its folder
OUTSIDE = re.compile(r"[a-z]+:|#")


def handbook(folder: Path, around: PageLinks) -> dict[str, str]:
    """A page for every ``.md`` file in or below ``folder``, by its name; README.md is the first."""
    files = sorted(folder.rglob("*.md"))
    texts = {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in files}
    return {page_of(name): _page(name, folder, texts, around) for name in texts}


def page_of(name: str) -> str:
    """The name of the page of a text; all pages lie in one folder."""
    return "index.html" if name == FIRST else f"{name.removesuffix('.md').replace('/', '-')}.html"


def _page(name: str, folder: Path, texts: Mapping[str, str], around: PageLinks) -> str:
    # What is HTML in a text is shown as it is written: no script comes in by that way.
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(texts[name])
    titles = [tokens[i + 1] for i, t in enumerate(tokens) if t.type == "heading_open"]
    heads = [t for t in tokens if t.type == "heading_open"]
    said = ["".join(c.content for c in title.children or []) for title in titles]
    for head, key in zip(heads, keys_of(said), strict=True):
        head.attrSet("id", key)
    for token in tokens:
        token.children = _linked(token.children or [], folder / name, folder, texts)
        if token.type == "th_open":
            token.attrSet("scope", "col")
    body = Markup(_reachable(markdown.renderer.render(tokens, markdown.options, {})))
    return file_of("handbook", title=said[0] if said else "", body=body, around=around)


def _reachable(html: str) -> str:
    """Let keys scroll blocks that are wider than the page."""
    html = html.replace("<pre>", '<pre tabindex="0">')
    html = html.replace("<table>", '<div class="wide" tabindex="0"><table>')
    return html.replace("</table>", "</table></div>")


def _linked(tokens: list[Token], file: Path, folder: Path, texts: Collection[str]) -> list[Token]:
    """The tokens of a line, with links to pages, and pictures inside."""
    kept, dropped = [], 0
    below = file.parent.relative_to(folder).as_posix()
    for token in tokens:
        if token.type == "link_open":
            address = _address(str(token.attrGet("href")), below, texts)
            dropped += address is None
            if address is None:
                continue
            token.attrSet("href", address)
        elif token.type == "link_close" and dropped:
            dropped -= 1
            continue
        elif token.type == "image":
            picture = file.parent / str(token.attrGet("src"))
            if picture.suffix == ".png" and picture.is_file():
                inside = b64encode(picture.read_bytes()).decode()
                token.attrSet("src", f"data:image/png;base64,{inside}")
        kept.append(token)
    return kept


def _address(link: str, below: str, texts: Collection[str]) -> str | None:
    """The target on the site of a link in the subfolder ``below``; None if that is no page."""
    if OUTSIDE.match(link):
        return link
    name, mark, place = link.partition("#")
    name = normpath(f"{below}/{name}")
    return f"{page_of(name)}{mark}{place}" if name in texts else None
