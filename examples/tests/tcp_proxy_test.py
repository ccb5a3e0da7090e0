#!/usr/bin/env python3
"""tcp_proxy_test.py TCP_PROXY: bytes in both directions, the end of each, an upstream that is down, and a graceful end."""

import contextlib
import hashlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import unittest

PROXY = sys.argv[1]
PATIENCE_S = 60
MUCH = 64 << 20


def read_to_end(conn):
    """The number of bytes, and their digest."""
    digest, size = hashlib.sha256(), 0
    while part := conn.recv(1 << 20):
        digest.update(part)
        size += len(part)
    return size, digest.hexdigest()


class TcpProxy(unittest.TestCase):
    def setUp(self):
        self.upstream = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.upstream.close)
        self.upstream.settimeout(PATIENCE_S)
        self.proxy = subprocess.Popen(
            [PROXY, "--listen", "127.0.0.1:0", "--upstream", f"127.0.0.1:{self.upstream.getsockname()[1]}"],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.proxy.stderr.close)
        self.addCleanup(self.proxy.wait)
        self.addCleanup(self.proxy.kill)
        line = self.proxy.stderr.readline()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)$", line)
        self.assertIsNotNone(found, line)
        self.port = int(found[1])

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        self.addCleanup(client.close)
        return client

    def pair(self):
        """The client's end, and the upstream's."""
        client = self.connect()
        server, _ = self.upstream.accept()
        self.addCleanup(server.close)
        server.settimeout(PATIENCE_S)
        return client, server

    def test_bytes_go_both_ways_and_each_direction_ends_for_itself(self):
        client, server = self.pair()
        client.sendall(b"question")
        self.assertEqual(server.recv(100), b"question")
        server.sendall(b"answer")
        self.assertEqual(client.recv(100), b"answer")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(server.recv(100), b"")
        server.sendall(b"still here")
        self.assertEqual(client.recv(100), b"still here")
        server.close()
        self.assertEqual(client.recv(100), b"")

    def test_64_mb_arrive_as_they_were_in_both_directions_at_once(self):
        client, server = self.pair()
        data = random.Random(1).randbytes(MUCH)

        def send(conn):
            conn.sendall(data)
            conn.shutdown(socket.SHUT_WR)

        senders = [threading.Thread(target=send, args=(conn,)) for conn in (client, server)]
        got = []
        readers = [threading.Thread(target=lambda conn=conn: got.append(read_to_end(conn))) for conn in (client, server)]
        for thread in senders + readers:
            thread.start()
        for thread in senders + readers:
            thread.join()
        self.assertEqual(got, [(MUCH, hashlib.sha256(data).hexdigest())] * 2)

    def test_a_malformed_upstream_is_an_error_and_status_2(self):
        done = subprocess.run([PROXY, "--upstream", "nonsense"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--upstream: expected HOST:PORT", done.stderr)

    def test_a_side_that_resets_closes_the_other(self):
        client, server = self.pair()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.close()
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(client.recv(100), b"")

    def test_an_upstream_that_is_down_is_logged_and_the_client_closed(self):
        self.upstream.close()
        for _ in range(3):
            self.assertEqual(self.connect().recv(100), b"")
        self.proxy.send_signal(signal.SIGTERM)
        self.assertEqual(self.proxy.wait(PATIENCE_S), 0)
        log = self.proxy.stderr.read()
        self.assertRegex(log, r"upstream: .*Connection refused")
        self.assertLess(log.count("Connection refused"), 3 + 1)

    def test_sigterm_closes_the_connections_and_the_status_is_0(self):
        pairs = [self.pair() for _ in range(3)]
        for client, server in pairs:
            client.sendall(b"x")
            self.assertEqual(server.recv(1), b"x")
        self.proxy.send_signal(signal.SIGTERM)
        for pair in pairs:
            for conn in pair:
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(conn.recv(1), b"")
        self.assertEqual(self.proxy.wait(PATIENCE_S), 0)
        self.assertIn("SIGTERM: no longer listening; closing 3 connections", self.proxy.stderr.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
