#!/usr/bin/env python3
"""https_test.py APP_SERVER: TLS by settings; SIGHUP reloads the certificates. Needs the command openssl."""

import http.client
import signal
import ssl
import subprocess
import sys
import unittest

from app_testing import PATIENCE_S, Test


def make_certificate(folder, name):
    """Makes NAME.pem and NAME.key for the host NAME."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    return folder / f"{name}.pem", folder / f"{name}.key"


class Https(Test):
    def setUp(self):
        self.path = self.folder()
        self.certificate, self.key = make_certificate(self.path, "first.test")

    def start(self, *settings, certificate=None, key=None):
        return self.service(f"tls.certificate={certificate or self.certificate}", f"tls.key={key or self.key}", *settings)

    def ask(self, service, trusted, name="first.test", **files):
        """Sends GET / over TLS, verifies the certificate, and returns the status."""
        context = ssl.create_default_context(cafile=trusted)
        if files:
            context.load_cert_chain(**files)
        connection = service.connect()
        with context.wrap_socket(connection, server_hostname=name) as secured:
            client = http.client.HTTPConnection(name)
            client.sock = secured
            client.request("GET", "/")
            return client.getresponse().status

    def test_it_serves_https(self):
        service = self.start()
        service.says("serving HTTPS on")
        self.assertEqual(self.ask(service, self.certificate), 200)
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)

    def test_more_certificates_by_name(self):
        certificate, key = make_certificate(self.path, "second.test")
        file = self.path / "a.toml"
        file.write_text(f'[tls]\ncertificate = "{self.certificate}"\nkey = "{self.key}"\n'
                        f'[[tls.certificates]]\ncertificate = "{certificate}"\nkey = "{key}"\n')
        service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
        self.assertEqual(self.ask(service, self.certificate), 200)
        self.assertEqual(self.ask(service, certificate, "second.test"), 200)

    def test_client_certificates(self):
        certificate, key = make_certificate(self.path, "client")
        service = self.start("tls.client_auth=require", f"tls.client_ca={certificate}", "tls.min_version=1.3")
        self.assertEqual(self.ask(service, self.certificate, certfile=certificate, keyfile=key), 200)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            self.ask(service, self.certificate)

    def test_sighup_reads_certificates_again_and_keeps_the_old_ones_if_they_are_bad(self):
        service = self.start()
        self.assertEqual(self.ask(service, self.certificate), 200)
        again = self.folder()
        renewed, renewed_key = make_certificate(again, "first.test")
        old = self.path / "old.pem"
        old.write_bytes(self.certificate.read_bytes())
        self.certificate.write_text("no certificate")
        service.send(signal.SIGHUP)
        self.assertIn(str(self.certificate), service.says("the certificates stay as they were"))
        self.assertEqual(self.ask(service, old), 200)
        self.certificate.write_bytes(renewed.read_bytes())
        self.key.write_bytes(renewed_key.read_bytes())
        service.send(signal.SIGHUP)
        service.says("certificates read again")
        self.assertEqual(self.ask(service, renewed), 200)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask(service, old)

    def test_a_wrong_file_at_the_start_is_one_line_that_names_it(self):
        other = make_certificate(self.path, "other.test")
        nothing = self.path / "nothing.pem"
        nothing.write_text("nothing\n")
        for certificate, key, named in [(self.path / "missing.pem", self.key, "missing.pem"), (nothing, self.key, "nothing.pem"),
                                        (self.certificate, other[1], "other.test.key")]:
            service = self.start(certificate=certificate, key=key)
            self.assertEqual(service.end(), 1)
            self.assertIn(named, service.says("app_server: "))
            self.assertEqual(len(service.lines), 2, service.lines)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
