#!/usr/bin/env python3
"""client_servers_test.py CLIENT_DRIVER: the client talks to servers that are not ours (other_servers.py)."""

import base64
import hashlib
import json
import subprocess
import sys
import unittest

from other_servers import FILES, PATIENCE_S, Apache, Haproxy, Nginx, Node, Openssl, Python

UPLOAD_BYTES = 5_000_000
LONG_TEXT = b"line\n" * 100_000  # of other_servers.js


def digest(body):
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def source(count):
    """What the driver's source makes."""
    cycle = bytes(ord("a") + left % 26 for left in range(26, 0, -1))
    first = 26 - count % 26
    return (cycle[first:] + cycle * (count // 26 + 1))[:count]


class Client:
    def __init__(self, **options):
        self.process = subprocess.Popen([sys.argv[1], json.dumps({name: str(value) for name, value in options.items()})],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, url, method="GET", headers=(), **more):
        line = json.dumps({"url": url, "method": method, "headers": list(headers)} | more)
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return Answer(json.loads(self.process.stdout.readline()))

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(PATIENCE_S) == 0


class Answer:
    def __init__(self, values):
        self.error = values.get("error")
        self.__dict__.update(values)

    def header(self, name):
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class ServerTest(unittest.TestCase):
    def serve(self, kind, *arguments, **values):
        server = kind(*arguments, **values)
        self.addCleanup(server.stop)
        return server

    def client(self, **options):
        client = Client(**options)
        self.addCleanup(client.end)
        return client

    def expect(self, answer, status, body=None):
        self.assertEqual((answer.error, getattr(answer, "status", None)), (None, status))
        if body is not None:
            self.assertEqual((answer.bytes, answer.sha256), (len(body), digest(body)), answer.text[:100])

    def expect_error(self, answer, words):
        self.assertIsNotNone(answer.error, vars(answer))
        self.assertIn(words, answer.error)


class FileServers(ServerTest):
    """What each server of files does, over each of its ports."""

    def each(self, verify="off"):
        for kind in Apache, Nginx:
            # Apache's word for `off` is `none`, nginx's for `require` is `on`.
            word = {"off": "none", "on": "require"}[verify] if kind is Apache else verify
            server = self.serve(kind, verify=word, others="1")
            yield server

    def at_each(self, check):
        for server in self.each():
            for url in server.url, server.tls_url:
                with self.subTest(url("")[:5], server=type(server).__name__):
                    check(server, url, self.client(ca_file=server.folder.certificate))

    def test_files(self):
        def check(_, url, client):
            self.expect(client.ask(url("/small.txt")), 200, FILES["small.txt"])
            large = client.ask(url("/large.txt"), headers=[("Accept-Encoding", "identity")])
            self.expect(large, 200, FILES["large.txt"])
            self.assertFalse(large.decompressed)
            head = client.ask(url("/small.txt"), "HEAD")
            self.expect(head, 200, b"")
            self.assertEqual(head.header("Content-Length"), "6")
            part = client.ask(url("/large.txt"), headers=[("Range", "bytes=1000000-1999999")])
            self.expect(part, 206, FILES["large.txt"][1_000_000:2_000_000])
            same = client.ask(url("/small.txt"), headers=[("If-None-Match", head.header("ETag"))])
            self.expect(same, 304, b"")
            self.expect(client.ask(url("/none")), 404)
            self.expect(client.ask(url("/large.txt")), 200, FILES["large.txt"])
        self.at_each(check)

    def test_compressed_files(self):
        def check(server, url, client):
            answer = client.ask(url("/large.txt"))
            self.expect(answer, 200, FILES["large.txt"])
            self.assertTrue(answer.decompressed)
            self.assertIsNone(answer.header("Content-Encoding"))
        self.at_each(check)

    def test_a_folder_redirects(self):
        def check(server, url, client):
            answer = client.ask(url("/folder"))
            self.expect(answer, 200, FILES["folder/index.html"])
            self.assertTrue(answer.url.endswith("/folder/"), answer.url)
        self.at_each(check)

    def test_uploads(self):
        def check(server, url, client):
            for i, more in enumerate(({}, {"length": True}, {"expect": True}, {"length": True, "expect": True})):
                target = url(f"/upload/{i}")
                self.expect(client.ask(target, "PUT", source=UPLOAD_BYTES, **more), 201)
                self.expect(client.ask(target), 200, source(UPLOAD_BYTES))
                self.expect(client.ask(target, "DELETE"), 204, b"")
        self.at_each(check)

    def test_an_upload_that_is_not_wanted(self):
        def check(server, url, client):
            for more in {"expect": True, "length": True}, {"length": True}, {}:
                self.expect(client.ask(url("/upload/x"), "PUT", source=20_000_000, **more), 413)
                self.expect(client.ask(url("/small.txt")), 200, FILES["small.txt"])
        self.at_each(check)

    def test_connections_are_kept_for_as_many_requests_as_the_server_allows(self):
        def check(server, url, client):
            requests = [client.ask(url("/small.txt")) for _ in range(11)]
            for answer in requests:
                self.expect(answer, 200, FILES["small.txt"])
            allowed = 5 if isinstance(server, Apache) else 4  # Apache counts what comes behind the first
            self.assertEqual([each.dialled for each in requests], [i // allowed + 1 for i in range(11)])
            self.assertEqual(requests[-1].repeated, 0)
        self.at_each(check)

    def test_a_server_that_starts_again_costs_no_request(self):
        def check(server, url, client):
            for method, more in ("GET", {}), ("POST", {"body": "text"}), ("GET", {}):
                before = client.ask(url("/small.txt"))
                self.expect(before, 200)
                self.assertEqual(before.idle, 1)
                server.end()
                server.start()
                answer = client.ask(url("/small.txt"), method, **more)
                self.expect(answer, 405 if method == "POST" and isinstance(server, Nginx) else 200)
                self.assertEqual(answer.dialled, before.dialled + 1)
        self.at_each(check)

    def test_certificates_of_clients(self):
        for server in self.each(verify="on"):
            with self.subTest(server=type(server).__name__):
                folder = server.folder
                known = self.client(ca_file=folder.certificate, chain_file=folder.certificate, key_file=folder.key)
                self.expect(known.ask(server.tls_url("/small.txt")), 200, FILES["small.txt"])
                unknown = self.client(ca_file=folder.certificate).ask(server.tls_url("/small.txt"))
                if isinstance(server, Nginx):
                    self.expect(unknown, 400)
                else:
                    self.expect_error(unknown, "certificate required")
                self.expect_error(self.client().ask(server.tls_url("/small.txt")), "certificate")

    def test_a_unix_socket(self):
        server = self.serve(Nginx, verify="off")
        client = self.client(address=f"unix:{server.folder.path}/work/socket")
        self.expect(client.ask("http://any.example/large.txt"), 200, FILES["large.txt"])


class ApacheTest(ServerTest):
    def test_a_body_that_comes_back(self):
        server = self.serve(Apache, verify="none", others="1")
        client = self.client()
        for more in {"length": True}, {}:
            answer = client.ask(server.url("/reflect"), "POST", source=UPLOAD_BYTES, keep_sending=True, **more)
            self.expect(answer, 200, source(UPLOAD_BYTES))

    def test_as_a_proxy(self):
        behind = self.serve(Nginx, verify="off")
        proxy = self.serve(Apache, verify="none", others=behind.tls_port)
        client = self.client(proxy=proxy.url(""), ca_file=behind.folder.certificate)
        answer = client.ask(behind.url("/small.txt"))
        self.expect(answer, 200, FILES["small.txt"])
        self.assertTrue(answer.header("Via").startswith("1.1 localhost"), answer.header("Via"))
        tunnel = client.ask(behind.tls_url("/large.txt"))
        self.expect(tunnel, 200, FILES["large.txt"])
        self.assertIsNone(tunnel.header("Via"))
        # Apache opens tunnels to those ports only that its configuration names.
        self.expect_error(client.ask(proxy.tls_url("/")), "403 Forbidden")


class NodeTest(ServerTest):
    def setUp(self):
        self.server = self.serve(Node)

    def at_each(self, check):
        for url in self.server.url, self.server.tls_url:
            with self.subTest(url("")[:5]):
                check(url, self.client(ca_file=self.server.folder.certificate))

    def test_bodies_and_trailers(self):
        def check(url, client):
            for more in {"length": True}, {"length": True, "expect": True}:
                answer = client.ask(url("/echo"), "POST", source=UPLOAD_BYTES, keep_sending=True, **more)
                self.expect(answer, 200, source(UPLOAD_BYTES))
            text = source(1_000_000).decode("latin-1")
            self.expect(client.ask(url("/echo"), "POST", body=text), 200, text.encode())
            for more in {"trailer": "X-Sum"}, {"trailer": "X-Sum", "expect": True}:
                answer = client.ask(url("/echo"), "POST", source=100_000, keep_sending=True, **more)
                self.expect(answer, 200, source(100_000))
                self.assertEqual(answer.trailers, [["X-Sum", "behind"]])
            self.expect(client.ask(url("/once-more"), "POST", body="again"), 200, b"again")
            self.assertEqual(client.ask(url("/names")).dialled, 1)
        self.at_each(check)

    def test_a_refused_expectation(self):
        def check(url, client):
            self.expect(client.ask(url("/refuse"), "POST", source=UPLOAD_BYTES, expect=True), 417, b"refused")
            self.expect(client.ask(url("/echo"), "POST", source=10), 200, source(10))
        self.at_each(check)

    def test_interim_responses(self):
        def check(url, client):
            self.expect(client.ask(url("/hints")), 200, b"after hints")
        self.at_each(check)

    def test_codings(self):
        def check(url, client):
            for target in "/gzip", "/br":
                answer = client.ask(url(target))
                self.expect(answer, 200, LONG_TEXT)
                self.assertTrue(answer.decompressed)
        self.at_each(check)

    def test_an_early_answer(self):
        def check(url, client):
            self.expect(client.ask(url("/early"), "POST", source=50_000_000), 413, b"too large")
        self.at_each(check)

    def test_idle_connections_that_end(self):
        def check(url, client):
            for i in range(5):
                self.expect(client.ask(url("/close-idle")), 200, b"closed")
                self.expect(client.ask(url("/hints")), 200, b"after hints")  # perhaps sent when the server had closed
        self.at_each(check)

    def test_a_server_that_breaks_off(self):
        def check(url, client):
            for target in "/die-in-head", "/die-in-body", "/die-in-chunk":
                self.expect_error(client.ask(url(target)), url(target))
            self.expect(client.ask(url("/hints")), 200)
        self.at_each(check)


class HaproxyTest(ServerTest):
    def test_in_front_of_node(self):
        node = self.serve(Node)
        server = self.serve(Haproxy, upstream=node.port)
        for url in server.url, server.tls_url:
            with self.subTest(url("")[:5]):
                client = self.client(ca_file=server.folder.certificate)
                own = client.ask(url("/own"))
                self.expect(own, 200, b"own")
                self.assertEqual(own.header("X-By"), "haproxy")
                for more in {"length": True}, {}, {"expect": True}:
                    answer = client.ask(url("/echo"), "POST", source=UPLOAD_BYTES, keep_sending=True, **more)
                    self.expect(answer, 200, source(UPLOAD_BYTES))
                self.expect(client.ask(url("/br")), 200, LONG_TEXT)
                self.expect(client.ask(url("/nobody")), 503)
                self.expect(client.ask(url("/die-in-head")), 502)
                self.expect_error(client.ask(url("/die-in-body")), url("/die-in-body"))
                self.expect(client.ask(url("/early"), "POST", source=50_000_000), 413)


class ServersOfHttp10(ServerTest):
    def test_python(self):
        server = self.serve(Python)
        client = self.client()
        for _ in range(3):
            large = client.ask(server.url("/large.txt"))
            self.expect(large, 200, FILES["large.txt"])
            self.assertEqual((large.version_minor, large.idle), (0, 0))
        self.expect(client.ask(server.url("/folder")), 200, FILES["folder/index.html"])
        self.expect(client.ask(server.url("/small.txt"), "HEAD"), 200, b"")
        self.expect(client.ask(server.url("/none")), 404)

    def test_s_server(self):
        for words in (["-WWW"], ["-WWW", "-tls1_2"], ["-WWW", "-tls1_3"], ["-WWW", "-no_ticket"],
                      ["-WWW", "-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"],
                      ["-WWW", "-tls1_3", "-groups", "P-384"]):
            with self.subTest(words=words):
                server = self.serve(Openssl, *words)
                client = self.client(ca_file=server.folder.certificate)
                for _ in range(3):
                    self.expect(client.ask(server.tls_url("/root/large.txt")), 200, FILES["large.txt"])

    def test_s_server_with_certificates_of_clients(self):
        for version, alert in ("-tls1_2", "handshake failure"), ("-tls1_3", "certificate required"):
            with self.subTest(version=version):
                server = self.serve(Openssl, "-WWW", version, "-Verify", "1", "-verify_return_error")
                folder = server.folder
                known = self.client(ca_file=folder.certificate, chain_file=folder.certificate, key_file=folder.key)
                self.expect(known.ask(server.tls_url("/root/small.txt")), 200, FILES["small.txt"])
                unknown = self.client(ca_file=folder.certificate)
                self.expect_error(unknown.ask(server.tls_url("/root/small.txt")), alert)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
