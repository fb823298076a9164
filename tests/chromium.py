"""A headless Chromium, driven through its own debugging pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = (400, 1400)
PATIENCE = 60  # seconds for one answer: two cores are shared with the other tests

# Of the packages of the playground, which `make playground` installs.
AXE = Path(__file__).parents[1] / "playground" / "node_modules" / "axe-core" / "axe.min.js"

BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium"),
]


class Browser:
    """Commands and events of the DevTools protocol: JSON between zero bytes, on two pipes."""

    def __init__(self, commands: int, answers: int):
        self.commands, self.answers = commands, answers
        self.received, self.count, self.events = b"", 0, []

    def call(self, method: str, session: str | None = None, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event: str) -> None:
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self._next())

    def _next(self) -> dict:
        until = monotonic() + PATIENCE
        while b"\0" not in self.received:
            if not select.select([self.answers], [], [], max(0, until - monotonic()))[0]:
                raise TimeoutError("chromium does not answer")
            part = os.read(self.answers, 1 << 16)
            if not part:
                raise EOFError("chromium has ended")
            self.received += part
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)


class Tab:
    """One page, opened at a width."""

    def __init__(self, browser: Browser, address: str, width: int, dark: bool = False):
        self.browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=address)
        browser.wait_for("Page.loadEventFired")

    def call(self, method: str, **params):
        return self.browser.call(method, self.session, **params)

    def value(self, expression: str):
        """What an expression is in the page, from outside of it: the page has no script."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        self.value(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        box = self.value(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
        place = {"x": box["left"] + 12, "y": box["top"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def complaints(self) -> list:
        """Errors and warnings on the console."""
        methods = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [e for e in self.browser.events if e.get("method") in methods]

    def requests(self) -> list[str]:
        sent = [e for e in self.browser.events if e.get("method") == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def screenshot(self) -> bytes:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are out of the way of 3 and 4, which Chromium reads and writes."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return high


@contextmanager
def started(profile):
    """A running Chromium, with a profile of its own; ended by closing it."""
    (reads, commands), (answers, writes) = _pipe(), _pipe()

    def connect():
        os.dup2(reads, 3)
        os.dup2(writes, 4)

    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    options += ["--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"]
    options += [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={profile}",
    ]
    process = subprocess.Popen(
        [CHROMIUM, *options], close_fds=False, preexec_fn=connect, stderr=subprocess.DEVNULL
    )
    os.close(reads)
    os.close(writes)
    try:
        browser = Browser(commands, answers)
        yield browser
        browser.call("Browser.close")
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
