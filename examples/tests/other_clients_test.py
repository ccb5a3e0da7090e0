#!/usr/bin/env python3
"""other_clients_test.py CRUD UPLOAD SSE_CLOCK: clients that are not ours: Node's fetch (undici), and curl."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from serving import PATIENCE_S, Server


def need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is missing. `./dev setup` installs it.")
    return path


class OtherClients(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tuza-clients-")
        self.addCleanup(self.folder.cleanup)
        crud, upload, sse_clock = sys.argv[1:4]
        self.crud = self.start(crud)
        self.upload = self.start(upload, f"upload.folder={self.folder.name}")
        self.sse = self.start(sse_clock)

    def start(self, program, *settings):
        server = Server(program, *settings)
        self.addCleanup(server.kill)
        return server

    def run_client(self, *command, **more):
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **more)

    def test_undici(self):
        script = pathlib.Path(__file__).with_name("undici_client.mjs")
        done = self.run_client(need("node"), str(script), *(str(server.port) for server in (self.crud, self.upload, self.sse)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def curl(self, server, path, *options, **more):
        done = self.run_client(need("curl"), "-sS", *options, f"http://127.0.0.1:{server.port}{path}", **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), options)
        return done.stdout

    def test_curl(self):
        content = bytes(range(256)) * 8000
        file = pathlib.Path(self.folder.name) / "content"
        file.write_bytes(content)
        shown = "%{http_code} %{num_connects}"
        # A form of this size waits for "100 Continue".
        for option in [], ["--http1.0"], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"]:
            answer = self.curl(self.upload, "/files", "-F", f"file=@{file}", "-w", shown, *option)
            self.assertRegex(answer, r'^\[\{"bytes":2048000,.*\]201 1$')
        identity = answer.split('"id":"')[1].split('"')[0]
        copy = file.with_name("copy")
        self.curl(self.upload, f"/files/{identity}", "-o", str(copy))
        self.assertEqual(copy.read_bytes(), content)
        # The rest of a download that had stopped.
        copy.write_bytes(content[:1000])
        self.curl(self.upload, f"/files/{identity}", "-C", "-", "-o", str(copy))
        self.assertEqual(copy.read_bytes(), content)
        url = f"http://127.0.0.1:{self.crud.port}/"
        self.assertEqual(self.curl(self.crud, "/", "-o", "/dev/null", url, "-o", "/dev/null", "-w", "%{num_connects}"), "10",
                         "both on one connection")
        self.assertRegex(self.curl(self.crud, "/", "-I"), r"^HTTP/1\.1 200 OK\r?\n(.*\n)*Content-Length: \d+\r?\n")
        self.assertEqual(self.curl(self.crud, "/../a/./b", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"),
                         f"307 {url}a/b")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
