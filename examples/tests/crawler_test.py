#!/usr/bin/env python3
"""crawler_test.py PROGRAM: every page of a site once, eight at a time, and nothing of another site."""

import contextlib
import http.server
import subprocess
import sys
import threading
import unittest

from serving import PATIENCE_S

CRAWLER = sys.argv[1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        with self.server.counted(self.path):
            status, content_type, body = self.server.pages.get(self.path, (404, "text/html", ""))
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the crawler takes no pictures, and no page that is too large
                self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.pages, self.asked = {}, []
        self.gate = None  # a barrier: answers wait for each other there
        self.lock, self.working, self.most = threading.Lock(), 0, 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()

    @contextlib.contextmanager
    def counted(self, path):
        with self.lock:
            self.working += 1
            self.most = max(self.most, self.working)
        if self.gate and path != "/":
            self.gate.wait(PATIENCE_S)
        yield
        with self.lock:
            self.working -= 1

    def stop(self):
        self.shutdown()
        self.server_close()


def page(*links):
    return 200, "text/html; charset=utf-8", "".join(f'<a class=x href="{link}">{link}</a>\n' for link in links)


class Crawler(unittest.TestCase):
    def site(self):
        site = Site()
        self.addCleanup(site.stop)
        return site

    def crawl(self, *arguments):
        return subprocess.run([CRAWLER, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)

    def lines(self, done):
        return sorted(done.stdout.splitlines())

    def test_each_page_is_asked_for_once(self):
        site, other = self.site(), self.site()
        site.pages = {
            "/": page("a", "/a", "./b?x=1&amp;y=2", "#top", "mailto:ada@example.org", other.url + "/", "folder/"),
            "/a": page("/", "b?x=1&y=2"),
            "/b?x=1&y=2": page("/picture"),
            "/folder/": page("../a", "deep"),
            "/folder/deep": page(),
            "/picture": (200, "image/png", '<a href="/inside-a-picture">'),
        }
        done = self.crawl(site.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines(done), sorted(f"200 {site.url}{path}" for path in site.pages))
        self.assertEqual(sorted(site.asked), sorted(site.pages))
        self.assertEqual(other.asked, [])

    def test_redirects_lead_to_a_page_once_and_not_into_another_site(self):
        site, other = self.site(), self.site()
        other.pages = {"/": page(site.url + "/from-elsewhere")}
        site.pages = {
            "/": page("/old", "/new", "/away"),
            "/old": (301, "text/html", "/new"),
            "/new": page("/last"),
            "/last": page(),
            "/away": (302, "text/html", other.url + "/"),
        }
        done = self.crawl(site.url + "/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.lines(done), sorted(f"200 {site.url}{path}" for path in site.pages))
        self.assertEqual(site.asked.count("/last"), 1)

    def test_what_is_missing_is_said(self):
        site = self.site()
        site.pages = {"/": page("/gone", "/a"), "/a": (200, "text/html", "x" * (5 << 20))}
        done = self.crawl(site.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"404 {site.url}/gone", self.lines(done))
        self.assertIn(f"{site.url}/a", done.stderr)  # larger than what it reads of a page

    def test_eight_at_a_time(self):
        site = self.site()
        site.gate = threading.Barrier(8)  # with fewer at a time, none would pass
        names = [f"/{i}" for i in range(16)]
        site.pages = {"/": page(*names)} | {name: page() for name in names}
        done = self.crawl(site.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.lines(done)), 17)
        self.assertEqual(site.most, 8)

    def test_no_more_pages_than_allowed(self):
        site = self.site()
        site.pages = {"/": page(*[f"/{i}" for i in range(50)])} | {f"/{i}": page() for i in range(50)}
        done = self.crawl(site.url, "7")
        self.assertEqual((done.returncode, len(self.lines(done)), len(site.asked)), (0, 7, 7), done.stderr)

    def test_wrong_arguments(self):
        site = self.site()
        closed = site.url.replace("127.0.0.1", "127.0.0.9")
        for arguments, status, said in (
                ([], 2, "Usage"), (["ftp://a/"], 2, "ftp://a/"), ([site.url, "many"], 2, "Usage"),
                ([site.url, "1", "2"], 2, "Usage"), (["--help"], 0, "Usage"), ([closed], 1, closed)):
            with self.subTest(arguments=arguments):
                done = self.crawl(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(said, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
