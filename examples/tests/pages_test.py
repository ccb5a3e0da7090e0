#!/usr/bin/env python3
"""pages_test.py CRUD UPLOAD: the pages of the examples do in a browser what they are for. Needs Chromium.

The browser loads the page from a small server of the test, which hands everything on to the example and adds a script
that uses the page as a person does.
"""

import http.server
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from serving import Server

CRUD = """
const wait = async what => { while (!what()) await new Promise(go => setTimeout(go, 20)); };
(async () => {
  await wait(() => !document.querySelector("#login").hidden);
  document.querySelector("#login input").value = "ada";
  document.querySelector("#login button").click();
  await wait(() => !document.querySelector("#add").hidden);
  document.querySelector("#add input").value = "Tea <b>now</b>";
  document.querySelector("#add button").click();
  await wait(() => document.querySelector("#list li"));
  document.querySelector("#list input").click();
  await wait(() => document.querySelector("#list .done"));
  document.documentElement.dataset.finished = "1";
})();
"""

UPLOAD = """
const wait = async what => { while (!what()) await new Promise(go => setTimeout(go, 20)); };
(async () => {
  const chosen = new DataTransfer();
  chosen.items.add(new File(["x".repeat(500000)], 'a "quoted" \\u00e4.txt'));
  document.querySelector("#files").files = chosen.files;
  document.querySelector("#form button").click();
  await wait(() => document.querySelector("#list li"));
  document.documentElement.dataset.finished = document.querySelector("#progress").value;
})();
"""


def with_script(upstream: Server, script: str):
    class Handler(http.server.BaseHTTPRequestHandler):
        def hand_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            kept = {name.replace("-", "_"): value for name, value in self.headers.items()
                    if name.lower() in ("content-type", "cookie")}
            status, headers, answer = upstream.ask(self.command, self.path, body, **kept)
            if self.path == "/":
                answer += f"<script>{script}</script>".encode()
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() in ("content-type", "set-cookie", "content-security-policy"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_DELETE = hand_on

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def browse(url: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}", "--enable-logging=stderr",
             "--virtual-time-budget=20000", "--dump-dom", url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200, check=True)
        return done.stdout.split("<script>")[0], done.stderr


class Pages(unittest.TestCase):
    def use(self, program, script, *settings):
        server = Server(program, *settings)
        self.addCleanup(server.kill)
        proxy = with_script(server, script)
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        dom, log = browse(f"http://127.0.0.1:{proxy.server_port}/")
        # The first question of the page may be answered with 401, which the browser notes.
        self.assertEqual([line for line in log.splitlines() if "CONSOLE" in line and "401" not in line], [])
        return dom

    def test_tasks_are_added_and_done(self):
        dom = self.use(sys.argv[1], CRUD)
        self.assertIn('data-finished="1"', dom)
        self.assertIn('<span class="done"> Tea &lt;b&gt;now&lt;/b&gt; </span>', dom)
        self.assertRegex(dom, r'<p id="error"></p>')

    def test_a_file_is_sent_and_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            dom = self.use(sys.argv[2], UPLOAD, f"upload.folder={folder}")
            self.assertIn('data-finished="1"', dom)  # the progress
            self.assertIn("a _quoted_ \u00e4.txt</a><span> 500,000 bytes</span>", dom)
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 2)


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        sys.exit("chromium is missing. Package: chromium. `./dev setup` installs it.")
    unittest.main(argv=[sys.argv[0]])
