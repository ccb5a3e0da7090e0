#!/usr/bin/env python3
"""reverse_proxy_test.py PROGRAM: two servers of Python behind the proxy, whole bodies through it, and one that goes away."""

import hashlib
import http.client
import http.server
import os
import socket
import sys
import threading
import time
import unittest
import urllib.request

from serving import PATIENCE_S, Server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/healthz":
            return self.send_error(503) if self.server.unwell else self.answer(b"well")
        return self.answer(b"%d %s" % (self.server.server_port, self.headers["X-Forwarded-For"].encode()))

    def do_PUT(self):
        """Answers the body, in chunks if it came in chunks."""
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.answer(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        size = None
        while size != 0:
            line = self.rfile.readline()
            size = int(line, 16)
            self.wfile.write(line + self.rfile.read(size + 2))
        return None

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Upstream(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.connections = []
        self.unwell = False
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()

    def get_request(self):
        accepted = super().get_request()
        self.connections.append(accepted[0])
        return accepted

    def stop(self):
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(2)
            except OSError:
                pass  # closed already


class ReverseProxy(unittest.TestCase):
    def setUp(self):
        self.upstreams = [Upstream(), Upstream()]
        urls = ", ".join(f'"http://127.0.0.1:{one.server_port}"' for one in self.upstreams)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.admin = probe.getsockname()[1]
        self.proxy = Server(sys.argv[1], f"proxy.upstreams=[{urls}]", f"admin.listen=127.0.0.1:{self.admin}",
                            "proxy.health=/healthz", "proxy.health_every=20ms")

    def tearDown(self):
        self.assertEqual(self.proxy.stop(), 0)
        for one in self.upstreams:
            one.stop()

    def test_requests_go_to_both(self):
        answers = {self.proxy.ask("GET", "/")[2] for _ in range(2)}
        self.assertEqual(answers, {b"%d 127.0.0.1" % one.server_port for one in self.upstreams})

    def test_large_bodies_at_once(self):
        body, wrong = os.urandom(3_000_000), []
        wanted = hashlib.sha256(body).digest()

        def through(chunked):
            pieces = (body[at:at + 10_000] for at in range(0, len(body), 10_000))
            client = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=PATIENCE_S)
            client.request("PUT", "/", pieces if chunked else body, encode_chunked=chunked,
                           headers={"Transfer-Encoding": "chunked"} if chunked else {})
            got = client.getresponse().read()
            client.close()
            if hashlib.sha256(got).digest() != wanted:
                wrong.append(len(got))

        threads = [threading.Thread(target=through, args=(number % 2 == 0,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_an_upstream_that_goes_away_and_comes_back(self):
        stays, goes = self.upstreams
        port = goes.server_port
        for _ in range(4):
            self.proxy.ask("GET", "/")
        goes.stop()
        for _ in range(10):
            self.assertEqual(self.proxy.ask("GET", "/")[2], b"%d 127.0.0.1" % stays.server_port)
        stays.stop()
        self.assertEqual(self.proxy.ask("GET", "/")[0], 502)
        self.upstreams[:] = [Upstream(port)]
        end = time.monotonic() + PATIENCE_S
        while self.proxy.ask("GET", "/")[0] != 200:
            self.assertLess(time.monotonic(), end)


    def test_an_unwell_upstream_is_asked_no_more(self):
        well, unwell = self.upstreams
        unwell.unwell = True
        up = f'proxy_upstream_up{{proxy="proxy",upstream="http://127.0.0.1:{unwell.server_port}"}} '
        self.proxy.ask("GET", "/")
        self.wait_for_metric(up + "0")
        for _ in range(4):
            self.assertEqual(self.proxy.ask("GET", "/")[2], b"%d 127.0.0.1" % well.server_port)
        unwell.unwell = False
        self.wait_for_metric(up + "1")
        self.test_requests_go_to_both()

    def wait_for_metric(self, line):
        end = time.monotonic() + PATIENCE_S
        while True:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=PATIENCE_S) as page:
                if f"\n{line}\n" in page.read().decode():
                    return
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
