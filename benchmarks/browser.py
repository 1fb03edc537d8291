"""A headless Chromium, driven over a pipe: for testing and measuring pages.

It speaks the DevTools protocol with nothing but the standard library.
"""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run"),
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-extensions", "--disable-background-networking", "--mute-audio"),
    *("--hide-scrollbars", "--force-color-profile=srgb"),
)
# The browser reads its orders from file 3 and answers on file 4.
LAUNCH = """
import fcntl, os, sys
given = [int(number) for number in sys.argv[1:3]]
aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 10) for file in given]
for file in given:
    os.close(file)
for file, place in zip(aside, (3, 4)):
    os.dup2(file, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The path of a Chromium on this machine, if there is one."""
    named = os.environ.get("PLATO_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of one browser; `with Browser() as page: …` closes both."""

    def __init__(self, path: str | None = None, seconds: float = 60.0) -> None:
        program = path or find_browser()
        if program is None:
            raise FileNotFoundError(f"no browser found; install one of: {NAMES}")
        self.seconds = seconds
        self.complaints: list[str] = []
        """What the page logged as an error or warning, and what it threw."""
        self.requests: list[str] = []
        """What the page asked the network or the disk for."""
        self._numbers = itertools.count(1)
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._buffer = b""
        line = [program, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(orders), str(answers), *line],
            pass_fds=(orders, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(answers)
        self._session: str | None = None
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        """Opens a page and listens to what it says."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and removes its profile."""
        os.close(self._orders)  # it ends when nobody can give it orders
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)
        self._profile.cleanup()

    def open(self, page: Path) -> None:
        """Loads a file and waits for its recording to be drawn."""
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def resize(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """The size of the window, in CSS pixels; narrow ones are phones."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefer(self, **features: str) -> None:
        """Media features: `prefer(prefers_color_scheme="dark")`."""
        named = [{"name": n.replace("_", "-"), "value": v} for n, v in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"], indent=1))
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Waits for a condition in the page."""
        deadline = time.monotonic() + self.seconds
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition}; complaints: {self.complaints}")
            time.sleep(0.02)

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key, by the name a page's scripts know it by."""
        modifiers = 8 if shift else 0
        text = {"text": key} if len(key) == 1 else {}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            modifiers=modifiers,
            **text,
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Moves the mouse there, in CSS pixels of the window, and may click."""
        kinds = ["mouseMoved"] + ["mousePressed", "mouseReleased"] * click
        for kind in kinds:
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """What the window shows, or the whole page, as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One order of the DevTools protocol, and its answer."""
        number = next(self._numbers)
        order = {"id": number, "method": method, "params": params}
        if self._session is not None:
            order["sessionId"] = self._session
        os.write(self._orders, json.dumps(order).encode() + b"\0")
        deadline = time.monotonic() + self.seconds
        while True:
            message = self._message(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise TimeoutError(f"the browser is silent for {self.seconds} s")
            read = os.read(self._answers, 2**20)
            if not read:
                raise RuntimeError("the browser has ended")
            self._buffer += read
        first, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(first)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded":
            if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
