"""Chromium without a window, for tests of pages. It is spoken to by its DevTools protocol, over a pair of pipes."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from serving import PATIENCE_S


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.to_browser = os.pipe()
        self.from_browser, theirs_out = os.pipe()

        def take_pipes():  # as the descriptors 3 and 4, whatever their numbers are
            copies = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen(
            [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.profile.name}",
             "--remote-debugging-pipe"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=take_pipes)
        os.close(theirs_in)
        os.close(theirs_out)
        self.unread = b""
        self.calls = 0
        self.loaded = set()  # by their "loader", which is of one navigation
        self.complaints = []  # of all pages: what their consoles show, and exceptions

    def close(self) -> None:
        os.write(self.to_browser, b'{"id": 0, "method": "Browser.close"}\0')  # its own processes end, too
        self.process.wait(PATIENCE_S)
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.profile.cleanup()

    def call(self, method: str, session: str = "", **params) -> dict:
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while (answer := self.receive()).get("id") != self.calls:
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def receive(self) -> dict:
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self.unread:
            if not select.select([self.from_browser], [], [], end - time.monotonic())[0]:
                raise TimeoutError("Chromium does not answer")
            if not (more := os.read(self.from_browser, 1 << 16)):
                raise EOFError("Chromium has ended")
            self.unread += more
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def note(self, event: dict) -> None:
        if event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(event["params"]))
        elif event["method"] == "Page.lifecycleEvent" and event["params"]["name"] == "load":
            self.loaded.add(event["params"]["loaderId"])

    def open(self, url: str) -> "Page":
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        page = Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable", page.session)
        self.call("Page.setLifecycleEventsEnabled", page.session, enabled=True)
        loader = self.call("Page.navigate", page.session, url=url)["loaderId"]
        while loader not in self.loaded:
            self.note(self.receive())
        return page


class Page:
    def __init__(self, browser: Browser, session: str):
        self.browser = browser
        self.session = session

    def run(self, script: str):
        """Runs the body of an async function, with wait(condition), and returns what it returns."""
        wait = "const wait = async what => { while (!what()) await new Promise(go => setTimeout(go, 20)); };"
        result = self.browser.call("Runtime.evaluate", self.session, awaitPromise=True, returnByValue=True,
                                   expression=f"(async () => {{ {wait} {script} }})()")
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def html(self) -> str:
        return self.run("return document.documentElement.outerHTML;")
