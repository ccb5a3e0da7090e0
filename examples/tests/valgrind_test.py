#!/usr/bin/env python3
"""valgrind_test.py HELLO: Valgrind's Memcheck finds nothing in a service under load, from its start to its end.

Needs valgrind in PATH, or named by $VALGRIND.
"""

import http.client
import os
import shutil
import sys
import tempfile
import threading
import unittest

import serving

HELLO = sys.argv[1]
VALGRIND = os.environ.get("VALGRIND", "valgrind")
CLIENTS, CONNECTIONS, REQUESTS = 8, 5, 10


class Valgrind(unittest.TestCase):
    def test_it_finds_nothing_under_load(self):
        if shutil.which(VALGRIND) is None:
            self.fail(f"{VALGRIND} is missing. Package: valgrind. `./dev test all` installs it.")
        log = tempfile.NamedTemporaryFile("r")
        self.addCleanup(log.close)
        server = serving.Server(HELLO, launcher=[VALGRIND, f"--log-file={log.name}"])
        self.addCleanup(server.kill)
        statuses = []
        clients = [threading.Thread(target=self.load, args=(server.port, statuses)) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(statuses, [200] * (CLIENTS * CONNECTIONS * REQUESTS))
        self.assertEqual(server.stop(), 0)
        self.assertIn("ERROR SUMMARY: 0 errors from 0 contexts", log.read())

    def load(self, port, statuses):
        for _ in range(CONNECTIONS):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=serving.PATIENCE_S)
            for _ in range(REQUESTS):
                client.request("GET", "/")
                with client.getresponse() as answer:
                    answer.read()
                    statuses.append(answer.status)
            client.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
