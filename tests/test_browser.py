"""The pages in a real browser."""

import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from chromium import AXE, BROWSER, WIDTHS, Tab, started

from derive.commands.site import pages_of
from derive.language.errors import MATH
from derive.show.handbook import handbook
from derive.show.html import PageLinks, fragment

DOCS = Path(__file__).resolve().parents[1] / "docs"
FORWARDS = ("batch_norm", "softmax_nll", "mlp", "tanh", "Attention", "ClampedNLL", "LayerNorm")

pytestmark = BROWSER


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory, shown, lessons):
    """The addresses of the pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    documents = {f"{name}.html": shown(name) for name in FORWARDS}
    about = "A page for every forward."
    texts = pages_of({"All": documents}, "Gradients", about, playground="play/index.html")
    texts |= {f"docs/{file}": text for file, text in handbook(DOCS, PageLinks()).items()}
    (folder / "docs").mkdir()
    written = lessons.as_pages(folder / "lessons")
    texts |= {f"lessons/{path.name}": text for path, text in written.items()}
    texts["notebook.html"] = AROUND.format(fragment(shown("batch_norm")))
    (folder / "lessons").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name.removesuffix(".html"): (folder / name).as_uri() for name in texts}


# A page of somebody else's, with a summary and a formula of its own.
AROUND = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><link rel="icon" href="data:,"/></head>
<body style="margin: 8px; overflow-wrap: anywhere"><h1 id="own">Mine</h1>
<details id="mine"><summary>Mine</summary><p>Mine</p></details>{}</body></html>"""
LESSONS = ("lessons/index", "lessons/softmax_twice")
NAMES = (
    *FORWARDS,
    "index",
    "notebook",
    "docs/index",
    "docs/notation",
    "docs/showing",
    *(
        f"lessons/{name}"
        for name in ("index", "clamped_loss", "saturated_tanh", "row_maximum", "softmax_twice")
    ),
)
TEACHING_WIDTHS = (1280, 500)
OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
FLAT_FORMULAS = """
    [...document.querySelectorAll('math')]
        .filter(m => { const r = m.getBoundingClientRect(); return !(r.width && r.height); }).length
"""
OUTSIDE = """
    [...document.querySelectorAll('body *')].filter(e => {
        for (let p = e.parentElement; p; p = p.parentElement)
            if (getComputedStyle(p).overflowX !== 'visible') return false;
        return e.getBoundingClientRect().right > innerWidth + 0.5;
    }).map(e => e.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_alone_and_fits(browser, pages, name, width):
    tab = Tab(browser, pages[name], width)
    tab.value(OPEN_ALL)
    assert tab.complaints() == []
    assert [url for url in tab.requests() if not url.startswith("data:")] == [pages[name]]
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value(OUTSIDE) == []


@pytest.mark.parametrize("name", [n for n in NAMES if "index" not in n and "docs" not in n])
def test_every_formula_has_a_size(browser, pages, name):
    tab = Tab(browser, pages[name], 1400)
    tab.value(OPEN_ALL)
    assert tab.value("document.querySelectorAll('math').length") > 5
    assert tab.value(FLAT_FORMULAS) == 0


CUT = """
    [...document.querySelectorAll('.right, .left, summary')]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))
"""
LINES = "[...document.querySelectorAll('math.wraps')].map(m => m.getClientRects().length)"


@pytest.mark.parametrize("width", TEACHING_WIDTHS)
def test_a_long_formula_wraps(browser, pages, width):
    tab = Tab(browser, pages["Attention"], width)
    tab.value(OPEN_ALL)
    assert tab.value(CUT) == []
    assert max(tab.value(LINES), default=1) > 1 or width > 500


CHAIN = "document.querySelector('#the-chain .steps')"
LEFT = f"[...{CHAIN}.querySelectorAll('.line .left')].filter(l => l.offsetParent).length"
NEXT = f"{CHAIN}.nextElementSibling"
FITS = "document.documentElement.scrollWidth <= innerWidth"


def pressed(tab: Tab, key: str) -> None:
    code, text = {"Tab": (9, {}), "Enter": (13, {"text": "\r"})}[key]
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)


@pytest.mark.parametrize("width", TEACHING_WIDTHS)
def test_steps_are_shown_one_at_a_time(browser, pages, width):
    """By keys alone; on paper all of them are there."""
    tab = Tab(browser, pages["batch_norm"], width)
    whole = tab.value(LEFT)
    assert whole > 5 and not tab.value(f"{NEXT}.offsetParent")
    tab.value("document.querySelector('[data-mode=step]').focus()")
    pressed(tab, "Enter")
    assert tab.value(LEFT) == 0 and tab.value(FITS)
    tab.value(f"{NEXT}.querySelector('button').focus()")
    for count in (1, 2):
        pressed(tab, "Enter")
        assert tab.value(LEFT) == count
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value(LEFT) == whole and not tab.value(f"{NEXT}.offsetParent")
    tab.call("Emulation.setEmulatedMedia", media="screen")
    tab.value(f"{NEXT}.querySelector('button').focus()")
    for _ in range(whole - 2):
        pressed(tab, "Enter")
    assert tab.value(LEFT) == whole and not tab.value(f"{NEXT}.offsetParent")
    assert tab.value("document.activeElement.className") == "right"
    assert tab.complaints() == []


def test_without_a_script_everything_is_visible(browser, pages, tmp_path):
    file = tmp_path / "page.html"
    text = Path(unquote(urlsplit(pages["batch_norm"]).path)).read_text(encoding="utf-8")
    file.write_text(text.replace("<script>", "<script type='text/plain'>"), encoding="utf-8")
    tab = Tab(browser, file.as_uri(), 500)
    assert tab.value(LEFT) == tab.value(f"{CHAIN}.querySelectorAll('.line').length")
    assert not tab.value("document.querySelector('.teach').offsetParent")


ASKED = "document.querySelector('#the-chain .asked')"
# Of the link, which follows what is typed.
STATE = """
    async () => {
        for (let state, round = 0; ; round++) {
            const [, packed] = document.querySelector('#the-chain .own a').href.split('#');
            const letters = atob((packed ?? '').replaceAll('-', '+').replaceAll('_', '/'));
            const bytes = Uint8Array.from(letters, l => l.charCodeAt(0));
            const inflate = new DecompressionStream('deflate-raw');
            const stream = new Blob([bytes]).stream().pipeThrough(inflate);
            if (packed) state = JSON.parse(await new Response(stream).text());
            if (state?.backward.endsWith('"') || round > 100) return state;
            await new Promise(done => setTimeout(done, 20));
        }
    }
"""


@pytest.mark.parametrize("width", TEACHING_WIDTHS)
def test_the_next_line_is_asked_for(browser, pages, width):
    """The right side is hidden; the command that judges the reader's own line stands there, and
    the playground is opened with the forward and that line.
    """
    tab = Tab(browser, pages["batch_norm"], width)
    tab.click("[data-mode=ask]")
    assert (
        tab.value(f"{ASKED}.querySelector('.left').textContent")
        == "dx\N{COMBINING CIRCUMFLEX ACCENT}"
    )
    assert not tab.value(f"{ASKED}.querySelector('.right math').getClientRects().length")
    tab.value("document.querySelector('#the-chain .own input').focus()")
    tab.call("Input.insertText", text='gain*dy + "$x"')
    command = tab.value("document.querySelector('#the-chain .command').textContent")
    in_shell = command.replace("gradform", "printf '%s;'", 1)
    words = subprocess.run(["sh", "-c", in_shell], capture_output=True, text=True, check=True)
    assert words.stdout == 'check;batch_norm;gain*dy + "$x";--of;xhat;'
    asked = tab.call(
        "Runtime.evaluate", expression=f"({STATE})()", awaitPromise=True, returnByValue=True
    )
    state = asked["result"]["value"]
    assert (state["tab"], state["name"], state["backward"]) == (
        "check",
        "BatchNorm",
        'dxhat = gain*dy + "$x"',
    )
    assert state["text"] == (MATH / "batch_norm.py").read_text("utf-8")
    assert tab.value(FITS)
    tab.click("#the-chain .next > button")
    assert tab.value(f"{ASKED}.querySelector('.left').textContent") == "dinv_std"
    assert tab.value(LEFT) == 2
    assert tab.complaints() == []


INVENTED = """
    document.querySelectorAll('.line[data-of=xhat]').forEach(line => line.dataset.of = 'made_up');
"""


def test_a_name_that_the_derivation_made_up_is_shown_and_not_asked_for(browser, pages):
    tab = Tab(browser, pages["batch_norm"], 1280)
    tab.value(INVENTED)
    tab.click("[data-mode=ask]")
    assert tab.value(f"{ASKED}.querySelector('.left').textContent") == "dinv_std"
    assert tab.value(LEFT) == 2
    tab.click("[data-mode=step]")
    assert tab.value(LEFT) == 0


@pytest.mark.parametrize("width", TEACHING_WIDTHS)
def test_a_box_of_the_graph_shows_its_numbers(browser, pages, width):
    tab = Tab(browser, pages["batch_norm"], width)
    shown = "[...document.querySelectorAll('.readout mtd')].map(e => e.textContent)"
    assert tab.value(shown) == []
    nodes = "[...document.querySelectorAll('.node')]"
    tab.value(f"{nodes}.find(n => n.textContent.includes('mean')).focus()")
    numbers = tab.value(shown)
    assert len(numbers) == 4  # of mean (1, C) and of its gradient
    tab.click(".node.input rect")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", **middle_of(tab, ".node.input rect"))
    assert len(tab.value(shown)) == 12  # of x (N, C)
    tab.click("details.numbers summary")
    assert tab.value("document.querySelector('details.numbers').open")
    assert tab.value("document.querySelectorAll('.numbers .number').length") == tab.value(
        f"{nodes}.length"
    )
    assert tab.value(FITS) and tab.value(OUTSIDE) == []


def middle_of(tab: Tab, selector: str) -> dict[str, float]:
    box = tab.value(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
    return {"x": box["left"] + box["width"] / 2, "y": box["top"] + box["height"] / 2}


LOADED = "[...document.fonts].filter(f => f.status == 'loaded').map(f => f.family).sort()"
# The bracket around a fraction, and one around a letter; a sign of a sum above and below the line.
BRACKETS = """
    [...document.querySelectorAll('math mrow')]
        .filter(row => row.firstElementChild?.textContent == '(')
        .filter(row => !row.firstElementChild.hasAttribute('minsize'))
        .map(row => [row.firstElementChild.getBoundingClientRect().height,
            parseFloat(getComputedStyle(row).fontSize),
            row.querySelector('mfrac') ? 'fraction' : row.querySelectorAll('mi').length == 1
                && !row.querySelector('munder, mtable, msqrt, mroot') ? 'letter' : 'other'])
"""


@pytest.mark.parametrize("name", ["LayerNorm", "index", "notebook", "lessons/softmax_twice"])
def test_the_fonts_of_formulas_are_loaded(browser, pages, name):
    tab = Tab(browser, pages[name], 1400)
    tab.call("Runtime.evaluate", expression="document.fonts.ready", awaitPromise=True)
    assert tab.value(LOADED) == ["Gradform Math", "Gradform Names"]


def test_brackets_grow_with_what_is_in_them(browser, pages):
    tab = Tab(browser, pages["batch_norm"], 1400)
    tab.value(OPEN_ALL)
    tab.call("Runtime.evaluate", expression="document.fonts.ready", awaitPromise=True)
    found = tab.value(BRACKETS)
    tall, flat = (
        [height / size for height, size, what in found if what == wanted]
        for wanted in ("fraction", "letter")
    )
    assert tall and flat and min(tall) > 1.3 * max(flat)


def test_a_search_filters_as_one_types(browser, pages):
    """From a file, by keys alone; words of several forwards, and none."""
    tab = Tab(browser, pages["index"], 400)
    left = "[...document.querySelectorAll('.forwards li:not([hidden]) a')].map(a => a.textContent)"
    assert len(tab.value(left)) == len(FORWARDS)
    tab.value("document.getElementById('find').focus()")
    tab.call("Input.insertText", text="batch norm")
    assert tab.value(left) == ["BatchNorm"]
    assert tab.value("document.getElementById('found').textContent") == f"1 of {len(FORWARDS)}"
    tab.call("Input.insertText", text=" zebra")
    assert tab.value(left) == []
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key="Escape")
    assert len(tab.value(left)) == len(FORWARDS)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_step_opens_on_a_click(browser, pages, width):
    tab = Tab(browser, pages["batch_norm"], width)
    seen = "document.querySelector('details .line .right').getBoundingClientRect().height > 0"
    assert not tab.value("document.querySelector('details').open")
    tab.click("details summary")
    assert tab.value("document.querySelector('details').open")
    assert tab.value(seen)


def test_a_group_opens_on_a_click(browser, pages):
    tab = Tab(browser, pages["mlp"], 400)
    assert not tab.value("document.querySelector('details.group').open")
    tab.click("details.group summary")
    assert tab.value("document.querySelector('details.group').open")
    inside = "document.querySelector('details.group .right').getBoundingClientRect().height > 0"
    assert tab.value(inside)


STYLE_OF = """
    ['#own', '#mine', '#mine summary', '#mine p', 'body'].map(s => {
        const c = getComputedStyle(document.querySelector(s));
        return [c.color, c.font, c.margin, c.padding, c.border, c.display, c.listStyle].join();
    }).join('; ')
"""


def test_the_styles_of_a_notebook_reach_no_further_than_the_derivation(browser, pages):
    tab = Tab(browser, pages["notebook"], 1400)
    inside = "getComputedStyle(document.querySelector('.gradform .equations')).display"
    assert tab.value(inside) == "grid"
    with_it = tab.value(STYLE_OF)
    tab.value("document.querySelector('.gradform').remove()")
    assert tab.value(STYLE_OF) == with_it


def test_dark_is_dark(browser, pages):
    ink = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    assert Tab(browser, pages["tanh"], 400).value(ink) > 200
    assert Tab(browser, pages["tanh"], 400, dark=True).value(ink) < 60


@pytest.mark.skipif(not AXE.exists(), reason="no axe-core: make playground installs it")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index", "LayerNorm", "ClampedNLL", "docs/notation", *LESSONS])
def test_an_accessibility_checker_finds_no_fault(browser, pages, name, width, dark):
    tab = Tab(browser, pages[name], width, dark)
    tab.value(OPEN_ALL)
    tab.value(AXE.read_text() + ";0")
    ended = "axe.run().then(r => window.faults = r.violations)"
    tab.call("Runtime.evaluate", expression=ended, awaitPromise=True)
    assert tab.value("window.faults.map(f => [f.id, f.nodes.map(n => n.html.slice(0, 120))])") == []


def test_the_first_key_skips_to_the_content(browser, pages):
    tab = Tab(browser, pages["tanh"], 400)
    for key in ("Tab", "Enter"):
        pressed(tab, key)
    assert tab.value("document.activeElement.id") == "content"
