#!/usr/bin/env python3
"""tls_test.py PROGRAM: real peers, openssl s_client and curl, talk to tls_server."""

import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

PATIENCE_S = 60


def run(*command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **options)


class Authority:
    """Certificates in a folder, by the openssl command."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.issue("ca", "/CN=Authority", "basicConstraints=critical,CA:TRUE", signed=False)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def issue(self, name: str, subject: str = "/CN=localhost",
              extension: str = "subjectAltName=DNS:localhost,IP:127.0.0.1", signed: bool = True, key: str = "ec"):
        kind = ["-newkey", "rsa:2048"] if key == "rsa" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        issuer = ["-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key")] if signed else []
        done = run("openssl", "req", "-x509", *kind, "-nodes", "-days", "2", "-subj", subject, "-addext", extension,
                   "-keyout", self.path(f"{name}.key.new"), "-out", self.path(f"{name}.crt.new"), *issuer)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        for suffix in ("key", "crt"):
            os.replace(self.path(f"{name}.{suffix}.new"), self.path(f"{name}.{suffix}"))
        return ["--cert", self.path(f"{name}.crt"), "--key", self.path(f"{name}.key")]


class Server:
    def __init__(self, *arguments: str, **options):
        self.process = subprocess.Popen([sys.argv[1], *arguments], stdout=subprocess.PIPE, text=True, **options)
        self.address = self.line("listening ")

    def line(self, start: str) -> str:
        for line in self.process.stdout:
            if line.startswith(start):
                return line.removeprefix(start).strip()
        raise EOFError(start)

    @property
    def port(self) -> str:
        return self.address.rsplit(":", 1)[1]

    def reload(self) -> str:
        self.process.send_signal(signal.SIGHUP)
        return self.process.stdout.readline().strip()

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return code


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tuza-tls-")
        cls.authority = Authority(pathlib.Path(cls.folder.name))
        cls.site = cls.authority.issue("site")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def server(self, *arguments: str, **options) -> Server:
        server = Server(*(arguments or (*self.site, "--listen", "127.0.0.1:0")), **options)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, "it ends as it should"))
        return server

    def curl(self, server: Server, path: str, *options: str, host: str = "localhost"):
        return run("curl", "-sS", "--noproxy", "*", "--cacert", self.authority.path("ca.crt"), "--resolve",
                   f"{host}:{server.port}:127.0.0.1", *options, f"https://{host}:{server.port}{path}")

    def s_client(self, server: Server, *options: str, text: str = "") -> str:
        done = run("openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile",
                   self.authority.path("ca.crt"), *options, input=text)
        # OpenSSL 3.0 has blanks there.
        return (done.stdout + done.stderr).replace("subject=CN = ", "subject=CN=")

    def test_curl_gets_answers_of_all_sizes(self):
        server = self.server()
        for version in ("--tlsv1.2", "--tlsv1.3"):
            limits = [version, "--tls-max", version.removeprefix("--tlsv")]
            self.assertEqual(self.curl(server, "/plaintext", *limits).stdout, "Hello, World!")
            self.assertEqual(len(self.curl(server, "/large", *limits).stdout), 3_000_000)
            large = "y" * 500_000
            with open(self.authority.path("body"), "w") as file:
                file.write(large)
            posted = self.curl(server, "/echo", *limits, "--data-binary", "@" + self.authority.path("body"))
            self.assertEqual(posted.stdout, large)
        refused = self.curl(server, "/plaintext", host="wrong.test")
        self.assertEqual(refused.returncode, 60, refused.stderr)

    def test_many_requests_share_a_connection(self):
        server = self.server()
        url = f"https://localhost:{server.port}/plaintext"
        done = run("curl", "-sS", "--noproxy", "*", "--cacert", self.authority.path("ca.crt"), "-w",
                   "%{num_connects}\n", *[url] * 20)
        self.assertEqual(done.stdout, "Hello, World!1\n" + "Hello, World!0\n" * 19, done.stderr)

    def test_versions_ciphers_and_groups_are_the_intermediate_ones(self):
        server = self.server()
        good = self.s_client(server)
        self.assertIn("TLSv1.3, Cipher is TLS_", good)
        self.assertIn("Verification: OK", good)
        self.assertRegex(good, "(Temp Key|TLS1.3 group): X25519")  # before and after OpenSSL 3.5
        self.assertIn("Cipher is ECDHE-ECDSA-", self.s_client(server, "-tls1_2"))
        weak = ["-cipher", "ALL:@SECLEVEL=0"]
        self.assertIn("alert protocol version", self.s_client(server, "-tls1_1", *weak))
        for cipher in ("ECDHE-ECDSA-AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA256"):
            self.assertIn("alert handshake failure",
                          self.s_client(server, "-tls1_2", "-cipher", cipher + ":@SECLEVEL=0"))
        modern = self.server(*self.site, "--tls13", "--listen", "127.0.0.1:0")
        self.assertIn("alert protocol version", self.s_client(modern, "-tls1_2"))
        self.assertIn("TLSv1.3, Cipher is TLS_", self.s_client(modern))

    def test_sessions_are_resumed_also_after_a_reload(self):
        server = self.server()
        request = "GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for version in ("-tls1_2", "-tls1_3"):
            ticket = self.authority.path("ticket" + version)
            self.assertIn("New, TLSv1", self.s_client(server, version, "-ign_eof", "-sess_out", ticket, text=request))
            self.assertEqual(server.reload(), "reloaded")
            self.assertIn("Reused, TLSv1", self.s_client(server, version, "-ign_eof", "-sess_in", ticket, text=request))

    def test_sessions_are_not_resumed_under_another_name(self):
        server = self.server()
        request = "GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for version in ("-tls1_2", "-tls1_3"):
            for first, second in ((["-servername", "a.test"], ["-servername", "b.test"]),
                                  (["-servername", "a.test"], ["-noservername"]),
                                  (["-noservername"], ["-servername", "a.test"])):
                ticket = self.authority.path("name" + version)
                options = (version, "-ign_eof")
                self.assertIn("New, TLSv1", self.s_client(server, *options, *first, "-sess_out", ticket, text=request))
                self.assertIn("New, TLSv1", self.s_client(server, *options, *second, "-sess_in", ticket, text=request))
                self.assertIn("New, TLSv1", self.s_client(server, *options, *first, "-sess_out", ticket, text=request))
                self.assertIn("Reused, TLSv1", self.s_client(server, *options, *first, "-sess_in", ticket, text=request))

    def test_the_end_is_said(self):
        server = self.server()
        request = "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        said = self.s_client(server, "-ign_eof", "-msg", text=request)
        self.assertRegex(said, r"<<< TLS 1.3, Alert \[length 0002\], warning close_notify")
        self.assertNotIn("unexpected eof", said)

    def test_keys_are_renewed_in_the_middle(self):
        server = self.server()
        get = "GET /large HTTP/1.1\r\nHost: localhost\r\n"
        client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_3"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # "K" asks the server to renew its keys, "k" renews those of the client only. They come while it writes.
        lines = [get + "\r\n", "K\n", "k\n", "K\n", get + "\r\n", "K\n", get + "Connection: close\r\n\r\n"]

        def type_them():
            for line in lines:
                client.stdin.write(line.encode())
                client.stdin.flush()
                # s_client takes a command only where a line begins that it reads by itself.
                while client.poll() is None and \
                        struct.unpack("i", fcntl.ioctl(client.stdin, termios.FIONREAD, bytes(4)))[0] > 0:
                    time.sleep(0.001)
        typist = threading.Thread(target=type_them)
        typist.start()
        out = b""
        while received := client.stdout.read1(1 << 20):
            out += received
        typist.join()
        client.stdin.close()
        client.stdout.close()
        client.wait(PATIENCE_S)
        self.assertEqual(out.count(b"x") // 1000, 9000, out[-500:])
        self.assertEqual(out.count(b"KEYUPDATE"), 4)

    def test_small_fragments(self):
        server = self.server()
        request = "GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for version in ("-tls1_2", "-tls1_3"):
            got = self.s_client(server, version, "-ign_eof", "-maxfraglen", "512", text=request)
            self.assertEqual(got.count("x" * 1000), 3000)

    def test_renegotiation_is_refused(self):
        server = self.server()
        # Its only answer is a warning, after which s_client gives up by itself.
        self.assertIn("no renegotiation", self.s_client(server, "-tls1_2", "-msg", text="R\n").lower())

    def test_names_and_protocols_are_chosen(self):
        other = self.authority.issue("other", "/CN=other.test", "subjectAltName=DNS:other.test,DNS:*.other.test", key="rsa")
        server = self.server(*self.site, *other, "--alpn", "http/1.1", "--listen", "127.0.0.1:0")
        self.assertIn("subject=CN=localhost", self.s_client(server, "-servername", "none.test"))
        for name in ("other.test", "a.other.test"):
            self.assertIn("subject=CN=other.test", self.s_client(server, "-servername", name))
            self.assertEqual(self.curl(server, "/plaintext", host=name).stdout, "Hello, World!")
        self.assertIn("ALPN protocol: http/1.1", self.s_client(server, "-alpn", "h2,http/1.1"))
        self.assertIn("alert no application protocol", self.s_client(server, "-alpn", "h2"))

    def test_one_name_may_have_keys_of_two_kinds(self):
        rsa = self.authority.issue("site_rsa", key="rsa")
        server = self.server(*self.site, *rsa, "--listen", "127.0.0.1:0")
        for kind in ("ECDSA", "RSA"):
            self.assertIn(f"Cipher is ECDHE-{kind}-AES128-GCM-SHA256",
                          self.s_client(server, "-tls1_2", "-cipher", f"ECDHE-{kind}-AES128-GCM-SHA256"))

    def test_clients_show_certificates(self):
        client = self.authority.issue("client", "/CN=gopher", "basicConstraints=CA:FALSE")
        server = self.server(*self.site, "--client-ca", self.authority.path("ca.crt"), "--listen", "127.0.0.1:0")
        mine = ["--cert", client[1], "--key", client[3]]
        self.assertEqual(self.curl(server, "/plaintext", *mine).stdout, "Hello, World!")
        self.assertIn("certificate required", self.curl(server, "/plaintext").stderr)

    def test_reload_takes_new_files_and_keeps_the_old_ones_if_they_are_bad(self):
        authority = self.authority
        site = authority.issue("renewed")
        server = self.server(*site, "--listen", "127.0.0.1:0")
        authority.issue("renewed", "/CN=second")
        self.assertEqual(server.reload(), "reloaded")
        self.assertIn("subject=CN=second", self.s_client(server))
        with open(site[1], "w") as file:
            file.write("rubbish\n")
        self.assertIn(f"load certificate {site[1]}: no PEM block of the expected kind", server.reload())
        os.remove(site[3])
        self.assertEqual(server.reload(), f"load key {site[3]}: No such file or directory")
        self.assertIn("subject=CN=second", self.s_client(server))

    def test_garbage_harms_only_who_sends_it(self):
        server = self.server()
        self.assertEqual(self.curl(server, "/plaintext").stdout, "Hello, World!")
        before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        garbage_of_all_kinds = b"GET / HTTP/1.0\r\n\r\n", os.urandom(5000), b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"\x16"
        for garbage in garbage_of_all_kinds * 3:
            with socket.create_connection(("127.0.0.1", int(server.port)), PATIENCE_S) as client:
                try:
                    client.sendall(garbage)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(4096):
                        pass
                except OSError:
                    pass
        self.assertEqual(self.curl(server, "/plaintext").stdout, "Hello, World!")
        while len(os.listdir(f"/proc/{server.process.pid}/fd")) > before:
            time.sleep(0.02)  # until ctest loses patience

    def test_unix_sockets(self):
        path = self.authority.path("http.socket")
        server = Server("--listen", "unix:" + path)
        self.assertEqual(server.address, "unix:" + path)
        got = run("curl", "-sS", "--unix-socket", path, "http://localhost/plaintext")
        self.assertEqual(got.stdout, "Hello, World!", got.stderr)
        second = run(sys.argv[1], "--listen", "unix:" + path)
        self.assertEqual((second.returncode, second.stderr), (1, f"listen unix:{path}: Address already in use\n"))
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))

    def test_inherited_sockets(self):
        path = self.authority.path("inherited.socket")
        with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
            tcp.bind(("127.0.0.1", 0))
            tcp.listen()
            local.bind(path)
            local.listen()
            # What a service manager does: descriptors from 3 on, and whose they are. Others of ours stay away.
            shell = f'exec 8<&{tcp.fileno()} 9<&{local.fileno()}; exec 3<&8 4<&9 8<&- 9<&-; ' \
                    'LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=web:local exec "$0" "$@"'
            child = subprocess.Popen(["bash", "-c", shell, sys.argv[1], "--inherit"], stdout=subprocess.PIPE,
                                     text=True, pass_fds=(tcp.fileno(), local.fileno()))
            port = tcp.getsockname()[1]
            lines = [child.stdout.readline().strip() for _ in range(4)]
            self.assertEqual(lines, ["inherited web", "inherited local", f"listening 127.0.0.1:{port}",
                                     f"listening unix:{path}"])
        for where in ([f"http://127.0.0.1:{port}/plaintext"],
                      ["--unix-socket", path, "http://localhost/plaintext"]):
            self.assertEqual(run("curl", "-sS", "--noproxy", "*", *where).stdout, "Hello, World!")
        child.terminate()
        self.assertEqual(child.wait(PATIENCE_S), 0)
        child.stdout.close()
        self.assertTrue(os.path.exists(path), "the file is the manager's")

    def test_what_was_not_meant_for_us_is_left_alone(self):
        for variables, said in (({"LISTEN_PID": "1", "LISTEN_FDS": "1"}, ""),
                                ({"LISTEN_PID": "x", "LISTEN_FDS": "1"}, "inherit LISTEN_PID=x: Invalid argument\n")):
            child = subprocess.Popen([sys.argv[1], "--inherit"], stderr=subprocess.PIPE, text=True,
                                     env={**os.environ, **variables})
            if not said:
                child.terminate()
            _, err = child.communicate(timeout=PATIENCE_S)
            self.assertEqual(err, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
