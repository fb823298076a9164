"""The playground in a real browser: built as `make playground` builds it, from a plain server."""

import functools
import json
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import AXE, BROWSER, WIDTHS, Tab, started

ROOT = Path(__file__).resolve().parents[1]
LONG = 60  # seconds, for an answer on a machine that does other things too
pytestmark = BROWSER

FORWARD = """from sympy import exp
from gradform import Axis, Forward, Input, Sum

N = Axis("N")


class Own(Forward):
    x = Input(N)
    y = x**2
"""
ENDLESS = FORWARD.replace("    y = x**2\n", "    while True:\n        pass\n    y = x**2\n")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Served:
    """A folder behind a server that knows nothing of what it serves, and can be ended."""

    def __init__(self, folder: Path, port: int = 0):
        handler = functools.partial(Quiet, directory=folder)
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.port = self.server.server_port
        self.page = f"http://127.0.0.1:{self.port}/play/index.html"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the playground in it."""
    built = ROOT / "site" / "play"
    subprocess.run([sys.executable, ROOT / "playground" / "build.py"], check=True)
    folder = tmp_path_factory.mktemp("site")
    (folder / "play").symlink_to(built)
    return folder


@pytest.fixture(scope="module")
def served(site):
    server = Served(site)
    yield server
    server.end()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with started(tmp_path_factory.mktemp("profile")) as running:
        yield running


class Play:
    """The page, and what a person does with it."""

    def __init__(self, browser, address, width=1400, dark=False):
        self.tab = Tab(browser, address, width, dark)

    def until(self, expression: str, patience: float = LONG):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if value := self.tab.value(expression):
                return value
            time.sleep(0.05)
        raise AssertionError(f"it never was: {expression}; {self.status}")

    @property
    def status(self) -> str:
        return self.text("#status")

    @property
    def answers(self) -> int:
        return int(self.tab.value("document.documentElement.dataset.answered") or 0)

    def text(self, selector: str) -> str:
        return self.tab.value(f"document.querySelector({selector!r}).innerText")

    def answered(self, more_than: int = 0) -> "Play":
        self.until(f"Number(document.documentElement.dataset.answered) > {more_than}")
        return self

    def press(self, key: str, modifiers: int = 0, **more) -> None:
        for kind in ("keyDown", "keyUp"):
            self.tab.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers, **more)
            more.pop("commands", None)

    def write(self, text: str, editor: str = "forward") -> None:
        """Type over all that stands in an editor."""
        self.tab.value(f"document.querySelector('#{editor} .cm-content').focus()")
        self.press("a", modifiers=2, commands=["selectAll"])
        self.tab.call("Input.insertText", text=text)

    def answer_to(self, text: str, editor: str = "forward") -> None:
        before = self.answers
        self.write(text, editor)
        self.answered(before)

    def click(self, selector: str) -> None:
        self.tab.value(f"document.querySelector({selector!r}).click()")

    @property
    def closed(self) -> str:
        """The lines of the closed form, without spaces and what is invisible."""
        lines = "[...document.querySelectorAll('#closed .line')].map(l => l.textContent)"
        return self.tab.value(f"{lines}.map(t => t.replace(/[\\s\\u2061\\u2062]/g, '')).join(' ')")

    def sound(self, width: int) -> None:
        """Nothing is on the console, nothing stands out, nothing was asked of another host."""
        assert self.tab.complaints() == []
        assert self.tab.value("document.documentElement.scrollWidth") <= width
        hosts = {urlsplit(a).hostname for a in self.tab.requests() if a.startswith("http")}
        assert hosts == {"127.0.0.1"}


@pytest.fixture(scope="module")
def plays(browser, served):
    """One page that several tests write in."""
    return Play(browser, served.page).answered()


@pytest.mark.parametrize("width", WIDTHS)
def test_it_derives_alone_and_fits(browser, served, width):
    play = Play(browser, served.page, width).answered()
    assert play.status.startswith("Derived and proved")
    assert "dx=" in play.closed and "N\N{MINUS SIGN}1" in play.closed
    assert "proved for every size" in play.text("#proof")
    assert "not run beside autograd" in play.text("#not-run")
    play.tab.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert "torch.addcmul" in play.text("#backward-lines")
    assert "inv_std (1, C)" in play.text("#costs")
    assert play.tab.value(
        "document.querySelector('#picture svg').getBoundingClientRect().width > 50"
    )
    assert "def batch_norm_backward" in play.text("#module")
    assert "The chain" in play.text("#sections")
    play.sound(width)


def test_the_formula_follows_an_edit(plays):
    text = SHELF["batch_norm"].replace("/ (N - 1)", "/ N")
    plays.answer_to(text)
    assert "dx=" in plays.closed and "N\N{MINUS SIGN}1" not in plays.closed
    plays.answer_to(SHELF["batch_norm"])
    assert "N\N{MINUS SIGN}1" in plays.closed


def test_a_mistake_is_shown_at_its_line(plays):
    plays.answer_to(FORWARD.replace("x**2", "x**2 + nosuch"))
    assert plays.status == "Not understood: see the marked line"
    told = plays.text("#forward-troubles")
    assert "line 9" in told and "nosuch" in told
    assert plays.text(".cm-line:has(.cm-lintRange-error)").strip() == "y = x**2 + nosuch"
    assert plays.tab.value("document.querySelector('#derived-body').hidden")
    plays.answer_to(FORWARD)
    assert plays.tab.value("document.querySelector('.cm-lintRange-error') === null")
    assert "dx=" in plays.closed


def test_what_is_shown_is_stale_from_the_first_key(plays):
    plays.answer_to(FORWARD.replace("x**2", "exp(x)"))
    before, formula = plays.answers, "getComputedStyle(document.querySelector('#closed mi')).color"
    muted = "getComputedStyle(document.querySelector('.lede')).color"
    assert plays.tab.value(formula) != plays.tab.value(muted)
    plays.write(FORWARD)
    assert plays.tab.value(formula) == plays.tab.value(muted)
    assert "text before" in plays.status or plays.answers > before
    plays.answered(before)
    assert plays.tab.value(formula) != plays.tab.value(muted)


def test_a_mistake_is_in_view_with_what_to_write(browser, served):
    play = Play(browser, served.page, 400).answered()
    lines = "".join(f"    # a line of words {n}\n" for n in range(60))
    play.answer_to(FORWARD.replace("    y = x**2", f"{lines}    y = torch.exp(x)"))
    assert "write exp(x)" in play.text("#forward-troubles")
    box = play.tab.value(
        "document.querySelector('.troubles .error').getBoundingClientRect().toJSON()"
    )
    assert box["top"] >= 0 and box["bottom"] < play.tab.value("innerHeight") + 1
    before = play.answers
    play.click("[data-open=softmax]")
    assert "class Softmax" in play.answered(before).text("#forward .cm-content")
    assert "dx=" in play.closed


def test_a_mistake_without_a_line_points_at_none(plays):
    plays.answer_to("  ")
    assert plays.status == "Not understood" and "holds no forward" in plays.text(
        "#forward-troubles"
    )


def test_of_two_forwards_one_is_chosen(plays):
    """The one that was shown stays; the last one of a text that is opened."""
    plays.answer_to(FORWARD)
    plays.answer_to(FORWARD + FORWARD[FORWARD.index("class") :].replace("Own", "Other"))
    assert plays.tab.value("document.querySelector('#forwards').value") == "Own"
    before = plays.answers
    plays.tab.value(
        "(f => { f.value = 'Other'; f.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#forwards'))"
    )
    plays.answered(before)
    plays.tab.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert "def other_backward" in plays.text("#module")
    plays.answer_to(FORWARD)
    assert plays.tab.value("document.querySelector('#forwards-label').hidden")


def test_the_editor_can_be_written_in_while_a_derivation_runs(plays):
    """And what was being derived is left for what is written now."""
    plays.write(ENDLESS)
    plays.until("document.querySelector('#status').dataset.kind === 'busy'")
    time.sleep(1)
    plays.answer_to(FORWARD)
    assert plays.status.startswith("Derived") and "dx=" in plays.closed


def test_it_is_loaded_again_in_the_middle(browser, served):
    play = Play(browser, served.page).answered()
    play.write(ENDLESS)
    play.until("document.querySelector('#status').dataset.kind === 'busy'")
    play.until("location.hash.length > 1")
    play.tab.call("Page.reload")
    play.until("document.querySelector('#stop') && !document.querySelector('#stop').hidden")
    assert "while True" in play.text("#forward .cm-content")
    play.answer_to(FORWARD)
    assert play.status.startswith("Derived")


def test_the_policy_lets_nothing_in_or_out(browser, served):
    play = Play(browser, served.page).answered()
    play.tab.value(TRIED)
    refused = {"script-src-elem", "img-src", "connect-src", "style-src-elem", "form-action"}
    refused |= {"frame-src", "object-src", "base-uri", "font-src"}
    play.until("window.refused.length >= 9")
    assert {*play.tab.value("window.refused")} == refused
    assert play.tab.value("document.title") != "in"


# One thing of each kind, to another host or in the page itself.
TRIED = """
window.refused = [];
document.addEventListener('securitypolicyviolation', e => refused.push(e.effectiveDirective));
(() => {
  const away = 'http://127.0.0.1:1/';
  const add = (name, values) =>
    document.body.append(Object.assign(document.createElement(name), values));
  add('script', { textContent: "document.title = 'in'" });
  add('img', { src: away });
  fetch(away).catch(() => {});
  add('style', { textContent: 'body { color: red }' });
  add('iframe', { src: away });
  add('object', { data: away });
  document.head.append(Object.assign(document.createElement('base'), { href: away }));
  new FontFace('f', `url(${away})`).load().catch(() => {});
  const form = Object.assign(document.createElement('form'), { action: away });
  document.body.append(form);
  form.submit();
})()
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wrong_formula_is_refuted(browser, served, width):
    play = Play(browser, served.page, width).answered()
    before = play.answers
    play.click("#tab-check")
    play.answered(before)
    assert play.text("#outcome") == "Wrong"
    assert "it must be -1/(N - 1)" in play.text("#report")
    assert "the smallest counterexample" in play.text("#report")
    right = "dx = gain*inv_std/n * (n*dy - dy.sum(0) - n/(n-1)*xhat*(dy*xhat).sum(0))"
    play.answer_to(right, "backward")
    assert play.text("#outcome") == "Right"
    play.answer_to("dx = (dy", "backward")
    assert "line 1" in play.text("#backward-troubles")
    play.sound(width)


def test_a_long_one_is_stopped(plays):
    plays.write(ENDLESS)
    plays.until("!document.querySelector('#stop').hidden")
    time.sleep(1)
    before = plays.answers
    plays.click("#stop")
    plays.answered(before)
    assert plays.status == "Stopped"
    plays.answer_to(FORWARD)
    assert plays.status.startswith("Derived")


def test_a_link_holds_the_state(browser, plays, served):
    plays.answer_to(FORWARD.replace("x**2", "x*exp(x)"))
    link = plays.tab.value("location.href")
    other = Play(browser, link, 400).answered()
    assert other.closed == plays.closed and "exp(x)" in other.closed
    assert Play(browser, f"{served.page}#nonsense").answered().status.startswith("Derived")


def test_every_forward_of_the_gallery_opens_in_the_editor(browser, served):
    play = Play(browser, served.page).answered()
    play.click("#tab-gallery")
    assert play.tab.value("document.querySelectorAll('#shelf li').length") == len(SHELF)
    play.tab.value(FIND.format("softplus"))
    assert play.text("#found") != f"{len(SHELF)} of {len(SHELF)}"
    assert play.text("#shelf button") == "softplus"
    before = play.answers
    play.click("#shelf button")
    play.answered(before)
    assert "class Softplus(Forward)" in play.text("#forward .cm-content")
    assert play.tab.value("document.querySelector('#tab-derive').ariaSelected") == "true"


FIND = """(() => {{ const f = document.querySelector('#find'); f.value = '{}';
    f.dispatchEvent(new Event('input')); }})()"""


def test_second_derivatives_are_shown_where_they_are_asked_for(plays):
    plays.answer_to(FORWARD)
    before = plays.answers
    plays.click("#second")
    plays.answered(before)
    assert plays.text("#second-proof").startswith("Second derivatives: exactly zero")
    assert "Second order" in plays.text("#sections")
    plays.click("#second")
    plays.answered(before + 1)


def test_what_is_copied_and_downloaded(browser, plays, tmp_path):
    plays.answer_to(FORWARD)
    taken = "navigator.clipboard.writeText = async (text) => { window.taken = text; }"
    plays.tab.value(taken)
    for button, part in {
        "latex": "\\begin{aligned}",
        "torch": "def own_backward(",
        "markdown": "## The chain",
    }.items():
        plays.click(f"#copy-{button}")
        assert part in plays.until("window.taken")
    plays.click("#copy-link")
    link = plays.until("window.taken.startsWith('http') && window.taken")
    assert link == plays.tab.value("location.href")
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    plays.click("#download")
    end = time.monotonic() + LONG
    while not (tmp_path / "own.py").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert "def own_backward(" in (tmp_path / "own.py").read_text()


# Texts that mean harm, each with what is said of it in the end.
REFUSED = "Not understood|went wrong"
HOSTILE = {
    "endless": (ENDLESS, "Stopped"),
    "brackets": (FORWARD.replace("x**2", "(" * 100_000 + "x" + ")" * 100_000), REFUSED),
    "many brackets": (FORWARD.replace("x**2", "(" * 30_000 + "x" + ")" * 30_000), REFUSED),
    "deep": (FORWARD.replace("x**2", "x" + "+(x" * 9_000 + ")" * 9_000), REFUSED),
    "powers": (FORWARD.replace("x**2", "x**(10**(10**10))"), f"Stopped|{REFUSED}"),
    "memory": (FORWARD.replace("N = Ax", "z = 'z' * 10**12\nN = Ax"), REFUSED),
    "nested lists": (
        FORWARD.replace("N = Ax", "z = []\nwhile True: z = [z] * 10**6\nN = Ax"),
        f"Stopped|{REFUSED}",
    ),
    "interrupt": (FORWARD.replace("N = Ax", "raise KeyboardInterrupt\nN = Ax"), REFUSED),
    "a file": (FORWARD.replace("N = Ax", "open('/etc/passwd').read()\nN = Ax"), REFUSED),
    "asks outside": (
        FORWARD.replace("N = Ax", "import js\njs.fetch('http://127.0.0.1:1/leak')\nN = Ax"),
        REFUSED,
    ),
    "asks Pyodide": (
        FORWARD.replace(
            "N = Ax", "__import__('pyodide.http').http.open_url('http://127.0.0.1:1/leak')\nN = Ax"
        ),
        REFUSED,
    ),
    "recursion": (FORWARD.replace("N = Ax", "def f(): return f()\nf()\nN = Ax"), REFUSED),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_harms_its_own_worker_alone(plays, name):
    text, said = HOSTILE[name]
    plays.tab.value("document.querySelector('#limit').value = 2")
    plays.answer_to(text)
    assert any(words in plays.status for words in said.split("|")), plays.status
    plays.tab.value("document.querySelector('#limit').value = 60")
    plays.answer_to(FORWARD)
    assert plays.status.startswith("Derived") and "dx=" in plays.closed
    assert not [address for address in plays.tab.requests() if "leak" in address]


def test_a_hostile_text_reaches_neither_the_page_nor_the_network(plays, browser):
    """By what Pyodide gives a program of the browser's."""
    page = "<img src='/leak' onerror='document.title=1'><b id='status'>b</b><p>kept</p>"
    told = {"kind": "parts", "parts": {"closed": page}}
    code = f"""
import js, json
REACHED = [name for name in ("fetch", "caches", "indexedDB", "XMLHttpRequest", "WebSocket",
           "Worker", "importScripts", "navigator") if hasattr(js, name)]
try:
    js.eval("1")
    REACHED.append("eval")
except Exception:
    pass
js.postMessage({json.dumps(json.dumps(told))})
if REACHED:
    raise ValueError(" ".join(REACHED))
"""
    browser.events.clear()
    before = plays.answers
    plays.write(code + ENDLESS)
    plays.until("document.querySelector('#closed').textContent.includes('kept')")
    assert plays.tab.value("document.querySelectorAll('#closed img, #closed b').length") == 0
    assert plays.tab.value("document.title") != "1"
    plays.click("#stop")
    plays.answered(before)
    plays.answer_to(code + FORWARD.replace("y = x**2", "y = x**3"))
    assert plays.status.startswith("Derived"), plays.text("#forward-troubles")
    assert not [a for a in plays.tab.requests() if "leak" in a]


def test_nothing_of_one_text_reaches_the_next_that_is_opened(browser, served):
    """What a text breaks in its Python is gone with its worker."""
    play = Play(browser, served.page).answered()
    spoiled = "from gradform.codegen.playground import derived as d\nd.NOT_RUN = 'spoiled'\n"
    play.answer_to(spoiled + FORWARD)
    assert play.text("#not-run") == "spoiled"
    before = play.answers
    play.click("#tab-gallery")
    play.click("#shelf button")
    play.answered(before)
    assert "not run beside autograd" in play.text("#not-run")


def test_the_keyboard_alone_is_enough(browser, served):
    play = Play(browser, served.page).answered()
    focused = "document.activeElement.id || document.activeElement.getAttribute('aria-label')"
    tabbed = {"windowsVirtualKeyCode": 9, "code": "Tab"}
    seen = []
    for _ in range(12):
        play.press("Tab", **tabbed)
        seen.append(play.tab.value(focused))
    reached = [name for name in seen if name]
    assert reached.index("tab-derive") < reached.index("copy-link")
    assert reached.index("copy-link") < reached.index("The forward, in Python")
    assert seen[-1] != "The forward, in Python"  # Tab leaves the editor
    play.tab.value("document.querySelector('#tab-derive').focus()")
    before = play.answers
    play.press("ArrowRight", windowsVirtualKeyCode=39, code="ArrowRight")
    play.answered(before)
    assert play.tab.value(focused) == "tab-check" and play.text("#outcome") == "Wrong"
    play.press("End", windowsVirtualKeyCode=35, code="End")
    assert play.tab.value(focused) == "tab-gallery"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_an_accessibility_checker_finds_no_fault(browser, served, width, dark):
    play = Play(browser, served.page, width, dark).answered()
    play.tab.value(AXE.read_text() + ";0")
    play.tab.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    faults = _faults(play)
    before = play.answers
    play.click("#tab-check")
    play.answered(before)
    faults += _faults(play)
    play.answer_to(FORWARD.replace("x**2", "nosuch"))
    faults += _faults(play)
    play.click("#tab-gallery")
    faults += _faults(play)
    assert faults == []


def _faults(play) -> list:
    play.tab.value("delete window.faults; axe.run().then(r => window.faults = r.violations); 0")
    found = json.loads(play.until("window.faults && JSON.stringify(window.faults)"))
    return [(f["id"], [node["html"][:120] for node in f["nodes"]][:4]) for f in found]


def test_it_works_without_a_network_after_the_first_visit(tmp_path, site):
    server = Served(site)
    with started(tmp_path / "profile") as browser:
        play = Play(browser, server.page).answered()
        play.until("document.documentElement.dataset.offline")
        server.end()
        again = Play(browser, server.page).answered()
        assert again.status.startswith("Derived and proved")
        again.answer_to(FORWARD)
        assert "dx=" in again.closed and again.tab.complaints() == []


# Seconds: what is promised with the machine to itself. Tests have the clock of a busy one.
FIRST_PAINT, READY, READY_AGAIN, DERIVED = 1, 8, 3, 2
BUSY, TRIES = 2, 3  # times as long at most, in the best of so many tries


def test_it_is_quick(tmp_path, served):
    best = {}
    for n in range(TRIES):
        with started(tmp_path / f"profile{n}") as browser:
            times = _times(Play(browser, served.page))
            times |= {"again": _times(Play(browser, served.page))["ready"]}
        best = {name: min(t, best.get(name, t)) for name, t in times.items()}
    print(best)
    wanted = {"paint": FIRST_PAINT, "ready": READY, "again": READY_AGAIN, "derived": DERIVED}
    assert {name: t for name, t in best.items() if t > BUSY * wanted[name]} == {}


def _times(play) -> dict[str, float]:
    play.answered()
    play.until("document.documentElement.dataset.offline")
    found = play.tab.value(
        """JSON.stringify([...performance.getEntriesByType('paint'),
        ...performance.getEntriesByType('mark')].map(e => [e.name, e.startTime, e.detail]))"""
    )
    entries = json.loads(found)
    start = next(t for name, t, _ in entries if name == "answer-started")
    closed = next(t for name, t, d in entries if name == "answer-parts" and "closed" in d)
    return {
        "paint": entries[0][1] / 1000,
        "ready": float(play.tab.value("document.documentElement.dataset.ready")) / 1000,
        "derived": (closed - start) / 1000,
    }


SHELF = {}


@pytest.fixture(scope="module", autouse=True)
def _shelf():
    built = json.loads((ROOT / "site" / "play" / "gallery.json").read_text())
    SHELF.update({forward["called"]: forward["text"] for forward in built})
