#!/usr/bin/env python3
"""static_files_test.py PROGRAM: real clients get the files of a folder: curl, http.client, a plain socket."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from serving import PATIENCE_S, Server


class StaticFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp())
        cls.folder = cls.top / "www"
        (cls.folder / "sub").mkdir(parents=True)
        (cls.folder / "index.html").write_text("<p>top")
        (cls.folder / "sub/index.html").write_text("<p>sub")
        cls.large = os.urandom(5_000_000)
        (cls.folder / "large.bin").write_bytes(cls.large)
        os.utime(cls.folder / "large.bin", (784111777, 784111777))
        (cls.top / "secret").write_text("secret")
        (cls.folder / "sub/app.js").write_text("plain")
        (cls.folder / "sub/app.js.br").write_text("coded")
        cls.server = Server(sys.argv[1], f"files.folder={cls.folder}", "files.listing=true",
                            "files.precompressed=true")

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        shutil.rmtree(cls.top)
        assert status == 0, status

    def test_pages_and_redirects(self):
        self.assertEqual(self.server.ask("GET", "/")[2], b"<p>top")
        status, headers, _ = self.server.ask("GET", "/sub")
        self.assertEqual((status, headers["Location"]), (301, "/sub/"))
        status, headers, body = self.server.ask("GET", "/sub/")
        self.assertEqual((status, body), (200, b"<p>sub"))
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(headers["Cache-Control"], "no-cache")

    def test_methods(self):
        for target in "*", "/large.bin":
            status, headers, _ = self.server.ask("OPTIONS", target)
            self.assertEqual((status, headers["Allow"]), (204, "GET, HEAD, OPTIONS"), target)
        status, headers, _ = self.server.ask("POST", "/large.bin")
        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD, OPTIONS"))

    def test_conditions(self):
        _, headers, _ = self.server.ask("HEAD", "/large.bin")
        self.assertEqual(headers["Content-Length"], str(len(self.large)))
        self.assertEqual(headers["Last-Modified"], "Sun, 06 Nov 1994 08:49:37 GMT")
        for condition in ({"If_None_Match": headers["ETag"]}, {"If_Modified_Since": headers["Last-Modified"]}):
            status, again, body = self.server.ask("GET", "/large.bin", **condition)
            self.assertEqual((status, body, again["ETag"]), (304, b"", headers["ETag"]))
        self.assertEqual(self.server.ask("GET", "/large.bin", If_Match='"other"')[0], 412)

    def test_ranges(self):
        status, headers, body = self.server.ask("GET", "/large.bin", Range="bytes=1000000-1999999")
        self.assertEqual((status, body), (206, self.large[1_000_000:2_000_000]))
        self.assertEqual(headers["Content-Range"], f"bytes 1000000-1999999/{len(self.large)}")
        status, headers, _ = self.server.ask("GET", "/large.bin", Range="bytes=5000000-")
        self.assertEqual((status, headers["Content-Range"]), (416, "bytes */5000000"))

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_curl_resumes_and_revalidates(self):
        url = f"http://127.0.0.1:{self.server.port}/large.bin"
        got = self.top / "got"
        got.write_bytes(self.large[:1_234_567])
        subprocess.run(["curl", "-sSf", "-C", "-", "-o", got, url], check=True, timeout=PATIENCE_S)
        self.assertEqual(got.read_bytes(), self.large)
        done = subprocess.run(["curl", "-sSf", "-z", got, "-o", os.devnull, "-w", "%{http_code}", url], check=True,
                              timeout=PATIENCE_S, capture_output=True, text=True)
        self.assertEqual(done.stdout, "304")
        parts = subprocess.run(["curl", "-sSf", "-r", "0-9,100-109", url], check=True, timeout=PATIENCE_S,
                               capture_output=True)
        self.assertIn(self.large[0:10], parts.stdout)
        self.assertIn(self.large[100:110], parts.stdout)

    def test_listings_and_precompressed_files(self):
        (self.folder / "list/<b>").mkdir(parents=True)
        status, headers, body = self.server.ask("GET", "/list/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn(b'href="./%3Cb%3E/"', body)
        self.assertNotIn(b"<b>", body)
        status, headers, body = self.server.ask("GET", "/list/", Accept="application/json")
        self.assertEqual([entry["name"] for entry in json.loads(body)["entries"]], ["<b>"])
        status, headers, body = self.server.ask("GET", "/sub/app.js", Accept_Encoding="gzip, br")
        self.assertEqual((body, headers["Content-Encoding"], headers["Vary"]), (b"coded", "br", "Accept-Encoding"))
        self.assertEqual(self.server.ask("GET", "/sub/app.js")[2], b"plain")

    def test_a_cached_file_that_is_replaced_is_served_anew(self):
        path = self.folder / "page.html"
        path.write_text("old")
        cached = time.monotonic() + 3  # a file that has just changed is not cached
        while time.monotonic() < cached:
            self.assertEqual(self.server.ask("GET", "/page.html")[2], b"old")
            time.sleep(0.05)
        (self.folder / "new").write_text("new")
        (self.folder / "new").rename(path)
        deadline = time.monotonic() + PATIENCE_S
        while self.server.ask("GET", "/page.html")[2] == b"old":
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.server.ask("GET", "/page.html")[2], b"new")

    def test_no_way_out(self):
        for path in ("/../secret", "/%2e%2e/secret", "/..%2fsecret", "/sub/../../secret", "//etc/passwd",
                     "/%2fetc/passwd"):
            answer = self.raw(path)
            if answer.startswith(b"HTTP/1.1 307 "):  # the router cleans the path
                answer = self.raw(re.search(rb"^Location: (/[^/\r][^\r]*)\r$", answer, re.MULTILINE)[1].decode())
            self.assertTrue(answer.startswith(b"HTTP/1.1 404 "), (path, answer))
            self.assertNotIn(b"secret", answer)

    def raw(self, path):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_many_at_once(self):
        wanted, wrong = hashlib.sha256(self.large).digest(), []

        def download():
            body = self.server.ask("GET", "/large.bin")[2]
            if hashlib.sha256(body).digest() != wanted:
                wrong.append(len(body))

        threads = [threading.Thread(target=download) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
