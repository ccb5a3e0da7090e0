#!/usr/bin/env python3
"""upload_test.py PROGRAM: files come back as they were sent; limits and full disks are answered, and leave nothing behind."""

import contextlib
import json
import os
import pathlib
import resource
import select
import shutil
import socket
import sys
import tempfile
import unittest

from serving import PATIENCE_S, Server

BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"


def form(*files: tuple[str, bytes]) -> bytes:
    body = b""
    for name, data in files:
        body += (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n").encode() + data + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


class Upload(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *settings, **popen) -> Server:
        server = Server(sys.argv[1], f"upload.folder={self.folder}", *settings, **popen)
        self.addCleanup(server.kill)
        return server

    def send(self, server, body):
        status, fields, answer = server.ask("POST", "/files", body, Content_Type=f"multipart/form-data; boundary={BOUNDARY}")
        return status, answer

    def test_pages_of_other_origins_are_refused(self):
        server = self.start()
        status, _, _ = server.ask("POST", "/files", form(("a", b"b")), Origin="http://evil.example",
                                  Content_Type=f"multipart/form-data; boundary={BOUNDARY}")
        self.assertEqual((status, list(self.folder.iterdir())), (403, []))

    def test_files_come_back_as_they_were_sent(self):
        server = self.start()
        data = os.urandom(3_000_000)
        status, answer = self.send(server, form(("../../..\\\\fr\u00fch.bin", data), ("empty", b"")))
        self.assertEqual(status, 201, answer)
        stored = json.loads(answer)
        self.assertEqual([(file["name"], file["bytes"]) for file in stored], [("fr\u00fch.bin", len(data)), ("empty", 0)])
        status, fields, back = server.ask("GET", f"/files/{stored[0]['id']}")
        self.assertEqual((status, back == data), (200, True))
        self.assertEqual((fields["Content-Disposition"], fields["X-Content-Type-Options"]),
                         ("attachment; filename=\"fr__h.bin\"; filename*=UTF-8''fr%C3%BCh.bin", "nosniff"))
        listed = json.loads(server.ask("GET", "/files")[2])
        self.assertEqual(sorted(listed, key=str), sorted(stored, key=str))
        self.assertEqual(len(list(self.folder.iterdir())), 4)
        self.assertEqual(len(list(self.folder.parent.glob("fr\u00fch.bin"))), 0)
        for path in ("/files/" + "0" * 32, f"/files/{stored[0]['id']}.name", "/files/..%2f..%2fetc%2fpasswd"):
            self.assertEqual(server.ask("GET", path)[0], 404)

    def test_what_is_no_form_is_refused(self):
        server = self.start()
        self.assertEqual(server.ask("POST", "/files", b"x", Content_Type="text/plain")[0], 415)
        self.assertEqual(self.send(server, form())[0], 400)
        self.assertEqual(self.send(server, form(("", b"")))[0], 400)
        self.assertEqual(self.send(server, form(("a", b"1"))[:-10])[0], 400)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_beyond_the_limit_it_is_413_without_being_read(self):
        server = self.start("upload.file_max=1MiB")
        self.assertEqual(self.send(server, form(("a", b"x" * (1 << 20))))[0], 201)
        self.assertEqual(self.send(server, form(("a", b"x" * ((1 << 20) + 1))))[0], 413)
        # A length beyond the limit is answered before any of it has been sent.
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)) as client:
            client.sendall(f"POST /files HTTP/1.1\r\nHost: a\r\nContent-Length: {100 << 20}\r\n"
                           f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode())
            self.assertIn(b" 413 ", client.makefile("rb").readline())
        # One that turns out to be too long is answered while its sender still sends.
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)) as client:
            client.sendall(b"POST /files HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                           b"Content-Type: multipart/form-data; boundary=%s\r\n\r\n" % BOUNDARY.encode())
            piece, sent = form(("a", b"")).split(b"\r\n\r\n")[0] + b"\r\n\r\n", 0
            while not select.select([client], [], [], 0)[0]:
                client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                piece, sent = b"x" * (1 << 16), sent + len(piece)
            self.assertIn(b" 413 ", client.makefile("rb").readline())
            self.assertGreater(sent, 1 << 20)
        self.assertEqual(len(list(self.folder.iterdir())), 2)

    def test_when_files_cannot_grow_it_is_507_and_nothing_stays(self):
        limit = 300_000
        server = self.start(restore_signals=False,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(self.send(server, form(("a", b"x" * 400_000)))[0], 507)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(self.send(server, form(("a", b"x" * 200_000)))[0], 201)

    def test_what_has_no_name_yet_is_not_listed(self):
        server = self.start()
        stored = json.loads(self.send(server, form(("a", b"1")))[1])
        begun = "0123456789abcdef" * 2
        (self.folder / begun).write_bytes(b"a part")
        status, _, answer = server.ask("GET", "/files")
        self.assertEqual((status, json.loads(answer)), (200, stored))
        self.assertEqual(server.ask("GET", f"/files/{begun}")[0], 404)

    def test_who_goes_away_leaves_nothing(self):
        server = self.start()
        body = form(("a", b"x" * 1_000_000))
        with contextlib.closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)) as client:
            client.sendall(f"POST /files HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
                           f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n".encode() + body[:500_000])
        self.assertEqual(server.stop(), 0)  # waits for the request
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
