#!/usr/bin/env python3
"""tutorial_test.py PROGRAM...: each step of the tutorial does what its page says.

The programs are in the order of the steps.
"""

import contextlib
import http.client
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

from serving import PATIENCE_S, Server

PROGRAMS = sys.argv[1:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Guest:
    """A client of the chat; if it has a name, it has joined when the constructor returns."""

    def __init__(self, port: int, name: str | None = None, tls: ssl.SSLContext | None = None):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end, "no server listens"
                time.sleep(0.02)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.lines = self.socket.makefile("rb")
        if name is not None:
            assert self.next() == "Your name?"
            self.say(name)
            self.hears(f"{name} joins")

    def say(self, text: str) -> None:
        self.socket.sendall(f"{text}\n".encode())

    def next(self) -> str:
        return self.lines.readline().decode().removesuffix("\n")

    def hears(self, text: str) -> None:
        while (line := self.next()) != text:
            assert line, f"the end, before {text!r}"

    def ended(self) -> bool:
        return self.lines.read() == b""

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


class Steps(unittest.TestCase):
    def start(self, step: int, *settings: str) -> Server:
        server = Server(PROGRAMS[step - 1], *settings)
        self.addCleanup(server.kill)
        return server

    def chat(self, step: int, *settings: str):
        """Starts the service of step 4 or later: (server, port for the guests)."""
        port = free_port()
        return self.start(step, f"chat.listen=127.0.0.1:{port}", *settings), port

    def refused(self, step: int, *words: str) -> tuple[int, str]:
        done = subprocess.run([PROGRAMS[step - 1], *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_an_address_in_use_names_its_option(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for step in 1, 2, 3:
                self.assertEqual(self.refused(step, "--listen", address),
                                 (1, f"tuza: --listen: listen {address}: Address already in use\n"))

    def test_wrong_settings_are_named(self):
        status, said = self.refused(5, "--check-config", "--set", "chat.certificate=/nope.pem")
        self.assertEqual(status, 2)
        self.assertRegex(said, r"--set chat\.certificate: .*/nope\.pem: No such file or directory")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            status, said = self.refused(4, "--listen", "127.0.0.1:0", "--set", f"chat.listen={address}")
        self.assertEqual(status, 1)
        self.assertIn(f"--set chat.listen: listen {address}: Address already in use", said)

    def test_every_step_is_there(self):
        self.assertEqual([int(pathlib.Path(p).name.split("_")[1]) for p in PROGRAMS], [1, 2, 3, 4, 5, 6])

    def test_1_sends_back_what_it_reads(self):
        server = self.start(1)
        first, second = Guest(server.port), Guest(server.port)
        second.say("two")
        first.say("one")
        self.assertEqual((first.next(), second.next()), ("one", "two"))

    def talk(self, port: int, **options):
        ada, bob = Guest(port, "ada", **options), Guest(port, "bob", **options)
        ada.hears("bob joins")
        bob.say("hello")
        ada.hears("bob: hello")
        bob.hears("bob: hello")
        bob.close()
        ada.hears("bob leaves")
        return ada

    def test_2_everybody_hears_every_line(self):
        self.talk(self.start(2).port)

    def test_2_a_guest_that_does_not_read_stops_nobody(self):
        server = self.start(2)
        ada, _deaf = Guest(server.port, "ada"), Guest(server.port, "deaf")
        line = "x" * 900
        for _ in range(20_000):  # more than socket buffers hold
            ada.say(line)
            if ada.next() == "deaf leaves":
                return
        self.fail("it was never disconnected")

    def test_3_who_says_no_name_is_disconnected(self):
        server = self.start(3)
        silent = Guest(server.port)
        self.assertEqual(silent.next(), "Your name?")
        self.assertTrue(silent.ended())
        self.talk(server.port)

    def test_4_http_and_tcp_share_the_room(self):
        server, port = self.chat(4)
        ada = self.talk(port)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as client:
            client.request("GET", "/lines/web")
            ada.hears("web joins")
            answer = client.getresponse()
            self.assertEqual(server.ask("POST", "/say/curl", b"hi")[0], 204)
            self.assertEqual(server.ask("POST", "/say/curl", b"a\nb")[0], 400)
            ada.hears("curl: hi")
            lines = answer.read().decode().splitlines()  # returns when the ten seconds of the answer are over
            self.assertIn("curl: hi", lines)
        ada.hears("web leaves")
        self.assertEqual(server.stop(), 0)

    def test_4_a_wrong_setting_is_refused(self):
        done = subprocess.run([PROGRAMS[3], "--set", "chat.idle_timeout=soon"], capture_output=True, text=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("chat.idle_timeout", done.stderr)

    def certificate(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cert, key = f"{folder.name}/cert.pem", f"{folder.name}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "1",
                        "-keyout", key, "-out", cert], check=True, capture_output=True)
        return cert, key

    def test_5_guests_and_http_may_use_tls(self):
        cert, key = self.certificate()
        server, port = self.chat(5, f"chat.certificate={cert}", f"chat.key={key}", f"tls.certificate={cert}",
                                 f"tls.key={key}")
        trust = ssl.create_default_context(cafile=cert)
        ada = self.talk(port, tls=trust)
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_S,
                                                            context=trust)) as client:
            client.request("POST", "/say/curl", b"over TLS")
            self.assertEqual(client.getresponse().status, 204)
        ada.hears("curl: over TLS")

    def test_6_the_admin_address_shows_goroutines_by_name(self):
        admin = free_port()
        server, port = self.chat(6, f"admin.listen=127.0.0.1:{admin}")
        self.talk(port)
        server.port = admin
        goroutines = server.ask("GET", "/debug/goroutines")[2].decode()
        self.assertIn("] room:", goroutines)
        self.assertIn("] tcp:", goroutines)
        self.assertIn("tuza_goroutines{", server.ask("GET", "/metrics")[2].decode())
        self.assertEqual(server.ask("GET", "/healthz")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
