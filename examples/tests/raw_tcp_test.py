#!/usr/bin/env python3
"""raw_tcp_test.py PROGRAM...: a raw TCP server says where it listens, and SIGTERM and SIGINT close its connections and end
it with status 0."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import unittest

PATIENCE_S = 60


class RawTcp(unittest.TestCase):
    def start(self, program):
        """(the process, its port)"""
        server = subprocess.Popen([program, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = server.stderr.readline()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)$", line)
        self.assertIsNotNone(found, line)
        return server, int(found[1])

    def connect(self, port):
        """A connection that is served: the server has sent something."""
        client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.addCleanup(client.close)
        client.sendall(b"hello\n")
        self.assertNotEqual(client.recv(1000), b"")
        return client

    def test_a_signal_closes_the_connections_and_the_status_is_0(self):
        self.assertGreater(len(sys.argv), 1)
        for program in sys.argv[1:]:
            for number in (signal.SIGTERM, signal.SIGINT):
                with self.subTest(program=program, signal=number.name):
                    server, port = self.start(program)
                    clients = [self.connect(port) for _ in range(3)]
                    server.send_signal(number)
                    for client in clients:
                        with contextlib.suppress(ConnectionResetError):
                            while client.recv(1000):
                                pass
                    self.assertEqual(server.wait(PATIENCE_S), 0)
                    self.assertIn(f"{number.name}: no longer listening; closing 3 connections", server.stderr.read())

    def test_an_address_in_use_is_an_error_and_status_1(self):
        for program in sys.argv[1:]:
            _, port = self.start(program)
            second = subprocess.run([program, "--listen", f"127.0.0.1:{port}"], capture_output=True, text=True,
                                    timeout=PATIENCE_S, check=False)
            self.assertEqual(second.returncode, 1)
            self.assertIn(f"tuza: --listen: listen 127.0.0.1:{port}: Address already in use\n", second.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
