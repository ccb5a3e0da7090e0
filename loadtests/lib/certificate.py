"""A certificate for the servers of a run, and a client configuration that allows only one version and one cipher.

In TLS both sides choose the cipher, and libraries have different preferences. Here the client offers only one: TLS 1.3
with AES-128-GCM and X25519. Every server then does the same arithmetic.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from lib import process
from lib.process import LoadTestError

CIPHER = "TLS_AES_128_GCM_SHA256"
CLIENT_CONFIG = f"""openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = system
[system]
MinProtocol = TLSv1.3
Ciphersuites = {CIPHER}
Groups = X25519
"""


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path
    client_config: Path  # the value of OPENSSL_CONF for clients


def make(directory, cpus):
    """Makes a self-signed certificate for localhost, with a key on P-256, in `directory`."""
    directory = Path(directory)
    found = Certificate(directory / "cert.pem", directory / "key.pem", directory / "openssl.cnf")
    process.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", str(found.key), "-out", str(found.certificate), "-days", "365", "-subj",
                 "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cpus, timeout_s=30)
    found.client_config.write_text(CLIENT_CONFIG, encoding="utf-8")
    return found


def check_agreement(certificate, port, cpus):
    """Raises LoadTestError unless the server at `port` has a key of this kind and agrees to CIPHER."""
    text = process.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}"], cpus, timeout_s=10,
                       environment={"OPENSSL_CONF": str(certificate.client_config)})
    for wanted in (rf"New, TLSv1\.3, Cipher is {CIPHER}$", r"^Server public key is 256 bit$",
                   r"^Peer signature type: ECDSA$", r"^(Server|Peer) Temp Key: X25519"):
        if not re.search(wanted, text, re.M):
            raise LoadTestError(f"TLS parameters differ from the required ones: no {wanted!r} in what s_client says")
