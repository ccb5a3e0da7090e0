#!/usr/bin/env python3
"""pages_test.py CRUD UPLOAD SSE_CLOCK WEBSOCKET_CHAT: the pages of the examples do in a browser what they are for. Needs
Chromium.

The pages come from the examples themselves; scripts of the test use them as a person does.
"""

import pathlib
import shutil
import sys
import tempfile
import unittest

from browser import Browser
from serving import Server

CRUD = """
await wait(() => !document.querySelector("#login").hidden);
document.querySelector("#login input").value = "ada";
document.querySelector("#login button").click();
await wait(() => !document.querySelector("#add").hidden);
document.querySelector("#add input").value = "Tea <b>now</b>";
document.querySelector("#add button").click();
await wait(() => document.querySelector("#list li"));
document.querySelector("#list input").click();
await wait(() => document.querySelector("#list .done"));
"""

UPLOAD = """
const chosen = new DataTransfer();
chosen.items.add(new File(["x".repeat(500000)], 'a "quoted" \\u00e4.txt'));
document.querySelector("#files").files = chosen.files;
document.querySelector("#form button").click();
await wait(() => document.querySelector("#list li"));
return document.querySelector("#progress").value;
"""

# Two times of the server that are not the same.
CLOCK = """
const time = () => document.querySelector("#time").textContent;
await wait(() => /^\\d\\d:\\d\\d:\\d\\d$/.test(time()));
const first = time();
await wait(() => time() !== first);
return [first, time(), document.querySelector("#state").textContent];
"""

ENTER = """
document.querySelector("#name").value = "%s";
document.querySelector("#enter button").click();
await wait(() => document.querySelector("#lines li"));
"""

SAY = """
document.querySelector("#text").value = "%s";
document.querySelector("#say button").click();
"""

LINES = """
const lines = () => [...document.querySelectorAll("#lines li")].map(line => line.textContent);
await wait(() => lines().length >= %d);
return lines();
"""


class Pages(unittest.TestCase):
    def setUp(self):
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def open(self, server: Server):
        return self.browser.open(f"http://127.0.0.1:{server.port}/")

    def serve(self, program: str, *settings: str) -> Server:
        server = Server(program, *settings)
        self.addCleanup(server.kill)
        return server

    def assert_no_complaints(self, *allowed: str):
        allowed += ("favicon.ico",)  # the browser asks for it by itself
        self.assertEqual([line for line in self.browser.complaints if not any(text in line for text in allowed)], [])

    def test_tasks_are_added_and_done(self):
        page = self.open(self.serve(sys.argv[1]))
        page.run(CRUD)
        html = page.html()
        self.assertIn('<span class="done"> Tea &lt;b&gt;now&lt;/b&gt; </span>', html)
        self.assertRegex(html, r'<p id="error"></p>')
        self.assert_no_complaints("401")  # the answer to the first question of the page, which the browser notes

    def test_a_file_is_sent_and_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            page = self.open(self.serve(sys.argv[2], f"upload.folder={folder}"))
            self.assertEqual(page.run(UPLOAD), 1)  # the progress
            self.assertIn("a _quoted_ \u00e4.txt</a><span> 500,000 bytes</span>", page.html())
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 2)
            self.assert_no_complaints()

    def test_the_time_goes_on(self):
        first, second, state = self.open(self.serve(sys.argv[3])).run(CLOCK)
        self.assertRegex(second, r"^\d\d:\d\d:\d\d$")
        self.assertNotEqual(first, second)
        self.assertEqual(state, "connected")
        self.assert_no_complaints()

    def test_two_guests_see_each_others_messages(self):
        server = self.serve(sys.argv[4])
        ada, bob = self.open(server), self.open(server)
        ada.run(ENTER % "ada")
        bob.run(ENTER % "bob")
        ada.run(SAY % "<b>hello</b>")
        self.assertEqual(bob.run(LINES % 2), ["* bob joins, 2 here", "ada: <b>hello</b>"])
        bob.run(SAY % "hello, ada")
        self.assertEqual(ada.run(LINES % 4),
                         ["* ada joins, 1 here", "* bob joins, 2 here", "ada: <b>hello</b>", "bob: hello, ada"])
        self.assert_no_complaints()


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        sys.exit("chromium is missing. Package: chromium. `./dev setup` installs it.")
    unittest.main(argv=[sys.argv[0]])
