#!/usr/bin/env python3
"""proxy_test.py HELLO: behind a real HAProxy, the access log has the client's address, and nobody can invent one."""

import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HELLO = pathlib.Path(sys.argv[1]).resolve()
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
PATIENCE_S = 60
CLIENT = "127.0.0.77"  # every address of 127.0.0.0/8 is this machine's
CONFIGURATION = """
defaults
  mode {mode}
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  {option}
frontend clients
  bind 127.0.0.1:{front}
  default_backend services
backend services
  server hello 127.0.0.1:{port} {server}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BehindHaproxy(unittest.TestCase):
    @contextlib.contextmanager
    def service(self, *settings, mode="tcp", server="", option=""):
        """Yields the ports of the service and of HAProxy in front of it, and a function that returns the log so far."""
        port, front = free_port(), free_port()
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
            folder = pathlib.Path(directory)
            words = [HELLO, "--listen", f"127.0.0.1:{port}", "--set", "http.access_log=true", "--set", "log.format=json",
                     "--set", f"log.file={folder}/log"]
            for setting in settings:
                words += ["--set", setting]
            text = CONFIGURATION.format(mode=mode, front=front, port=port, server=server, option=option)
            (folder / "haproxy.cfg").write_text(text)
            # In this order: HAProxy gives a server up whose first check fails, until two have succeeded.
            for command, listens in (words, port), ([HAPROXY, "-db", "-f", folder / "haproxy.cfg"], front):
                child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                stack.callback(child.wait, PATIENCE_S)
                stack.callback(child.terminate)
                until_it_listens(listens)

            def lines():
                return [json.loads(line) for line in (folder / "log").read_text().splitlines()]
            yield port, front, lines

    def get(self, port, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=(CLIENT, 0))
        with contextlib.closing(connection):
            connection.connect()
            own_port = connection.sock.getsockname()[1]
            connection.request("GET", "/", headers=headers or {})
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.read()), (200, b"Hello, World!"))
            return own_port

    def remotes(self, lines, count):
        """The addresses of the first requests in the log."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := [line["remote"] for line in lines() if line.get("event") == "request"]) < count:
            self.assertLess(time.monotonic(), deadline, found)
            time.sleep(0.02)
        return found

    def test_proxy_protocol(self):
        for kind in ("send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"):
            with self.subTest(kind), self.service("http.proxy_protocol=required", "http.trusted_proxies=127.0.0.1",
                                                  server=kind) as (_, front, lines):
                own_port = self.get(front)
                self.assertEqual(self.remotes(lines, 1), [f"{CLIENT}:{own_port}"])

    def test_health_checks_of_the_proxy_are_its_own(self):
        # HAProxy sends no request before its check has succeeded.
        with self.service("http.proxy_protocol=required", "http.trusted_proxies=127.0.0.1", mode="http",
                          server="send-proxy-v2 check inter 50ms", option="option httpchk GET /") as (_, front, lines):
            check = self.remotes(lines, 1)[0]
            self.assertTrue(check.startswith("127.0.0.1:"), check)
            own_port = self.get(front)
            self.assertIn(f"{CLIENT}:{own_port}", self.remotes(lines, 2))

    def test_without_a_header_and_from_elsewhere_nobody_is_served(self):
        with self.service("http.proxy_protocol=required", "http.trusted_proxies=127.0.0.1",
                          server="send-proxy") as (port, front, lines):
            self.get(front)
            for source, sent in (("127.0.0.1", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
                                 (CLIENT, b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")):
                with socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0)) as client:
                    got = b""
                    with contextlib.suppress(ConnectionError):
                        client.sendall(sent)
                        got = client.recv(1)
                    self.assertEqual(got, b"")
            self.assertEqual(len(self.remotes(lines, 1)), 1)


def until_it_listens(port):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
