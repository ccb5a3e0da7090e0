#!/usr/bin/env python3
"""file_servers_test.py STATIC_FILES: the same requests for the same files to static_files, nginx and Apache.

An answer is its status, Content-Range, Location and body. Ours must be that of nginx or of Apache, except where DIFFERENT says
what it is, and why.
"""

import contextlib
import http.client
import os
import pathlib
import sys
import typing
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "http/tests"))
from other_servers import FILES, Apache, Nginx  # noqa: E402
from serving import PATIENCE_S, Server  # noqa: E402

CHANGED = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT
DATE, EARLIER, LATER = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:38 GMT"
SMALL = "/small.txt"  # b"small\n"

PATHS = ["/small.txt", "/%73mall.txt", "/small%2etxt", "//small.txt", "/./small.txt", "/folder/../small.txt", "/folder/%2e%2e/small.txt",
         "/../small.txt", "/%2e%2e/small.txt", "/folder", "/folder/", "/folder/index.html", "/folder//index.html", "/folder/.", "/none",
         "/none/", "/small.txt/", "/small.txt/x", "/small.txt?query", "/folder?query", "/folder/none", "/%00", "/small.txt%00",
         "/%", "/%zz", "/small%20txt", "/\\small.txt", "/SMALL.txt", "/" + "a" * 300, "/*", "/folder%2findex.html", "/%2fsmall.txt",
         "/large.txt"]
RANGES = ["bytes=0-0", "bytes=0-", "bytes=1-3", "bytes=-1", "bytes=-2", "bytes=-100", "bytes=-0", "bytes=5-5", "bytes=5-100", "bytes=6-",
          "bytes=6-7", "bytes=100-200", "bytes=3-1", "bytes=", "bytes", "bytes=-", "bytes=a-b", "bytes=0-x", "bytes=0", "items=0-1", "bytes =0-1",
          "bytes= 0-1", "bytes=0 - 1", "bytes=99999999999999999999-", "bytes=0-99999999999999999999", "BYTES=0-1", "bytes=--1", "bytes=+0-1"]
STRONG, WEAK, OTHER = "{etag}", "W/{etag}", '"other"'
CONDITIONS = [
    *({"If-None-Match": value} for value in (STRONG, WEAK, OTHER, "*", OTHER + ", {etag}", '{etag}, "x"', "", "unquoted")),
    *({"If-Match": value} for value in (STRONG, OTHER, "*", OTHER + ", {etag}")),
    *({name: value} for name in ("If-Modified-Since", "If-Unmodified-Since")
      for value in (DATE, EARLIER, LATER, "nonsense", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994")),
    {"If-None-Match": OTHER, "If-Modified-Since": DATE}, {"If-None-Match": STRONG, "If-Modified-Since": EARLIER},
    {"If-Match": STRONG, "If-Unmodified-Since": EARLIER}, {"If-Match": OTHER, "If-None-Match": STRONG},
    *({"Range": "bytes=1-3", "If-Range": value} for value in (STRONG, WEAK, OTHER, DATE, EARLIER, LATER, "nonsense")),
    {"Range": "bytes=1-3", "If-None-Match": STRONG}, {"Range": "bytes=9-", "If-None-Match": STRONG},
    {"Range": "bytes=1-3", "If-Modified-Since": DATE}, {"Range": "bytes=9-", "If-Match": OTHER},
]

CLEAN = "a router redirects to the path that is meant, before any file is looked for"
ESCAPE = "a path that names no file; to others, no path at all"
ONE_IS_IGNORED = "RFC 9110 13.2.2: beside a tag, the date does not count"
MAY_HAVE_CHANGED = "a time that was set, as here, does not say when the file was changed (RFC 9110 8.8.2.2)"
# (path, header fields): (status, Content-Range, Location, why)
DIFFERENT = {
    **{(path,): (307, None, to, CLEAN) for path, to in {
        "//small.txt": SMALL, "/./small.txt": SMALL, "/folder/../small.txt": SMALL, "/folder/%2e%2e/small.txt": SMALL,
        "/../small.txt": SMALL, "/%2e%2e/small.txt": SMALL, "/folder//index.html": "/folder/index.html", "/folder/.": "/folder/"}.items()},
    ("/%",): (404, None, None, ESCAPE),
    ("/%zz",): (404, None, None, ESCAPE),
    ("/\\small.txt",): (400, None, None, "RFC 3986: a backslash is in no URL"),
    (SMALL, ("If-None-Match", STRONG), ("If-Modified-Since", EARLIER)): (304, None, None, ONE_IS_IGNORED),
    (SMALL, ("If-Match", STRONG), ("If-Unmodified-Since", EARLIER)): (200, None, None, ONE_IS_IGNORED),
    (SMALL, ("Range", "bytes=1-3"), ("If-Range", DATE)): (200, None, None, MAY_HAVE_CHANGED),
    (SMALL, ("Range", "bytes=0-99999999999999999999")): (206, "bytes 0-5/6", None, "RFC 9110 14.1.2: beyond the end is the end"),
}


class Answer(typing.NamedTuple):
    status: int
    range: str | None
    location: str | None
    body: bytes | None  # None: that of an error, which is in words of its own


def ask(port: int, method: str, path: str, headers: dict) -> tuple[Answer, str]:
    """The answer, and its tag."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as client:
        client.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            client.putheader(name, value)
        client.endheaders()
        got = client.getresponse()
        body = got.read()
        location = got.headers["Location"]
        if location is not None:
            location = location.removeprefix(f"http://127.0.0.1:{port}").removeprefix(f"http://localhost:{port}")
        shown = body if got.status in (200, 206) else None
        return Answer(got.status, got.headers["Content-Range"], location, shown), got.headers["ETag"] or ""


class FileServers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.others = {"nginx": Nginx(verify="off"), "apache": Apache(verify="none", others=9)}
        for server in cls.others.values():
            for name in FILES:
                os.utime(server.folder.root / name, (CHANGED, CHANGED))
        cls.ours = Server(sys.argv[1], f"files.folder={cls.others['nginx'].folder.root}")
        cls.ports = {"ours": cls.ours.port} | {name: server.port for name, server in cls.others.items()}
        cls.tags = {name: ask(port, "GET", SMALL, {})[1] for name, port in cls.ports.items()}

    @classmethod
    def tearDownClass(cls):
        cls.ours.kill()
        for server in cls.others.values():
            server.stop()

    def compare(self, method: str, path: str, headers: dict) -> None:
        answers = {}
        for name, port in self.ports.items():
            own = {key: value.replace("{etag}", self.tags[name]) for key, value in headers.items()}
            answers[name] = ask(port, method, path, own)[0]
        case = (path, *headers.items())
        different = DIFFERENT.get(case)
        with self.subTest(case=(method, *case)):
            if different is None:
                self.assertIn(answers["ours"], (answers["nginx"], answers["apache"]))
            else:
                self.assertEqual(answers["ours"][:3], different[:3], different[3])
                self.assertNotIn(answers["ours"], (answers["nginx"], answers["apache"]), "no difference any more")

    def test_paths(self):
        for method in "GET", "HEAD":
            for path in PATHS:
                self.compare(method, path, {})

    def test_ranges(self):
        for value in RANGES:
            self.compare("GET", SMALL, {"Range": value})
            # RFC 9110 14.2: Range is for GET. The others take it for HEAD, too.
            self.assertEqual(ask(self.ports["ours"], "HEAD", SMALL, {"Range": value})[0], Answer(200, None, None, b""))

    def test_conditions(self):
        for method in "GET", "HEAD":
            for headers in CONDITIONS:
                if method == "GET" or "Range" not in headers:
                    self.compare(method, SMALL, headers)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
