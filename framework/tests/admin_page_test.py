#!/usr/bin/env python3
"""admin_page_test.py PROGRAM: a browser draws /debug/sched correctly and without errors. Needs Chromium."""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

from admin_client import WithServer, fetch

def browse(url: str, *options: str) -> tuple[str, str]:
    """Lets a headless browser run the page for some seconds of virtual time; returns its output and its log."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--window-size=1280,1250", "--virtual-time-budget=9000", *options, url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, check=True)
        return done.stdout, done.stderr


class Page(WithServer):
    def setUp(self):
        super().setUp()
        self.stopping = threading.Event()
        self.url = f"http://127.0.0.1:{self.server.admin}/debug/sched"
        for path in ["/nap"] * 12 + ["/burn"] * 3:
            self.start(path)
        load = threading.Thread(target=self.load)
        load.start()
        self.addCleanup(load.join)
        self.addCleanup(self.stopping.set)

    def load(self):
        while not self.stopping.is_set():
            fetch(self.server.service, "/")

    def test_draws_what_there_is(self):
        dom, log = browse(self.url, "--dump-dom")
        dom = dom.split("<script>")[0]  # the part that is drawn
        self.assertEqual([line for line in log.splitlines() if "CONSOLE" in line], [])
        frames, errors = (int(re.search(rf'<html[^>]* data-{name}="(\d+)"', dom).group(1)) for name in ("frames", "errors"))
        self.assertGreaterEqual(frames, 3)
        self.assertEqual(errors, 0)
        self.assertNotIn('class="lost"', dom)
        # Strings from the server are shown as text, never as tags.
        self.assertIn('<span id="service">test "&lt;b&gt;</span>', dom)
        procs = int(re.search(r"(\d+) of (\d+) at work", dom).group(2))
        self.assertEqual(dom.count("data-proc="), procs)
        self.assertEqual(dom.count("data-tile="), 8)
        # Percentiles of what the server has measured; each chart has its scale.
        latency = re.search(r'data-tile="latency">.*?<b>([^<]*)</b><span[^>]*>([^<]*)<', dom)
        self.assertRegex(latency.group(1), r"^[\d.]+ (µs|ms|s)$")
        self.assertRegex(latency.group(2), r"^p50 [\d.]+ (µs|ms|s) ")
        self.assertEqual(dom.count('<div class="y"><span>'), 8)
        self.assertNotIn("Infinity", dom)
        self.assertRegex(dom, r"at work; I/O: [^<]* \(normal\)")
        self.assertIn("Key to the words", dom)
        connections = re.findall(r'<tr data-connections="(\w+)"><td>([^<]*)</td><td class="n">([^<]*)</td>', dom)
        self.assertEqual(connections, [("pool", "db &lt;i&gt;", "1 in use, 0 idle"), ("client", "weather", "0 in use, 0 idle"),
                                       ("upstream", "api: http://127.0.0.1:9", "0 in use, 0 idle")])
        self.assertNotIn("hidden", re.search(r'<section[^>]*id="connections-card"[^>]*>', dom).group())
        self.assertRegex(dom, r'<td>sleep</td><td class="n">12</td>')
        self.assertRegex(dom, r'class="m (lane|suspended)"')
        self.assertGreaterEqual(dom.count("<polyline "), 9)
        flight = re.search(r'data-tile="flight">.*?<b>(\d+)</b>', dom)
        self.assertIn(int(flight.group(1)), (15, 16))
        self.assertNotIn("NaN", dom)

    def test_a_phone_has_two_tiles_a_row_and_nothing_wider_than_it(self):
        for width, columns in (1280, 4), (500, 2):
            dom, _ = browse(self.url, "--dump-dom", f"--window-size={width},900")
            self.assertRegex(dom, rf'<html[^>]* data-columns="{columns}"')
            self.assertRegex(dom, r'<html[^>]* data-wide="0"')


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        sys.exit("chromium is missing. Package: chromium. `./dev setup` installs it.")
    unittest.main(argv=sys.argv[:1])
