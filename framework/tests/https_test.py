#!/usr/bin/env python3
"""https_test.py APP_SERVER: TLS by settings; SIGHUP reloads the certificates. Needs the command openssl."""

import http.client
import signal
import ssl
import subprocess
import sys
import unittest

from app_testing import APP_SERVER, PATIENCE_S, Test


def make_certificate(folder, name):
    """Makes NAME.pem and NAME.key for the host NAME."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                    "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"], check=True, capture_output=True)
    return folder / f"{name}.pem", folder / f"{name}.key"


def sign(folder, name, begin, end):
    """Makes NAME.pem and NAME.key, valid from `begin` to `end` (YYYYMMDDHHMMSSZ)."""
    request, config = folder / f"{name}.csr", folder / "ca.cnf"
    (folder / "index.txt").write_text("")
    config.write_text(f"[ca]\ndefault_ca = a\n[a]\ndatabase = {folder}/index.txt\nnew_certs_dir = {folder}\n"
                      f"rand_serial = yes\npolicy = p\ndefault_md = sha256\n[p]\ncommonName = supplied\n")
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", request],
                   check=True, capture_output=True)
    subprocess.run(["openssl", "ca", "-batch", "-selfsign", "-config", config, "-keyfile", folder / f"{name}.key",
                    "-startdate", begin, "-enddate", end, "-in", request, "-out", folder / f"{name}.pem", "-notext"],
                   check=True, capture_output=True)


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
        said = service.says("the certificates stay as they were")
        self.assertIn(str(self.certificate), said)
        self.assertIn("tls.certificate", said)
        self.assertEqual(self.ask(service, old), 200)
        self.certificate.write_bytes(renewed.read_bytes())
        self.key.write_bytes(renewed_key.read_bytes())
        service.send(signal.SIGHUP)
        service.says("certificates read again")
        self.assertEqual(self.ask(service, renewed), 200)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask(service, old)

    def test_a_wrong_file_is_one_line_that_names_setting_and_file_at_the_start_and_for_check_config(self):
        other = make_certificate(self.path, "other.test")
        nothing = self.path / "nothing.pem"
        nothing.write_text("nothing\n")
        missing = self.path / "missing.pem"
        for certificate, key, place, named in [
                (missing, self.key, "2:tls.certificate", f"load certificate {missing}: No such file or directory"),
                (self.certificate, missing, "3:tls.key", f"load key {missing}: No such file or directory"),
                (nothing, self.key, "2:tls.certificate", f"load certificate {nothing}: no PEM block of the expected kind"),
                (self.certificate, other[1], "3:tls.key", f"load key {other[1]} for {self.certificate}: ")]:
            with self.subTest(named=named):
                file = self.path / "a.toml"
                file.write_text(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
                checked = self.check(file)
                self.assertEqual((checked.returncode, checked.stdout), (2, ""))
                self.assertTrue(checked.stderr.startswith(f"{file}:{place}: {named}"), checked.stderr)
                self.assertEqual(checked.stderr.count("\n"), 1)
                service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
                self.assertEqual(service.end(), 1)
                self.assertIn(f"app_server: {file}:{place}: {named}", service.says("app_server: "))
                self.assertEqual(len(service.lines), 2, service.lines)

    def check(self, file, *settings):
        return subprocess.run([APP_SERVER, "--config", file, "--check-config", *settings], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)

    def test_check_config_loads_certificates_and_reports_all_that_are_wrong(self):
        file = self.path / "a.toml"
        right = f'[tls]\ncertificate = "{self.certificate}"\nkey = "{self.key}"\n'
        file.write_text(right)
        self.assertEqual(self.check(file).stdout, "ok\n")
        file.write_text(right + 'client_auth = "require"\nclient_ca = "/nowhere/ca.pem"\n')
        self.assertEqual(self.check(file).stderr, f"{file}:5:tls.client_ca: load authorities /nowhere/ca.pem: "
                                                  "No such file or directory\n")
        rows = "".join(f'[[tls.certificates]]\ncertificate = "/nowhere/{n}.pem"\nkey = "/nowhere/{n}.key"\n'
                       for n in (1, 2))
        file.write_text(right.replace(str(self.key), "/nowhere/key") + rows)
        checked = self.check(file)
        self.assertEqual(checked.returncode, 2)
        self.assertEqual(checked.stderr.splitlines(), [
            f"{file}:3:tls.key: load key /nowhere/key: No such file or directory",
            f"{file}:4:tls.certificates: load certificate /nowhere/1.pem: No such file or directory",
            f"{file}:4:tls.certificates: load certificate /nowhere/2.pem: No such file or directory"])

    def test_check_config_reports_certificates_that_are_not_valid_now(self):
        file = self.path / "a.toml"
        for name, days, said in [("past.test", ("20200101000000Z", "20200201000000Z"), "the certificate has expired"),
                                 ("future.test", ("29990101000000Z", "29990201000000Z"),
                                  "the certificate is not valid yet")]:
            certificate, key = self.path / f"{name}.pem", self.path / f"{name}.key"
            sign(self.path, name, *days)
            file.write_text(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
            checked = self.check(file)
            self.assertEqual((checked.returncode, checked.stderr),
                             (2, f"{file}:2:tls.certificate: {certificate}: {said}\n"))
            service = self.service(arguments=["--listen", "127.0.0.1:0", "--config", str(file)])
            service.says(f"tls.certificate: {certificate}: {said}")
            service.says("serving")

    def test_a_key_with_a_passphrase_is_refused_as_such(self):
        for command in (["ec", "-aes256"], ["pkcs8", "-topk8", "-v2", "aes256"]):
            locked = self.path / "locked.key"
            subprocess.run(["openssl", *command, "-passout", "pass:secret", "-in", self.key, "-out", locked],
                           check=True, capture_output=True, timeout=PATIENCE_S)
            file = self.path / "a.toml"
            file.write_text(f'[tls]\ncertificate = "{self.certificate}"\nkey = "{locked}"\n')
            self.assertEqual(self.check(file).stderr, f"{file}:3:tls.key: load key {locked}: passphrase required\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
